//! Exact laws of tiny corpora, by enumeration of all K^T states in f64.
//!
//! K = 2, and digit j of a state is the topic of token j, the first token leftmost: of three
//! tokens, state 3 is `011`. A *law* is a vector over states; a *chain* gives each state the law of
//! its successor.

use statrs::function::gamma::ln_gamma;

/// A corpus small enough to enumerate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toy {
    pub name: &'static str,
    pub num_words: usize,
    /// (document, word); documents in order, words ascending in each.
    pub tokens: &'static [(usize, usize)],
}

/// Three corpora: the smallest that shows most mistakes; one with a repeated word; one with V ≠ K.
pub(crate) const A: Toy = Toy { name: "A", num_words: 2, tokens: &[(0, 0), (0, 1), (1, 0)] };
pub(crate) const B: Toy =
    Toy { name: "B", num_words: 2, tokens: &[(0, 0), (0, 0), (0, 1), (1, 1)] };
pub(crate) const C: Toy =
    Toy { name: "C", num_words: 3, tokens: &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] };

/// One with a word that has three tokens: LightLDA's table may be used up before the last of them.
pub(crate) const D: Toy =
    Toy { name: "D", num_words: 2, tokens: &[(0, 0), (0, 0), (1, 0), (1, 1)] };

/// Topics of the enumerated laws.
pub(crate) const TOPICS: usize = 2;
/// Their priors.
pub(crate) const ALPHA: [f64; TOPICS] = [0.5, 1.5];
pub(crate) const BETA: f64 = 0.3;

/// How WarpLDA judges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpRule {
    /// Proposals judged a token and pass.
    pub steps: usize,
    /// Whether a token counts itself, or is taken out of the topic it starts a pass with.
    pub count_own: bool,
    /// Topics that word proposals are spread over; those above two are never accepted.
    pub topics: usize,
}

/// Counts of a state.
pub(crate) struct Counts {
    pub documents: Vec<[f64; TOPICS]>,
    pub words: Vec<[f64; TOPICS]>,
    pub totals: [f64; TOPICS],
}

impl Toy {
    pub(crate) fn num_states(&self) -> usize {
        1 << self.tokens.len()
    }

    /// Topic of token `j`.
    pub(crate) fn topic(&self, state: usize, j: usize) -> usize {
        state >> (self.tokens.len() - 1 - j) & 1
    }

    /// The state in which token `j` has `topic`.
    pub(crate) fn with_topic(&self, state: usize, j: usize, topic: usize) -> usize {
        let bit = self.tokens.len() - 1 - j;
        state & !(1 << bit) | topic << bit
    }

    pub(crate) fn num_documents(&self) -> usize {
        self.tokens.iter().map(|&(d, _)| d + 1).max().unwrap_or(0)
    }

    pub(crate) fn beta_bar(&self) -> f64 {
        BETA * self.num_words as f64
    }

    /// Counts of `state`, token `without` left out.
    pub(crate) fn counts(&self, state: usize, without: Option<usize>) -> Counts {
        let mut counts = Counts {
            documents: vec![[0.0; TOPICS]; self.num_documents()],
            words: vec![[0.0; TOPICS]; self.num_words],
            totals: [0.0; TOPICS],
        };
        for (j, &(d, w)) in self.tokens.iter().enumerate() {
            if without != Some(j) {
                let k = self.topic(state, j);
                counts.documents[d][k] += 1.0;
                counts.words[w][k] += 1.0;
                counts.totals[k] += 1.0;
            }
        }
        counts
    }

    /// Document part and word part of log p(W, Z).
    pub(crate) fn log_joint(&self, state: usize) -> (f64, f64) {
        let counts = self.counts(state, None);
        let alpha_sum: f64 = ALPHA.iter().sum();
        let rise = |from: f64, by: f64| ln_gamma(from + by) - ln_gamma(from);
        let document = |row: &[f64; TOPICS]| {
            let length = row.iter().sum();
            (0..TOPICS).map(|k| rise(ALPHA[k], row[k])).sum::<f64>() - rise(alpha_sum, length)
        };
        let topic = |k: usize| {
            counts.words.iter().map(|row| rise(BETA, row[k])).sum::<f64>()
                - rise(self.beta_bar(), counts.totals[k])
        };
        (counts.documents.iter().map(document).sum(), (0..TOPICS).map(topic).sum())
    }

    /// The posterior over states, and log p(W).
    pub(crate) fn posterior(&self) -> (Vec<f64>, f64) {
        let joint: Vec<f64> = (0..self.num_states())
            .map(|state| {
                let (documents, words) = self.log_joint(state);
                (documents + words).exp()
            })
            .collect();
        let evidence: f64 = joint.iter().sum();
        (joint.iter().map(|p| p / evidence).collect(), evidence.ln())
    }

    /// Equation (1) for token `j`, normalised.
    pub(crate) fn conditional(&self, state: usize, j: usize) -> [f64; TOPICS] {
        let counts = self.counts(state, Some(j));
        let (d, w) = self.tokens[j];
        normalised(std::array::from_fn(|k| {
            (counts.documents[d][k] + ALPHA[k]) * (counts.words[w][k] + BETA)
                / (counts.totals[k] + self.beta_bar())
        }))
    }

    /// Law of the successor of `state` after one wave of exact Gibbs: each block resamples its
    /// tokens in its order and sees all others as they were when the wave began.
    pub(crate) fn gibbs_wave(&self, state: usize, blocks: &[Vec<usize>]) -> Vec<f64> {
        let mut law = self.certain(state);
        for block in blocks {
            let mut alone = self.certain(state);
            for &j in block {
                let mut next = vec![0.0; self.num_states()];
                for (from, p) in alone.iter().enumerate().filter(|&(_, &p)| p > 0.0) {
                    for (k, q) in self.conditional(from, j).into_iter().enumerate() {
                        next[self.with_topic(from, j, k)] += p * q;
                    }
                }
                alone = next;
            }
            // Blocks of a wave move different tokens and know nothing of each other.
            let mut both = vec![0.0; self.num_states()];
            for (to, p) in law.iter().enumerate().filter(|&(_, &p)| p > 0.0) {
                for (other, q) in alone.iter().enumerate().filter(|&(_, &q)| q > 0.0) {
                    let merged = block
                        .iter()
                        .fold(to, |to, &j| self.with_topic(to, j, self.topic(other, j)));
                    both[merged] += p * q;
                }
            }
            law = both;
        }
        law
    }

    /// One epoch of exact Gibbs: waves of blocks of tokens.
    pub(crate) fn gibbs_chain(&self, waves: &[Vec<Vec<usize>>]) -> Chain {
        waves.iter().fold(Chain::identity(self.num_states()), |chain, blocks| {
            let wave = (0..self.num_states()).map(|s| self.gibbs_wave(s, blocks)).collect();
            chain.then(&Chain(wave))
        })
    }

    /// q_doc of token `j`: ∝ C_dk + α_k.
    pub(crate) fn document_proposal(&self, state: usize, j: usize) -> [f64; TOPICS] {
        let row = self.counts(state, None).documents[self.tokens[j].0];
        let weights = std::array::from_fn(|k| row[k] + ALPHA[k]);
        let sum: f64 = weights.iter().sum();
        weights.map(|w| w / sum)
    }

    /// q_word of token `j`: ∝ C_wk + β over `topics` topics, of which only these two can be taken.
    pub(crate) fn word_proposal(&self, state: usize, j: usize, topics: usize) -> [f64; TOPICS] {
        let row = self.counts(state, None).words[self.tokens[j].1];
        let sum = row.iter().sum::<f64>() + BETA * topics as f64;
        std::array::from_fn(|k| (row[k] + BETA) / sum)
    }

    /// WarpLDA's word pass over the tokens that `moves` says.
    pub(crate) fn warp_word_pass(&self, rule: WarpRule, moves: impl Fn(usize) -> bool) -> Chain {
        self.delayed_pass(moves, |state, j| {
            let counts = self.counts(state, None);
            let (row, own) = (counts.words[self.tokens[j].1], self.topic(state, j));
            let proposal = self.document_proposal(state, j);
            judged(own, proposal, self.ratio(rule, own, row, [BETA; 2], counts.totals), rule.steps)
        })
    }

    /// WarpLDA's document pass, over the tokens that `moves` says.
    pub(crate) fn warp_document_pass(
        &self,
        rule: WarpRule,
        moves: impl Fn(usize) -> bool,
    ) -> Chain {
        self.delayed_pass(moves, |state, j| {
            let counts = self.counts(state, None);
            let (row, own) = (counts.documents[self.tokens[j].0], self.topic(state, j));
            let proposal = self.word_proposal(state, j, rule.topics);
            judged(own, proposal, self.ratio(rule, own, row, ALPHA, counts.totals), rule.steps)
        })
    }

    /// WarpLDA's epoch, its document proposals drawn from the state it starts in.
    pub(crate) fn warp_chain(&self, rule: WarpRule) -> Chain {
        self.warp_word_pass(rule, |_| true).then(&self.warp_document_pass(rule, |_| true))
    }

    /// (count + prior) / (C_k + β̄), the counts of the pass's start.
    fn ratio(
        &self,
        rule: WarpRule,
        own: usize,
        row: [f64; TOPICS],
        prior: [f64; TOPICS],
        totals: [f64; TOPICS],
    ) -> [f64; TOPICS] {
        std::array::from_fn(|k| {
            let out = f64::from(u8::from(k == own && !rule.count_own));
            (row[k] - out + prior[k]) / (totals[k] - out + self.beta_bar())
        })
    }

    /// A pass with all counts frozen: tokens move independently, each by `law(state, token)`.
    fn delayed_pass(
        &self,
        moves: impl Fn(usize) -> bool,
        law: impl Fn(usize, usize) -> [f64; TOPICS],
    ) -> Chain {
        let from = |state: usize| {
            let laws: Vec<_> = (0..self.tokens.len())
                .map(|j| {
                    if moves(j) {
                        law(state, j)
                    } else {
                        std::array::from_fn(|k| f64::from(u8::from(k == self.topic(state, j))))
                    }
                })
                .collect();
            (0..self.num_states())
                .map(|to| laws.iter().enumerate().map(|(j, law)| law[self.topic(to, j)]).product())
                .collect()
        };
        Chain((0..self.num_states()).map(from).collect())
    }

    fn certain(&self, state: usize) -> Vec<f64> {
        let mut law = vec![0.0; self.num_states()];
        law[state] = 1.0;
        law
    }
}

/// Law of a token's topic after `steps` proposals from `proposal` were judged one after the other
/// by min(1, ratio[t] / ratio[s]).
fn judged(
    own: usize,
    proposal: [f64; TOPICS],
    ratio: [f64; TOPICS],
    steps: usize,
) -> [f64; TOPICS] {
    let mut law = [0.0; TOPICS];
    law[own] = 1.0;
    for _ in 0..steps {
        // What is proposed of other topics is rejected.
        let elsewhere = 1.0 - proposal.iter().sum::<f64>();
        let mut next = law.map(|p| p * elsewhere);
        for s in 0..TOPICS {
            for t in 0..TOPICS {
                let accept = (ratio[t] / ratio[s]).min(1.0);
                next[t] += law[s] * proposal[t] * accept;
                next[s] += law[s] * proposal[t] * (1.0 - accept);
            }
        }
        law = next;
    }
    law
}

fn normalised(weights: [f64; TOPICS]) -> [f64; TOPICS] {
    let sum: f64 = weights.iter().sum();
    weights.map(|w| w / sum)
}

/// Row s is the law of the successor of state s.
#[derive(Clone, Debug)]
pub(crate) struct Chain(pub Vec<Vec<f64>>);

impl Chain {
    fn identity(states: usize) -> Self {
        let row = |s| (0..states).map(|t| f64::from(u8::from(s == t))).collect();
        Self((0..states).map(row).collect())
    }

    /// First this, then `next`.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self(self.0.iter().map(|law| next.apply(law)).collect())
    }

    /// The law after one step from `law`.
    pub(crate) fn apply(&self, law: &[f64]) -> Vec<f64> {
        let mut next = vec![0.0; law.len()];
        for (row, p) in self.0.iter().zip(law) {
            for (to, q) in next.iter_mut().zip(row) {
                *to += p * q;
            }
        }
        next
    }

    /// The law that a step does not change.
    pub(crate) fn stationary(&self) -> Vec<f64> {
        let mut law = vec![1.0 / self.0.len() as f64; self.0.len()];
        for _ in 0..2000 {
            law = self.apply(&law);
        }
        law
    }
}

/// Total variation: half the sum of differences.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}
