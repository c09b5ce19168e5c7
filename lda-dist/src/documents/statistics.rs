//! Word counts and lengths of stored documents, from which words are placed on servers before any document is
//! read.
//!
//! ```text
//! bytes 0–7    checksum of the manifest to which these belong, little-endian like all numbers here
//! bytes 8–15   checksum of the bytes that follow
//! then         number of documents (8), sum of their squared lengths (8), tokens and documents of each word
//!              (`wire::put_word_stats`)
//! ```

use lda_core::Corpus;
use lda_core::container::checksum;

use crate::placement::{DocumentLengths, WordStats};
use crate::wire::{put_word_stats, take, take_word_stats};

/// Word counts and lengths of all documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Tokens and documents of each word.
    pub words: WordStats,
    /// Number and lengths of the documents.
    pub lengths: DocumentLengths,
}

impl Statistics {
    /// Those of a corpus.
    pub fn of(corpus: &Corpus) -> Self {
        Self { words: WordStats::of(corpus), lengths: DocumentLengths::of(corpus) }
    }

    /// Encodes them for documents with this manifest.
    pub(super) fn encode(&self, manifest: &[u8]) -> Vec<u8> {
        let DocumentLengths { documents, squares } = self.lengths;
        let mut content = [documents.to_le_bytes(), squares.to_le_bytes()].concat();
        put_word_stats(&self.words, &mut content);
        let sums = [checksum(manifest), checksum(&content)].map(u64::to_le_bytes);
        [sums.concat(), content].concat()
    }

    /// Decodes them; `None` if they are damaged, or belong to other documents, which were stored by a
    /// version without statistics.
    pub(super) fn decode(words: u32, manifest: &[u8], mut bytes: &[u8]) -> Option<Self> {
        let [of_manifest, of_content] =
            [take(&mut bytes)?, take(&mut bytes)?].map(u64::from_le_bytes);
        if (of_manifest, of_content) != (checksum(manifest), checksum(bytes)) {
            return None;
        }
        let [documents, squares] = [take(&mut bytes)?, take(&mut bytes)?].map(u64::from_le_bytes);
        let words = take_word_stats(words, &mut bytes).ok()?;
        let lengths = DocumentLengths { documents, squares };
        bytes.is_empty().then_some(Self { words, lengths })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn statistics() -> Statistics {
        Statistics::of(&Corpus::from_tokens([vec![0, 1, 1], vec![1], vec![3]]).unwrap())
    }

    #[test]
    fn encoded_statistics_come_back_for_their_documents_only() {
        let bytes = statistics().encode(b"manifest");
        assert_eq!(Statistics::decode(4, b"manifest", &bytes), Some(statistics()));
        assert_eq!(Statistics::decode(4, b"another", &bytes), None);
        assert_eq!(Statistics::decode(5, b"manifest", &bytes), None);
        for at in 0..bytes.len() {
            assert_eq!(Statistics::decode(4, b"manifest", &bytes[..at]), None);
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(Statistics::decode(4, b"manifest", &damaged), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(content in prop::collection::vec(any::<u8>(), 0..60), words in 0..9u32) {
            let sums = [checksum(b"manifest"), checksum(&content)].map(u64::to_le_bytes);
            let bytes = [sums.concat(), content].concat();
            if let Some(found) = Statistics::decode(words, b"manifest", &bytes) {
                prop_assert_eq!(found.words.num_words(), words as usize);
            }
        }
    }
}
