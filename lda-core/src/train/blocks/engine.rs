//! One run over blocks at one topic width.

use std::sync::Arc;

use super::BlockRunError;
use super::loaded::{LoadedBlock, Loader, TopicSource};
use super::store::TopicStore;
use super::visit::{HeldBlocks, Visit, visit};
use crate::container::Number;
use crate::corpus::Corpus;
use crate::corpus::blocks::Blocks;
use crate::eval::diagnostics::{TopicSpread, diagnose_with};
use crate::eval::likelihood::{document_part, word_part};
use crate::eval::{Diagnostics, LogJoint, Phi, Ranking, top_words};
use crate::layout::WordRanges;
use crate::model::TopicModel;
use crate::prior::Alpha;
use crate::prior::learn::CountHistograms;
use crate::train::assignments::Assignments;
use crate::train::engine::{Engine, Sampled};
use crate::train::pass::PassReport;
use crate::train::registry::{SamplerSetup, Width};
use crate::train::resume_state::Lists;
use crate::train::seed_counts::Pseudo;
use crate::train::spans::span;
use crate::train::start::FirstTopics;
use crate::train::state::CountsError;
use crate::train::view::CountsView;

/// Callback for one block: the number of its first document, its documents, and the topics of their tokens.
pub(super) type VisitTopics<'a> = dyn FnMut(u64, &Corpus, &Assignments) + 'a;

/// Parts of a run over blocks that its engine uses and does not own.
#[derive(Debug)]
pub(super) struct Run<'a, B> {
    pub blocks: &'a B,
    pub store: &'a TopicStore,
    pub setup: SamplerSetup<'a>,
    /// Number of blocks that stay in memory.
    pub held: usize,
    pub pseudo: &'a Pseudo,
    /// The last epoch of the warm-up, if it is over: of what its sampler has written, topics alone are taken.
    pub handed_over: Option<u32>,
}

// Not derived: blocks need not be copied.
impl<B> Clone for Run<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Run<'_, B> {}

/// Values that are found in the documents while they are in memory.
#[derive(Debug, Default)]
pub(super) struct FromDocuments {
    /// Document part of the log joint, if the epoch is evaluated.
    joint: Option<f64>,
    /// Histograms of C_d, if α is learnt from them.
    histograms: Option<CountHistograms>,
}

/// Counts of a run over blocks whose topics are stored as `T`, and the blocks that it holds.
#[derive(Debug)]
pub(super) struct BlockEngine<T: Width> {
    engine: Engine<T>,
    held: HeldBlocks<T>,
    /// Histograms of C_d after the last epoch, if α is learnt from them before the next.
    histograms: Option<CountHistograms>,
}

impl<T: Width + Number> BlockEngine<T> {
    /// Counts all blocks: with drawn topics, which are written as those after epoch 0, or with those after an
    /// epoch.
    pub fn start<B: Blocks>(run: Run<'_, B>, after: Option<u32>) -> Result<Self, BlockRunError> {
        let options = run.setup.options;
        let words = WordRanges::new(run.blocks.statistics().word_frequencies(), options.ranges);
        let mut this = Self {
            engine: Engine::of_blocks(words, run.setup, run.pseudo)?,
            held: run.blocks.parts().iter().map(|_| None).collect(),
            histograms: None,
        };
        let (topics, start) = (options.topics, options.start);
        let drawn = FirstTopics::new(topics, start, options.start_degree, options.seed)
            .pseudo_counts(run.pseudo.clone());
        let from = after.map_or(TopicSource::Drawn(&drawn), TopicSource::After);
        let to = if after.is_none() { Some(0) } else { None };
        let mut documents = FromDocuments {
            histograms: histograms_before(run, after.unwrap_or(0) + 1),
            joint: None,
        };
        this.visit(run, Visit { from, to, held: run.held }, |engine, of_block| {
            engine.state.count_tokens();
            documents.add(engine, of_block)
        })?;
        this.histograms = documents.histograms;
        this.check_totals(run)?;
        Ok(this)
    }

    /// Visits all blocks, each in the state of the engine while `work` runs.
    fn visit<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        plan: Visit<'_>,
        mut work: impl FnMut(&mut Engine<T>, &LoadedBlock<T>) -> Result<(), BlockRunError>,
    ) -> Result<(), BlockRunError> {
        let Self { engine, held, .. } = self;
        let words = Arc::clone(&engine.state.words);
        let Run { blocks, store, setup, handed_over, .. } = run;
        let loader = Loader { blocks, store, setup, words, handed_over };
        visit(&loader, held, plan, |_, of_block| {
            engine.state.sets = std::mem::take(&mut of_block.sets);
            let worked = work(engine, of_block);
            of_block.sets = std::mem::take(&mut engine.state.sets);
            of_block.sets.iter_mut().for_each(|set| set.rows = Vec::new());
            worked
        })
    }

    /// Samples every token once, and writes their topics.
    pub fn epoch<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        is_evaluated: bool,
    ) -> Result<(PassReport, FromDocuments), BlockRunError> {
        let options = run.setup.options;
        span!(INFO, "epoch", epoch, sampler = options.sampler.name());
        self.engine.follow_sizes(options);
        if let Some(learn) = options.learn.filter(|learn| learn.is_due(epoch)) {
            self.engine.learn_from(learn, self.histograms.take());
        }
        let mut sampled = Sampled::default();
        let mut documents = FromDocuments {
            joint: is_evaluated.then_some(0.0),
            histograms: histograms_before(run, epoch + 1),
        };
        let from = TopicSource::After(epoch - 1);
        self.visit(run, Visit { from, to: Some(epoch), held: run.held }, |engine, of_block| {
            engine.state.make_document_rows(&of_block.requires)?;
            sampled.add(engine.sample(options, epoch));
            documents.add(engine, of_block)
        })?;
        self.engine.adapt(options, sampled);
        self.histograms = documents.histograms.take();
        self.check_totals(run)?;
        Ok((sampled.all, documents))
    }

    /// Checks that C_k adds up: a topic with more tokens than 32 bits hold would make it fail.
    fn check_totals<B: Blocks>(&self, run: Run<'_, B>) -> Result<(), BlockRunError> {
        let pseudo = run.pseudo.as_ref().map_or(0, |pseudo| pseudo.sum());
        let tokens = run.blocks.statistics().num_tokens();
        match self.engine.state.sum_of_totals() == tokens + pseudo {
            true => Ok(()),
            false => Err(BlockRunError::TopicOverflow { topics: run.setup.options.topics }),
        }
    }

    /// Log joint likelihood after `epoch` epochs. The document part is that of `found`, or is computed from all
    /// blocks.
    pub fn log_joint<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        found: Option<FromDocuments>,
    ) -> Result<LogJoint, BlockRunError> {
        let documents = match found.and_then(|found| found.joint) {
            Some(joint) => joint,
            None => {
                let mut found = FromDocuments { joint: Some(0.0), histograms: None };
                self.look(run, epoch, |engine, of_block| found.add(engine, of_block))?;
                found.joint.unwrap_or_default()
            }
        };
        let view = CountsView::of_words(&self.engine.state);
        let words = word_part(&view, self.engine.beta).expect("priors were checked");
        let own = run.pseudo.as_ref().map_or(0.0, |pseudo| pseudo.word_part(self.engine.beta));
        Ok(LogJoint { documents, words: words - own })
    }

    /// Visits all blocks, and changes nothing.
    fn look<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        work: impl FnMut(&mut Engine<T>, &LoadedBlock<T>) -> Result<(), BlockRunError>,
    ) -> Result<(), BlockRunError> {
        let plan = Visit { from: TopicSource::After(epoch), to: None, held: run.held };
        self.visit(run, plan, work)
    }

    /// Calls `f` with each block in order.
    pub fn visit_topics<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        f: &mut VisitTopics<'_>,
    ) -> Result<(), BlockRunError> {
        let mut block = 0;
        self.look(run, epoch, |engine, _| {
            let documents = run.blocks.read(block)?;
            let first = run.blocks.parts()[block].documents.start;
            f(first, &documents, &engine.state.assignments(&documents));
            block += 1;
            Ok(())
        })
    }

    /// Diagnostics of the topics by their `words` most probable words.
    pub fn diagnose<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
        words: usize,
    ) -> Result<Diagnostics, BlockRunError> {
        let mut spread = TopicSpread::new(run.setup.options.topics as usize);
        self.look(run, epoch, |engine, of_block| {
            ensure_document_rows(engine, of_block)?;
            spread.add_documents(&CountsView::of_documents(&engine.state, of_block.num_documents));
            Ok(())
        })?;
        let view = CountsView::of_words(&self.engine.state);
        let beta = self.engine.beta;
        let top = top_words(&view, beta, words, Ranking::Probability);
        let top = top.expect("priors were checked").into_iter();
        let lists: Vec<Vec<u32>> =
            top.map(|list| list.iter().map(|word| word.word).collect()).collect();
        Ok(diagnose_with(&view, &spread, &self.phi(), &lists))
    }

    /// Compares C_w and C_k with a recount from the topics after `epoch` epochs.
    pub fn check<B: Blocks>(
        &mut self,
        run: Run<'_, B>,
        epoch: u32,
    ) -> Result<Result<(), CountsError>, BlockRunError> {
        let counted = Self::start(Run { held: 0, ..run }, Some(epoch))?;
        Ok(self.engine.state.compare(&counted.engine.state))
    }

    /// A model without provenance.
    pub fn model(&self) -> TopicModel {
        let view = CountsView::of_words(&self.engine.state);
        TopicModel::from_counts(&view, self.engine.alpha.clone(), self.engine.beta)
    }

    /// φ of the current state.
    pub fn phi(&self) -> Phi {
        let view = CountsView::of_words(&self.engine.state);
        Phi::from_counts(&view, self.engine.beta).expect("priors were checked")
    }

    /// α and β of the last epoch.
    pub fn priors(&self) -> (Alpha, f64) {
        (self.engine.alpha.clone(), self.engine.beta)
    }

    /// Number of times that the hybrid's next epoch runs WarpLDA's two passes.
    pub fn rounds(&self) -> u16 {
        self.engine.rounds()
    }

    /// As [`Engine::mh_steps`].
    pub fn mh_steps(&self, options: &crate::train::Resolved) -> Option<u32> {
        self.engine.mh_steps(options)
    }

    /// The list rows of C_w.
    pub fn word_lists(&self) -> Lists<T> {
        self.engine.state.word_lists()
    }

    /// Restores what a run carries beside its topics.
    ///
    /// # Errors
    /// Returns the name of the part that does not fit.
    pub fn restore(
        &mut self,
        words: &Lists<T>,
        rounds: u16,
        (alpha, beta): &(Alpha, f64),
    ) -> Result<(), &'static str> {
        self.engine.state.order_words(words)?;
        self.engine.set_rounds(rounds);
        self.engine.set_priors(alpha, *beta);
        Ok(())
    }

    /// Sets the priors of the next epoch.
    pub fn set_priors(&mut self, (alpha, beta): &(Alpha, f64)) {
        self.engine.set_priors(alpha, *beta);
    }

    /// Bytes of the counts, and of the blocks that are held.
    pub fn memory(&self) -> u64 {
        let held = self.held.iter().flatten().map(LoadedBlock::memory).sum::<u64>();
        self.engine.state.memory() + held
    }
}

/// Empty histograms of C_d, if α is learnt from them before this epoch.
fn histograms_before<B>(run: Run<'_, B>, epoch: u32) -> Option<CountHistograms> {
    let options = run.setup.options;
    let learn = options.learn.filter(|learn| learn.is_due(epoch))?;
    learn.document_histograms(options.topics as usize)
}

/// Counts C_d of a block, unless its rows are there.
fn ensure_document_rows<T: Width>(
    engine: &mut Engine<T>,
    of_block: &LoadedBlock<T>,
) -> Result<(), BlockRunError> {
    let mut sets = engine.state.sets.iter().zip(&of_block.requires);
    let has_rows =
        sets.all(|(set, requires)| requires.document_rows.is_none() || !set.rows.is_empty());
    if !has_rows {
        engine.state.make_document_rows(&of_block.requires)?;
    }
    Ok(())
}

impl FromDocuments {
    /// Adds the documents of a block.
    fn add<T: Width + Number>(
        &mut self,
        engine: &mut Engine<T>,
        of_block: &LoadedBlock<T>,
    ) -> Result<(), BlockRunError> {
        if self.joint.is_none() && self.histograms.is_none() {
            return Ok(());
        }
        ensure_document_rows(engine, of_block)?;
        let view = CountsView::of_documents(&engine.state, of_block.num_documents);
        if let Some(joint) = &mut self.joint {
            *joint += document_part(&view, &engine.alpha).expect("priors were checked");
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.add_documents(&view);
        }
        Ok(())
    }
}
