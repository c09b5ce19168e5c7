//! Collapsed Gibbs sampling as it is written: all K weights of (1) for every token.
//!
//! ```text
//! for each token of word w in document d, with topic o:
//!     take the token out of C_d, C_w and C_k
//!     t ← draw from (C_dk + α_k) · (C_wk + β) / (C_k + Vβ), k = 1 … K
//!     put it back with topic t
//! ```
//!
//! The reference that other samplers are held against (Griffiths and Steyvers 2004). It keeps
//! document rows dense: K · 2 bytes a document (4 for documents of 65,536 tokens and more), and O(K)
//! a token, sixteen topics at a time. For K up to a few hundred it is also among the fastest; above,
//! use [`FPlus`](super::FPlus), which has the same law.

use crate::counts::{Density, RowMut, TopicIndex};
use crate::layout::Visit;
use crate::random::Purpose;
use crate::sampler::draw::{DrawScratch, Weights};
use crate::sampler::gibbs::{DenseRow, Full, Half, Live};
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape, padded};
use crate::simd::{Kernel, LANES, Lanes};

/// Collapsed Gibbs sampling, O(K) a token. See the [module documentation](crate::sampler).
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

/// Arrays over topics, one set a thread.
#[derive(Debug)]
pub struct ExactScratch {
    live: Live,
    draw: DrawScratch,
}

impl<T: TopicIndex> Sampler<T> for Exact {
    type Scratch = ExactScratch;

    fn requires(&self) -> Requires {
        Requires {
            max_topics: T::MAX_TOPICS,
            document_rows: Some(Density::Dense),
            word_rows: true,
            proposals: false,
        }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "exact", shape: Shape::Grid }]
    }

    fn scratch(&self, topics: usize) -> ExactScratch {
        ExactScratch { live: Live::new(topics), draw: DrawScratch::new(padded(topics)) }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut ExactScratch,
        block: Block<'_, T>,
    ) -> Outcome {
        cx.isa.run(SampleBlock { pass: pass as u32, cx, scratch, block: block.into_grid() })
    }
}

struct SampleBlock<'a, 'b, T> {
    pass: u32,
    cx: &'a Context<'a>,
    scratch: &'a mut ExactScratch,
    block: GridBlock<'b, T>,
}

impl<T: TopicIndex> Kernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block } = self;
        let ExactScratch { live, draw } = scratch;
        let mut rng = cx.stream(pass, block.key, Purpose::Draw).stream();
        live.begin_block(cx);
        let (mut start, mut changed) = (0, 0);
        for &Visit { row, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            let sparse = live.load(l, block.words, row as usize);
            for i in slots {
                let own = block.z[i].get() as usize;
                let uniform = rng.next_f64();
                let new = match block.documents.row_mut(block.partner[i] as usize) {
                    RowMut::Dense16(lines) => {
                        token(l, cx, live, draw, &mut Half(lines), own, uniform, sparse)
                    }
                    RowMut::Dense32(lines) => {
                        token(l, cx, live, draw, &mut Full(lines), own, uniform, sparse)
                    }
                    RowMut::Sparse(_) => panic!("the exact sampler was lent sparse document rows"),
                };
                changed += u64::from(new != own);
                block.z[i] = T::new(new as u32);
            }
            live.store(block.words, row as usize);
            if !sparse {
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

/// (C_dk + α_k) · (C_wk + β) / (C_k + Vβ).
struct Conditional<'a, R> {
    row: &'a R,
    alpha: &'a [[f32; LANES]],
    words: &'a [[u32; LANES]],
    inverse: &'a [[f32; LANES]],
    beta: f32,
}

impl<R: DenseRow> Weights for Conditional<'_, R> {
    #[inline(always)]
    fn chunk<L: Lanes>(&self, l: L, c: usize) -> L::F {
        let document = l.add_f(l.to_f(self.row.chunk(l, c)), l.load_f(&self.alpha[c]));
        let word = l.add_f(l.to_f(l.load_u(&self.words[c])), l.splat_f(self.beta));
        l.mul_f(document, l.mul_f(word, l.load_f(&self.inverse[c])))
    }
}

/// Moves C_wk and C_k by one token.
#[inline(always)]
fn shift(live: &mut Live, topic: usize, by: u32) {
    live.counts[topic] = live.counts[topic].wrapping_add(by);
    let total = live.totals[topic].wrapping_add(by);
    live.set_total(topic, total, 1.0 / (total as f32 + live.norm));
}

/// Resamples one token; `sparse` says that the word's row lists its non-zeros.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
fn token<L: Lanes>(
    l: L,
    cx: &Context<'_>,
    live: &mut Live,
    draw: &mut DrawScratch,
    row: &mut impl DenseRow,
    own: usize,
    uniform: f64,
    sparse: bool,
) -> usize {
    row.add(own, 1u32.wrapping_neg());
    shift(live, own, 1u32.wrapping_neg());
    let chunks = cx.topics.div_ceil(LANES);
    let alpha = &cx.alpha.as_chunks::<LANES>().0[..chunks];
    let words = &live.counts.as_chunks::<LANES>().0[..chunks];
    let inverse = &live.inverse.as_chunks::<LANES>().0[..chunks];
    let weights = Conditional { row: &*row, alpha, words, inverse, beta: cx.beta as f32 };
    let new = draw.draw_dense(l, chunks, &weights, uniform);
    row.add(new, 1);
    if sparse && live.counts[new] == 0 {
        live.nonzeros.push(new as u32);
    }
    shift(live, new, 1);
    new
}
