//! Evaluation against corpora whose topics are known.

use lda_benches::synthetic::{Lengths, Spec, Synthetic};
use lda_core::corpus::{Corpus, CorpusBuilder};
use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity};
use lda_core::prior::Alpha;

fn synthetic() -> Synthetic {
    let lengths = vec![Lengths { weight: 1.0, mean: 80.0, sigma: 0.3 }];
    Spec { num_documents: 400, num_words: 300, num_topics: 6, lengths, ..Spec::default() }
        .generate(3)
        .unwrap()
}

fn dense(synthetic: &Synthetic) -> Vec<Vec<f64>> {
    let row = |topic: &Vec<(u32, f64)>| {
        let mut row = vec![0.0; synthetic.corpus.num_words()];
        topic.iter().for_each(|&(word, probability)| row[word as usize] = probability);
        row
    };
    synthetic.topics.iter().map(row).collect()
}

fn perplexity(corpus: &Corpus, rows: &[Vec<f64>], alpha: f64) -> f64 {
    let phi = Phi::from_rows(rows).unwrap();
    let options = CompletionOptions::default();
    held_out_perplexity(corpus, &phi, &Alpha::Symmetric(alpha), &options).unwrap().perplexity()
}

/// The generator's own parameters predict best, whatever is done to them.
#[test]
fn the_true_topics_have_the_lowest_perplexity() {
    let synthetic = synthetic();
    let corpus = &synthetic.corpus;
    let truth = dense(&synthetic);
    let best = perplexity(corpus, &truth, 0.1);

    let mean: Vec<f64> = (0..corpus.num_words())
        .map(|word| truth.iter().map(|row| row[word]).sum::<f64>() / truth.len() as f64)
        .collect();
    let unigram = perplexity(corpus, std::slice::from_ref(&mean), 0.1);
    assert!(best < 0.7 * unigram, "{best} {unigram}");

    let mix = |share: f64| -> Vec<Vec<f64>> {
        let blend = |(p, m): (&f64, &f64)| (1.0 - share) * p + share * m;
        truth.iter().map(|row| row.iter().zip(&mean).map(blend).collect()).collect()
    };
    let (slightly, half) = (perplexity(corpus, &mix(0.2), 0.1), perplexity(corpus, &mix(0.5), 0.1));
    assert!(best < slightly && slightly < half && half < unigram, "{slightly} {half}");

    for wrong in [0.001, 10.0] {
        let found = perplexity(corpus, &truth, wrong);
        assert!(best < found, "alpha {wrong}: {found} {best}");
    }
}

/// Words that a model has never heard of change nothing but their count.
#[test]
fn unknown_words_do_not_move_the_estimate() {
    let synthetic = synthetic();
    let phi = Phi::from_rows(&dense(&synthetic)).unwrap();
    let mut builder = CorpusBuilder::new();
    let beyond = synthetic.corpus.num_words() as u32;
    for (d, document) in synthetic.corpus.documents().enumerate() {
        builder.push_pairs(document.iter().chain([(beyond + d as u32, 2)])).unwrap();
    }
    let wider = builder.build().unwrap();
    let estimate = |corpus: &Corpus| {
        held_out_perplexity(corpus, &phi, &Alpha::Symmetric(0.1), &CompletionOptions::default())
            .unwrap()
    };
    let (plain, with_unknown) = (estimate(&synthetic.corpus), estimate(&wider));
    assert_eq!(with_unknown.log_probability, plain.log_probability);
    assert_eq!(with_unknown.unknown_tokens, plain.unknown_tokens + 800);
}
