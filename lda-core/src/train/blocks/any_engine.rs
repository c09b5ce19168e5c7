//! An engine over blocks at either topic width.

use super::BlockRunError;
use super::engine::{BlockEngine, FromDocuments, Run, VisitTopics};
use super::store::TopicStore;
use crate::container::FileError;
use crate::corpus::blocks::Blocks;
use crate::eval::{Diagnostics, LogJoint, Phi};
use crate::model::TopicModel;
use crate::prior::Alpha;
use crate::train::Resolved;
use crate::train::pass::PassReport;
use crate::train::resume_state::Lists;
use crate::train::run_record::RunRecord;
use crate::train::state::CountsError;

/// An engine at either topic width.
#[derive(Debug)]
pub(super) enum AnyBlockEngine {
    Narrow(BlockEngine<u16>),
    Wide(BlockEngine<u32>),
}

/// List rows of C_w at either topic width.
#[derive(Debug)]
pub(super) enum AnyLists {
    Narrow(Lists<u16>),
    Wide(Lists<u32>),
}

/// Runs the body for either topic width.
macro_rules! any_engine {
    ($engine:expr, $e:ident => $body:expr) => {
        match $engine {
            AnyBlockEngine::Narrow($e) => $body,
            AnyBlockEngine::Wide($e) => $body,
        }
    };
}

impl AnyBlockEngine {
    /// As [`BlockEngine::start`].
    pub fn start<B: Blocks>(run: Run<'_, B>, after: Option<u32>) -> Result<Self, BlockRunError> {
        Ok(match run.setup.options.narrow {
            true => Self::Narrow(BlockEngine::start(run, after)?),
            false => Self::Wide(BlockEngine::start(run, after)?),
        })
    }

    /// As [`BlockEngine::epoch`].
    pub fn epoch<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        is_evaluated: bool,
    ) -> Result<(PassReport, FromDocuments), BlockRunError> {
        any_engine!(self, engine => engine.epoch(run, epoch, is_evaluated))
    }

    /// As [`BlockEngine::log_joint`].
    pub fn log_joint<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        found: Option<FromDocuments>,
    ) -> Result<LogJoint, BlockRunError> {
        any_engine!(self, engine => engine.log_joint(run, epoch, found))
    }

    /// As [`BlockEngine::visit_topics`].
    pub fn visit_topics<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        f: &mut VisitTopics<'_>,
    ) -> Result<(), BlockRunError> {
        any_engine!(self, engine => engine.visit_topics(run, epoch, f))
    }

    /// As [`BlockEngine::diagnose`].
    pub fn diagnose<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        words: usize,
    ) -> Result<Diagnostics, BlockRunError> {
        any_engine!(self, engine => engine.diagnose(run, epoch, words))
    }

    /// As [`BlockEngine::check`].
    pub fn check<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
    ) -> Result<Result<(), CountsError>, BlockRunError> {
        any_engine!(self, engine => engine.check(run, epoch))
    }

    /// Writes the record of the run's last epoch.
    pub fn keep(&self, store: &TopicStore, record: &RunRecord) -> Result<(), FileError> {
        any_engine!(self, engine => store.keep(record, &engine.word_lists()))
    }

    /// As [`BlockEngine::restore`].
    pub fn restore(&mut self, record: &RunRecord, words: &AnyLists) -> Result<(), &'static str> {
        match (self, words) {
            (Self::Narrow(engine), AnyLists::Narrow(words)) => {
                engine.restore(words, record.rounds, &record.priors)
            }
            (Self::Wide(engine), AnyLists::Wide(words)) => {
                engine.restore(words, record.rounds, &record.priors)
            }
            _ => Err("topics: not of the width that the options say"),
        }
    }

    /// As [`BlockEngine::model`].
    pub fn model(&self) -> TopicModel {
        any_engine!(self, engine => engine.model())
    }

    /// As [`BlockEngine::phi`].
    pub fn phi(&self) -> Phi {
        any_engine!(self, engine => engine.phi())
    }

    /// As [`BlockEngine::priors`].
    pub fn priors(&self) -> (Alpha, f64) {
        any_engine!(self, engine => engine.priors())
    }

    /// As [`BlockEngine::set_priors`].
    pub fn set_priors(&mut self, priors: &(Alpha, f64)) {
        any_engine!(self, engine => engine.set_priors(priors));
    }

    /// As [`BlockEngine::rounds`].
    pub fn rounds(&self) -> u16 {
        any_engine!(self, engine => engine.rounds())
    }

    /// As [`BlockEngine::mh_steps`].
    pub fn mh_steps(&self, options: &Resolved) -> Option<u32> {
        any_engine!(self, engine => engine.mh_steps(options))
    }

    /// As [`BlockEngine::memory`].
    pub fn memory(&self) -> u64 {
        any_engine!(self, engine => engine.memory())
    }
}

/// Reads the record of a run's last complete epoch.
pub(super) fn read_record(store: &TopicStore) -> Result<(RunRecord, AnyLists), FileError> {
    Ok(match store.is_narrow()? {
        true => {
            let (record, words) = store.record()?;
            (record, AnyLists::Narrow(words))
        }
        false => {
            let (record, words) = store.record()?;
            (record, AnyLists::Wide(words))
        }
    })
}
