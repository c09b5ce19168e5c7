//! Answers in memory, limited in total.
//!
//! An answer is in memory until the client has taken it, so clients that do not read would fill the
//! memory. Its bytes count against the limit until the last of them is written to the socket.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::commands::serve::problem::Problem;

/// Byte budget of the answers in memory.
#[derive(Debug)]
pub struct AnswersHeld {
    room: Arc<Semaphore>,
    total: usize,
}

struct Counted {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswersHeld {
    /// A budget of `total` bytes.
    pub fn new(total: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(total)), total }
    }

    /// Bytes in use.
    pub fn held(&self) -> usize {
        self.total - self.room.available_permits()
    }

    /// Counts an answer until the last of its bytes is dropped.
    ///
    /// # Errors
    /// [`Problem::Answers`] if there is no room.
    pub fn count(&self, bytes: Vec<u8>) -> Result<Bytes, Problem> {
        let full = Problem::Answers { limit: self.total };
        let Ok(len) = u32::try_from(bytes.len()) else { return Err(full) };
        match Arc::clone(&self.room).try_acquire_many_owned(len) {
            Ok(_room) => Ok(Bytes::from_owner(Counted { bytes, _room })),
            Err(_) => Err(full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_they_are_dropped() {
        let answers = AnswersHeld::new(10);
        let mut first = answers.count(vec![1; 6]).unwrap();
        assert!(matches!(answers.count(vec![0; 5]), Err(Problem::Answers { limit: 10 })));
        let rest = first.split_off(3);
        drop(first);
        assert_eq!((&rest[..], answers.held()), (&[1; 3][..], 6));
        drop(rest);
        assert_eq!(answers.held(), 0);
        assert!(answers.count(vec![0; 10]).is_ok());
    }
}
