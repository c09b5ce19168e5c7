//! What travels.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes on their way from one node to another, owned by one of them at a time.
///
/// A frame is a buffer that can be filled, sent, read and used again: its room stays when it is cleared.
/// Where frames are many, take them from [`Transport::spare`](crate::Transport::spare) and give them back
/// by [`Transport::release`](crate::Transport::release), so that none is allocated anew.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// One without bytes or room.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The bytes as a vector, without a copy.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl From<Vec<u8>> for Frame {
    /// Without a copy.
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Frame {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
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
        let mut frame = Frame::from(vec![1, 2]);
        frame.push(3);
        assert_eq!((&frame[..], frame.len()), (&[1, 2, 3][..], 3));
        assert_eq!(format!("{frame:?}"), "Frame(3 bytes: \\x01\\x02\\x03)");
        assert!(format!("{:?}", Frame::from(vec![b'x'; 99])).ends_with("xx…)"));
        assert_eq!(frame.into_vec(), [1, 2, 3]);
    }
}
