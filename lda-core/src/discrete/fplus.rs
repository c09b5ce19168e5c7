//! The F+ tree: draws and single changes in O(log K) (Yu et al., F+Nomad LDA, 2015; LDA* §3).
//!
//! Leaves hold the weights, a node the sum of its children; a draw walks down from the root. The
//! paper's tree is binary. Here a node has 4 children that lie side by side:
//!
//! ```text
//! locate(u):                                 set(k, w):
//!   node = root                                slot = leaf k; value = w
//!   until a leaf is reached:                   until the root is passed:
//!     p = prefix sums of the children            write value into the slot
//!     c = the first with p[c] > u                value = last prefix sum of the node
//!     u = min(u - p[c-1], below(child c))        slot = the node's own slot, a level up
//!     node = child c                           total = value
//! ```
//!
//! # Numerics
//! - A change **adds the children up again**, all the way. A tree that carries differences drifts
//!   and keeps residues over leaves that went back to zero; this one is a pure function of its
//!   leaves, bit for bit, whatever happened before.
//! - The value of a node is the *last prefix sum of its children, in the very additions that the
//!   descent makes*. So a point below the node's value is below one of the prefix sums: the walk
//!   cannot run off the end. Prefix sums never decrease, and a child of weight 0 has the same one
//!   as its left neighbour, so the first that exceeds u belongs to a positive child. `below(x)` is
//!   the float before x; it keeps the point inside the child where `u - p[c-1]` was rounded up.
//!   Hence a leaf of weight 0 is never returned, whatever u is.
//! - A level adds 3 times at most: the total's relative error is below 3 * 2^-53 a level, 42 *
//!   2^-53 at the largest K. Weights are f64: a point of 24 bits in a total of 1 could not reach a
//!   leaf of 6e-8, and at K = 1,000,000 most are below that.
//!
//! # Why 4 children
//! Tried (November 2026, K = 1,000; ns a draw, a change, and the two changes and a draw of a
//! token): 2 children 92 / 13 / 137, **4 children 18 / 12 / 68**, 8 children 24 / 40 / 131, 16
//! children with vector sums 46 / 33 / 118, with prefix sums kept in the inner nodes 33 / 35 / 120.
//! The binary descent mispredicts; wide nodes are added up in vectors, which have to wait for the
//! leaf just stored because it does not forward to a wider load.

use super::{DiscreteError, MAX_LEN, below, check, check_len, checked, clamp, uniform};
use rand::Rng;

const BITS: u32 = 2;
const FAN_OUT: usize = 1 << BITS;
const MAX_LEVELS: usize = 14;
const _: () = assert!(1 << (BITS as usize * MAX_LEVELS) >= MAX_LEN);

/// Half a cache line, never two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(32))]
struct Node([f64; FAN_OUT]);

impl Node {
    /// The last prefix sum.
    ///
    /// PERF: from left to right, as [`descend`](Self::descend) adds. Adding pairs is one addition
    /// shorter, but then the compiler loads them as vectors and waits for the slot just stored.
    #[inline(always)]
    fn sum(&self) -> f64 {
        let [a, b, c, d] = self.0;
        ((a + b) + c) + d
    }

    /// The child that holds `u`, and the point within it; `u` is below the sum.
    #[inline(always)]
    fn descend(&self, u: f64) -> (usize, f64) {
        let [a, b, c, _] = self.0;
        let (first, second, third) = (a, a + b, (a + b) + c);
        let child = usize::from(first <= u) + usize::from(second <= u) + usize::from(third <= u);
        // PERF: nothing here may become a branch on u, it would be mispredicted at every level. A
        // table, counting and `if a < b` do not (checked in the assembly); nested selects of floats
        // do, and `f64::min` costs five instructions for NaN.
        let before = [0.0, first, second, third][child];
        let (rest, last) = (u - before, below(self.0[child]));
        (child, if rest < last { rest } else { last })
    }
}

/// An F+ tree: changes and draws in O(log K), 10.7 bytes a weight.
///
/// Weights of 0 are welcome, all of them too: then [`locate`](Self::locate) finds nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct FPlusTree {
    /// The leaves' nodes first, then level by level; the root is the last.
    nodes: Vec<Node>,
    /// Where each level starts in `nodes`.
    starts: [u32; MAX_LEVELS],
    levels: usize,
    len: usize,
    total: f64,
}

impl FPlusTree {
    /// A tree over `weights`.
    ///
    /// ```
    /// use lda_core::discrete::FPlusTree;
    ///
    /// let tree = FPlusTree::new(&[0.5, 0.0, 1.5])?;
    /// assert_eq!(tree.total(), 2.0);
    /// assert_eq!([0.0, 0.5, 1.9].map(|u| tree.locate(u)), [Some(0), Some(2), Some(2)]);
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// No weights, too many, or a weight that is negative, not finite or too large.
    pub fn new(weights: &[f64]) -> Result<Self, DiscreteError> {
        check(weights)?;
        let mut tree = Self::zeros(weights.len())?;
        tree.fill(weights);
        Ok(tree)
    }

    /// A tree over `len` weights of 0.
    ///
    /// # Errors
    /// If `len` is 0 or above [`MAX_LEN`].
    pub fn zeros(len: usize) -> Result<Self, DiscreteError> {
        check_len(len)?;
        let mut tree =
            Self { nodes: Vec::new(), starts: [0; MAX_LEVELS], levels: 0, len, total: 0.0 };
        tree.lay_out(len);
        Ok(tree)
    }

    /// Replaces all weights, reusing the memory; any number of them. O(K).
    ///
    /// ```
    /// use lda_core::discrete::FPlusTree;
    ///
    /// let mut tree = FPlusTree::zeros(3)?;
    /// tree.rebuild(&[0.0, 4.0])?;
    /// assert_eq!((tree.len(), tree.total()), (2, 4.0));
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new); the old weights are kept then.
    pub fn rebuild(&mut self, weights: &[f64]) -> Result<(), DiscreteError> {
        check(weights)?;
        if weights.len() != self.len {
            self.lay_out(weights.len());
        }
        self.fill(weights);
        Ok(())
    }

    /// Changes weight `k`. O(log K).
    ///
    /// # Errors
    /// An index not below [`len`](Self::len), or a weight that is negative, not finite or too
    /// large; the tree stays as it was.
    #[inline]
    pub fn set(&mut self, k: usize, weight: f64) -> Result<(), DiscreteError> {
        let mut value = self.checked(k, weight)?;
        let mut slot = k;
        for &start in &self.starts[..self.levels] {
            let node = &mut self.nodes[start as usize + (slot >> BITS)];
            node.0[slot % FAN_OUT] = value;
            value = node.sum();
            slot >>= BITS;
        }
        self.total = value;
        Ok(())
    }

    /// Changes many weights: as one [`set`](Self::set) after another, but a node is added up once
    /// for a run of changes below it. Any order is right; ascending is the cheapest.
    ///
    /// ```
    /// use lda_core::discrete::FPlusTree;
    ///
    /// let mut tree = FPlusTree::zeros(1000)?;
    /// tree.set_many([(3, 1.0), (4, 2.0), (900, 0.5)])?;
    /// assert_eq!((tree.total(), tree.get(4)), (3.5, 2.0));
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set); the changes before the refused one have been made then.
    pub fn set_many(
        &mut self,
        changes: impl IntoIterator<Item = (usize, f64)>,
    ) -> Result<(), DiscreteError> {
        let mut open = None;
        let mut outcome = Ok(());
        for (k, weight) in changes {
            match self.checked(k, weight) {
                Ok(weight) => {
                    let node = k >> BITS;
                    if let Some(before) = open.replace(node) {
                        self.close(before, node);
                    }
                    self.nodes[node].0[k % FAN_OUT] = weight;
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if let Some(node) = open {
            self.close(node, usize::MAX);
        }
        outcome
    }

    /// Weight `k`.
    ///
    /// # Panics
    /// If `k` is not below [`len`](Self::len).
    #[inline]
    pub fn get(&self, k: usize) -> f64 {
        assert!(k < self.len, "index {k} in a tree of {} weights", self.len);
        self.nodes[k >> BITS].0[k % FAN_OUT]
    }

    /// All weights, in order.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.len).map(|k| self.get(k))
    }

    /// The sum of the weights, exactly the value of the root.
    #[inline]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Number of weights, those of 0 included.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The index whose share of `[0, total)` holds `u`, or nothing if all weights are 0. Its weight
    /// is positive for any `u`, and it never decreases as `u` grows.
    #[inline]
    pub fn locate(&self, u: f64) -> Option<usize> {
        if self.total <= 0.0 {
            return None;
        }
        let mut u = clamp(u, self.total);
        let mut index = 0;
        for &start in self.starts[..self.levels].iter().rev() {
            let (child, rest) = self.nodes[start as usize + index].descend(u);
            index = (index << BITS) + child;
            u = rest;
        }
        Some(index)
    }

    /// Draws an index, or nothing if all weights are 0; takes one `u64` from the generator.
    #[inline]
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> Option<usize> {
        self.locate(uniform(rng, self.total))
    }

    #[inline]
    fn checked(&self, k: usize, weight: f64) -> Result<f64, DiscreteError> {
        if k < self.len {
            checked(k, weight)
        } else {
            Err(DiscreteError::OutOfRange { index: k, len: self.len })
        }
    }

    /// Cuts the levels for `len` weights and sets all to 0; `len` has been checked.
    fn lay_out(&mut self, len: usize) {
        self.len = len;
        self.total = 0.0;
        self.starts = [0; MAX_LEVELS];
        self.levels = 0;
        let mut start = 0;
        let mut width = len;
        loop {
            self.starts[self.levels] = start as u32;
            self.levels += 1;
            width = width.div_ceil(FAN_OUT);
            start += width;
            if width == 1 {
                break;
            }
        }
        self.nodes.clear();
        self.nodes.resize(start, Node::default());
    }

    /// Copies `weights`, which are checked and as many as the leaves, and adds up every node.
    fn fill(&mut self, weights: &[f64]) {
        for (node, chunk) in self.nodes.iter_mut().zip(weights.chunks(FAN_OUT)) {
            for (leaf, w) in node.0.iter_mut().zip(chunk) {
                *leaf = w + 0.0; // -0 becomes 0
            }
        }
        for level in 1..self.levels {
            let (start, below) = (self.starts[level] as usize, self.starts[level - 1] as usize);
            let (children, parents) = self.nodes.split_at_mut(start);
            for (slot, child) in children[below..].iter().enumerate() {
                parents[slot >> BITS].0[slot % FAN_OUT] = child.sum();
            }
        }
        self.total = self.nodes[self.nodes.len() - 1].sum();
    }

    /// Adds up the nodes over leaf node `from` as far as they are not over leaf node `to`.
    fn close(&mut self, mut from: usize, mut to: usize) {
        for level in 0..self.levels {
            if from == to {
                return;
            }
            let sum = self.nodes[self.starts[level] as usize + from].sum();
            match self.starts[..self.levels].get(level + 1) {
                Some(&above) => {
                    self.nodes[above as usize + (from >> BITS)].0[from % FAN_OUT] = sum;
                }
                None => self.total = sum,
            }
            from >>= BITS;
            to >>= BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ties: u lies below the second prefix sum, which was rounded up, and what is left of u
    /// after the first is rounded up to the whole second child. Unclamped, the walk would go on to
    /// a leaf of weight 0.
    #[test]
    fn a_point_rounded_up_stays_inside_its_child() {
        let unit = f64::EPSILON;
        let mut weights = [0.0; 8];
        weights[0] = 1.5 * unit;
        weights[4] = 1.0 + 2.0 * unit;
        let u = 1.0 + 3.0 * unit;
        assert_eq!(u - weights[0], weights[4]);
        let tree = FPlusTree::new(&weights).unwrap();
        assert!(u < tree.total());
        assert_eq!(tree.locate(u), Some(4));
    }

    /// The additions of `sum` are those of `descend`, from left to right.
    #[test]
    fn a_node_is_its_last_prefix_sum() {
        let nodes = [[0.1, 0.2, 0.3, 0.4], [1e16, 1.0, 1.0, 1.0], [0.7, 0.1, 0.1, 0.1]];
        let mut differ = 0;
        for [a, b, c, d] in nodes {
            let total = FPlusTree::new(&[a, b, c, d]).unwrap().total();
            assert_eq!(total, a + b + c + d);
            differ += usize::from(total != (a + b) + (c + d));
        }
        assert!(differ > 0);
    }

    #[test]
    fn levels_fit_every_length() {
        for len in [1, 4, 5, 16, 17, 1 << 10, (1 << 10) + 1] {
            let tree = FPlusTree::zeros(len).unwrap();
            assert!(FAN_OUT.pow(tree.levels as u32) >= len);
            assert!(tree.levels == 1 || FAN_OUT.pow(tree.levels as u32 - 1) < len);
            let leaves = len.div_ceil(FAN_OUT);
            assert!(tree.nodes.len() <= leaves + leaves.div_ceil(3) + tree.levels);
        }
    }
}
