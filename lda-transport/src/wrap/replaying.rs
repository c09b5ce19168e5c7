//! Replay of a recording.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;
use std::{fmt, thread};

use super::record::{Happened, Log, LogError};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};

/// Transport that replays a [recording](super::Recording), so that the program of a node can be run
/// again: arrivals come in the same order, and frames that are sent are compared with the recorded
/// ones.
///
/// It does not wait, unless it is [paced](Self::paced). After the end of the log it returns
/// [`ReceiveError::Failed`].
pub struct Replaying<R> {
    log: Log<R>,
    /// Entries that were read ahead. Sends and arrivals are each in order; the program may be ahead
    /// in one.
    sent: VecDeque<Happened>,
    arrivals: VecDeque<(Time, Happened)>,
    end: Option<String>,
    /// Recorded time of the last arrival.
    time: Time,
    paced: bool,
    closed: bool,
    notifier: Arc<Notifier>,
    differences: Differences,
}

/// Differences between a program and its recording. Clones share them, also while the transport is
/// in use elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Differences(Arc<Mutex<Vec<String>>>);

impl Differences {
    /// Returns descriptions of the first differences; later ones follow from these.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, difference: String) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < 16 {
            list.push(difference);
        }
    }
}

#[derive(Debug, Default)]
struct Notifier(AtomicBool);

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl<R: Read + Send> Replaying<R> {
    /// Replays a log. The reader should be buffered. A log that is cut off ends there.
    ///
    /// # Errors
    /// [`LogError`] if it is not a log.
    pub fn new(log: R) -> Result<Self, LogError> {
        Ok(Self {
            log: Log::read(log)?,
            sent: VecDeque::new(),
            arrivals: VecDeque::new(),
            end: None,
            time: Time::ZERO,
            paced: false,
            closed: false,
            notifier: Arc::default(),
            differences: Differences::default(),
        })
    }

    /// Makes arrivals take the time that they took in the recording.
    pub fn paced(mut self) -> Self {
        self.paced = true;
        self
    }

    /// Returns the differences to the recording.
    pub fn differences(&self) -> Differences {
        self.differences.clone()
    }

    /// Reads an entry. Returns whether there was one.
    fn read(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        match self.log.next() {
            Some(Ok(entry)) => {
                if matches!(entry.happened, Happened::Sent { .. } | Happened::NotSent { .. }) {
                    self.sent.push_back(entry.happened);
                } else {
                    self.arrivals.push_back((entry.time, entry.happened));
                }
                return true;
            }
            Some(Err(broken)) => self.end = Some(broken.to_string()),
            None => self.end = Some("the log has ended".to_owned()),
        }
        false
    }

    fn next_sent(&mut self) -> Option<Happened> {
        while self.sent.is_empty() && self.read() {}
        self.sent.pop_front()
    }
}

impl<R: Read + Send> Transport for Replaying<R> {
    fn id(&self) -> NodeId {
        self.log.node()
    }

    fn capabilities(&self) -> Capabilities {
        self.log.capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        if self.closed {
            return Err(Unsent { to, frame, error: SendError::Closed });
        }
        let same = |other: NodeId, len: usize| other == to && len == frame.len();
        let error = match self.next_sent() {
            Some(Happened::Sent { to: other, frame: sent }) => {
                if !same(other, sent.len()) || sent != frame {
                    let difference =
                        format!("{frame:?} is sent to {to}, and {sent:?} was sent to {other}");
                    self.differences.note(difference);
                }
                return Ok(());
            }
            Some(Happened::NotSent { to: other, len, error }) => {
                if !same(other, usize::try_from(len).unwrap_or(usize::MAX)) {
                    let difference =
                        format!("{frame:?} is sent to {to}, and {len} bytes were sent to {other}");
                    self.differences.note(difference);
                }
                error
            }
            _ => {
                let difference =
                    format!("{frame:?} is sent to {to}, and nothing was sent any more");
                self.differences.note(difference);
                SendError::NotUp
            }
        };
        Err(Unsent { to, frame, error })
    }

    fn receive(&mut self, _wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        if self.closed {
            return Err(ReceiveError::Closed);
        }
        // The log has the recorded wake-ups; those of this run are reported too.
        if self.notifier.0.swap(false, SeqCst) {
            return Ok(Some(Arrival::Woken));
        }
        while self.arrivals.is_empty() && self.read() {}
        let Some((time, happened)) = self.arrivals.pop_front() else {
            return Err(ReceiveError::Failed(self.end.clone().unwrap_or_default()));
        };
        if self.paced {
            thread::sleep(time.since(self.time));
        }
        self.time = time;
        match happened {
            Happened::Arrived(arrival) => Ok(Some(arrival)),
            Happened::Ended(error) => Err(error),
            _ => Ok(None),
        }
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.notifier))
    }

    fn close(&mut self, _patience: Duration) {
        self.closed = true;
    }
}

impl<R> fmt::Debug for Replaying<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replaying")
            .field("time", &self.time)
            .field("differences", &self.differences)
            .finish_non_exhaustive()
    }
}
