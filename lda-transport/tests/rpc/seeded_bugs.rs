//! Mistakes made on purpose, without a change of the endpoints.

use std::collections::BTreeMap;

use lda_transport::{Frame, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Nodes that start anew as the incarnation that they were, and so do again what they have done.
    Forgets,
    /// Nodes that ask a new incarnation again what the one before may have done.
    Resends,
    /// Replies of which some are to the request before.
    Crosses,
    /// Requests that say that their sender waits for none of them.
    RunsAhead,
    /// Replies that are said to be of the next incarnation, which has done nothing.
    NeverAnswers,
}

impl Bug {
    pub const ALL: [Self; 5] =
        [Self::Forgets, Self::Resends, Self::Crosses, Self::RunsAhead, Self::NeverAnswers];

    /// What it does to frames. Places are those of the head of a message.
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
    /// What the checks say of it.
    pub fn found_as(self) -> &'static str {
        match self {
            Self::Forgets | Self::Resends => "was done twice",
            Self::Crosses => "has the reply to another request",
            Self::RunsAhead | Self::NeverAnswers => "was asked when all was healed",
        }
    }
}
