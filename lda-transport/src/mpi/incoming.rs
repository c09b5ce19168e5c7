//! Assembles the messages of one peer to frames.

use super::wire::{CLOSE, FRAME, GRANT, NEXT, START, Small};
use crate::buffer_pool::BufferPool;

/// Receive state of one peer.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The long frame being received, and how many of its bytes have arrived.
    partial: Option<(Vec<u8>, usize)>,
    /// Whether the peer has violated the protocol. Its further frames are dropped.
    pub lost: bool,
    /// Whether the peer has sent its last message.
    pub closed: bool,
}

/// Result of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Frame(Vec<u8>),
    Small(Small),
    /// The frame is not complete.
    Nothing,
}

impl Incoming {
    /// Takes a message with this tag and length. `receive` writes its bytes; it is called exactly
    /// once, even for an invalid message, as a message that MPI has matched must be received.
    ///
    /// # Errors
    /// Description of a message that violates the protocol.
    pub fn take(
        &mut self,
        tag: i32,
        len: usize,
        longest: usize,
        buffers: &BufferPool,
        receive: impl FnOnce(&mut [u8]),
    ) -> Result<Received, String> {
        if tag == NEXT
            && let Some((frame, filled)) = &mut self.partial
            && len <= frame.len() - *filled
        {
            receive(&mut frame[*filled..*filled + len]);
            *filled += len;
            if *filled < frame.len() {
                return Ok(Received::Nothing);
            }
            let frame = self.partial.take().map(|partial| partial.0);
            return Ok(Received::Frame(frame.unwrap_or_default()));
        }
        let mut bytes = buffers.filled(len);
        receive(&mut bytes);
        match tag {
            FRAME if self.partial.is_none() && len <= longest => Ok(Received::Frame(bytes)),
            START | GRANT | CLOSE => match Small::decode(tag, &bytes) {
                Some(Small::Start { len }) if self.partial.is_none() && len <= longest as u64 => {
                    self.partial = Some((buffers.filled(len as usize), 0));
                    Ok(Received::Nothing)
                }
                Some(small @ Small::Grant(_)) => Ok(Received::Small(small)),
                Some(Small::Close) => {
                    self.partial = None;
                    self.closed = true;
                    Ok(Received::Small(Small::Close))
                }
                small => Err(format!("protocol violation: unexpected {small:?}")),
            },
            _ => Err(format!(
                "protocol violation: unexpected message with tag {tag} and {len} bytes"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::Credit;
    use super::*;

    fn take(incoming: &mut Incoming, tag: i32, bytes: &[u8]) -> Result<Received, String> {
        let buffers = BufferPool::new(0);
        let mut received = false;
        let receive = |buffer: &mut [u8]| {
            buffer.copy_from_slice(bytes);
            received = true;
        };
        let result = incoming.take(tag, bytes.len(), 100, &buffers, receive);
        assert!(received, "a matched message must be received");
        result
    }

    #[test]
    fn pieces_are_assembled() {
        let mut incoming = Incoming::default();
        assert_eq!(take(&mut incoming, FRAME, &[]), Ok(Received::Frame(vec![])));
        let (tag, start) = Small::Start { len: 5 }.encode();
        assert_eq!(take(&mut incoming, tag, &start), Ok(Received::Nothing));
        assert_eq!(take(&mut incoming, NEXT, &[1, 2]), Ok(Received::Nothing));
        let (tag, grant) = Small::Grant(Credit::default()).encode();
        assert!(matches!(take(&mut incoming, tag, &grant), Ok(Received::Small(Small::Grant(_)))));
        assert_eq!(take(&mut incoming, NEXT, &[3, 4, 5]), Ok(Received::Frame(vec![1, 2, 3, 4, 5])));
        assert_eq!(take(&mut incoming, CLOSE, &[]), Ok(Received::Small(Small::Close)));
        assert!(incoming.closed);
    }

    #[test]
    fn unexpected_messages_are_rejected() {
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
