//! [`Frame`], the unit that transports send.

use std::fmt;
use std::ops::{Deref, Range};

use bytes::Bytes;

/// Bytes that are sent from one node to another. They are immutable and clones share them, so a
/// sender can keep a frame to send it again, and a transport can pass it on, without a copy.
///
/// A program with many frames writes them into buffers of
/// [`Transport::take_buffer`](crate::Transport::take_buffer) and returns them with
/// [`Transport::release`](crate::Transport::release), so that their memory is reused.
///
/// ```
/// use lda_transport::Frame;
///
/// let frame = Frame::from(vec![1, 2, 3]);
/// let kept = frame.clone();
/// assert_eq!(frame.as_ptr(), kept.as_ptr());
/// assert_eq!(frame.into_vec().unwrap_err().len(), 3); // it is shared
/// assert_eq!(kept.into_vec().unwrap(), [1, 2, 3]); // the vector that it was made from
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// Creates an empty frame.
    pub const fn new() -> Self {
        Self(Bytes::new())
    }

    /// Returns the bytes from `start` on, shared with this frame.
    ///
    /// # Panics
    /// If `start` is beyond the end.
    pub fn slice_from(&self, start: usize) -> Self {
        Self(self.0.slice(start..))
    }

    /// Returns the bytes of a range, shared with this frame.
    ///
    /// # Panics
    /// If the range exceeds the frame.
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// Returns the bytes as a vector, without a copy.
    ///
    /// # Errors
    /// The frame, if its bytes are shared.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        // Converting shared bytes would copy them.
        self.0.try_into_mut().map(Vec::from).map_err(Self)
    }
}

impl From<Vec<u8>> for Frame {
    /// Takes the bytes without a copy.
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
    fn a_frame_derefs_to_its_bytes() {
        let frame = Frame::from(vec![1, 2, 3]);
        assert_eq!((&frame[..], frame.len()), (&[1, 2, 3][..], 3));
        assert_eq!(format!("{frame:?}"), "Frame(3 bytes: \\x01\\x02\\x03)");
        assert!(format!("{:?}", Frame::from(vec![b'x'; 99])).ends_with("xx…)"));
    }

    #[test]
    fn into_vec_returns_the_vector_of_an_unshared_frame() {
        let mut bytes = Vec::with_capacity(1000);
        bytes.extend([1, 2, 3]);
        let address = bytes.as_ptr();
        let frame = Frame::from(bytes);
        let part = frame.slice_from(1);
        assert_eq!((&part[..], part.as_ptr()), (&[2, 3][..], frame[1..].as_ptr()));
        let frame = frame.into_vec().unwrap_err();
        drop(part);
        let bytes = frame.into_vec().unwrap();
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (address, 1000));
    }
}
