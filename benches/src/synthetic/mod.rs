//! Corpora of known topics, made from a seed.
//!
//! ```text
//! base    = Zipf(s) over V words, ranks shuffled over the ids
//! φ_k     ~ Dirichlet(c · base)              for each topic k
//! L_d     ~ a mixture of log-normals         for each document d
//! θ_d     ~ Dirichlet(α, …, α)
//! z, w    ~ θ_d, φ_z                         for each of its L_d tokens
//! ```
//!
//! This is the model LDA assumes (Blei, Ng & Jordan 2003, section 3), with Zipf's law for the words
//! as in text. φ is drawn by stick breaking, and θ is integrated out; neither changes the law (see
//! `topics.rs` and `documents.rs`).
//!
//! **The same tokens everywhere.** Every topic and every document has its own random stream, so the
//! tokens do not depend on the number of threads. No function of the platform's mathematics library
//! is called, so they do not depend on the machine either (`portable.rs` documents the
//! assumptions). The fingerprints of the presets are pinned by tests: a published figure names
//! preset, scale and seed.
//!
//! Cost: about a second for 10 million tokens. Memory while generating: the pairs of the corpus
//! twice, and 28 bytes per topic and word that has mass in it (33 MB for 200 topics of
//! concentration 1,000).

mod documents;
mod portable;
mod spec;
mod topics;

use std::ops::Range;
use std::path::Path;

use lda_core::Corpus;
use lda_core::corpus::blocks::{BlockDirectory, BlockWriter};
use lda_core::corpus::{CorpusBuilder, Vocabulary};
use rayon::prelude::*;

use documents::{Author, Batch};
use portable::{Purpose, Stream};
pub use spec::{Lengths, Preset, Spec, SynthesisError};
use topics::Alias;

/// Documents of one unit of work; does not affect the result.
const DOCUMENTS_PER_BATCH: usize = 256;

/// A corpus and the topics that it was drawn from.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// The documents. Words are those that occur, named `w000001` and so on: a word has the same
    /// name at every scale, though not the same id.
    pub corpus: Corpus,
    /// φ: for each topic its (word, probability), ascending by word. Words that never occur are
    /// left out, so the sum of a topic may be below 1 by their probability.
    pub topics: Vec<Vec<(u32, f64)>>,
}

impl Spec {
    /// Makes the corpus of a seed, in the current rayon pool.
    ///
    /// # Errors
    /// [`SynthesisError`], if a parameter is out of range or the corpus would be too large.
    ///
    /// ```
    /// use lda_benches::synthetic::{Preset, Spec};
    ///
    /// let small = Spec { num_documents: 50, num_topics: 4, ..Spec::default() }.generate(1)?;
    /// assert_eq!(small.corpus.num_documents(), 50);
    /// assert_eq!(small.topics.len(), 4);
    ///
    /// let hundredth = Preset::NytLike.spec().scaled(0.01)?;
    /// assert_eq!(hundredth.num_documents, 300);
    /// # Ok::<(), lda_benches::synthetic::SynthesisError>(())
    /// ```
    pub fn generate(&self, seed: u64) -> Result<Synthetic, SynthesisError> {
        self.check()?;
        let mut topics = self.draw_topics(seed);
        let batches = self.write_documents(seed, &topics);
        let renumbering = Renumbering::of(&batches, self.num_words);
        for topic in &mut topics {
            topic.retain_mut(|pair| renumbering.apply(&mut pair.0));
        }
        Ok(Synthetic { corpus: renumbering.assemble(batches)?, topics })
    }

    /// Makes the corpus of a seed in a directory of blocks of about `tokens` tokens, for more documents than fit in
    /// memory: the same documents and words as [`generate`](Self::generate) makes.
    ///
    /// # Errors
    /// [`SynthesisError`] as of `generate`, and [`SynthesisError::Blocks`] of a block.
    pub fn generate_blocks(
        &self,
        seed: u64,
        tokens: u64,
        path: &Path,
    ) -> Result<BlockDirectory, SynthesisError> {
        /// Batches in memory at a time.
        const BATCHES: usize = 64;
        self.check()?;
        let topics = self.draw_topics(seed);
        let tables: Vec<Alias> = topics.par_iter().map(|topic| Alias::new(topic)).collect();
        drop(topics);
        let author = Author::new(self, seed, &tables);
        let mut writer = BlockWriter::create(path).map_err(SynthesisError::blocks)?;
        let mut block = CorpusBuilder::new().num_words(self.num_words as u32);
        let mut in_block = 0;
        let step = DOCUMENTS_PER_BATCH * BATCHES;
        for first in (0..self.num_documents).step_by(step) {
            let range = first..self.num_documents.min(first + step);
            for batch in author.write_batches(range) {
                for document in batch.documents() {
                    in_block += document.iter().map(|&(_, n)| u64::from(n)).sum::<u64>();
                    block.push_pairs(document)?;
                    if in_block >= tokens {
                        let empty = CorpusBuilder::new().num_words(self.num_words as u32);
                        let whole = std::mem::replace(&mut block, empty).build()?;
                        writer.push(&whole).map_err(SynthesisError::blocks)?;
                        in_block = 0;
                    }
                }
            }
        }
        if in_block > 0 {
            writer.push(&block.build()?).map_err(SynthesisError::blocks)?;
        }
        let mut names = Vocabulary::new();
        for word in 0..self.num_words {
            names.push(&word_name(word, self.num_words)).expect("2^24 words of 9 bytes fit");
        }
        let blocks = writer.finish(self.num_words, Some(&names)).map_err(SynthesisError::blocks)?;
        blocks.compact().map_err(SynthesisError::blocks)
    }

    fn draw_topics(&self, seed: u64) -> Vec<Vec<(u32, f64)>> {
        let mut ids: Vec<u32> = (0..self.num_words as u32).collect();
        let mut stream = Stream::new(seed, Purpose::WordOrder, 0);
        for last in (1..ids.len()).rev() {
            ids.swap(last, stream.below(last as u64 + 1) as usize);
        }
        let weights = topics::zipf(self.num_words, self.zipf_exponent);
        let base = Alias::new(&ids.into_iter().zip(weights).collect::<Vec<_>>());
        (0..self.num_topics as u64)
            .into_par_iter()
            .map(|topic| {
                let mut stream = Stream::new(seed, Purpose::Topic, topic);
                topics::break_stick(&base, self.concentration, &mut stream)
            })
            .collect()
    }

    fn write_documents(&self, seed: u64, topics: &[Vec<(u32, f64)>]) -> Vec<Batch> {
        let tables: Vec<Alias> = topics.par_iter().map(|topic| Alias::new(topic)).collect();
        Author::new(self, seed, &tables).write_batches(0..self.num_documents)
    }
}

/// Name of a word of a vocabulary of so many words.
fn word_name(word: usize, num_words: usize) -> String {
    let digits = num_words.to_string().len().max(5);
    format!("w{:0digits$}", word + 1)
}

impl Author<'_> {
    /// The documents of a range, in batches, in the current rayon pool.
    fn write_batches(&self, documents: Range<usize>) -> Vec<Batch> {
        let Range { start, end } = documents;
        (0..(end - start).div_ceil(DOCUMENTS_PER_BATCH))
            .into_par_iter()
            .map(|batch| {
                let first = start + batch * DOCUMENTS_PER_BATCH;
                self.write(first..end.min(first + DOCUMENTS_PER_BATCH))
            })
            .collect()
    }
}

impl Batch {
    /// The documents as (word, count) pairs.
    fn documents(&self) -> impl Iterator<Item = Vec<(u32, u32)>> + '_ {
        let mut pairs = self.words.iter().copied().zip(self.counts.iter().copied());
        self.pairs.iter().map(move |&len| pairs.by_ref().take(len as usize).collect())
    }
}

/// New ids for the words that occur, in the old order.
struct Renumbering {
    /// By old id; `u32::MAX` where the word does not occur.
    new_ids: Vec<u32>,
    names: Vocabulary,
}

impl Renumbering {
    fn of(batches: &[Batch], num_words: usize) -> Self {
        let mut new_ids = vec![u32::MAX; num_words];
        for &word in batches.iter().flat_map(|batch| &batch.words) {
            new_ids[word as usize] = 0;
        }
        let mut names = Vocabulary::new();
        for (old, new) in new_ids.iter_mut().enumerate().filter(|(_, new)| **new == 0) {
            let name = word_name(old, num_words);
            *new = names.push(&name).expect("2^24 words of 9 bytes fit a vocabulary");
        }
        Self { new_ids, names }
    }

    /// Whether the word occurs; if so it is given its new id.
    fn apply(&self, word: &mut u32) -> bool {
        *word = self.new_ids[*word as usize];
        *word != u32::MAX
    }

    /// Frees each batch when it is in the corpus.
    fn assemble(self, batches: Vec<Batch>) -> Result<Corpus, SynthesisError> {
        let mut builder = CorpusBuilder::new().vocabulary(self.names);
        for batch in batches {
            let mut pairs = batch.words.iter().zip(&batch.counts);
            for len in batch.pairs {
                let document = pairs.by_ref().take(len as usize);
                let renumbered = document.map(|(&word, &n)| (self.new_ids[word as usize], n));
                builder.push_pairs(renumbered)?;
            }
        }
        Ok(builder.build()?)
    }
}
