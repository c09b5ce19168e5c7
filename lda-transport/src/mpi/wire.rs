//! Messages between two ranks. The MPI tag is the kind of a message, so that a frame needs no
//! header.
//!
//! | tag | message | bytes |
//! |---|---|---|
//! | 0 | a frame | the frame |
//! | 1 | start of a long frame | its length |
//! | 2 | the next piece of it | at most [`PIECE_LEN`] |
//! | 3 | a grant: credit for what the program has taken | frames, bytes |
//! | 4 | the last message of a rank that has closed | none |
//!
//! Integers are little-endian `u64`. Messages from one rank to another arrive in the order in which
//! they were sent.

use super::link::Credit;

/// Maximum bytes of a message. Messages are received one after the other, so a long frame of one
/// peer delays those of others for at most the time of one piece.
pub(super) const PIECE_LEN: usize = 1 << 20;

pub(super) const FRAME: i32 = 0;
pub(super) const START: i32 = 1;
pub(super) const NEXT: i32 = 2;
pub(super) const GRANT: i32 = 3;
pub(super) const CLOSE: i32 = 4;

/// A control message: one without bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Small {
    Start { len: u64 },
    Grant(Credit),
    Close,
}

impl Small {
    pub fn encode(self) -> (i32, Vec<u8>) {
        let (tag, numbers) = match self {
            Self::Start { len } => (START, vec![len]),
            Self::Grant(Credit { frames, bytes }) => (GRANT, vec![frames as u64, bytes as u64]),
            Self::Close => (CLOSE, Vec::new()),
        };
        (tag, numbers.into_iter().flat_map(u64::to_le_bytes).collect())
    }

    /// Decodes a control message. `None` if it is malformed.
    pub fn decode(tag: i32, bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let numbers: Vec<u64> = numbers.iter().map(|&number| u64::from_le_bytes(number)).collect();
        match (tag, &numbers[..], rest) {
            (START, &[len], []) => Some(Self::Start { len }),
            (GRANT, &[frames, bytes], []) => {
                let (frames, bytes) = (usize::try_from(frames).ok()?, usize::try_from(bytes).ok()?);
                Some(Self::Grant(Credit { frames, bytes }))
            }
            (CLOSE, [], []) => Some(Self::Close),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_round_trip() {
        for small in [
            Small::Start { len: 1 << 40 },
            Small::Grant(Credit { frames: 3, bytes: 1 << 33 }),
            Small::Close,
        ] {
            let (tag, bytes) = small.encode();
            assert_eq!(Small::decode(tag, &bytes), Some(small));
            let mut more = bytes.clone();
            more.push(0);
            assert_eq!(Small::decode(tag, &more), None);
            assert_eq!(Small::decode(FRAME, &bytes), None);
        }
        assert_eq!(Small::decode(CLOSE + 1, &[9; 16]), None);
    }
}
