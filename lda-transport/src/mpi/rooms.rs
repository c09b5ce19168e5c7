//! Room for frames, used again.
//!
//! MPI writes into bytes that are there, so that room has to be filled before; what was used is, and is taken
//! as it is. Long rooms are kept apart, lest short frames take their bytes from them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;

use crate::frame::Frame;

/// Where long begins, in bytes.
const LONG: usize = 64 << 10;
/// Rooms that are kept of either length.
const KEPT: usize = 256;

#[derive(Debug)]
pub(super) struct Rooms {
    short: ArrayQueue<Vec<u8>>,
    long: ArrayQueue<Vec<u8>>,
    /// Of what is kept, and at most.
    bytes: AtomicUsize,
    most: usize,
}

impl Rooms {
    /// Keeps at most so many bytes.
    pub fn new(most: usize) -> Self {
        let (short, long) = (ArrayQueue::new(KEPT), ArrayQueue::new(KEPT));
        Self { short, long, bytes: AtomicUsize::new(0), most }
    }

    fn pop(&self, from: &ArrayQueue<Vec<u8>>) -> Option<Vec<u8>> {
        let room = from.pop()?;
        self.bytes.fetch_sub(room.capacity(), Relaxed);
        Some(room)
    }

    /// So many bytes, whatever they are.
    pub fn take(&self, len: usize) -> Vec<u8> {
        let from = if len < LONG { &self.short } else { &self.long };
        match self.pop(from) {
            Some(mut room) if room.capacity() >= len => {
                room.resize(len, 0);
                room
            }
            _ => vec![0; len],
        }
    }

    /// An empty one.
    pub fn spare(&self) -> Vec<u8> {
        let room = self.pop(&self.short).or_else(|| self.pop(&self.long));
        let mut room = room.unwrap_or_default();
        room.clear();
        room
    }

    /// Keeps the room of a frame that nobody else has.
    pub fn give(&self, frame: Frame) {
        let Ok(room) = frame.into_vec() else { return };
        let bytes = room.capacity();
        if bytes == 0 || self.bytes.load(Relaxed) + bytes > self.most {
            return;
        }
        self.bytes.fetch_add(bytes, Relaxed);
        let to = if bytes < LONG { &self.short } else { &self.long };
        if to.push(room).is_err() {
            self.bytes.fetch_sub(bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_come_again_up_to_a_bound() {
        let rooms = Rooms::new(100 << 10);
        let long = rooms.take(80 << 10);
        let place = long.as_ptr();
        rooms.give(Frame::from(long));
        rooms.give(Frame::from(vec![1; 90 << 10])); // One too many.
        rooms.give(Frame::from(vec![1; 1000]));
        assert_eq!(rooms.take(10), [1; 10]);
        let long = rooms.take(70 << 10);
        assert_eq!((long.as_ptr(), long.len()), (place, 70 << 10));
        assert_eq!(rooms.bytes.load(Relaxed), 0);
        assert_eq!(rooms.spare().capacity(), 0);
        rooms.give(Frame::from(long));
        let spare = rooms.spare();
        assert_eq!((spare.as_ptr(), spare.len()), (place, 0));
    }
}
