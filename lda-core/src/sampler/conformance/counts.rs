//! Check of counts: rows and totals equal a recount after every epoch.

use super::{Outcome, Subject, Testable};
use crate::corpus::{BuildError, Corpus, CorpusBuilder};
use crate::random::Xoshiro256PlusPlus;
use crate::train::{Init, TrainOptions};

/// 70,000 topics are stored in 32 bits, fewer in 16.
const TOPICS: [u32; 5] = [1, 2, 17, 300, 70_000];
const RANGES: [usize; 3] = [1, 2, 4];

pub fn check<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    let largest = subject.max_topics();
    for (name, corpus) in corpora().map_err(|error| error.to_string())? {
        for topics in TOPICS.into_iter().filter(|&topics| u64::from(topics) <= largest) {
            for ranges in RANGES {
                epochs(subject, &corpus, topics, ranges)
                    .map_err(|reason| format!("{name}, K = {topics}, {ranges} ranges: {reason}"))?;
            }
        }
    }
    Ok(Outcome::Passed)
}

fn epochs<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
    corpus: &Corpus,
    topics: u32,
    ranges: usize,
) -> Result<(), String> {
    let alpha: Vec<f64> = (0..topics).map(|k| 0.1 + 0.01 * f64::from(k % 5)).collect();
    let options = TrainOptions::new(topics).ranges(ranges).seed(subject.claims.seed).warm_up(0);
    let options = if topics % 2 == 1 { options.alpha(alpha) } else { options.alpha(0.2) };
    let started = subject.start(corpus, &options, Init::default());
    let mut trainer = started.map_err(|error| error.to_string())?;
    for epoch in 1..=3 {
        let report = trainer.epoch();
        trainer.check().map_err(|error| format!("after epoch {epoch}, {error}"))?;
        if report.tokens != corpus.num_tokens() {
            let (found, tokens) = (report.tokens, corpus.num_tokens());
            return Err(format!("epoch {epoch} reports {found} tokens, of {tokens}"));
        }
        if !(0.0..=1.0).contains(&report.changed) {
            return Err(format!("epoch {epoch} reports a share of {} changed", report.changed));
        }
    }
    let topic_of = trainer.assignments();
    match topic_of.as_slice().iter().find(|&&topic| topic >= topics) {
        Some(topic) => Err(format!("a token has topic {topic}")),
        None => Ok(()),
    }
}

/// Corner cases, and documents of all lengths.
fn corpora() -> Result<[(&'static str, Corpus); 4], BuildError> {
    let build = |words: u32, documents: &[&[u32]]| {
        let mut builder = CorpusBuilder::new().num_words(words);
        builder.extend_tokens(documents.iter().map(|document| document.iter().copied()))?;
        builder.build()
    };
    Ok([
        ("one token", build(1, &[&[0]])?),
        ("one word", build(1, &[&[0; 5], &[0; 30], &[], &[0]])?),
        ("documents and words without tokens", build(9, &[&[], &[7, 7, 2], &[], &[2], &[]])?),
        ("documents of up to 39 tokens", random(90, 60)?),
    ])
}

/// Documents of 0 to 39 tokens; small word ids are frequent.
pub fn random(words: u32, documents: u32) -> Result<Corpus, BuildError> {
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let mut builder = CorpusBuilder::new().num_words(words);
    for d in 0..documents {
        let tokens: Vec<u32> =
            (0..d % 40).map(|_| rng.below(1 + rng.clone().below(words))).collect();
        builder.push_tokens(tokens)?;
    }
    builder.build()
}
