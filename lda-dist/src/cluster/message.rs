//! Which message is which, for those who look at what travels.

use super::control;
use crate::request;

/// What a request of a node says or asks, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// To the master: words of a shard.
    Words,
    /// To the master: this node is here.
    Ready,
    /// To the master: this worker is done with a round.
    RoundDone,
    /// To the master: this worker cannot go on, and the attempt is to begin again.
    RestartRequest,
    /// To the master: this node has to end.
    Stop,
    /// To the master: this node has given up.
    Failed,
    /// To all: an attempt begins.
    Start,
    /// To all: a round begins.
    Begin,
    /// To servers: a round has ended.
    End,
    /// To workers: keep the topics of this epoch.
    Keep,
    /// To servers: the rows of a partition.
    Rows,
    /// To all: it was the last round, or this node's.
    Finish,
    /// To servers: what a shard has.
    Join,
    /// To servers: how long rows are.
    Sizes,
    /// To servers: rows.
    Pull,
    /// To servers: new topics for tokens.
    Push,
    /// To servers: what rows have gained.
    PushDeltas,
}

impl Message {
    /// All of them, in order.
    pub const ALL: [Self; 17] = [
        Self::Words,
        Self::Ready,
        Self::RoundDone,
        Self::RestartRequest,
        Self::Stop,
        Self::Failed,
        Self::Start,
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
    ];

    /// What a request's bytes say that it is; none where it is none. What follows the first may be wrong.
    pub fn of(request: &[u8]) -> Option<Self> {
        let kind = *request.first()?;
        Some(match kind {
            control::WORDS => Self::Words,
            control::READY => Self::Ready,
            control::ROUND_DONE => Self::RoundDone,
            control::RESTART_REQUEST => Self::RestartRequest,
            control::STOP => Self::Stop,
            control::FAILED => Self::Failed,
            control::START => Self::Start,
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
