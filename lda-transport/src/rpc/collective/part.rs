//! Encoding of a part: the body of its request.
//!
//! ```text
//!  0  group                       u64
//!  8  operation                   u64
//! 16  kind; element; direct; 0    u8 each
//! 20  root's rank                 u32
//! 24  length of the whole         u64
//! 32  origin                      u32
//! 36  index of the part           u32
//! 40  length of a full part       u32
//! 44  0                           u32
//! 48  fingerprint of the members  u64
//! 56  bytes of the part
//! ```
//!
//! Kind 5, followed by zeros up to byte 56, is a notice that the group is broken; the bytes are the
//! reason, a text.
//!
//! The whole is the content that is sent, or the vector that is added. The origin is the rank of
//! the member that owns the content or gets the sums; in a barrier 0 is sent up the tree and 1
//! down.

use std::fmt;

use super::OperationId;
use crate::frame::Frame;
use crate::rpc::message_buf::MessageBuf;
use crate::transport::NodeId;

/// Length of the header of a part.
pub(super) const TAG: usize = 56;

/// Properties of an operation that must be equal at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Kind of operation, from 1 to 4.
    pub kind: u8,
    /// [`Element`](super::Element) of a sum, or 0.
    pub element: u8,
    pub root: u32,
    /// Length of the vector that is added, or 0.
    pub vector: u64,
    pub part_len: u32,
    pub members: u64,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            1 => write!(f, "a barrier")?,
            2 => write!(f, "a broadcast from rank {}", self.root)?,
            3 => write!(f, "a sum of {} bytes of element {}", self.vector, self.element)?,
            4 => write!(f, "a gathering")?,
            _ => write!(f, "an unknown operation")?,
        }
        write!(f, " in parts of {} bytes among members {:016x}", self.part_len, self.members)
    }
}

/// A part of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub origin: u32,
    pub index: u32,
    /// Whether it is sent directly to its receiver, which does not send it on.
    pub direct: bool,
    /// Length of the content, or of the vector that is added.
    pub length: u64,
    pub payload: Frame,
}

/// Returns a fingerprint of the members and their order (FNV-1a).
pub(super) fn fingerprint(members: &[NodeId]) -> u64 {
    let bytes = members.iter().flat_map(|member| member.0.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(super) fn encode(id: OperationId, shape: &Shape, part: &Part) -> MessageBuf {
    let mut tag = [0; TAG];
    let mut put =
        |place: usize, bytes: &[u8]| tag[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &id.group.to_le_bytes());
    put(8, &id.number.to_le_bytes());
    put(16, &[shape.kind, shape.element, u8::from(part.direct), 0]);
    put(20, &shape.root.to_le_bytes());
    put(24, &part.length.to_le_bytes());
    put(32, &part.origin.to_le_bytes());
    put(36, &part.index.to_le_bytes());
    put(40, &shape.part_len.to_le_bytes());
    put(48, &shape.members.to_le_bytes());
    let mut message = MessageBuf::new();
    message.reserve(TAG + part.payload.len());
    message.extend_from_slice(&tag);
    message.extend_from_slice(&part.payload);
    message
}

/// Kind of a notice.
const NOTICE: u8 = 5;

/// Encodes a notice that the group of an operation is broken.
pub(super) fn notice(id: OperationId, words: &str) -> MessageBuf {
    let shape = Shape { kind: NOTICE, element: 0, root: 0, vector: 0, part_len: 0, members: 0 };
    let payload = Frame::from(words.as_bytes().to_vec());
    encode(id, &shape, &Part { origin: 0, index: 0, direct: false, length: 0, payload })
}

pub(super) fn read_notice(body: &Frame) -> Option<(OperationId, String)> {
    let tag = body.first_chunk::<TAG>()?;
    let [group, number] = [0, 8].map(|place| tag[place..].first_chunk().copied());
    if tag[16] != NOTICE || tag[17..] != [0; TAG - 17] {
        return None;
    }
    let id = OperationId { group: u64::from_le_bytes(group?), number: u64::from_le_bytes(number?) };
    Some((id, String::from_utf8_lossy(&body[TAG..]).into_owned()))
}

pub(super) fn decode(body: &Frame) -> Option<(OperationId, Shape, Part)> {
    let tag = body.first_chunk::<TAG>()?;
    let u64_at = |place: usize| tag[place..].first_chunk().copied().map(u64::from_le_bytes);
    let u32_at = |place: usize| tag[place..].first_chunk().copied().map(u32::from_le_bytes);
    let [kind, element, direct, zero] = *tag[16..].first_chunk()?;
    if !matches!(kind, 1..=4) || direct > 1 || zero != 0 || u32_at(44)? != 0 {
        return None;
    }
    let id = OperationId { group: u64_at(0)?, number: u64_at(8)? };
    let length = u64_at(24)?;
    let vector = if kind == 3 { length } else { 0 };
    let (root, part_len, members) = (u32_at(20)?, u32_at(40)?, u64_at(48)?);
    let shape = Shape { kind, element, root, vector, part_len, members };
    let (origin, index, direct) = (u32_at(32)?, u32_at(36)?, direct == 1);
    let payload = body.slice_from(TAG);
    Some((id, shape, Part { origin, index, direct, length, payload }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_round_trip() {
        let id = OperationId { group: 1 << 60, number: 7 };
        let members = fingerprint(&[NodeId(1), NodeId(2)]);
        assert_ne!(members, fingerprint(&[NodeId(2), NodeId(1)]));
        let shape = Shape { kind: 3, element: 2, root: 5, vector: 99, part_len: 64, members };
        let payload = Frame::from(vec![1, 2, 3]);
        let part = Part { origin: 3, index: 9, direct: true, length: 99, payload };
        let body = Frame::from(encode(id, &shape, &part).body().to_vec());
        assert_eq!(decode(&body), Some((id, shape, part)));
        for len in 0..TAG {
            assert_eq!(decode(&Frame::from(body[..len].to_vec())), None);
            assert_eq!(read_notice(&Frame::from(body[..len].to_vec())), None);
        }
        let told = Frame::from(notice(id, "why").body().to_vec());
        assert_eq!(read_notice(&told), Some((id, "why".to_owned())));
        assert_eq!((decode(&told), read_notice(&body)), (None, None));
        for (place, value) in [(16, 0), (16, 5), (18, 2), (19, 1), (44, 1)] {
            let mut other = body.to_vec();
            other[place] = value;
            assert_eq!(decode(&other.into()), None, "{place}");
        }
    }
}
