//! Likelihood by document length. One number for the whole corpus hides a sampler that is ahead on
//! long documents and behind on short ones.

use lda_core::Corpus;
use lda_core::model::TopicModel;
use lda_core::special::LnGammaRatio;

/// Log likelihood per token of the documents of each bin, `None` for a bin without tokens: ln φ of
/// each token's word in its topic, and ln p(z_d | α). `bins` are the bins' largest lengths,
/// ascending; one more bin takes longer documents.
///
/// φ is shared by all documents, so bins do not add up to the log joint, whose word part weighs φ
/// itself too.
///
/// `assigned` returns the topics of a document's tokens, by ascending word.
pub(super) fn by_length<'a>(
    model: &TopicModel,
    assigned: impl Fn(usize) -> &'a [u32],
    corpus: &Corpus,
    bins: &[u64],
) -> Vec<Option<f64>> {
    let (topics, words) = (model.num_topics(), model.num_words());
    let by_word = model.counts().expect("samplers count");
    let (alpha, beta) = (model.alpha(), by_word.beta());
    let ln_totals: Vec<f64> =
        by_word.totals().iter().map(|&total| (total as f64 + beta * words as f64).ln()).collect();
    // The lab's α is equal for all topics.
    let rising = LnGammaRatio::new(alpha.get(0));
    let length = LnGammaRatio::new(alpha.sum(topics));
    let mut sums = vec![(0u64, 0.0); bins.len() + 1];
    let mut counts = vec![0u64; topics];
    for d in 0..corpus.num_documents() {
        let document = corpus.document(d);
        let z = assigned(d);
        let mut rest = z;
        let tokens = z.len() as u64;
        let mut log = -length.get(tokens);
        for (word, n) in document.iter() {
            let row = by_word.word(word as usize);
            let (these, after) = rest.split_at(n as usize);
            rest = after;
            for &topic in these {
                let count = row.topics.position(topic).map_or(0, |at| row.values[at]);
                log += (f64::from(count) + beta).ln() - ln_totals[topic as usize];
                counts[topic as usize] += 1;
            }
        }
        for &topic in z {
            let count = std::mem::take(&mut counts[topic as usize]);
            if count > 0 {
                log += rising.get(count);
            }
        }
        let sum = &mut sums[bins.partition_point(|&longest| longest < tokens)];
        *sum = (sum.0 + tokens, sum.1 + log);
    }
    sums.into_iter().map(|(tokens, log)| (tokens > 0).then(|| log / tokens as f64)).collect()
}

/// Names of the bins with largest lengths `bins`: "1-100", "101-600", "over 600".
pub(super) fn names(bins: &[u64]) -> Vec<String> {
    let mut names = Vec::new();
    let mut first = 1;
    for &longest in bins {
        names.push(format!("{first}-{longest}"));
        first = longest + 1;
    }
    names.push(format!("over {}", first - 1));
    names
}

#[cfg(test)]
mod tests {
    use lda_core::corpus::CorpusBuilder;
    use lda_core::train::{TrainOptions, Trainer};

    use super::*;

    fn by_length(trainer: &Trainer<&Corpus>, corpus: &Corpus, bins: &[u64]) -> Vec<Option<f64>> {
        let assignments = trainer.assignments();
        super::by_length(&trainer.model(), |d| assignments.document(d), corpus, bins)
    }

    #[test]
    fn documents_count_in_the_bin_of_their_length() {
        let mut builder = CorpusBuilder::new();
        for words in [vec![0, 1], vec![], vec![0, 1, 2], vec![2, 2, 2, 1, 0]] {
            builder.push_tokens(words).unwrap();
        }
        let corpus = builder.build().unwrap();
        // With one topic everything can be computed by hand: V = 3, C_w = (3, 3, 4), N = 10, β = 1,
        // p(z | α) = 1.
        let options = TrainOptions::new(1).beta(1.0);
        let trainer = Trainer::new(&corpus, &options).unwrap();
        let (common, rare) = ((5.0f64 / 13.0).ln(), (4.0f64 / 13.0).ln());
        let expected = [
            Some(rare),
            Some((2.0 * rare + common) / 3.0),
            None,
            Some((2.0 * rare + 3.0 * common) / 5.0),
        ];
        for (found, expected) in by_length(&trainer, &corpus, &[2, 3, 4]).iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12),
                (found, expected) => assert_eq!(found.is_some(), expected.is_some()),
            }
        }
        assert_eq!(names(&[2, 3]), ["1-2", "3-3", "over 3"]);
    }

    #[test]
    fn one_bin_is_the_complete_likelihood() {
        let mut builder = CorpusBuilder::new();
        for d in 0..20u32 {
            builder.push_tokens((0..10 + d).map(|i| (d % 2) * 5 + i % 5)).unwrap();
        }
        let corpus = builder.build().unwrap();
        let options = TrainOptions::new(4);
        let mut trainer = Trainer::new(&corpus, &options).unwrap();
        for _ in 0..5 {
            trainer.epoch();
        }
        let all = by_length(&trainer, &corpus, &[])[0].unwrap();
        let model = trainer.model();
        let mut words = 0.0;
        for w in 0..model.num_words() {
            for (k, tokens) in model.counts().unwrap().word(w).iter() {
                words += f64::from(tokens) * model.phi(k as usize, w).ln();
            }
        }
        let expected = (words + trainer.log_joint().documents) / corpus.num_tokens() as f64;
        assert!((all - expected).abs() < 1e-9, "{all} {expected}");
    }
}
