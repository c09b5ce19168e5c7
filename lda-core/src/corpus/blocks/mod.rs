//! Documents in blocks, of which a few are in memory at a time.
//!
//! A corpus that is larger than memory lies in a directory, cut into blocks of consecutive documents. A run
//! [over blocks](crate::train::blocks) visits them one after the other in every epoch (LightLDA, Yuan et al.,
//! WWW 2015, section 5.2: data blocks).
//!
//! ```text
//! manifest        the blocks, as text:
//!                   lda documents 3
//!                   words 6906
//!                   # part, first document, documents, tokens, pairs, fingerprint
//!                   part 0 0 429 58431 21345 9d0c1c6f4a5d3b21
//!                   part 1 429 431 58502 21160 …
//! words           the vocabulary, if there is one: a corpus without documents
//! part-00000      documents of a block: a corpus without vocabulary
//! statistics      tokens and documents of each word, and the number of documents of each length
//! ```
//!
//! The manifest is written last: without it the directory is incomplete and cannot be opened.

mod directory;
mod manifest;
mod sink;
mod statistics;
mod view;
mod writer;

pub use directory::BlockDirectory;
pub(crate) use manifest::fingerprint;
pub use manifest::{Manifest, ManifestError, Part};
pub(in crate::corpus) use sink::{BlockSink, Destination, TooWide};
pub use statistics::Statistics;
pub use view::BlockView;
pub use writer::BlockWriter;

use std::sync::Arc;

use crate::container::FileError;
use crate::corpus::{Corpus, Vocabulary};

/// Documents in blocks.
pub trait Blocks: Sync {
    /// The blocks in order: their documents and tokens.
    fn parts(&self) -> &[Part];

    /// Frequencies of words and lengths of documents.
    fn statistics(&self) -> &Statistics;

    /// Names of the words, if they are known.
    fn vocabulary(&self) -> Option<&Vocabulary>;

    /// Reads the documents of a block. All blocks have the same number of words, and no vocabulary.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    fn read(&self, block: usize) -> Result<Corpus, FileError>;
}

macro_rules! blocks_of_pointer {
    ($pointer:ty, $($bound:path),*) => {
        impl<B: Blocks + ?Sized $(+ $bound)*> Blocks for $pointer {
            fn parts(&self) -> &[Part] {
                (**self).parts()
            }

            fn statistics(&self) -> &Statistics {
                (**self).statistics()
            }

            fn vocabulary(&self) -> Option<&Vocabulary> {
                (**self).vocabulary()
            }

            fn read(&self, block: usize) -> Result<Corpus, FileError> {
                (**self).read(block)
            }
        }
    };
}

blocks_of_pointer!(&B,);
blocks_of_pointer!(Arc<B>, Send);
blocks_of_pointer!(Box<B>,);
