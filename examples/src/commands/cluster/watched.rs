//! Who is told how a node stands: the person at the terminal, and whoever asks over HTTP.

use std::path::Path;

use lda_core::corpus::Vocabulary;
use lda_core::counts::TopicIndex;
use lda_dist::cluster::{Documents, Report, Role, Setup};
use lda_examples::program::ProgramArgs;

use crate::commands::cluster::args::RoleName;
use crate::commands::cluster::config::Which;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::log::Log;
use crate::commands::cluster::progress::Progress;
#[cfg(feature = "status")]
use crate::commands::cluster::status::Status;

/// A node, or all of them, as others see it.
#[derive(Debug)]
pub struct Watched<'a> {
    program: &'a ProgramArgs,
    /// Of the master.
    progress: Option<Progress<'a>>,
    log: Option<Log>,
    /// What the words of topics are called, and of how many topics they are shown.
    #[cfg(feature = "status")]
    names: (Option<&'a Vocabulary>, usize),
    #[cfg(feature = "status")]
    status: Option<Status>,
}

impl<'a> Watched<'a> {
    /// Of a node of a run with so many tokens; `address` is where it answers over HTTP, `log` what a master adds to.
    ///
    /// # Errors
    /// Where the address is not to be had, or this build does not answer, or where the log cannot be written.
    pub fn new(
        program: &'a ProgramArgs,
        setup: &Setup,
        which: Which,
        tokens: u64,
        address: Option<&str>,
        log: Option<&Path>,
    ) -> Result<Self, ClusterError> {
        let is_master = which.role == RoleName::Master;
        let open = |path: &Path| {
            let error = |error| ClusterError::Log { path: path.to_owned(), error };
            Log::open(path, tokens).map_err(error)
        };
        let watched = Self {
            program,
            #[cfg(feature = "status")]
            status: Self::answer(program, setup, which, tokens, address)?,
            progress: is_master.then(|| Progress::new(program, setup, tokens)),
            log: log.filter(|_| is_master).map(open).transpose()?,
            #[cfg(feature = "status")]
            names: (None, 0),
        };
        #[cfg(not(feature = "status"))]
        if address.is_some() {
            let why = "this build does not answer over HTTP: build it with --features status";
            return Err(ClusterError::Usage(why.to_owned()));
        }
        Ok(watched)
    }

    /// The same, and words of so many topics are shown by their names.
    #[cfg_attr(not(feature = "status"), expect(unused_variables, unused_mut))]
    pub fn naming(mut self, vocabulary: Option<&'a Vocabulary>, topics: usize) -> Self {
        #[cfg(feature = "status")]
        {
            self.names = (vocabulary, topics);
        }
        self
    }

    #[cfg(feature = "status")]
    fn answer(
        program: &ProgramArgs,
        setup: &Setup,
        which: Which,
        tokens: u64,
        address: Option<&str>,
    ) -> Result<Option<Status>, ClusterError> {
        let Some(address) = address else { return Ok(None) };
        let status = Status::new(setup, which, tokens);
        let error = |error| ClusterError::Listen { address: address.to_owned(), error };
        let address = status.listen(address).map_err(error)?;
        program.note(&format!("how this node stands: http://{address}/"));
        Ok(Some(status))
    }

    /// An epoch is done, as the master says.
    pub fn report(&mut self, report: &Report) {
        if let Some(progress) = &mut self.progress {
            progress.report(report);
        }
        // One that cannot be added to any more is told of once; the run goes on.
        if let Some(error) = self.log.as_mut().and_then(|log| log.add(report).err()) {
            self.program.note(&format!("the log ends here, the run goes on: {error}"));
            self.log = None;
        }
        #[cfg(feature = "status")]
        if let Some(status) = &self.status {
            status.report(report);
        }
    }

    /// Something may have happened at the node.
    pub fn look<T: TopicIndex, D: Documents>(&mut self, role: &mut Role<T, D>) {
        let trouble = match role {
            Role::Master(master) => {
                while let Some(report) = master.report() {
                    self.report(&report);
                }
                #[cfg(feature = "status")]
                if let Some((status, topics)) = self.status.as_ref().zip(master.topics()) {
                    status.name(topics, self.names.0, self.names.1);
                }
                master.trouble()
            }
            Role::Worker(worker) => worker.trouble(),
            Role::Server(_) => None,
        };
        if let Some(trouble) = trouble {
            let note = format!("a snapshot is not kept, the run goes on: {trouble}");
            self.program.note(&note);
        }
        #[cfg(feature = "status")]
        if let Some(status) = self.status.as_ref().filter(|status| status.is_due()) {
            status.look(role.state());
        }
    }
}
