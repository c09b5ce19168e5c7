//! Encoding of requests from workers to servers.
//!
//! ```text
//! byte 0       kind: 0 join, 1 sizes, 2 pull, 3 push, 4 deltas, 5 rows
//! bytes 1–2    shard, little-endian like all numbers here
//! bytes 3–4    slice of a partition
//! bytes 5–8    epoch
//! bytes 9–10   round
//! bytes 11–14  attempt
//!
//! body                                                       → reply
//! join     the shard's words: a row (`wire`) of their
//!          places in the partition, each with count 1;
//!          then the row of the shard's counts of each word   → empty
//! sizes    empty                                             → one byte per word: the size of its row
//! pull     one bit per word, 1 if it is pulled               → the rows of these words
//! push     documents (`wire`) whose words are indices
//!          among the shard's words                           → their answer
//! deltas   bits as in pull; the delta of each of these rows  → empty
//! rows     bits as in pull; one bit for each of these rows,
//!          1 if it is whole; each of these rows, or its
//!          delta if it is not whole                          → empty
//! ```
//!
//! Rows have the topics of the slice, which are numbered from 0 in it. If a partition has several
//! slices, no tokens are pushed.
//!
//! Bits fill a byte from the lowest, and bits after the last word are 0. A size of up to 15 bytes
//! is the byte itself; 16 + 8 (e − 1) + m means (8 + m) 2^e, to which sizes are rounded up.

use thiserror::Error;

use crate::route::Route;
use crate::spec::Round;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shard sends its words and its counts of them.
    Join,
    /// Request for the sizes of rows.
    Sizes,
    /// Request for rows.
    Pull,
    /// Request to sample tokens.
    Push,
    /// Deltas to add to rows.
    PushDeltas,
    /// Rows to replace, and deltas to add to others.
    PushRows,
}

const KINDS: [Kind; 6] =
    [Kind::Join, Kind::Sizes, Kind::Pull, Kind::Push, Kind::PushDeltas, Kind::PushRows];

impl Kind {
    /// Returns the kind that a first byte names.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        KINDS.get(usize::from(byte)).copied()
    }
}

/// Header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Shard of the tokens.
    pub shard: u16,
    /// Slice of the words and topics. It has the partition's number if it is the partition's only
    /// one.
    pub slice: u16,
    /// Round of the request.
    pub round: Round,
}

/// Bytes that are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The request ends within the header.
    #[error("a request of {bytes} bytes is shorter than its header")]
    Truncated {
        /// Bytes of the request.
        bytes: usize,
    },
    /// There is no such kind.
    #[error("unknown kind of request: {byte}")]
    Kind {
        /// The first byte.
        byte: u8,
    },
    /// The routes do not have exactly one bit per word.
    #[error("the list of routes must have one bit for each of {words} words")]
    Bits {
        /// Number of words.
        words: usize,
    },
}

/// Appends the header of a request to `to`.
pub fn begin(kind: Kind, header: &RequestHeader, to: &mut Vec<u8>) {
    let RequestHeader { shard, slice, round } = *header;
    to.push(KINDS.iter().position(|other| *other == kind).expect("KINDS lists all kinds") as u8);
    to.extend(shard.to_le_bytes());
    to.extend(slice.to_le_bytes());
    to.extend(round.epoch.to_le_bytes());
    to.extend(round.number.to_le_bytes());
    to.extend(round.attempt.to_le_bytes());
}

/// Reads the header; returns the body with it.
///
/// # Errors
/// [`HeadError`].
pub fn read(request: &[u8]) -> Result<(Kind, RequestHeader, &[u8]), HeadError> {
    let cut = HeadError::Truncated { bytes: request.len() };
    let (&[kind, a, b, c, d], rest) = request.split_first_chunk().ok_or(cut)?;
    let kind = Kind::of(kind).ok_or(HeadError::Kind { byte: kind })?;
    let (epoch, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (number, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (attempt, rest) = rest.split_first_chunk().ok_or(cut)?;
    let round = Round {
        epoch: u32::from_le_bytes(*epoch),
        number: u16::from_le_bytes(*number),
        attempt: u32::from_le_bytes(*attempt),
    };
    let (shard, slice) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    Ok((kind, RequestHeader { shard, slice, round }, rest))
}

/// Writes routes, one bit per word.
pub fn put_routes(routes: &[Route], to: &mut Vec<u8>) {
    put_bits(routes.iter().map(|route| *route == Route::Pull), to);
}

/// Writes bits.
pub(crate) fn put_bits(bits: impl IntoIterator<Item = bool>, to: &mut Vec<u8>) {
    for (at, bit) in bits.into_iter().enumerate() {
        if at % 8 == 0 {
            to.push(0);
        }
        let byte = to.last_mut().expect("a byte was written for this bit");
        *byte |= u8::from(bit) << (at % 8);
    }
}

/// Reads the routes of `words` words; returns the rest of the body.
///
/// # Errors
/// [`HeadError::Bits`].
pub fn take_routes<'a>(
    words: usize,
    from: &'a [u8],
    routes: &mut Vec<Route>,
) -> Result<&'a [u8], HeadError> {
    routes.clear();
    let (bits, rest) = take_bits(words, from)?;
    routes.extend(bits.map(|bit| if bit { Route::Pull } else { Route::Push }));
    Ok(rest)
}

/// Reads one bit for each of `words` words; returns them and the rest of the body.
///
/// # Errors
/// [`HeadError::Bits`].
pub(crate) fn take_bits(
    words: usize,
    from: &[u8],
) -> Result<(impl Iterator<Item = bool> + '_, &[u8]), HeadError> {
    let wrong = HeadError::Bits { words };
    let (bits, rest) = from.split_at_checked(words.div_ceil(8)).ok_or(wrong)?;
    let bit = |word: usize| bits[word / 8] >> (word % 8) & 1 == 1;
    if (words..bits.len() * 8).any(bit) {
        return Err(wrong);
    }
    Ok(((0..words).map(bit), rest))
}

/// Encodes a size as a byte, rounded up.
pub fn size_byte(size: u32) -> u8 {
    let exponent = (u32::BITS - size.leading_zeros()).saturating_sub(4);
    if exponent == 0 {
        return size as u8;
    }
    let rounded = size.div_ceil(1 << exponent);
    // A size just below a power of two is rounded up to it: the first value of the next exponent.
    let (leading, exponent) = if rounded == 16 { (8, exponent + 1) } else { (rounded, exponent) };
    (16 + 8 * (exponent - 1) + leading - 8) as u8
}

/// Decodes a size; bytes from 240 on are `u32::MAX`.
pub fn size_of_byte(byte: u8) -> u32 {
    if byte < 16 {
        return byte.into();
    }
    let (exponent, leading) = (u32::from(byte - 16) / 8 + 1, 8 + u32::from(byte - 16) % 8);
    u32::try_from(u64::from(leading) << exponent).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_rounded_up_within_an_eighth() {
        for size in (0..70_000).chain((0..32).map(|bit| u32::MAX >> bit)) {
            let read = size_of_byte(size_byte(size));
            assert!(read >= size, "{read} for {size}");
            assert!(u64::from(read - size) * 8 <= u64::from(size) || read == u32::MAX, "{read}");
        }
        assert!((0..70_000).map(size_byte).is_sorted());
        for byte in 0..=239 {
            assert_eq!(size_byte(size_of_byte(byte)), byte);
        }
        assert!((240..=255).all(|byte| size_of_byte(byte) == u32::MAX));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in 0..5usize,
            shard: u16,
            slice: u16,
            epoch: u32,
            number: u16,
            attempt: u32,
            pulled in prop::collection::vec(any::<bool>(), 0..40),
        ) {
            let kind = KINDS[kind];
            let header = RequestHeader { shard, slice, round: Round { epoch, number, attempt } };
            let routes: Vec<Route> =
                pulled.iter().map(|&pulled| if pulled { Route::Pull } else { Route::Push }).collect();
            let mut bytes = Vec::new();
            begin(kind, &header, &mut bytes);
            put_routes(&routes, &mut bytes);
            bytes.push(77);
            let (found, of, rest) = read(&bytes).unwrap();
            prop_assert_eq!((found, of), (kind, header));
            let mut read_routes = Vec::new();
            prop_assert_eq!(take_routes(routes.len(), rest, &mut read_routes), Ok(&[77u8][..]));
            prop_assert_eq!(read_routes, routes);
        }

        #[test]
        fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Ok((kind, header, rest)) = read(&bytes) {
                let mut again = Vec::new();
                begin(kind, &header, &mut again);
                again.extend_from_slice(rest);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        assert_eq!(read(&[1, 0, 0]), Err(HeadError::Truncated { bytes: 3 }));
        assert_eq!(read(&[1; 14]), Err(HeadError::Truncated { bytes: 14 }));
        assert_eq!(read(&[6, 0, 0, 0, 0]), Err(HeadError::Kind { byte: 6 }));
        let mut routes = Vec::new();
        assert_eq!(take_routes(9, &[255], &mut routes), Err(HeadError::Bits { words: 9 }));
        assert_eq!(take_routes(7, &[255], &mut routes), Err(HeadError::Bits { words: 7 }));
    }
}
