//! Everything that happens, written down.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use super::record::{self, Entry, Happened};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{Arrival, NodeId, ReceiveError, Transport, Unsent, Wait};

/// Writes down what goes and comes, to be read as a [`Log`](super::Log) and to be [replayed](super::Replaying).
///
/// Where it cannot write it stops writing, and says so by its [`Trouble`]; the transport goes on. Give it a writer with
/// a buffer: it writes some bytes for each frame, on the thread of the node, and the frame.
pub struct Recording<T, W: Write> {
    inner: T,
    /// None when something has failed.
    to: Option<W>,
    trouble: Trouble,
    began: Instant,
    /// What came last was nothing: a node that polls does not fill the log.
    idle: bool,
}

/// Whether a recording goes on. A clone says the same, wherever the transport is.
#[derive(Clone, Debug, Default)]
pub struct Trouble(Arc<Mutex<Option<io::Error>>>);

impl Trouble {
    /// Why it has stopped, once.
    pub fn take(&self) -> Option<io::Error> {
        // Nothing is left half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Transport, W: Write + Send> Recording<T, W> {
    /// Around a transport, from now on.
    ///
    /// # Errors
    /// What the writer says to the first bytes.
    pub fn new(inner: T, mut to: W) -> io::Result<Self> {
        record::write_head(&mut to, inner.id(), inner.capabilities())?;
        let (to, trouble, began) = (Some(to), Trouble::default(), Instant::now());
        Ok(Self { inner, to, trouble, began, idle: false })
    }

    /// Whether it can write.
    pub fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    fn write(&mut self, happened: Happened) {
        let idle = happened == Happened::Nothing;
        if mem::replace(&mut self.idle, idle) && idle {
            return;
        }
        let time = Time::ZERO + self.began.elapsed();
        self.tell(|to| record::write(to, &Entry { time, happened }));
    }

    fn tell(&mut self, tell: impl FnOnce(&mut W) -> io::Result<()>) {
        if let Some(to) = &mut self.to
            && let Err(error) = tell(to)
        {
            self.to = None;
            *self.trouble.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

/// An arrival once more; frames are shared.
fn again(arrival: &Arrival) -> Arrival {
    match arrival {
        Arrival::Up { peer } => Arrival::Up { peer: *peer },
        Arrival::Frame { peer, frame } => Arrival::Frame { peer: *peer, frame: frame.clone() },
        Arrival::Writable { peer } => Arrival::Writable { peer: *peer },
        Arrival::Down { peer, reason } => Arrival::Down { peer: *peer, reason: reason.clone() },
        Arrival::Together { operation, result } => {
            Arrival::Together { operation: *operation, result: result.clone() }
        }
        Arrival::Woken => Arrival::Woken,
    }
}

impl<T: Transport, W: Write + Send> Transport for Recording<T, W> {
    inner_does!(id, capabilities, waker, take_buffer, release);

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        // Shared for as long as it is written.
        let sent = self.inner.send(to, frame.clone());
        self.write(match &sent {
            Ok(()) => Happened::Sent { to, frame },
            Err(unsent) => Happened::NotSent { to, len: frame.len() as u64, error: unsent.error },
        });
        sent
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let arrival = self.inner.receive(wait);
        self.write(match &arrival {
            Ok(Some(arrival)) => Happened::Arrived(again(arrival)),
            Ok(None) => Happened::Nothing,
            Err(error) => Happened::Ended(error.clone()),
        });
        arrival
    }

    fn close(&mut self, patience: Duration) {
        self.inner.close(patience);
        self.tell(W::flush);
    }
}

impl<T: fmt::Debug, W: Write> fmt::Debug for Recording<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("inner", &self.inner)
            .field("writes", &self.to.is_some())
            .finish_non_exhaustive()
    }
}
