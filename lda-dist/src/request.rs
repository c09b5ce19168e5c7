//! What workers ask of servers, as bytes.
//!
//! ```text
//! byte 0       what is asked: 0 join, 1 sizes, 2 pull, 3 push, 4 gained
//! bytes 1–2    shard, the lower byte first, as all numbers here
//! bytes 3–4    slice of a partition
//! bytes 5–8    epoch
//! bytes 9–10   round
//! bytes 11–14  attempt
//!
//! join     the words that the shard has, as a row (`wire`) of their places in the partition, a 1 each;
//!          then of each the row of what it has              → nothing
//! sizes                                                     → a byte a word: how long its row is
//! pull     a bit a word, 1 where it is pulled               → the rows of these
//! push     documents (`wire`), words by their places
//!          among the shard's                                → their answer
//! gained   a bit a word as in pull; what each has gained    → nothing
//! ```
//!
//! Rows are of the slice's topics, which count from 0 in it. Nothing is pushed to one of several slices.
//!
//! The bits of a byte are filled from the lowest, those behind the last word are 0. A size of up to 15 bytes is the
//! byte; 16 + 8 (e − 1) + m stands for (8 + m) 2^e, into which sizes are rounded up.

use thiserror::Error;

use crate::route::Route;
use crate::spec::Round;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shard says which words it has, and how many tokens of which topic.
    Join,
    /// How long rows are.
    Sizes,
    /// Rows.
    Pull,
    /// New topics for tokens.
    Push,
    /// What rows have gained is to be added.
    PushDeltas,
}

const KINDS: [Kind; 5] = [Kind::Join, Kind::Sizes, Kind::Pull, Kind::Push, Kind::PushDeltas];

impl Kind {
    /// What a request's first byte says; none where it is that of something else.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        KINDS.get(usize::from(byte)).copied()
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Whose tokens.
    pub shard: u16,
    /// Of which words and topics: a slice of a partition, which has the partition's number if it is the only one.
    pub slice: u16,
    /// When.
    pub round: Round,
}

/// Bytes that are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadError {
    /// They end too early.
    #[error("a request of {bytes} bytes")]
    Truncated {
        /// How many there are.
        bytes: usize,
    },
    /// Of a kind that there is not.
    #[error("a request of kind {byte}")]
    Kind {
        /// Which.
        byte: u8,
    },
    /// Not a bit a word.
    #[error("bits of other words than {words}")]
    Bits {
        /// How many there are.
        words: usize,
    },
}

/// Writes what a request begins with.
pub fn begin(kind: Kind, header: &RequestHeader, to: &mut Vec<u8>) {
    let RequestHeader { shard, slice, round } = *header;
    to.push(KINDS.iter().position(|other| *other == kind).expect("all are listed") as u8);
    to.extend(shard.to_le_bytes());
    to.extend(slice.to_le_bytes());
    to.extend(round.epoch.to_le_bytes());
    to.extend(round.number.to_le_bytes());
    to.extend(round.attempt.to_le_bytes());
}

/// Reads it; what is left is the rest.
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

/// Writes which words are pulled.
pub fn put_routes(routes: &[Route], to: &mut Vec<u8>) {
    to.extend(routes.chunks(8).map(|routes| {
        let bits = routes.iter().enumerate();
        bits.map(|(bit, route)| u8::from(*route == Route::Pull) << bit).sum::<u8>()
    }));
}

/// Reads it, of so many words; what is left is the rest.
///
/// # Errors
/// [`HeadError::Bits`].
pub fn take_routes<'a>(
    words: usize,
    from: &'a [u8],
    routes: &mut Vec<Route>,
) -> Result<&'a [u8], HeadError> {
    routes.clear();
    let wrong = HeadError::Bits { words };
    let (bits, rest) = from.split_at_checked(words.div_ceil(8)).ok_or(wrong)?;
    let bit = |word: usize| bits[word / 8] >> (word % 8) & 1 == 1;
    if (words..bits.len() * 8).any(bit) {
        return Err(wrong);
    }
    routes.extend((0..words).map(|word| if bit(word) { Route::Pull } else { Route::Push }));
    Ok(rest)
}

/// A size as a byte.
pub fn size_byte(size: u32) -> u8 {
    let exponent = (u32::BITS - size.leading_zeros()).saturating_sub(4);
    if exponent == 0 {
        return size as u8;
    }
    let rounded = size.div_ceil(1 << exponent);
    // A size just below a power of two is rounded up to it, the first of the next sixteenth.
    let (leading, exponent) = if rounded == 16 { (8, exponent + 1) } else { (rounded, exponent) };
    (16 + 8 * (exponent - 1) + leading - 8) as u8
}

/// The size that a byte stands for; the largest is above any.
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
        assert_eq!(read(&[5, 0, 0, 0, 0]), Err(HeadError::Kind { byte: 5 }));
        let mut routes = Vec::new();
        assert_eq!(take_routes(9, &[255], &mut routes), Err(HeadError::Bits { words: 9 }));
        assert_eq!(take_routes(7, &[255], &mut routes), Err(HeadError::Bits { words: 7 }));
    }
}
