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
//! the table). The share shrinks as tokens a topic grow. On kos at K = 1,000, log joint a token after
//! 1,500 epochs: M = 2 −9.076, M = 4 −9.062, exact −9.047; after 100: −9.47, −9.32, −9.19.
//!
//! **Latency.** What is proposed depends on nothing that the token accepts: a table is fixed, and the
//! token's own position names its current topic, whatever that is, which proposes nothing. So the
//! topics of two steps are drawn first and looked up in one go over the word's row; only then are
//! they judged, one after the other. The uniforms that choose in the tables are drawn some tokens
//! ahead, so that what they will read is asked for in time; a table built anew in between makes the
//! hint useless and nothing else.
//!
//! Cost a token: one go over the word's row where that is a list, M times two random accesses to it
//! where it is not; M times one or two to its table and one to the document's topics; no sum over
//! topics at all. Memory: rows, and 16 bytes a topic of a word for the tables.

use std::hint::select_unpredictable;

use serde::{Deserialize, Serialize};

use crate::counts::{Density, Form, RowMut, Rows, TopicIndex};
use crate::layout::{Order, Placement, Visit};
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::gibbs::{Axis, ByDocument, Live, Place, TopicPrior, places, shift_at};
use crate::sampler::tables::{AHEAD, Proposal, SharedTable, Stale, USES, WordTable, WordTables};
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

impl Proposals {
    /// Every choice.
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
    /// Topics of the document's tokens, first those in the block.
    positions: Vec<T>,
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
            positions: Vec::new(),
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
        let LightScratch { live, shared, alpha, positions } = scratch;
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
            ring: [Ahead::default(); RING],
            outcome: Outcome { tokens: block.z.len() as u64, ..Outcome::default() },
        };
        for at in 0..AHEAD.min(block.partner.len()) {
            walk.look_ahead(tables, block.partner[at] as usize, at);
        }
        let mut start = 0;
        for &Visit { row: document, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            live.load(l, block.documents, document as usize);
            gather(live, &block.z[slots.clone()], positions);
            for (i, slot) in slots.enumerate() {
                let word = block.partner[slot] as usize;
                if let Some(&far) = block.partner.get(slot + 2 * AHEAD) {
                    tables.ask_place(l, far as usize);
                }
                if let Some(&ahead) = block.partner.get(slot + AHEAD) {
                    let old = block.z[slot + AHEAD].get();
                    block.words.prefetch_count(l, ahead as usize, old as usize);
                    tables.prefetch(l, ahead as usize);
                    walk.look_ahead(tables, ahead as usize, slot + AHEAD);
                }
                if let Some(&near) = block.partner.get(slot + AGAIN) {
                    let old = block.z[slot + AGAIN].get();
                    walk.look_again(tables, near as usize, slot + AGAIN, old);
                }
                if let Some(&next) = block.partner.get(slot + LAST) {
                    walk.look_last(tables, block.words, next as usize, slot + LAST);
                }
                let row = block.words.row_mut(word);
                if !tables.take(word) {
                    tables.rebuild(word, &row, |topic| live.inverse(topic), USES);
                }
                let (old, now) = walk.token(live, &row, tables.get(word), positions, i, slot);
                if now.topic != old.topic {
                    shift_at(block.words, word, old, now);
                    walk.outcome.changed += 1;
                    block.z[slot] = T::new(now.topic);
                    positions[i] = T::new(now.topic);
                    let (o, n) = (old.topic as usize, now.topic as usize);
                    let out = live.topic(live.counts[o] - 1, live.totals[o] - 1, 0.0);
                    live.set(o, out);
                    if !live.dense && live.counts[n] == 0 {
                        live.nonzeros.push(now.topic);
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

/// Writes the topics of all tokens of the loaded document to `positions`: first `z`, those of this
/// block, then the others'.
#[inline(always)]
fn gather<T: TopicIndex>(live: &mut Live<T>, z: &[T], positions: &mut Vec<T>) {
    positions.clear();
    positions.extend_from_slice(z);
    let counts = &mut live.counts;
    z.iter().for_each(|topic| counts[topic.get() as usize] -= 1);
    let mut write = |topic: usize, count: u32| {
        positions.extend(std::iter::repeat_n(T::new(topic as u32), count as usize));
    };
    if live.dense {
        counts.iter().enumerate().for_each(|(topic, &count)| write(topic, count));
    } else {
        live.nonzeros.iter().for_each(|&topic| write(topic as usize, counts[topic as usize]));
    }
    z.iter().for_each(|topic| counts[topic.get() as usize] += 1);
}

/// What is known of a token ahead of its turn. Only the uniforms enter what becomes of it; the rest
/// are guesses of where things lie.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// For the word proposals of its first steps.
    uniforms: [f64; HINTED],
    /// Entries of the word's table that they will choose.
    chosen: [u32; HINTED],
    /// Entry of the token's own topic.
    own: u32,
}

/// Steps of a token whose word proposals are drawn ahead.
const HINTED: usize = 2;
/// Tokens ahead that columns are read, and that rows are asked for the topics chosen.
const AGAIN: usize = 4;
const LAST: usize = 2;
/// Tokens of which something may be known.
const RING: usize = 16;
const _: () = assert!(AHEAD < RING);

/// A topic and all that its weight is made of, without the token.
#[derive(Clone, Copy)]
struct State {
    /// Where the word's row has it.
    place: Place,
    /// C_dk + α_k.
    document: f32,
    /// (C_wk + β) / (C_k + Vβ).
    word: f32,
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
    ring: [Ahead; RING],
    outcome: Outcome,
}

/// The chain of one token, as far as it has come.
#[derive(Clone, Copy)]
struct Chain {
    now: State,
    /// Stale mass of its topic.
    mass: f32,
}

/// A token: its place in its document and in the block.
#[derive(Clone, Copy)]
struct Token<'a, T> {
    /// Topics of its document's tokens.
    positions: &'a [T],
    i: usize,
    slot: usize,
    /// 1 / (C_o − 1 + Vβ).
    inverse: f32,
}

impl<L: Lanes> Walk<'_, L> {
    /// Draws the uniforms of the word proposals of the token at `slot`, and asks for the columns that
    /// they read.
    #[inline(always)]
    fn look_ahead<T: TopicIndex>(&mut self, tables: &WordTables<T>, word: usize, slot: usize) {
        if self.proposals == Proposals::Document {
            return;
        }
        let total = tables.total(word) + self.shared.total();
        for u in self.ring[slot % RING].uniforms.iter_mut().take(self.cx.mh_steps) {
            *u = self.propose.next_f64();
            tables.ask_column(self.l, word, *u * total);
        }
    }

    /// Asks for the entries that those columns name, and for that of the token's own topic.
    #[inline(always)]
    fn look_again<T: TopicIndex>(
        &mut self,
        tables: &WordTables<T>,
        word: usize,
        slot: usize,
        old: u32,
    ) {
        if self.proposals == Proposals::Document {
            return;
        }
        let total = tables.total(word) + self.shared.total();
        let Ahead { uniforms, chosen, own } = &mut self.ring[slot % RING];
        *own = tables.ask_topic(self.l, word, old);
        for (u, at) in uniforms.iter().zip(chosen).take(self.cx.mh_steps) {
            *at = tables.ask_entry(self.l, word, u * total);
        }
    }

    /// Asks for what the word's row counts of the topics chosen.
    #[inline(always)]
    fn look_last<T: TopicIndex>(
        &self,
        tables: &WordTables<T>,
        words: &Rows<T>,
        word: usize,
        slot: usize,
    ) {
        if self.proposals == Proposals::Document || words.form_of(word) == Form::Sparse {
            return;
        }
        for &at in self.ring[slot % RING].chosen.iter().take(self.cx.mh_steps) {
            words.prefetch_count(self.l, word, tables.topic_at(word, at) as usize);
        }
    }

    /// Resamples one token: the places of its old and its new topic. Nothing is written.
    #[inline(always)]
    fn token<T: TopicIndex>(
        &mut self,
        live: &Live<T>,
        row: &RowMut<'_, T>,
        table: WordTable<'_, T>,
        positions: &[T],
        i: usize,
        slot: usize,
    ) -> (Place, Place) {
        let old = positions[i].get();
        let o = old as usize;
        let out = (live.totals[o] - 1) as f32 + self.beta_bar;
        let keep = out * live.inverse(o);
        let stale = Stale { l: self.l, table, shared: self.shared, old, keep };
        let token = Token { positions, i, slot, inverse: 1.0 / out };
        let mass = match self.proposals {
            Proposals::Document => 0.0,
            _ => {
                let own = table.mass_near(self.l, old, self.ring[slot % RING].own);
                stale.mass(old, Some(own))
            }
        };
        let nothing = State { place: Place::default(), document: 0.0, word: 0.0 };
        let mut chain = Chain { now: nothing, mass };
        let steps = self.cx.mh_steps;
        if steps == 1 {
            let own = self.steps::<T, 1, 3>(live, row, &stale, token, 0, &mut chain);
            return (own, chain.now.place);
        }
        let own = self.steps::<T, 2, 5>(live, row, &stale, token, 0, &mut chain);
        for first in 2..steps {
            self.steps::<T, 1, 3>(live, row, &stale, token, first, &mut chain);
        }
        (own, chain.now.place)
    }

    /// `N` steps of each kind from number `first` on. Returns the place of the token's own topic.
    ///
    /// What they propose depends on nothing that they accept: the topic of the token's own position
    /// is the current one, whatever that is. So all topics are drawn and looked up at once.
    #[inline(always)]
    fn steps<T: TopicIndex, const N: usize, const TOPICS: usize>(
        &mut self,
        live: &Live<T>,
        row: &RowMut<'_, T>,
        stale: &Stale<'_, L, T>,
        token: Token<'_, T>,
        first: usize,
        chain: &mut Chain,
    ) -> Place {
        let old = stale.old;
        let mut topics = [old; TOPICS];
        let mut found = [None; N];
        // Whether a document's proposal is the token's own position.
        let mut stays = [false; N];
        if self.proposals != Proposals::Word {
            for n in 0..N {
                (topics[1 + n], stays[n]) = self.document_proposal(token.positions, token.i);
            }
        }
        if self.proposals != Proposals::Document {
            for n in 0..N {
                let u = match first + n < HINTED {
                    true => self.ring[token.slot % RING].uniforms[first + n],
                    false => self.propose.next_f64(),
                };
                (topics[1 + N + n], found[n]) = self.word_proposal(stale, u);
            }
        }
        let places = places(self.l, row, topics);
        let states: [State; TOPICS] = std::array::from_fn(|at| {
            let place = places[at];
            let k = place.topic as usize;
            let mine = u32::from(place.topic == old);
            let by_total = select_unpredictable(place.topic == old, token.inverse, live.inverse(k));
            State {
                place,
                document: (live.counts[k] - mine) as f32 + self.alpha.of(k),
                word: ((place.count - mine) as f32 + self.beta) * by_total,
            }
        });
        if first == 0 {
            chain.now = states[0];
        }
        let Chain { mut now, mut mass } = *chain;
        for n in 0..N {
            let u = self.accept.next_u64();
            let (u, v) = (fraction(u as u32), fraction((u >> 32) as u32));
            if self.proposals != Proposals::Word {
                let other = states[1 + n];
                let differs = !stays[n] & (other.place.topic != now.place.topic);
                let accepted = differs & (u * now.word < other.word);
                self.outcome.proposed += u64::from(differs);
                if accepted {
                    self.outcome.accepted += 1;
                    now = other;
                    if self.proposals != Proposals::Document {
                        mass = stale.mass(now.place.topic, None);
                    }
                }
            }
            if self.proposals != Proposals::Document {
                let other = states[1 + N + n];
                let theirs = stale.mass(other.place.topic, found[n]);
                let differs = other.place.topic != now.place.topic;
                let up = other.document * other.word * mass;
                let down = now.document * now.word * theirs;
                let accepted = differs & (v * down < up);
                self.outcome.proposed += u64::from(differs);
                self.outcome.accepted += u64::from(accepted);
                now = select_unpredictable(accepted, other, now);
                mass = select_unpredictable(accepted, theirs, mass);
            }
        }
        *chain = Chain { now, mass };
        places[0]
    }

    /// A draw ∝ C_dk + α_k, token `i` among the positions; and whether it is that token's.
    #[inline(always)]
    fn document_proposal<T: TopicIndex>(&mut self, positions: &[T], i: usize) -> (u32, bool) {
        let tokens = positions.len() as f64;
        let u = self.propose.next_f64() * (tokens + self.cx.alpha_sum);
        let at = u as usize;
        let rest = u - tokens;
        let prior = if self.cx.alpha_symmetric {
            ((rest * self.topics_by_alpha) as u32).min(self.cx.topics as u32 - 1)
        } else {
            self.alpha_table.locate(rest.max(0.0)) as u32
        };
        let listed = positions[at.min(positions.len() - 1)].get();
        (select_unpredictable(u < tokens, listed, prior), at == i)
    }

    /// A draw from the word's stale masses without the token, first at `u` of them all.
    #[inline(always)]
    fn word_proposal<T: TopicIndex>(&mut self, stale: &Stale<'_, L, T>, mut u: f64) -> Proposal {
        for _ in 0..Stale::<L, T>::TRIES {
            if let Some(proposal) = stale.locate(u * stale.total(), &mut self.propose) {
                return proposal;
            }
            u = self.propose.next_f64();
        }
        stale.locate_without(u * stale.total_without())
    }
}

/// Uniform in [0, 1], of 32 bits.
#[inline(always)]
fn fraction(bits: u32) -> f32 {
    bits as f32 * (1.0 / 4_294_967_296.0)
}
