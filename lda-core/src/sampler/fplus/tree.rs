//! Sums over weight_k · b_k as an F+ tree.
//!
//! Leaves are the b_k themselves, which the scan of the other part gathers; the tree's weights are
//! formed where they are read. Nodes are sixteen wide: one vector holds a node's children, and
//! K = 1000 has two levels of sums above its leaves.
//!
//! Sums are f64 and an update *adds the difference* to each level. Re-adding sixteen children per
//! level costs a chain of four shuffles and additions per level, all of it between one token and
//! the next; in an earlier sketch on three corpora, carrying differences made a token 1.1 to 1.2x
//! faster. The risk of carried differences is drift: leaves are f32, so a difference is exact in
//! f64 except for rare extremes of magnitude, and [`rebuild`](SmoothingBucket::rebuild) re-adds
//! everything from the leaves at least once per block. Sums never outlive a block, so results do
//! not depend on which thread sampled which block.
//!
//! Also measured: a scalar tree with f64 leaves that re-adds the children of each changed node
//! (November 2026, K = 1,000; ns per draw, per change, and per token of two changes and a draw):
//! 2 children 92 / 13 / 137, 4 children 18 / 12 / 68, 8 children 24 / 40 / 131, 16 children with
//! vector sums 46 / 33 / 118, with prefix sums kept in the inner nodes 33 / 35 / 120. The binary
//! descent mispredicts; wide nodes are added up in vectors, which have to wait for the leaf just
//! stored because it does not forward to a wider load.

use crate::counts::TopicIndex;
use crate::sampler::draw::pick;
use crate::sampler::gibbs::{Priors, SmoothingBucket, VisitedRow};
use crate::sampler::padded;
use crate::sampler::topic_prior::TopicPrior;
use crate::simd::{LANES, Lanes};

/// Sums over K leaves.
#[derive(Debug)]
pub(super) struct Tree {
    /// Sums of sixteen leaves, then sums of sixteen of those, ...; each level padded to sixteen.
    sums: Vec<f64>,
    /// Start of each level in `sums`.
    starts: Vec<usize>,
    root: f64,
}

impl<T: TopicIndex> SmoothingBucket<T> for Tree {
    const WALKS_NONZEROS: bool = false;

    fn new(topics: usize) -> Self {
        let (mut starts, mut len, mut nodes) = (Vec::new(), 0, padded(topics));
        loop {
            nodes = nodes.div_ceil(LANES);
            starts.push(len);
            len += nodes.next_multiple_of(LANES);
            if nodes <= LANES {
                break;
            }
        }
        Self { sums: vec![0.0; len], starts, root: 0.0 }
    }

    #[inline(always)]
    fn rebuild<L: Lanes>(&mut self, l: L, leaves: &[[f32; LANES]], weights: TopicPrior<'_>) {
        let mut buffer = [0.0; LANES];
        for (c, (sum, leaves)) in self.sums.iter_mut().zip(leaves).enumerate() {
            let weights = l.mul_f(l.load_f(leaves), weights.chunk(l, c));
            // INVARIANT: `prefix` fixes the order of additions, so all instruction sets agree.
            l.store_f(&mut buffer, l.prefix(weights));
            *sum = f64::from(buffer[LANES - 1]);
        }
        for level in 1..self.starts.len() {
            let (below, sums) = self.sums.split_at_mut(self.starts[level]);
            let (below, _) = below[self.starts[level - 1]..].as_chunks::<LANES>();
            for (sum, below) in sums.iter_mut().zip(below) {
                *sum = below.iter().sum();
            }
        }
        let top = self.starts[self.starts.len() - 1];
        self.root = self.sums[top..].iter().sum();
    }

    #[inline(always)]
    fn total(&self) -> f64 {
        self.root
    }

    #[inline(always)]
    fn change(&mut self, topic: usize, by: f64) {
        // PERF: one addition per level, none of which waits for another.
        self.root += by;
        let mut node = topic;
        for &start in &self.starts {
            node /= LANES;
            self.sums[start + node] += by;
        }
    }

    #[inline(always)]
    fn locate<L: Lanes>(
        &self,
        l: L,
        leaves: &[[f32; LANES]],
        _live: &VisitedRow<T>,
        priors: &Priors<'_>,
        mut u: f64,
    ) -> usize {
        let mut node = 0;
        for &start in self.starts.iter().rev() {
            let (sums, _) = self.sums[start..].as_chunks::<LANES>();
            let (lane, rest) = pick(l, l.load_f64(&sums[node]), u);
            (node, u) = (node * LANES + lane, rest);
        }
        let weights = l.mul_f(l.load_f(&leaves[node]), priors.partner.chunk(l, node));
        node * LANES + pick(l, weights, u).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::simd::{Aligned, Scalar};

    #[test]
    fn locate_inverts_the_cumulative_sum() {
        let sizes = [1, 2, 15, 16, 17, 100, 255, 256, 1000, 5000];
        for (topics, symmetric) in sizes.into_iter().flat_map(|k| [(k, false), (k, true)]) {
            let mut rng = Xoshiro256PlusPlus::from_seed(topics as u64);
            let mut tree = <Tree as SmoothingBucket<u32>>::new(topics);
            let mut leaves = Aligned::<f32>::new(padded(topics));
            let mut alpha = vec![0.0; padded(topics)];
            for (k, alpha) in alpha[..topics].iter_mut().enumerate() {
                // Every third leaf has no weight; small integers keep all sums exact.
                *alpha = if k % 3 == 2 && !symmetric { 0.0 } else { 1.0 };
                leaves[k] = (1 + rng.below(7)) as f32;
            }
            let weights = TopicPrior::new(&alpha, symmetric);
            SmoothingBucket::<u32>::rebuild(&mut tree, Scalar, leaves.as_chunks().0, weights);
            for _ in 0..200 {
                let k = rng.below(topics as u32) as usize;
                let leaf = (1 + rng.below(7)) as f32;
                let by = f64::from(weights.of(k) * (leaf - leaves[k]));
                SmoothingBucket::<u32>::change(&mut tree, k, by);
                leaves[k] = leaf;
            }
            let live = VisitedRow::<u32>::new(1);
            let priors = Priors { visited: weights, partner: weights };
            let locate = |u| tree.locate(Scalar, leaves.as_chunks().0, &live, &priors, u);
            let mut at = 0.0;
            for k in 0..topics {
                let weight = f64::from(leaves[k] * weights.of(k));
                for u in [at, at + 0.5 * weight, at + weight - 0.25] {
                    if weight > 0.0 {
                        assert_eq!(locate(u), k, "K = {topics}, u = {u}");
                    }
                }
                at += weight;
            }
            assert_eq!(SmoothingBucket::<u32>::total(&tree), at);
            for u in [at, at * 1.001, f64::INFINITY] {
                let k = locate(u);
                assert!(alpha[k] > 0.0, "K = {topics}: topic {k} has no weight");
            }
        }
    }
}
