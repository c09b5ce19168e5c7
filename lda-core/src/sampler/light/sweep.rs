//! The sweep over a block, one token after the other. [`LightLda`](super::LightLda) has the ratios.

use std::hint::select_unpredictable;

use super::Proposals;
use super::positions::Positions;
use super::word::VisitTable;
use crate::counts::{RowMut, Rows, TopicIndex};
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::gibbs::{Axis, ByWord, Place, VisitedRow, places};
use crate::sampler::tables::{SharedTable, Stale};
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Context, GridBlock, Outcome};
use crate::simd::Lanes;

/// Arrays over topics of one thread.
#[derive(Debug)]
pub(super) struct SweepScratch<T> {
    pub live: VisitedRow<T>,
    pub table: VisitTable<T>,
    /// β / (C_k + Vβ): the part that the tables of all words share.
    pub shared: SharedTable,
    /// α_k, if it differs by topic.
    pub alpha: SharedTable,
    pub positions: Positions<T>,
}

/// Number of steps of a token whose document proposals are drawn in advance.
const HINTED: usize = 2;
/// Distance in tokens at which a document's row and topics are prefetched; their location is
/// prefetched at twice this distance.
const AHEAD: usize = 8;
/// Number of tokens whose uniforms are stored.
const RING: usize = 16;
const _: () = assert!(AHEAD < RING);

/// The state of a block's sweep.
pub(super) struct Sweep<'a, L, T> {
    l: L,
    proposals: Proposals,
    cx: &'a Context<'a>,
    alpha: TopicPrior<'a>,
    beta: f32,
    beta_bar: f32,
    /// K / Σ α_k.
    topics_by_alpha: f64,
    scratch: &'a mut SweepScratch<T>,
    propose: Xoshiro256PlusPlus,
    accept: Xoshiro256PlusPlus,
    ring: [[f64; HINTED]; RING],
    pub outcome: Outcome,
}

/// A topic and the factors of its weight, without the token.
#[derive(Clone, Copy, Default)]
struct State {
    /// Its place in the document's row.
    place: Place,
    /// C_dk + α_k.
    document: f32,
    /// (C_wk + β) / (C_k + Vβ).
    word: f32,
    /// q̃_w(k).
    mass: f32,
}

/// The token's own topic.
#[derive(Clone, Copy)]
struct Own {
    topic: u32,
    /// 1 / (C_o − 1 + Vβ).
    inverse: f32,
    /// q̃_w(o).
    mass: f32,
}

impl<'a, L: Lanes, T: TopicIndex> Sweep<'a, L, T> {
    #[inline(always)]
    pub fn begin_block(
        l: L,
        proposals: Proposals,
        cx: &'a Context<'a>,
        scratch: &'a mut SweepScratch<T>,
        stream: impl Fn(Purpose) -> Xoshiro256PlusPlus,
        block: &GridBlock<'_, T>,
    ) -> Self {
        let alpha = ByWord::priors(cx).partner;
        scratch.shared.begin_wave(cx, TopicPrior::symmetric(1.0), cx.beta);
        if !cx.alpha_symmetric {
            scratch.alpha.begin_prior(cx, alpha);
        }
        scratch.live.begin_block(cx);
        if proposals != Proposals::Word {
            let counts = &mut scratch.live.counts;
            scratch.positions.write(block.documents, block.z, block.partner, counts);
        }
        let mut sweep = Self {
            l,
            proposals,
            cx,
            alpha,
            beta: cx.beta as f32,
            beta_bar: cx.beta_bar as f32,
            topics_by_alpha: cx.topics as f64 / cx.alpha_sum,
            scratch,
            propose: stream(Purpose::Propose),
            accept: stream(Purpose::Accept),
            ring: [[0.0; HINTED]; RING],
            outcome: Outcome::default(),
        };
        for slot in 0..AHEAD.min(block.partner.len()) {
            sweep.draw_ahead(block.partner[slot] as usize, slot);
        }
        sweep
    }

    /// Draws the uniforms of the document proposals of the token at `slot`, and prefetches the
    /// topics that they select.
    #[inline(always)]
    fn draw_ahead(&mut self, document: usize, slot: usize) {
        if self.proposals == Proposals::Word {
            return;
        }
        let SweepScratch { positions, .. } = &*self.scratch;
        positions.ask_next(self.l, document);
        let tokens = f64::from(positions.tokens(document)) + self.cx.alpha_sum;
        for u in self.ring[slot % RING].iter_mut().take(self.cx.mh_steps) {
            *u = self.propose.next_f64();
            positions.ask(self.l, document, (*u * tokens) as usize);
        }
    }

    /// Prefetches the data of the tokens that follow the one at `slot`.
    #[inline(always)]
    pub fn look_ahead(&mut self, documents: &Rows<T>, partner: &[u32], slot: usize) {
        if let Some(&far) = partner.get(slot + 2 * AHEAD) {
            self.scratch.positions.ask_head(self.l, far as usize);
        }
        if let Some(&ahead) = partner.get(slot + AHEAD) {
            documents.prefetch(self.l, ahead as usize);
            self.draw_ahead(ahead as usize, slot + AHEAD);
        }
    }

    /// Sets the topic of the token of `document` that was just sampled.
    #[inline(always)]
    pub fn put(&mut self, document: usize, topic: T) {
        if self.proposals != Proposals::Word {
            self.scratch.positions.put(document, topic);
        }
    }

    /// Enters a word, and builds the table from which its tokens draw.
    #[inline(always)]
    pub fn enter(&mut self, words: &mut Rows<T>, word: usize) {
        let SweepScratch { live, table, .. } = &mut *self.scratch;
        live.load(self.l, words, word);
        table.build(&words.row_mut(word), |topic| live.inverse(topic));
    }

    /// Leaves a word.
    #[inline(always)]
    pub fn leave(&mut self, words: &mut Rows<T>, word: usize) {
        let live = &mut self.scratch.live;
        live.store(words, word);
        if live.dense {
            live.clear_dense();
        }
    }

    /// Called before each token of the word but the first: rebuilds the table if it is used up.
    #[inline(always)]
    pub fn go_on(&mut self, words: &mut Rows<T>, word: usize) {
        if !self.scratch.table.take() {
            self.scratch.live.store(words, word);
            self.enter(words, word);
        }
    }

    /// Moves a token of the word between topics.
    #[inline(always)]
    pub fn shift(&mut self, old: usize, new: usize) {
        self.outcome.changed += 1;
        let live = &mut self.scratch.live;
        let out = live.topic(live.counts[old] - 1, live.totals[old] - 1, 0.0);
        live.set(old, out);
        if !live.dense && live.counts[new] == 0 {
            live.nonzeros.push(new as u32);
        }
        let put = live.topic(live.counts[new] + 1, live.totals[new] + 1, 0.0);
        live.set(new, put);
    }

    /// Resamples the token at `slot`, whose document has the counts `row`; returns the places of
    /// its old and its new topic in that row. Nothing is written.
    #[inline(always)]
    pub fn token(
        &mut self,
        row: &RowMut<'_, T>,
        document: usize,
        slot: usize,
        old: u32,
    ) -> (Place, Place) {
        let steps = self.cx.mh_steps;
        let ahead = self.ring[slot % RING];
        let mut now = None;
        let own = if steps == 1 {
            self.steps::<1, 3>(row, document, old, [ahead[0]], &mut now)
        } else {
            let own = self.steps::<2, 5>(row, document, old, ahead, &mut now);
            for _ in 2..steps {
                let u = self.propose.next_f64();
                self.steps::<1, 3>(row, document, old, [u], &mut now);
            }
            own
        };
        (own, now.map_or(own, |now: State| now.place))
    }

    /// Makes `N` steps of each kind, starting from the state `now`, or from the token's own topic
    /// if there is none; the uniforms `ahead` select the document proposals. Returns the place of
    /// the token's own topic.
    #[inline(always)]
    fn steps<const N: usize, const TOPICS: usize>(
        &mut self,
        row: &RowMut<'_, T>,
        document: usize,
        old: u32,
        ahead: [f64; N],
        now: &mut Option<State>,
    ) -> Place {
        let (l, o) = (self.l, old as usize);
        let (by_document, by_word) =
            (self.proposals != Proposals::Word, self.proposals != Proposals::Document);
        let out = (self.scratch.live.totals[o] - 1) as f32 + self.beta_bar;
        let keep = out * self.scratch.live.inverse(o);
        let mut own = Own { topic: old, inverse: 1.0 / out, mass: 0.0 };
        let mut topics = [old; TOPICS];
        // Whether a document's proposal is the token itself.
        let mut stays = [false; N];
        if by_document {
            for n in 0..N {
                (topics[1 + n], stays[n]) = self.document_proposal(document, ahead[n]);
            }
        }
        if by_word {
            let SweepScratch { table, shared, .. } = &*self.scratch;
            let stale = Stale { l, table: table.get(), shared, old, keep };
            own.mass = stale.mass(old, Some(table.mass(o)));
            let mut bits = self.propose.next_u64();
            for topic in &mut topics[1 + N..] {
                *topic = word_proposal(&stale, fraction(bits as u32), &mut self.propose);
                bits >>= 32;
            }
        }
        let places = places(l, row, topics);
        let mut states = [State::default(); TOPICS];
        for (state, &place) in states.iter_mut().zip(&places) {
            *state = self.state(place, own);
        }
        let mut state = now.unwrap_or(states[0]);
        for n in 0..N {
            let u = self.accept.next_u64();
            let (u, v) = (fraction(u as u32), fraction((u >> 32) as u32));
            if by_document {
                let other = states[1 + n];
                let differs = !stays[n] & (other.place.topic != state.place.topic);
                let accepted = differs & (u * state.word < other.word);
                self.judge(&mut state, other, differs, accepted);
            }
            if by_word {
                let other = states[1 + N + n];
                let differs = other.place.topic != state.place.topic;
                let up = other.document * other.word * state.mass;
                let down = state.document * state.word * other.mass;
                self.judge(&mut state, other, differs, differs & (v * down < up));
            }
        }
        *now = Some(state);
        places[0]
    }

    #[inline(always)]
    fn judge(&mut self, now: &mut State, other: State, differs: bool, accepted: bool) {
        self.outcome.proposed += u64::from(differs);
        self.outcome.accepted += u64::from(accepted);
        *now = select_unpredictable(accepted, other, *now);
    }

    /// Weight of a topic without the token.
    #[inline(always)]
    fn state(&self, place: Place, own: Own) -> State {
        let SweepScratch { live, table, shared, .. } = &*self.scratch;
        let k = place.topic as usize;
        let mine = place.topic == own.topic;
        let one = u32::from(mine);
        let mass = table.mass(k).weight + shared.weight(k);
        State {
            place,
            document: (place.count - one) as f32 + self.alpha.of(k),
            word: ((live.counts[k] - one) as f32 + self.beta)
                * select_unpredictable(mine, own.inverse, live.inverse(k)),
            mass: select_unpredictable(mine, own.mass, mass),
        }
    }

    /// The topic at the share `uniform` of Σ_k (C_dk + α_k), which includes the token; and whether
    /// the token itself was drawn.
    #[inline(always)]
    fn document_proposal(&self, document: usize, uniform: f64) -> (u32, bool) {
        let SweepScratch { positions, alpha, .. } = &*self.scratch;
        let (topics, own) = positions.next(document);
        let tokens = topics.len() as f64;
        let u = uniform * (tokens + self.cx.alpha_sum);
        let at = u as usize;
        let rest = u - tokens;
        let prior = if self.cx.alpha_symmetric {
            ((rest * self.topics_by_alpha) as u32).min(self.cx.topics as u32 - 1)
        } else {
            alpha.locate(rest.max(0.0)) as u32
        };
        let listed = topics[at.min(topics.len() - 1)].get();
        (select_unpredictable(u < tokens, listed, prior), at == own)
    }
}

/// A draw from the word's stale masses without the token; the uniform `v` accepts or rejects the
/// first try.
#[inline(always)]
fn word_proposal<L: Lanes, T: TopicIndex>(
    stale: &Stale<'_, L, T>,
    mut v: f32,
    rng: &mut Xoshiro256PlusPlus,
) -> u32 {
    for _ in 0..Stale::<L, T>::TRIES {
        if let Some((topic, _)) = stale.locate(rng.next_f64() * stale.total(), v) {
            return topic;
        }
        v = fraction(rng.next_u64() as u32);
    }
    stale.locate_without(rng.next_f64() * stale.total_without()).0
}

/// Uniform in [0, 1], of 32 bits.
#[inline(always)]
fn fraction(bits: u32) -> f32 {
    bits as f32 * (1.0 / 4_294_967_296.0)
}
