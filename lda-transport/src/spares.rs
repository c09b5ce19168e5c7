//! Room that has been let go of, for frames to come.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;

/// Vectors that are kept, at most.
const ROOMS: usize = 1 << 10;

/// Vectors, of so many bytes together.
#[derive(Debug)]
pub(crate) struct Spares {
    bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rooms: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    pub fn new(bytes: usize) -> Self {
        Self { bytes, kept: Mutex::default() }
    }

    /// Keeps the room of a frame, if nobody else has it and there is not too much.
    pub fn release(&self, frame: Frame) {
        // First looked: to make room of a frame that has come costs a copy.
        if self.has_place(&self.lock(), frame.len())
            && let Ok(room) = frame.into_vec()
        {
            // One too many is freed.
            let _ = self.put(room);
        }
    }

    /// Keeps a room, or gives it back where there is too much.
    pub fn put(&self, mut room: Vec<u8>) -> Result<(), Vec<u8>> {
        room.clear();
        let mut kept = self.lock();
        if room.capacity() == 0 || !self.has_place(&kept, room.capacity()) {
            return Err(room);
        }
        kept.bytes += room.capacity();
        kept.rooms.push(room);
        Ok(())
    }

    /// Whether there is a place for any.
    pub fn takes_more(&self) -> bool {
        self.has_place(&self.lock(), 1)
    }

    fn has_place(&self, kept: &Kept, bytes: usize) -> bool {
        kept.rooms.len() < ROOMS && kept.bytes.saturating_add(bytes) <= self.bytes
    }

    /// The last that was kept, as what is likely to be in a cache still.
    pub fn take(&self) -> Vec<u8> {
        let mut kept = self.lock();
        let room = kept.rooms.pop().unwrap_or_default();
        kept.bytes -= room.capacity();
        room
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing is left half done under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_up_to_a_bound() {
        let spares = Spares::new(100);
        let frame = |len| Frame::from(vec![1; len]);
        let shared = frame(10);
        spares.release(shared.clone());
        assert_eq!(spares.take().capacity(), 0, "somebody has it");
        for len in [0, 60, 41, 40] {
            spares.release(frame(len));
        }
        let rooms = [(); 3].map(|()| spares.take());
        assert_eq!(rooms.each_ref().map(Vec::capacity), [40, 60, 0]);
        assert!(rooms.iter().all(Vec::is_empty));
        assert_eq!(spares.put(vec![1; 101]).unwrap_err().capacity(), 101);
        assert!(spares.takes_more() && spares.put(vec![1; 100]).is_ok() && !spares.takes_more());
        assert_eq!(spares.take().capacity(), 100);
    }
}
