//! Bytes of a program on their way to become a message.

use std::io;

use super::wire::{HEAD, Head};
use crate::frame::Frame;

/// Of so many times its length a message does not keep the room.
const ROOMY: usize = 4;
/// Nor is less than so many times that worth a copy, in bytes.
const SHORT: usize = 256;

/// Bytes of a request or a reply, as they are written: behind room for the message's head, so that nothing
/// has to be moved when it is sent.
///
/// ```
/// use lda_transport::rpc::MessageBuf;
///
/// let mut draft = MessageBuf::new();
/// draft.extend_from_slice(&[1, 2, 3]);
/// assert_eq!(draft.body(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBuf(Vec<u8>);

impl MessageBuf {
    /// An empty one.
    pub fn new() -> Self {
        Self::in_room(Vec::new())
    }

    /// An empty one that takes up the room of `bytes`.
    pub fn in_room(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(HEAD, 0);
        Self(bytes)
    }

    /// What has been written.
    pub fn body(&self) -> &[u8] {
        &self.0[HEAD..]
    }

    /// What has been written, to be changed.
    pub fn body_mut(&mut self) -> &mut [u8] {
        &mut self.0[HEAD..]
    }

    /// Writes more.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Makes room for more.
    pub fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    /// Makes the body so long, with `value` at its end.
    pub fn resize(&mut self, len: usize, value: u8) {
        self.0.resize(HEAD + len, value);
    }

    /// Bytes with the head.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// As it is sent. Room that is much too long for it is spent.
    pub(super) fn into_frame(mut self, head: &Head, spent: &mut Vec<Frame>) -> Frame {
        head.write(&mut self.0);
        if self.0.capacity() / ROOMY <= self.0.len().max(SHORT) {
            return Frame::from(self.0);
        }
        let fitted = Frame::from(self.0.as_slice().to_vec());
        spent.push(self.into_room());
        fitted
    }

    /// The room without what was written.
    pub(super) fn into_room(mut self) -> Frame {
        self.0.clear();
        Frame::from(self.0)
    }

    /// A copy of a message's body, to be sent under another head.
    pub(super) fn copy_of(frame: &Frame) -> Self {
        Self(frame.to_vec())
    }
}

impl Default for MessageBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&[u8]> for MessageBuf {
    fn from(bytes: &[u8]) -> Self {
        let mut message = Self::new();
        message.extend_from_slice(bytes);
        message
    }
}

impl io::Write for MessageBuf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_no_more_room_than_it_is_worth() {
        let head = Head { from: 1, ..Head::default() };
        for (len, keeps) in [(0, false), (100_000, false), (300_000, true)] {
            let mut message = MessageBuf::in_room(Vec::with_capacity(1 << 20));
            message.resize(len, 1);
            let (place, mut spent) = (message.body().as_ptr(), Vec::new());
            let frame = message.into_frame(&head, &mut spent);
            assert_eq!(&frame[HEAD..], vec![1; len]);
            assert_eq!(
                (frame[HEAD..].as_ptr() == place, spent.len()),
                (keeps, usize::from(!keeps))
            );
            if let Some(room) = spent.pop() {
                let room = room.into_vec().unwrap();
                assert_eq!((room.len(), room.capacity()), (0, 1 << 20));
                assert!(frame.into_vec().unwrap().capacity() < len + 100);
            }
        }
        let mut spent = Vec::new();
        MessageBuf::in_room(Vec::with_capacity(1000)).into_frame(&head, &mut spent);
        assert!(spent.is_empty(), "it is not worth a copy");
    }
}
