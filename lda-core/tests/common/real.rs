//! Real corpora, where they are at hand.

use std::path::PathBuf;

/// A file of `LDA_CORPORA`, or of the folder beside the repository; or `None`, said aloud, where it is not on this
/// machine.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LDA_CORPORA").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora").into(),
        PathBuf::from,
    );
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not here; set LDA_CORPORA", path.display());
        return None;
    }
    Some(path)
}
