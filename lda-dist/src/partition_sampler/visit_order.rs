//! Each word by word or by document, whichever takes less time.
//!
//! By word a row is loaded and taken away again, whatever tokens it has, and each of these takes a scan of its
//! document's row; by document it is the other way round. Where there are many shards a word has few tokens in each: on
//! documents like PubMed's, generated, with K = 8,000 and 1,000 shards two and a half in a request, whose words' rows
//! have 400 topics, and by word loading them was half of what servers did. So a word that has many tokens beside its
//! row is sampled by word, and then the others by document. All is F+LDA, and who comes later sees what those before
//! have done: an exact sweep in another order. By word alone servers took 1.6 times as long there, and workers that
//! pull all words 1.35 times; with 300 shards it is 1.4 and 1.3.
//!
//! Which words are which follows from the tokens and from the rows alone, of which it matters whether they are lists.
//! So topics of 16 and of 32 bits come to other numbers here, as they do by document in one process.
//!
//! Memory: 10 bytes a token with 16-bit topics, 12 bytes a document, a byte a word, and a second sampler's arrays over
//! topics.

use std::fmt;

use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::sampler::{Block, BlockKey, Context, FPlusDoc, GridBlock, Sampler};

use super::{PartitionSampler, SampleContext, Segment};

// Times, in those that sixteen topics of a list take to be scanned.

/// For a topic of a list that is loaded and taken away again.
const LOADED: u64 = 2;
/// The same where so many are there that sums over all topics are added up anew, instead of being kept up.
const LOADED_OF_MANY: u64 = 1;
/// For sixteen topics of which sums are added up anew, or of a dense row; to scan these takes a quarter.
const DENSE: u64 = 1;
/// For a row that is loaded, besides.
const ROW: u64 = 10;
/// For a token by word: its document's row is short.
const TOKEN: u64 = 4;

/// Tokens in the order of documents.
pub(super) struct ByDocument<T: TopicIndex> {
    /// Made when it is wanted first.
    scratch: Option<<FPlusDoc as Sampler<T>>::Scratch>,
    /// By word that lies here: whether its tokens are among these.
    has: Vec<bool>,
    /// By document: its tokens, and then where its next one comes.
    next: Vec<u32>,
    visits: Vec<RowRun>,
    words: Vec<u32>,
    topics: Vec<T>,
    /// Where each token was laid out.
    places: Vec<u32>,
}

impl<T: TopicIndex> Default for ByDocument<T> {
    fn default() -> Self {
        Self {
            scratch: None,
            has: Vec::new(),
            next: Vec::new(),
            visits: Vec::new(),
            words: Vec::new(),
            topics: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl<T: TopicIndex> fmt::Debug for ByDocument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByDocument").field("tokens", &self.topics.len()).finish_non_exhaustive()
    }
}

impl<T: TopicIndex> ByDocument<T> {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        let Self { has, next, visits, words, topics, places, .. } = self;
        has.capacity()
            + size_of::<u32>() * (next.capacity() + words.capacity() + places.capacity())
            + size_of::<RowRun>() * visits.capacity()
            + size_of::<T>() * topics.capacity()
    }
}

/// Times that a row takes: to be loaded and taken away, and to be scanned.
fn times<T: TopicIndex>(rows: &Rows<T>, row: usize) -> (u64, u64) {
    let all = rows.topics() as u64 / 16;
    let Some(topics) = rows.listed(row).map(|list| list.len() as u64) else {
        return (ROW + DENSE * all, 1 + DENSE * all / 4);
    };
    let are_many = topics > 2 * all;
    let loaded = if are_many { LOADED_OF_MANY * topics + DENSE * all } else { LOADED * topics };
    (ROW + loaded, 1 + topics / 16)
}

impl<T: TopicIndex> PartitionSampler<T> {
    /// Which words are sampled by document.
    pub(super) fn choose_orders(&mut self, documents: &Rows<T>) {
        let Self { by_document: ByDocument { has, next, .. }, visits, words, .. } = self;
        has.clear();
        let (mut start, mut saved) = (0, 0);
        for &RowRun { row, end } in &*visits {
            let tokens = u64::from(end - std::mem::replace(&mut start, end));
            let (loaded, scanned) = times(words, row as usize);
            let (by_word, by_document) = (loaded + TOKEN * tokens, scanned * tokens);
            saved += by_word.saturating_sub(by_document);
            has.push(by_document < by_word);
        }
        next.clear();
        next.resize(documents.len(), 0);
        self.count();
        let ByDocument { has, next, .. } = &mut self.by_document;
        let some = next.iter().enumerate().filter(|(_, tokens)| **tokens > 0);
        let loaded: u64 = some.map(|(document, _)| times(documents, document).0).sum();
        if saved <= loaded {
            has.fill(false);
            next.fill(0);
        }
    }

    /// Counts the tokens of each document.
    fn count(&mut self) {
        let Self { by_document: ByDocument { has, next, .. }, visits, documents, .. } = self;
        let mut start = 0;
        for (&RowRun { end, .. }, &has) in visits.iter().zip(&*has) {
            let tokens = std::mem::replace(&mut start, end) as usize..end as usize;
            if has {
                documents[tokens].iter().for_each(|&document| next[document as usize] += 1);
            }
        }
    }

    /// Samples each word as was chosen.
    pub(super) fn sample_in_chosen_order(&mut self, again: u8, of: &mut SampleContext<'_, T>) {
        self.segments.clear();
        let mut start = 0;
        for (&RowRun { row: word, end }, &has) in self.visits.iter().zip(&self.by_document.has) {
            let start = std::mem::replace(&mut start, end);
            if !has {
                self.segments.push(Segment { range: 0, word, start, end });
            }
        }
        if !self.segments.is_empty() {
            self.sample_by_word(again, of);
        }
        if self.segments.len() < self.visits.len() {
            self.sample_by_document(again, of);
        }
    }

    /// Samples the words that were chosen.
    fn sample_by_document(&mut self, again: u8, of: &mut SampleContext<'_, T>) {
        self.sort_by_document();
        self.update_totals(of.totals, of.own.iter().copied());
        let Self { by_document, totals, wave, after, .. } = self;
        let ByDocument { scratch, visits, words, topics, places, .. } = by_document;
        let scratch = scratch.get_or_insert_with(|| FPlusDoc.scratch(of.job.topics() as usize));
        let block = GridBlock {
            key: BlockKey { documents: of.key.documents + 1, ..of.key },
            visits,
            partner: words,
            z: topics,
            words: &mut self.words,
            documents: of.documents,
            tables: None,
        };
        let context = Context { again, ..of.job.context(of.round, totals, *wave) };
        let outcome = FPlusDoc.sample(0, &context, scratch, Block::Grid(block));
        for (topic, by) in outcome.totals {
            of.own[topic as usize] += by;
        }
        for (&place, &topic) in places.iter().zip(&*topics) {
            after[place as usize] = topic;
        }
    }

    /// Puts the tokens of these words in the order of documents; a document's stay in order.
    fn sort_by_document(&mut self) {
        let Self { by_document, visits, documents, after, .. } = self;
        let ByDocument { has, next, visits: of_documents, words, topics, places, .. } = by_document;
        of_documents.clear();
        let mut end = 0;
        for (document, next) in (0..).zip(&mut *next) {
            let tokens = std::mem::replace(next, end);
            if tokens > 0 {
                end += tokens;
                of_documents.push(RowRun { row: document, end });
            }
        }
        words.resize(end as usize, 0);
        topics.resize(end as usize, T::new(0));
        places.resize(end as usize, 0);
        let mut start = 0;
        for (&RowRun { row, end }, &has) in visits.iter().zip(&*has) {
            let tokens = std::mem::replace(&mut start, end)..end;
            for place in tokens.filter(|_| has) {
                let next = &mut next[documents[place as usize] as usize];
                let at = *next as usize;
                *next += 1;
                (words[at], topics[at], places[at]) = (row, after[place as usize], place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lda_core::counts::Density;
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    use super::*;
    use crate::job::{Job, Round};
    use crate::wire::RowCode;

    /// Tokens, (word, document), words in order; their topics, and what is counted of these.
    struct State {
        tokens: &'static [(u32, u32)],
        topics: Vec<u16>,
        totals: Vec<u32>,
        documents: Rows<u16>,
        /// Tokens of other shards in each row but the first, of a topic each.
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

        /// Lays it out.
        fn lay(&self, sampler: &mut PartitionSampler<u16>) {
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

        /// A sweep as `sample` does it, after which all counts are of the topics.
        fn sweep(
            &mut self,
            sampler: &mut PartitionSampler<u16>,
            job: &Job,
            epoch: u32,
            sample: impl FnOnce(&mut PartitionSampler<u16>, &mut SampleContext<'_, u16>),
        ) {
            self.lay(sampler);
            let mut own = vec![0; self.totals.len()];
            let round = Round { epoch, number: 0, attempt: 0 };
            let key = BlockKey { shard: 0, documents: 1, words: 0 };
            let Self { totals, documents, .. } = self;
            let mut owner = SampleContext { job, round, key, totals, own: &mut own, documents };
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

    /// Whichever words are sampled by document, the law is the posterior.
    #[test]
    fn either_way_the_law_is_the_posterior() {
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
        let job = Job::new(2, 3, alpha.to_vec().into(), beta, 3).unwrap();
        let mut sampler = PartitionSampler::new(2);
        let mut state = State::new(TOKENS, vec![0; TOKENS.len()], 2);
        let mut seen = vec![0u32; law.len()];
        let sweeps = 60_000;
        for sweep in 0..sweeps {
            state.sweep(&mut sampler, &job, sweep, |sampler, owner| {
                sampler.build_rows();
                sampler.choose_orders(owner.documents);
                // Each way by turns.
                sampler.by_document.has = (0..3).map(|word| sweep >> word & 1 == 1).collect();
                sampler.after.clone_from(&sampler.before);
                for pass in 0..2 {
                    sampler.by_document.next.fill(0);
                    sampler.count();
                    sampler.sample_in_chosen_order(pass, owner);
                }
            });
            // Between what is counted others pass, so that they hardly know of each other.
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
    fn some() -> State {
        let tokens: Vec<(u32, u32)> = (0..400)
            .map(|at| (0, at / 20))
            .chain((0..100).map(|at| (1 + at / 5, at % 20)))
            .collect();
        let topics = (0..500).map(|at| (at * 37 % 500) as u16).collect();
        State::new(tokens.leak(), topics, 500)
    }

    #[test]
    fn words_with_few_tokens_are_sampled_by_document() {
        let job = Job::new(500, 21, 0.1.into(), 0.01, 3).unwrap();
        let mut sampler = PartitionSampler::new(500);
        let mut state = some();
        state.others = 100;
        state.sweep(&mut sampler, &job, 1, |sampler, owner| {
            sampler.build_rows();
            sampler.choose_orders(owner.documents);
            let has = sampler.by_document.has.clone();
            assert!(!has[0] && has[1..].iter().all(|has| *has), "{has:?}");
            assert_eq!(sampler.by_document.next, [5; 20]);
            sampler.sample(&[20], 1, owner);
        });
        // And not where rows are short.
        state.others = 0;
        state.sweep(&mut sampler, &job, 2, |sampler, owner| {
            sampler.build_rows();
            sampler.choose_orders(owner.documents);
            assert!(!sampler.by_document.has.contains(&true));
            sampler.sample(&[20], 1, owner);
        });
    }

    #[test]
    fn by_word_alone_it_is_what_ranges_are() {
        let job = Job::new(500, 21, 0.1.into(), 0.01, 3).unwrap();
        let (mut sampler, mut one, mut other) = (PartitionSampler::new(500), some(), some());
        for (epoch, passes) in [(1, 1), (2, 3), (3, 2)] {
            one.sweep(&mut sampler, &job, epoch, |sampler, owner| {
                sampler.sample(&[20], passes, owner)
            });
            assert!(!sampler.by_document.has.contains(&true));
            let ranges = &[20, 20];
            other.sweep(&mut sampler, &job, epoch, |sampler, owner| {
                sampler.sample(ranges, passes, owner)
            });
            assert_eq!(one.topics, other.topics);
        }
        assert_ne!(one.topics, some().topics);
    }
}
