//! A log of all that happened at a transport, as bytes.
//!
//! ```text
//! "lda-log", version: 8 bytes
//! node u32, longest frame u64, queue's bytes u64, what it can do u8
//! then what happened, one after the other: which u8, nanoseconds u64, and of
//!   1 sent      peer u32, length u64, the frame
//!   2 not sent  peer u32, length u64, why u8
//!   3 up        peer u32
//!   4 frame     peer u32, length u64, the frame
//!   5 room      peer u32
//!   6 down      peer u32, length u64, words; none where it has closed
//!   7 woken
//!   8 nothing
//!   9 ended     length u64, words; none where this node has closed
//! ```
//! Numbers are little-endian.

use std::io::{self, Read, Write};

use thiserror::Error;

use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError};

const MAGIC: [u8; 8] = *b"lda-log\x01";

/// Something that happened, and when.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the recording began.
    pub time: Time,
    /// What.
    pub happened: Happened,
}

/// What happened at a transport.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// It took a frame.
    Sent {
        /// For whom.
        to: NodeId,
        /// What.
        frame: Frame,
    },
    /// It did not take a frame.
    NotSent {
        /// For whom.
        to: NodeId,
        /// Bytes of it.
        len: u64,
        /// Why.
        error: SendError,
    },
    /// Something came.
    Arrived(Arrival),
    /// Somebody waited, and nothing came.
    Nothing,
    /// Nothing comes any more.
    Ended(ReceiveError),
}

/// Bytes that are no log, or not to the end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Broken {
    /// Something else, or of another version.
    #[error("it is no log of a transport, or one of another version")]
    Foreign,
    /// It ends in the middle, as where its program was killed.
    #[error("it is cut off after {entries} entries")]
    CutOff {
        /// Those that are whole.
        entries: u64,
    },
    /// There is no such entry.
    #[error("entry {entry} is none: {why}")]
    Entry {
        /// Which, from 0.
        entry: u64,
        /// What is wrong.
        why: String,
    },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A log as it is read, entry by entry.
///
/// An entry needs as much memory as it has bytes, whatever length it claims.
#[derive(Debug)]
pub struct Log<R> {
    from: R,
    node: NodeId,
    capabilities: Capabilities,
    entries: u64,
    over: bool,
}

impl<R: Read> Log<R> {
    /// Begins to read. Give it a reader with a buffer.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn read(mut from: R) -> Result<Self, Broken> {
        let head: [u8; 29] = array(&mut from).map_err(|broken| match broken {
            Broken::CutOff { .. } => Broken::Foreign,
            other => other,
        })?;
        let (magic, head) = head.split_first_chunk().ok_or(Broken::Foreign)?;
        let (node, head) = head.split_first_chunk().ok_or(Broken::Foreign)?;
        let (longest, head) = head.split_first_chunk().ok_or(Broken::Foreign)?;
        let (queue, head) = head.split_first_chunk().ok_or(Broken::Foreign)?;
        let [flags] = head else { return Err(Broken::Foreign) };
        if *magic != MAGIC || *flags > 7 {
            return Err(Broken::Foreign);
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

    /// Whose it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// What its transport could do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn entry(&mut self) -> Result<Option<Entry>, Broken> {
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

    fn wrong(&self, why: String) -> Broken {
        Broken::Entry { entry: self.entries, why }
    }

    fn u64(&mut self) -> Result<u64, Broken> {
        array(&mut self.from).map(u64::from_le_bytes)
    }

    fn peer(&mut self) -> Result<NodeId, Broken> {
        array(&mut self.from).map(|bytes| NodeId(u32::from_le_bytes(bytes)))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Broken> {
        let len = self.u64()?;
        let mut bytes = Vec::new();
        // Grows as bytes come, whatever the length says.
        let read = self.from.by_ref().take(len).read_to_end(&mut bytes)?;
        if (read as u64) < len { Err(Broken::CutOff { entries: 0 }) } else { Ok(bytes) }
    }

    fn words(&mut self) -> Result<String, Broken> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| self.wrong("words that are no text".to_owned()))
    }
}

impl<R: Read> Iterator for Log<R> {
    type Item = Result<Entry, Broken>;

    /// Ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let entry = match self.entry() {
            Err(Broken::CutOff { .. }) => Err(Broken::CutOff { entries: self.entries }),
            other => other,
        };
        self.over = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

fn array<const N: usize>(from: &mut impl Read) -> Result<[u8; N], Broken> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Broken::CutOff { entries: 0 },
        _ => Broken::Io(error),
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
        Happened::Arrived(Arrival::Together { .. }) => {
            Err(io::Error::other("operations by a transport's own means are not recorded"))
        }
        Happened::Nothing => put(8, None, None),
        Happened::Ended(error) => {
            let words = if let ReceiveError::Failed(words) = error { words.as_str() } else { "" };
            put(9, None, Some(words.as_bytes()))
        }
    }
}
