//! Evaluation of a run over blocks: likelihood, held-out documents, and measures and topics of the documents.

use std::fmt;

use super::BlockTrainer;
use crate::corpus::Corpus;
use crate::corpus::blocks::Blocks;
use crate::eval::cancelled::Cancelled;
use crate::eval::coherence::CoherenceOfParts;
use crate::eval::perplexity::CompletionOfParts;
use crate::eval::{
    Coherence, CoherenceOptions, CompletionError, CompletionOptions, Diagnostics,
    DocumentCompletion, LogJoint, held_out_perplexity,
};
use crate::train::assignments::Assignments;
use crate::train::blocks::BlockRunError;
use crate::train::held_out::HeldOut;
use crate::train::state::CountsError;
use crate::train::trainer::install;

/// Held-out documents of a run over blocks.
pub(super) enum HeldOutDocuments {
    Corpus(Box<HeldOut>),
    Blocks(Box<dyn Blocks + Send>, CompletionOptions),
}

impl fmt::Debug for HeldOutDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corpus(_) => f.write_str("Corpus"),
            Self::Blocks(..) => f.write_str("Blocks"),
        }
    }
}

impl<B: Blocks> BlockTrainer<B> {
    /// Computes held-out perplexity at every evaluation of [`run`](Self::run), and stops early if
    /// `held_out` asks for it. Must be set again after [`resume`](Self::resume).
    ///
    /// # Errors
    /// [`CompletionError`], if the held-out documents cannot be evaluated.
    pub fn early_stopping(&mut self, held_out: HeldOut) -> Result<(), CompletionError> {
        held_out.check(|documents, once| self.perplexity_of(documents, once))?;
        self.progress.patience = Some(held_out.rule);
        self.held_out = Some(HeldOutDocuments::Corpus(Box::new(held_out)));
        Ok(())
    }

    /// As [`early_stopping`](Self::early_stopping), of held-out documents in blocks: for example those of
    /// [`BlockView::split`](crate::corpus::blocks::BlockView::split). An evaluation reads them all.
    ///
    /// # Errors
    /// [`BlockRunError`], if the held-out documents cannot be read or evaluated.
    pub fn early_stopping_with_blocks<H: Blocks + Send + 'static>(
        &mut self,
        held_out: HeldOut<H>,
    ) -> Result<(), BlockRunError> {
        if held_out.completion.samples == 0 {
            return Err(CompletionError::NoSamples.into());
        }
        let once = CompletionOptions { burn_in: 0, samples: 1, ..held_out.completion };
        self.perplexity_of_blocks(&held_out.documents, &once)?;
        let HeldOut { documents, completion, rule } = held_out;
        self.progress.patience = Some(rule);
        self.held_out = Some(HeldOutDocuments::Blocks(Box::new(documents), completion));
        Ok(())
    }

    /// Perplexity of other documents with the same word ids, by document completion
    /// ([`eval::perplexity`](crate::eval::perplexity)).
    ///
    /// # Errors
    /// [`CompletionError`], for example if no document can be evaluated.
    ///
    /// # Panics
    /// If the run has failed before.
    pub fn perplexity_of(
        &self,
        documents: &Corpus,
        options: &CompletionOptions,
    ) -> Result<DocumentCompletion, CompletionError> {
        let engine = self.engine().expect("the run has not failed");
        install(&self.pool, || {
            held_out_perplexity(documents, &engine.phi(), &engine.priors().0, options)
        })
    }

    /// As [`perplexity_of`](Self::perplexity_of), of documents in blocks, which are read one after the other.
    ///
    /// # Errors
    /// [`BlockRunError::Completion`], or [`BlockRunError::File`] of a block.
    pub fn perplexity_of_blocks<H: Blocks + ?Sized>(
        &self,
        documents: &H,
        options: &CompletionOptions,
    ) -> Result<DocumentCompletion, BlockRunError> {
        let engine = self.engine()?;
        let (phi, (alpha, _)) = (engine.phi(), engine.priors());
        let mut parts = CompletionOfParts::new(&phi, &alpha, options)?;
        install(&self.pool, || {
            for block in 0..documents.parts().len() {
                parts.add(&documents.read(block)?, &Cancelled::new(&|| true))?;
            }
            Ok(parts.finish()?)
        })
    }

    /// Perplexity of the held-out documents, if there are any.
    pub(super) fn held_out_perplexity(&self) -> Result<Option<f64>, BlockRunError> {
        let found = match &self.held_out {
            None => return Ok(None),
            Some(HeldOutDocuments::Corpus(held_out)) => {
                self.engine()?;
                self.perplexity_of(&held_out.documents, &held_out.completion)?
            }
            Some(HeldOutDocuments::Blocks(documents, options)) => {
                self.perplexity_of_blocks(documents, options)?
            }
        };
        Ok(Some(found.perplexity()))
    }

    /// Log joint likelihood log p(W, Z | α, β) of the current state. It reads all blocks.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn log_joint(&mut self) -> Result<LogJoint, BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.log_joint(run, epoch, None))
    }

    /// Calls `f(first, documents, topics)` for each block in order: the number of its first document in all
    /// blocks, its documents, and the topics of their tokens. After an error of `f` no block is visited; it is
    /// returned within.
    ///
    /// All blocks are read, the documents of one at a time.
    ///
    /// ```
    /// # use lda_core::{Corpus, corpus::blocks::BlockDirectory};
    /// # use lda_core::train::{TrainOptions, blocks::BlockTrainer};
    /// # let path = std::env::temp_dir().join(format!("lda-block-topics-{}", std::process::id()));
    /// # let corpus = Corpus::from_tokens((0..40u32).map(|d| [d % 7, d % 5]))?;
    /// # let blocks = BlockDirectory::cut(&corpus, 30, path.join("blocks"))?;
    /// let mut trainer = BlockTrainer::new(&blocks, &TrainOptions::new(3), path.join("run"))?;
    /// trainer.epoch()?;
    /// let mut lengths = Vec::new();
    /// trainer.visit_topics(|_, documents, topics| -> Result<(), std::io::Error> {
    ///     lengths.extend((0..documents.num_documents()).map(|d| topics.document(d).len()));
    ///     Ok(())
    /// })??;
    /// assert_eq!(lengths, [2; 40]);
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn visit_topics<E: Send>(
        &mut self,
        mut f: impl FnMut(u64, &Corpus, &Assignments) -> Result<(), E> + Send,
    ) -> Result<Result<(), E>, BlockRunError> {
        let (epoch, mut result) = (self.progress.epoch, Ok(()));
        self.with(|engine, run| {
            engine.visit_topics(run, epoch, &mut |first, documents, topics| {
                if result.is_ok() {
                    result = f(first, documents, topics);
                }
            })
        })?;
        Ok(result)
    }

    /// Diagnostics of the topics, by their `words` most probable words
    /// ([`eval::diagnostics`](crate::eval::diagnostics)). It reads all blocks.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn diagnose(&mut self, words: usize) -> Result<Diagnostics, BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.diagnose(run, epoch, words))
    }

    /// Coherence of topics, given as lists of words, in the training documents ([`coherence`]). All blocks are
    /// read. Windows of tokens need blocks that kept the order of their tokens.
    ///
    /// # Errors
    /// [`BlockRunError::Coherence`], or [`BlockRunError::File`] of a block.
    ///
    /// [`coherence`]: crate::eval::coherence()
    pub fn coherence<W: AsRef<[u32]>>(
        &self,
        topics: &[W],
        options: &CoherenceOptions,
    ) -> Result<Coherence, BlockRunError> {
        let words = self.blocks.statistics().num_words();
        let mut parts = CoherenceOfParts::new(topics, options, words)?;
        install(&self.pool, || {
            for block in 0..self.blocks.parts().len() {
                parts.add(&self.blocks.read(block)?, &Cancelled::new(&|| true))?;
            }
            Ok(parts.finish()?)
        })
    }

    /// Compares C_w and C_k with a recount from the topics. It reads all blocks, and takes as much memory for
    /// counts again.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch); within, [`CountsError`] names the first count that is wrong.
    pub fn check(&mut self) -> Result<Result<(), CountsError>, BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.check(run, epoch))
    }
}
