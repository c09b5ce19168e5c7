//! Draws from one document's row: the document part of a sparse row, all K weights of a dense one.
//!
//! Sixteen lanes add up their own entries; the lane sums go through [`Lanes::prefix`] once. A draw
//! picks the lane from that prefix, then the chunk inside the lane from the running sums that were
//! kept. Both steps compare with numbers that the sums themselves were made of, so an entry of
//! weight 0 cannot be picked, and rounding can only move a boundary by an ulp.

use crate::counts::TopicIndex;
use crate::simd::{LANES, Lanes, Line};

/// Chunks between two kept running sums of a dense scan.
const GROUP: usize = 8;

/// Weights over topics, computed where they are read. A trait and not a closure: a closure cannot be
/// marked to be inlined, and one that is not runs without the wide instructions.
pub(super) trait Weights {
    /// Weights of the topics of chunk `c`.
    fn chunk<L: Lanes>(&self, l: L, c: usize) -> L::F;
}

/// Running sums of a scan.
#[derive(Debug)]
pub(super) struct DrawScratch {
    running: Vec<[f32; LANES]>,
}

/// What the scan of a sparse row found.
#[derive(Clone, Copy)]
pub(super) struct Scan<L: Lanes> {
    /// Σ C_dk b_k a lane.
    lanes: L::F,
    /// Σ C_dk b_k.
    pub sum: f32,
    /// Entry of the token's own topic.
    pub own: usize,
    chunks: usize,
}

impl DrawScratch {
    pub fn new(padded: usize) -> Self {
        // A sparse row of K entries and a header has one chunk more than K lanes.
        Self { running: vec![[0.0; LANES]; padded / LANES + 1] }
    }

    /// Scans a sparse row of `chunks` chunks. One token of topic `own` is left out, and that
    /// topic's leaf counts as `own_leaf`.
    #[inline(always)]
    pub fn scan<L: Lanes, T: TopicIndex>(
        &mut self,
        l: L,
        lines: &[Line],
        chunks: usize,
        leaves: &[f32],
        own: u32,
        own_leaf: f32,
    ) -> Scan<L> {
        let (own_topic, own_leaf) = (l.splat_u(own), l.splat_f(own_leaf));
        let (zero, one) = (l.splat_f(0.0), l.splat_f(1.0));
        let mut sum = zero;
        let mut at = 0;
        let lines = &lines[..chunks * T::LINES];
        for (c, running) in self.running[..chunks].iter_mut().enumerate() {
            let (topics, counts) = T::chunk(l, lines, c);
            let counts = l.to_f(counts);
            // The header and the slots past the end count 0: they are nobody's topic.
            let hit = l.eq_u(topics, own_topic) & l.gt_f(counts, zero);
            let counts = l.select_f(hit, l.sub_f(counts, one), counts);
            let leaves = l.select_f(hit, own_leaf, l.gather_f(leaves, topics));
            sum = l.add_f(sum, l.mul_f(counts, leaves));
            l.store_f(running, sum);
            if hit != 0 {
                at = c * LANES + hit.trailing_zeros() as usize;
            }
        }
        let mut prefix = [0.0; LANES];
        l.store_f(&mut prefix, l.prefix(sum));
        Scan { lanes: sum, sum: prefix[LANES - 1], own: at, chunks }
    }

    /// The entry at `u` of the last scan's sum.
    #[inline(always)]
    pub fn locate<L: Lanes>(&self, l: L, scan: &Scan<L>, u: f64) -> usize {
        let (lane, rest) = pick(l, scan.lanes, u);
        let running = &self.running[..scan.chunks];
        let last = running[scan.chunks - 1][lane];
        let rest = (rest as f32).min(last.next_down());
        let mut chunk = 0;
        for running in &running[..scan.chunks - 1] {
            chunk += usize::from(running[lane] <= rest);
        }
        chunk * LANES + lane
    }

    /// Draws from `chunks` times sixteen weights; `uniform` is in [0, 1). One contiguous scan, and
    /// `weights` is asked again for one group of chunks.
    #[inline(always)]
    pub fn draw_dense<L: Lanes>(
        &mut self,
        l: L,
        chunks: usize,
        weights: &impl Weights,
        uniform: f64,
    ) -> usize {
        let mut sum = l.splat_f(0.0);
        let mut groups = 0;
        let mut c = 0;
        while c < chunks {
            l.store_f(&mut self.running[groups], sum);
            groups += 1;
            for c in c..(c + GROUP).min(chunks) {
                sum = l.add_f(sum, weights.chunk(l, c));
            }
            c += GROUP;
        }
        let mut lanes = [0.0; LANES];
        let prefix = l.prefix(sum);
        l.store_f(&mut lanes, prefix);
        let total = f64::from(lanes[LANES - 1]);
        l.store_f(&mut lanes, sum);
        let (lane, rest) = pick(l, sum, uniform * total);
        let rest = (rest as f32).min(lanes[lane].next_down());
        // `running[g]` is the lane's sum before group g: the first is 0 and never above `rest`.
        let mut group = 0;
        for running in &self.running[1..groups] {
            group += usize::from(running[lane] <= rest);
        }
        let mut sum = self.running[group][lane];
        let first = group * GROUP;
        let mut picked = first;
        let mut buffer = [0.0; LANES];
        for c in first..(first + GROUP).min(chunks) {
            l.store_f(&mut buffer, weights.chunk(l, c));
            sum += buffer[lane];
            picked += usize::from(sum <= rest);
        }
        picked * LANES + lane
    }
}

/// The lane at `u` of sixteen weights, and what is left of `u` inside it (never negative). A lane
/// of weight 0 is never picked while another is positive; a `u` past the end picks the last
/// positive lane.
#[inline(always)]
pub(super) fn pick<L: Lanes>(l: L, weights: L::F, u: f64) -> (usize, f64) {
    let prefix = l.prefix(weights);
    let mut before = [0.0; LANES + 1];
    let (_, upto) = before.split_first_chunk_mut::<1>().expect("seventeen lanes");
    l.store_f(upto.first_chunk_mut().expect("sixteen lanes"), prefix);
    let positive = l.gt_f(weights, l.splat_f(0.0));
    let above = l.gt_f(prefix, l.splat_f(u as f32)) & positive;
    // The highest positive lane stands in where rounding left none above u.
    let last = (1u16 << 15).wrapping_shr((positive | 1).leading_zeros());
    let lane = (above | last).trailing_zeros() as usize;
    (lane, (u - f64::from(before[lane])).max(0.0))
}
