//! What comes of one peer, until it is a frame.

use super::wire::{CLOSE, FRAME, GRANT, HALT, NEXT, START, Small};
use crate::buffer_pool::BufferPool;

#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// A long frame, and how many of its bytes have come.
    begun: Option<(Vec<u8>, usize)>,
    /// Whether something has come that cannot: then nothing more is taken of it.
    pub lost: bool,
    /// Nothing comes after that.
    pub closed: bool,
}

/// What a message has led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Come {
    Frame(Vec<u8>),
    Small(Small),
    /// More has to come.
    Nothing,
}

impl Incoming {
    /// Takes a message of this tag and so many bytes, which `receive` writes where they belong. It is called
    /// once, whatever the message is.
    ///
    /// # Errors
    /// Words that say why no such message can come now.
    pub fn take(
        &mut self,
        tag: i32,
        len: usize,
        longest: usize,
        rooms: &BufferPool,
        receive: impl FnOnce(&mut [u8]),
    ) -> Result<Come, String> {
        if tag == NEXT
            && let Some((frame, come)) = &mut self.begun
            && len <= frame.len() - *come
        {
            receive(&mut frame[*come..*come + len]);
            *come += len;
            if *come < frame.len() {
                return Ok(Come::Nothing);
            }
            let frame = self.begun.take().map(|begun| begun.0);
            return Ok(Come::Frame(frame.unwrap_or_default()));
        }
        let mut bytes = rooms.filled(len);
        receive(&mut bytes);
        match tag {
            FRAME if self.begun.is_none() && len <= longest => Ok(Come::Frame(bytes)),
            START | GRANT | HALT | CLOSE => match Small::decode(tag, &bytes) {
                Some(Small::Start { len }) if self.begun.is_none() && len <= longest as u64 => {
                    self.begun = Some((rooms.filled(len as usize), 0));
                    Ok(Come::Nothing)
                }
                Some(small @ (Small::Grant(_) | Small::Halt { .. })) => Ok(Come::Small(small)),
                Some(Small::Close) => {
                    self.begun = None;
                    self.closed = true;
                    Ok(Come::Small(Small::Close))
                }
                small => Err(format!("{small:?}, which cannot come now")),
            },
            _ => Err(format!("a message of tag {tag} and {len} bytes, which cannot come now")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(incoming: &mut Incoming, tag: i32, bytes: &[u8]) -> Result<Come, String> {
        let rooms = BufferPool::new(0);
        let mut received = false;
        let receive = |room: &mut [u8]| {
            room.copy_from_slice(bytes);
            received = true;
        };
        let come = incoming.take(tag, bytes.len(), 100, &rooms, receive);
        assert!(received, "what MPI has matched has to be received");
        come
    }

    #[test]
    fn pieces_become_frames() {
        let mut incoming = Incoming::default();
        assert_eq!(take(&mut incoming, FRAME, &[]), Ok(Come::Frame(vec![])));
        let (tag, start) = Small::Start { len: 5 }.encode();
        assert_eq!(take(&mut incoming, tag, &start), Ok(Come::Nothing));
        assert_eq!(take(&mut incoming, NEXT, &[1, 2]), Ok(Come::Nothing));
        let (tag, halt) =
            Small::Halt { begun: 1, why: super::super::wire::HaltReason::Closed }.encode();
        assert!(matches!(take(&mut incoming, tag, &halt), Ok(Come::Small(Small::Halt { .. }))));
        assert_eq!(take(&mut incoming, NEXT, &[3, 4, 5]), Ok(Come::Frame(vec![1, 2, 3, 4, 5])));
        assert_eq!(take(&mut incoming, CLOSE, &[]), Ok(Come::Small(Small::Close)));
        assert!(incoming.closed);
    }

    #[test]
    fn what_cannot_come_is_refused() {
        let (start, long) =
            (Small::Start { len: 5 }.encode().1, Small::Start { len: 101 }.encode().1);
        let mut incoming = Incoming::default();
        assert!(take(&mut incoming, NEXT, &[1]).is_err());
        assert!(take(&mut incoming, FRAME, &[1; 101]).is_err());
        assert!(take(&mut incoming, START, &long).is_err());
        assert!(take(&mut incoming, GRANT, &[1]).is_err());
        assert!(take(&mut incoming, 99, &[]).is_err());
        take(&mut incoming, START, &start).unwrap();
        assert!(take(&mut incoming, START, &start).is_err());
        assert!(take(&mut incoming, FRAME, &[]).is_err());
        assert!(take(&mut incoming, NEXT, &[1; 6]).is_err());
    }
}
