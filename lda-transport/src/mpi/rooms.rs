//! Room for frames, used again.
//!
//! MPI writes into bytes that are there, so that room has to be filled before; what was used is, and is taken
//! as it is. Long rooms are kept apart, lest short frames take their bytes from them. The last that was used is the
//! first to be taken, as it may be near the processor yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;

/// Where long begins, in bytes.
const LONG: usize = 64 << 10;
/// Rooms that are kept of either length.
const KEPT: usize = 256;

#[derive(Debug)]
pub(super) struct Rooms {
    kept: Mutex<Kept>,
    /// Bytes that are kept, at most.
    most: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// Short ones and long ones.
    rooms: [Vec<Vec<u8>>; 2],
    bytes: usize,
}

impl Kept {
    fn pop(&mut self, long: bool) -> Option<Vec<u8>> {
        let room = self.rooms[usize::from(long)].pop()?;
        self.bytes -= room.capacity();
        Some(room)
    }
}

impl Rooms {
    /// Keeps at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing is left half done under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes, whatever they are.
    pub fn take(&self, len: usize) -> Vec<u8> {
        let room = self.kept().pop(len >= LONG);
        match room {
            Some(mut room) if room.capacity() >= len => {
                room.resize(len, 0);
                room
            }
            _ => vec![0; len],
        }
    }

    /// These bytes once more.
    pub fn copy(&self, bytes: &[u8]) -> Vec<u8> {
        let mut room = self.take(bytes.len());
        room.copy_from_slice(bytes);
        room
    }

    /// An empty one.
    pub fn spare(&self) -> Vec<u8> {
        let mut kept = self.kept();
        let mut room = kept.pop(false).or_else(|| kept.pop(true)).unwrap_or_default();
        room.clear();
        room
    }

    /// Keeps the room of a frame that nobody else has.
    pub fn give(&self, frame: Frame) {
        if let Ok(room) = frame.into_vec() {
            self.keep(room);
        }
    }

    /// Keeps a room, unless there are enough.
    pub fn keep(&self, room: Vec<u8>) {
        let mut kept = self.kept();
        let (bytes, long) = (room.capacity(), usize::from(room.capacity() >= LONG));
        if bytes > 0 && kept.bytes + bytes <= self.most && kept.rooms[long].len() < KEPT {
            kept.bytes += bytes;
            kept.rooms[long].push(room);
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
        let long = rooms.copy(&[7; 70 << 10]);
        assert_eq!((long.as_ptr(), &long[..]), (place, &[7; 70 << 10][..]));
        assert_eq!(rooms.kept().bytes, 0);
        assert_eq!(rooms.spare().capacity(), 0);
        rooms.keep(long);
        let spare = rooms.spare();
        assert_eq!((spare.as_ptr(), spare.len()), (place, 0));
    }
}
