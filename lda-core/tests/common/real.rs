//! Real corpora: only for tests that are asked for by name (`--ignored`) or by
//! `LDA_CORPORA_REQUIRED`; all others generate their corpora. A missing file fails the test.

#![allow(dead_code, reason = "every test binary compiles all of this and uses its part")]

use std::path::PathBuf;

/// Whether tests that run on generated corpora are to run on real ones too.
pub(crate) fn required() -> bool {
    std::env::var_os("LDA_CORPORA_REQUIRED").is_some()
}

/// A file of `LDA_CORPORA`, or of the folder `shared/corpora` beside the repository.
#[track_caller]
pub(crate) fn file(name: &str) -> PathBuf {
    let folder = std::env::var_os("LDA_CORPORA").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora").into(),
        PathBuf::from,
    );
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: set LDA_CORPORA to the corpora's folder",
        path.display()
    );
    path
}
