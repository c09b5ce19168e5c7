//! F+LDA by word: exact Gibbs at O(K_d + log K) a token.
//!
//! The conditional (1) splits into a part that follows the document's non-zeros and a part that
//! does not know the document (Yu et al., "A scalable asynchronous distributed algorithm for topic
//! modeling", WWW 2015; LDA* §3.1.1):
//!
//! ```text
//! p(k) ∝ C_dk · b_k + α_k · b_k,        b_k = (C_wk + β) / (C_k + Vβ), all without the token itself
//! ```
//!
//! While one word is visited, b_k changes for two topics a token. Pseudo-code:
//!
//! ```text
//! for each word w of the block:
//!     b_k ← (C_wk + β)/(C_k + Vβ) at the non-zeros of C_w          (elsewhere β/(C_k + Vβ) stands)
//!     for each token of w, in document d, with topic o:
//!         take the token out: C_do, C_wo, C_o, b_o                                           (a)
//!         r ← Σ over the non-zeros of C_d of C_dk · b_k                                      (b)
//!         u ← uniform in [0, r + Σ α_k b_k)
//!         t ← if u < r: search the scan, else: descend the tree                              (c)
//!         put the token back with topic t                                                    (d)
//!     b_k ← β/(C_k + Vβ) at the non-zeros of C_w
//! ```
//!
//! What differs from the paper, and why:
//!
//! 1. (a) and (d) are not carried out when t = o, which is every second token once the chain has
//!    settled: the scan takes the token out on the fly. Only a change touches memory.
//! 2. (b) runs over sixteen entries at a time and adds *by lane*; (c) first finds the lane, then
//!    the entry in it. One fixed order of additions, no branch on which entry it is.
//! 3. A document with many topics beside K has a dense row, and is drawn from all K weights
//!    (C_dk + α_k) b_k in one contiguous scan, which reads no index and needs no tree. Which form a
//!    row has is settled at the epoch's start, by what is quicker to scan. A word whose documents
//!    are all dense never keeps up the sums above the leaves.
//!
//! Exact within rounding: weights are f32 products (relative error 2⁻²⁴ each), summed over at most
//! K/16 per lane; a draw never returns a topic of weight 0.
//!
//! Cost a token: K_d/16 gathers of sixteen, one division a changed topic (above 65,536 topics also one
//! a topic of the word, where 1 / (C_k + Vβ) is not kept). Memory: no more than the rows; scratch is
//! five arrays over K a thread.

mod kernel;
mod tree;

use crate::counts::{Density, TopicIndex};
use crate::sampler::draw::DrawScratch;
use crate::sampler::gibbs::Live;
use crate::sampler::{Block, Context, Outcome, Pass, Requires, Sampler, Shape};
use tree::VisitTree;

/// F+LDA by word. See the [module documentation](crate::sampler).
#[derive(Clone, Copy, Debug, Default)]
pub struct FPlus;

/// Arrays over topics, one set a thread.
#[derive(Debug)]
pub struct FPlusScratch<T> {
    live: Live<T>,
    tree: VisitTree,
    draw: DrawScratch,
    /// Whether the tree's sums match its leaves.
    sums_valid: bool,
    /// Whether the leaves stand at β/(C_k + Vβ), no word loaded.
    at_base: bool,
}

impl<T: TopicIndex> Sampler<T> for FPlus {
    type Scratch = FPlusScratch<T>;

    fn requires(&self) -> Requires {
        Requires {
            max_topics: T::MAX_TOPICS,
            document_rows: Some(Density::Auto),
            word_rows: true,
            proposals: false,
        }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "f-plus", shape: Shape::Grid }]
    }

    fn scratch(&self, topics: usize) -> FPlusScratch<T> {
        let padded = crate::sampler::padded(topics);
        FPlusScratch {
            live: Live::new(topics),
            tree: VisitTree::new(padded),
            draw: DrawScratch::new(padded),
            sums_valid: false,
            at_base: false,
        }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut FPlusScratch<T>,
        block: Block<'_, T>,
    ) -> Outcome {
        cx.isa.run(kernel::SampleBlock { pass: pass as u32, cx, scratch, block: block.into_grid() })
    }
}
