//! [`AliasLda`].

use crate::counts::{RowMut, TopicIndex};
use crate::layout::{Order, RowRun, TokenOrder};
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::draw::{DrawScratch, Scan};
use crate::sampler::gibbs::{Axis, ByDocument, VisitedRow, count, shift};
use crate::sampler::tables::{AHEAD, Mass, Proposal, SharedTable, Stale, USES, WordTables};
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape, padded};
use crate::simd::{Aligned, Lanes, SimdKernel};

/// AliasLDA: the document's part is fresh, the rest comes from a stale table and is corrected by
/// Metropolis-Hastings.
///
/// Li, Ahmed, Ravi and Smola, "Reducing the sampling complexity of topic models" (KDD 2014). For a
/// token of word w in document d the proposal is
///
/// ```text
/// q(k) ∝ C_dk (C_wk+β) / (C_k+Vβ)  +  α_k (C̃_wk+β) / (C̃_k+Vβ)
///        fresh, without the token      stale, from a Walker table, the token's own share taken out
///
/// s ← t with probability min{1, p(t) q(s) / p(s) q(t)},     p the conditional (1) of the module
/// ```
///
/// M times, starting from the token's old topic. The fresh part is nearly all of p, so nearly all
/// proposals are accepted. It has as many terms as the document has topics; the word's many topics
/// do not enter.
///
/// Departures from the paper:
///
/// 1. The stale part is two tables: one per word over the word's topics, and one of α_kβ/(C̃_k+Vβ)
///    for all words, built once per wave. No table of a word has K entries.
/// 2. The token itself is taken out of the stale part (see `sampler::tables` in the source), so
///    that the proposal does not depend on the token's topic.
/// 3. A table serves as many tokens as it has topics; each token draws from it on demand. The paper
///    draws K samples in advance and uses them up.
/// 4. The fresh part of a word with few topics is summed over the word's topics instead of the
///    document's, which would each need a search in the list: C_wk C_dk / (C_k+Vβ) over the word's
///    topics, and β C_dk / (C_k+Vβ) as one sum that is updated from token to token.
///
/// **Nearly exact**, as [`LightLda`](super::LightLda) is and for the same reason: .018, .026 and
/// .030 from the posterior on the three tiny corpora of the tests (.08, .06 and .08 with the token
/// itself left in the table).
///
/// Cost per token: K_d/16 or K_w/16 gathers of sixteen, by the form of the word's row, and M draws
/// of O(1). Memory: rows, and 16 bytes per topic of a word for the tables.
///
/// **Slower than [`SparseLda`](super::SparseLda)**, where the paper has it faster: million tokens
/// per CPU second on kos 7.5 against 14.5 at K = 1,000 and 4.7 against 6.6 at 10,000. The sum over
/// the word's topics that the paper saves takes sixteen topics per step here, and 19 % of
/// AliasLDA's time, in which the fresh part is that very sum. The rest at K = 1,000: 18 % to look
/// up the two topics of the acceptance test, 12 % to draw from the fresh part, 9 % to draw from
/// tables, 7 % to build them.
#[derive(Clone, Copy, Debug, Default)]
pub struct AliasLda;

/// Arrays over topics, one set per thread.
#[derive(Debug)]
pub struct AliasScratch<T> {
    live: VisitedRow<T>,
    fresh: Fresh,
    /// α_k β / (C_k + Vβ): the part that is the same for all words.
    shared: SharedTable,
}

/// The document's part of the proposal.
#[derive(Debug)]
struct Fresh {
    /// C_dk / (C_k + Vβ) of the document being visited; zero elsewhere.
    leaves: Aligned<f32>,
    /// Sum of the leaves.
    sum: f64,
    draw: DrawScratch,
    /// Running sums over the document's topics.
    running: Vec<f32>,
}

impl<T: TopicIndex> Sampler<T> for AliasLda {
    type Scratch = AliasScratch<T>;

    fn requires(&self) -> Requires {
        Requires {
            token_order: TokenOrder::All(Order::ByDocument),
            word_tables: true,
            ..Requires::default()
        }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "alias", shape: Shape::Grid(Order::ByDocument) }]
    }

    fn scratch(&self, topics: usize) -> AliasScratch<T> {
        let padded = padded(topics);
        AliasScratch {
            live: VisitedRow::new(topics),
            fresh: Fresh {
                leaves: Aligned::new(padded),
                sum: 0.0,
                draw: DrawScratch::new(padded),
                running: Vec::new(),
            },
            shared: SharedTable::new(topics),
        }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut AliasScratch<T>,
        block: Block<'_, T>,
    ) -> Outcome {
        cx.isa.run(SampleBlock { pass: pass as u32, cx, scratch, block: block.into_grid() })
    }
}

struct SampleBlock<'a, 'b, T> {
    pass: u32,
    cx: &'a Context<'a>,
    scratch: &'a mut AliasScratch<T>,
    block: GridBlock<'b, T>,
}

impl<T: TopicIndex> SimdKernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block } = self;
        let AliasScratch { live, fresh, shared } = scratch;
        let alpha = ByDocument::priors(cx).visited;
        shared.begin_wave(cx, alpha, cx.beta);
        live.begin_block(cx);
        let tables = block.tables.expect("AliasLDA asked for tables");
        let stream = |purpose| cx.stream(pass, block.key, purpose).stream();
        let mut sweep = Sweep {
            l,
            steps: cx.mh_steps,
            alpha,
            beta: cx.beta as f32,
            live,
            fresh,
            shared,
            propose: stream(Purpose::Propose),
            accept: stream(Purpose::Accept),
            outcome: Outcome { tokens: block.z.len() as u64, ..Outcome::default() },
        };
        let mut start = 0;
        for &RowRun { row: document, end } in block.visits {
            sweep.live.load(l, block.documents, document as usize);
            sweep.enter();
            for i in start..end as usize {
                if let Some(&ahead) = block.partner.get(i + AHEAD) {
                    block.words.prefetch(l, ahead as usize);
                    tables.prefetch(l, ahead as usize);
                }
                let (word, old) = (block.partner[i] as usize, block.z[i].get());
                let new = sweep.token(&block.words.row_mut(word), tables, word, old);
                if new != old {
                    shift(l, block.words, word, old, new);
                    sweep.shift(old as usize, new as usize);
                    block.z[i] = T::new(new);
                }
            }
            start = end as usize;
            sweep.leave();
            sweep.live.store(block.documents, document as usize);
            if sweep.live.dense {
                sweep.live.clear_dense();
            }
        }
        let outcome = sweep.outcome;
        let repeated = outcome.tokens * cx.mh_steps as u64 - outcome.proposed;
        Outcome { totals: live.totals_delta(cx), repeated, ..outcome }
    }
}

struct Sweep<'a, L, T> {
    l: L,
    steps: usize,
    alpha: TopicPrior<'a>,
    beta: f32,
    live: &'a mut VisitedRow<T>,
    fresh: &'a mut Fresh,
    shared: &'a SharedTable,
    propose: Xoshiro256PlusPlus,
    accept: Xoshiro256PlusPlus,
    outcome: Outcome,
}

/// The token's old topic without the token.
#[derive(Clone, Copy)]
struct Out {
    topic: u32,
    /// C_dk / (C_k + Vβ).
    leaf: f32,
    /// 1 / (C_k + Vβ).
    inverse: f32,
}

/// Values of a topic during the steps.
#[derive(Clone, Copy)]
struct State {
    topic: u32,
    /// Conditional (1).
    target: f32,
    /// Proposal.
    proposal: f32,
}

impl<L: Lanes, T: TopicIndex> Sweep<'_, L, T> {
    /// Sets the leaves of the topics of the loaded document, all of which are listed.
    #[inline(always)]
    fn enter(&mut self) {
        let Self { live, fresh, .. } = self;
        if live.dense {
            live.nonzeros.clear();
            let VisitedRow { nonzeros, counts, .. } = &mut **live;
            let topics = counts.iter().zip(0..).filter(|&(&count, _)| count > 0);
            nonzeros.extend(topics.map(|(_, topic): (_, u32)| topic));
        }
        fresh.sum = 0.0;
        for &topic in &live.nonzeros {
            let leaf = live.leaf(topic as usize, 0.0);
            fresh.leaves[topic as usize] = leaf;
            fresh.sum += f64::from(leaf);
        }
    }

    #[inline(always)]
    fn leave(&mut self) {
        for &topic in &self.live.nonzeros {
            self.fresh.leaves[topic as usize] = 0.0;
        }
    }

    /// Moves the token in the document's counts.
    #[inline(always)]
    fn shift(&mut self, old: usize, new: usize) {
        self.outcome.changed += 1;
        let Self { live, fresh, .. } = self;
        if live.counts[new] == 0 && !live.nonzeros.contains(&(new as u32)) {
            live.nonzeros.push(new as u32);
        }
        for (k, count, total) in [
            (old, live.counts[old] - 1, live.totals[old] - 1),
            (new, live.counts[new] + 1, live.totals[new] + 1),
        ] {
            let topic = live.topic(count, total, 0.0);
            live.set(k, topic);
            fresh.sum += f64::from(topic.leaf) - f64::from(fresh.leaves[k]);
            fresh.leaves[k] = topic.leaf;
        }
    }

    /// Draws a new topic for one token; writes nothing.
    #[inline(always)]
    fn token(
        &mut self,
        row: &RowMut<'_, T>,
        tables: &mut WordTables<T>,
        word: usize,
        old: u32,
    ) -> u32 {
        let o = old as usize;
        if !tables.take(word) {
            let (live, alpha) = (&*self.live, self.alpha);
            tables.rebuild(word, row, |k| alpha.of(k) * live.inverse(k), USES);
        }
        let gone = self.live.topic(self.live.counts[o] - 1, self.live.totals[o] - 1, 0.0);
        let keep = self.live.inverse(o) / gone.inverse;
        let (table, shared) = (tables.get(word), self.shared);
        let stale = Stale { l: self.l, table, shared, old, keep };
        let out = Out { topic: old, leaf: gone.leaf, inverse: gone.inverse };
        let fresh = self.sum_fresh(row, out);
        // PERF: the state of the old topic is computed with the first proposal of another topic only.
        let mut now: Option<State> = None;
        for _ in 0..self.steps {
            let (topic, found) = self.draw(row, &stale, &fresh, out);
            let from = now.map_or(old, |now| now.topic);
            if topic == from {
                continue;
            }
            let state = |topic, found| self.state(row, &stale, out, topic, found);
            let (before, after) = (now.unwrap_or_else(|| state(old, None)), state(topic, found));
            let (up, down) = (after.target * before.proposal, before.target * after.proposal);
            self.outcome.proposed += 1;
            // u < up / down, without a division.
            let accepted = self.accept.next_f64() as f32 * down < up;
            self.outcome.accepted += u64::from(accepted);
            now = Some(if accepted { after } else { before });
        }
        now.map_or(old, |now| now.topic)
    }

    /// Sums the document's part without the token.
    #[inline(always)]
    fn sum_fresh(&mut self, row: &RowMut<'_, T>, out: Out) -> Sum<L> {
        let (live, Fresh { leaves, sum, draw, running }) = (&*self.live, &mut *self.fresh);
        let RowMut::Sparse(sparse) = row else {
            running.clear();
            let mut total = 0.0;
            for &topic in &live.nonzeros {
                let mut weight =
                    (count(self.l, row, topic) as f32 + self.beta) * leaves[topic as usize];
                if topic == out.topic {
                    weight = ((count(self.l, row, topic) - 1) as f32 + self.beta) * out.leaf;
                }
                total += weight;
                running.push(total);
            }
            return Sum { scan: None, total: f64::from(total) };
        };
        let (lines, chunks) = (&*sparse.lines, sparse.chunks());
        let scan = draw.scan::<L, T>(self.l, lines, chunks, leaves, out.topic, out.leaf);
        // INVARIANT: the carried sum still has the token, and rounding can bring it below 0.
        let own = f64::from(out.leaf) - f64::from(leaves[out.topic as usize]);
        let rest = f64::from(self.beta) * (*sum + own).max(0.0);
        Sum { total: f64::from(scan.sum) + rest, scan: Some(scan) }
    }

    /// The topic at `u` of the document's part.
    #[inline(always)]
    fn locate_fresh(&self, row: &RowMut<'_, T>, sum: &Sum<L>, out: Out, u: f64) -> u32 {
        let (live, fresh) = (&*self.live, &*self.fresh);
        let (Some(scan), RowMut::Sparse(sparse)) = (&sum.scan, row) else {
            let total = fresh.running.last().copied().unwrap_or_default();
            // INVARIANT: below the last sum, so that the search ends inside the list.
            let u = (u as f32).min(total.next_down());
            let at = fresh.running.partition_point(|&sum| sum <= u);
            return live.nonzeros[at];
        };
        let listed = f64::from(scan.sum);
        if u < listed {
            return sparse.entry(fresh.draw.locate(self.l, scan, u)).0;
        }
        let (mut u, mut found) = ((u - listed) / f64::from(self.beta), out.topic);
        for &topic in &live.nonzeros {
            let own = topic == out.topic;
            let leaf = if own { out.leaf } else { fresh.leaves[topic as usize] };
            if leaf > 0.0 {
                found = topic;
                u -= f64::from(leaf);
                if u < 0.0 {
                    break;
                }
            }
        }
        found
    }

    /// A draw from the whole proposal.
    #[inline(always)]
    fn draw(
        &mut self,
        row: &RowMut<'_, T>,
        stale: &Stale<'_, L, T>,
        fresh: &Sum<L>,
        out: Out,
    ) -> Proposal {
        for _ in 0..Stale::<L, T>::TRIES {
            // INVARIANT: rejections leave the share `keep` of the stale mass, so the fresh mass is
            // scaled by the same share.
            let part = fresh.total * f64::from(stale.keep);
            let u = self.propose.next_f64() * (part + stale.total());
            if u < part {
                let u = u / f64::from(stale.keep);
                return (self.locate_fresh(row, fresh, out, u), None);
            }
            if let Some(proposal) = stale.locate(u - part, self.propose.next_f64() as f32) {
                return proposal;
            }
        }
        let u = self.propose.next_f64() * (fresh.total + stale.total_without());
        match u < fresh.total {
            true => (self.locate_fresh(row, fresh, out, u), None),
            false => stale.locate_without(u - fresh.total),
        }
    }

    /// Weight of `topic`; `found` is its mass in the word's table, if known.
    #[inline(always)]
    fn state(
        &self,
        row: &RowMut<'_, T>,
        stale: &Stale<'_, L, T>,
        out: Out,
        topic: u32,
        found: Option<Mass>,
    ) -> State {
        let k = topic as usize;
        let own = u32::from(topic == out.topic);
        let (leaf, inverse) = match own {
            0 => (self.fresh.leaves[k], self.live.inverse(k)),
            _ => (out.leaf, out.inverse),
        };
        let document = (self.live.counts[k] - own) as f32 + self.alpha.of(k);
        let word = (count(self.l, row, topic) - own) as f32 + self.beta;
        let target = document * word * inverse;
        State { topic, target, proposal: leaf * word + stale.mass(topic, found) }
    }
}

/// Sum over the document's topics.
#[derive(Clone, Copy)]
struct Sum<L: Lanes> {
    /// Index in the word's list of topics, if the word has one.
    scan: Option<Scan<L>>,
    total: f64,
}
