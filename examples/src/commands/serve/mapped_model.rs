//! Opens a model in place in its file, for `--map`.

// `TopicModel::map` is unsafe: the file must not change while the model is in use.
#![allow(unsafe_code)]

use std::path::Path;

use lda_core::container::FileError;
use lda_core::model::TopicModel;

/// Maps the model at `path`; all of the file is checked.
pub fn open(path: &Path) -> Result<TopicModel, FileError> {
    // SAFETY: `--map` documents that the model file must be replaced by a rename and never be written
    // in place. The operator who gives the option promises this; a change is noticed (`Ready::check_file`), but
    // too late for what was read before.
    unsafe { TopicModel::map(path) }
}
