//! [`Warp`].

mod external_counts;
mod passes;
mod row;
mod token_buffers;
mod topic_delta;

use crate::counts::TopicIndex;
use crate::sampler::{Block, Context, Outcome, Pass, Requires, Sampler, Shape};
pub use row::WarpScratch;

/// WarpLDA: Metropolis-Hastings in two passes with frozen counts, O(M) per token.
///
/// Chen et al., "WarpLDA: a cache efficient O(1) algorithm for latent Dirichlet allocation" (VLDB
/// 2016); LDA* §3.1.2. Counts are frozen during a pass, so a pass over words needs only one word's
/// counts at a time and a pass over documents one document's; both are recounted from the
/// assignments when they are needed, and no count matrix is kept. Each token carries M pending
/// proposals from one pass to the next.
///
/// ```text
/// word pass, for each word w:                       document pass, for each document d:
///     C_w ← topics of w's tokens                        C_d ← topics of d's tokens
///     for each token, each pending proposal t:          (the mirror image:)
///         s ← t with probability min{1, A}                  A = (C_dt+α_t)(C_s+Vβ) / (C_ds+α_s)(C_t+Vβ)
///         A = (C_wt+β)(C_s+Vβ) / (C_ws+β)(C_t+Vβ)
///     pending ← M draws ∝ new C_wk + β                  pending ← M draws ∝ new C_dk + α_k
/// C_k ← recount                                     C_k ← recount
/// ```
///
/// In the word pass the pending proposals are the ones the document pass drew from ∝ C_dk + α_k:
/// the proposal cancels the document factor of [(1)](crate::sampler), so the ratio has only the
/// word factor. In the document pass it is the other way round. A draw ∝ C_wk + β is the topic of a
/// random token of w with probability L_w / (L_w + Kβ), else a uniform topic.
///
/// Departures from the paper:
///
/// 1. The ratio is compared without dividing. A topic's count in the row and its C_k lie side by
///    side in an array over topics, one access for both; nothing is precomputed per topic.
/// 2. Sixteen tokens at a time: gathers for counts, compares for accepts, no branch on their
///    outcome. The moves that are left are compressed into a list and added to C_k.
/// 3. Assignment and proposal of a token lie together; tokens of a document range are about 2 MB,
///    so the scattered access of the document pass stays in or near the L2 cache. Documents are
///    gathered in batches, and the next batch is prefetched while one is sampled.
/// 4. Accepts and proposals draw from separate streams, so pending proposals can be drawn again
///    from (z, seed, epoch).
///
/// **Biased.** Within a pass, a token does not see the moves of other tokens. On the three tiny
/// corpora of the tests the stationary law is .026, .085 and .059 away from the posterior in total
/// variation (.031, .084 and .064 if tokens count themselves, see [`Warp::count_own`]). On real
/// corpora the final likelihood is a little below that of Gibbs sampling, and a given likelihood
/// takes several times as many epochs.
///
/// Memory: 2 + 2M bytes per token (4 + 4M above 65,536 topics) and 4 for the inverse index; scratch
/// per thread is 12 bytes per topic and 4 (2 + M) per token of the longest row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Warp {
    /// Whether a token counts itself in the acceptance ratio, as in the paper's formulas. If false,
    /// it is taken out of its starting topic, as in the authors' program: from a random start that
    /// mixes faster, since a token that is alone in its topic is not held there.
    pub count_own: bool,
}

impl Warp {
    /// Index of the pass over words.
    pub const WORDS: usize = 0;
    /// Index of the pass over documents.
    pub const DOCUMENTS: usize = 1;
}

impl<T: TopicIndex> Sampler<T> for Warp {
    type Scratch = WarpScratch;

    fn requires(&self) -> Requires {
        Requires { document_rows: None, word_rows: false, proposals: true, ..Requires::default() }
    }

    fn passes(&self) -> &'static [Pass] {
        &[
            Pass { name: "warp words", shape: Shape::WordRanges },
            Pass { name: "warp documents", shape: Shape::DocumentRanges },
        ]
    }

    fn scratch(&self, topics: usize) -> WarpScratch {
        WarpScratch::new(topics)
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut WarpScratch,
        block: Block<'_, T>,
    ) -> Outcome {
        match block {
            Block::Words(block) => cx.isa.run(passes::WordPass {
                pass: pass as u32,
                cx,
                scratch,
                count_own: self.count_own,
                block,
            }),
            Block::Documents(block) => cx.isa.run(passes::DocumentPass {
                pass: pass as u32,
                cx,
                scratch,
                count_own: self.count_own,
                block,
            }),
            Block::Grid(_) => panic!("a WarpLDA pass got a grid block"),
        }
    }
}
