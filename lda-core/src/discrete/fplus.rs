//! The F+ tree: draws and single changes in O(log K) (Yu et al., F+Nomad LDA, 2015; LDA* §3).
//!
//! Leaves hold the weights, a node the sum of its children; a draw walks down from the root. The
//! paper's tree is binary. Here a node has 16 children that lie side by side, so that a draw
//! touches 3 nodes instead of 10 at K = 1,000, and 5 instead of 20 at K = 1,000,000:
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
//! - A node has at most 6 additions on any path: the total's relative error is at most
//!   6 * 2^-53 a level, 42 * 2^-53 at the largest K. Weights are f64: with f32 leaves of 6e-8 in a
//!   total of 1 could not be reached by a point of 24 bits, at K = 1,000,000 that is most of them.

use super::{DiscreteError, MAX_LEN, check, check_len, checked, clamp, uniform};
use rand::Rng;

const BITS: u32 = 4;
const FAN_OUT: usize = 1 << BITS;
/// 16^7 >= MAX_LEN.
const MAX_LEVELS: usize = 7;
const _: () = assert!(1 << (BITS as usize * MAX_LEVELS) >= MAX_LEN);

/// Two cache lines, and never three.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(64))]
struct Node([f64; FAN_OUT]);

impl Node {
    /// Prefix sums, in groups of 4 so that a sum waits for 7 additions and not for 15.
    ///
    /// They never decrease: within a group the offset is the same and what is added to it never
    /// decreases, and a group's offset is the last prefix sum of the group before.
    #[inline(always)]
    fn prefix_sums(&self) -> [f64; FAN_OUT] {
        let mut sums = self.0;
        for group in sums.as_chunks_mut::<4>().0 {
            group[1] += group[0];
            group[2] += group[1];
            group[3] += group[2];
        }
        let mut offset = 0.0;
        for group in sums.as_chunks_mut::<4>().0 {
            group.iter_mut().for_each(|sum| *sum += offset);
            offset = group[3];
        }
        sums
    }

    /// The last prefix sum.
    #[inline(always)]
    fn sum(&self) -> f64 {
        let [a, b, c, d] = self.0.as_chunks::<4>().0 else { unreachable!("16 is 4 * 4") };
        let group = |x: &[f64; 4]| ((x[0] + x[1]) + x[2]) + x[3];
        ((group(a) + group(b)) + group(c)) + group(d)
    }

    /// The child that holds `u`, and the point within it; `u` is below the sum.
    #[inline(always)]
    fn descend(&self, u: f64) -> (usize, f64) {
        let sums = self.prefix_sums();
        let passed: usize = sums.iter().map(|&sum| usize::from(sum <= u)).sum();
        let child = passed.min(FAN_OUT - 1);
        let before = if child == 0 { 0.0 } else { sums[child - 1] };
        // The float before a positive one; cheaper than `next_down`, which minds the special cases.
        let below = f64::from_bits(self.0[child].to_bits().saturating_sub(1));
        (child, (u - before).min(below))
    }
}

/// An F+ tree: changes and draws in O(log K), 8.5 bytes a weight.
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
