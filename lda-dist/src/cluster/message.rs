//! Kinds of messages, for observers of the traffic.

use super::control;
use crate::request;

/// Kind of a request between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// To the master: word counts of a shard.
    Words,
    /// To the master: this node is ready.
    Ready,
    /// To the master: this worker has finished a round.
    RoundDone,
    /// To the master: this worker cannot continue the attempt, and requests a restart.
    RestartRequest,
    /// To the master: this worker cannot read the snapshots from which the attempt starts.
    Unreadable,
    /// To the master: this node has to stop.
    Stop,
    /// To the master: this node has failed.
    Failed,
    /// To all: an attempt starts.
    Start,
    /// To a worker: request for the word counts of a shard of another worker.
    Count,
    /// To all: a round starts.
    Begin,
    /// To servers: a round ends.
    End,
    /// To workers: write the topics of this epoch.
    Keep,
    /// To servers: request for the rows of a slice.
    Rows,
    /// To all: the run is over, or this node is released.
    Finish,
    /// To servers: a shard's words and counts.
    Join,
    /// To servers: request for sizes of rows.
    Sizes,
    /// To servers: request for rows.
    Pull,
    /// To servers: request to sample tokens.
    Push,
    /// To servers: deltas of rows.
    PushDeltas,
    /// To servers: rows, and deltas of others.
    PushRows,
}

impl Message {
    /// All kinds, in order.
    pub const ALL: [Self; 20] = [
        Self::Words,
        Self::Ready,
        Self::RoundDone,
        Self::RestartRequest,
        Self::Unreadable,
        Self::Stop,
        Self::Failed,
        Self::Start,
        Self::Count,
        Self::Begin,
        Self::End,
        Self::Keep,
        Self::Rows,
        Self::Finish,
        Self::Join,
        Self::Sizes,
        Self::Pull,
        Self::Push,
        Self::PushDeltas,
        Self::PushRows,
    ];

    /// Returns the kind that a request's first byte names. The rest may be malformed.
    pub fn of(request: &[u8]) -> Option<Self> {
        let kind = *request.first()?;
        Some(match kind {
            control::WORDS => Self::Words,
            control::READY => Self::Ready,
            control::ROUND_DONE => Self::RoundDone,
            control::RESTART_REQUEST => Self::RestartRequest,
            control::UNREADABLE => Self::Unreadable,
            control::STOP => Self::Stop,
            control::FAILED => Self::Failed,
            control::START => Self::Start,
            control::COUNT => Self::Count,
            control::BEGIN => Self::Begin,
            control::END => Self::End,
            control::KEEP => Self::Keep,
            control::ROWS => Self::Rows,
            control::FINISH => Self::Finish,
            _ => match request::Kind::of(kind)? {
                request::Kind::Join => Self::Join,
                request::Kind::Sizes => Self::Sizes,
                request::Kind::Pull => Self::Pull,
                request::Kind::Push => Self::Push,
                request::Kind::PushDeltas => Self::PushDeltas,
                request::Kind::PushRows => Self::PushRows,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_first_byte_is_one_message() {
        let found: Vec<Message> = (0..=u8::MAX).filter_map(|byte| Message::of(&[byte])).collect();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, Message::ALL);
        assert_eq!(Message::of(&[]), None);
        assert_eq!(Message::of(&[control::KEEP, 9]), Some(Message::Keep));
        let header = request::RequestHeader {
            shard: 1,
            slice: 2,
            round: crate::spec::Round { epoch: 3, number: 4, attempt: 5 },
        };
        let mut bytes = Vec::new();
        request::begin(request::Kind::Push, &header, &mut bytes);
        assert_eq!(Message::of(&bytes), Some(Message::Push));
    }
}
