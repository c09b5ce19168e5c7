//! Two ways to go on with a run: new documents for a model, and an interrupted run.
//!
//! `cargo run -p lda-core --example incremental` prints:
//!
//! ```text
//! first documents, topic 0: tree leaf wood root
//! first documents, topic 1: sea wave foam tide
//! with new documents, topic 0: leaf wood moss tree
//! with new documents, topic 1: sea wave foam tide
//! with new documents, topic 2: orbit star moon
//! resumed after epoch 10: same topics: true
//! ```

use lda_core::infer::Translation;
use lda_core::{
    Checkpoints, Corpus, Lda, PseudoCounts, Ranking, TopicModel, TrainOptions, Trainer, Weight,
    top_words,
};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let first = Corpus::from_words((0..200).map(|d| match d % 2 {
        0 => ["tree", "leaf", "wood", "root"],
        _ => ["sea", "wave", "foam", "tide"],
    }))?;
    let model = Lda::topics(2).alpha(0.1).seed(1).epochs(30).train(&first, ())?.model;
    show("first documents", &model)?;
    show("with new documents", &with_new_documents(&model)?)?;
    interrupted(&first)
}

/// Trains on new documents from `model`, whose counts stand for the old documents. New words and new
/// topics can be added; topics of the model keep their numbers.
fn with_new_documents(model: &TopicModel) -> Result<TopicModel, Error> {
    let mut corpus = Corpus::from_words((0..200).map(|d| match d % 2 {
        0 => ["leaf", "wood", "moss", "moss"],
        _ => ["star", "moon", "orbit", "orbit"],
    }))?;
    // Words of the model that the new documents lack would be lost otherwise.
    corpus.add_words(model.vocabulary().ok_or("the model has words")?)?;
    let translation = Translation::new(&corpus, model)?;
    // With a share below 1 the model forgets its old documents.
    let share = Weight::Share(1.0);
    let counts = PseudoCounts::from_model(model, &translation, &corpus, 3, share)?;
    let lda = Lda::topics(3).alpha(0.1).seed(2).epochs(30).pseudo_counts(counts);
    Ok(lda.train(&corpus, ())?.model)
}

/// Stops a run after 10 of 20 epochs and resumes it. The bits are those of a run without interruption.
#[allow(clippy::print_stdout, reason = "an example shows its result")]
fn interrupted(corpus: &Corpus) -> Result<(), Error> {
    let options = TrainOptions::new(2).alpha(0.1).seed(3).epochs(20);
    let mut whole = Trainer::new(corpus, &options)?;
    whole.run((), || false);

    let directory = std::env::temp_dir().join(format!("incremental-{}", std::process::id()));
    let mut half = Trainer::new(corpus, &options.clone().epochs(10))?;
    half.checkpoint(Checkpoints::new(&directory).every_epochs(5))?;
    half.run((), || false);

    let snapshot = Checkpoints::latest(&directory)?.snapshot;
    std::fs::remove_dir_all(&directory)?;
    let mut resumed = Trainer::resume(corpus, &snapshot, &snapshot.options().epochs(20))?;
    resumed.run((), || false);
    let same = resumed.assignments() == whole.assignments();
    println!("resumed after epoch {}: same topics: {same}", snapshot.epochs());
    Ok(())
}

#[allow(clippy::print_stdout, reason = "an example shows its result")]
fn show(title: &str, model: &TopicModel) -> Result<(), Error> {
    let counts = model.counts().ok_or("a trained model has counts")?;
    let words = model.vocabulary().ok_or("the corpus has words")?;
    for (topic, list) in
        top_words(counts, counts.beta(), 4, Ranking::Probability)?.iter().enumerate()
    {
        let list: Vec<&str> = list.iter().map(|top| words.word(top.word)).collect();
        println!("{title}, topic {topic}: {}", list.join(" "));
    }
    Ok(())
}
