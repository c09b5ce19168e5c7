//! [`LightLda`].

mod positions;
mod sweep;
mod word;

use serde::{Deserialize, Serialize};

use self::positions::Positions;
use self::sweep::{Sweep, SweepScratch};
use self::word::VisitTable;
use crate::counts::TopicIndex;
use crate::layout::{Order, RowRun};
use crate::sampler::gibbs::{VisitedRow, shift_at};
use crate::sampler::tables::SharedTable;
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape};
use crate::simd::{Lanes, SimdKernel};

/// Kinds of proposals of LightLDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposals {
    /// From the document and from the word, in turn.
    #[default]
    Cycle,
    /// From the document alone. A topic that the document lacks is reached only through α.
    Document,
    /// From the word alone.
    Word,
}

impl Proposals {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Cycle, Self::Document, Self::Word];

    /// Name as it stands in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::Document => "document",
            Self::Word => "word",
        }
    }
}

/// LightLDA: Metropolis-Hastings with two alternating proposals, at a cost independent of K.
///
/// Yuan et al., "LightLDA: big topic models on modest computer clusters" (WWW 2015). Each step of a
/// token accepts or rejects one proposal from its document and one from its word:
///
/// ```text
/// for each token i of word w in document d, with topic s; all counts without it:
///     M times:
///         t ← topic of a random token of d, or a draw ∝ α_k            (∝ C_dk + α_k, i among them)
///         s ← t with probability min{1, (C_wt+β)(C_s+Vβ) / (C_ws+β)(C_t+Vβ)}                   (a)
///         t ← a draw from the stale table q̃_w                          (∝ (C̃_wk+β)/(C̃_k+Vβ))
///         s ← t with probability min{1, (C_dt+α_t)(C_wt+β)(C_s+Vβ) q̃_w(s)
///                                     / (C_ds+α_s)(C_ws+β)(C_t+Vβ) q̃_w(t)}                     (b)
/// ```
///
/// Departures from the paper:
///
/// 1. (a) has only the word factor. The random token of d may be i itself, which then proposes its
///    current topic; so the reverse proposal has weight C_ds + α_s, and the document factors
///    cancel. The paper's equation 11 divides by C_dt + α_t with the token counted, which is wrong
///    by up to .19 in total variation on three tokens.
/// 2. The ratio (b) uses the stale masses that the draw was made from, not the current counts. The
///    token itself is taken out of them (see `sampler::tables` in the source).
/// 3. Tokens are visited by word, not by document. A Gibbs sampler may visit tokens in any order,
///    and by word everything that both ratios read of the word is in cache: its counts, its table,
///    and the table's masses by topic. One table per thread is enough: it is built when a word is
///    entered, and rebuilt when twice as many tokens have drawn from it as it has topics. The paper
///    builds the tables of all words once per slice of the model, and keeps them. From the
///    document, a token needs one draw from its topics (`light::positions` in the source) and one
///    scan of its row of counts, for all topics that the token looks at.
/// 4. Either proposal may be left out ([`Proposals`]), as in the paper's figure 11.
///
/// **Nearly exact.** Each step keeps the conditional of its token, given everything else and the
/// table. The remaining error comes from tables that still contain the topics that the word's
/// *other* tokens had when the table was built: with one step per token the stationary law is .018,
/// .016 and .035 away from the posterior in total variation on the three tiny corpora of the tests
/// (.10, .07 and .13 with the token itself left in the table). The error shrinks as tokens per
/// topic grow. On kos at K = 1,000, log joint per token after 1,500 epochs: M = 1 −9.104, M = 2
/// −9.083 (mean of two runs), M = 4 −9.067, exact −9.048; after 100: −9.71, −9.46, −9.31 and −9.18.
///
/// **Latency.** Proposals do not depend on which earlier ones the token accepts: the table is
/// fixed, and a document proposal that is the token itself is the current topic, whichever that is,
/// and changes nothing. So the topics of two steps are drawn first and looked up together; then
/// they are accepted or rejected, one after the other, without a branch.
///
/// Cost per token: M times a few loads from arrays over K and one from the document's topics; one
/// scan of the document's row if it is a list. Memory: rows; per thread 100 bytes per topic, and a
/// topic id per token and 16 bytes per document of the largest document range.
#[derive(Clone, Copy, Debug, Default)]
pub struct LightLda {
    /// Kinds of proposals.
    pub proposals: Proposals,
}

/// Arrays over topics of one thread.
#[derive(Debug)]
pub struct LightScratch<T>(SweepScratch<T>);

impl<T: TopicIndex> Sampler<T> for LightLda {
    type Scratch = LightScratch<T>;

    fn requires(&self) -> Requires {
        Requires { positions: true, ..Requires::default() }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "light", shape: Shape::Grid(Order::ByWord) }]
    }

    fn scratch(&self, topics: usize) -> LightScratch<T> {
        LightScratch(SweepScratch {
            live: VisitedRow::new(topics),
            table: VisitTable::new(topics),
            shared: SharedTable::new(topics),
            alpha: SharedTable::new(topics),
            positions: Positions::default(),
        })
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut LightScratch<T>,
        block: Block<'_, T>,
    ) -> Outcome {
        let (pass, proposals, block) = (pass as u32, self.proposals, block.into_grid());
        cx.isa.run(SampleBlock { pass, proposals, cx, scratch: &mut scratch.0, block })
    }
}

struct SampleBlock<'a, 'b, T> {
    pass: u32,
    proposals: Proposals,
    cx: &'a Context<'a>,
    scratch: &'a mut SweepScratch<T>,
    block: GridBlock<'b, T>,
}

impl<T: TopicIndex> SimdKernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, proposals, cx, scratch, block } = self;
        let stream = |purpose| cx.stream(pass, block.key, purpose).stream();
        let mut sweep = Sweep::begin_block(l, proposals, cx, scratch, stream, &block);
        let mut start = 0;
        for &RowRun { row: word, end } in block.visits {
            sweep.enter(block.words, word as usize);
            for slot in start..end as usize {
                sweep.look_ahead(block.documents, block.partner, slot);
                if slot > start {
                    sweep.go_on(block.words, word as usize);
                }
                let (old, document) = (block.z[slot], block.partner[slot] as usize);
                let row = block.documents.row_mut(document);
                let (from, to) = sweep.token(&row, document, slot, old.get());
                let new = T::new(to.topic);
                sweep.put(document, new);
                if new != old {
                    shift_at(block.documents, document, from, to);
                    sweep.shift(from.topic as usize, to.topic as usize);
                    block.z[slot] = new;
                }
            }
            start = end as usize;
            sweep.leave(block.words, word as usize);
        }
        let (outcome, tokens) = (sweep.outcome, block.z.len() as u64);
        let kinds = if proposals == Proposals::Cycle { 2 } else { 1 };
        let repeated = tokens * kinds * cx.mh_steps as u64 - outcome.proposed;
        Outcome { totals: scratch.live.totals_delta(cx), tokens, repeated, ..outcome }
    }
}
