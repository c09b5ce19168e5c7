//! The lists beside blocks of documents are refused, or they are sound and come back when they are written again.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use lda_core::Corpus;
use lda_core::corpus::blocks::{Manifest, Statistics};

static BASES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut statistics = Statistics::new(3);
    statistics.add(&Corpus::from_pairs([vec![(0, 300), (4, 1)], vec![]]).expect("it is legal"));
    vec![written(&statistics)]
});

fn written(statistics: &Statistics) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    statistics.write_to(&mut out).expect("memory takes it");
    out.into_inner()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Manifest::parse(bytes) {
        Ok(manifest) => {
            let again = Manifest::parse(manifest.to_text().as_bytes()).expect("just written");
            assert_eq!(again, manifest);
            assert_eq!(again.fingerprint(), manifest.fingerprint());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let statistics = match Statistics::read_from(Cursor::new(lda_fuzz::file(&BASES, bytes))) {
        Ok(statistics) => statistics,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let by_length: u64 = statistics.lengths().map(|(n, times)| u64::from(n) * times).sum();
    assert_eq!(by_length, statistics.num_tokens());
    let again = Statistics::read_from(Cursor::new(written(&statistics))).expect("just written");
    assert_eq!(again, statistics);
});
