//! What travels.

use std::fmt;
use std::ops::{Deref, Range};

use bytes::Bytes;

/// Bytes on their way from one node to another. They do not change any more, and a clone shares them: who
/// sends a frame can keep it, to send it again, and a transport can hand it on, and neither copies.
///
/// Where frames are many, write them into what [`Transport::take_buffer`](crate::Transport::take_buffer) gives and give
/// them back by [`Transport::release`](crate::Transport::release), so that none is allocated anew.
///
/// ```
/// use lda_transport::Frame;
///
/// let frame = Frame::from(vec![1, 2, 3]);
/// let kept = frame.clone();
/// assert_eq!(frame.as_ptr(), kept.as_ptr());
/// assert_eq!(frame.into_vec().unwrap_err().len(), 3); // somebody else has it too
/// assert_eq!(kept.into_vec().unwrap(), [1, 2, 3]); // the room it was written in
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// One without bytes.
    pub const fn new() -> Self {
        Self(Bytes::new())
    }

    /// The bytes from `start` on, shared with this frame.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn slice_from(&self, start: usize) -> Self {
        Self(self.0.slice(start..))
    }

    /// Some of the bytes, shared with this frame.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// The room of the bytes, without a copy, where nobody shares them.
    ///
    /// # Errors
    /// The frame, where somebody does.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        // What is not unique would be copied.
        self.0.try_into_mut().map(Vec::from).map_err(Self)
    }
}

impl From<Vec<u8>> for Frame {
    /// Without a copy.
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Frame> for Bytes {
    fn from(frame: Frame) -> Self {
        frame.0
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        let more = if self.0.len() > SHOWN { "…" } else { "" };
        write!(f, "Frame({} bytes: {}{more})", self.0.len(), shown.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_bytes() {
        let frame = Frame::from(vec![1, 2, 3]);
        assert_eq!((&frame[..], frame.len()), (&[1, 2, 3][..], 3));
        assert_eq!(format!("{frame:?}"), "Frame(3 bytes: \\x01\\x02\\x03)");
        assert!(format!("{:?}", Frame::from(vec![b'x'; 99])).ends_with("xx…)"));
    }

    #[test]
    fn room_comes_back_when_nobody_shares_it() {
        let mut room = Vec::with_capacity(1000);
        room.extend([1, 2, 3]);
        let place = room.as_ptr();
        let frame = Frame::from(room);
        let part = frame.slice_from(1);
        assert_eq!((&part[..], part.as_ptr()), (&[2, 3][..], frame[1..].as_ptr()));
        let frame = frame.into_vec().unwrap_err();
        drop(part);
        let room = frame.into_vec().unwrap();
        assert_eq!((room.as_ptr(), room.capacity()), (place, 1000));
    }
}
