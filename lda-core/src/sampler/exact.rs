//! [`Exact`]: the reference.

use crate::counts::{Density, RowMut, SparseMut, TopicIndex};
use crate::layout::RowRun;
use crate::random::Purpose;
use crate::sampler::dense_row::{DenseRow, Row16, Row32};
use crate::sampler::draw::{DenseWeights, DrawScratch};
use crate::sampler::gibbs::{Axis, ByWord, Priors, TopicEntry, VisitedRow};
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape, padded};
use crate::simd::{Aligned, LANES, Lanes, Line, SimdKernel};

/// Plain collapsed Gibbs sampling: all K weights of [(1)](crate::sampler) for every token.
///
/// ```text
/// for each token of word w in document d, with topic o:
///     take the token out of C_d, C_w and C_k
///     t ← draw from (C_dk + α_k) · (C_wk + β) / (C_k + Vβ), k = 1 … K
///     put it back with topic t
/// ```
///
/// The reference for the other samplers (Griffiths and Steyvers 2004). It wants document rows
/// dense: K · 2 bytes per document (4 for documents of 65,536 tokens and more), and takes O(K) per
/// token, sixteen topics at a time. A row that is a list, as in a distributed run, is spread over K
/// counts for each token, with the same result. For K up to a few hundred it is also among the fastest; above,
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
    /// Counts of a document whose row is a list: zero between tokens.
    counts: Vec<Line>,
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
            counts: vec![Line::default(); len / LANES],
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
        let ExactScratch { live, leaves, draw, counts } = scratch;
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
                let document = block.partner[i] as usize;
                let new = match block.documents.row_mut(document) {
                    RowMut::Dense16(row) => visited.token(l, draw, &mut Row16(row), own, uniform),
                    RowMut::Dense32(row) => visited.token(l, draw, &mut Row32(row), own, uniform),
                    RowMut::Sparse(row) => {
                        spread(&row, counts);
                        let new = visited.token(l, draw, &mut Row32(counts), own, uniform);
                        row_topics(&row).chain([new]).for_each(|k| set_count(counts, k, 0));
                        if new != own {
                            block.documents.decrement(document, own as u32);
                            block.documents.increment(document, new as u32);
                        }
                        new
                    }
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

/// Writes the counts of a list.
fn spread<T: TopicIndex>(row: &SparseMut<'_, T>, counts: &mut [Line]) {
    for entry in 1..=row.len() {
        let (topic, count) = row.entry(entry);
        set_count(counts, topic as usize, count);
    }
}

/// Topics of a list.
fn row_topics<T: TopicIndex>(row: &SparseMut<'_, T>) -> impl Iterator<Item = usize> {
    (1..=row.len()).map(|entry| row.entry(entry).0 as usize)
}

fn set_count(counts: &mut [Line], topic: usize, count: u32) {
    counts[topic / LANES].0[topic % LANES] = count;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Rows;
    use crate::random::Xoshiro256PlusPlus;
    use crate::sampler::BlockKey;
    use crate::simd::Isa;

    /// Topics of tokens after three sweeps, with document rows of this form.
    fn topics(density: Density) -> Vec<u16> {
        const TOPICS: usize = 700;
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        let tokens = 200;
        let partner: Vec<u32> = (0..tokens).map(|_| rng.below(5)).collect();
        let mut z: Vec<u16> = (0..tokens).map(|_| rng.below(TOPICS as u32) as u16).collect();
        let visits = [RowRun { row: 0, end: 150 }, RowRun { row: 1, end: 200 }];
        let room = |rows| std::iter::repeat_n(200, rows);
        let mut words = Rows::new(TOPICS, room(2), Density::Auto).unwrap();
        let mut documents = Rows::new(TOPICS, room(5), density).unwrap();
        let mut totals = vec![0; padded(TOPICS)];
        for (at, (&topic, &document)) in z.iter().zip(&partner).enumerate() {
            words.increment(usize::from(at >= 150), topic.into());
            documents.increment(document as usize, topic.into());
            totals[usize::from(topic)] += 1;
        }
        let is_list = documents.listed(0).is_some();
        assert_eq!(is_list, density == Density::Auto);
        let mut alpha = vec![0.0; padded(TOPICS)];
        alpha[..TOPICS].fill(0.1);
        let mut scratch = Exact.scratch(TOPICS);
        for epoch in 1..4 {
            let cx = Context {
                topics: TOPICS,
                alpha: &alpha,
                alpha_sum: 70.0,
                alpha_symmetric: true,
                beta: 0.1,
                beta_bar: 0.2,
                totals: &totals.clone(),
                wave: u64::from(epoch),
                seed: 1,
                epoch,
                round: 0,
                again: 0,
                mh_steps: 0,
                isa: Isa::detect(),
            };
            let block = GridBlock {
                key: BlockKey::default(),
                visits: &visits,
                partner: &partner,
                z: &mut z,
                words: &mut words,
                documents: &mut documents,
                tables: None,
            };
            let outcome = Exact.sample(0, &cx, &mut scratch, Block::Grid(block));
            for (topic, by) in outcome.totals {
                let total = &mut totals[topic as usize];
                *total = total.wrapping_add_signed(by);
            }
        }
        for document in 0..5 {
            let count =
                |topic| z.iter().zip(&partner).filter(|it| it == &(&topic, &document)).count();
            for topic in 0..TOPICS as u16 {
                assert_eq!(documents.get(document as usize, topic.into()), count(topic) as u32);
            }
        }
        z
    }

    #[test]
    fn rows_that_are_lists_give_the_same_topics_as_dense_rows() {
        assert_eq!(topics(Density::Auto), topics(Density::Dense));
    }
}
