//! Checks that results follow from options and corpus alone.

use std::io::Cursor;

use super::{Outcome, Subject, Testable, counts};
use crate::corpus::Corpus;
use crate::simd::Isa;
use crate::train::{Assignments, Init, Snapshot, TrainOptions, Trainer};

const TOPICS: u32 = 40;
const EPOCHS: u32 = 4;

fn options(seed: u64) -> TrainOptions {
    TrainOptions::new(TOPICS).alpha(0.1).seed(seed).ranges(8).warm_up(0)
}

/// The topics after some epochs.
fn topics<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
    corpus: &Corpus,
    options: &TrainOptions,
) -> Result<Assignments, String> {
    let started = subject.start(corpus, options, Init::default());
    let mut trainer = started.map_err(|error| error.to_string())?;
    for _ in 0..EPOCHS {
        trainer.epoch();
    }
    Ok(trainer.assignments())
}

/// The same bits at any number of threads and with any instruction set; others with another seed.
pub fn machines<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    let corpus = counts::random(150, 160).map_err(|error| error.to_string())?;
    let options = options(subject.claims.seed);
    let alone = topics(subject, &corpus, &options.clone().threads(1))?;
    for threads in [1, 2, 3, 7] {
        if topics(subject, &corpus, &options.clone().threads(threads))? != alone {
            return Err(format!(
                "{threads} threads: other topics than the first run of one thread"
            ));
        }
    }
    for isa in Isa::available() {
        if topics(subject, &corpus, &options.clone().isa(isa))? != alone {
            return Err(format!("{isa}: other topics than with the best instruction set"));
        }
    }
    let other = options.seed(subject.claims.seed.wrapping_add(1));
    if topics(subject, &corpus, &other)? == alone {
        return Err("the same topics with another seed".to_owned());
    }
    Ok(Outcome::Passed)
}

/// A new sampler goes on from a snapshot as the old one does.
pub fn snapshots<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    let corpus = counts::random(150, 160).map_err(|error| error.to_string())?;
    let started = subject.start(&corpus, &options(subject.claims.seed), Init::default());
    let mut trainer = started.map_err(|error| error.to_string())?;
    for _ in 0..EPOCHS {
        trainer.epoch();
    }
    let mut file = Cursor::new(Vec::new());
    trainer.snapshot().write_to(&mut file).map_err(|error| error.to_string())?;
    file.set_position(0);
    let snapshot = Snapshot::read_from(file).map_err(|error| error.to_string())?;
    let sampler = (subject.make)();
    let resumed = Trainer::resume_with_sampler(&corpus, &snapshot, &snapshot.options(), sampler);
    let mut resumed = resumed.map_err(|error| error.to_string())?;
    for epoch in 1..=EPOCHS {
        trainer.epoch();
        resumed.epoch();
        if trainer.assignments() != resumed.assignments() {
            return Err(format!(
                "{epoch} epochs after the snapshot, the topics are others than those of a run without it"
            ));
        }
    }
    Ok(Outcome::Passed)
}
