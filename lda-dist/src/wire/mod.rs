//! Counts as bytes: rows of C_w and C_d, what is added to them, and tokens that are [pushed](PushCode).
//!
//! Of a few hundred bytes a row and millions of rows an epoch, so each is written in as few bits as it takes, the form
//! chosen a row at a time by exact sizes. LDA* (section 5.1) writes a byte or more a count and two a topic; here
//! topics are the gaps of an ascending list and counts, most of which are 1, take a bit where they are.
//!
//! # A row
//! ```text
//! byte 0    bits 0–1  form: 0 empty, 1 sparse, 2 dense
//!           bits 2–4  r, the order of the code of values
//!           bits 5–7  sparse: the number of entries n where it is 1 to 7, else 0; other forms: 0
//! sparse    n, where byte 0 has it not: 7 bits a byte, the lowest first, the high bit where more follow
//!           n times l bits: the lower part of t_i − i, topics t_0 < t_1 < …
//!           n times: as many zeros as the upper part of t_i − i is larger than that of the one before, and a one
//!           n times: the code of v_i − 1
//! dense     K times: the code of v_k, 0 where there is no entry
//! ```
//!
//! Bits are filled from the lowest of a byte to the highest, numbers from their lowest bit, and the last byte of a row
//! with zeros. l is the largest number with n 2^l ≤ K − n + 1, or 0: the code of topics is that of Elias (1974) and
//! Fano (1971), of at most 2 + l bits a topic where log₂ of (K over n) says that there are hardly fewer. K is known on
//! both sides.
//!
//! The code of a number x is that of Teuhola (1978), of order r: with q = ⌊x / 2^r⌋ + 1 and b = ⌊log₂ q⌋, b zeros, a
//! one, the b lower bits of q, the r lower bits of x: 2 b + 1 + r bits. Of deltas, which have a sign, x is 2 v − 1 for
//! v > 0 and −2 v for v < 0, each less 1 in a sparse row and as it stands in a dense one.
//!
//! Bytes of a peer are not trusted: see [`WireError`].
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
mod lists;
mod push;
mod row;
mod word_stats;

use thiserror::Error;

pub use lists::Lists;
pub use push::{Document, PushCode};
pub use row::{RowCode, Value};
pub use word_stats::{put_word_stats, take_word_stats};

/// Bytes that are no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// They end too early.
    #[error("a row is cut off")]
    Truncated,
    /// A form that there is not.
    #[error("a row begins with {byte:#04x}, which is no form")]
    Form {
        /// The byte.
        byte: u8,
    },
    /// More entries than topics, or none where there should be some.
    #[error("a row of {entries} entries, with {topics} topics")]
    Entries {
        /// How many it says.
        entries: u64,
        /// K.
        topics: u32,
    },
    /// Topics that do not ascend.
    #[error("topics of a row do not ascend")]
    Order,
    /// A topic beyond the last.
    #[error("topic {topic} in a row, with {topics} topics")]
    Topic {
        /// Which.
        topic: u64,
        /// K.
        topics: u32,
    },
    /// A word beyond the last.
    #[error("word {word} in a request, with {words} words")]
    Word {
        /// Which.
        word: u64,
        /// How many there are.
        words: u32,
    },
    /// A token of a topic that its document has not.
    #[error("a token of a topic that its document has not")]
    NotInRow,
    /// More tokens of a document than may be pushed.
    #[error("more than {longest} tokens of a document")]
    Length {
        /// How many may be.
        longest: u32,
    },
    /// A number beyond 32 bits.
    #[error("a number in a row is too large")]
    Number,
}

/// So many bytes from the front, which are taken off; none where there are fewer.
pub(crate) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = from.split_first_chunk()?;
    *from = after;
    Some(*taken)
}
