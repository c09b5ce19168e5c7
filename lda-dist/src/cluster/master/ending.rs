//! End of a run: the rows of the model are collected, the last epoch is written, and all nodes are released.

use std::sync::Arc;

use lda_transport::rpc::{RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::rounds::Rounds;
use super::{EndedEpoch, Master, RequestPurpose, Step, unexpected};
use crate::cluster::collected_counts::CollectedCounts;
use crate::cluster::control::Control;
use crate::cluster::{Failed, MASTER, Port};
use crate::wire::RowCode;

impl Master {
    /// Ends the run after its last round; first collects the rows, if the run keeps a model.
    pub(super) fn end_run(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        // They may have been collected for the report of this epoch.
        if !self.setup.collect_model || self.model.is_some() {
            self.keep_last(port);
            return Ok(());
        }
        self.collect(port)
    }

    /// Collects all rows.
    fn collect(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let (topics, words) = (self.setup.spec.topics(), self.setup.spec.words());
        self.rounds.collecting = Some(CollectedCounts::new(topics as usize, words as usize));
        self.request_slice(0, port)
    }

    /// Reports the epoch that has ended, after all rows are collected if the report has them. Then the run
    /// goes on.
    pub(super) fn report_epoch(
        &mut self,
        ended: EndedEpoch,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        if self.setup.collect_evaluated && self.setup.evaluates(ended.report.epoch) {
            self.ended = Some(ended);
            return self.collect(port);
        }
        self.go_on_after(ended, port)
    }

    /// All rows are collected: for a report, or for the model at the end of the run.
    fn note_collected(
        &mut self,
        counts: CollectedCounts,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let counts = Arc::new(counts);
        let Some(mut ended) = self.ended.take() else {
            self.model = Some(counts);
            self.keep_last(port);
            return Ok(());
        };
        if ended.report.epoch >= self.last_epoch() && self.setup.collect_model {
            self.model = Some(Arc::clone(&counts));
        }
        ended.report.counts = Some(counts);
        self.go_on_after(ended, port)
    }

    fn go_on_after(&mut self, ended: EndedEpoch, port: &mut dyn Port) -> Result<(), Failed> {
        let EndedEpoch { report, found, delta } = ended;
        self.fruitless = 0;
        self.mid_epoch.clear();
        self.roster.note_reported(report.epoch);
        self.reports.push_back(report);
        self.go_on(&found, delta, port)
    }

    /// Requests the rows of a slice; after the last one all are collected. The rows must sum to C_k.
    pub(super) fn request_slice(&mut self, slice: u16, port: &mut dyn Port) -> Result<(), Failed> {
        let Some(placement) = &self.placement else { return Ok(()) };
        if usize::from(slice) == placement.num_slices() {
            let Rounds { collecting, totals, .. } = &mut self.rounds;
            let collected = collecting.take().filter(|counts| counts.add_up_to(totals));
            let what = || unexpected(MASTER, "rows that do not add up to the totals".to_owned());
            return self.note_collected(collected.ok_or_else(what)?, port);
        }
        self.step = Step::Collecting(slice);
        let server = self.setup.server(placement.server(slice.into()));
        let rows = self.encode(&Control::Rows { attempt: self.attempt, slice });
        self.requests.send(port, server, RequestKind::Pull, &rows, RequestPurpose::Rows);
        Ok(())
    }

    /// Collects the rows of a slice.
    pub(super) fn collect_slice(
        &mut self,
        slice: u16,
        mut rows: &[u8],
        request: RequestId,
    ) -> Result<(), Failed> {
        let malformed = |what: String| unexpected(request.peer, format!("rows: {what}"));
        let (Some(placement), Some(collected)) = (&self.placement, &mut self.rounds.collecting)
        else {
            return Ok(());
        };
        let (partition, topics) = placement.slice(slice.into(), self.setup.spec.topics());
        let code = RowCode::new(topics.end - topics.start);
        let mut row: Vec<(u32, u32)> = Vec::new();
        for word in placement.words(partition) {
            code.decode(&mut rows, &mut row).map_err(|error| malformed(error.to_string()))?;
            collected.add(word, topics.start, &row);
        }
        match rows.len() {
            0 => Ok(()),
            bytes => Err(malformed(format!("{bytes} bytes after the last row"))),
        }
    }

    /// Releases nodes that have to stop. The others wait for them to come back; if the master has
    /// to stop, the whole run does.
    pub(super) fn release_stopping(&mut self, port: &mut dyn Port) {
        let stopping = std::mem::take(&mut self.roster.stopping);
        if stopping.contains(&MASTER) {
            self.stopped = Some(self.kept());
            if self.step == Step::Waiting {
                // The transport reports the end to the nodes that are connected.
                self.step = Step::Finished;
            } else {
                self.finish(port);
            }
        } else if !stopping.is_empty() {
            self.step = Step::Waiting;
            self.clear_requests(port);
            for node in stopping {
                self.roster.remove_node(node);
                if self.setup.is_elastic() && !self.is_server(node) {
                    self.workers.note_absent(node);
                }
                let finish = self.encode(&self.finish_message(true));
                self.requests.send(port, node, RequestKind::Push, &finish, RequestPurpose::Leave);
            }
        }
    }

    /// Lets workers write the topics of the last epoch, if the run has checkpoints and none of that epoch, and
    /// then ends the run. So the last checkpoint is that of the model. The run ends also if a worker cannot
    /// write them.
    fn keep_last(&mut self, port: &mut dyn Port) {
        let round = self.round();
        let is_kept = self.kept() >= round.epoch || !self.checkpoint.has_storage();
        if is_kept || self.setup.checkpoint_every == 0 {
            return self.finish(port);
        }
        self.step = Step::KeepingLast(self.workers.nodes().len() as u32);
        self.ask_to_write(round, port);
    }

    /// Ends the run at all nodes.
    pub(super) fn finish(&mut self, port: &mut dyn Port) {
        let nodes: Vec<NodeId> = self.roster.ready.iter().copied().collect();
        self.step = Step::Finishing(nodes.len() as u32);
        let finish = self.encode(&self.finish_message(self.stopped.is_some()));
        let finish = Frame::from(finish);
        for node in nodes {
            let purpose = RequestPurpose::Finish;
            self.requests.broadcast(port, node, RequestKind::Push, &finish, purpose);
        }
    }

    /// Ends the run without the acknowledgement of a node that is lost.
    pub(in crate::cluster) fn finish_without(&mut self, peer: NodeId, port: &mut dyn Port) {
        if let Step::Finishing(left) = self.step
            && self.requests.awaits(peer)
        {
            self.requests.give_up(port, peer);
            self.note_finished(left);
        }
    }

    /// A node has acknowledged the end of the run, of those that had to.
    pub(super) fn note_finished(&mut self, left: u32) {
        self.step = if left == 1 { Step::Finished } else { Step::Finishing(left - 1) };
    }

    pub(super) fn finish_message(&self, stopped: bool) -> Control {
        let latest = self.checkpoint.latest();
        let (kept, needed) = (latest.epoch, latest.first_needed());
        Control::Finish { attempt: self.attempt, kept, needed, stopped }
    }
}
