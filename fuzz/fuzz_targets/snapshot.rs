//! A snapshot file is refused, or the run it holds can be taken up or says why not.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use lda_core::Corpus;
use lda_core::train::{
    Init, PseudoCounts, SamplerKind, SamplerOptions, Snapshot, TrainOptions, Trainer,
};

/// The corpus of the runs.
static CORPUS: LazyLock<Corpus> =
    LazyLock::new(|| Corpus::from_tokens([[0, 1, 2, 0, 1], [2, 3, 3, 2, 0]]).expect("it is legal"));

/// Runs with lists, with proposals, with both, and with ages; without pseudo-counts and with some.
static BASES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let of = |sampler: SamplerOptions, topics| TrainOptions::new(topics).sampler(sampler);
    [
        of(SamplerKind::FPlusDoc.into(), 300),
        of(SamplerKind::Warp.into(), 3),
        of(SamplerOptions::Hybrid { steps: 1, step_cap: 16, short_length: Some(4) }, 300),
        of(SamplerOptions::Sparse { exclude_from: Some(1) }, 300),
    ]
    .into_iter()
    .flat_map(|options| [(options.clone(), false), (options, true)])
    .map(|(options, with)| {
        let entries = [(0, 2, 5), (3, 0, 1), (3, 2, 7)];
        let pseudo = PseudoCounts::new(4, options.get_topics(), entries).expect("it is legal");
        let init = Init { pseudo_counts: with.then_some(pseudo), topics: None };
        let mut trainer = Trainer::with_init(&*CORPUS, &options, init).expect("it is legal");
        trainer.epoch();
        let mut out = Cursor::new(Vec::new());
        trainer.snapshot().write_to(&mut out).expect("memory takes it");
        out.into_inner()
    })
    .collect()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bytes = lda_fuzz::file(&BASES, bytes);
    let snapshot = match Snapshot::read_from(Cursor::new(&bytes)) {
        Ok(snapshot) => snapshot,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let resolved = snapshot.resolved();
    if resolved.topics > 1 << 12 || resolved.ranges > 16 || resolved.mh_steps > 8 {
        return;
    }
    // WarpLDA lays them out one by one.
    if snapshot.pseudo_counts().is_some_and(|counts| counts.sum() > 1 << 20) {
        return;
    }
    match Trainer::resume(&*CORPUS, &snapshot, &snapshot.options()) {
        Ok(mut trainer) => {
            trainer.check().expect("counts follow from the topics");
            trainer.epoch();
            trainer.check().expect("counts follow from the topics");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
