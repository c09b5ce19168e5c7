//! Blocks in memory: how they are read and laid out, and what they carry back to their files.

use std::sync::Arc;

use super::store::TopicStore;
use crate::container::{FileError, Number};
use crate::corpus::Corpus;
use crate::corpus::blocks::Blocks;
use crate::layout::WordRanges;
use crate::sampler::Requires;
use crate::train::exclusion::TokenAge;
use crate::train::registry::{SamplerSetup, Width, token_sets};
use crate::train::start::{First, FirstTopics};
use crate::train::state::TokenSet;
use crate::train::token_state::TokenState;

/// A block in memory. Its document rows exist only while it is sampled.
#[derive(Debug)]
pub(super) struct LoadedBlock<T> {
    pub corpus: Corpus,
    pub sets: Vec<TokenSet<T>>,
    /// Requirements of the sampler of each set.
    pub requires: Vec<Requires>,
}

/// Source of the topics of a block's tokens.
#[derive(Clone, Copy, Debug)]
pub(super) enum TopicSource<'a> {
    /// Random draws.
    Drawn(&'a FirstTopics),
    /// Those after an epoch.
    After(u32),
}

/// Reads and writes blocks.
#[derive(Debug)]
pub(super) struct Loader<'a, B> {
    pub blocks: &'a B,
    pub store: &'a TopicStore,
    pub setup: SamplerSetup<'a>,
    pub words: Arc<WordRanges>,
    /// The epoch after which another sampler goes on with the topics alone.
    pub handed_over: Option<u32>,
}

impl<B: Blocks> Loader<'_, B> {
    /// Reads a block, lays its tokens out and gives them their topics.
    pub fn load<T: Width + Number>(
        &self,
        block: usize,
        from: TopicSource<'_>,
    ) -> Result<LoadedBlock<T>, FileError> {
        let (options, part) = (self.setup.options, &self.blocks.parts()[block]);
        let corpus = self.blocks.read(block)?;
        let found = (corpus.num_documents() as u64, corpus.num_tokens(), corpus.num_words());
        if found != (part.num_documents(), part.tokens, self.words.num_words()) {
            let what = format!("block {block}");
            return Err(FileError::malformed(what, "it has other documents than were stated"));
        }
        let (mut sets, requires) = self.lay_out(&corpus, block, self.setup);
        match from {
            TopicSource::Drawn(drawn) => {
                let first = First::Drawn(drawn, part.documents.start);
                sets.iter_mut().for_each(|set| set.initialise(&corpus, &self.words, first));
            }
            TopicSource::After(epoch) if self.handed_over == Some(epoch) => {
                // The tokens lie in the order of the warm-up's sampler.
                let warm_up = self.setup.options.of_warm_up();
                let setup = SamplerSetup { options: &warm_up, custom: None };
                let (mut before, _) = self.lay_out::<T>(&corpus, block, setup);
                self.store.read((epoch, block), part, options.topics, &mut before)?;
                let tokens = TokenState::of(&before, &self.words, &corpus);
                let restored = tokens.restore_topics(&mut sets, &self.words, &corpus);
                restored.map_err(|why| FileError::malformed(format!("block {block}"), why))?;
            }
            TopicSource::After(epoch) => {
                self.store.read((epoch, block), part, options.topics, &mut sets)?;
            }
        }
        Ok(LoadedBlock { corpus, sets, requires })
    }

    /// Lays out the tokens of a block for the samplers of `setup`.
    fn lay_out<T: Width>(
        &self,
        corpus: &Corpus,
        block: usize,
        setup: SamplerSetup<'_>,
    ) -> (Vec<TokenSet<T>>, Vec<Requires>) {
        let of_sets = token_sets::<T>(corpus, setup);
        let first = block * of_sets.len();
        let set = |(number, (documents, needs)): (usize, (Vec<u32>, Requires))| {
            let (shard, steps) = ((first + number) as u16, setup.options.mh_steps as usize);
            let mut set = TokenSet::new(shard, corpus, &documents, &self.words, steps, needs);
            if setup.options.exclude_converged_from.is_some() {
                set.ages = Some(vec![TokenAge::default(); set.slots.num_tokens()]);
            }
            (set, needs)
        };
        of_sets.into_iter().enumerate().map(set).unzip()
    }

    /// Writes the state of a block's tokens after an epoch.
    pub fn write<T: Width + Number>(
        &self,
        (epoch, block): (u32, usize),
        loaded: &LoadedBlock<T>,
    ) -> Result<(), FileError> {
        self.store.write((epoch, block), &self.blocks.parts()[block], &loaded.sets)
    }
}

impl<T> LoadedBlock<T> {
    /// Bytes held.
    pub fn memory(&self) -> u64 {
        let set = |set: &TokenSet<T>| {
            set.slots.memory()
                + (set.tokens.len() * size_of::<T>()) as u64
                + set.inverse.as_ref().map_or(0, |inverse| inverse.memory())
                + set.ages.as_ref().map_or(0, |ages| ages.len() as u64)
        };
        self.corpus.memory() as u64 + self.sets.iter().map(set).sum::<u64>()
    }
}
