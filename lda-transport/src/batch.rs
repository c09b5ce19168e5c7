//! Several byte strings in one: the keys of a [pull](crate::node::Handle::pull_rows), and its rows.
//!
//! Each is its length, as a `u32` in little-endian order, and its bytes. They are read where they lie, after one
//! look over all of the lengths.
//!
//! ```
//! use lda_transport::batch::{self, Items};
//! use lda_transport::rpc::MessageBuf;
//!
//! let mut draft = MessageBuf::new();
//! for key in ["topic", "", "models"] {
//!     batch::put(&mut draft, key.as_bytes());
//! }
//! let items = Items::of(draft.body())?;
//! assert_eq!(items.len(), 3);
//! assert!(items.eq([&b"topic"[..], b"", b"models"]));
//! assert!(Items::of(&draft.body()[1..]).is_err());
//! # Ok::<(), batch::Malformed>(())
//! ```

use std::iter::FusedIterator;

use thiserror::Error;

use crate::rpc::MessageBuf;

const LENGTH: usize = 4;

/// Adds an item.
///
/// # Panics
/// If it has 4 GiB or more.
pub fn put(message: &mut MessageBuf, item: &[u8]) {
    let len = u32::try_from(item.len()).expect("an item is shorter than 4 GiB");
    message.reserve(LENGTH + item.len());
    message.extend_from_slice(&len.to_le_bytes());
    message.extend_from_slice(item);
}

/// Bytes that are no items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("item {item} of a batch has {len} bytes by its length, where {left} are left")]
pub struct Malformed {
    /// Which.
    item: usize,
    len: usize,
    left: usize,
}

/// The items of a batch.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Items<'a> {
    /// Those in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut rest, mut left) = (bytes, 0);
        while !rest.is_empty() {
            let malformed = |len| Malformed { item: left, len, left: rest.len() };
            rest = split(rest).map_err(malformed)?.1;
            left += 1;
        }
        Ok(Self { bytes, left })
    }
}

/// The first item and what is after it; else how long it should be, with its length.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), usize> {
    let (len, rest) = bytes.split_first_chunk::<LENGTH>().ok_or(LENGTH)?;
    let len = u32::from_le_bytes(*len) as usize;
    rest.split_at_checked(len).ok_or(len.saturating_add(LENGTH))
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // All lengths were looked at.
        let (item, rest) = split(self.bytes).ok()?;
        self.bytes = rest;
        self.left -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}
impl FusedIterator for Items<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_or_too_long_is_malformed() {
        let mut message = MessageBuf::new();
        put(&mut message, &[7; 5]);
        put(&mut message, &[]);
        let bytes = message.body();
        let ends: Vec<usize> =
            (0..=bytes.len()).filter(|&end| Items::of(&bytes[..end]).is_ok()).collect();
        assert_eq!(ends, [0, 9, 13]);
        let error = Items::of(&[255; 6]).unwrap_err();
        assert_eq!(error, Malformed { item: 0, len: 4_294_967_299, left: 6 });
        let mut items = Items::of(bytes).unwrap();
        assert_eq!((items.len(), items.next(), items.len()), (2, Some(&[7; 5][..]), 1));
        assert_eq!((items.next(), items.next(), items.next()), (Some(&[][..]), None, None));
    }
}
