//! Monitoring of a node: progress on the terminal, the log, and the HTTP status page.

use std::path::Path;

use lda_core::corpus::Vocabulary;
use lda_core::counts::TopicIndex;
use lda_dist::cluster::{Documents, EpochTimer, Peers, Report, Role, Setup};
use lda_examples::program::ProgramArgs;

use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::held_out::HeldOutDocuments;
use crate::commands::cluster::log::Log;
use crate::commands::cluster::loss_notes::LossNotes;
use crate::commands::cluster::progress::Progress;
use crate::commands::cluster::role::{NodeName, RoleName};
#[cfg(feature = "status")]
use crate::commands::cluster::status::Status;
use crate::commands::cluster::stop_rule::StopRule;

/// Monitor of a node, or of all nodes of a process.
#[derive(Debug)]
pub struct Monitor<'a> {
    program: &'a ProgramArgs,
    /// Only at the master.
    progress: Option<Progress<'a>>,
    log: Option<Log>,
    loss_notes: LossNotes,
    timer: EpochTimer,
    stop_rule: StopRule,
    held_out: Option<HeldOutDocuments>,
    /// Vocabulary, and number of topics to show.
    #[cfg(feature = "status")]
    names: (Option<&'a Vocabulary>, usize),
    #[cfg(feature = "status")]
    status: Option<Status>,
}

impl<'a> Monitor<'a> {
    /// Prints a line for people.
    pub fn note(&self, line: &str) {
        self.program.note(line);
    }

    /// Monitor of a node of a run over `tokens` tokens. `address` is that of the status page, `log` the
    /// log of a master.
    ///
    /// # Errors
    /// If the address cannot be listened on, the build has no status page, or the log cannot be written.
    pub fn new(
        program: &'a ProgramArgs,
        setup: &Setup,
        node: NodeName,
        tokens: u64,
        address: Option<&str>,
        log: Option<&Path>,
    ) -> Result<Self, ClusterError> {
        let is_master = node.role == RoleName::Master;
        let open = |path: &Path| {
            let error = |error| ClusterError::Log { path: path.to_owned(), error };
            Log::open(path, tokens).map_err(error)
        };
        let monitor = Self {
            program,
            #[cfg(feature = "status")]
            status: Self::listen(program, setup, node, tokens, address)?,
            progress: is_master.then(|| Progress::new(program, setup, tokens)),
            log: log.filter(|_| is_master).map(open).transpose()?,
            loss_notes: LossNotes::default(),
            timer: EpochTimer::default(),
            stop_rule: StopRule::default(),
            held_out: None,
            #[cfg(feature = "status")]
            names: (None, 0),
        };
        #[cfg(not(feature = "status"))]
        if address.is_some() {
            let why = "--status: this build has no status page; build it with --features status";
            return Err(ClusterError::Usage(why.to_owned()));
        }
        Ok(monitor)
    }

    /// Sets the rule by which the run ends early.
    pub fn stopping(mut self, rule: StopRule) -> Self {
        self.stop_rule = rule;
        self
    }

    /// Sets the held-out documents, whose perplexity is found for reports with counts.
    pub fn evaluating(mut self, held_out: Option<HeldOutDocuments>) -> Self {
        self.held_out = held_out;
        self
    }

    /// Sets the vocabulary and the number of topics to show.
    #[cfg_attr(not(feature = "status"), expect(unused_variables, unused_mut))]
    pub fn naming(mut self, vocabulary: Option<&'a Vocabulary>, topics: usize) -> Self {
        #[cfg(feature = "status")]
        {
            self.names = (vocabulary, topics);
        }
        self
    }

    #[cfg(feature = "status")]
    fn listen(
        program: &ProgramArgs,
        setup: &Setup,
        node: NodeName,
        tokens: u64,
        address: Option<&str>,
    ) -> Result<Option<Status>, ClusterError> {
        let Some(address) = address else { return Ok(None) };
        let status = Status::new(setup, node, tokens);
        let error = |error| ClusterError::Listen { address: address.to_owned(), error };
        let address = status.listen(address).map_err(error)?;
        program.note(&format!("status page: http://{address}/"));
        Ok(Some(status))
    }

    /// Handles the master's report of an epoch.
    pub fn report(&mut self, report: &Report) {
        let time = self.timer.end_epoch();
        let found = self.held_out.as_ref().map(|held_out| held_out.after(report));
        let perplexity = found.and_then(|found| match found {
            Ok(perplexity) => perplexity,
            Err(error) => {
                self.program.note(&format!("held-out documents: {error}"));
                None
            }
        });
        if let Some(progress) = &mut self.progress {
            progress.report(report, perplexity);
        }
        self.stop_rule.report(report, time, perplexity);
        // A failed log is reported once, and the run continues.
        if let Some(error) =
            self.log.as_mut().and_then(|log| log.add(report, time, perplexity).err())
        {
            self.program
                .note(&format!("cannot write the log any more, the run continues: {error}"));
            self.log = None;
        }
        #[cfg(feature = "status")]
        if let Some(status) = &self.status {
            status.report(report);
        }
    }

    /// Polls the node for reports, errors and, if it has a process of its own, lost peers.
    pub fn poll<T: TopicIndex, D: Documents>(
        &mut self,
        role: &mut Role<T, D>,
        peers: Option<&Peers>,
    ) {
        let trouble = match role {
            Role::Master(master) => {
                while let Some(report) = master.report() {
                    self.report(&report);
                }
                self.timer.observe(master.round());
                if self.stop_rule.is_due() {
                    master.end_early();
                }
                #[cfg(feature = "status")]
                if let Some((status, topics)) = self.status.as_ref().zip(master.topics()) {
                    status.set_topics(topics, self.names.0, self.names.1);
                }
                master.trouble()
            }
            Role::Worker(worker) => worker.trouble(),
            Role::Server(_) => None,
        };
        if let Some(trouble) = trouble {
            self.program.note(&trouble.to_string());
        }
        let lost: Vec<_> = peers.iter().flat_map(|peers| peers.lost()).collect();
        let is_connected = |peer| peers.is_some_and(|peers| peers.is_connected(peer));
        for line in self.loss_notes.lines(role.setup(), &lost, is_connected) {
            self.program.note(&line);
        }
        #[cfg(feature = "status")]
        if let Some(status) = self.status.as_ref().filter(|status| status.is_due()) {
            status.update(role.state());
            if let Some(peers) = peers {
                status.set_peers(role.setup(), peers, &lost);
            }
        }
    }
}
