//! Rounds of one attempt, as the master sees them.
//!
//! The delta of C_k in a round is that of the servers' rows, which they report when the round ends. If
//! [rows may stay](crate::held_rows) at workers, servers get changes later; then the delta is what workers
//! report, and whenever servers must have all changes, their rows must add up to C_k.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use lda_transport::NodeId;

use super::super::collected_counts::CollectedCounts;
use super::super::epoch_stats::EpochStats;
use super::super::{Failed, MASTER, Setup};
use crate::aggregate::{AggregateRequest, Aggregates, TopicTotals};
use crate::config::Options;
use crate::plan::{rows_may_stay, workers_report};
use crate::spec::Round;

/// State of one attempt. A restart drops it.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The oldest open round, or the joining.
    pub oldest: Round,
    /// The last round for which workers were sent a start message.
    pub begun: Round,
    /// Rounds to start one after the other, each with the delta of C_k since the one before.
    pub to_begin: VecDeque<(Round, Vec<(u32, i32)>)>,
    /// Delta of C_k in rounds that have ended and of which no node knows, as no round has started since.
    unsent: Vec<(u32, i32)>,
    /// Workers that have finished each open round.
    done: BTreeMap<Round, BTreeSet<NodeId>>,
    /// C_k after the last round that has ended.
    pub totals: Vec<i64>,
    /// Delta of C_k in the servers' rows in the round that is ending.
    delta: Vec<i64>,
    /// Delta of C_k in each open round, as workers report it, if rows may stay at them.
    by_workers: BTreeMap<Round, Vec<i64>>,
    /// Statistics of the current epoch.
    pub epoch_stats: EpochStats,
    /// Rows that the master is collecting.
    pub collecting: Option<CollectedCounts>,
}

impl Rounds {
    /// An attempt before any shard has joined.
    pub fn new(joining: Round, topics: u32) -> Self {
        Self {
            oldest: joining,
            begun: joining,
            to_begin: VecDeque::new(),
            unsent: Vec::new(),
            done: BTreeMap::new(),
            totals: vec![0; topics as usize],
            delta: vec![0; topics as usize],
            by_workers: BTreeMap::new(),
            epoch_stats: EpochStats::default(),
            collecting: None,
        }
    }

    /// Open rounds.
    fn open(&self) -> RangeInclusive<Round> {
        self.oldest..=self.begun
    }

    /// The last round that has started, or is queued to start.
    pub fn last_begun(&self) -> Round {
        self.to_begin.back().map_or(self.begun, |(round, _)| *round)
    }

    /// A worker has finished a round. Returns false if the round is not open, or if the worker has
    /// finished it before.
    pub fn note_done(&mut self, worker: NodeId, round: Round) -> bool {
        self.open().contains(&round) && self.done.entry(round).or_default().insert(worker)
    }

    /// Starts to end the oldest open round if all workers have finished it; returns whether they
    /// have.
    pub fn try_to_end(&mut self, workers: u32) -> bool {
        let done = self.done.get(&self.oldest).map_or(0, BTreeSet::len);
        if done < workers as usize {
            return false;
        }
        self.done.remove(&self.oldest);
        self.delta.fill(0);
        true
    }

    /// Adds a server's delta of C_k in the round that is ending.
    pub fn add_delta(&mut self, delta: Vec<(u32, i32)>) {
        for (topic, by) in delta {
            self.delta[topic as usize] += i64::from(by);
        }
    }

    /// Adds a worker's delta of C_k in an open round.
    ///
    /// # Errors
    /// The reason why a worker cannot have sent it.
    pub fn add_worker_delta(
        &mut self,
        options: &Options,
        round: Round,
        delta: &[(u32, i32)],
    ) -> Result<(), String> {
        let may_be = workers_report(options, round);
        if delta.iter().map(|&(_, by)| i64::from(by)).sum::<i64>() != 0
            || !may_be && !delta.is_empty()
        {
            return Err(format!("changes of C_k that no sampling makes, in {round}"));
        }
        if may_be {
            let topics = self.totals.len();
            let by_topic = self.by_workers.entry(round).or_insert_with(|| vec![0; topics]);
            delta.iter().for_each(|&(topic, by)| by_topic[topic as usize] += i64::from(by));
        }
        Ok(())
    }

    /// Adds the delta of the round that has ended to C_k; returns it as a row.
    ///
    /// # Errors
    /// [`Failed::Message`] if sampling cannot have made the delta, or if the servers' rows that are in `found`
    /// do not add up to C_k afterwards.
    pub fn apply_delta(&mut self, found: &Aggregates) -> Result<Vec<(u32, i32)>, Failed> {
        if let Some(by_workers) = self.by_workers.remove(&self.oldest) {
            self.delta = by_workers;
        }
        for (total, delta) in self.totals.iter_mut().zip(&self.delta) {
            *total += delta;
        }
        // Parts of a hot word's row are on several servers, none of which can check the sum.
        let more: i64 = self.delta.iter().sum();
        if !self.oldest.is_joining() && more != 0 {
            let what = format!("deltas that add {more} tokens in {}", self.oldest);
            return Err(Failed::Message { peer: MASTER, what });
        }
        let of_rows = found.get::<TopicTotals>(TopicTotals::NAME).map(TopicTotals::counts);
        let is_total = |(&of_rows, &total): (&u64, &i64)| i64::try_from(of_rows) == Ok(total);
        if of_rows.is_some_and(|of_rows| !of_rows.iter().zip(&self.totals).all(is_total)) {
            let what =
                format!("rows that do not add up to the totals after epoch {}", self.oldest.epoch);
            return Err(Failed::Message { peer: MASTER, what });
        }
        let non_zero = self.delta.iter().enumerate().filter(|(_, by)| **by != 0);
        let row: Result<Vec<(u32, i32)>, _> =
            non_zero.map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by))).collect();
        row.map_err(|_| Failed::Message {
            peer: MASTER,
            what: "a round that adds 2^31 tokens to a topic".to_owned(),
        })
    }

    /// Keeps a delta until the next round starts.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn hold(&mut self, delta: Vec<(u32, i32)>) -> Result<(), Failed> {
        self.unsent = sum(std::mem::take(&mut self.unsent), delta)?;
        Ok(())
    }

    /// Moves on to the next round, and queues the rounds that may start now, up to the last one of
    /// `last_epoch`.
    ///
    /// # Errors
    /// [`Failed::Message`] if a topic has gained or lost 2^31 tokens since a round has started.
    pub fn advance(
        &mut self,
        delta: Vec<(u32, i32)>,
        setup: &Setup,
        last_epoch: u32,
    ) -> Result<(), Failed> {
        let rounds = setup.options.rounds;
        self.oldest = self.oldest.next(rounds);
        self.hold(delta)?;
        // After the joining, and before an epoch that waits for the one before, several rounds start with
        // the same counts; else one starts at a time.
        let open = setup.options.sync.open_from(self.oldest, rounds);
        for next in open.skip_while(|open| *open <= self.begun) {
            if next.epoch > last_epoch {
                break;
            }
            self.to_begin.push_back((next, std::mem::take(&mut self.unsent)));
        }
        Ok(())
    }

    /// Returns whether servers must have all changes of rows when this round ends, because they evaluate the
    /// rows then, β is learnt from them, or the run ends.
    pub fn needs_all_rows(&self, round: Round, setup: &Setup, last_epoch: u32) -> bool {
        let is_due = setup.evaluates(round.epoch)
            || round.epoch >= last_epoch
            || setup.spec.updates().learns_beta_after(round.epoch);
        is_due && round.is_last(setup.options.rounds)
    }

    /// Aggregates to find when the oldest open round has ended.
    pub fn wanted(&self, setup: &Setup, last_epoch: u32) -> AggregateRequest {
        let Round { epoch, .. } = self.oldest;
        let is_last = self.oldest.is_last(setup.options.rounds);
        let evaluation = is_last && !self.oldest.is_joining() && setup.evaluates(epoch);
        // A run that is started again after its last epoch has only that epoch's end.
        let top_words = evaluation || is_last && epoch >= last_epoch;
        AggregateRequest {
            evaluation,
            top_words: if top_words { setup.top_words } else { 0 },
            word_histogram: is_last && setup.spec.updates().learns_beta_after(epoch),
            totals: rows_may_stay(&setup.options)
                && self.needs_all_rows(self.oldest, setup, last_epoch),
        }
    }
}

/// The sum of two deltas of C_k, topics ascending.
fn sum(mut delta: Vec<(u32, i32)>, more: Vec<(u32, i32)>) -> Result<Vec<(u32, i32)>, Failed> {
    delta.extend(more);
    delta.sort_unstable_by_key(|entry| entry.0);
    let sums = delta.chunk_by(|a, b| a.0 == b.0).map(|of_topic| {
        let by = of_topic.iter().map(|entry| i64::from(entry.1)).sum::<i64>();
        i32::try_from(by).map(|by| (of_topic[0].0, by))
    });
    let sums: Result<Vec<(u32, i32)>, _> = sums.collect();
    let mut sums = sums.map_err(|_| Failed::Message {
        peer: MASTER,
        what: "rounds that add 2^31 tokens to a topic".to_owned(),
    })?;
    sums.retain(|entry| entry.1 != 0);
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Aggregate;
    use crate::config::Routing;
    use crate::spec::ModelSpec;
    use crate::sync::SyncMode;

    fn pulled(rounds: u16) -> Setup {
        let options = Options { shards: 2, partitions: 4, rounds, ..Options::default() };
        let spec = ModelSpec::new(3, 9, 0.1.into(), 0.1, 0).unwrap();
        let options = Options { routing: Routing::Pull, ..options };
        Setup::new(spec, 1).options(options).epochs(2).evaluate_every(0)
    }

    fn round(epoch: u32, number: u16) -> Round {
        Round { epoch, number, attempt: 1 }
    }

    #[test]
    fn servers_get_changes_later_but_not_too_late() {
        let setup = pulled(2);
        for (by_servers, agree) in [([4, 5, 6], true), ([4, 6, 5], false), ([5, 5, 5], false)] {
            let mut rounds = Rounds::new(Round::joining(0, 1), 3);
            rounds.totals = vec![5; 3];
            for (at, delta) in
                [(round(1, 0), vec![(0, -1), (1, 1)]), (round(2, 1), vec![(1, -1), (2, 1)])]
            {
                rounds.oldest = at;
                rounds.add_worker_delta(&setup.options, at, &delta).unwrap();
                let wanted = rounds.wanted(&setup, 2);
                assert_eq!(wanted.totals, at.epoch == 2, "servers do not have the first changes");
                let mut found = Aggregates::new(wanted, &setup.spec);
                found.add_row(0, 0, &[0, 1, 2].map(|topic| (topic, by_servers[topic as usize])));
                let applied = rounds.apply_delta(&found).map_err(|error| error.to_string());
                match applied {
                    Ok(applied) => assert!(applied == delta && (agree || at.epoch == 1)),
                    Err(error) => assert!(!agree && error.contains("after epoch 2"), "{error}"),
                }
            }
            assert_eq!(rounds.totals, [4, 5, 6]);
        }
    }

    #[test]
    fn deltas_of_rounds_without_a_successor_are_sent_with_the_next() {
        let options =
            Options { sync: SyncMode::rounds(1), rounds: 3, partitions: 4, ..Options::default() };
        let setup = pulled(3).options(options);
        let mut rounds = Rounds::new(Round::joining(0, 1), 3);
        rounds.advance(vec![(0, 5)], &setup, 1).unwrap();
        let taken = |rounds: &mut Rounds| -> Vec<_> {
            let all: Vec<_> = rounds.to_begin.drain(..).collect();
            rounds.begun = all.last().map_or(rounds.begun, |(round, _)| *round);
            all
        };
        let joined = [(round(1, 0), vec![(0, 5)]), (round(1, 1), vec![])];
        assert_eq!(taken(&mut rounds), joined);
        rounds.advance(vec![(0, -1), (1, 1)], &setup, 1).unwrap();
        assert_eq!(taken(&mut rounds), [(round(1, 2), vec![(0, -1), (1, 1)])]);
        // The next epoch waits for the end of this one.
        rounds.advance(vec![(0, -1), (2, 1)], &setup, 1).unwrap();
        assert_eq!(taken(&mut rounds), []);
        rounds.advance(vec![(0, 1), (1, -2), (2, 1)], &setup, 2).unwrap();
        let both = [(round(2, 0), vec![(1, -2), (2, 2)]), (round(2, 1), vec![])];
        assert_eq!(taken(&mut rounds), both);
    }

    #[test]
    fn changes_that_no_sampling_makes_are_refused() {
        let mut rounds = Rounds::new(Round::joining(0, 1), 3);
        let mut refused = |setup: &Setup, at, delta: &[(u32, i32)]| {
            rounds.add_worker_delta(&setup.options, at, delta).is_err()
        };
        assert!(!refused(&pulled(2), round(1, 0), &[(0, -2), (1, 2)]));
        assert!(refused(&pulled(2), round(1, 0), &[(0, -2), (1, 1)]));
        assert!(refused(&pulled(2), Round::joining(0, 1), &[(0, -2), (1, 2)]));
        // Two shards sample a word at the same time, so no rows stay.
        assert!(refused(&pulled(1), round(1, 0), &[(0, -2), (1, 2)]));
    }
}
