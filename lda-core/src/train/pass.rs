//! Cuts passes into blocks, runs them on the pool, and merges their outcomes.
//!
//! In a **grid** pass, wave s runs the blocks (i, (i + s) mod G) for all document ranges i: they
//! share no document row and no word row, so rows are borrowed mutably and nothing is locked. C_k
//! is frozen at the wave's start; each block sees its own changes on top, and all are added, in
//! block order, when the wave ends. The outcome of a block depends only on the state at the wave's
//! start and on its own streams, so it cannot depend on thread count or timing.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::counts::{Rows, TopicIndex};
use crate::layout::{Order, TokenLayout};
use crate::random::Purpose;
use crate::sampler::{
    Block, BlockKey, Column, Context, DocumentBlock, GridBlock, OtherTokens, Outcome, Sampler,
    Shape, WordBlock, WordTables,
};
use crate::train::exclusion::{TokenAge, sample_due};
use crate::train::spans::span;
use crate::train::state::{State, Still, TokenSet};

/// Pool of free scratch; each running block holds one.
#[derive(Debug)]
pub(crate) struct Scratches<S>(Mutex<Vec<S>>);

impl<S> Default for Scratches<S> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<S> Scratches<S> {
    /// Runs `f` with a scratch. If `f` panics, the scratch is dropped and not returned to the pool.
    fn with<R>(&self, make: impl FnOnce() -> S, f: impl FnOnce(&mut S) -> R) -> R {
        let kept = self.lock().pop();
        let mut scratch = kept.unwrap_or_else(make);
        let result = f(&mut scratch);
        self.lock().push(scratch);
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<S>> {
        // Nothing can panic while it is held.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Sums over the blocks of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassReport {
    pub tokens: u64,
    pub changed: u64,
    pub proposed: u64,
    pub accepted: u64,
    pub repeated: u64,
}

impl PassReport {
    pub fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.changed += other.changed;
        self.proposed += other.proposed;
        self.accepted += other.accepted;
        self.repeated += other.repeated;
    }
}

/// Parameters of a pass, besides the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassParams<'a> {
    pub alpha: &'a [f32],
    pub alpha_sum: f64,
    pub alpha_symmetric: bool,
    pub beta: f64,
    pub seed: u64,
    pub epoch: u32,
    pub round: u16,
    pub last_round: bool,
    /// Whether converged tokens are excluded in this epoch.
    pub exclude: bool,
    /// True if C_w does not have the tokens of the block when WarpLDA begins to count words.
    pub counted: bool,
    pub mh_steps: usize,
    pub isa: crate::simd::Isa,
    /// Number of the token set.
    pub set: usize,
    /// Number of the pass among those of the sampler.
    pub pass: usize,
}

impl<'a> PassParams<'a> {
    fn context(&self, topics: usize, words: usize, totals: &'a [u32], wave: u64) -> Context<'a> {
        Context {
            topics,
            alpha: self.alpha,
            alpha_sum: self.alpha_sum,
            alpha_symmetric: self.alpha_symmetric,
            beta: self.beta,
            beta_bar: self.beta * words as f64,
            totals,
            wave,
            seed: self.seed,
            epoch: self.epoch,
            round: self.round,
            again: 0,
            mh_steps: self.mh_steps,
            isa: self.isa,
        }
    }
}

/// Runs one pass of `sampler` over one token set. `wave` counts waves through the run.
///
/// A pass over words writes C_w only in the last round, since no earlier pass reads it.
pub(crate) fn run_pass<T: TopicIndex, S: Sampler<T>>(
    sampler: &S,
    scratches: &Scratches<S::Scratch>,
    params: &PassParams<'_>,
    state: &mut State<T>,
    wave: &mut u64,
) -> PassReport {
    let PassParams { set, pass, .. } = *params;
    let shape = sampler.passes()[pass].shape;
    span!(DEBUG, "pass", name = sampler.passes()[pass].name, set, round = params.round);
    let waves = match shape {
        Shape::Grid(_) => state.words.num_ranges(),
        Shape::WordRanges | Shape::DocumentRanges => 1,
    };
    // INVARIANT: the forms of the scanned rows are set once per pass, from the counts alone, so that
    // they do not depend on the history of the run (and a resumed run has the same ones).
    match shape {
        Shape::Grid(Order::ByWord) => state.sets[set].rows.iter_mut().for_each(Rows::adapt),
        Shape::Grid(Order::ByDocument) => state.word_rows.iter_mut().for_each(Rows::adapt),
        Shape::WordRanges | Shape::DocumentRanges => {}
    }
    // INVARIANT: tables do not outlive a pass, so that a resumed run builds the same ones.
    state.tables.iter_mut().for_each(WordTables::forget);
    let mut report = PassReport::default();
    for step in 0..waves {
        *wave += 1;
        // INVARIANT: C_k is frozen for the wave. Blocks read `totals` and return their changes.
        let totals = std::mem::take(&mut state.totals);
        let topics = state.topics;
        let cx = params.context(topics, state.words.num_words(), &totals, *wave);
        let blocks = match shape {
            Shape::Grid(order) => grid_blocks(state, set, order, step),
            Shape::WordRanges if params.counted => whole(counted_word_blocks(state, set)),
            Shape::WordRanges => whole(word_blocks(state, set, params.last_round)),
            Shape::DocumentRanges => whole(document_blocks(state, set)),
        };
        let outcomes = each_block(blocks, &|(block, ages)| {
            let sample = |scratch: &mut _| match (block, ages) {
                (Block::Grid(block), Some(ages)) if params.exclude => {
                    let key = cx.stream(pass as u32, block.key, Purpose::Exclude);
                    sample_due(block, ages, &mut key.stream(), &mut |block| {
                        sampler.sample(pass, &cx, scratch, Block::Grid(block))
                    })
                }
                (block, _) => sampler.sample(pass, &cx, scratch, block),
            };
            scratches.with(|| sampler.scratch(topics), sample)
        });
        state.totals = totals;
        merge(outcomes, &mut state.totals, &mut report);
    }
    report
}

/// Adds the outcomes of a wave's blocks to C_k and to the report.
fn merge(outcomes: Vec<Outcome>, totals: &mut [u32], report: &mut PassReport) {
    for outcome in outcomes {
        for (topic, by) in outcome.totals {
            let total = &mut totals[topic as usize];
            // INVARIANT: C_k is correct only after the last block; between blocks it may wrap below
            // 0.
            *total = total.wrapping_add_signed(by);
        }
        report.add(PassReport {
            tokens: outcome.tokens,
            changed: outcome.changed,
            proposed: outcome.proposed,
            accepted: outcome.accepted,
            repeated: outcome.repeated,
        });
    }
}

/// Runs `sample` on each block; outcomes are in the order of the blocks.
///
/// `sample` is a trait object, called once per block: with a generic closure, rayon's machinery was
/// compiled once for every sampler.
fn each_block<'a, T: TopicIndex>(
    blocks: Vec<BlockAndAges<'a, T>>,
    sample: &(dyn Fn(BlockAndAges<'a, T>) -> Outcome + Sync),
) -> Vec<Outcome> {
    blocks.into_par_iter().with_max_len(1).map(sample).collect()
}

/// A block, and the ages of its tokens if they are tracked.
type BlockAndAges<'a, T> = (Block<'a, T>, Option<&'a mut [TokenAge]>);

/// Blocks without ages: all their tokens are sampled.
fn whole<T>(blocks: Vec<Block<'_, T>>) -> Vec<BlockAndAges<'_, T>> {
    blocks.into_iter().map(|block| (block, None)).collect()
}

/// Cuts `tokens` into the document ranges of its set.
fn by_range<'a, T>(set: &SetShape<'_>, mut tokens: &'a mut [T]) -> Vec<&'a mut [T]> {
    (0..set.slots.num_ranges())
        .map(|range| {
            let len = set.slots.range_slots(range).len() * set.stride;
            tokens.split_off_mut(..len).expect("ranges cover the tokens")
        })
        .collect()
}

/// Layout of the tokens of a set.
struct SetShape<'a> {
    slots: &'a TokenLayout,
    stride: usize,
}

fn grid_blocks<T: TopicIndex>(
    state: &mut State<T>,
    set: usize,
    order: Order,
    step: usize,
) -> Vec<BlockAndAges<'_, T>> {
    let TokenSet { shard, slots, tokens, stride, rows, ages, .. } = &mut state.sets[set];
    let slots = &*slots;
    let mut word_rows: Vec<_> = state.word_rows.iter_mut().map(Some).collect();
    let mut tables: Vec<_> = state.tables.iter_mut().map(Some).collect();
    let ranges = slots.num_ranges();
    let mut ages = ages.as_mut().map(|ages| by_range(&SetShape { slots, stride: 1 }, ages));
    by_range(&SetShape { slots, stride: *stride }, tokens)
        .into_iter()
        .zip(rows)
        .enumerate()
        .map(|(range, (z, documents))| {
            let word_range = (range + step) % ranges;
            let bounds = slots.block(range, word_range, order);
            let base = slots.range_slots(range).start;
            let here = bounds.slots.start - base..bounds.slots.end - base;
            let ages =
                ages.as_mut().map(|ages| &mut std::mem::take(&mut ages[range])[here.clone()]);
            let block = Block::Grid(GridBlock {
                key: BlockKey { shard: *shard, documents: range as u16, words: word_range as u16 },
                visits: &slots.visits()[bounds.visits],
                partner: &slots.partner()[bounds.slots.clone()],
                z: &mut z[here],
                words: word_rows[word_range].take().expect("a wave takes each word range once"),
                documents,
                tables: tables.get_mut(word_range).and_then(Option::take),
            });
            (block, ages)
        })
        .collect()
}

/// The tokens of a set by word range, one column per document range.
fn columns<'a, T>(
    slots: &'a TokenLayout,
    tokens: &'a mut [T],
    stride: usize,
) -> Vec<Vec<Column<'a, T>>> {
    let mut columns: Vec<Vec<Column<'_, T>>> =
        (0..slots.num_ranges()).map(|_| Vec::new()).collect();
    for (range, mut tokens) in by_range(&SetShape { slots, stride }, tokens).into_iter().enumerate()
    {
        for (word_range, columns) in columns.iter_mut().enumerate() {
            let bounds = slots.block(range, word_range, Order::ByWord);
            let len = bounds.slots.len() * stride;
            columns.push(Column {
                visits: &slots.visits()[bounds.visits],
                tokens: tokens.split_off_mut(..len).expect("blocks cover their range"),
            });
        }
    }
    columns
}

/// Words of a set whose rows hold all other tokens, pseudo-counts included.
fn counted_word_blocks<T: TopicIndex>(state: &mut State<T>, set: usize) -> Vec<Block<'_, T>> {
    let TokenSet { shard, slots, tokens, stride, .. } = &mut state.sets[set];
    let (shard, words) = (*shard, &state.words);
    let rows = state.word_rows.iter_mut();
    let block = |(word_range, (columns, rows)): (usize, (_, _))| {
        Block::Words(WordBlock {
            key: BlockKey { shard, documents: 0, words: word_range as u16 },
            num_words: words.words(word_range).len(),
            columns,
            others: Vec::new(),
            rows: Some(rows),
            counted: true,
        })
    };
    columns(slots, tokens, *stride).into_iter().zip(rows).enumerate().map(block).collect()
}

fn word_blocks<T: TopicIndex>(state: &mut State<T>, set: usize, count: bool) -> Vec<Block<'_, T>> {
    let ranges = state.words.num_ranges();
    let (before, rest) = state.sets.split_at_mut(set);
    let (this, after) = rest.split_first_mut().expect("the set exists");
    let TokenSet { shard, slots, tokens, stride, .. } = this;
    let columns = columns(slots, tokens, *stride);
    let still = &state.still;
    let others: Vec<&TokenSet<T>> = before.iter().chain(after.iter()).collect();
    let mut rows: Vec<_> = state.word_rows.iter_mut().filter(|_| count).map(Some).collect();
    rows.resize_with(ranges, || None);
    columns
        .into_iter()
        .zip(rows)
        .enumerate()
        .map(|(word_range, (columns, rows))| {
            let others = others
                .iter()
                .flat_map(|set| (0..ranges).map(move |range| (set, range)))
                .map(|(set, range)| {
                    let bounds = set.slots.block(range, word_range, Order::ByWord);
                    OtherTokens {
                        visits: &set.slots.visits()[bounds.visits],
                        z: &set.tokens[bounds.slots],
                    }
                })
                .chain(still.get(word_range).map(|Still { visits, z }| OtherTokens { visits, z }))
                .collect();
            Block::Words(WordBlock {
                key: BlockKey { shard: *shard, documents: 0, words: word_range as u16 },
                num_words: state.words.words(word_range).len(),
                columns,
                others,
                rows,
                counted: false,
            })
        })
        .collect()
}

fn document_blocks<T: TopicIndex>(state: &mut State<T>, set: usize) -> Vec<Block<'_, T>> {
    let TokenSet { shard, slots, tokens, stride, inverse, .. } = &mut state.sets[set];
    let (slots, inverse) = (&*slots, inverse.as_ref().expect("the sampler asked for the index"));
    by_range(&SetShape { slots, stride: *stride }, tokens)
        .into_iter()
        .enumerate()
        .map(|(range, tokens)| {
            Block::Documents(DocumentBlock {
                key: BlockKey { shard: *shard, documents: range as u16, words: 0 },
                lengths: slots.lengths(range),
                inverse: inverse.range(range),
                tokens,
                moving: None,
            })
        })
        .collect()
}
