//! Room for frames, used again.
//!
//! Frames that come and go by the thousand are not left to the allocator: what is freed there it may give back to the
//! system, and each page of it costs a fault when it comes again, which is more than to fill it. Long rooms are kept
//! apart from short ones, so that each is taken for what it is long enough for. The last that was used is the first to
//! be taken, as it may be near the processor yet.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;

/// Where long begins, in bytes.
const LONG: usize = 16 << 10;
/// Rooms that are kept of either length, at most.
const KEPT: usize = 1 << 10;

/// Vectors, of so many bytes together.
#[derive(Debug)]
pub(crate) struct BufferPool {
    most: usize,
    /// Of the vectors that are kept, and of those that are about to be.
    bytes: AtomicUsize,
    /// Short ones and long ones.
    kept: Mutex<[Vec<Vec<u8>>; 2]>,
}

impl BufferPool {
    /// Keeps at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { most, bytes: AtomicUsize::new(0), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, [Vec<Vec<u8>>; 2]> {
        // Nothing is left half done under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, of: impl FnOnce(&mut [Vec<Vec<u8>>; 2]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        if self.bytes.load(Relaxed) == 0 {
            return None;
        }
        let room = of(&mut self.kept())?;
        self.bytes.fetch_sub(room.capacity(), Relaxed);
        Some(room)
    }

    /// An empty one, for nobody knows how much: a long one, if there is any.
    pub fn take_buffer(&self) -> Vec<u8> {
        let room = self.pop(|[short, long]| long.pop().or_else(|| short.pop()));
        let mut room = room.unwrap_or_default();
        room.clear();
        room
    }

    /// One that has room for so many bytes, whatever is in it.
    #[cfg(any(test, feature = "mpi"))]
    fn room(&self, len: usize) -> Option<Vec<u8>> {
        let room = self.pop(|kept| kept[usize::from(len >= LONG)].pop())?;
        (room.capacity() >= len).then_some(room)
    }

    /// So many bytes, whatever they are.
    #[cfg(feature = "mpi")]
    pub fn filled(&self, len: usize) -> Vec<u8> {
        // What is filled already is not filled again.
        let Some(mut room) = self.room(len) else { return vec![0; len] };
        room.resize(len, 0);
        room
    }

    /// These bytes once more.
    #[cfg(any(test, feature = "mpi"))]
    pub fn copy(&self, bytes: &[u8]) -> Vec<u8> {
        let mut room = self.room(bytes.len()).unwrap_or_default();
        room.clear();
        room.extend_from_slice(bytes);
        room
    }

    /// Whether there is a place for so many bytes.
    pub fn takes(&self, bytes: usize) -> bool {
        self.bytes.load(Relaxed).saturating_add(bytes) <= self.most
    }

    /// Keeps the room of a frame, if nobody else has it and there is not too much.
    pub fn release(&self, frame: Frame) {
        // First looked: to make room of a part of a frame costs a copy.
        if self.takes(frame.len())
            && let Ok(room) = frame.into_vec()
        {
            // One too many is freed.
            let _ = self.keep(room);
        }
    }

    /// Keeps a room, or gives it back where there is too much.
    pub fn keep(&self, room: Vec<u8>) -> Result<(), Vec<u8>> {
        let bytes = room.capacity();
        if bytes == 0 {
            return Err(room);
        }
        let before = self.bytes.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) <= self.most {
            let rooms = &mut self.kept()[usize::from(bytes >= LONG)];
            if rooms.len() < KEPT {
                rooms.push(room);
                return Ok(());
            }
        }
        self.bytes.fetch_sub(bytes, Relaxed);
        Err(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_come_again_up_to_a_bound() {
        let rooms = BufferPool::new(100 << 10);
        let long = vec![7; 80 << 10];
        let place = long.as_ptr();
        rooms.release(Frame::from(long));
        rooms.release(Frame::from(vec![1; 90 << 10])); // One too many.
        rooms.release(Frame::from(vec![1; 1000]));
        assert_eq!(rooms.keep(vec![1; 20 << 10]).unwrap_err().len(), 20 << 10);
        assert_eq!(rooms.copy(&[3; 10]), [3; 10]);
        assert!(rooms.takes(20 << 10) && !rooms.takes(21 << 10));
        let long = rooms.copy(&[8; 70 << 10]);
        assert_eq!((long.as_ptr(), &long[..]), (place, &[8; 70 << 10][..]));
        assert_eq!(rooms.take_buffer().capacity(), 0);
        rooms.keep(long).unwrap();
        let spare = rooms.take_buffer();
        assert_eq!((spare.as_ptr(), spare.len()), (place, 0));
        assert_eq!(rooms.bytes.load(Relaxed), 0);
    }

    #[test]
    fn long_rooms_are_for_long_frames() {
        let rooms = BufferPool::new(1 << 20);
        for len in [100, LONG, 200] {
            rooms.keep(vec![1; len]).unwrap();
        }
        assert_eq!(rooms.copy(&[2; 150]).capacity(), 200, "the last that was kept");
        assert_eq!(rooms.copy(&[2; 150]).len(), 150, "and not in 100");
        assert!(rooms.copy(&[2; LONG + 1]).capacity() > LONG);
        assert_eq!(rooms.take_buffer().capacity(), 0, "those that were too short are freed");
        for len in [100, LONG] {
            rooms.keep(vec![1; len]).unwrap();
        }
        assert_eq!(
            [rooms.take_buffer(), rooms.take_buffer()].map(|room| room.capacity()),
            [LONG, 100]
        );
    }

    #[test]
    fn what_somebody_has_is_not_kept() {
        let rooms = BufferPool::new(100);
        let shared = Frame::from(vec![1; 10]);
        rooms.release(shared.clone());
        assert_eq!(rooms.take_buffer().capacity(), 0);
        assert_eq!(shared[..], [1; 10]);
    }
}
