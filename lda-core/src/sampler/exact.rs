//! [`Exact`]: the reference.

use crate::counts::{Density, RowMut, TopicIndex};
use crate::layout::RowRun;
use crate::random::Purpose;
use crate::sampler::dense_row::{DenseRow, Row16, Row32};
use crate::sampler::draw::{DenseWeights, DrawScratch};
use crate::sampler::gibbs::{Axis, ByWord, Priors, TopicEntry, VisitedRow};
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape, padded};
use crate::simd::{Aligned, LANES, Lanes, SimdKernel};

/// Plain collapsed Gibbs sampling: all K weights of [(1)](crate::sampler) for every token.
///
/// ```text
/// for each token of word w in document d, with topic o:
///     take the token out of C_d, C_w and C_k
///     t ← draw from (C_dk + α_k) · (C_wk + β) / (C_k + Vβ), k = 1 … K
///     put it back with topic t
/// ```
///
/// The reference for the other samplers (Griffiths and Steyvers 2004). It keeps document rows
/// dense: K · 2 bytes per document (4 for documents of 65,536 tokens and more), and takes O(K) per
/// token, sixteen topics at a time. For K up to a few hundred it is also among the fastest; above,
/// use [`FPlus`](super::FPlus), which has the same law.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

/// Arrays over topics, one set per thread.
#[derive(Debug)]
pub struct ExactScratch<T> {
    live: VisitedRow<T>,
    /// b_k of the word being visited.
    leaves: Aligned<f32>,
    draw: DrawScratch,
}

impl<T: TopicIndex> Sampler<T> for Exact {
    type Scratch = ExactScratch<T>;

    fn requires(&self) -> Requires {
        Requires { document_rows: Some(Density::Dense), ..Requires::default() }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "exact", shape: Shape::Grid(ByWord::ORDER) }]
    }

    fn scratch(&self, topics: usize) -> ExactScratch<T> {
        let len = padded(topics);
        ExactScratch {
            live: VisitedRow::new(topics),
            leaves: Aligned::new(len),
            draw: DrawScratch::new(len),
        }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut ExactScratch<T>,
        block: Block<'_, T>,
    ) -> Outcome {
        cx.isa.run(SampleBlock { pass: pass as u32, cx, scratch, block: block.into_grid() })
    }
}

struct SampleBlock<'a, 'b, T> {
    pass: u32,
    cx: &'a Context<'a>,
    scratch: &'a mut ExactScratch<T>,
    block: GridBlock<'b, T>,
}

impl<T: TopicIndex> SimdKernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block } = self;
        let ExactScratch { live, leaves, draw } = scratch;
        let chunks = cx.topics.div_ceil(LANES);
        let leaves = &mut leaves.as_chunks_mut::<LANES>().0[..chunks];
        let priors = ByWord::priors(cx);
        let mut rng = cx.stream(pass, block.key, Purpose::Draw).stream();
        live.begin_block(cx);
        let (mut start, mut changed) = (0, 0);
        for &RowRun { row, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            live.load(l, block.words, row as usize);
            live.fill_leaves(l, priors.visited, leaves, cx.topics);
            let mut visited = Visited { live, leaves, priors };
            for i in slots {
                let own = block.z[i].get() as usize;
                let uniform = rng.next_f64();
                let new = match block.documents.row_mut(block.partner[i] as usize) {
                    RowMut::Dense16(row) => visited.token(l, draw, &mut Row16(row), own, uniform),
                    RowMut::Dense32(row) => visited.token(l, draw, &mut Row32(row), own, uniform),
                    RowMut::Sparse(_) => panic!("the exact sampler requires dense document rows"),
                };
                changed += u64::from(new != own);
                block.z[i] = T::new(new as u32);
            }
            live.store(block.words, row as usize);
            if live.dense {
                live.clear_dense();
            }
        }
        Outcome {
            totals: live.totals_delta(cx),
            tokens: block.z.len() as u64,
            changed,
            ..Outcome::default()
        }
    }
}

/// The samplers' arrays while a word is visited.
struct Visited<'a, T> {
    live: &'a mut VisitedRow<T>,
    /// b_k = (C_wk + β) / (C_k + Vβ).
    leaves: &'a mut [[f32; LANES]],
    priors: Priors<'a>,
}

impl<T: TopicIndex> Visited<'_, T> {
    #[inline(always)]
    fn set<L: Lanes>(&mut self, l: L, k: usize, topic: TopicEntry) {
        self.live.set(k, topic);
        // Writes the whole vector: a scan loads vectors, and a load cannot be forwarded from a
        // narrower store.
        let leaves = &mut self.leaves[k / LANES];
        let kept = l.load_f(leaves);
        l.store_f(leaves, l.select_f(1 << (k % LANES), l.splat_f(topic.leaf), kept));
    }

    /// Resamples one token.
    #[inline(always)]
    fn token<L: Lanes>(
        &mut self,
        l: L,
        draw: &mut DrawScratch,
        row: &mut impl DenseRow,
        own: usize,
        uniform: f64,
    ) -> usize {
        let live = &*self.live;
        let beta = self.priors.visited.of(own);
        let out = live.topic(live.counts[own] - 1, live.totals[own] - 1, beta);
        let prior = self.priors.partner;
        let own_weight = ((row.get(own) - 1) as f32 + prior.of(own)) * out.leaf;
        let chunks = self.leaves.len();
        let weights = DenseWeights { row: &*row, prior, leaves: self.leaves, own, own_weight };
        let new = draw.draw_dense(l, chunks, &weights, uniform);
        if new != own {
            row.add(l, own, 1u16.wrapping_neg());
            row.add(l, new, 1);
            self.set(l, own, out);
            let live = &mut *self.live;
            let count = live.counts[new];
            if !live.dense && count == 0 {
                live.nonzeros.push(new as u32);
            }
            let topic = live.topic(count + 1, live.totals[new] + 1, beta);
            self.set(l, new, topic);
        }
        new
    }
}
