//! LightLDA: Metropolis-Hastings by document with two proposals in turn, O(1) a token.
//!
//! Yuan et al., "LightLDA: big topic models on modest computer clusters" (WWW 2015). Each step of a
//! token judges one proposal that knows its document and one that knows its word:
//!
//! ```text
//! for each token i of word w in document d, with topic s; all counts without it:
//!     M times:
//!         t ← topic of a random position of d, or a draw ∝ α_k         (∝ C_dk + α_k, i among them)
//!         s ← t with probability min{1, (C_wt+β)(C_s+Vβ) / (C_ws+β)(C_t+Vβ)}                   (a)
//!         t ← a draw from the stale table q̃_w                          (∝ (C̃_wk+β)/(C̃_k+Vβ))
//!         s ← t with probability min{1, (C_dt+α_t)(C_wt+β)(C_s+Vβ) q̃_w(s)
//!                                     / (C_ds+α_s)(C_ws+β)(C_t+Vβ) q̃_w(t)}                     (b)
//! ```
//!
//! What differs from the paper:
//!
//! 1. (a) has only the word factor. The position drawn may be i itself, and z_i is written back after
//!    each accepted step; so the reverse proposal is C_ds + α_s, and the document factors cancel. The
//!    paper's equation 11 divides by C_dt + α_t with the token in, which is wrong by as much as
//!    TV .19 on three tokens.
//! 2. (b) judges with what the draw was really made from: the stale masses, and not the current
//!    counts in their place. The token itself is taken out of them (see `sampler::tables` in the
//!    source), and a table is built anew when as many tokens have drawn from it as it has topics, not
//!    once a slice of the model.
//! 3. In a block that has only some of a document's tokens, the others' topics stand still: they are
//!    written out once a visit, and a random position is drawn among all.
//! 4. Either proposal may be left out ([`Proposals`]), as in the paper's figure 11.
//!
//! **Nearly exact.** Each step keeps the conditional of its token, given everything else and the
//! table. What remains is that a table remembers where *other* tokens were when it was built: with
//! one step a token the stationary law is .010, .020 and .022 away from the posterior in total
//! variation on the three tiny corpora of the tests (.11, .08 and .14 were the token itself left in
//! the table). The share shrinks as tokens a topic grow.
//!
//! Cost a token: M times two random accesses to the word's row, one or two to its table, one to the
//! document's topics; no sum over topics at all. Memory: rows, and 16 bytes a topic of a word for the
//! tables.

use serde::{Deserialize, Serialize};

use crate::counts::{Density, RowMut, TopicIndex};
use crate::layout::{Order, Placement, Visit};
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::gibbs::{Axis, ByDocument, Live, TopicPrior, count, shift};
use crate::sampler::tables::{AHEAD, Proposal, SharedTable, Stale, USES, WordTable};
use crate::sampler::{Block, Context, GridBlock, Outcome, Pass, Requires, Sampler, Shape};
use crate::simd::{Kernel, Lanes};

/// Which proposals LightLDA makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposals {
    /// Documents' and words' in turn.
    #[default]
    Cycle,
    /// Documents' alone. It cannot reach a topic that the document lacks but by α.
    Document,
    /// Words' alone.
    Word,
}

/// LightLDA. See the [module documentation](crate::sampler).
#[derive(Clone, Copy, Debug, Default)]
pub struct LightLda {
    /// Which proposals are made.
    pub proposals: Proposals,
}

/// Arrays over topics, one set a thread.
#[derive(Debug)]
pub struct LightScratch<T> {
    live: Live<T>,
    /// β / (C_k + Vβ): what all words' tables share.
    shared: SharedTable,
    /// α_k, where it differs by topic.
    alpha: SharedTable,
    /// Topics of the document's tokens in other blocks.
    elsewhere: Vec<T>,
}

impl<T: TopicIndex> Sampler<T> for LightLda {
    type Scratch = LightScratch<T>;

    fn requires(&self) -> Requires {
        Requires {
            max_topics: T::MAX_TOPICS,
            placement: Placement::All(Order::ByDocument),
            document_rows: Some(Density::Auto),
            word_rows: true,
            word_tables: true,
            proposals: false,
        }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "light", shape: Shape::Grid(Order::ByDocument) }]
    }

    fn scratch(&self, topics: usize) -> LightScratch<T> {
        LightScratch {
            live: Live::new(topics),
            shared: SharedTable::new(topics),
            alpha: SharedTable::new(topics),
            elsewhere: Vec::new(),
        }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut LightScratch<T>,
        block: Block<'_, T>,
    ) -> Outcome {
        let (pass, proposals, block) = (pass as u32, self.proposals, block.into_grid());
        cx.isa.run(SampleBlock { pass, proposals, cx, scratch, block })
    }
}

struct SampleBlock<'a, 'b, T> {
    pass: u32,
    proposals: Proposals,
    cx: &'a Context<'a>,
    scratch: &'a mut LightScratch<T>,
    block: GridBlock<'b, T>,
}

impl<T: TopicIndex> Kernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, proposals, cx, scratch, block } = self;
        let LightScratch { live, shared, alpha, elsewhere } = scratch;
        let priors = ByDocument::priors(cx);
        shared.begin_wave(cx, TopicPrior::symmetric(1.0), cx.beta);
        if !cx.alpha_symmetric {
            alpha.begin_prior(cx, priors.visited);
        }
        live.begin_block(cx);
        let tables = block.tables.expect("LightLDA asked for tables");
        let stream = |purpose| cx.stream(pass, block.key, purpose).stream();
        let mut walk = Walk {
            l,
            proposals,
            cx,
            alpha: priors.visited,
            beta: cx.beta as f32,
            beta_bar: cx.beta_bar as f32,
            topics_by_alpha: cx.topics as f64 / cx.alpha_sum,
            shared,
            alpha_table: alpha,
            propose: stream(Purpose::Propose),
            accept: stream(Purpose::Accept),
            outcome: Outcome { tokens: block.z.len() as u64, ..Outcome::default() },
        };
        let mut start = 0;
        for &Visit { row: document, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            live.load(l, block.documents, document as usize);
            let z = &mut block.z[slots.clone()];
            let length = others(live, z, elsewhere);
            for i in 0..z.len() {
                let word = block.partner[slots.start + i] as usize;
                if let Some(&ahead) = block.partner.get(slots.start + i + AHEAD) {
                    block.words.prefetch(l, ahead as usize);
                    tables.prefetch(l, ahead as usize);
                }
                let row = block.words.row_mut(word);
                if !tables.take(word) {
                    tables.rebuild(word, &row, |topic| live.inverse(topic), USES);
                }
                let old = z[i].get();
                let positions = Positions { z, i, elsewhere, length };
                let new = walk.token(live, &row, tables.get(word), positions);
                if new != old {
                    shift(l, block.words, word, old, new);
                    walk.outcome.changed += 1;
                    let (o, n) = (old as usize, new as usize);
                    let out = live.topic(live.counts[o] - 1, live.totals[o] - 1, 0.0);
                    live.set(o, out);
                    if !live.dense && live.counts[n] == 0 {
                        live.nonzeros.push(new);
                    }
                    let put = live.topic(live.counts[n] + 1, live.totals[n] + 1, 0.0);
                    live.set(n, put);
                }
            }
            live.store(block.documents, document as usize);
            if live.dense {
                live.clear_dense();
            }
        }
        Outcome { totals: live.totals_delta(cx), ..walk.outcome }
    }
}

/// Writes the topics of the loaded document's tokens that are not among `z` to `elsewhere`; returns
/// how many tokens the document has.
#[inline(always)]
fn others<T: TopicIndex>(live: &mut Live<T>, z: &[T], elsewhere: &mut Vec<T>) -> usize {
    elsewhere.clear();
    let counts = &mut live.counts;
    z.iter().for_each(|topic| counts[topic.get() as usize] -= 1);
    let mut write = |topic: usize, count: u32| {
        elsewhere.extend(std::iter::repeat_n(T::new(topic as u32), count as usize));
    };
    if live.dense {
        counts.iter().enumerate().for_each(|(topic, &count)| write(topic, count));
    } else {
        live.nonzeros.iter().for_each(|&topic| write(topic as usize, counts[topic as usize]));
    }
    z.iter().for_each(|topic| counts[topic.get() as usize] += 1);
    z.len() + elsewhere.len()
}

/// Where document proposals come from: the topics of a document's tokens.
struct Positions<'a, T> {
    /// Of the tokens in this block.
    z: &'a mut [T],
    /// The token at hand among them.
    i: usize,
    /// Of the others.
    elsewhere: &'a [T],
    /// Both.
    length: usize,
}

/// A topic and all that its weight is made of, without the token.
#[derive(Clone, Copy)]
struct State {
    topic: u32,
    /// C_dk + α_k.
    document: f32,
    /// C_wk + β.
    word: f32,
    /// C_k + Vβ.
    total: f32,
}

struct Walk<'a, L> {
    l: L,
    proposals: Proposals,
    cx: &'a Context<'a>,
    alpha: TopicPrior<'a>,
    beta: f32,
    beta_bar: f32,
    /// K / Σ α_k.
    topics_by_alpha: f64,
    shared: &'a SharedTable,
    alpha_table: &'a SharedTable,
    propose: Xoshiro256PlusPlus,
    accept: Xoshiro256PlusPlus,
    outcome: Outcome,
}

impl<L: Lanes> Walk<'_, L> {
    /// Resamples one token; its topic among the positions is written, nothing else.
    #[inline(always)]
    fn token<T: TopicIndex>(
        &mut self,
        live: &Live<T>,
        row: &RowMut<'_, T>,
        table: WordTable<'_, T>,
        positions: Positions<'_, T>,
    ) -> u32 {
        let Positions { z, i, elsewhere, length } = positions;
        let old = z[i].get();
        let mut now = self.state(live, row, old, old);
        let keep = now.total * live.inverse(old as usize);
        let stale = Stale { l: self.l, table, shared: self.shared, old, keep };
        // The stale mass of the current topic, once it is known.
        let mut mass = None;
        for _ in 0..self.cx.mh_steps {
            if self.proposals != Proposals::Word {
                let topic = self.document_proposal(z, elsewhere, length);
                if topic != now.topic {
                    let other = self.state(live, row, topic, old);
                    let (up, down) = (other.word * now.total, now.word * other.total);
                    if self.accepts(up, down) {
                        (now, mass) = (other, None);
                        z[i] = T::new(topic);
                    }
                }
            }
            if self.proposals != Proposals::Document {
                let (topic, found) = self.word_proposal(&stale);
                if topic != now.topic {
                    let ours = mass.unwrap_or_else(|| stale.mass(now.topic, None));
                    let theirs = stale.mass(topic, found);
                    mass = Some(ours);
                    let other = self.state(live, row, topic, old);
                    let up = other.document * other.word * now.total * ours;
                    let down = now.document * now.word * other.total * theirs;
                    if self.accepts(up, down) {
                        (now, mass) = (other, Some(theirs));
                        z[i] = T::new(topic);
                    }
                }
            }
        }
        now.topic
    }

    /// Weights of `topic` without the token, whose topic in all counts is `old`.
    #[inline(always)]
    fn state<T: TopicIndex>(
        &self,
        live: &Live<T>,
        row: &RowMut<'_, T>,
        topic: u32,
        old: u32,
    ) -> State {
        let k = topic as usize;
        let out = u32::from(topic == old);
        State {
            topic,
            document: (live.counts[k] - out) as f32 + self.alpha.of(k),
            word: (count(self.l, row, topic) - out) as f32 + self.beta,
            total: (live.totals[k] - out) as f32 + self.beta_bar,
        }
    }

    #[inline(always)]
    fn accepts(&mut self, up: f32, down: f32) -> bool {
        self.outcome.proposed += 1;
        let accepted = self.accept.next_f64() as f32 * down < up;
        self.outcome.accepted += u64::from(accepted);
        accepted
    }

    /// A draw ∝ C_dk + α_k, the token among the positions.
    #[inline(always)]
    fn document_proposal<T: TopicIndex>(&mut self, z: &[T], elsewhere: &[T], length: usize) -> u32 {
        let tokens = length as f64;
        let u = self.propose.next_f64() * (tokens + self.cx.alpha_sum);
        if u < tokens {
            let at = u as usize;
            return z.get(at).unwrap_or_else(|| &elsewhere[at - z.len()]).get();
        }
        let rest = u - tokens;
        if self.cx.alpha_symmetric {
            ((rest * self.topics_by_alpha) as u32).min(self.cx.topics as u32 - 1)
        } else {
            self.alpha_table.locate(rest) as u32
        }
    }

    /// A draw from the word's stale masses without the token.
    #[inline(always)]
    fn word_proposal<T: TopicIndex>(&mut self, stale: &Stale<'_, L, T>) -> Proposal {
        for _ in 0..Stale::<L, T>::TRIES {
            let u = self.propose.next_f64() * stale.total();
            if let Some(proposal) = stale.locate(u, &mut self.propose) {
                return proposal;
            }
        }
        stale.locate_without(self.propose.next_f64() * stale.total_without())
    }
}
