//! Order of visits in a partition: the tokens that are sampled by document, after the others were
//! sampled by word.
//!
//! # F+LDA: each word in the way that is faster
//!
//! By word, a word's row is loaded and unloaded once for all its tokens, and each token costs a
//! scan of its document's row; by document it is the other way round. With many shards a word has
//! few tokens in each: on generated documents like PubMed's, with K = 8,000 and 1,000 shards, a
//! word of a request has 2.5 tokens and a row of 400 topics, and by word half of the servers' time
//! was spent loading rows. Therefore words with many tokens relative to the length of their row are
//! sampled by word first, and the others by document afterwards. Both use F+LDA, and later tokens
//! see the changes of earlier ones, so the result is an exact sweep in another order. By word
//! alone, servers took 1.6 times as long there, and workers that pull all words 1.35 times; with
//! 300 shards the factors are 1.4 and 1.3.
//!
//! The choice depends on the tokens and the rows only. It depends on whether a row is a list or
//! dense, so runs with 16-bit and 32-bit topics draw different numbers, as they do by document in
//! one process.
//!
//! # ZenLDAHybrid: each token by the longer of its two rows
//!
//! As in one process, a token is sampled by word if its word has at least as many tokens as its
//! document. The row of the word counts those of all shards.
//!
//! # Memory
//! 11 bytes per token with 16-bit topics, 12 bytes per document, and the arrays over topics of a
//! second sampler; for AliasLDA also its tables of words.

use std::fmt;

use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::sampler::{BlockKey, GridBlock, WordTables};

use super::kind::Pass;
use super::tokens::Tokens;
use super::{SampleContext, Totals};

// Costs, in units of the time that a scan of sixteen topics of a list takes.

/// Loading and unloading one topic of a list.
const LOAD_TOPIC: u64 = 2;
/// The same for a list so long that the sums over all topics are recomputed instead of updated.
const LOAD_TOPIC_OF_MANY: u64 = 1;
/// Recomputing the sums of sixteen topics, or loading sixteen topics of a dense row. Scanning
/// sixteen topics of a dense row takes a quarter of this.
const LOAD_DENSE: u64 = 1;
/// Loading and unloading a row, in addition to its topics.
const LOAD_ROW: u64 = 10;
/// One token that is sampled by word; the row of its document is short.
const TOKEN_BY_WORD: u64 = 4;

/// The tokens that are sampled by document, in the order of documents.
pub(super) struct ByDocument<T: TopicIndex> {
    /// Tables of the words, if the sampler needs them.
    tables: Option<WordTables<T>>,
    /// For each token of the partition, whether it is sampled by document; empty if none is.
    chosen: Vec<bool>,
    /// For each document, its number of chosen tokens; [`sort`](Self::sort) turns the numbers into
    /// positions of the next token.
    next: Vec<u32>,
    visits: Vec<RowRun>,
    /// Word of each token.
    words: Vec<u32>,
    /// Topic of each token.
    topics: Vec<T>,
    /// Position of each token in the order in which the partition's tokens were added.
    positions: Vec<u32>,
}

impl<T: TopicIndex> Default for ByDocument<T> {
    fn default() -> Self {
        Self {
            tables: None,
            chosen: Vec::new(),
            next: Vec::new(),
            visits: Vec::new(),
            words: Vec::new(),
            topics: Vec::new(),
            positions: Vec::new(),
        }
    }
}

impl<T: TopicIndex> fmt::Debug for ByDocument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByDocument").field("tokens", &self.topics.len()).finish_non_exhaustive()
    }
}

impl<T: TopicIndex> ByDocument<T> {
    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let Self { tables, chosen, next, visits, words, topics, positions, .. } = self;
        tables.as_ref().map_or(0, |tables| tables.memory() as usize)
            + chosen.capacity()
            + size_of::<u32>() * (next.capacity() + words.capacity() + positions.capacity())
            + size_of::<RowRun>() * visits.capacity()
            + size_of::<T>() * topics.capacity()
    }

    /// Chooses no tokens.
    ///
    /// INVARIANT: one of the `choose` functions must run before each pass, as a pass leaves positions
    /// in `next` instead of counts.
    pub fn choose_none(&mut self) {
        self.chosen.clear();
    }

    /// Chooses all tokens.
    pub fn choose_all(&mut self, tokens: &Tokens<T>, documents: &Rows<T>) {
        self.chosen.clear();
        self.chosen.resize(tokens.before.len(), true);
        self.count(tokens, documents.len());
    }

    /// Chooses the tokens whose word has fewer tokens than their document. `words` and `documents`
    /// are the rows of both.
    pub fn choose_by_degree(&mut self, tokens: &Tokens<T>, words: &Rows<T>, documents: &Rows<T>) {
        let Self { chosen, next: lengths, .. } = self;
        // 0 for documents without tokens in this partition.
        lengths.clear();
        lengths.resize(documents.len(), 0);
        for &document in &tokens.documents {
            let length = &mut lengths[document as usize];
            if *length == 0 {
                *length = num_tokens(documents, document as usize) as u32;
            }
        }
        chosen.clear();
        for (row, of_word) in tokens.words() {
            let of_row = num_tokens(words, row as usize);
            let of_word = &tokens.documents[of_word.start as usize..of_word.end as usize];
            chosen
                .extend(of_word.iter().map(|&document| of_row < lengths[document as usize].into()));
        }
        self.count(tokens, documents.len());
    }

    /// Chooses the tokens of those words for which sampling by document is cheaper, if together they
    /// save more than loading the rows of their documents costs. `words` and `documents` are the rows
    /// of both.
    pub fn choose_cheapest(&mut self, tokens: &Tokens<T>, words: &Rows<T>, documents: &Rows<T>) {
        let mut saved = 0;
        self.chosen.clear();
        for (row, of_word) in tokens.words() {
            let tokens = of_word.len() as u64;
            let (loaded, scanned) = row_costs(words, row as usize);
            let (by_word, by_document) = (loaded + TOKEN_BY_WORD * tokens, scanned * tokens);
            saved += by_word.saturating_sub(by_document);
            let is_chosen = by_document < by_word;
            self.chosen.extend(std::iter::repeat_n(is_chosen, of_word.len()));
        }
        self.count(tokens, documents.len());
        let some = self.next.iter().enumerate().filter(|(_, tokens)| **tokens > 0);
        let loaded: u64 = some.map(|(document, _)| row_costs(documents, document).0).sum();
        if saved <= loaded {
            self.choose_none();
        }
    }

    /// For each token whether it is sampled by document; `None` if none is.
    pub fn chosen(&self) -> Option<&[bool]> {
        (!self.chosen.is_empty()).then_some(&*self.chosen)
    }

    /// Counts the chosen tokens of each document in `next`.
    fn count(&mut self, tokens: &Tokens<T>, documents: usize) {
        self.next.clear();
        self.next.resize(documents, 0);
        for (&document, _) in tokens.documents.iter().zip(&self.chosen).filter(|it| *it.1) {
            self.next[document as usize] += 1;
        }
    }

    /// Samples the chosen tokens, one visit per document. `again` counts the passes over the partition,
    /// and `rows` are the rows of the words.
    pub fn sample(
        &mut self,
        (again, pass): (u8, &mut dyn Pass<T>),
        tokens: &mut Tokens<T>,
        rows: &mut Rows<T>,
        totals: &mut Totals,
        cx: &mut SampleContext<'_, T>,
    ) {
        self.sort(tokens);
        if self.topics.is_empty() {
            return;
        }
        totals.update(cx.totals, cx.own.iter().copied());
        let Self { tables, visits, words, topics, positions, .. } = self;
        if pass.needs_tables() {
            let tables = tables.get_or_insert_with(|| WordTables::new(rows.topics(), []));
            tables.renew(rows.topics(), (0..rows.len()).map(|row| num_tokens(rows, row)));
        }
        let block = GridBlock {
            // A random stream of its own: the words before have used that of `key`.
            key: BlockKey { documents: cx.key.documents + 1, ..cx.key },
            visits,
            partner: words,
            z: topics,
            words: rows,
            documents: cx.documents,
            tables: tables.as_mut(),
        };
        let context = totals.context(cx.spec, cx.round, again);
        let outcome = pass.sample(&context, block);
        for (topic, by) in outcome.totals {
            cx.own[topic as usize] += by;
        }
        for (&position, &topic) in positions.iter().zip(&*topics) {
            tokens.after[position as usize] = topic;
        }
    }

    /// Sorts the chosen tokens by document with a counting sort; tokens of a document stay in
    /// order.
    fn sort(&mut self, tokens: &Tokens<T>) {
        let Self { chosen, next, visits, words, topics, positions, .. } = self;
        visits.clear();
        let mut end = 0;
        for (document, next) in (0..).zip(&mut *next) {
            let tokens = std::mem::replace(next, end);
            if tokens > 0 {
                end += tokens;
                visits.push(RowRun { row: document, end });
            }
        }
        words.resize(end as usize, 0);
        topics.resize(end as usize, T::new(0));
        positions.resize(end as usize, 0);
        for (row, of_word) in tokens.words() {
            for position in of_word.filter(|&position| chosen[position as usize]) {
                let next = &mut next[tokens.documents[position as usize] as usize];
                let at = *next as usize;
                *next += 1;
                (words[at], topics[at], positions[at]) =
                    (row, tokens.after[position as usize], position);
            }
        }
    }
}

/// Number of tokens that a row counts.
fn num_tokens<T: TopicIndex>(rows: &Rows<T>, row: usize) -> u64 {
    let mut tokens = 0;
    rows.for_each(row, |_, count| tokens += u64::from(count));
    tokens
}

/// Cost of a row, in the units above: of loading and unloading it, and of scanning it for one
/// token.
fn row_costs<T: TopicIndex>(rows: &Rows<T>, row: usize) -> (u64, u64) {
    let all = rows.topics() as u64 / 16;
    let Some(topics) = rows.listed(row).map(|list| list.len() as u64) else {
        return (LOAD_ROW + LOAD_DENSE * all, 1 + LOAD_DENSE * all / 4);
    };
    let are_many = topics > 2 * all;
    let loaded =
        if are_many { LOAD_TOPIC_OF_MANY * topics + LOAD_DENSE * all } else { LOAD_TOPIC * topics };
    (LOAD_ROW + loaded, 1 + topics / 16)
}

#[cfg(test)]
mod tests {
    use lda_core::counts::Density;
    use lda_core::train::SamplerKind;
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    use super::*;
    use crate::partition_sampler::PartitionSampler;
    use crate::spec::{ModelSpec, Round};
    use crate::wire::RowCode;

    fn sampler(topics: u32) -> PartitionSampler<u16> {
        PartitionSampler::new(topics, SamplerKind::FPlus.into())
    }

    /// Tokens as (word, document), words in order, with their topics and the counts of these.
    struct State {
        tokens: &'static [(u32, u32)],
        topics: Vec<u16>,
        totals: Vec<u32>,
        documents: Rows<u16>,
        /// Tokens of other shards in each row except that of word 0, one for each of the first
        /// topics.
        others: usize,
    }

    impl State {
        fn new(tokens: &'static [(u32, u32)], topics: Vec<u16>, number: usize) -> Self {
            let documents = 1 + tokens.iter().map(|token| token.1).max().unwrap();
            let lengths = (0..documents).map(|at| tokens.iter().filter(|it| it.1 == at).count());
            let rows = Rows::new(number, lengths.map(|it| it as u64), Density::Auto).unwrap();
            let (totals, documents) = (vec![0; number], rows);
            let mut state = Self { tokens, topics, totals, documents, others: 0 };
            for (&(_, document), &topic) in tokens.iter().zip(&state.topics) {
                state.totals[usize::from(topic)] += 1;
                state.documents.increment(document as usize, topic.into());
            }
            state
        }

        /// Adds all tokens to the sampler, with rows that count them.
        fn add_to(&self, sampler: &mut PartitionSampler<u16>) {
            sampler.clear();
            let code = RowCode::new(self.totals.len() as u32);
            let all: Vec<((u32, u32), u16)> =
                self.tokens.iter().copied().zip(self.topics.iter().copied()).collect();
            for run in all.chunk_by(|a, b| a.0.0 == b.0.0) {
                let mut row = vec![0; self.totals.len()];
                let others = if run[0].0.0 == 0 { 0 } else { self.others };
                row[..others].fill(1);
                run.iter().for_each(|&(_, topic)| row[usize::from(topic)] += 1);
                let there = (0..).zip(row).filter(|entry| entry.1 > 0);
                let there: Vec<(u32, u32)> = there.collect();
                let mut bytes = Vec::new();
                code.encode(&there, &mut bytes);
                let tokens = run.iter().map(|&((_, document), topic)| (document, topic));
                sampler.add_word(&mut &bytes[..], tokens).unwrap().unwrap();
            }
        }

        /// Runs one sweep, and checks that all counts match the new topics.
        fn sweep(
            &mut self,
            sampler: &mut PartitionSampler<u16>,
            spec: &ModelSpec,
            epoch: u32,
            sample: impl FnOnce(&mut PartitionSampler<u16>, &mut SampleContext<'_, u16>),
        ) {
            self.add_to(sampler);
            let mut own = vec![0; self.totals.len()];
            let round = Round { epoch, number: 0, attempt: 0 };
            let key = BlockKey { shard: 0, documents: 1, words: 0 };
            let Self { totals, documents, .. } = self;
            let mut owner = SampleContext { spec, round, key, totals, own: &mut own, documents };
            sample(sampler, &mut owner);
            let new = Self::new(self.tokens, sampler.topics().to_vec(), self.totals.len());
            let both = self.totals.iter().zip(&own).zip(&new.totals);
            both.for_each(|((before, by), after)| {
                assert_eq!(before.wrapping_add_signed(*by), *after)
            });
            for document in 0..new.documents.len() {
                for topic in 0..self.totals.len() as u32 {
                    let of = |rows: &Rows<u16>| rows.get(document, topic);
                    assert_eq!(of(&self.documents), of(&new.documents));
                }
            }
            *self = Self { others: self.others, ..new };
        }
    }

    /// For every choice of words that are sampled by document, samples follow the posterior.
    #[test]
    fn samples_in_any_order_follow_the_posterior() {
        const TOKENS: &[(u32, u32)] = &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)];
        let (alpha, beta) = ([0.5, 1.5], 0.3);
        let law: Vec<f64> = (0..1usize << TOKENS.len())
            .map(|code| {
                let (mut documents, mut words, mut totals) =
                    ([[0.0; 2]; 2], [[0.0; 2]; 3], [0.0; 2]);
                let mut weight = 1.0;
                for (at, &(word, document)) in TOKENS.iter().enumerate() {
                    let k = code >> at & 1;
                    let (of_document, of_word) =
                        (&mut documents[document as usize][k], &mut words[word as usize][k]);
                    weight *=
                        (*of_document + alpha[k]) * (*of_word + beta) / (totals[k] + 3.0 * beta);
                    *of_document += 1.0;
                    *of_word += 1.0;
                    totals[k] += 1.0;
                }
                weight
            })
            .collect();
        let all: f64 = law.iter().sum();
        let spec = ModelSpec::new(2, 3, alpha.to_vec().into(), beta, 3).unwrap();
        let mut sampler = sampler(2);
        let mut state = State::new(TOKENS, vec![0; TOKENS.len()], 2);
        let mut seen = vec![0u32; law.len()];
        let sweeps = 60_000;
        for sweep in 0..sweeps {
            state.sweep(&mut sampler, &spec, sweep, |sampler, owner| {
                sampler.build_rows();
                // All eight choices in turn.
                let chosen = TOKENS.iter().map(|&(word, _)| sweep >> word & 1 == 1);
                sampler.by_document.chosen = chosen.collect();
                sampler.tokens.after.clone_from(&sampler.tokens.before);
                for pass in 0..2 {
                    sampler.by_document.count(&sampler.tokens, owner.documents.len());
                    sampler.sample_in_chosen_order(pass, &[2], owner);
                }
            });
            // Thinning: only every fourth sweep counts, so that samples are nearly independent.
            if sweep % 4 == 3 {
                let code = state.topics.iter().rev().fold(0, |code, &it| code << 1 | it);
                seen[usize::from(code)] += 1;
            }
        }
        let parts = seen.iter().zip(&law).map(|(&seen, &weight)| {
            let expected = weight / all * f64::from(sweeps / 4);
            assert!(expected > 20.0, "too few for a test");
            (f64::from(seen) - expected).powi(2) / expected
        });
        let p = 1.0 - ChiSquared::new((law.len() - 1) as f64).unwrap().cdf(parts.sum());
        assert!(p > 1e-6, "p = {p}: {seen:?}");
    }

    /// 400 tokens of word 0, and five of each of 20 others, in 20 documents.
    fn example() -> State {
        let tokens: Vec<(u32, u32)> = (0..400)
            .map(|at| (0, at / 20))
            .chain((0..100).map(|at| (1 + at / 5, at % 20)))
            .collect();
        let topics = (0..500).map(|at| (at * 37 % 500) as u16).collect();
        State::new(tokens.leak(), topics, 500)
    }

    #[test]
    fn words_with_few_tokens_are_sampled_by_document() {
        let spec = ModelSpec::new(500, 21, 0.1.into(), 0.01, 3).unwrap();
        let mut sampler = sampler(500);
        let mut state = example();
        state.others = 100;
        state.sweep(&mut sampler, &spec, 1, |sampler, owner| {
            sampler.build_rows();
            sampler.choose_tokens(false, owner.documents);
            let chosen = &sampler.by_document.chosen;
            assert!(!chosen[..400].contains(&true) && !chosen[400..].contains(&false));
            assert_eq!(sampler.by_document.next, [5; 20]);
            sampler.sample(&[20], 1, owner);
        });
        // With short rows, no word is sampled by document.
        state.others = 0;
        state.sweep(&mut sampler, &spec, 2, |sampler, owner| {
            sampler.build_rows();
            sampler.choose_tokens(false, owner.documents);
            assert_eq!(sampler.by_document.chosen(), None);
            sampler.sample(&[20], 1, owner);
        });
    }

    #[test]
    fn sampling_by_word_alone_equals_sampling_in_ranges() {
        let spec = ModelSpec::new(500, 21, 0.1.into(), 0.01, 3).unwrap();
        let (mut sampler, mut one, mut other) = (sampler(500), example(), example());
        for (epoch, passes) in [(1, 1), (2, 3), (3, 2)] {
            one.sweep(&mut sampler, &spec, epoch, |sampler, owner| {
                sampler.sample(&[20], passes, owner)
            });
            assert_eq!(sampler.by_document.chosen(), None);
            let ranges = &[20, 20];
            other.sweep(&mut sampler, &spec, epoch, |sampler, owner| {
                sampler.sample(ranges, passes, owner)
            });
            assert_eq!(one.topics, other.topics);
        }
        assert_ne!(one.topics, example().topics);
    }
}
