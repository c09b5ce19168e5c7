//! The F+ tree of the word being visited: sums over b_k = (C_wk + β) / (C_k + Vβ), weighted by α_k.
//!
//! Leaves are b_k themselves, so that the document part can gather them; the tree's weights α_k b_k
//! are formed where they are read. Nodes are sixteen wide: one vector holds a node's children, and
//! K = 1000 has two levels of sums above its leaves.
//!
//! Sums are f64 and an update *adds the difference* to each level. Re-adding sixteen children a
//! level (what [`discrete::FPlusTree`](crate::discrete) does) costs a chain of four shuffles and
//! additions a level, all of it between one token and the next; in an earlier sketch on three corpora
//! carrying differences made a token 1.1 to 1.2x faster. What carried differences risk is drift: leaves are f32, so a difference is exact in f64
//! but for rare extremes of magnitude, and [`rebuild`](VisitTree::rebuild) re-adds everything from
//! the leaves at least once a block. Sums never outlive a block, so results do not depend on which
//! thread sampled what.

use crate::sampler::draw::pick;
use crate::simd::{Aligned, LANES, Lanes};

/// α_k, the leaves' weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafWeights<'a> {
    /// α_k, padded with zeros: the last sixteen hold at least one.
    pub padded: &'a [f32],
    /// Whether all α_k are equal: then one is read for all, and the array stays out of cache.
    pub symmetric: bool,
}

impl LeafWeights<'_> {
    /// α_k.
    #[inline(always)]
    pub fn of(&self, topic: usize) -> f32 {
        self.padded[if self.symmetric { 0 } else { topic }]
    }

    /// α of chunk `c`.
    #[inline(always)]
    fn chunk<L: Lanes>(&self, l: L, c: usize) -> L::F {
        let (chunks, _) = self.padded.as_chunks::<LANES>();
        if self.symmetric && c + 1 < chunks.len() {
            l.splat_f(self.padded[0])
        } else {
            l.load_f(&chunks[c])
        }
    }
}

/// Sums over K leaves.
#[derive(Debug)]
pub(super) struct VisitTree {
    /// b_k, padded with zeros.
    pub leaves: Aligned<f32>,
    /// Sums of sixteen leaves, then sums of sixteen of those, ...; each level padded to sixteen.
    sums: Vec<f64>,
    /// Start of each level in `sums`.
    starts: Vec<usize>,
    root: f64,
}

impl VisitTree {
    pub fn new(padded: usize) -> Self {
        let (mut starts, mut len, mut nodes) = (Vec::new(), 0, padded);
        loop {
            nodes = nodes.div_ceil(LANES);
            starts.push(len);
            len += nodes.next_multiple_of(LANES);
            if nodes <= LANES {
                break;
            }
        }
        Self { leaves: Aligned::new(padded), sums: vec![0.0; len], starts, root: 0.0 }
    }

    /// Σ α_k b_k.
    #[inline(always)]
    pub fn total(&self) -> f64 {
        self.root
    }

    /// Re-adds every sum from the leaves.
    #[inline(always)]
    pub fn rebuild<L: Lanes>(&mut self, l: L, alpha: &[f32]) {
        let (leaves, _) = self.leaves.as_chunks::<LANES>();
        let (alpha, _) = alpha.as_chunks::<LANES>();
        let mut buffer = [0.0; LANES];
        for ((sum, leaves), alpha) in self.sums.iter_mut().zip(leaves).zip(alpha) {
            let weights = l.mul_f(l.load_f(leaves), l.load_f(alpha));
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

    /// Sets a leaf and leaves the sums alone.
    ///
    /// The leaf's whole vector is written: the next scan reads vectors, and a load cannot be served
    /// from a narrower store still under way.
    #[inline(always)]
    pub fn set_leaf<L: Lanes>(&mut self, l: L, topic: usize, b: f32) {
        let (chunks, _) = self.leaves.as_chunks_mut::<LANES>();
        let chunk = &mut chunks[topic / LANES];
        let leaves = l.select_f(1 << (topic % LANES), l.splat_f(b), l.load_f(chunk));
        l.store_f(chunk, leaves);
    }

    /// Sets a leaf of weight α_k = `alpha`, and the sums above it.
    #[inline(always)]
    pub fn update<L: Lanes>(&mut self, l: L, topic: usize, b: f32, alpha: f32) {
        let by = self.difference(topic, b, alpha);
        self.set_leaf(l, topic, b);
        self.root += by;
        let mut node = topic;
        for &start in &self.starts {
            node /= LANES;
            self.sums[start + node] += by;
        }
    }

    /// By how much [`update`](Self::update) would change the total.
    #[inline(always)]
    pub fn difference(&self, topic: usize, b: f32, alpha: f32) -> f64 {
        f64::from(alpha * b) - f64::from(alpha * self.leaves[topic])
    }

    /// The topic at `u` of the total; one of positive weight whatever `u` is.
    #[inline(always)]
    pub fn locate<L: Lanes>(&self, l: L, alpha: LeafWeights<'_>, mut u: f64) -> usize {
        let mut node = 0;
        for &start in self.starts.iter().rev() {
            let (sums, _) = self.sums[start..].as_chunks::<LANES>();
            let (lane, rest) = pick(l, l.load_f64(&sums[node]), u);
            (node, u) = (node * LANES + lane, rest);
        }
        let (leaves, _) = self.leaves.as_chunks::<LANES>();
        let weights = l.mul_f(l.load_f(&leaves[node]), alpha.chunk(l, node));
        node * LANES + pick(l, weights, u).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::sampler::padded;
    use crate::simd::Scalar;

    #[test]
    fn locate_inverts_the_cumulative_sum() {
        let sizes = [1, 2, 15, 16, 17, 100, 255, 256, 1000, 5000];
        for (topics, symmetric) in sizes.into_iter().flat_map(|k| [(k, false), (k, true)]) {
            let mut rng = Xoshiro256PlusPlus::from_seed(topics as u64);
            let mut tree = VisitTree::new(padded(topics));
            let mut alpha = vec![0.0; padded(topics)];
            for (k, alpha) in alpha[..topics].iter_mut().enumerate() {
                // Every third leaf has no weight; small integers keep all sums exact.
                *alpha = if k % 3 == 2 && !symmetric { 0.0 } else { 1.0 };
                tree.set_leaf(Scalar, k, (1 + rng.below(7)) as f32);
            }
            tree.rebuild(Scalar, &alpha);
            for _ in 0..200 {
                let k = rng.below(topics as u32) as usize;
                tree.update(Scalar, k, (1 + rng.below(7)) as f32, alpha[k]);
            }
            // Leaves past K may hold anything.
            tree.leaves[topics] = 3.0;
            let weights = LeafWeights { padded: &alpha, symmetric };
            let mut at = 0.0;
            for k in 0..topics {
                let weight = f64::from(tree.leaves[k] * weights.of(k));
                for u in [at, at + 0.5 * weight, at + weight - 0.25] {
                    if weight > 0.0 {
                        assert_eq!(tree.locate(Scalar, weights, u), k, "K = {topics}, u = {u}");
                    }
                }
                at += weight;
            }
            assert_eq!(tree.total(), at);
            for u in [at, at * 1.001, f64::INFINITY] {
                let k = tree.locate(Scalar, weights, u);
                assert!(alpha[k] > 0.0, "K = {topics}: topic {k} has no weight");
            }
        }
    }
}
