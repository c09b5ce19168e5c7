//! Rounds of one attempt, as the master sees them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use lda_transport::NodeId;

use super::super::collected_counts::CollectedCounts;
use super::super::epoch_stats::EpochStats;
use super::super::{Failed, MASTER, Setup};
use crate::aggregate::AggregateRequest;
use crate::spec::{JOINING, Round};

/// State of one attempt. A restart drops it.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The oldest open round, or the joining.
    pub oldest: Round,
    /// The last round for which workers were sent a start message.
    pub begun: Round,
    /// Rounds to start one after the other, each with the delta of C_k since the one before.
    pub to_begin: VecDeque<(Round, Vec<(u32, i32)>)>,
    /// Workers that have finished each open round.
    done: BTreeMap<Round, BTreeSet<NodeId>>,
    /// C_k after the last round that has ended.
    pub totals: Vec<i64>,
    /// Delta of C_k in the round that is ending.
    delta: Vec<i64>,
    /// Statistics of the current epoch.
    pub epoch_stats: EpochStats,
    /// Rows that are collected after the last round.
    pub collected: Option<CollectedCounts>,
}

impl Rounds {
    /// An attempt before any shard has joined.
    pub fn new(joining: Round, topics: u32) -> Self {
        Self {
            oldest: joining,
            begun: joining,
            to_begin: VecDeque::new(),
            done: BTreeMap::new(),
            totals: vec![0; topics as usize],
            delta: vec![0; topics as usize],
            epoch_stats: EpochStats::default(),
            collected: None,
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

    /// Adds the delta of the round that has ended to C_k; returns it as a row.
    pub fn apply_delta(&mut self) -> Result<Vec<(u32, i32)>, Failed> {
        for (total, delta) in self.totals.iter_mut().zip(&self.delta) {
            *total += delta;
        }
        // Parts of a hot word's row are on several servers, none of which can check the sum.
        let more: i64 = self.delta.iter().sum();
        if self.oldest.number != JOINING && more != 0 {
            let what = format!("deltas that add {more} tokens in {}", self.oldest);
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

    /// Moves on to the next round, and queues the rounds that may start now, up to the last one of
    /// `last_epoch`.
    pub fn advance(&mut self, delta: Vec<(u32, i32)>, setup: &Setup, last_epoch: u32) {
        let rounds = setup.options.rounds;
        self.oldest = self.oldest.next(rounds);
        // After the joining several rounds start with the same counts; later one starts at a time.
        let mut delta = Some(delta);
        let open = setup.options.sync().open_from(self.oldest, rounds);
        for next in open.skip_while(|open| *open <= self.begun) {
            if next.epoch > last_epoch {
                break;
            }
            self.to_begin.push_back((next, delta.take().unwrap_or_default()));
        }
    }

    /// Aggregates to find when the oldest open round has ended.
    pub fn wanted(&self, setup: &Setup, last_epoch: u32) -> AggregateRequest {
        let Round { epoch, number, .. } = self.oldest;
        let is_last = self.oldest.is_last(setup.options.rounds);
        let evaluation = is_last && number != JOINING && setup.evaluates(epoch);
        // A run that is started again after its last epoch has only that epoch's end.
        let top_words = evaluation || is_last && epoch >= last_epoch;
        AggregateRequest { evaluation, top_words: if top_words { setup.top_words } else { 0 } }
    }
}
