//! An engine whose topics are stored in 16 or 32 bits, and everything that a run reads from its
//! state.

use crate::corpus::Corpus;
use crate::counts::RowsTooLarge;
use crate::eval::{
    CompletionError, CompletionOptions, Diagnostics, DocumentCompletion, LogJoint, Phi, Ranking,
    diagnose, held_out_perplexity, log_joint, log_predictive, top_words,
};
use crate::model::TopicModel;
use crate::prior::Alpha;
use crate::train::assignments::Assignments;
use crate::train::engine::Engine;
use crate::train::options::Resolved;
use crate::train::pass::PassReport;
use crate::train::registry::SamplerSetup;
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::Width;
use crate::train::state::CountsError;
use crate::train::view::CountsView;

/// An engine at either topic width.
#[derive(Debug)]
pub(super) enum AnyEngine {
    Narrow(Engine<u16>),
    Wide(Engine<u32>),
}

/// Runs the body for either topic width.
macro_rules! any_engine {
    ($engine:expr, $e:ident => $body:expr) => {
        match $engine {
            AnyEngine::Narrow($e) => $body,
            AnyEngine::Wide($e) => $body,
        }
    };
}

/// Construction, sampling, snapshots.
impl AnyEngine {
    pub fn new(
        corpus: &Corpus,
        setup: SamplerSetup<'_>,
        from: Option<&Assignments>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        Ok(if setup.options.narrow {
            Self::Narrow(Engine::new(corpus, setup, from, pseudo)?)
        } else {
            Self::Wide(Engine::new(corpus, setup, from, pseudo)?)
        })
    }

    /// An empty run, which replaces one that is dropped.
    pub fn empty() -> Self {
        Self::Narrow(Engine::empty())
    }

    /// Samples every token once.
    pub fn epoch(&mut self, corpus: &Corpus, options: &Resolved, epoch: u32) -> PassReport {
        any_engine!(self, engine => engine.epoch(corpus, options, epoch))
    }

    /// α and β of the next epoch.
    pub fn set_priors(&mut self, alpha: &Alpha, beta: f64) {
        any_engine!(self, engine => engine.set_priors(alpha, beta));
    }

    /// Copies the state for a snapshot.
    pub fn carried(&self, corpus: &Corpus) -> Width {
        match self {
            Self::Narrow(engine) => Width::Narrow(engine.state.carried(corpus)),
            Self::Wide(engine) => Width::Wide(engine.state.carried(corpus)),
        }
    }

    /// Restores the state of a snapshot.
    ///
    /// # Errors
    /// Returns the name of the part that does not fit. The engine must then be dropped.
    pub fn take_up(
        &mut self,
        corpus: &Corpus,
        carried: &Width,
        rounds: u16,
    ) -> Result<(), &'static str> {
        match (self, carried) {
            (Self::Narrow(engine), Width::Narrow(carried)) => {
                engine.take_up(corpus, carried, rounds)
            }
            (Self::Wide(engine), Width::Wide(carried)) => engine.take_up(corpus, carried, rounds),
            _ => Err("topics: not of the width that the options say"),
        }
    }
}

/// Access to the state.
impl AnyEngine {
    /// α and β of the last epoch.
    pub fn priors(&self) -> (Alpha, f64) {
        any_engine!(self, engine => (engine.alpha.clone(), engine.beta))
    }

    /// As [`Engine::rounds`].
    pub fn rounds(&self) -> u16 {
        any_engine!(self, engine => engine.rounds())
    }

    /// As [`Engine::mh_steps`].
    pub fn mh_steps(&self, options: &Resolved) -> Option<u32> {
        any_engine!(self, engine => engine.mh_steps(options))
    }

    /// Bytes of the state.
    pub fn memory(&self) -> u64 {
        any_engine!(self, engine => engine.state.memory())
    }

    /// The topic of every token.
    pub fn assignments(&self, corpus: &Corpus) -> Assignments {
        any_engine!(self, engine => engine.state.assignments(corpus))
    }

    /// Compares all counts with a recount.
    pub fn check(&self, corpus: &Corpus) -> Result<(), CountsError> {
        any_engine!(self, engine => engine.state.check(corpus))
    }

    /// A model without provenance.
    pub fn model(&self, corpus: &Corpus) -> TopicModel {
        any_engine!(self, engine => {
            let view = CountsView::new(&engine.state, corpus);
            TopicModel::from_counts(&view, engine.alpha.clone(), engine.beta)
        })
    }

    /// Log joint likelihood, without the part that depends on pseudo-counts only.
    pub fn log_joint(&self, corpus: &Corpus, pseudo: Option<&PseudoCounts>) -> LogJoint {
        any_engine!(self, engine => {
            let view = CountsView::new(&engine.state, corpus);
            let all = log_joint(&view, &engine.alpha, engine.beta).expect("priors were checked");
            let own = pseudo.map_or(0.0, |pseudo| pseudo.word_part(engine.beta));
            LogJoint { words: all.words - own, ..all }
        })
    }

    /// Log likelihood of the training words given θ and φ.
    pub fn log_predictive(&self, corpus: &Corpus) -> f64 {
        any_engine!(self, engine => {
            let view = CountsView::new(&engine.state, corpus);
            log_predictive(&view, corpus, &engine.alpha, engine.beta).expect("priors were checked")
        })
    }

    /// Diagnostics of the topics, by their `words` most probable words.
    pub fn diagnose(&self, corpus: &Corpus, words: usize) -> Diagnostics {
        any_engine!(self, engine => {
            let view = CountsView::new(&engine.state, corpus);
            let phi = Phi::from_counts(&view, engine.beta).expect("priors were checked");
            let top = top_words(&view, engine.beta, words, Ranking::Probability)
                .expect("priors were checked");
            let lists = top.iter().map(|list| list.iter().map(|word| word.word).collect());
            diagnose(&view, &phi, &lists.collect::<Vec<Vec<u32>>>())
        })
    }

    /// Perplexity of other documents by document completion.
    pub fn perplexity_of(
        &self,
        corpus: &Corpus,
        documents: &Corpus,
        options: &CompletionOptions,
    ) -> Result<DocumentCompletion, CompletionError> {
        any_engine!(self, engine => {
            let view = CountsView::new(&engine.state, corpus);
            let phi = Phi::from_counts(&view, engine.beta).expect("priors were checked");
            held_out_perplexity(documents, &phi, &engine.alpha, options)
        })
    }
}
