//! Trains a model, saves it, loads it again, and infers the topics of a new document.
//!
//! `cargo run -p lda-core --example embed` prints:
//!
//! ```text
//! epoch 10: -2.576 per token
//! epoch 20: -1.956 per token
//! epoch 30: -1.956 per token
//! topic 0: tree leaf wood
//! topic 1: star moon comet
//! topic 2: sea wave foam
//! new document: 64 % of topic 2
//! new document: 33 % of topic 1
//! unknown words: 1
//! ```

use lda_core::infer::Translation;
use lda_core::{Corpus, EpochReport, Flow, Inference, Lda, Method, Ranking, TopicModel, top_words};

#[allow(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Documents are lists of words; `Corpus::read` reads files in five formats instead.
    let themes = [
        ["tree", "leaf", "wood", "root", "bark"],
        ["sea", "wave", "foam", "tide", "salt"],
        ["star", "moon", "comet", "orbit", "dust"],
    ];
    let corpus = Corpus::from_words((0..300).map(|d| themes[d % 3]))?;

    // Train: options first, then one call. The observer sees every epoch and can stop the run.
    let observer = |epoch: &EpochReport| {
        if let Some(log_joint) = epoch.log_joint {
            println!("epoch {}: {:.3} per token", epoch.epoch, log_joint / epoch.tokens as f64);
        }
        Flow::Continue
    };
    let lda = Lda::topics(3).alpha(0.1).seed(7).epochs(30);
    let trained = lda.train(&corpus, observer)?;

    // Save and load. The file holds the vocabulary, the priors and the options of the run.
    let path = std::env::temp_dir().join(format!("embed-{}.lda", std::process::id()));
    trained.model.save(&path)?;
    let model = TopicModel::load(&path)?;
    std::fs::remove_file(&path)?;

    // Look at the topics.
    let counts = model.counts().ok_or("a trained model has counts")?;
    let vocabulary = model.vocabulary().ok_or("the corpus has words")?;
    for (topic, list) in
        top_words(counts, counts.beta(), 3, Ranking::Probability)?.iter().enumerate()
    {
        let words: Vec<&str> = list.iter().map(|top| vocabulary.word(top.word)).collect();
        println!("topic {topic}: {}", words.join(" "));
    }

    // Infer. The new document has word ids of its own corpus, which are translated to the model's.
    let new = Corpus::from_words([["tide", "wave", "moon", "boat"]])?;
    let new = Translation::new(&new, &model)?.apply(&new)?;
    let inference = Inference::new(&model, Method::FOLD_IN, 0)?;
    let answer = &inference.infer_corpus(&new)[0];
    for (topic, share) in inference.leading(answer) {
        println!("new document: {:.0} % of topic {topic}", 100.0 * share);
    }
    println!("unknown words: {}", answer.unknown);
    Ok(())
}
