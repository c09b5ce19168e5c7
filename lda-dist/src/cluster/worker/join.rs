//! Joining: a worker sends its shards' counts to the servers.
//!
//! All counts together take about as many bytes as the shards do. So the worker sends a part, and
//! more as servers acknowledge: at most [`MAX_JOIN_BYTES`] wait or are in flight, plus one slice of
//! one shard.

use std::collections::VecDeque;

/// Once this many bytes of requests are in flight, no further slice is sent.
pub(super) const MAX_JOIN_BYTES: usize = 16 << 20;

/// Slices that shards have not joined yet.
#[derive(Debug)]
pub(super) struct JoinQueue {
    /// (shard, slice).
    left: VecDeque<(usize, u16)>,
    max_bytes: usize,
}

impl JoinQueue {
    /// Creates a queue of all slices of all shards.
    pub fn new(shards: usize, slices: u16, max_bytes: usize) -> Self {
        let of_shard = |shard| (0..slices).map(move |slice| (shard, slice));
        Self { left: (0..shards).flat_map(of_shard).collect(), max_bytes }
    }

    /// Number of requests that are not sent yet.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Removes the next shard and slice, unless too many bytes are in flight.
    pub fn pop(&mut self, bytes_in_flight: usize) -> Option<(usize, u16)> {
        if bytes_in_flight < self.max_bytes { self.left.pop_front() } else { None }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lda_core::Corpus;
    use lda_transport::NodeId;
    use lda_transport::rpc::{
        Action, MessageBuf, Outcome, Overloaded, ReplyHandle, RequestId, RequestKind,
    };

    use super::super::Worker;
    use super::*;
    use crate::cluster::Port;
    use crate::cluster::control::{Control, ROUND_DONE};
    use crate::cluster::{MASTER, Message, Setup};
    use crate::config::Options;
    use crate::documents::InMemory;
    use crate::placement::{DocumentLengths, WordStats};
    use crate::snapshot::Latest;
    use crate::spec::ModelSpec;

    /// Records the requests of a worker, and answers none.
    #[derive(Default)]
    pub(in super::super) struct Recorder {
        joins: VecDeque<(RequestId, usize)>,
        /// First byte of each message to the master.
        pub(in super::super) to_master: Vec<u8>,
        others: usize,
        count: u64,
    }

    impl Port for Recorder {
        fn ask(
            &mut self,
            peer: NodeId,
            _: RequestKind,
            draft: MessageBuf,
        ) -> Result<RequestId, Overloaded> {
            self.count += 1;
            let request = RequestId { peer, number: self.count };
            if peer == MASTER {
                self.to_master.push(draft.body()[0]);
            } else if Message::of(draft.body()) == Some(Message::Join) {
                self.joins.push_back((request, draft.body().len()));
            } else {
                self.others += 1;
            }
            Ok(request)
        }

        fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn refuse(&mut self, _: NodeId, _: String) {}
    }

    /// A worker with four shards and five partitions, and the message that starts an attempt.
    pub(in super::super) fn worker(
        max_join_bytes: usize,
    ) -> (Worker<u16, InMemory>, impl Fn(u32) -> Action) {
        let documents = (0..40).map(|d| (0..30).map(move |t| (d * 7 + t * t) % 50));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let options = Options { shards: 4, partitions: 5, servers: 2, ..Options::default() };
        let setup = Setup::new(ModelSpec::new(20, 50, 0.1.into(), 0.1, 1).unwrap(), 1)
            .options(options)
            .epochs(1)
            .evaluate_every(0)
            .prefetch(0);
        let (words, lengths) = (WordStats::of(&corpus), DocumentLengths::of(&corpus));
        let (stored, assigned) = (InMemory::new(corpus, 4).unwrap(), setup.assigned());
        let mut worker = Worker::new(setup, 0, stored, None);
        worker.max_join_bytes = max_join_bytes;
        let start = move |attempt| {
            let (words, assigned) = (words.clone(), assigned.clone());
            let checkpoint = Latest::default();
            from_master(&Control::Start {
                attempt,
                epoch: 0,
                rounds: 0,
                checkpoint,
                assigned,
                lengths,
                words,
            })
        };
        (worker, start)
    }

    /// A message from the master.
    pub(in super::super) fn from_master(control: &Control) -> Action {
        let reply_to = ReplyHandle { peer: MASTER, incarnation: 1, number: 1 };
        Action::Request { reply_to, kind: RequestKind::Push, body: control.encode(20, 50).into() }
    }

    fn done(request: RequestId) -> Action {
        Action::Completed { request, outcome: Outcome::Done(Vec::new().into()) }
    }

    /// A server may never reply to a request of an earlier attempt.
    #[test]
    fn a_restart_forgets_earlier_requests() {
        let (mut worker, start) = worker(1);
        let mut port = Recorder::default();
        worker.act(start(1), &mut port).unwrap();
        let (before, _) = port.joins.pop_front().unwrap();
        assert!(port.joins.is_empty(), "one at a time");
        worker.act(start(2), &mut port).unwrap();
        assert_eq!(port.joins.len(), 1, "it does not wait for the earlier attempt");
        worker.act(done(before), &mut port).unwrap();
        assert_eq!(port.joins.len(), 1, "an earlier reply starts nothing");
        for left in (0..20).rev() {
            assert!(!port.to_master.contains(&ROUND_DONE));
            let (request, _) = port.joins.pop_front().unwrap();
            worker.act(done(request), &mut port).unwrap();
            assert_eq!(port.joins.len(), usize::from(left > 0));
        }
        assert!(port.to_master.contains(&ROUND_DONE));
        assert_eq!(port.others, 0);
    }

    #[test]
    fn bytes_in_flight_are_bounded() {
        for (most, least_at_once) in [(1, 1), (400, 3), (MAX_JOIN_BYTES, 20)] {
            let (mut worker, start) = worker(most);
            let mut port = Recorder::default();
            worker.act(start(1), &mut port).unwrap();
            let (mut joins, mut at_once) = (0, 0);
            while let Some((request, len)) = port.joins.pop_front() {
                let all = len + port.joins.iter().map(|join| join.1).sum::<usize>();
                let last = port.joins.back().map_or(len, |join| join.1);
                assert!(all - last < most, "{all} bytes, {last} of them the last");
                at_once = at_once.max(1 + port.joins.len());
                // The joining is reported after the last acknowledgement only.
                assert!(!port.to_master.contains(&ROUND_DONE));
                worker.act(done(request), &mut port).unwrap();
                joins += 1;
            }
            assert_eq!(joins, 20);
            assert!(at_once >= least_at_once, "{at_once}");
            assert_eq!(port.others, 0);
            assert!(port.to_master.contains(&ROUND_DONE));
        }
    }
}
