//! Encoding of counts in messages: rows of C_w and C_d, their deltas, and [pushed](PushCode)
//! tokens.
//!
//! An epoch sends millions of rows of a few hundred bytes. Each row is encoded in the form that
//! takes the fewest bits, chosen by exact sizes. LDA* (section 5.1) writes at least a byte per
//! count and two per topic; here topics are the gaps of an ascending list, and a count of 1, the
//! most frequent, takes a single bit.
//!
//! # A row
//! ```text
//! byte 0    bits 0–1  form: 0 empty, 1 sparse, 2 dense
//!           bits 2–4  r, the order of the code of values
//!           bits 5–7  sparse: the number of entries n if it is 1 to 7, else 0; other forms: 0
//! sparse    n, if byte 0 does not have it: 7 bits per byte, lowest first; high bit: more follow
//!           n times l bits: the lower part of t_i − i, topics t_0 < t_1 < …
//!           n times: the increase of the upper part of t_i − i, in unary: that many zeros, a one
//!           n times: the code of v_i − 1
//! dense     K times: the code of v_k, 0 for a topic without entry
//! ```
//!
//! Bytes are filled from the lowest bit to the highest, numbers start with their lowest bit, and
//! the last byte of a row is padded with zeros. l is the largest number with n 2^l ≤ K − n + 1, or
//! 0: the topics are in Elias-Fano code (Elias 1974, Fano 1971), with at most 2 + l bits per topic,
//! which is close to the bound log₂ (K over n). Sender and receiver both know K.
//!
//! The code of a number x is the exponential Golomb code (Teuhola 1978) of order r: with q = ⌊x /
//! 2^r⌋ + 1 and b = ⌊log₂ q⌋, b zeros, a one, the b lower bits of q, and the r lower bits of x:
//! 1 + 2 b + r bits. Deltas have a sign: x is 2 v − 1 for v > 0 and −2 v for v < 0, less 1 in a sparse
//! row, unchanged in a dense one.
//!
//! Decoding does not trust its input: malformed bytes give a [`WireError`].
//!
//! ```
//! use lda_dist::wire::{RowCode, WireError};
//!
//! let code = RowCode::new(1000);
//! let row = [(3, 1u32), (400, 2), (999, 1)];
//! let mut bytes = Vec::new();
//! code.encode(&row, &mut bytes);
//! assert_eq!((bytes.len(), code.size(&row)), (6, 6));
//!
//! let (mut rest, mut read) = (&bytes[..], Vec::new());
//! code.decode::<u32>(&mut rest, &mut read)?;
//! assert_eq!((&read[..], rest.len()), (&row[..], 0));
//!
//! let delta = [(400, -2i32), (401, 2)];
//! code.encode(&delta, &mut bytes);
//! # Ok::<(), WireError>(())
//! ```

mod bits;
mod histograms;
mod lists;
mod push;
mod row;
mod word_stats;

use thiserror::Error;

pub(crate) use histograms::{
    MAX_OCCURRENCES, add_histograms, put_histograms, put_number, take_number,
};
pub use lists::Lists;
pub use push::{Document, PushCode};
pub use row::{RowCode, Value};
pub use word_stats::{put_word_stats, take_word_stats};

/// Error of decoding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end too early.
    #[error("a row ends before its last entry")]
    Truncated,
    /// Unknown form of a row.
    #[error("a row begins with {byte:#04x}, which is not a known form")]
    Form {
        /// First byte of the row.
        byte: u8,
    },
    /// A row with more entries than topics, or a sparse row without entries.
    #[error("a row has {entries} entries, but its slice only {topics} topics")]
    Entries {
        /// Number of entries given in the row.
        entries: u64,
        /// Number of topics K.
        topics: u32,
    },
    /// Topics of a row do not ascend.
    #[error("the topics of a row are not in ascending order")]
    Order,
    /// A topic is not below K.
    #[error("a row counts topic {topic}, but its slice has {topics} topics, numbered from 0")]
    Topic {
        /// The topic.
        topic: u64,
        /// Number of topics K.
        topics: u32,
    },
    /// A word is not below the number of words.
    #[error("a request names word {word}, but the partition has {words} words, numbered from 0")]
    Word {
        /// Index of the word in the partition.
        word: u64,
        /// Number of words.
        words: u32,
    },
    /// A token has a topic that its document's row does not count.
    #[error("a pushed token has a topic that the row of its document does not count")]
    NotInRow,
    /// More tokens of one document than the limit of a push.
    #[error("a pushed document has more than {longest} tokens")]
    Length {
        /// Largest number of tokens per document.
        longest: u32,
    },
    /// A number is out of range: above 32 bits in rows.
    #[error("a number in a row is too large")]
    Number,
}

/// Takes `N` bytes off the front; `None` if there are fewer.
pub(crate) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = from.split_first_chunk()?;
    *from = after;
    Some(*taken)
}
