//! What stands on the wire, for those who write the other end: `peers.proto` beside this file says it too.
//!
//! A message is of protobuf, `message Frame { bytes data = 1; }`, written and read here by hand: so it
//! takes no compiler of protobuf to build, and what is read is a piece of the buffer that it was read into.
//!
//! ```
//! use lda_transport::NodeId;
//! use lda_transport::grpc::wire::{Hello, WireError, decode_message};
//!
//! let mut message: &[u8] = b"\x0a\x05a row";
//! assert_eq!(decode_message(&mut message)?, "a row");
//!
//! let hello = Hello { from: NodeId(2), to: NodeId(1), longest_frame: 1 << 20 };
//! assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
//! assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(WireError::NotHello));
//! # Ok::<(), WireError>(())
//! ```

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use thiserror::Error;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::rooms::Rooms;
use crate::transport::NodeId;

/// Name of the service.
pub const SERVICE: &str = "lda.transport.v1.Peers";
/// Path of its one method.
pub const METHOD: &str = "/lda.transport.v1.Peers/Exchange";
/// Version of the format, which both sides must have.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 8] = *b"lda-grpc";
const HELLO: usize = 32;
/// Field 1, with a length.
const TAG: u8 = 0x0a;
/// Most bytes of a message before its data: the tag, and a length of 32 bits in groups of 7.
pub(super) const HEAD: usize = 6;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// No hello.
    #[error("its first message is no hello: is it a node?")]
    NotHello,
    /// A hello of another version.
    #[error(
        "it speaks version {theirs} of the protocol, and this node version {VERSION}: run the same release"
    )]
    Version {
        /// Its version.
        theirs: u8,
    },
    /// No message of protobuf; what is wrong.
    #[error("a message is not of the form `Frame` ({0})")]
    Message(&'static str),
}

/// What a node says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Who says it.
    pub from: NodeId,
    /// Whom it takes the other for.
    pub to: NodeId,
    /// Longest frame that it takes.
    pub longest_frame: u64,
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(HELLO);
        bytes.put_slice(&MAGIC);
        bytes.put_slice(&[VERSION, 0, 0, 0]);
        bytes.put_u32_le(self.from.0);
        bytes.put_u32_le(self.to.0);
        bytes.put_u32_le(0);
        bytes.put_u64_le(self.longest_frame);
        bytes.into()
    }

    /// Of bytes. A later version may say more.
    ///
    /// # Errors
    /// [`WireError::NotHello`], or [`WireError::Version`].
    pub fn decode(mut bytes: &[u8]) -> Result<Self, WireError> {
        let magic = bytes.try_get_u64().map_err(|_| WireError::NotHello)?;
        if magic.to_be_bytes() != MAGIC {
            return Err(WireError::NotHello);
        }
        let version = bytes.try_get_u8().map_err(|_| WireError::NotHello)?;
        if version != VERSION {
            return Err(WireError::Version { theirs: version });
        }
        if bytes.len() != HELLO - 9 {
            return Err(WireError::NotHello);
        }
        bytes.advance(3);
        let (from, to) = (NodeId(bytes.get_u32_le()), NodeId(bytes.get_u32_le()));
        bytes.advance(4);
        Ok(Self { from, to, longest_frame: bytes.get_u64_le() })
    }
}

/// The data of a `Frame` that fills a buffer. Fields that are not known are left out, as protobuf wants it;
/// of several data the last counts.
///
/// # Errors
/// [`WireError::Message`].
pub fn decode_message(buf: &mut impl Buf) -> Result<Bytes, WireError> {
    let mut data = Bytes::new();
    while buf.has_remaining() {
        let tag = varint(buf)?;
        match (tag >> 3, tag & 7) {
            (0, _) => return Err(WireError::Message("a field has the number 0")),
            (1, 2) => {
                let len = length(buf)?;
                data = buf.copy_to_bytes(len);
            }
            (1, _) => return Err(WireError::Message("its data are no bytes")),
            (_, 0) => drop(varint(buf)?),
            (_, 1) => skip(buf, 8)?,
            (_, 2) => {
                let len = length(buf)?;
                skip(buf, len)?;
            }
            (_, 5) => skip(buf, 4)?,
            _ => return Err(WireError::Message("a field has an unknown type")),
        }
    }
    Ok(data)
}

fn varint(buf: &mut impl Buf) -> Result<u64, WireError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = buf.try_get_u8().map_err(|_| WireError::Message("it ends within a number"))?;
        // What does not fit falls off at the top, as with others.
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(WireError::Message("a number is too long"))
}

/// A length that the buffer has.
fn length(buf: &mut impl Buf) -> Result<usize, WireError> {
    let len = varint(buf)?;
    usize::try_from(len)
        .ok()
        .filter(|&len| len <= buf.remaining())
        .ok_or(WireError::Message("it ends within a field"))
}

fn skip(buf: &mut impl Buf, len: usize) -> Result<(), WireError> {
    if buf.remaining() < len {
        return Err(WireError::Message("it ends within a field"));
    }
    buf.advance(len);
    Ok(())
}

/// What stands before data of so many bytes; nothing before none, as protobuf has it.
fn head(len: usize) -> ([u8; HEAD], usize) {
    let mut head = [0; HEAD];
    if len == 0 {
        return (head, 0);
    }
    head[0] = TAG;
    let (mut rest, mut at) = (len, 1);
    while rest >= 0x80 {
        head[at] = rest as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    head[at] = rest as u8;
    (head, at + 1)
}

/// Frames as messages.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    pub longest: usize,
    /// Where the room of what is written goes.
    pub rooms: Arc<Rooms>,
}

impl Codec for Frames {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for Frames {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, frame: Bytes, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let (head, len) = head(frame.len());
        buf.reserve(len + frame.len());
        buf.put_slice(&head[..len]);
        buf.put_slice(&frame);
        self.rooms.release(frame.into());
        Ok(())
    }
}

impl Decoder for Frames {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let frame =
            decode_message(buf).map_err(|error| Status::invalid_argument(error.to_string()))?;
        if frame.len() > self.longest {
            let (len, longest) = (frame.len(), self.longest);
            let words = format!("a frame of {len} bytes, where {longest} is the most");
            return Err(Status::out_of_range(words));
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(data: &[u8]) -> Vec<u8> {
        let (head, len) = head(data.len());
        [&head[..len], data].concat()
    }

    #[test]
    fn lengths_are_written_as_protobuf_has_them() {
        assert_eq!(message(b""), b"");
        assert_eq!(message(b"a"), b"\x0a\x01a");
        assert_eq!(message(&[7; 300])[..4], [0x0a, 0xac, 0x02, 7]);
        assert_eq!(head(u32::MAX as usize), ([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], HEAD));
    }

    #[test]
    fn what_others_write_is_read() {
        let read = |mut bytes: &[u8]| decode_message(&mut bytes);
        // Fields 2 to 5, of each type, around data that are said twice.
        let fields = b"\x10\x96\x01\x0a\x01x\x19abcdefgh\x22\x02yz\x0a\x02ok\x2dabcd";
        assert_eq!(read(fields).unwrap(), "ok");
        // A length in more bytes than it takes.
        assert_eq!(read(b"\x0a\x81\x80\x00a").unwrap(), "a");
        for bad in [
            &b"\x0a"[..],
            b"\x0a\x02a",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x08\x01",
            b"\x02\x00",
            b"\x13",
            b"\x19abc",
            b"\x22\x7f",
        ] {
            assert!(matches!(read(bad), Err(WireError::Message(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_hello_is_of_one_form() {
        let hello = Hello { from: NodeId(7), to: NodeId(0), longest_frame: 9 };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello));
        for len in 0..HELLO {
            assert_eq!(Hello::decode(&bytes[..len]), Err(WireError::NotHello), "{len}");
        }
        let mut later = bytes.to_vec();
        later[8] = 2;
        later.push(0);
        assert_eq!(Hello::decode(&later), Err(WireError::Version { theirs: 2 }));
    }

    proptest! {
        #[test]
        fn frames_come_back(data in prop::collection::vec(any::<u8>(), 0..1000)) {
            let bytes = message(&data);
            prop_assert_eq!(decode_message(&mut &bytes[..]).unwrap(), data);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            begun in 0..=9usize,
        ) {
            if let Ok(data) = decode_message(&mut &bytes[..]) {
                prop_assert!(data.len() <= bytes.len());
            }
            let hello = [&b"lda-grpc\x01"[..begun], &bytes].concat();
            if let Ok(read) = Hello::decode(&hello) {
                prop_assert_eq!(Hello::decode(&read.encode()), Ok(read));
            }
        }
    }
}
