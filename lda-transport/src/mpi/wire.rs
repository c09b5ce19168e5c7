//! What the messages between two ranks are: their tags say it, so that a frame is a message as it is.
//!
//! | tag | message | bytes |
//! |---|---|---|
//! | 0 | a frame | all of it |
//! | 1 | a long frame begins | its length |
//! | 2 | its next piece | at most [`PIECE`] |
//! | 3 | a grant: what the program has taken | frames, bytes |
//! | 4 | no more operations of MPI's are begun | how many were, and why |
//! | 5 | the last message of a rank that has closed | none |
//!
//! Numbers are `u64`, in little-endian order. Messages of one rank to another arrive in the order in which they
//! were sent.

use super::link::Taken;

/// Bytes of a message, at most. While one is received, no other is: so a long frame of one peer does not hold up
/// those of others for longer than so much takes.
pub(super) const PIECE: usize = 1 << 20;

pub(super) const FRAME: i32 = 0;
pub(super) const START: i32 = 1;
pub(super) const NEXT: i32 = 2;
pub(super) const GRANT: i32 = 3;
pub(super) const HALT: i32 = 4;
pub(super) const CLOSE: i32 = 5;

/// A message that is not of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Small {
    Start { len: u64 },
    Grant(Taken),
    Halt { begun: u64, why: Halt },
    Close,
}

/// Why no more operations of MPI's are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    Closed,
    Deadline,
    Mismatch,
}

impl Halt {
    pub fn words(self) -> &'static str {
        match self {
            Self::Closed => "it has closed",
            Self::Deadline => "one has not ended by its deadline there",
            Self::Mismatch => "nodes have not done the same in one",
        }
    }
}

impl Small {
    pub fn encode(self) -> (i32, Vec<u8>) {
        let (tag, numbers) = match self {
            Self::Start { len } => (START, vec![len]),
            Self::Grant(Taken { frames, bytes }) => (GRANT, vec![frames as u64, bytes as u64]),
            Self::Halt { begun, why } => (HALT, vec![begun, why as u64]),
            Self::Close => (CLOSE, Vec::new()),
        };
        (tag, numbers.into_iter().flat_map(u64::to_le_bytes).collect())
    }

    /// None of what is no such message.
    pub fn decode(tag: i32, bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let numbers: Vec<u64> = numbers.iter().map(|&number| u64::from_le_bytes(number)).collect();
        match (tag, &numbers[..], rest) {
            (START, &[len], []) => Some(Self::Start { len }),
            (GRANT, &[frames, bytes], []) => {
                let (frames, bytes) = (usize::try_from(frames).ok()?, usize::try_from(bytes).ok()?);
                Some(Self::Grant(Taken { frames, bytes }))
            }
            (HALT, &[begun, why], []) => {
                let all = [Halt::Closed, Halt::Deadline, Halt::Mismatch];
                let why = all.into_iter().find(|halt| *halt as u64 == why)?;
                Some(Self::Halt { begun, why })
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
    fn small_messages_come_back() {
        for small in [
            Small::Start { len: 1 << 40 },
            Small::Grant(Taken { frames: 3, bytes: 1 << 33 }),
            Small::Halt { begun: 7, why: Halt::Closed },
            Small::Halt { begun: 0, why: Halt::Mismatch },
            Small::Close,
        ] {
            let (tag, bytes) = small.encode();
            assert_eq!(Small::decode(tag, &bytes), Some(small));
            let mut more = bytes.clone();
            more.push(0);
            assert_eq!(Small::decode(tag, &more), None);
            assert_eq!(Small::decode(FRAME, &bytes), None);
        }
        assert_eq!(Small::decode(HALT, &[9; 16]), None);
    }
}
