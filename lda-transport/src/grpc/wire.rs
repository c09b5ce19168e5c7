//! Wire format, for implementations in other languages; `peers.proto` in the same directory has it
//! too.
//!
//! A message is the protobuf `message Frame { bytes data = 1; }`. It is encoded and decoded by
//! hand: the build needs no protobuf compiler, and a decoded frame shares the buffer that it was
//! received in.
//!
//! ```
//! use lda_transport::NodeId;
//! use lda_transport::grpc::wire::{Hello, WireError, decode_message};
//!
//! let mut message: &[u8] = b"\x0a\x05a row";
//! assert_eq!(decode_message(&mut message)?, "a row");
//!
//! let (from, to, max_frame_len, token) = (NodeId(2), NodeId(1), 1 << 20, Default::default());
//! let hello = Hello { from, to, max_frame_len, token };
//! assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
//! assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(WireError::NotHello));
//! # Ok::<(), WireError>(())
//! ```

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use thiserror::Error;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::token::{DIGEST_LEN, Token};
use crate::buffer_pool::BufferPool;
use crate::transport::NodeId;

/// Name of the gRPC service.
pub const SERVICE: &str = "lda.transport.v1.Peers";
/// Path of its only method.
pub const METHOD: &str = "/lda.transport.v1.Peers/Exchange";
/// Version of the format. Both sides must have the same.
pub const VERSION: u8 = 2;

const MAGIC: [u8; 8] = *b"lda-grpc";
/// Length of an encoded hello, in bytes.
const HELLO_LEN: usize = 60;
/// Protobuf tag of field 1, length-delimited.
const TAG: u8 = 0x0a;
/// Maximum bytes of a message before its data: the tag, and a 32-bit length in groups of 7 bits.
pub(super) const MAX_PREFIX_LEN: usize = 6;

/// Error of decoding a hello or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The first message is not a hello.
    #[error("the first message is not a hello: check that the other end is a node")]
    NotHello,
    /// The hello has another version of the format.
    #[error(
        "the peer uses protocol version {theirs} and this node {VERSION}: run the same release on both"
    )]
    Version {
        /// Version of the peer.
        theirs: u8,
    },
    /// The message is not a valid `Frame`; contains the reason.
    #[error("a message is not a valid `Frame` ({0})")]
    Message(&'static str),
}

/// First message of each side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Node that sends the hello.
    pub from: NodeId,
    /// Node that the sender expects the receiver to be.
    pub to: NodeId,
    /// Longest frame that the sender accepts, in bytes.
    pub max_frame_len: u64,
    /// Token of the sender.
    pub token: Token,
}

impl Hello {
    /// Encodes the hello.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(HELLO_LEN);
        bytes.put_slice(&MAGIC);
        bytes.put_slice(&[VERSION, 0, 0, 0]);
        bytes.put_u32_le(self.from.0);
        bytes.put_u32_le(self.to.0);
        bytes.put_u64_le(self.max_frame_len);
        bytes.put_slice(self.token.digest());
        bytes.into()
    }

    /// Decodes a hello. One of a later version may be longer; its version is still reported.
    ///
    /// # Errors
    /// [`WireError::NotHello`] or [`WireError::Version`].
    pub fn decode(mut bytes: &[u8]) -> Result<Self, WireError> {
        let magic = bytes.try_get_u64().map_err(|_| WireError::NotHello)?;
        if magic.to_be_bytes() != MAGIC {
            return Err(WireError::NotHello);
        }
        let version = bytes.try_get_u8().map_err(|_| WireError::NotHello)?;
        if version != VERSION {
            return Err(WireError::Version { theirs: version });
        }
        if bytes.len() != HELLO_LEN - 9 {
            return Err(WireError::NotHello);
        }
        bytes.advance(3);
        let (from, to) = (NodeId(bytes.get_u32_le()), NodeId(bytes.get_u32_le()));
        let max_frame_len = bytes.get_u64_le();
        let mut digest = [0; DIGEST_LEN];
        bytes.copy_to_slice(&mut digest);
        Ok(Self { from, to, max_frame_len, token: Token::from_digest(digest) })
    }
}

/// Decodes the data of a `Frame` that fills the buffer.
///
/// As protobuf requires, unknown fields are skipped, and the last of several `data` fields counts.
///
/// # Errors
/// [`WireError::Message`].
pub fn decode_message(buf: &mut impl Buf) -> Result<Bytes, WireError> {
    let mut data = Bytes::new();
    while buf.has_remaining() {
        let tag = varint(buf)?;
        match (tag >> 3, tag & 7) {
            (0, _) => return Err(WireError::Message("a field has number 0")),
            (1, 2) => {
                let len = length(buf)?;
                data = buf.copy_to_bytes(len);
            }
            (1, _) => return Err(WireError::Message("the data field is not of type bytes")),
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
        let byte = buf.try_get_u8().map_err(|_| WireError::Message("it ends inside a number"))?;
        // Bits beyond the 64th are dropped, as in other implementations of protobuf.
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(WireError::Message("a number is too long"))
}

/// Decodes a length of at most the remaining bytes.
fn length(buf: &mut impl Buf) -> Result<usize, WireError> {
    let len = varint(buf)?;
    usize::try_from(len)
        .ok()
        .filter(|&len| len <= buf.remaining())
        .ok_or(WireError::Message("it ends inside a field"))
}

fn skip(buf: &mut impl Buf, len: usize) -> Result<(), WireError> {
    if buf.remaining() < len {
        return Err(WireError::Message("it ends inside a field"));
    }
    buf.advance(len);
    Ok(())
}

/// Encodes the tag and the length of `len` data bytes, and returns how many bytes they take. Empty
/// data have none, as protobuf omits default values.
fn prefix(len: usize) -> ([u8; MAX_PREFIX_LEN], usize) {
    let mut prefix = [0; MAX_PREFIX_LEN];
    if len == 0 {
        return (prefix, 0);
    }
    prefix[0] = TAG;
    let (mut rest, mut at) = (len, 1);
    while rest >= 0x80 {
        prefix[at] = rest as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    prefix[at] = rest as u8;
    (prefix, at + 1)
}

/// Codec of tonic that encodes frames as messages.
#[derive(Clone, Debug)]
pub(super) struct FrameCodec {
    /// Longest frame, in bytes.
    pub longest: usize,
    /// Pool that encoded frames are returned to.
    pub buffers: Arc<BufferPool>,
}

impl Codec for FrameCodec {
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

impl Encoder for FrameCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, frame: Bytes, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let (prefix, len) = prefix(frame.len());
        buf.reserve(len + frame.len());
        buf.put_slice(&prefix[..len]);
        buf.put_slice(&frame);
        self.buffers.release(frame.into());
        Ok(())
    }
}

impl Decoder for FrameCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let frame =
            decode_message(buf).map_err(|error| Status::invalid_argument(error.to_string()))?;
        if frame.len() > self.longest {
            let (len, longest) = (frame.len(), self.longest);
            let message = format!("a frame has {len} bytes; the maximum is {longest}");
            return Err(Status::out_of_range(message));
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(data: &[u8]) -> Vec<u8> {
        let (prefix, len) = prefix(data.len());
        [&prefix[..len], data].concat()
    }

    #[test]
    fn lengths_are_encoded_as_varints() {
        assert_eq!(message(b""), b"");
        assert_eq!(message(b"a"), b"\x0a\x01a");
        assert_eq!(message(&[7; 300])[..4], [0x0a, 0xac, 0x02, 7]);
        assert_eq!(
            prefix(u32::MAX as usize),
            ([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], MAX_PREFIX_LEN)
        );
    }

    #[test]
    fn unknown_fields_and_malformed_messages() {
        let read = |mut bytes: &[u8]| decode_message(&mut bytes);
        // Fields 2 to 5, one per wire type, around a data field that occurs twice.
        let fields = b"\x10\x96\x01\x0a\x01x\x19abcdefgh\x22\x02yz\x0a\x02ok\x2dabcd";
        assert_eq!(read(fields).unwrap(), "ok");
        // A length encoded in more bytes than necessary.
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
    fn a_hello_has_one_encoding() {
        let token = Token::new("sixteen bytes or more").unwrap();
        let hello = Hello { from: NodeId(7), to: NodeId(0), max_frame_len: 9, token };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello));
        for len in 0..HELLO_LEN {
            assert_eq!(Hello::decode(&bytes[..len]), Err(WireError::NotHello), "{len}");
        }
        let mut later = bytes.to_vec();
        later[8] = 3;
        later.push(0);
        assert_eq!(Hello::decode(&later), Err(WireError::Version { theirs: 3 }));
    }

    proptest! {
        #[test]
        fn messages_round_trip(data in prop::collection::vec(any::<u8>(), 0..1000)) {
            let bytes = message(&data);
            prop_assert_eq!(decode_message(&mut &bytes[..]).unwrap(), data);
        }

        #[test]
        fn any_bytes_are_decoded_or_rejected(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            begun in 0..=9usize,
        ) {
            if let Ok(data) = decode_message(&mut &bytes[..]) {
                prop_assert!(data.len() <= bytes.len());
            }
            let hello = [&b"lda-grpc\x02"[..begun], &bytes].concat();
            if let Ok(read) = Hello::decode(&hello) {
                prop_assert_eq!(Hello::decode(&read.encode()), Ok(read));
            }
        }
    }
}
