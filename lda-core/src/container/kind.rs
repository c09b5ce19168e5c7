//! Kinds of files: the part of the header that says what the sections mean.

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A trained model.
    Model,
    /// A run between two epochs.
    Snapshot,
    /// Documents.
    Corpus,
    /// Frequencies of words and lengths of documents.
    Statistics,
    /// A run over blocks, without its tokens.
    Run,
    /// Topics of the tokens of a block.
    Topics,
    /// Order of the tokens of a block.
    Layout,
}

impl Kind {
    /// Name in the header and in error messages; ASCII, at most 8 bytes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Snapshot => "snapshot",
            Self::Corpus => "corpus",
            Self::Statistics => "stats",
            Self::Run => "run",
            Self::Topics => "topics",
            Self::Layout => "layout",
        }
    }

    /// Newest version of the format, which is the one that is written.
    pub(super) fn version(self) -> u32 {
        1
    }

    /// The name, padded with zeros.
    pub(super) fn code(self) -> [u8; 8] {
        let mut code = [0; 8];
        code[..self.name().len()].copy_from_slice(self.name().as_bytes());
        code
    }
}
