//! Buffer in which a program writes a message.

use std::io;

use super::wire::{HEAD, Head};
use crate::frame::Frame;

/// Ratio of capacity to length above which a message is copied to a buffer of its own.
const MAX_SLACK: usize = 4;
/// Shorter messages count as this long, in bytes: a copy is not worthwhile for small buffers.
const SHORT: usize = 256;

/// Body of a request or a reply, behind space for the header of the message, so that sending does
/// not move it.
///
/// ```
/// use lda_transport::rpc::MessageBuf;
///
/// let mut message = MessageBuf::new();
/// message.extend_from_slice(&[1, 2, 3]);
/// assert_eq!(message.body(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBuf(Vec<u8>);

impl MessageBuf {
    /// Creates an empty message.
    pub fn new() -> Self {
        Self::in_buffer(Vec::new())
    }

    /// Creates an empty message in the memory of `buffer`, for example one that
    /// [`take_buffer`](crate::Transport::take_buffer) returned.
    pub fn in_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(HEAD, 0);
        Self(buffer)
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.0[HEAD..]
    }

    /// Returns the body, mutable.
    pub fn body_mut(&mut self) -> &mut [u8] {
        &mut self.0[HEAD..]
    }

    /// Appends bytes to the body.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Reserves memory for `additional` bytes.
    pub fn reserve(&mut self, additional: usize) {
        self.0.reserve(additional);
    }

    /// Resizes the body to `len` bytes; new ones are `value`.
    pub fn resize(&mut self, len: usize, value: u8) {
        self.0.resize(HEAD + len, value);
    }

    /// Returns the length with the header.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the frame to send. If the buffer is much longer than the message, the frame gets one
    /// of its own, and the long one is added to `spent`.
    pub(super) fn into_frame(mut self, head: &Head, spent: &mut Vec<Frame>) -> Frame {
        head.write(&mut self.0);
        if self.0.capacity() / MAX_SLACK <= self.0.len().max(SHORT) {
            return Frame::from(self.0);
        }
        let fitted = Frame::from(self.0.as_slice().to_vec());
        spent.push(self.into_buffer());
        fitted
    }

    /// Returns the buffer, empty.
    pub(super) fn into_buffer(mut self) -> Frame {
        self.0.clear();
        Frame::from(self.0)
    }

    /// Copies a message, to send its body with another header.
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
    fn a_short_message_leaves_a_long_buffer() {
        let head = Head { from: 1, ..Head::default() };
        for (len, keeps) in [(0, false), (100_000, false), (300_000, true)] {
            let mut message = MessageBuf::in_buffer(Vec::with_capacity(1 << 20));
            message.resize(len, 1);
            let (address, mut spent) = (message.body().as_ptr(), Vec::new());
            let frame = message.into_frame(&head, &mut spent);
            assert_eq!(&frame[HEAD..], vec![1; len]);
            assert_eq!(
                (frame[HEAD..].as_ptr() == address, spent.len()),
                (keeps, usize::from(!keeps))
            );
            if let Some(buffer) = spent.pop() {
                let buffer = buffer.into_vec().unwrap();
                assert_eq!((buffer.len(), buffer.capacity()), (0, 1 << 20));
                assert!(frame.into_vec().unwrap().capacity() < len + 100);
            }
        }
        let mut spent = Vec::new();
        MessageBuf::in_buffer(Vec::with_capacity(1000)).into_frame(&head, &mut spent);
        assert!(spent.is_empty(), "the buffer is too short for a copy");
    }
}
