//! Request bodies, limited in size each and in total.
//!
//! The total counts bytes that have arrived, not the `content-length`: a client that announces a large
//! body and sends nothing occupies nothing.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::commands::serve::problem::Problem;

/// Byte budget of the request bodies in memory.
#[derive(Debug)]
pub struct Bodies {
    room: Arc<Semaphore>,
    total: usize,
    limit: usize,
}

/// A body; its bytes are returned to the budget when it is dropped.
#[derive(Debug, Default)]
pub struct Held {
    pub bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    /// A budget of `total` bytes, at most `limit` per body.
    pub fn new(limit: usize, total: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(total)), total, limit }
    }

    /// Bytes in use.
    pub fn held(&self) -> usize {
        self.total - self.room.available_permits()
    }

    /// Receives a body.
    ///
    /// # Errors
    /// [`Problem::BodyLength`] and [`Problem::Buffers`] at the limits, [`Problem::Body`] if the
    /// connection fails.
    pub async fn receive(&self, mut body: Body) -> Result<Held, Problem> {
        let long = Problem::BodyLength { limit: self.limit };
        if body.size_hint().lower() > self.limit as u64 {
            return Err(long);
        }
        let mut held = Held::default();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Problem::Body)?.into_data() else { continue };
            if data.len() > self.limit - held.bytes.len() {
                return Err(long);
            }
            let full = Problem::Buffers { limit: self.total };
            // A frame is one read from a socket, far below 4 GiB.
            let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).map_err(|_| full)?;
            match &mut held.room {
                Some(before) => before.merge(room),
                None => held.room = Some(room),
            }
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_and_returned() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bodies = Bodies::new(6, 10);
        let receive = |text: &'static str| runtime.block_on(bodies.receive(Body::from(text)));
        let first = receive("123456").unwrap();
        assert_eq!((&*first.bytes, bodies.held()), (&b"123456"[..], 6));
        assert!(matches!(receive("1234567"), Err(Problem::BodyLength { limit: 6 })));
        assert!(matches!(receive("12345"), Err(Problem::Buffers { limit: 10 })));
        let second = receive("1234").unwrap();
        assert_eq!(bodies.held(), 10);
        assert!(receive("").unwrap().bytes.is_empty());
        drop((first, second));
        assert_eq!(bodies.held(), 0);
    }
}
