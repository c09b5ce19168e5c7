//! Format of the log of a [`Recording`](super::Recording).
//!
//! ```text
//! "lda-log", version: 8 bytes
//! node u32, longest frame u64, bytes of a queue u64, flags of the capabilities u8
//! then the entries: kind u8, nanoseconds u64, and for
//!   1 sent      peer u32, length u64, the frame
//!   2 not sent  peer u32, length u64, error u8
//!   3 up        peer u32
//!   4 frame     peer u32, length u64, the frame
//!   5 writable  peer u32
//!   6 down      peer u32, length u64, text; empty if the peer has closed
//!   7 woken
//!   8 nothing
//!   9 ended     length u64, text; empty if this node has closed
//! ```
//! Integers are little-endian.

use std::io::{self, Read, Write};

use thiserror::Error;

use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError};

const MAGIC: [u8; 8] = *b"lda-log\x01";

/// Entry of a log.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time since the recording began.
    pub time: Time,
    /// The event.
    pub happened: Happened,
}

/// Event at a transport.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// The transport took a frame.
    Sent {
        /// Its receiver.
        to: NodeId,
        /// The frame.
        frame: Frame,
    },
    /// The transport did not take a frame.
    NotSent {
        /// Its receiver.
        to: NodeId,
        /// Its length, in bytes.
        len: u64,
        /// The reason.
        error: SendError,
    },
    /// An arrival.
    Arrived(Arrival),
    /// A wait ended without an arrival.
    Nothing,
    /// The transport has ended.
    Ended(ReceiveError),
}

/// Reason why a log cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The bytes are not a log, or one of another version.
    #[error("not a log of a transport, or one of another version")]
    Foreign,
    /// The log ends within an entry, for example because its program was killed.
    #[error("the log is cut off after {entries} entries")]
    CutOff {
        /// Number of complete entries.
        entries: u64,
    },
    /// An entry is invalid.
    #[error("entry {entry} is invalid: {why}")]
    Entry {
        /// Index of the entry, from 0.
        entry: u64,
        /// Description of the error.
        why: String,
    },
    /// The reader failed.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Reader of a log, an iterator over its entries.
///
/// The memory for an entry is bounded by the bytes that follow, whatever length it claims.
#[derive(Debug)]
pub struct Log<R> {
    from: R,
    node: NodeId,
    capabilities: Capabilities,
    entries: u64,
    over: bool,
}

impl<R: Read> Log<R> {
    /// Reads the header. The reader should be buffered.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn read(mut from: R) -> Result<Self, LogError> {
        let head: [u8; 29] = array(&mut from).map_err(|broken| match broken {
            LogError::CutOff { .. } => LogError::Foreign,
            other => other,
        })?;
        let (magic, head) = head.split_first_chunk().ok_or(LogError::Foreign)?;
        let (node, head) = head.split_first_chunk().ok_or(LogError::Foreign)?;
        let (longest, head) = head.split_first_chunk().ok_or(LogError::Foreign)?;
        let (queue, head) = head.split_first_chunk().ok_or(LogError::Foreign)?;
        let [flags] = head else { return Err(LogError::Foreign) };
        if *magic != MAGIC || *flags > 7 {
            return Err(LogError::Foreign);
        }
        let bytes =
            |number: &[u8; 8]| usize::try_from(u64::from_le_bytes(*number)).unwrap_or(usize::MAX);
        let capabilities = Capabilities {
            reconnects: flags & 1 > 0,
            survives_loss: flags & 2 > 0,
            encrypted: flags & 4 > 0,
            ..Capabilities::new(bytes(longest), bytes(queue))
        };
        let node = NodeId(u32::from_le_bytes(*node));
        Ok(Self { from, node, capabilities, entries: 0, over: false })
    }

    /// Returns the node that was recorded.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the capabilities of its transport.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn entry(&mut self) -> Result<Option<Entry>, LogError> {
        let mut which = [0];
        if self.from.read(&mut which)? == 0 {
            return Ok(None);
        }
        let time = Time(self.u64()?);
        let happened = match which[0] {
            1 => {
                let to = self.peer()?;
                Happened::Sent { to, frame: self.bytes()?.into() }
            }
            2 => {
                let (to, len) = (self.peer()?, self.u64()?);
                let [code] = array(&mut self.from)?;
                let error = error(code, len, self.capabilities.max_frame_len);
                let error = error.ok_or_else(|| self.wrong(format!("error {code}")))?;
                Happened::NotSent { to, len, error }
            }
            3 => Happened::Arrived(Arrival::Up { peer: self.peer()? }),
            4 => {
                let peer = self.peer()?;
                Happened::Arrived(Arrival::Frame { peer, frame: self.bytes()?.into() })
            }
            5 => Happened::Arrived(Arrival::Writable { peer: self.peer()? }),
            6 => {
                let peer = self.peer()?;
                let words = self.words()?;
                let reason = if words.is_empty() {
                    DisconnectReason::Closed
                } else {
                    DisconnectReason::Broken(words)
                };
                Happened::Arrived(Arrival::Down { peer, reason })
            }
            7 => Happened::Arrived(Arrival::Woken),
            8 => Happened::Nothing,
            9 => {
                let words = self.words()?;
                Happened::Ended(if words.is_empty() {
                    ReceiveError::Closed
                } else {
                    ReceiveError::Failed(words)
                })
            }
            other => return Err(self.wrong(format!("there is no kind {other}"))),
        };
        self.entries += 1;
        Ok(Some(Entry { time, happened }))
    }

    fn wrong(&self, why: String) -> LogError {
        LogError::Entry { entry: self.entries, why }
    }

    fn u64(&mut self) -> Result<u64, LogError> {
        array(&mut self.from).map(u64::from_le_bytes)
    }

    fn peer(&mut self) -> Result<NodeId, LogError> {
        array(&mut self.from).map(|bytes| NodeId(u32::from_le_bytes(bytes)))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, LogError> {
        let len = self.u64()?;
        let mut bytes = Vec::new();
        // Grows with the bytes that are there, not with the claimed length.
        let read = self.from.by_ref().take(len).read_to_end(&mut bytes)?;
        if (read as u64) < len { Err(LogError::CutOff { entries: 0 }) } else { Ok(bytes) }
    }

    fn words(&mut self) -> Result<String, LogError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| self.wrong("text that is not UTF-8".to_owned()))
    }
}

impl<R: Read> Iterator for Log<R> {
    type Item = Result<Entry, LogError>;

    /// Returns the next entry; `None` at the end and after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let entry = match self.entry() {
            Err(LogError::CutOff { .. }) => Err(LogError::CutOff { entries: self.entries }),
            other => other,
        };
        self.over = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

fn array<const N: usize>(from: &mut impl Read) -> Result<[u8; N], LogError> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => LogError::CutOff { entries: 0 },
        _ => LogError::Io(error),
    })?;
    Ok(bytes)
}

fn error(code: u8, len: u64, longest: usize) -> Option<SendError> {
    Some(match code {
        0 => SendError::Full,
        1 => SendError::NotUp,
        2 => SendError::TooLong { len: usize::try_from(len).unwrap_or(usize::MAX), longest },
        3 => SendError::Closed,
        _ => return None,
    })
}

fn code(error: SendError) -> u8 {
    match error {
        SendError::Full => 0,
        SendError::NotUp => 1,
        SendError::TooLong { .. } => 2,
        SendError::Closed => 3,
    }
}

pub(super) fn write_head(to: &mut impl Write, node: NodeId, can: Capabilities) -> io::Result<()> {
    to.write_all(&MAGIC)?;
    to.write_all(&node.0.to_le_bytes())?;
    to.write_all(&(can.max_frame_len as u64).to_le_bytes())?;
    to.write_all(&(can.queue_bytes as u64).to_le_bytes())?;
    let flags = [(can.reconnects, 1), (can.survives_loss, 2), (can.encrypted, 4)];
    to.write_all(&[flags.iter().filter(|flag| flag.0).map(|flag| flag.1).sum()])
}

/// Writes an entry.
pub(super) fn write(to: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let mut put = |which: u8, peer: Option<NodeId>, bytes: Option<&[u8]>| {
        to.write_all(&[which])?;
        to.write_all(&entry.time.0.to_le_bytes())?;
        if let Some(peer) = peer {
            to.write_all(&peer.0.to_le_bytes())?;
        }
        if let Some(bytes) = bytes {
            to.write_all(&(bytes.len() as u64).to_le_bytes())?;
            to.write_all(bytes)?;
        }
        Ok(())
    };
    match &entry.happened {
        Happened::Sent { to, frame } => put(1, Some(*to), Some(frame)),
        Happened::NotSent { to: peer, len, error } => {
            put(2, Some(*peer), None)?;
            to.write_all(&len.to_le_bytes())?;
            to.write_all(&[code(*error)])
        }
        Happened::Arrived(Arrival::Up { peer }) => put(3, Some(*peer), None),
        Happened::Arrived(Arrival::Frame { peer, frame }) => put(4, Some(*peer), Some(frame)),
        Happened::Arrived(Arrival::Writable { peer }) => put(5, Some(*peer), None),
        Happened::Arrived(Arrival::Down { peer, reason }) => {
            let words =
                if let DisconnectReason::Broken(words) = reason { words.as_str() } else { "" };
            put(6, Some(*peer), Some(words.as_bytes()))
        }
        Happened::Arrived(Arrival::Woken) => put(7, None, None),
        Happened::Nothing => put(8, None, None),
        Happened::Ended(error) => {
            let words = if let ReceiveError::Failed(words) = error { words.as_str() } else { "" };
            put(9, None, Some(words.as_bytes()))
        }
    }
}
