//! Priors that change are those that formulas give for the counts.

use lda_core::special::digamma;
use lda_core::train::{Learn, LearnAlpha};
use lda_dist::priors::Priors;

use super::*;

const TOPICS: u32 = 6;

/// Counts of a run: C_d, C_w and C_k.
struct Counts {
    documents: Vec<Vec<f64>>,
    words: Vec<Vec<f64>>,
    totals: Vec<f64>,
}

fn counts(run: &InProcess<u16>) -> Counts {
    let empty = |rows| vec![vec![0.0; TOPICS as usize]; rows];
    let (mut documents, mut words) = (empty(run.num_documents()), empty(run.num_words()));
    let mut totals = vec![0.0; TOPICS as usize];
    run.for_each(|document, word, topic| {
        documents[document as usize][topic as usize] += 1.0;
        words[word as usize][topic as usize] += 1.0;
        totals[topic as usize] += 1.0;
    });
    Counts { documents, words, totals }
}

/// Σ_{j < m} 1 / (a + j), summed over all m.
fn delta(a: f64, all: impl Iterator<Item = f64>) -> f64 {
    all.map(|m| digamma(a + m) - digamma(a)).sum()
}

/// α and β after [`Learn::STEPS`] steps of Minka's iteration.
fn learnt(learn: Learn, counts: &Counts, priors: &Priors) -> (Vec<f64>, f64) {
    let Counts { documents, words, totals } = counts;
    let mut alpha: Vec<f64> = (0..TOPICS as usize).map(|k| priors.alpha.get(k)).collect();
    let (mut beta, k) = (priors.beta, alpha.len() as f64);
    for _ in 0..Learn::STEPS {
        let lengths = documents.iter().map(|row| row.iter().sum());
        let below = delta(alpha.iter().sum(), lengths);
        let of_topic = |topic: usize, a| delta(a, documents.iter().map(|row| row[topic]));
        let above: Vec<f64> = alpha.iter().enumerate().map(|(at, &a)| of_topic(at, a)).collect();
        match learn.alpha {
            LearnAlpha::Fixed => {}
            LearnAlpha::Symmetric => {
                alpha = vec![alpha[0] * above.iter().sum::<f64>() / (k * below); above.len()];
            }
            LearnAlpha::PerTopic => {
                alpha.iter_mut().zip(&above).for_each(|(alpha, above)| *alpha *= above / below);
            }
        }
        if learn.beta {
            let above = delta(beta, words.iter().flatten().copied());
            let v = words.len() as f64;
            beta *= above / (v * delta(v * beta, totals.iter().copied()));
        }
    }
    (alpha, beta)
}

fn near(found: &Priors, alpha: &[f64], beta: f64, what: &str) {
    let all = (0..TOPICS as usize).map(|k| (found.alpha.get(k), alpha[k]));
    for (a, b) in all.chain([(found.beta, beta)]) {
        assert!((a / b - 1.0).abs() < 1e-9, "{what}: {found:?}, expected {alpha:?}, {beta}");
    }
}

#[test]
fn learnt_priors_follow_from_the_counts() {
    let corpus = corpus(60, 50, 15);
    let cut = Options { shards: 3, partitions: 6, servers: 2, ..Options::default() };
    for (alpha, beta, staleness) in [
        (LearnAlpha::PerTopic, true, 0),
        (LearnAlpha::PerTopic, false, 1),
        (LearnAlpha::Symmetric, true, 1),
        (LearnAlpha::Fixed, true, 0),
    ] {
        let learn = Learn { alpha, beta, burn_in: 2, every: 3 };
        let spec = ModelSpec::builder(TOPICS, 50).alpha(0.4).beta(0.2).learn(learn).build();
        let options = Options { rounds: 6, sync: SyncMode::rounds(staleness), ..cut };
        let mut run = InProcess::<u16>::new(&spec.unwrap(), &corpus, &options).unwrap();
        for epoch in 1..=9 {
            let (priors, before) = (run.priors(), counts(&run));
            run.epoch().unwrap();
            let what = format!("{learn:?}, epoch {epoch}");
            if [3, 6, 9].contains(&epoch) {
                let (alpha, beta) = learnt(learn, &before, &priors);
                near(&run.priors(), &alpha, beta, &what);
                assert_ne!(run.priors(), priors, "{what}");
            } else {
                assert_eq!(run.priors(), priors, "{what}");
            }
        }
    }
}

#[test]
fn alpha_by_size_is_that_of_the_epochs_start() {
    let corpus = corpus(60, 50, 15);
    let options = Options { shards: 3, partitions: 6, rounds: 3, ..Options::default() };
    let spec = ModelSpec::builder(TOPICS, 50).alpha(0.4).beta(0.2).alpha_by_size(30.0);
    let mut run = InProcess::<u16>::new(&spec.build().unwrap(), &corpus, &options).unwrap();
    for epoch in 1..=4 {
        let totals = counts(&run).totals;
        run.epoch().unwrap();
        let tokens = totals.iter().sum::<f64>();
        let of_topic = |&size: &f64| 0.4 * 6.0 * (size + 30.0 / 6.0) / (tokens + 30.0);
        let alpha: Vec<f64> = totals.iter().map(of_topic).collect();
        near(&run.priors(), &alpha, 0.2, &format!("epoch {epoch}"));
    }
}
