//! Memory of a run over blocks, and the number of blocks that stay in memory within a limit.

use crate::corpus::blocks::{Blocks, Part};
use crate::counts::{Density, Rows};
use crate::sampler::{Requires, TokenOrder, WordTables, padded};
use crate::train::memory::row_buffers;
use crate::train::options::{OptionsError, TrainOptions};
use crate::train::registry::{SamplerSetup, Width, samplers};

use super::trainer::resolve;

/// Blocks in memory beside those that stay: one is read, one sampled, one written.
const IN_FLIGHT: usize = 3;

/// Bytes of a run over blocks ([`TrainOptions::estimate_block_memory`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockMemory {
    /// C_w, C_k, tables and frequencies of words.
    pub words: u64,
    /// Document rows of the largest block, copies of its topics, and arrays over topics of all threads.
    pub work: u64,
    /// Each block, laid out.
    pub blocks: Vec<u64>,
}

impl BlockMemory {
    /// Bytes if the first `held` blocks stay in memory.
    pub fn total(&self, held: usize) -> u64 {
        let (held, others) = self.blocks.split_at(held.min(self.blocks.len()));
        let largest = others.iter().copied().max().unwrap_or(0);
        let in_flight = others.len().min(IN_FLIGHT) as u64 * largest;
        self.words + self.work + held.iter().sum::<u64>() + in_flight
    }

    /// Number of blocks that can stay in memory within `limit`; `None` if it is too low for any run.
    pub fn held_within(&self, limit: u64) -> Option<usize> {
        (0..=self.blocks.len()).rev().find(|&held| self.total(held) <= limit)
    }

    /// The larger number of each.
    fn max(self, other: Self) -> Self {
        let blocks = self.blocks.into_iter().zip(other.blocks).map(|(a, b)| a.max(b));
        Self {
            words: self.words.max(other.words),
            work: self.work.max(other.work),
            blocks: blocks.collect(),
        }
    }
}

impl TrainOptions {
    /// Memory of training on blocks, from their sizes; no block is read.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::corpus::blocks::BlockDirectory;
    /// use lda_core::train::TrainOptions;
    ///
    /// let path = std::env::temp_dir().join(format!("lda-block-memory-{}", std::process::id()));
    /// let corpus = Corpus::from_tokens((0..100u32).map(|d| [d % 7, d % 3, d % 5]))?;
    /// let blocks = BlockDirectory::cut(&corpus, 30, &path)?;
    /// let memory = TrainOptions::new(10).estimate_block_memory(&blocks)?;
    /// assert!(memory.total(0) < memory.total(5));
    /// assert_eq!(memory.held_within(memory.total(2)), Some(2));
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimate_block_memory<B: Blocks>(
        &self,
        blocks: &B,
    ) -> Result<BlockMemory, OptionsError> {
        let resolved = resolve(blocks, self, &None)?;
        let setup = SamplerSetup { options: &resolved, custom: None };
        Ok(memory(blocks, setup, self.threads.unwrap_or_else(rayon::current_num_threads)))
    }
}

/// Number of blocks that stay in memory: as many as the limit allows, and none without a limit.
pub(super) fn held_blocks<B: Blocks>(
    blocks: &B,
    setup: SamplerSetup<'_>,
    options: &TrainOptions,
) -> Result<usize, OptionsError> {
    let Some(limit) = options.memory_limit else { return Ok(0) };
    let threads = options.threads.unwrap_or_else(rayon::current_num_threads);
    let memory = memory(blocks, setup, threads);
    let needed = memory.total(0);
    memory.held_within(limit).ok_or(OptionsError::Memory { needed, limit })
}

/// Memory of a run on `threads` threads, with its warm-up.
fn memory<B: Blocks>(blocks: &B, setup: SamplerSetup<'_>, threads: usize) -> BlockMemory {
    let of = |setup: SamplerSetup<'_>| match setup.options.narrow {
        true => estimate::<u16, B>(blocks, setup, threads),
        false => estimate::<u32, B>(blocks, setup, threads),
    };
    let own = of(setup);
    if setup.options.warm_up == 0 {
        return own;
    }
    let warm_up = setup.options.of_warm_up();
    own.max(of(SamplerSetup { options: &warm_up, custom: None }))
}

fn estimate<T: Width, B: Blocks>(
    blocks: &B,
    setup: SamplerSetup<'_>,
    threads: usize,
) -> BlockMemory {
    let options = setup.options;
    let (topics, statistics) = (options.topics as usize, blocks.statistics());
    let frequencies = || statistics.word_frequencies().iter().copied();
    let requires: Vec<Requires> =
        samplers::<T>(setup).iter().map(|sampler| sampler.requires()).collect();
    let of_token = TokenBytes::of::<T>(&requires, setup);
    let of_block = |part: &Part| of_token.of_block(part, options.ranges as u64);
    let each: Vec<u64> = blocks.parts().iter().map(of_block).collect();
    let tables = requires.iter().any(|requires| requires.word_tables);
    let tables = if tables { WordTables::<T>::bytes(topics, frequencies()) } else { 0 };
    // Statistics, and id, position, frequency and count row of each word.
    let words = 36 * statistics.num_words() as u64
        + Rows::<T>::bytes(topics, frequencies(), Density::Auto)
        + tables
        + padded(topics) as u64 * 4;
    let largest = blocks.parts().iter().max_by_key(|part| part.tokens);
    let work = largest.map_or(0, |part| {
        let share = part.tokens as f64 / statistics.num_tokens().max(1) as f64;
        let lengths = || statistics.lengths().filter(|&(length, _)| length > 0);
        let rows = |density| -> f64 {
            let of = |(length, documents): (u32, u64)| {
                let row = Rows::<T>::bytes(topics, std::iter::once(length.into()), density);
                row as f64 * documents as f64
            };
            lengths().map(of).sum()
        };
        let rows = requires.iter().filter_map(|requires| requires.document_rows).map(rows);
        let rows = (rows.fold(0.0, f64::max) * share) as u64;
        // Topics and partners as they are read and written, and the documents when they are laid out.
        let copies =
            part.tokens * (2 * of_token.carried + 4) + 8 * part.pairs + 16 * part.num_documents();
        let longest = lengths().last().map_or(0, |(length, _)| u64::from(length));
        let word = frequencies().max().unwrap_or(0).min(part.tokens);
        let proposes = requires.iter().any(|requires| requires.proposals);
        let buffers = if proposes { row_buffers(longest.max(word), options.mh_steps) } else { 0 };
        rows + copies + threads as u64 * (padded(topics) as u64 * 112 + buffers)
    });
    BlockMemory { words, work, blocks: each }
}

/// Bytes per token of a block.
struct TokenBytes {
    /// State of a token: its topic, pending proposals and age.
    carried: u64,
    /// Visits of a layout by word, and by document.
    orders: u64,
}

impl TokenBytes {
    fn of<T>(requires: &[Requires], setup: SamplerSetup<'_>) -> Self {
        let proposes = requires.iter().any(|requires| requires.proposals);
        let stride = if proposes { 1 + u64::from(setup.options.mh_steps) } else { 1 };
        let age = u64::from(setup.options.exclude_converged_from.is_some());
        let both = requires.iter().any(|requires| requires.token_order == TokenOrder::ByDegree);
        Self { carried: stride * size_of::<T>() as u64 + age, orders: if both { 2 } else { 1 } }
    }

    /// Bytes of a laid-out block: its tokens, their order, and visits.
    fn of_block(&self, part: &Part, ranges: u64) -> u64 {
        let visits = 8 * part.pairs.min(self.orders * part.tokens);
        let documents = 8 * part.num_documents();
        documents + part.tokens * (self.carried + 4) + visits + (ranges + 1) * (ranges + 1) * 32
    }
}
