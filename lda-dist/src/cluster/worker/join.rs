//! How a worker brings its tokens' topics to servers.
//!
//! All that it has to say is about as much as it has. So it says a part, and more of it as servers have taken what was
//! said: at most [`MOST`] bytes wait or are underway, and one slice of one shard more.

use lda_core::counts::TopicIndex;
use lda_transport::rpc::RequestKind;

use super::{RequestPurpose, Worker};
use crate::cluster::Port;
use crate::documents::Documents;

/// Bytes that are said before servers have taken any.
pub(super) const MOST: usize = 16 << 20;

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Notes what there is to say of the shards that are here.
    pub(super) fn plan_join(&mut self) {
        let slices = self.placement.as_ref().map_or(0, |placement| placement.num_slices() as u16);
        self.to_join = (0..self.shards.len())
            .flat_map(|shard| (0..slices).map(move |slice| (shard, slice)))
            .collect();
        // What is not said yet is not done either.
        self.unacknowledged.insert(self.round, self.to_join.len());
    }

    /// Says as much of it as may be underway.
    pub(super) fn join(&mut self, port: &mut dyn Port) {
        while self.requests.bytes() < self.max_join_bytes {
            let Some((shard, slice)) = self.to_join.pop_front() else { return };
            let Some(placement) = &self.placement else { return };
            let mut body = Vec::new();
            self.shards[shard].join(&self.setup.spec, placement, slice, self.round, &mut body);
            let server = self.setup.server(placement.server(slice.into()));
            self.requests.send(
                port,
                server,
                RequestKind::Push,
                &body,
                RequestPurpose::Join(self.round),
            );
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;

    use lda_core::Corpus;
    use lda_transport::NodeId;
    use lda_transport::rpc::{Action, MessageBuf, Outcome, Overloaded, ReplyHandle, RequestId};

    use super::*;
    use crate::cluster::control::{Control, ROUND_DONE};
    use crate::cluster::{MASTER, Message, Setup};
    use crate::config::Options;
    use crate::documents::InMemory;
    use crate::placement::{DocumentLengths, WordStats};
    use crate::spec::ModelSpec;

    /// What was asked and has no answer.
    #[derive(Default)]
    pub(in super::super) struct Asked {
        joins: VecDeque<(RequestId, usize)>,
        told: Vec<u8>,
        others: usize,
        count: u64,
    }

    impl Port for Asked {
        fn ask(
            &mut self,
            peer: NodeId,
            _: RequestKind,
            draft: MessageBuf,
        ) -> Result<RequestId, Overloaded> {
            self.count += 1;
            let request = RequestId { peer, number: self.count };
            if peer == MASTER {
                self.told.push(draft.body()[0]);
            } else if Message::of(draft.body()) == Some(Message::Join) {
                self.joins.push_back((request, draft.body().len()));
            } else {
                self.others += 1;
            }
            Ok(request)
        }

        fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}
    }

    /// One worker, four shards and five partitions, and what it is told at the beginning of an attempt.
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
        let stored = InMemory::new(corpus, 4).unwrap();
        let mut worker = Worker::new(setup, 0, stored, None);
        worker.max_join_bytes = max_join_bytes;
        let start = move |attempt| {
            let words = words.clone();
            told(&Control::Start { attempt, epoch: 0, lengths, words })
        };
        (worker, start)
    }

    /// The master says so.
    pub(in super::super) fn told(control: &Control) -> Action {
        let reply_to = ReplyHandle { peer: MASTER, incarnation: 1, number: 1 };
        Action::Request { reply_to, kind: RequestKind::Push, body: control.encode(20, 50).into() }
    }

    fn done(request: RequestId) -> Action {
        Action::Completed { request, outcome: Outcome::Done(Vec::new().into()) }
    }

    /// A server may never answer what it was asked in an attempt before.
    #[test]
    fn what_was_asked_before_going_back_is_forgotten() {
        let (mut worker, start) = worker(1);
        let mut asked = Asked::default();
        worker.act(start(1), &mut asked).unwrap();
        let (before, _) = asked.joins.pop_front().unwrap();
        assert!(asked.joins.is_empty(), "one at a time");
        worker.act(start(2), &mut asked).unwrap();
        assert_eq!(asked.joins.len(), 1, "it does not wait for what is over");
        worker.act(done(before), &mut asked).unwrap();
        assert_eq!(asked.joins.len(), 1, "nor is that one of these");
        for left in (0..20).rev() {
            assert!(!asked.told.contains(&ROUND_DONE));
            let (request, _) = asked.joins.pop_front().unwrap();
            worker.act(done(request), &mut asked).unwrap();
            assert_eq!(asked.joins.len(), usize::from(left > 0));
        }
        assert!(asked.told.contains(&ROUND_DONE));
        assert_eq!(asked.others, 0);
    }

    #[test]
    fn no_more_is_said_at_once_than_may_be() {
        for (most, least_at_once) in [(1, 1), (400, 3), (MOST, 20)] {
            let (mut worker, start) = worker(most);
            let mut asked = Asked::default();
            worker.act(start(1), &mut asked).unwrap();
            let (mut joins, mut at_once) = (0, 0);
            while let Some((request, len)) = asked.joins.pop_front() {
                let all = len + asked.joins.iter().map(|join| join.1).sum::<usize>();
                let last = asked.joins.back().map_or(len, |join| join.1);
                assert!(all - last < most, "{all} bytes, {last} of them the last");
                at_once = at_once.max(1 + asked.joins.len());
                // Not before all are done.
                assert!(!asked.told.contains(&ROUND_DONE));
                worker.act(done(request), &mut asked).unwrap();
                joins += 1;
            }
            assert_eq!(joins, 20);
            assert!(at_once >= least_at_once, "{at_once}");
            assert_eq!(asked.others, 0);
            assert!(asked.told.contains(&ROUND_DONE));
        }
    }
}
