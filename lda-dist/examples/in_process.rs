//! Trains with a parameter server in this process: three workers, two servers and the master are
//! threads. The result is the `Trained` that `lda_core::Lda` returns, with the same bits for any
//! number of workers.
//!
//! ```text
//! cargo run -p lda-dist --example in_process
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use lda_core::train::{EpochReport, Flow};
use lda_core::{Corpus, Ranking, top_words};
use lda_dist::Distributed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let themes = [
        ["tree", "leaf", "wood", "root", "bark"],
        ["sea", "wave", "foam", "tide", "salt"],
        ["star", "moon", "night", "sky", "dark"],
    ];
    // Each document mixes two themes.
    let words = |d: usize| (0..40).map(move |i| themes[(d + i / 30) % 3][(d + i * i) % 5]);
    let corpus = Corpus::from_words((0..300).map(words))?;

    let run = Distributed::topics(3).alpha(0.1).servers(2).shards(6).epochs(30).seed(1);
    let observer = |epoch: &EpochReport| {
        if let Some(joint) = epoch.log_joint_per_token() {
            println!("epoch {}: log joint per token {joint:.4}", epoch.epoch);
        }
        Flow::Continue
    };
    let trained = run.clone().workers(3).train(&corpus, observer)?;

    let beta = trained.resolved.beta;
    let counts = trained.model.counts().expect("a trained model has counts");
    let vocabulary = corpus.vocabulary().expect("the corpus was made from words");
    for (topic, words) in top_words(counts, beta, 5, Ranking::Probability)?.iter().enumerate() {
        let words: Vec<&str> = words.iter().map(|top| vocabulary.word(top.word)).collect();
        println!("topic {topic}: {}", words.join(" "));
    }

    let one_worker = run.workers(1).train(&corpus, ())?;
    assert_eq!(one_worker.assignments, trained.assignments);
    println!("1 and 3 workers give the same topics");
    Ok(())
}
