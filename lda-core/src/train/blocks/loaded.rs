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
        let of_sets = token_sets::<T>(&corpus, self.setup);
        let (mut sets, mut requires) = (Vec::new(), Vec::new());
        let first = block * of_sets.len();
        for (number, (documents, needs)) in of_sets.into_iter().enumerate() {
            let shard = (first + number) as u16;
            let steps = options.mh_steps as usize;
            sets.push(TokenSet::new(shard, &corpus, &documents, &self.words, steps, needs));
            requires.push(needs);
        }
        if options.exclude_converged_from.is_some() {
            for set in &mut sets {
                set.ages = Some(vec![TokenAge::default(); set.slots.num_tokens()]);
            }
        }
        match from {
            TopicSource::Drawn(drawn) => {
                let first = First::Drawn(drawn, part.documents.start);
                sets.iter_mut().for_each(|set| set.initialise(&corpus, &self.words, first));
            }
            TopicSource::After(epoch) => {
                let tokens: TokenState<T> =
                    self.store.read((epoch, block), part, options.topics)?;
                let words = &self.words;
                let restored = tokens.restore_topics(&mut sets, words, &corpus);
                let restored = restored.and_then(|()| match self.handed_over == Some(epoch) {
                    true => Ok(()),
                    false => tokens.restore_rest(&mut sets, words, &corpus),
                });
                restored.map_err(|why| FileError::malformed(format!("block {block}"), why))?;
            }
        }
        Ok(LoadedBlock { corpus, sets, requires })
    }

    /// Writes what the tokens of a block carry after an epoch.
    pub fn write<T: Width + Number>(
        &self,
        (epoch, block): (u32, usize),
        loaded: &LoadedBlock<T>,
    ) -> Result<(), FileError> {
        let tokens = TokenState::of(&loaded.sets, &self.words, &loaded.corpus);
        self.store.write((epoch, block), &self.blocks.parts()[block], &tokens)
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
