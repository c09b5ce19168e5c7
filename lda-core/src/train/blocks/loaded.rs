//! Blocks in memory: how they are read and laid out.

use std::sync::Arc;

use super::layout_file::{self, LayoutKey};
use super::store::TopicStore;
use crate::container::{FileError, Number};
use crate::corpus::Corpus;
use crate::corpus::blocks::Blocks;
use crate::layout::WordRanges;
use crate::sampler::Requires;
use crate::train::exclusion::TokenAge;
use crate::train::registry::{SamplerSetup, Width, samplers, token_sets};
use crate::train::start::{First, FirstTopics};
use crate::train::state::TokenSet;
use crate::train::token_state::TokenState;

/// A block in memory. Its document rows exist only while it is sampled.
#[derive(Debug)]
pub(super) struct LoadedBlock<T> {
    pub num_documents: usize,
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
    /// Reads a block, laid out, and gives its tokens their topics.
    pub fn load<T: Width + Number>(
        &self,
        block: usize,
        from: TopicSource<'_>,
    ) -> Result<LoadedBlock<T>, FileError> {
        let (topics, part) = (self.setup.options.topics, &self.blocks.parts()[block]);
        let num_documents = part.num_documents() as usize;
        let (mut sets, requires) = match from {
            TopicSource::Drawn(drawn) => {
                let corpus = self.documents(block)?;
                let (mut sets, requires) = self.lay_out(&corpus, block, self.setup)?;
                let first = First::Drawn(drawn, part.documents.start);
                sets.iter_mut().for_each(|set| set.initialise(&corpus, &self.words, first));
                (sets, requires)
            }
            TopicSource::After(epoch) if self.handed_over == Some(epoch) => {
                self.hand_over(block, epoch)?
            }
            TopicSource::After(epoch) => {
                let (mut sets, requires) = self.laid_out(block, self.setup)?;
                self.store.read((epoch, block), part, topics, &mut sets)?;
                (sets, requires)
            }
        };
        sets.iter_mut().for_each(|set| set.rows = Vec::new());
        Ok(LoadedBlock { num_documents, sets, requires })
    }

    /// The token sets of a block with the topics of the warm-up, whose sampler may have had another order.
    fn hand_over<T: Width + Number>(&self, block: usize, epoch: u32) -> Result<Sets<T>, FileError> {
        let corpus = self.documents(block)?;
        let warm_up = self.setup.options.of_warm_up();
        let setup = SamplerSetup { options: &warm_up, custom: None };
        let (mut before, _) = self.new_sets::<T>(&corpus, block, setup);
        let (topics, part) = (self.setup.options.topics, &self.blocks.parts()[block]);
        self.store.read((epoch, block), part, topics, &mut before)?;
        let tokens = TokenState::of(&before, &self.words, &corpus);
        let (mut sets, requires) = self.lay_out(&corpus, block, self.setup)?;
        let restored = tokens.restore_topics(&mut sets, &self.words, &corpus);
        restored.map_err(|why| FileError::malformed(format!("block {block}"), why))?;
        Ok((sets, requires))
    }

    /// The documents of a block.
    fn documents(&self, block: usize) -> Result<Corpus, FileError> {
        let (corpus, part) = (self.blocks.read(block)?, &self.blocks.parts()[block]);
        let found = (corpus.num_documents() as u64, corpus.num_tokens(), corpus.num_words());
        if found != (part.num_documents(), part.tokens, self.words.num_words()) {
            let what = format!("block {block}");
            return Err(FileError::malformed(what, "it has other documents than were stated"));
        }
        Ok(corpus)
    }

    /// The token sets of a block, by the layout that was written for these samplers, or by a new one.
    fn laid_out<T: Width + Number>(
        &self,
        block: usize,
        setup: SamplerSetup<'_>,
    ) -> Result<Sets<T>, FileError> {
        let requires: Vec<Requires> =
            samplers::<T>(setup).iter().map(|sampler| sampler.requires()).collect();
        let key = self.key(block, setup, &requires);
        let Some(found) = layout_file::read(&self.store.layout(block), &key, &self.words)? else {
            return self.lay_out(&self.documents(block)?, block, setup);
        };
        let sets = found.into_iter().enumerate().map(|(number, (slots, inverse))| {
            let shard = shard(block, requires.len(), number);
            let stride = if inverse.is_some() { 1 + setup.options.mh_steps as usize } else { 1 };
            let tokens = vec![T::default(); slots.num_tokens() * stride];
            let rows = Vec::new();
            with_ages(TokenSet { shard, slots, tokens, stride, rows, inverse, ages: None }, setup)
        });
        Ok((sets.collect(), requires))
    }

    /// Lays out a block for the samplers of `setup`, and writes the layout.
    fn lay_out<T: Width + Number>(
        &self,
        corpus: &Corpus,
        block: usize,
        setup: SamplerSetup<'_>,
    ) -> Result<Sets<T>, FileError> {
        let (sets, requires) = self.new_sets(corpus, block, setup);
        let layouts = sets.iter().map(|set: &TokenSet<T>| (&set.slots, set.inverse.as_ref()));
        let key = self.key(block, setup, &requires);
        layout_file::write(&self.store.layout(block), &key, layouts)?;
        Ok((sets, requires))
    }

    fn key<'k>(
        &'k self,
        block: usize,
        setup: SamplerSetup<'k>,
        requires: &'k [Requires],
    ) -> LayoutKey<'k> {
        LayoutKey { block, part: &self.blocks.parts()[block], options: setup.options, requires }
    }

    /// Lays out a block for the samplers of `setup`.
    fn new_sets<T: Width>(
        &self,
        corpus: &Corpus,
        block: usize,
        setup: SamplerSetup<'_>,
    ) -> Sets<T> {
        let of_sets = token_sets::<T>(corpus, setup);
        let count = of_sets.len();
        let set = |(number, (documents, needs)): (usize, (Vec<u32>, Requires))| {
            let (shard, steps) = (shard(block, count, number), setup.options.mh_steps as usize);
            let set = TokenSet::new(shard, corpus, &documents, &self.words, steps, needs);
            (with_ages(set, setup), needs)
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

/// Token sets, and the requirements of their samplers.
type Sets<T> = (Vec<TokenSet<T>>, Vec<Requires>);

/// Number of a token set among those of all blocks.
fn shard(block: usize, sets: usize, number: usize) -> u16 {
    (block * sets + number) as u16
}

/// Adds ages, if converged tokens are excluded.
fn with_ages<T>(mut set: TokenSet<T>, setup: SamplerSetup<'_>) -> TokenSet<T> {
    if setup.options.exclude_converged_from.is_some() {
        set.ages = Some(vec![TokenAge::default(); set.slots.num_tokens()]);
    }
    set
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
        self.sets.iter().map(set).sum()
    }
}
