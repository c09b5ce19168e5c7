//! Encoding of the messages between endpoints.
//!
//! All integers are little-endian. Every message starts with a header of [`HEAD`] bytes:
//!
//! ```text
//!  0  kind: 1 hello, 2 refusal, 3 request, 4 reply, 5 heartbeat
//!  1  request: 0 pull, 1 push, 2 call, 3 part; reply: 0 done, 1 rejected, 2 done, result too long; else 0
//!  2  0 0 0 0 0 0
//!  8  incarnation of the sender
//! 16  incarnation of the receiver, 0 if unknown
//! 24  number of the request; 0 in other messages
//! 32  floor of the sender: it waits for no reply to a request below; 0 in other messages
//! ```
//!
//! Requests and replies continue with the body of the program, a refusal with a text, a heartbeat
//! with nothing. A hello continues with
//!
//! ```text
//! 40  "lda-node"
//! 48  version of this format; role; 0 0; window: requests that the sender accepts at once
//! 56  window, in bytes
//! 64  run
//! 80  fingerprint of the configuration
//! ```

use thiserror::Error;

use super::{Identity, Window};
use crate::frame::Frame;

/// Length of the header.
pub const HEAD: usize = 40;
const HELLO: usize = 88;
const MAGIC: [u8; 8] = *b"lda-node";
/// Version of the format. Both sides must have the same.
pub const VERSION: u8 = 1;

/// Kind of a request: whether it may be executed twice, and whether it has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestKind {
    /// Returns something and changes nothing, so it may be executed more than once.
    Pull,
    /// Changes something, at most once per incarnation.
    Push,
    /// Changes something, at most once per incarnation, and returns something.
    Call,
    /// Part of a collective operation (feature `collectives`). Endpoints make and answer these
    /// themselves.
    Part,
}

/// Outcome of a request at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Done,
    Rejected,
    /// Done, but the result is longer than the transport allows.
    Oversized,
}

/// Reason why a peer is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The peer has another version of the format.
    #[error(
        "it has version {theirs} of the protocol, and this node version {ours}: run the same release"
    )]
    Version {
        /// Value of this node.
        ours: u8,
        /// Value of the peer.
        theirs: u8,
    },
    /// The peer belongs to another run.
    #[error(
        "it belongs to run {theirs:032x}, and this node to run {ours:032x}: give all nodes the same `run`"
    )]
    Run {
        /// Value of this node.
        ours: u128,
        /// Value of the peer.
        theirs: u128,
    },
    /// The peer has another configuration.
    #[error(
        "its configuration has the fingerprint {theirs:016x}, and that of this node {ours:016x}: start \
         all nodes with the same options and corpus"
    )]
    Configuration {
        /// Value of this node.
        ours: u64,
        /// Value of the peer.
        theirs: u64,
    },
    /// The peer has violated the protocol; contains a description.
    #[error("it broke the protocol: {0}")]
    Violation(String),
    /// The peer refuses this node; contains the reason that it sent.
    #[error("it refuses this node: {0}")]
    ByPeer(String),
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageKind {
    /// Greeting with the identity of the sender.
    Hello,
    /// The sender refuses the receiver.
    Refusal,
    /// Request of kind [`RequestKind::Pull`].
    Pull,
    /// Request of kind [`RequestKind::Push`].
    Push,
    /// Request of kind [`RequestKind::Call`].
    Call,
    /// Request of kind [`RequestKind::Part`].
    Part,
    /// Reply: the request was executed.
    Done,
    /// Reply: the request was not executed.
    Rejected,
    /// Reply: the request was executed, but its result is longer than the transport allows.
    Oversized,
    /// Sign of life.
    Heartbeat,
}

impl MessageKind {
    /// All kinds, in order.
    pub const ALL: [Self; 10] = [
        Self::Hello,
        Self::Refusal,
        Self::Pull,
        Self::Push,
        Self::Call,
        Self::Part,
        Self::Done,
        Self::Rejected,
        Self::Oversized,
        Self::Heartbeat,
    ];

    /// Returns the kind by the first bytes of a frame; the rest is not checked. `None` if it is no
    /// message.
    pub fn of(frame: &[u8]) -> Option<Self> {
        match frame {
            [1, ..] => Some(Self::Hello),
            [2, ..] => Some(Self::Refusal),
            [3, kind @ 0..=3, ..] => Some(Self::ALL[2 + usize::from(*kind)]),
            [4, status @ 0..=2, ..] => Some(Self::ALL[6 + usize::from(*status)]),
            [5, ..] => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// A frame that is not a valid message; contains a description.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DecodeError(pub(super) String);

/// A decoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Hello { from: u64, to: u64, hello: Hello },
    Refusal { from: u64, to: u64, words: String },
    Request { from: u64, to: u64, kind: RequestKind, id: u64, floor: u64, body: Frame },
    Reply { from: u64, to: u64, status: Status, id: u64, body: Frame },
    Heartbeat { from: u64, to: u64 },
}

/// Content of a greeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hello {
    pub version: u8,
    pub role: u8,
    pub window: Window,
    pub run: u128,
    pub configuration: u64,
}

/// Header of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub kind: u8,
    pub detail: u8,
    pub from: u64,
    pub to: u64,
    pub id: u64,
    pub floor: u64,
}

impl Head {
    /// Decodes the header, without checks. `None` if there are too few bytes.
    pub fn read(message: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD] = message.first_chunk()?;
        let number = |place: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[place..place + 8]);
            u64::from_le_bytes(bytes)
        };
        let [from, to, id, floor] = [8, 16, 24, 32].map(number);
        Some(Self { kind: head[0], detail: head[1], from, to, id, floor })
    }

    /// Writes the header to the first bytes of `message`, which has at least [`HEAD`].
    pub fn write(&self, message: &mut [u8]) {
        message[..8].copy_from_slice(&[self.kind, self.detail, 0, 0, 0, 0, 0, 0]);
        for (place, number) in [(8, self.from), (16, self.to), (24, self.id), (32, self.floor)] {
            message[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
    }
}

pub(super) fn request(kind: RequestKind) -> Head {
    Head { kind: 3, detail: kind as u8, ..Head::default() }
}

pub(super) fn reply(status: Status) -> Head {
    Head { kind: 4, detail: status as u8, ..Head::default() }
}

pub(super) fn heartbeat(from: u64, to: u64) -> Frame {
    let mut bytes = vec![0; HEAD];
    Head { kind: 5, from, to, ..Head::default() }.write(&mut bytes);
    Frame::from(bytes)
}

pub(super) fn refusal(from: u64, to: u64, refusal: &Refusal) -> Frame {
    let mut bytes = vec![0; HEAD];
    Head { kind: 2, from, to, ..Head::default() }.write(&mut bytes);
    bytes.extend_from_slice(refusal.to_string().as_bytes());
    Frame::from(bytes)
}

pub(super) fn hello(identity: &Identity, window: Window, to: u64) -> Frame {
    let mut bytes = vec![0; HELLO];
    Head { kind: 1, from: identity.incarnation, to, ..Head::default() }.write(&mut bytes);
    bytes[40..48].copy_from_slice(&MAGIC);
    bytes[48] = VERSION;
    bytes[49] = identity.role;
    bytes[52..56].copy_from_slice(&window.requests.to_le_bytes());
    bytes[56..64].copy_from_slice(&window.bytes.to_le_bytes());
    bytes[64..80].copy_from_slice(&identity.run.to_le_bytes());
    bytes[80..88].copy_from_slice(&identity.configuration.to_le_bytes());
    Frame::from(bytes)
}

/// Longest text of a refusal, in bytes.
const MAX_TEXT_LEN: usize = 4096;

/// Decodes a message.
pub(super) fn decode(frame: &Frame) -> Result<Message, DecodeError> {
    let wrong = |reason: String| Err(DecodeError(reason));
    let Some(Head { kind, detail, from, to, id, floor }) = Head::read(frame) else {
        return wrong(format!("a message of {} bytes is shorter than the header", frame.len()));
    };
    let number = |place: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&frame[place..place + 8]);
        u64::from_le_bytes(bytes)
    };
    if from == 0 {
        return wrong("a message without an incarnation".to_owned());
    }
    let plain = frame[2..8] == [0; 6]
        && (matches!(kind, 3 | 4) || id == 0)
        && (kind == 3 || floor == 0)
        && (matches!(kind, 3 | 4) || detail == 0);
    if !plain {
        return wrong(format!(
            "a message of kind {kind} has values in fields that it does not use"
        ));
    }
    match (kind, detail) {
        (1, _) if frame.len() > 49 && frame[40..48] == MAGIC => {
            let (version, role) = (frame[48], frame[49]);
            let mut hello = Hello { version, role, ..Hello::default() };
            if version != VERSION {
                // The other fields may have another meaning in that version.
                return Ok(Message::Hello { from, to, hello });
            }
            if frame.len() != HELLO || frame[50..52] != [0; 2] {
                return wrong("a greeting has an invalid length".to_owned());
            }
            let mut run = [0; 16];
            run.copy_from_slice(&frame[64..80]);
            hello.window = Window { requests: (number(48) >> 32) as u32, bytes: number(56) };
            (hello.run, hello.configuration) = (u128::from_le_bytes(run), number(80));
            Ok(Message::Hello { from, to, hello })
        }
        (1, _) => wrong("a greeting of another protocol".to_owned()),
        (2, _) => {
            let words = &frame[HEAD..frame.len().min(HEAD + MAX_TEXT_LEN)];
            Ok(Message::Refusal { from, to, words: String::from_utf8_lossy(words).into_owned() })
        }
        (3, 0..=3) => {
            let kind = [RequestKind::Pull, RequestKind::Push, RequestKind::Call, RequestKind::Part]
                [usize::from(detail)];
            Ok(Message::Request { from, to, kind, id, floor, body: frame.slice_from(HEAD) })
        }
        (4, 0..=2) => {
            let status = [Status::Done, Status::Rejected, Status::Oversized][usize::from(detail)];
            Ok(Message::Reply { from, to, status, id, body: frame.slice_from(HEAD) })
        }
        (5, _) if frame.len() == HEAD => Ok(Message::Heartbeat { from, to }),
        _ => wrong(format!("there is no message of kind {kind}, {detail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity =
        Identity { incarnation: 7, role: 3, run: 1 << 100, configuration: 9 };
    const WINDOW: Window = Window { requests: 8, bytes: 1 << 40 };

    fn decoded(frame: Frame) -> Message {
        decode(&frame).unwrap()
    }

    #[test]
    fn messages_round_trip() {
        let hello =
            Hello { version: VERSION, role: 3, window: WINDOW, run: 1 << 100, configuration: 9 };
        assert_eq!(
            decoded(super::hello(&IDENTITY, WINDOW, 5)),
            Message::Hello { from: 7, to: 5, hello }
        );
        assert_eq!(decoded(heartbeat(1, 2)), Message::Heartbeat { from: 1, to: 2 });
        let no = Refusal::Configuration { ours: 1, theirs: 2 };
        let words = no.to_string();
        assert_eq!(decoded(refusal(1, 2, &no)), Message::Refusal { from: 1, to: 2, words });
        for kind in [RequestKind::Pull, RequestKind::Push, RequestKind::Call, RequestKind::Part] {
            let mut bytes = vec![0; HEAD];
            bytes.extend([1, 2, 3]);
            Head { from: 1, to: 2, id: 3, floor: 2, ..request(kind) }.write(&mut bytes);
            let body = Frame::from(vec![1, 2, 3]);
            let expected = Message::Request { from: 1, to: 2, kind, id: 3, floor: 2, body };
            assert_eq!(MessageKind::of(&bytes), Some(MessageKind::ALL[2 + kind as usize]));
            assert_eq!(decoded(bytes.into()), expected);
        }
        for status in [Status::Done, Status::Rejected, Status::Oversized] {
            let mut bytes = vec![0; HEAD];
            Head { from: 1, to: 2, id: 3, ..reply(status) }.write(&mut bytes);
            let expected = Message::Reply { from: 1, to: 2, status, id: 3, body: Frame::new() };
            assert_eq!(MessageKind::of(&bytes), Some(MessageKind::ALL[6 + status as usize]));
            assert_eq!(decoded(bytes.into()), expected);
        }
        let kinds = [super::hello(&IDENTITY, WINDOW, 5), refusal(1, 2, &no), heartbeat(1, 2)]
            .map(|frame| MessageKind::of(&frame));
        assert_eq!(
            kinds,
            [MessageKind::Hello, MessageKind::Refusal, MessageKind::Heartbeat].map(Some)
        );
        assert!([&[][..], &[0], &[3], &[3, 4], &[4, 3], &[6]].map(MessageKind::of) == [None; 6]);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let good = super::hello(&IDENTITY, WINDOW, 5).to_vec();
        for len in 0..good.len() {
            assert!(decode(&good[..len].to_vec().into()).is_err(), "{len}");
        }
        let changed = |place: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[place] = value;
            decode(&bytes.into())
        };
        for (place, value) in
            [(0, 0), (0, 6), (0, 5), (1, 1), (2, 1), (7, 1), (8, 0), (24, 1), (32, 1), (40, 0)]
        {
            assert!(changed(place, value).is_err(), "{place}");
        }
        let mut bytes = vec![0; HEAD];
        Head { kind: 3, detail: 4, from: 1, ..Head::default() }.write(&mut bytes);
        assert!(decode(&bytes.into()).is_err());
    }
}
