//! Recording of everything that happens at a transport.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use super::record::{self, Entry, Happened};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{Arrival, NodeId, ReceiveError, Transport, Unsent, Wait};

/// Records all events of a transport, to be read as a [`Log`](super::Log) and
/// [replayed](super::Replaying).
///
/// If the writer fails, the recording stops and its [`RecordingStatus`] has the error; the
/// transport continues. The writer should be buffered: the thread of the node writes each frame and
/// a few bytes more.
pub struct Recording<T, W: Write> {
    inner: T,
    /// `None` after an error.
    to: Option<W>,
    status: RecordingStatus,
    began: Instant,
    /// Whether the last entry was an empty wait. Further ones are not recorded, so that polling
    /// does not fill the log.
    idle: bool,
}

/// Status of a recording. Clones share it, also while the transport is in use elsewhere.
#[derive(Clone, Debug, Default)]
pub struct RecordingStatus(Arc<Mutex<Option<io::Error>>>);

impl RecordingStatus {
    /// Returns the error that has stopped the recording, once.
    pub fn take(&self) -> Option<io::Error> {
        // A poisoned lock is usable: no panic can leave the value inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Transport, W: Write + Send> Recording<T, W> {
    /// Wraps a transport and records it from now on.
    ///
    /// # Errors
    /// The error of the writer for the header.
    pub fn new(inner: T, mut to: W) -> io::Result<Self> {
        record::write_head(&mut to, inner.id(), inner.capabilities())?;
        let (to, status, began) = (Some(to), RecordingStatus::default(), Instant::now());
        Ok(Self { inner, to, status, began, idle: false })
    }

    /// Returns the status of the recording.
    pub fn status(&self) -> RecordingStatus {
        self.status.clone()
    }

    fn write(&mut self, happened: Happened) {
        let idle = happened == Happened::Nothing;
        if mem::replace(&mut self.idle, idle) && idle {
            return;
        }
        let time = Time::ZERO + self.began.elapsed();
        self.write_to(|to| record::write(to, &Entry { time, happened }));
    }

    fn write_to(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if let Some(to) = &mut self.to
            && let Err(error) = write(to)
        {
            self.to = None;
            *self.status.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

impl<T: Transport, W: Write + Send> Transport for Recording<T, W> {
    inner_does!(id, capabilities, waker, take_buffer, release);

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        // A clone shares the bytes of the frame.
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
            Ok(Some(arrival)) => Happened::Arrived(arrival.clone()),
            Ok(None) => Happened::Nothing,
            Err(error) => Happened::Ended(error.clone()),
        });
        arrival
    }

    fn close(&mut self, patience: Duration) {
        self.inner.close(patience);
        self.write_to(W::flush);
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
