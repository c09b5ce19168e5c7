//! A model file is refused, or it is a model that can be asked and written again.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use lda_core::Corpus;
use lda_core::infer::{RtLda, RtScratch};
use lda_core::model::TopicModel;
use lda_core::model::Weights;
use lda_core::train::Lda;

/// A model of counts and one of weights.
static BASES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let corpus = Corpus::from_words([["a", "b", "a"], ["c", "d", "c"]]).expect("it is legal");
    let counts = Lda::topics(3).epochs(2).train(&corpus, ()).expect("it is legal").model;
    let weights = Weights::from_rows(&[[0.5, 0.2, 0.2], [0.1, 0.1, 0.8]]).expect("it is legal");
    [counts, TopicModel::from_weights(weights, vec![0.1, 0.2].into())]
        .map(|model| {
            let mut out = Cursor::new(Vec::new());
            model.write_to(&mut out).expect("memory takes it");
            out.into_inner()
        })
        .into()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bytes = lda_fuzz::file(&BASES, bytes);
    let model = match TopicModel::read_from(Cursor::new(&bytes)) {
        Ok(model) => model,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if let Some(words) = model.vocabulary() {
        assert_eq!(words.len(), model.num_words());
    }
    // What a few bytes claim may still be large to compute with.
    if model.num_topics() <= 1 << 16 {
        let rt = RtLda::new(&model).expect("it was checked");
        let query = (0..40).map(|i| i % (model.num_words() as u32 + 1));
        let mut scratch = RtScratch::default();
        assert_eq!(rt.infer(query, &mut scratch).tokens().len() as u64, {
            let known =
                (0..40).filter(|i| i % (model.num_words() as u32 + 1) < model.num_words() as u32);
            known.count() as u64
        });
    }
    let mut written = Cursor::new(Vec::new());
    model.write_to(&mut written).expect("memory takes it");
    written.set_position(0);
    assert_eq!(TopicModel::read_from(written).expect("just written"), model);
});
