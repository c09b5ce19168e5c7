//! Pool of buffers for frames.
//!
//! Frames that come and go by the thousand should not go through the allocator: it may return freed
//! memory to the system, and each page of it then costs a fault, which takes longer than filling
//! the page. Long buffers are kept apart from short ones, so that a request gets one that is long
//! enough. The last one that was released is reused first, as it may still be in the cache of the
//! processor.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;

/// Capacity from which a buffer counts as long, in bytes.
const LONG: usize = 16 << 10;
/// Maximum number of short buffers, and of long ones.
const MAX_BUFFERS: usize = 1 << 10;

/// Buffers for reuse, bounded by their bytes.
#[derive(Debug)]
pub(crate) struct BufferPool {
    max_bytes: usize,
    /// Bytes of the buffers in the pool and of those that are about to be added.
    bytes: AtomicUsize,
    /// Short buffers and long ones.
    buffers: Mutex<[Vec<Vec<u8>>; 2]>,
}

impl BufferPool {
    /// Creates a pool of at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, bytes: AtomicUsize::new(0), buffers: Mutex::default() }
    }

    fn buffers(&self) -> MutexGuard<'_, [Vec<Vec<u8>>; 2]> {
        // A poisoned lock is usable: no panic can leave the vectors inconsistent.
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, of: impl FnOnce(&mut [Vec<Vec<u8>>; 2]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        if self.bytes.load(Relaxed) == 0 {
            return None;
        }
        let buffer = of(&mut self.buffers())?;
        self.bytes.fetch_sub(buffer.capacity(), Relaxed);
        Some(buffer)
    }

    /// Returns an empty buffer, a long one if there is any: the length that it is for is unknown.
    pub fn take_buffer(&self) -> Vec<u8> {
        let buffer = self.pop(|[short, long]| long.pop().or_else(|| short.pop()));
        let mut buffer = buffer.unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Returns a buffer with a capacity of at least `len`, if there is one. Its content is
    /// unspecified.
    #[cfg(any(test, feature = "mpi"))]
    fn with_capacity(&self, len: usize) -> Option<Vec<u8>> {
        let buffer = self.pop(|buffers| buffers[usize::from(len >= LONG)].pop())?;
        (buffer.capacity() >= len).then_some(buffer)
    }

    /// Returns a buffer of this length. Its content is unspecified.
    #[cfg(any(test, feature = "mpi"))]
    pub fn filled(&self, len: usize) -> Vec<u8> {
        // PERF: bytes that the buffer has already are not written again.
        let Some(mut buffer) = self.with_capacity(len) else { return vec![0; len] };
        buffer.resize(len, 0);
        buffer
    }

    fn has_space(&self, bytes: usize) -> bool {
        self.bytes.load(Relaxed).saturating_add(bytes) <= self.max_bytes
    }

    /// Adds the buffer of a frame, if its bytes are not shared and the pool has space.
    pub fn release(&self, frame: Frame) {
        // PERF: checked first, since taking the buffer of a part of a frame copies it.
        if self.has_space(frame.len())
            && let Ok(buffer) = frame.into_vec()
        {
            self.add(buffer);
        }
    }

    fn add(&self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes == 0 {
            return;
        }
        let before = self.bytes.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) <= self.max_bytes {
            let buffers = &mut self.buffers()[usize::from(bytes >= LONG)];
            if buffers.len() < MAX_BUFFERS {
                buffers.push(buffer);
                return;
            }
        }
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_up_to_a_bound() {
        let pool = BufferPool::new(100 << 10);
        let long = vec![7; 80 << 10];
        let address = long.as_ptr();
        pool.release(Frame::from(long));
        pool.release(Frame::from(vec![1; 90 << 10])); // Exceeds the bound.
        pool.release(Frame::from(vec![1; 1000]));
        pool.add(vec![1; 20 << 10]); // Exceeds it too.
        assert_eq!(pool.filled(10), [1; 10]);
        assert!(pool.has_space(20 << 10) && !pool.has_space(21 << 10));
        let long = pool.filled(70 << 10);
        assert_eq!((long.as_ptr(), long.len()), (address, 70 << 10));
        assert_eq!(pool.take_buffer().capacity(), 0);
        pool.add(long);
        let buffer = pool.take_buffer();
        assert_eq!((buffer.as_ptr(), buffer.len()), (address, 0));
        assert_eq!(pool.bytes.load(Relaxed), 0);
    }

    #[test]
    fn long_buffers_are_used_for_long_frames() {
        let pool = BufferPool::new(1 << 20);
        for len in [100, LONG, 200] {
            pool.add(vec![1; len]);
        }
        assert_eq!(pool.filled(150).capacity(), 200, "the last one that was added");
        assert_eq!(pool.filled(150).len(), 150, "not the one of 100 bytes");
        assert!(pool.filled(LONG + 1).capacity() > LONG);
        assert_eq!(pool.take_buffer().capacity(), 0, "buffers that are too short are freed");
        for len in [100, LONG] {
            pool.add(vec![1; len]);
        }
        assert_eq!(
            [pool.take_buffer(), pool.take_buffer()].map(|buffer| buffer.capacity()),
            [LONG, 100]
        );
    }

    #[test]
    fn shared_frames_are_not_reused() {
        let pool = BufferPool::new(100);
        let shared = Frame::from(vec![1; 10]);
        pool.release(shared.clone());
        assert_eq!(pool.take_buffer().capacity(), 0);
        assert_eq!(shared[..], [1; 10]);
    }
}
