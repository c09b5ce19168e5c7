//! Estimate of the memory of a run.

use serde::{Deserialize, Serialize};

use crate::corpus::Corpus;
use crate::counts::{Density, Rows, RowsTooLarge};
use crate::layout::{Order, TokenOrder, WordRanges, greedy_partition};
use crate::sampler::{WordTables, padded};
use crate::train::options::{OptionsError, SamplerKind, TrainOptions};
use crate::train::registry::{SamplerSetup, Width, token_sets};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::state::room;

/// Upper estimate of the bytes of a run, by purpose; the corpus itself is not included.
///
/// | purpose | bytes |
/// |---|---|
/// | assignments | 2 per token (4 above 65,536 topics), and as much per pending proposal (M per token); 1 per token if converged ones are excluded |
/// | layout | 4 per token of a Gibbs sampler; 8 per pair of a word and a document range that contains it or, by document, 8 per pair of a document and a word range; 12 per document; 16 per word |
/// | inverse index | 4 per token of WarpLDA |
/// | document counts | 64 per 16 topics (8 above 65,536) that a document can have; 2K or 4K per dense row |
/// | word counts | the same by word; if the sampler keeps stale tables, 16 and a topic id per topic that a word can have |
/// | scratch | about 112K per thread; WarpLDA: also 4 (2 + M) per token of the longest document or most frequent word; LightLDA: also a topic id per token and 16 per document of a document range |
/// | evaluation | 16 per document while the likelihood is computed, and word counts if the sampler keeps none |
/// | hand over | 4 per token at the end of a warm-up, freed before the sampler's state is built |
///
/// With a warm-up, each line is the larger one of WarpLDA's and the sampler's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Assignments and pending proposals.
    pub assignments: u64,
    /// Order of tokens.
    pub layout: u64,
    /// Slots by document.
    pub inverse_index: u64,
    /// C_d.
    pub document_counts: u64,
    /// C_w.
    pub word_counts: u64,
    /// Arrays over topics, of all threads.
    pub scratch: u64,
    /// Memory of one evaluation.
    pub evaluation: u64,
    /// Copy of the topics at the end of a warm-up.
    pub hand_over: u64,
}

impl MemoryEstimate {
    /// Sum of all purposes.
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

    /// The larger estimate for each purpose.
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
    /// Memory of training on `corpus`, from its lengths and frequencies; nothing large is allocated.
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

    /// Checks that the count rows of such a run can be built; nothing large is allocated.
    ///
    /// # Errors
    /// If [`State::new`](crate::train::state::State::new) would fail.
    pub(crate) fn check_rows(&self, corpus: &Corpus, pseudo: &Pseudo) -> Result<(), RowsTooLarge> {
        match self.options.narrow {
            true => check_rows::<u16>(*self, corpus, pseudo),
            false => check_rows::<u32>(*self, corpus, pseudo),
        }
    }
}

impl SamplerSetup<'_> {
    /// Bytes that pseudo-counts add to a run on `threads` threads.
    pub(crate) fn pseudo_memory(
        &self,
        corpus: &Corpus,
        pseudo: &PseudoCounts,
        threads: usize,
    ) -> u64 {
        let (topics, tokens) = (self.options.topics as usize, corpus.word_frequencies());
        let with = || tokens.iter().enumerate().map(|(word, tokens)| tokens + pseudo.of_word(word));
        // Rows, and tables of AliasLDA, for any sampler.
        let rows = match self.options.narrow {
            true => {
                Rows::<u16>::bytes(topics, with(), Density::Auto)
                    + WordTables::<u16>::bytes(topics, with())
            }
            false => {
                Rows::<u32>::bytes(topics, with(), Density::Auto)
                    + WordTables::<u32>::bytes(topics, with())
            }
        };
        pseudo.memory() as u64 + rows + self.still_memory(corpus, pseudo, threads)
    }

    /// Bytes of WarpLDA for pseudo-counts, which it visits like tokens; 0 for the other samplers.
    fn still_memory(&self, corpus: &Corpus, pseudo: &PseudoCounts, threads: usize) -> u64 {
        let proposes = |setup| match self.options.narrow {
            true => token_sets::<u16>(corpus, setup).iter().any(|(_, needs)| needs.proposals),
            false => token_sets::<u32>(corpus, setup).iter().any(|(_, needs)| needs.proposals),
        };
        let warm_up = self.options.of_warm_up();
        let first = SamplerSetup { options: &warm_up, custom: None };
        let steps = if proposes(*self) {
            self.options.mh_steps
        } else if self.options.warm_up > 0 && proposes(first) {
            warm_up.mh_steps
        } else {
            return 0;
        };
        let words = corpus.num_words();
        let topics = pseudo.sum() * if self.options.narrow { 2 } else { 4 };
        // The buffers of a word: those of its tokens, and of its pseudo-counts.
        let word = (0..words).map(|word| pseudo.of_word(word)).max().unwrap_or(0);
        topics + words as u64 * 8 + threads as u64 * row_buffers(word, steps)
    }
}

/// Bytes of WarpLDA's buffers for a row of so many tokens. They grow to a quarter more than needed.
pub(super) fn row_buffers(tokens: u64, mh_steps: u32) -> u64 {
    tokens * 5 * (2 + u64::from(mh_steps)) + 4096
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
        // Id, position, frequency and count row of each word; C_k; and a constant.
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
        let runs = runs(requires.token_order, &frequencies, pairs, ranges);
        memory.layout += runs * 8 + documents.len() as u64 * 12 + (ranges + 1) * (ranges + 1) * 32;
        if requires.proposals && tokens > 0 {
            let word = frequencies.iter().copied().max().unwrap_or(0);
            let longest = lengths().max().unwrap_or(0).max(word);
            memory.scratch += threads as u64 * row_buffers(longest, options.mh_steps);
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

/// Upper bound of the runs of a layout: one per word and document range that has it, or per document
/// and word range that it has. `pairs` iterates over the numbers of distinct words of the documents.
fn runs<I: Iterator<Item = u64>>(
    order: TokenOrder,
    frequencies: &[u64],
    pairs: impl Fn() -> I,
    ranges: u64,
) -> u64 {
    let by_word = || frequencies.iter().map(|&n| n.min(ranges)).sum::<u64>();
    let by_document = || pairs().map(|n| n.min(ranges)).sum::<u64>();
    let runs = match order {
        TokenOrder::All(Order::ByWord) => by_word(),
        TokenOrder::All(Order::ByDocument) => by_document(),
        TokenOrder::ByDegree => by_word() + by_document(),
    };
    runs.min(pairs().sum())
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
    fn pseudo_counts_of_warp_count_as_tokens() {
        use crate::train::Init;

        let corpus = Corpus::from_tokens([[0, 1, 2], [0, 0, 1]]).unwrap();
        let begin = |options: TrainOptions| {
            let pseudo = PseudoCounts::new(3, 2, [(0, 0, 900_000), (2, 1, 100_000)]).unwrap();
            let init = Init { pseudo_counts: Some(pseudo), topics: None };
            Trainer::with_init(&corpus, &options.threads(1), init)
        };
        let options = TrainOptions::new(2);
        let warp = options.clone().sampler(SamplerKind::Warp);
        assert!(begin(warp.clone()).unwrap().memory() >= 2_000_000);
        // Topics of all counts, and buffers for those of the largest word.
        let error = begin(warp.clone().memory_limit(2_000_000 + 900_000 * 15)).unwrap_err();
        assert!(matches!(error, OptionsError::Memory { .. }), "{error}");
        assert!(begin(warp.memory_limit(30_000_000)).is_ok());
        // Other samplers keep entries alone, and there is no warm-up by WarpLDA unless it is asked for.
        let trainer = begin(options.clone().memory_limit(100_000)).unwrap();
        assert_eq!(trainer.resolved().warm_up, 0);
        assert!(begin(options.warm_up(1).memory_limit(100_000)).is_err());
    }

    #[test]
    fn rows_that_are_too_large_are_refused() {
        let corpus = Corpus::from_tokens([[0, 1, 2], [0, 0, 1]]).unwrap();
        let options = TrainOptions::default().sampler(SamplerKind::FPlus);
        assert!(
            SamplerSetup { options: &options.resolve(&corpus).unwrap(), custom: None }
                .check_rows(&corpus, &None)
                .is_ok()
        );
        // 64 GiB are 2³⁰ lines; a position cannot address a row that starts after them.
        let dense =
            |rows: usize| Rows::<u16>::check(1 << 16, (0..rows).map(|_| 1 << 40), Density::Dense);
        assert_eq!(dense(1 << 18), Ok(()));
        assert_eq!(dense((1 << 18) + 1), Err(RowsTooLarge));
    }
}
