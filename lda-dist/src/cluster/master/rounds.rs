//! Rounds: one begins when servers have begun it, and ends when all workers are done with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use lda_transport::rpc::RequestKind;

use super::super::collected_counts::CollectedCounts;
use super::super::control::Control;
use super::super::epoch_stats::EpochStats;
use super::super::{Failed, MASTER, Port};
use super::{Master, RequestPurpose, Step};
use crate::aggregate::AggregateRequest;
use crate::config::Options;
use crate::spec::{JOINING, Round};
use crate::wire::RowCode;

impl Master {
    pub(super) fn next_round(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        for (total, gained) in self.totals.iter_mut().zip(&self.gained) {
            *total += gained;
        }
        let Round { epoch, number, attempt } = self.round;
        let Options { rounds, .. } = self.setup.options;
        let joining = number == JOINING;
        let last = self.round.is_last(rounds);
        // Of a word that lies on several servers none of them can tell.
        let more: i64 = self.gained.iter().sum();
        if !joining && more != 0 {
            let what = format!("all topics together have gained {more} tokens in {}", self.round);
            return Err(Failed::Message { peer: MASTER, what });
        }
        let gained = self.gained_row()?;
        let all = RowCode::new(self.setup.spec.topics()).size(&gained) as u64;
        self.epoch_stats.bytes.totals += all * u64::from(self.num_others());
        let found = self.epoch_stats.take_found();
        if last && !joining {
            self.fruitless = 0;
            let (spec, found) = (&self.setup.spec, Arc::clone(&found));
            let report = self.epoch_stats.report(found, self.round, self.kept, spec, &self.totals);
            self.reports.push_back(report);
        }
        if last {
            let topics = EpochStats::topics(&found, epoch, &self.setup.spec, &self.totals);
            self.topics = topics.or(self.topics.take());
            self.epoch_stats = EpochStats::default();
        }
        if last && epoch >= self.setup.epochs {
            if self.setup.collect_model {
                let (topics, words) = (self.totals.len(), self.words.num_words());
                self.collected = Some(CollectedCounts::new(topics, words));
                return self.request_slice(0, port);
            }
            self.finish(port);
            return Ok(());
        }
        // Those who have to end wait for an epoch's end, and nobody begins another.
        let is_stopping = !joining && !self.stopping.is_empty();
        if last && is_stopping && self.begun == self.round {
            self.step = Step::Keeping(self.setup.workers);
            let keep = Control::Keep { attempt, epoch };
            self.send_workers(&keep, RequestKind::Call, RequestPurpose::Keep, port);
            return Ok(());
        }
        self.round = self.round.next(rounds);
        // After the joining several rounds start with the same counts; later one starts at a time.
        let mut gained = Some(gained);
        let open = self.setup.options.sync().open_from(self.round, rounds);
        for next in open.skip_while(|open| *open <= self.begun) {
            if next.epoch > self.setup.epochs || is_stopping && next.number == 0 {
                break;
            }
            self.to_begin.push_back((next, gained.take().unwrap_or_default()));
        }
        self.advance(port);
        Ok(())
    }

    /// Begins a round, if one is to begin, or ends one, if all are done with it.
    pub(super) fn advance(&mut self, port: &mut dyn Port) {
        let Some((round, gained)) = self.to_begin.front().cloned() else {
            self.step = Step::Working;
            self.try_to_end(port);
            return;
        };
        self.step = Step::Beginning(self.setup.options.servers);
        let begin = Control::Begin { round, kept: self.kept, gained };
        self.send_servers(&begin, RequestKind::Push, RequestPurpose::Begin, port);
    }

    /// Ends the first round that is on, if all workers are done with it.
    pub(super) fn try_to_end(&mut self, port: &mut dyn Port) {
        let round = self.round;
        let done = self.done.get(&round).map_or(0, BTreeSet::len);
        if done < self.setup.workers as usize {
            return;
        }
        self.done.remove(&round);
        self.note_kept();
        self.gained.fill(0);
        self.step = Step::Ending(self.setup.options.servers);
        let wanted = self.wanted();
        self.epoch_stats.ask(&self.setup.aggregates, wanted, &self.setup.spec);
        let end = Control::End { round, wanted };
        self.send_servers(&end, RequestKind::Call, RequestPurpose::End, port);
    }

    /// What is to be found of all rows when the round that is on has ended.
    fn wanted(&self) -> AggregateRequest {
        let Round { epoch, number, .. } = self.round;
        let is_last = self.round.is_last(self.setup.options.rounds);
        let judged = is_last && number != JOINING && self.setup.evaluates(epoch);
        // A run that begins again when all is done has only its end.
        let told = judged || is_last && epoch >= self.setup.epochs;
        AggregateRequest {
            evaluation: judged,
            top_words: if told { self.setup.top_words } else { 0 },
        }
    }

    fn gained_row(&self) -> Result<Vec<(u32, i32)>, Failed> {
        let there = self.gained.iter().enumerate().filter(|(_, by)| **by != 0);
        let gained: Result<Vec<(u32, i32)>, _> =
            there.map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by))).collect();
        gained.map_err(|_| Failed::Message {
            peer: MASTER,
            what: "a topic gains more than 2^31 tokens in a round".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_transport::NodeId;
    use lda_transport::rpc::{Action, MessageBuf, Outcome, Overloaded, ReplyHandle, RequestId};

    use super::*;
    use crate::cluster::Setup;
    use crate::placement::DocumentLengths;
    use crate::spec::ModelSpec;

    const SERVER: NodeId = NodeId(1);
    const WORKER: NodeId = NodeId(2);

    /// What was asked.
    #[derive(Default)]
    struct Asked(Vec<RequestId>);

    impl Port for Asked {
        fn ask(
            &mut self,
            peer: NodeId,
            _: RequestKind,
            _: MessageBuf,
        ) -> Result<RequestId, Overloaded> {
            let request = RequestId { peer, number: 1 + self.0.len() as u64 };
            self.0.push(request);
            Ok(request)
        }

        fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}
    }

    /// Of a run of one server and one worker, which are there.
    fn master(asked: &mut Asked) -> Master {
        let corpus = Corpus::from_tokens([[0u32, 1, 1]]).unwrap();
        let cut = Options { shards: 1, partitions: 1, rounds: 1, ..Options::default() };
        let setup = Setup::new(ModelSpec::new(3, 2, 0.1.into(), 0.1, 1).unwrap(), 1)
            .options(Options { servers: 1, ..cut })
            .epochs(9)
            .evaluate_every(0)
            .checkpoint_every(1)
            .prefetch(0);
        let mut master = Master::new(setup, None);
        let word_stats = vec![(0, 1, 1), (1, 2, 1)];
        let words = Control::Words { shard: 0, lengths: DocumentLengths::of(&corpus), word_stats };
        let here = Control::Ready { attempt: 0 };
        for (peer, control) in [(WORKER, &words), (WORKER, &here), (SERVER, &here)] {
            master.act(told(peer, control), asked).unwrap();
        }
        assert_eq!(master.step, Step::Starting(1));
        end(&mut master, asked, &[]).unwrap();
        assert_eq!((master.step, master.round), (Step::Working, Round::joining(0, 1)));
        master
    }

    fn told(peer: NodeId, control: &Control) -> Action {
        let reply_to = ReplyHandle { peer, incarnation: 1, number: 1 };
        Action::Request { reply_to, kind: RequestKind::Push, body: control.encode(3, 2).into() }
    }

    /// What was asked last is done.
    fn end(master: &mut Master, asked: &mut Asked, reply: &[u8]) -> Result<(), Failed> {
        let (request, outcome) = (*asked.0.last().unwrap(), Outcome::Done(reply.to_vec().into()));
        master.act(Action::Completed { request, outcome }, asked)
    }

    /// Else a run would go on from topics that nobody has, and what there is would be taken away.
    #[test]
    fn no_worker_keeps_an_epoch_to_come() {
        for (kept, is_legal) in [(0, true), (1, false), (u32::MAX, false)] {
            let mut asked = Asked::default();
            let mut master = master(&mut asked);
            let done = Control::RoundDone { round: Round::joining(0, 1), kept, epoch_stats: None };
            let ended = master.act(told(WORKER, &done), &mut asked);
            assert_eq!(ended.is_ok(), is_legal, "{kept}: {ended:?}");
            if let Err(failed) = ended {
                assert!(failed.to_string().contains(&format!("has kept epoch {kept}")));
            }
        }
    }

    /// Else a round would end without a worker.
    #[test]
    fn a_server_is_not_done_in_place_of_a_worker() {
        let mut asked = Asked::default();
        let mut master = master(&mut asked);
        let done = Control::RoundDone { round: Round::joining(0, 1), kept: 0, epoch_stats: None };
        let failed = master.act(told(SERVER, &done), &mut asked).unwrap_err();
        assert!(failed.to_string().contains("that it is done"), "{failed}");
        assert_eq!(master.step, Step::Working);
    }

    #[test]
    fn nor_when_it_has_to_keep_one() {
        for (reply, is_legal) in [(&[2, 0, 0, 0][..], true), (&[3, 0, 0, 0], false), (&[2], false)]
        {
            let mut asked = Asked::default();
            let mut master = master(&mut asked);
            master.round = Round { epoch: 2, number: 0, attempt: 1 };
            master.step = Step::Keeping(1);
            let keep = Control::Keep { attempt: 1, epoch: 2 };
            master.send_workers(&keep, RequestKind::Call, RequestPurpose::Keep, &mut asked);
            let ended = end(&mut master, &mut asked, reply);
            assert_eq!(ended.is_ok(), is_legal, "{reply:?}: {ended:?}");
        }
    }
}
