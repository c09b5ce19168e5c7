//! The two passes: bring a row's tokens together, hand them to [`row`](super::row), put them back.

use super::records;
use super::row::{Streams, WarpScratch};
use crate::counts::TopicIndex;
use crate::layout::Visit;
use crate::random::Purpose;
use crate::sampler::{BlockKey, Context, DocumentBlock, Outcome, WordBlock};
use crate::simd::{Kernel, Lanes};

/// The word pass over one range of words.
pub(super) struct WordPass<'a, 'b, T> {
    pub pass: u32,
    pub cx: &'a Context<'a>,
    pub scratch: &'a mut WarpScratch,
    pub block: WordBlock<'b, T>,
}

/// The document pass over one range of documents.
pub(super) struct DocumentPass<'a, 'b, T> {
    pub pass: u32,
    pub cx: &'a Context<'a>,
    pub scratch: &'a mut WarpScratch,
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

/// Where each column stands: visits and tokens not yet reached.
#[derive(Clone, Copy)]
struct Place {
    visit: usize,
    token: usize,
}

/// The next visit's tokens if it is `word`'s: (first, number).
#[inline(always)]
fn take(visits: &[Visit], place: &mut Place, word: u32) -> (usize, usize) {
    match visits.get(place.visit) {
        Some(visit) if visit.row == word => {
            let first = place.token;
            *place = Place { visit: place.visit + 1, token: visit.end as usize };
            (first, visit.end as usize - first)
        }
        _ => (place.token, 0),
    }
}

impl<T: TopicIndex> Kernel for WordPass<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, mut block } = self;
        let mut streams = streams(l, cx, pass, block.key);
        let mixture = scratch.begin_block(cx, true);
        let mut outcome = Outcome::default();
        let start = Place { visit: 0, token: 0 };
        let mut places = vec![start; block.columns.len()];
        let mut others = vec![start; block.others.len()];
        let mut pieces: Vec<(usize, usize)> = vec![(0, 0); block.columns.len()];
        for word in 0..block.num_words {
            let mut movable = 0;
            for ((column, place), piece) in block.columns.iter().zip(&mut places).zip(&mut pieces) {
                *piece = take(column.visits, place, word as u32);
                movable += piece.1;
            }
            if movable == 0 && block.others.is_empty() {
                continue;
            }
            scratch.reserve(movable, cx.mh_pending.max(cx.mh_steps));
            let mut at = 0;
            for (column, &(first, len)) in block.columns.iter().zip(&pieces) {
                records::gather_run(
                    l,
                    column.tokens,
                    first,
                    len,
                    cx.mh_pending,
                    cx.mh_stored,
                    scratch,
                    at,
                );
                at += len;
            }
            let mut all = movable;
            for (other, place) in block.others.iter().zip(&mut others) {
                let (first, len) = take(other.visits, place, word as u32);
                if len > 0 {
                    scratch.extend(all, other.z[first..first + len].iter().map(|z| z.get()));
                    all += len;
                }
            }
            scratch.judge(l, movable, all, cx.mh_pending, &mut streams.accept, &mut outcome);
            if let Some(rows) = &mut block.rows {
                rows.write(word, scratch.recount(all));
            }
            scratch.propose(l, movable, all, cx.mh_steps, mixture, &mut streams.propose);
            let mut at = 0;
            for (column, &(first, len)) in block.columns.iter_mut().zip(&pieces) {
                records::scatter_run(
                    l,
                    column.tokens,
                    first,
                    len,
                    cx.mh_steps,
                    cx.mh_stored,
                    scratch,
                    at,
                );
                at += len;
            }
            outcome.tokens += movable as u64;
        }
        scratch.end_block(&mut outcome);
        outcome
    }
}

impl<T: TopicIndex> Kernel for DocumentPass<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block } = self;
        let mut streams = streams(l, cx, pass, block.key);
        let mixture = scratch.begin_block(cx, false);
        let mut outcome = Outcome::default();
        let mut rest = block.inverse;
        for &length in block.lengths {
            let all = length as usize;
            let (slots, after) = rest.split_at(all);
            let ahead = rest;
            rest = after;
            scratch.reserve(all, cx.mh_pending.max(cx.mh_steps));
            records::gather_slots(
                l,
                block.tokens,
                slots,
                ahead,
                cx.mh_pending,
                cx.mh_stored,
                scratch,
            );
            scratch.judge(l, all, all, cx.mh_pending, &mut streams.accept, &mut outcome);
            scratch.propose(l, all, all, cx.mh_steps, mixture, &mut streams.propose);
            records::scatter_slots(l, block.tokens, slots, cx.mh_steps, cx.mh_stored, scratch);
            outcome.tokens += all as u64;
        }
        scratch.end_block(&mut outcome);
        outcome
    }
}
