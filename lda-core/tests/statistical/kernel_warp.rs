//! WarpLDA's two halves at real sizes: how proposals are judged and how they are drawn.
//!
//! One row of tokens, a word's or a document's, is lent over and over from the same state. With
//! fixed proposals each token must move as often as its ratio says; with none that differ from the
//! token's topic nothing moves, and the new proposals must follow the row's counts and the prior.
//! Rows are shorter than a vector, not a multiple of one, and longer than K.

use crate::common::{assert_law, draws};
use crate::driver::PassParams;
use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::sampler::{
    Block, BlockKey, Column, DocumentBlock, OtherTokens, Sampler, Warp, WordBlock, padded,
};
use lda_core::simd::Isa;

const BETA: f64 = 0.3;
const WORDS: usize = 50;

/// The pass that lends the row, and whether another sampler has some of the word's tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    Word,
    SharedWord,
    /// The same, and of these only their counts are known.
    CountedWord,
    Document,
    /// And with tokens of the document that do not move now.
    SharedDocument,
}

/// A row of tokens and the totals of the state around it.
#[derive(Debug)]
struct Row {
    axis: Axis,
    job: PassParams,
    totals: Vec<u32>,
    z: Vec<u32>,
    /// Tokens that count and do not move.
    others: Vec<u32>,
    count_own: bool,
}

impl Row {
    fn new(axis: Axis, topics: usize, tokens: usize, symmetric: bool, count_own: bool) -> Self {
        let alpha: Vec<f64> =
            (0..topics).map(|k| if symmetric { 0.4 } else { 0.1 + 0.2 * (k % 4) as f64 }).collect();
        let mut job = PassParams::new(&alpha, BETA, WORDS);
        job.mh_steps = 1;
        let mut rng = Xoshiro256PlusPlus::from_seed((topics + tokens) as u64);
        // Squares lean to the low topics: counts of many sizes.
        let mut topic = || {
            let u = rng.next_f64();
            (u * u * topics as f64) as u32
        };
        let z: Vec<u32> = (0..tokens).map(|_| topic()).collect();
        let is_shared = !matches!(axis, Axis::Word | Axis::Document);
        let others = if is_shared { 3 * tokens / 2 } else { 0 };
        let others: Vec<u32> = (0..others).map(|_| topic()).collect();
        let mut totals = vec![0; padded(topics)];
        for (k, total) in totals[..topics].iter_mut().enumerate() {
            *total = 5 + (k as u32 * 37) % 23;
        }
        z.iter().chain(&others).for_each(|&k| totals[k as usize] += 1);
        Self { axis, job, totals, z, others, count_own }
    }

    fn counts(&self) -> Vec<f64> {
        let mut counts = vec![0.0; self.job.topics];
        self.z.iter().chain(&self.others).for_each(|&k| counts[k as usize] += 1.0);
        counts
    }

    fn prior(&self, k: usize) -> f64 {
        if self.by_document() { f64::from(self.job.alpha[k]) } else { BETA }
    }

    fn by_document(&self) -> bool {
        matches!(self.axis, Axis::Document | Axis::SharedDocument)
    }

    /// Weight of topic `k` for a token of topic `own`.
    fn weight(&self, counts: &[f64], own: u32, k: u32) -> f64 {
        let out = f64::from(u8::from(own == k && !self.count_own));
        let total = f64::from(self.totals[k as usize]) - out;
        (counts[k as usize] - out + self.prior(k as usize)) / (total + BETA * WORDS as f64)
    }

    /// Topics and proposals of the tokens after one pass.
    fn pass<T: TopicIndex>(&self, seed: u64, isa: Isa, pending: &[u32]) -> Vec<(u32, u32)> {
        let pairs = self.z.iter().zip(pending);
        let mut tokens: Vec<T> = pairs.flat_map(|(&z, &p)| [T::new(z), T::new(p)]).collect();
        let others: Vec<T> = self.others.iter().map(|&k| T::new(k)).collect();
        let n = self.z.len() as u32;
        let sampler = Warp { count_own: self.count_own };
        let mut scratch = Sampler::<T>::scratch(&sampler, self.job.topics);
        let mut job = self.job.clone();
        (job.seed, job.isa) = (seed, isa);
        let cx = job.context(&self.totals, 1);
        let key = BlockKey::default();
        // The word's tokens in two columns, the document's slots back to front.
        let first = n / 3;
        let (left, right) = ([RowRun { row: 1, end: first }], [RowRun { row: 1, end: n - first }]);
        let all_others = [RowRun { row: 1, end: others.len() as u32 }];
        let inverse: Vec<u32> = (0..n).rev().collect();
        // Between other tokens of its own and of documents beside it, all of which stay as they are.
        let behind = 4 + others.len() as u32 / 3;
        let all_slots = n + others.len() as u32;
        let records = |topics: &[T]| -> Vec<T> {
            topics.iter().flat_map(|&z| [z, T::new(self.job.topics as u32 - 1)]).collect()
        };
        let (left_over, right_over) = others.split_at(others.len() / 3);
        let beside = [T::new(0); 8];
        let mut all_tokens = [
            &beside[..],
            &records(left_over)[..],
            &tokens[..],
            &records(right_over)[..],
            &beside[..4],
        ]
        .concat();
        let shared: Vec<u32> = (0..4 + all_slots + 2).collect();
        let counted = self.axis == Axis::CountedWord;
        // Two words beside this one, which have tokens elsewhere and none here.
        let lengths = [4, u64::from(n) + others.len() as u64, 4];
        let mut rows = Rows::<T>::new(self.job.topics, lengths.into_iter(), Density::Auto).unwrap();
        if counted {
            rows.write(0, [(1, 3), (2, 1)].into_iter());
            rows.write(1, tally(&self.others).into_iter());
            rows.write(2, [(0, 4)].into_iter());
        }
        let block = match self.axis {
            Axis::Document => Block::Documents(DocumentBlock {
                key,
                lengths: &[n],
                inverse: &inverse,
                tokens: &mut tokens,
                moving: None,
            }),
            Axis::SharedDocument => Block::Documents(DocumentBlock {
                key,
                lengths: &[0, 4, all_slots, 2],
                inverse: &shared,
                tokens: &mut all_tokens,
                moving: Some(behind..behind + n),
            }),
            Axis::Word | Axis::SharedWord | Axis::CountedWord => {
                let (a, b) = tokens.split_at_mut(2 * first as usize);
                let visits = if first > 0 { &left[..] } else { &[] };
                Block::Words(WordBlock {
                    key,
                    num_words: 3,
                    columns: vec![
                        Column { visits, tokens: a },
                        Column { visits: &right, tokens: b },
                    ],
                    others: vec![OtherTokens {
                        visits: if others.is_empty() || counted { &[] } else { &all_others },
                        z: if counted { &[] } else { &others },
                    }],
                    rows: Some(&mut rows),
                    counted,
                })
            }
        };
        let pass = if self.by_document() { Warp::DOCUMENTS } else { Warp::WORDS };
        sampler.sample(pass, &cx, &mut scratch, block);
        if !self.by_document() {
            let now = tokens.as_chunks::<2>().0.iter().map(|[z, _]| z.get());
            let all: Vec<u32> = now.chain(self.others.iter().copied()).collect();
            assert_eq!(row_of(&rows, 1), tally(&all), "the row of all tokens");
            let beside =
                if counted { [vec![(1, 3), (2, 1)], vec![(0, 4)]] } else { Default::default() };
            assert_eq!([row_of(&rows, 0), row_of(&rows, 2)], beside, "rows beside it stay");
        }
        if self.axis == Axis::SharedDocument {
            let (first, end) = (2 * behind as usize, 2 * (behind + n) as usize);
            tokens.copy_from_slice(&all_tokens[first..end]);
            let stay = [&beside[..], &records(left_over)[..]].concat();
            assert!(all_tokens[..first] == stay, "those before it");
            let stay = [&records(right_over)[..], &beside[..4]].concat();
            assert!(all_tokens[end..] == stay, "those behind it");
        }
        tokens.as_chunks::<2>().0.iter().map(|[z, p]| (z.get(), p.get())).collect()
    }

    /// Each token moves to its proposal as often as the ratio says.
    fn judges<T: TopicIndex>(&self, repeats: u64) {
        let topics = self.job.topics as u32;
        let pending: Vec<u32> =
            (0..self.z.len() as u32).map(|i| (self.z[i as usize] + 1 + i % 5) % topics).collect();
        let mut moved = vec![0u64; self.z.len()];
        for seed in 0..repeats {
            let after = self.pass::<T>(seed, Isa::detect(), &pending);
            for (i, (topic, _)) in after.into_iter().enumerate() {
                assert!(topic == self.z[i] || topic == pending[i]);
                moved[i] += u64::from(topic != self.z[i]);
            }
        }
        let counts = self.counts();
        for (i, &moved) in moved.iter().enumerate() {
            let (s, t) = (self.z[i], pending[i]);
            let accept = (self.weight(&counts, s, t) / self.weight(&counts, s, s)).min(1.0);
            let law = if s == t { [1.0, 0.0] } else { [1.0 - accept, accept] };
            assert_law(&[repeats - moved, moved], &law);
        }
    }

    /// New proposals follow the counts and the prior; every path draws the same.
    fn proposes<T: TopicIndex>(&self, repeats: u64) {
        let mut seen = vec![0; self.job.topics];
        for seed in 0..repeats {
            let after = self.pass::<T>(seed, Isa::detect(), &self.z);
            for (i, &(topic, proposal)) in after.iter().enumerate() {
                assert_eq!(topic, self.z[i], "a proposal of its own topic moved a token");
                seen[proposal as usize] += 1;
            }
            if seed < 20 {
                for isa in Isa::available() {
                    assert_eq!(self.pass::<T>(seed, isa, &self.z), after, "{isa}");
                }
            }
        }
        let counts = self.counts();
        let law: Vec<f64> = (0..self.job.topics).map(|k| counts[k] + self.prior(k)).collect();
        assert_law(&seen, &law);
    }
}

/// How many tokens there are of each topic that has any, topics ascending.
fn tally(topics: &[u32]) -> Vec<(u32, u32)> {
    let mut topics = topics.to_vec();
    topics.sort_unstable();
    topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

fn row_of<T: TopicIndex>(rows: &Rows<T>, word: usize) -> Vec<(u32, u32)> {
    let mut row = Vec::new();
    rows.for_each(word, |topic, count| row.push((topic, count)));
    row.sort_unstable();
    row
}

fn check<T: TopicIndex>(axis: Axis) {
    for (topics, tokens) in [(17, 3), (17, 16), (100, 37), (100, 600), (1000, 250)] {
        for symmetric in [true, false] {
            if !matches!(axis, Axis::Document | Axis::SharedDocument) && !symmetric {
                continue;
            }
            for count_own in [false, true] {
                let row = Row::new(axis, topics, tokens, symmetric, count_own);
                let proposals = if topics == 1000 { 1_000_000 } else { 500_000 };
                row.proposes::<T>(draws(proposals) / tokens as u64);
                row.judges::<T>(draws(15_000));
            }
        }
    }
}

#[test]
fn by_word() {
    check::<u16>(Axis::Word);
}

#[test]
fn by_word_beside_other_tokens() {
    check::<u16>(Axis::SharedWord);
    check::<u32>(Axis::SharedWord);
}

/// Few tokens beside many topics, and more tokens than topics: both ways of drawing.
#[test]
fn by_word_beside_counts() {
    check::<u16>(Axis::CountedWord);
    check::<u32>(Axis::CountedWord);
}

#[test]
fn by_document_beside_other_tokens() {
    check::<u16>(Axis::SharedDocument);
    check::<u32>(Axis::SharedDocument);
}

#[test]
fn by_document() {
    check::<u16>(Axis::Document);
    check::<u32>(Axis::Document);
}
