//! What was recorded, once more.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;
use std::{fmt, thread};

use super::record::{Broken, Happened, Log};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};

/// A transport that does what one did when it was [recorded](super::Recording), so that the program of a node can be
/// run again, step by step: what came comes in the same order, and what is sent is compared.
///
/// Nothing waits for as long as it did, unless that is [asked for](Self::paced). Behind the end of the log comes
/// nothing, and it ends as [`ReceiveError::Failed`].
pub struct Replaying<R> {
    log: Log<R>,
    /// What comes next, in order: sends and arrivals are each in order, and one may be ahead of the other.
    sent: VecDeque<Happened>,
    come: VecDeque<(Time, Happened)>,
    end: Option<String>,
    /// When the last that came had come.
    time: Time,
    paced: bool,
    closed: bool,
    bell: Arc<Notifier>,
    differences: Differences,
}

/// What a program has done otherwise than when it was recorded. A clone says the same, wherever the transport is.
#[derive(Clone, Debug, Default)]
pub struct Differences(Arc<Mutex<Vec<String>>>);

impl Differences {
    /// The first ones, in words: what comes later of them follows from these.
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
    /// Of a log. Give it a reader with a buffer.
    ///
    /// # Errors
    /// [`Broken`], where it is none. One that is cut off ends there.
    pub fn new(log: R) -> Result<Self, Broken> {
        Ok(Self {
            log: Log::read(log)?,
            sent: VecDeque::new(),
            come: VecDeque::new(),
            end: None,
            time: Time::ZERO,
            paced: false,
            closed: false,
            bell: Arc::default(),
            differences: Differences::default(),
        })
    }

    /// Takes as long as it took.
    pub fn paced(mut self) -> Self {
        self.paced = true;
        self
    }

    /// What the program does otherwise.
    pub fn differences(&self) -> Differences {
        self.differences.clone()
    }

    /// Reads an entry; whether there was one.
    fn read(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        match self.log.next() {
            Some(Ok(entry)) => {
                if matches!(entry.happened, Happened::Sent { .. } | Happened::NotSent { .. }) {
                    self.sent.push_back(entry.happened);
                } else {
                    self.come.push_back((entry.time, entry.happened));
                }
                return true;
            }
            Some(Err(broken)) => self.end = Some(broken.to_string()),
            None => self.end = Some("the log is over".to_owned()),
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
                        format!("{frame:?} goes to {to}, where {sent:?} went to {other}");
                    self.differences.note(difference);
                }
                return Ok(());
            }
            Some(Happened::NotSent { to: other, len, error }) => {
                if !same(other, usize::try_from(len).unwrap_or(usize::MAX)) {
                    let difference =
                        format!("{frame:?} goes to {to}, where {len} bytes went to {other}");
                    self.differences.note(difference);
                }
                error
            }
            _ => {
                let difference = format!("{frame:?} goes to {to}, where nothing was sent any more");
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
        // Wakers of then are in the log; one of now is heard all the same.
        if self.bell.0.swap(false, SeqCst) {
            return Ok(Some(Arrival::Woken));
        }
        while self.come.is_empty() && self.read() {}
        let Some((time, happened)) = self.come.pop_front() else {
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
        Waker::from(Arc::clone(&self.bell))
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
