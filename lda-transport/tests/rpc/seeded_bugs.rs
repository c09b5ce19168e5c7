//! Bugs that are seeded without a change of the endpoints.

use std::collections::BTreeMap;

use lda_transport::{Frame, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Nodes restart with the same incarnation, and so execute requests again.
    Forgets,
    /// Nodes repeat pushes to a new incarnation that an earlier one may have executed.
    Resends,
    /// Some replies have the number of the request before.
    Crosses,
    /// The floor of requests is beyond their own number.
    RunsAhead,
    /// Replies have the number of another incarnation.
    NeverAnswers,
}

impl Bug {
    pub const ALL: [Self; 5] =
        [Self::Forgets, Self::Resends, Self::Crosses, Self::RunsAhead, Self::NeverAnswers];

    /// Returns the change that the bug makes to frames. Offsets are those of the header of a
    /// message.
    pub fn rewriting(self) -> Box<dyn FnMut(NodeId, NodeId, Frame) -> Frame> {
        const REQUEST: u8 = 3;
        const REPLY: u8 = 4;
        let mut last: BTreeMap<(NodeId, NodeId), [u8; 8]> = BTreeMap::new();
        Box::new(move |from, to, frame| {
            let mut bytes = frame.to_vec();
            match (self, frame[0]) {
                (Self::Crosses, REPLY) => {
                    let id: [u8; 8] = frame[24..32].try_into().unwrap();
                    if let Some(before) = last.insert((from, to), id) {
                        bytes[24..32].copy_from_slice(&before);
                    }
                }
                (Self::RunsAhead, REQUEST) => {
                    let id = u64::from_le_bytes(frame[24..32].try_into().unwrap());
                    bytes[32..40].copy_from_slice(&(id + 1).to_le_bytes());
                }
                (Self::NeverAnswers, REPLY) => bytes[16] ^= 1,
                _ => return frame,
            }
            Frame::from(bytes)
        })
    }
}

impl Bug {
    /// Returns the message with which the checks detect it.
    pub fn found_as(self) -> &'static str {
        match self {
            Self::Forgets | Self::Resends => "was executed twice",
            Self::Crosses => "has the reply to another request",
            Self::RunsAhead | Self::NeverAnswers => "was made after the faults had ended",
        }
    }
}
