//! Draws from one row: over its non-zeros if it is sparse, over all K weights if it is dense.
//!
//! Each of sixteen lanes adds up its own entries; the lane sums go through [`Lanes::prefix`] once.
//! A draw picks the lane from that prefix, then the chunk inside the lane from the stored running
//! sums. Both steps compare with the numbers that the sums were made of, so an entry of weight 0
//! cannot be picked, and rounding can only move a boundary by an ulp.

use crate::counts::TopicIndex;
use crate::sampler::dense_row::DenseRow;
use crate::sampler::topic_prior::TopicPrior;
use crate::simd::{Aligned, LANES, Lanes, Line};

/// Chunks between two stored running sums of a dense scan.
const GROUP: usize = 8;

/// (count + prior) · b_k for every topic, without one token of topic `own`.
///
/// PERF: a struct and not a closure. A closure cannot be marked `#[inline(always)]`, and one that
/// is not inlined runs without the wide instructions.
pub(super) struct DenseWeights<'a, R> {
    /// Counts, which still include the token.
    pub row: &'a R,
    /// The row's prior.
    pub prior: TopicPrior<'a>,
    /// b_k, which still includes the token; zero past K.
    pub leaves: &'a [[f32; LANES]],
    pub own: usize,
    /// Weight of `own` without the token.
    ///
    /// PERF: it is blended in when the topic is read. Changing the arrays instead would make every
    /// scan wait for the stores.
    pub own_weight: f32,
}

impl<R: DenseRow> DenseWeights<'_, R> {
    /// Weights of the topics of the `N` chunks from `first` on.
    #[inline(always)]
    fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::F; N] {
        let prior = self.prior.chunks::<L, N>(l, first);
        let leaves = self.leaves[first..].first_chunk::<N>().expect("the chunks exist");
        let counts = self.row.chunks::<L, N>(l, first);
        let own_weight = l.splat_f(self.own_weight);
        let bit = self.own.wrapping_sub(first * LANES);
        let own = if bit < N * LANES { 1u128 << bit } else { 0 };
        let mut weights = [own_weight; N];
        for j in 0..N {
            let factor = l.add_f(l.to_f(counts[j]), prior[j]);
            let weight = l.mul_f(factor, l.load_f(&leaves[j]));
            weights[j] = l.select_f((own >> (j * LANES)) as u16, own_weight, weight);
        }
        weights
    }
}

/// Running sums of a scan.
#[derive(Debug)]
pub(super) struct DrawScratch {
    running: Aligned<f32>,
}

/// Result of scanning a sparse row.
#[derive(Clone, Copy)]
pub(super) struct Scan<L: Lanes> {
    /// Σ count · b_k per lane.
    lanes: L::F,
    /// Σ count · b_k.
    pub sum: f32,
    /// Entry of the token's own topic.
    pub own: usize,
    chunks: usize,
}

impl DrawScratch {
    pub fn new(padded: usize) -> Self {
        // A sparse row of K entries and a header has one chunk more than K lanes.
        Self { running: Aligned::new(padded + LANES) }
    }

    /// Scans a sparse row of `chunks` chunks. One token of topic `own` is left out, and the leaf of
    /// that topic is `own_leaf`.
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
        let (running, _) = self.running.as_chunks_mut::<LANES>();
        for (c, running) in running[..chunks].iter_mut().enumerate() {
            let (topics, counts) = T::chunk(l, lines, c);
            let counts = l.to_f(counts);
            // INVARIANT: the header and the slots past the end have count 0, so their topic does
            // not matter.
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
        let running = &self.running.as_chunks::<LANES>().0[..scan.chunks];
        let last = running[scan.chunks - 1][lane];
        let rest = (rest as f32).min(last.next_down());
        let mut chunk = 0;
        for running in &running[..scan.chunks - 1] {
            chunk += usize::from(running[lane] <= rest);
        }
        chunk * LANES + lane
    }

    /// Draws from 16 · `chunks` weights; `uniform` is in [0, 1). Up to [`GROUP`] chunks are scanned
    /// once, and their sums stay in registers.
    #[inline(always)]
    pub fn draw_dense<L: Lanes, R: DenseRow>(
        &mut self,
        l: L,
        chunks: usize,
        weights: &DenseWeights<'_, R>,
        uniform: f64,
    ) -> usize {
        if !L::WIDE {
            return self.draw_many(l, chunks, weights, uniform);
        }
        match chunks {
            1 => draw_few::<L, R, 1>(l, weights, uniform),
            2 => draw_few::<L, R, 2>(l, weights, uniform),
            3 => draw_few::<L, R, 3>(l, weights, uniform),
            4 => draw_few::<L, R, 4>(l, weights, uniform),
            5 => draw_few::<L, R, 5>(l, weights, uniform),
            6 => draw_few::<L, R, 6>(l, weights, uniform),
            7 => draw_few::<L, R, 7>(l, weights, uniform),
            8 => draw_few::<L, R, 8>(l, weights, uniform),
            _ => self.draw_many(l, chunks, weights, uniform),
        }
    }

    /// Draws with stored running sums of groups of chunks; the weights of one group are computed
    /// again.
    #[inline(always)]
    fn draw_many<L: Lanes, R: DenseRow>(
        &mut self,
        l: L,
        chunks: usize,
        weights: &DenseWeights<'_, R>,
        uniform: f64,
    ) -> usize {
        let mut sum = l.splat_f(0.0);
        let whole = chunks / GROUP;
        let (kept, _) = self.running.as_chunks_mut::<LANES>();
        for (group, running) in kept[..whole].iter_mut().enumerate() {
            l.store_f(running, sum);
            for weights in weights.chunks::<L, GROUP>(l, group * GROUP) {
                sum = l.add_f(sum, weights);
            }
        }
        let mut groups = whole;
        if whole * GROUP < chunks {
            l.store_f(&mut kept[groups], sum);
            groups += 1;
            for c in whole * GROUP..chunks {
                let [weights] = weights.chunks::<L, 1>(l, c);
                sum = l.add_f(sum, weights);
            }
        }
        let (lane, rest) = pick_share(l, sum, uniform);
        // INVARIANT: `kept[g]` is the lane's sum before group g, so the first one is 0 and never
        // above `rest`.
        let mut group = 0;
        for running in &kept[1..groups] {
            group += usize::from(running[lane] <= rest);
        }
        let mut sum = l.load_f(&kept[group]);
        let mut picked = group * GROUP;
        let rest = l.splat_f(rest);
        if group < whole {
            for weights in weights.chunks::<L, GROUP>(l, picked) {
                sum = l.add_f(sum, weights);
                picked += usize::from(!l.gt_f(sum, rest) >> lane & 1);
            }
        } else {
            for c in whole * GROUP..chunks {
                let [weights] = weights.chunks::<L, 1>(l, c);
                sum = l.add_f(sum, weights);
                picked += usize::from(!l.gt_f(sum, rest) >> lane & 1);
            }
        }
        picked * LANES + lane
    }
}

/// Draws from `N` chunks that stay in registers.
#[inline(always)]
fn draw_few<L: Lanes, R: DenseRow, const N: usize>(
    l: L,
    weights: &DenseWeights<'_, R>,
    uniform: f64,
) -> usize {
    let mut running = weights.chunks::<L, N>(l, 0);
    for c in 1..N {
        running[c] = l.add_f(running[c - 1], running[c]);
    }
    let (lane, rest) = pick_share(l, running[N - 1], uniform);
    let rest = l.splat_f(rest);
    let mut picked = 0;
    for &running in &running[..N - 1] {
        picked += usize::from(!l.gt_f(running, rest) >> lane & 1);
    }
    picked * LANES + lane
}

/// The lane at the share `uniform` of sixteen weights, and the remainder inside it, which is less
/// than the lane's weight.
#[inline(always)]
fn pick_share<L: Lanes>(l: L, weights: L::F, uniform: f64) -> (usize, f32) {
    let mut lanes = [0.0; LANES];
    let prefix = l.prefix(weights);
    l.store_f(&mut lanes, prefix);
    let total = f64::from(lanes[LANES - 1]);
    l.store_f(&mut lanes, weights);
    let (lane, rest) = pick(l, weights, uniform * total);
    (lane, (rest as f32).min(lanes[lane].next_down()))
}

/// The lane at `u` of sixteen weights, and the remainder of `u` inside it (never negative). A lane
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
    // INVARIANT: the highest positive lane is the result if rounding left no prefix above u.
    let last = (1u16 << 15).wrapping_shr((positive | 1).leading_zeros());
    let lane = (above | last).trailing_zeros() as usize;
    (lane, (u - f64::from(before[lane])).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::sampler::dense_row::{Row16, Row32};
    use crate::sampler::padded;
    use crate::simd::{Isa, SimdKernel};

    /// A dense draw over small integers, so that all sums are exact.
    struct Case {
        counts: Vec<u32>,
        alpha: Vec<f32>,
        leaves: Vec<f32>,
        own: usize,
        own_weight: f32,
    }

    impl Case {
        fn random(topics: usize, rng: &mut Xoshiro256PlusPlus) -> Self {
            let len = padded(topics);
            let mut small = |n| (0..topics).map(|_| rng.below(n)).collect::<Vec<u32>>();
            let (mut counts, alpha, leaves) = (small(4), small(2), small(3));
            counts.resize(len, 0);
            let floats = |values: Vec<u32>, rest: f32| {
                let mut values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
                values.resize(len, rest);
                values
            };
            let (alpha, leaves) = (floats(alpha, 0.0), floats(leaves, 0.0));
            let own = rng.below(topics as u32) as usize;
            Self { counts, alpha, leaves, own, own_weight: 5.0 }
        }

        /// Every topic as often as its weight, in the order of the draws: by lane, then by chunk.
        fn expected(&self) -> Vec<usize> {
            let mut topics = Vec::new();
            let len = self.counts.len();
            for k in (0..LANES).flat_map(|lane| (lane..len).step_by(LANES)) {
                let weight = (self.counts[k] as f32 + self.alpha[k]) * self.leaves[k];
                let weight = if k == self.own { self.own_weight } else { weight };
                topics.extend(std::iter::repeat_n(k, weight as usize));
            }
            topics
        }
    }

    struct Draw<'a, R> {
        case: &'a Case,
        chunks: usize,
        row: &'a R,
        uniform: f64,
    }

    impl<R: DenseRow> SimdKernel for Draw<'_, R> {
        type Output = usize;

        #[inline(always)]
        fn run<L: Lanes>(self, l: L) -> usize {
            let Self { case, chunks, row, uniform } = self;
            let weights = DenseWeights {
                row,
                prior: TopicPrior::new(&case.alpha, false),
                leaves: &case.leaves.as_chunks().0[..chunks],
                own: case.own,
                own_weight: case.own_weight,
            };
            DrawScratch::new(case.counts.len()).draw_dense(l, chunks, &weights, uniform)
        }
    }

    /// Every number of chunks that fits in registers, and some that do not.
    #[test]
    fn dense_draws_invert_the_cumulative_sum() {
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        for topics in (1..=10).map(|chunks| chunks * LANES).chain([1, 17, 100, 300]) {
            let case = Case::random(topics, &mut rng);
            let mut halves = vec![Line::default(); topics.div_ceil(2 * LANES)];
            let mut words = vec![Line::default(); topics.div_ceil(LANES)];
            for (k, &count) in case.counts[..topics].iter().enumerate() {
                halves[k / (2 * LANES)].0[k / 2 % LANES] |= count << (k % 2 * 16);
                words[k / LANES].0[k % LANES] = count;
            }
            let (half, full) = (Row16(&mut halves), Row32(&mut words));
            let chunks = topics.div_ceil(LANES);
            let expected = case.expected();
            for (i, &topic) in expected.iter().enumerate() {
                let uniform = (i as f64 + 0.5) / expected.len() as f64;
                for isa in Isa::available() {
                    let draws = [
                        isa.run(Draw { case: &case, chunks, row: &half, uniform }),
                        isa.run(Draw { case: &case, chunks, row: &full, uniform }),
                    ];
                    assert_eq!(draws, [topic; 2], "K = {topics}, {isa}");
                }
            }
        }
    }
}
