//! The two passes: gather a row's tokens, sample them with [`row`](super::row), and scatter them
//! again.

use std::ops::Range;

use super::row::{Axis, Span, Streams, WarpScratch};
use super::token_buffers;
use crate::counts::TopicIndex;
use crate::layout::RowRun;
use crate::random::Purpose;
use crate::sampler::{BlockKey, Context, DocumentBlock, Outcome, WordBlock};
use crate::simd::{Lanes, SimdKernel};

/// Tokens of a batch of documents. The scattered accesses of a batch overlap their cache misses, and
/// its lines stay in cache until they are written back.
const BATCH: usize = 1024;

/// The word pass over one range of words.
pub(super) struct WordPass<'a, 'b, T> {
    pub pass: u32,
    pub cx: &'a Context<'a>,
    pub scratch: &'a mut WarpScratch,
    pub count_own: bool,
    pub block: WordBlock<'b, T>,
}

/// The document pass over one range of documents.
pub(super) struct DocumentPass<'a, 'b, T> {
    pub pass: u32,
    pub cx: &'a Context<'a>,
    pub scratch: &'a mut WarpScratch,
    pub count_own: bool,
    pub block: DocumentBlock<'b, T>,
}

#[inline(always)]
fn streams<L: Lanes>(l: L, cx: &Context<'_>, pass: u32, key: BlockKey) -> Streams<L> {
    Streams::new(
        l,
        &cx.stream(pass, key, Purpose::Accept).wide_stream(),
        &cx.stream(pass, key, Purpose::Propose).wide_stream(),
    )
}

/// Position in a column: the next run and the next token.
#[derive(Clone, Copy)]
struct Place {
    visit: usize,
    token: usize,
}

/// Tokens of the next run, if it belongs to `word`: (first, number).
#[inline(always)]
fn take(visits: &[RowRun], place: &mut Place, word: u32) -> (usize, usize) {
    match visits.get(place.visit) {
        Some(visit) if visit.row == word => {
            let first = place.token;
            *place = Place { visit: place.visit + 1, token: visit.end as usize };
            (first, visit.end as usize - first)
        }
        _ => (place.token, 0),
    }
}

/// The tokens of `word` in each column, as (first, number); returns their sum.
#[inline(always)]
fn take_all<'a>(
    columns: impl Iterator<Item = &'a [RowRun]>,
    places: &mut [Place],
    pieces: &mut [(usize, usize)],
    word: u32,
) -> usize {
    let mut all = 0;
    for ((visits, place), piece) in columns.zip(places).zip(pieces) {
        *piece = take(visits, place, word);
        all += piece.1;
    }
    all
}

impl<T: TopicIndex> SimdKernel for WordPass<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, count_own, mut block } = self;
        let mut streams = streams(l, cx, pass, block.key);
        let axis = Axis::words(cx, count_own);
        scratch.begin_block(cx, &axis);
        let mut outcome = Outcome::default();
        let start = Place { visit: 0, token: 0 };
        let mut places = vec![start; block.columns.len()];
        let mut others = vec![start; block.others.len()];
        let mut pieces: Vec<(usize, usize)> = vec![(0, 0); block.columns.len()];
        let mut other_pieces: Vec<(usize, usize)> = vec![(0, 0); block.others.len()];
        for word in 0..block.num_words {
            let columns = block.columns.iter().map(|column| column.visits);
            let movable = take_all(columns, &mut places, &mut pieces, word as u32);
            let columns = block.others.iter().map(|other| other.visits);
            let all = movable + take_all(columns, &mut others, &mut other_pieces, word as u32);
            // If no token moves, rows with external counts are complete already.
            if all == 0 || block.counted && movable == 0 {
                continue;
            }
            match &block.rows {
                Some(rows) if block.counted => {
                    scratch.external.read(rows, word, movable * cx.mh_steps);
                }
                _ => {}
            }
            scratch.reserve(all, cx.mh_steps);
            let mut at = 0;
            for (column, &(first, len)) in block.columns.iter().zip(&pieces) {
                let run = token_buffers::Run { first, len, at };
                token_buffers::gather_run(l, column.tokens, cx.mh_steps, run, scratch);
                // The start of the column's next word.
                l.prefetch(column.tokens, (first + len) * (1 + cx.mh_steps));
                at += len;
            }
            for (other, &(first, len)) in block.others.iter().zip(&other_pieces) {
                scratch.extend(at, other.z[first..first + len].iter().map(|z| z.get()));
                at += len;
            }
            let row = Span { first: 0, movable, all };
            scratch.accept_reject(l, &axis, row, &mut streams.accept, &mut outcome);
            if let Some(rows) = &mut block.rows {
                rows.write(word, scratch.recount(all));
            }
            scratch.propose(l, &axis, row, &mut streams.propose);
            let mut at = 0;
            for (column, &(first, len)) in block.columns.iter_mut().zip(&pieces) {
                let run = token_buffers::Run { first, len, at };
                token_buffers::scatter_run(l, column.tokens, cx.mh_steps, run, scratch);
                at += len;
            }
            outcome.tokens += movable as u64;
        }
        scratch.end_block(cx.mh_steps, &mut outcome);
        outcome
    }
}

impl<T: TopicIndex> SimdKernel for DocumentPass<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, count_own, block } = self;
        let mut streams = streams(l, cx, pass, block.key);
        let axis = Axis::documents(cx, count_own);
        scratch.begin_block(cx, &axis);
        let mut outcome = Outcome::default();
        if let Some(moving) = block.moving.clone() {
            let block = PartialDocuments { block, moving };
            document_pass_partial(l, &axis, scratch, block, &mut streams, &mut outcome);
            scratch.end_block(cx.mh_steps, &mut outcome);
            return outcome;
        }
        let mut lengths = block.lengths;
        let mut rest = block.inverse;
        // PERF: all rows of a batch are gathered, then sampled, then scattered: the cache misses of
        // its tokens overlap.
        while !lengths.is_empty() {
            let (documents, tokens) = batch(lengths);
            let (these, after) = lengths.split_at(documents);
            let (slots, behind) = rest.split_at(tokens);
            (lengths, rest) = (after, behind);
            scratch.reserve(tokens, cx.mh_steps);
            token_buffers::gather_slots(l, block.tokens, cx.mh_steps, slots, scratch);
            let mut first = 0;
            for &length in these {
                let all = length as usize;
                let ahead = rest.get(first..(first + all).min(rest.len())).unwrap_or_default();
                token_buffers::prefetch(l, block.tokens, cx.mh_steps, ahead);
                let row = Span { first, movable: all, all };
                scratch.accept_reject(l, &axis, row, &mut streams.accept, &mut outcome);
                first += all;
            }
            // INVARIANT: `propose` writes up to fifteen tokens past its row, so every row of the batch
            // must have been accepted or rejected before.
            let mut first = 0;
            for &length in these {
                let all = length as usize;
                let row = Span { first, movable: all, all };
                scratch.propose(l, &axis, row, &mut streams.propose);
                first += all;
            }
            token_buffers::scatter_slots(l, block.tokens, cx.mh_steps, slots, scratch);
            outcome.tokens += tokens as u64;
        }
        scratch.end_block(cx.mh_steps, &mut outcome);
        outcome
    }
}

/// A range of documents in which only the tokens in the slots `moving` move.
struct PartialDocuments<'a, T> {
    block: DocumentBlock<'a, T>,
    moving: Range<u32>,
}

/// The document pass if not all tokens move: document by document, the moving tokens first in the
/// buffers.
#[inline(always)]
fn document_pass_partial<L: Lanes, T: TopicIndex>(
    l: L,
    axis: &Axis<'_>,
    scratch: &mut WarpScratch,
    documents: PartialDocuments<'_, T>,
    streams: &mut Streams<L>,
    outcome: &mut Outcome,
) {
    let PartialDocuments { block, moving } = documents;
    let steps = axis.steps;
    let mut rest = block.inverse;
    for &length in block.lengths {
        let (slots, behind) = rest.split_at(length as usize);
        rest = behind;
        let (before, from) = slots.split_at(slots.partition_point(|&slot| slot < moving.start));
        let (these, after) = from.split_at(from.partition_point(|&slot| slot < moving.end));
        if these.is_empty() {
            continue;
        }
        scratch.reserve(slots.len(), steps);
        token_buffers::gather_slots(l, block.tokens, steps, these, scratch);
        let topic = |&slot: &u32| block.tokens[slot as usize * (1 + steps)].get();
        scratch.extend(these.len(), before.iter().map(topic));
        scratch.extend(these.len() + before.len(), after.iter().map(topic));
        let row = Span { first: 0, movable: these.len(), all: slots.len() };
        scratch.accept_reject(l, axis, row, &mut streams.accept, outcome);
        scratch.propose(l, axis, row, &mut streams.propose);
        token_buffers::scatter_slots(l, block.tokens, steps, these, scratch);
        outcome.tokens += these.len() as u64;
    }
}

/// Number of documents in the next batch, at least one, and of their tokens.
#[inline(always)]
fn batch(lengths: &[u32]) -> (usize, usize) {
    let (mut documents, mut tokens) = (1, lengths[0] as usize);
    for &length in &lengths[1..] {
        if tokens + length as usize > BATCH {
            break;
        }
        tokens += length as usize;
        documents += 1;
    }
    (documents, tokens)
}
