//! Progress of an attempt: rounds end and start, and epochs are reported.

use std::sync::Arc;

use lda_transport::rpc::RequestKind;

use super::rounds::Rounds;
use super::{EndedEpoch, Master, RequestPurpose, Step, unexpected};
use crate::aggregate::Aggregates;
use crate::cluster::control::Control;
use crate::cluster::epoch_stats::EpochStats;
use crate::cluster::{Failed, MASTER, Port, Setup};
use crate::spec::Round;
use crate::wire::RowCode;

impl Master {
    /// All servers have ended the round: reports it, and starts the next one or ends the run.
    pub(super) fn next_round(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let found = self.rounds.epoch_stats.take_found();
        let delta = self.rounds.apply_delta(&found)?;
        let spec = &self.priors.spec;
        let ended = self.rounds.oldest;
        let (epoch, joining) = (ended.epoch, ended.is_joining());
        let last = ended.is_last(self.setup.options.rounds);
        let all = RowCode::new(spec.topics()).size(&delta) as u64;
        let num_others = u64::from(self.setup.options.servers) + self.workers.nodes().len() as u64;
        let Rounds { epoch_stats, totals, .. } = &mut self.rounds;
        epoch_stats.bytes.totals += all * num_others;
        if self.checkpoint.record() {
            self.workers.ignore_none();
        }
        if !last {
            return self.go_on(&found, delta, port);
        }
        let kept = self.checkpoint.latest().epoch;
        let mut report = epoch_stats.report(Arc::clone(&found), ended, kept, spec, totals);
        report.workers = self.workers.nodes().len() as u32;
        let topics = EpochStats::topics(&found, epoch, spec, totals);
        self.topics = topics.or(self.topics.take());
        *epoch_stats = EpochStats::default();
        if joining {
            return self.go_on(&found, delta, port);
        }
        self.report_epoch(EndedEpoch { report, found, delta }, port)
    }

    /// Starts the next round after one has ended and is reported, or ends the run.
    pub(super) fn go_on(
        &mut self,
        found: &Aggregates,
        delta: Vec<(u32, i32)>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let ended = self.rounds.oldest;
        let (epoch, last) = (ended.epoch, ended.is_last(self.setup.options.rounds));
        if last && epoch >= self.last_epoch() {
            return self.end_run(port);
        }
        if last {
            let learnt = self.priors.learn(epoch, found, &self.rounds.totals);
            learnt.map_err(|what| unexpected(MASTER, what))?;
        }
        if self.nodes_change(ended) && self.rounds.begun == ended {
            if last {
                self.step = Step::Keeping(self.workers.nodes().len() as u32);
                self.ask_to_write(ended, port);
                return Ok(());
            }
            if self.changes_after(ended) {
                return self.keep_round(ended, delta, port);
            }
        }
        self.begin_next(ended, delta, port)
    }

    /// Returns whether nodes have to stop, or workers have come. They wait for the end of the epoch, unless
    /// workers [change](Self::changes_after) before, and no other epoch starts.
    fn nodes_change(&self, ended: Round) -> bool {
        !ended.is_joining() && (!self.roster.stopping.is_empty() || self.workers_change())
    }

    /// Starts the rounds that may start after one that has ended; `delta` is that of C_k in it.
    pub(super) fn begin_next(
        &mut self,
        ended: Round,
        delta: Vec<(u32, i32)>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let changes = self.nodes_change(ended);
        let last_epoch = if changes { self.rounds.begun.epoch } else { self.last_epoch() };
        // An epoch whose priors are learnt starts when the one before has ended everywhere.
        let current = ended.next(self.setup.options.rounds).epoch;
        let last_epoch = self.setup.spec.updates().next_update(current, last_epoch);
        self.rounds.advance(delta, &self.setup, last_epoch)?;
        self.advance(port);
        Ok(())
    }

    /// Starts a round, if one is queued; otherwise ends one, if all workers have finished it.
    pub(super) fn advance(&mut self, port: &mut dyn Port) {
        let Some((round, delta)) = self.rounds.to_begin.front().cloned() else {
            self.step = Step::Working;
            self.try_to_end(port);
            return;
        };
        self.step = Step::Beginning(self.setup.options.servers);
        if round.number == 0 {
            self.priors.begin_epoch(&self.rounds.totals);
        }
        let begin = self.begin_message(round, delta);
        self.send_servers(&begin, RequestKind::Push, RequestPurpose::Begin, port);
    }

    /// Ends the oldest open round, if all workers have finished it.
    pub(super) fn try_to_end(&mut self, port: &mut dyn Port) {
        if !self.rounds.try_to_end(self.workers.nodes().len() as u32) {
            return;
        }
        self.step = Step::Ending(self.setup.options.servers);
        let wanted = self.rounds.wanted(&self.setup, self.last_epoch());
        let Setup { aggregates, spec, .. } = &self.setup;
        self.rounds.epoch_stats.ask(aggregates, wanted, spec);
        let end = Control::End { round: self.round(), wanted };
        self.send_servers(&end, RequestKind::Call, RequestPurpose::End, port);
    }
}
