//! What a run will need, before it starts.

use serde::{Deserialize, Serialize};

use crate::corpus::Corpus;
use crate::counts::{Density, Rows, RowsTooLarge};
use crate::layout::{Order, TokenOrder, WordRanges, greedy_partition};
use crate::sampler::{WordTables, padded};
use crate::train::options::{OptionsError, Resolved, SamplerKind, TrainOptions};
use crate::train::registry::{SamplerSetup, Width, token_sets};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::state::room;

/// Bytes by what they are for; an upper estimate, the corpus itself left out.
///
/// | what | bytes |
/// |---|---|
/// | assignments | 2 a token (4 above 65,536 topics), and as much for each of M pending proposals; 1 a token where converged ones are left out |
/// | layout | 4 a token that F+LDA or the exact sampler has, 8 a word in a document range that has it or, by document, 8 a document in a word range, 12 a document, 16 a word |
/// | inverse index | 4 a token that WarpLDA has |
/// | document counts | 64 bytes for each 16 topics (8 above 65,536) that a document can have, 2K or 4K where dense |
/// | word counts | the same by word; and where a sampler keeps stale tables, 16 and a topic id for each topic that a word can have |
/// | scratch | about 112K a thread; with WarpLDA 4 (2 + M) a token of the longest document or most frequent word beside, with LightLDA a topic id a token and 16 bytes a document of a document range |
/// | evaluation | 16 a document while the likelihood is computed, and word counts where the sampler keeps none |
/// | hand over | 4 a token where WarpLDA warms up, which is gone before the sampler's state comes |
///
/// Where WarpLDA warms up, each line is the larger of its own and the sampler's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Assignments and pending proposals.
    pub assignments: u64,
    /// Where tokens lie.
    pub layout: u64,
    /// Slots by document.
    pub inverse_index: u64,
    /// C_d.
    pub document_counts: u64,
    /// C_w.
    pub word_counts: u64,
    /// Threads' arrays over topics.
    pub scratch: u64,
    /// While the likelihood is computed.
    pub evaluation: u64,
    /// Between a warm-up and the sampler.
    pub hand_over: u64,
}

impl MemoryEstimate {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.assignments
            + self.layout
            + self.inverse_index
            + self.document_counts
            + self.word_counts
            + self.scratch
            + self.evaluation
            + self.hand_over
    }

    /// Of each kind the larger.
    fn max(self, other: Self) -> Self {
        Self {
            assignments: self.assignments.max(other.assignments),
            layout: self.layout.max(other.layout),
            inverse_index: self.inverse_index.max(other.inverse_index),
            document_counts: self.document_counts.max(other.document_counts),
            word_counts: self.word_counts.max(other.word_counts),
            scratch: self.scratch.max(other.scratch),
            evaluation: self.evaluation.max(other.evaluation),
            hand_over: self.hand_over.max(other.hand_over),
        }
    }
}

impl TrainOptions {
    /// What training on `corpus` will need; nothing large is allocated to find out.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    ///
    /// ```
    /// use lda_core::corpus::Corpus;
    /// use lda_core::train::TrainOptions;
    ///
    /// let corpus = Corpus::from_tokens([[0, 1, 2], [0, 0, 1]])?;
    /// let few = TrainOptions::new(10).estimate_memory(&corpus)?;
    /// let many = TrainOptions::new(10_000).estimate_memory(&corpus)?;
    /// assert!(few.total() < many.total());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimate_memory(&self, corpus: &Corpus) -> Result<MemoryEstimate, OptionsError> {
        let resolved = self.resolve(corpus)?;
        if resolved.sampler == SamplerKind::Custom {
            return Err(OptionsError::NoCustomSampler);
        }
        let threads = self.threads.unwrap_or_else(rayon::current_num_threads);
        Ok(SamplerSetup { options: &resolved, custom: None }.memory(corpus, threads))
    }
}

impl SamplerSetup<'_> {
    /// Memory of a run on `threads` threads.
    pub(crate) fn memory(&self, corpus: &Corpus, threads: usize) -> MemoryEstimate {
        let estimate = match self.options.narrow {
            true => estimate::<u16>,
            false => estimate::<u32>,
        };
        let own = estimate(*self, corpus, threads);
        if self.options.warm_up == 0 {
            return own;
        }
        let warm_up = self.options.of_warm_up();
        let first = SamplerSetup { options: &warm_up, custom: None };
        let first = estimate(first, corpus, threads);
        MemoryEstimate { hand_over: corpus.num_tokens() * 4, ..own.max(first) }
    }

    /// Whether the rows of such a run can be made; nothing large is.
    ///
    /// # Errors
    /// Where [`State::new`](crate::train::state::State::new) would fail.
    pub(crate) fn check_rows(&self, corpus: &Corpus, pseudo: &Pseudo) -> Result<(), RowsTooLarge> {
        match self.options.narrow {
            true => check_rows::<u16>(*self, corpus, pseudo),
            false => check_rows::<u32>(*self, corpus, pseudo),
        }
    }
}

impl Resolved {
    /// Bytes that pseudo-counts add to those of a run.
    pub(crate) fn pseudo_memory(&self, corpus: &Corpus, pseudo: &PseudoCounts) -> u64 {
        let (topics, tokens) = (self.topics as usize, corpus.word_frequencies());
        let with = || tokens.iter().enumerate().map(|(word, tokens)| tokens + pseudo.of_word(word));
        // Either side of a warm-up has rows, AliasLDA tables.
        let rows = match self.narrow {
            true => {
                Rows::<u16>::bytes(topics, with(), Density::Auto)
                    + WordTables::<u16>::bytes(topics, with())
            }
            false => {
                Rows::<u32>::bytes(topics, with(), Density::Auto)
                    + WordTables::<u32>::bytes(topics, with())
            }
        };
        // WarpLDA's copy of them, as tokens and words.
        let still = pseudo.sum() * if self.narrow { 2 } else { 4 } + tokens.len() as u64 * 8;
        pseudo.memory() as u64 + rows + still
    }
}

fn check_rows<T: Width>(
    setup: SamplerSetup<'_>,
    corpus: &Corpus,
    pseudo: &Pseudo,
) -> Result<(), RowsTooLarge> {
    let options = setup.options;
    let (topics, ranges) = (options.topics as usize, options.ranges);
    let sets = token_sets::<T>(corpus, setup);
    for (documents, requires) in &sets {
        let Some(density) = requires.document_rows else { continue };
        let lengths: Vec<u64> =
            documents.iter().map(|&d| corpus.doc_length(d as usize)).filter(|&n| n > 0).collect();
        for range in greedy_partition(lengths.iter().copied(), ranges) {
            Rows::<T>::check(topics, range.iter().map(|&d| lengths[d as usize]), density)?;
        }
    }
    if sets.iter().any(|(_, requires)| requires.word_rows) {
        let words = WordRanges::new(&corpus.word_frequencies(), ranges);
        for range in 0..ranges {
            let room = room(&words, range, pseudo);
            Rows::<T>::check(topics, room, Density::Auto)?;
        }
    }
    Ok(())
}

fn estimate<T: Width>(setup: SamplerSetup<'_>, corpus: &Corpus, threads: usize) -> MemoryEstimate {
    let options = setup.options;
    let topics = options.topics as usize;
    let frequencies = corpus.word_frequencies();
    let words: u64 = Rows::<T>::bytes(topics, frequencies.iter().copied(), Density::Auto);
    let ranges = options.ranges as u64;
    let sets = token_sets::<T>(corpus, setup);
    let mut memory = MemoryEstimate {
        // A word's id, position, frequency and count row; C_k; and what does not grow.
        layout: corpus.num_words() as u64 * 20 + padded(topics) as u64 * 4 + 1024,
        scratch: threads as u64 * padded(topics) as u64 * 112,
        evaluation: corpus.num_documents() as u64 * 16,
        ..MemoryEstimate::default()
    };
    for (documents, requires) in &sets {
        let lengths = || documents.iter().map(|&d| corpus.doc_length(d as usize));
        let tokens: u64 = lengths().sum();
        let stride = if requires.proposals { 1 + u64::from(options.mh_steps) } else { 1 };
        let age = u64::from(options.exclude_converged_from.is_some());
        memory.assignments += tokens * (stride * size_of::<T>() as u64 + age);
        let pairs = || documents.iter().map(|&d| corpus.document(d as usize).words.len() as u64);
        // A word in each document range that has it; a document in each word range that it has.
        let by_word = || frequencies.iter().map(|&n| n.min(ranges)).sum::<u64>();
        let by_document = || pairs().map(|n| n.min(ranges)).sum::<u64>();
        let visits = match requires.token_order {
            TokenOrder::All(Order::ByWord) => by_word(),
            TokenOrder::All(Order::ByDocument) => by_document(),
            TokenOrder::ByDegree => by_word() + by_document(),
        };
        let visits = visits.min(pairs().sum());
        memory.layout +=
            visits * 8 + documents.len() as u64 * 12 + (ranges + 1) * (ranges + 1) * 32;
        if requires.proposals && tokens > 0 {
            let word = frequencies.iter().copied().max().unwrap_or(0);
            let longest = lengths().max().unwrap_or(0).max(word);
            // Room is made a quarter ahead.
            let row = longest * 5 * (2 + u64::from(options.mh_steps)) + 4096;
            memory.scratch += threads as u64 * row;
            memory.inverse_index += tokens * 4;
        } else {
            memory.layout += tokens * 4;
        }
        if requires.positions {
            let range = tokens.div_ceil(ranges) + lengths().max().unwrap_or(0);
            let held = range * size_of::<T>() as u64 + documents.len() as u64 * 16;
            memory.scratch += threads as u64 * held;
        }
        if requires.word_tables {
            memory.word_counts +=
                WordTables::<T>::bytes(topics, frequencies.iter().copied()) + 64 * ranges;
        }
        if let Some(density) = requires.document_rows {
            memory.document_counts += Rows::<T>::bytes(topics, lengths(), density);
        }
    }
    if sets.iter().any(|(_, requires)| requires.word_rows) {
        memory.word_counts += words;
    } else {
        memory.evaluation += words;
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{SamplerOptions, Trainer};

    #[test]
    fn estimates_bound_what_is_held() {
        let documents = (0..300u32).map(|d| (0..1 + d % 90).map(move |i| (d * 7 + i * i) % 211));
        let corpus = Corpus::from_tokens(documents).unwrap();
        for sampler in SamplerKind::ALL {
            for topics in [1, 20, 1000, 70_000] {
                let own = SamplerOptions::from(sampler);
                let own = own.with_short_length(40).unwrap_or(own);
                let own = own.with_exclusion(3).unwrap_or(own);
                let options = TrainOptions::new(topics).sampler(own).ranges(4).threads(1);
                let estimate = options.estimate_memory(&corpus).unwrap();
                let held = Trainer::new(&corpus, &options).unwrap().memory();
                let without = estimate.total() - estimate.scratch - estimate.evaluation;
                assert!(held <= without, "{sampler}, K = {topics}: {held} > {without}");
                assert!(
                    without <= held * 5 / 4 + 4096,
                    "{sampler}, K = {topics}: {without} ≫ {held}"
                );
            }
        }
    }

    #[test]
    fn estimates_bound_both_sides_of_a_warm_up() {
        let documents = (0..200u32).map(|d| (0..1 + d % 70).map(move |i| (d * 5 + i * i) % 97));
        let corpus = Corpus::from_tokens(documents).unwrap();
        for topics in [20, 1000] {
            let options =
                TrainOptions::new(topics).sampler(SamplerKind::FPlus).warm_up(1).threads(1);
            let estimate = options.estimate_memory(&corpus).unwrap();
            assert_eq!(estimate.hand_over, corpus.num_tokens() * 4);
            let bound = estimate.total() - estimate.scratch - estimate.evaluation;
            let mut trainer = Trainer::new(&corpus, &options).unwrap();
            for _ in 0..2 {
                trainer.epoch();
                assert!(trainer.memory() + estimate.hand_over <= bound);
            }
            assert!(estimate.inverse_index > 0 && estimate.document_counts > 0);
        }
    }

    #[test]
    fn rows_that_cannot_be_made_are_seen_before() {
        let corpus = Corpus::from_tokens([[0, 1, 2], [0, 0, 1]]).unwrap();
        let options = TrainOptions::default().sampler(SamplerKind::FPlus);
        assert!(
            SamplerSetup { options: &options.resolve(&corpus).unwrap(), custom: None }
                .check_rows(&corpus, &None)
                .is_ok()
        );
        // 64 GiB are 2³⁰ lines; the row that starts after them is the first that has no place.
        let dense =
            |rows: usize| Rows::<u16>::check(1 << 16, (0..rows).map(|_| 1 << 40), Density::Dense);
        assert_eq!(dense(1 << 18), Ok(()));
        assert_eq!(dense((1 << 18) + 1), Err(RowsTooLarge));
    }
}
