//! Exact laws of samplers that draw from stale tables: AliasLDA, LightLDA, ZenLDA.
//!
//! The state of their chain is more than the assignments: it has the tables, which remember where
//! tokens were when they were built. So an epoch is enumerated path by path, tables and all; it
//! starts without any, so that from epoch to epoch it is a chain over the assignments again.

use crate::enumerate::{ALPHA, BETA, Chain, TOPICS, Toy};

/// Behaviour of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moves {
    /// LightLDA's steps: a document proposal, a word proposal, or both in turn.
    Light { document: bool, word: bool },
    /// AliasLDA's proposal.
    Alias,
    /// ZenLDA's draw, which is accepted without a test.
    Zen { by_document: bool },
}

/// A sampler with stale tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaleRule {
    pub moves: Moves,
    /// Metropolis-Hastings steps per token.
    pub steps: usize,
    /// Topics that LightLDA's word proposals are spread over; those above two are never accepted.
    pub topics: usize,
    /// Whether a token's own share is taken out of what it proposes from.
    pub without_own: bool,
}

/// A word's table.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// C̃_wk.
    counts: [f64; TOPICS],
    /// f_k / (C̃_k + Vβ).
    units: [f64; TOPICS],
    /// Tokens that may still draw from it.
    left: usize,
}

/// A way that an epoch may go.
#[derive(Clone, Debug)]
struct Path {
    state: usize,
    tables: Vec<Table>,
    p: f64,
}

impl StaleRule {
    /// f_k of the tables that have counts.
    fn factor(self, k: usize) -> f64 {
        match self.moves {
            Moves::Light { .. } => 1.0,
            Moves::Zen { by_document: true } => BETA,
            Moves::Alias | Moves::Zen { by_document: false } => ALPHA[k],
        }
    }

    /// Numerator of the shared table, above 1 / (C_k + Vβ).
    fn shared_factor(self, k: usize) -> f64 {
        if matches!(self.moves, Moves::Light { .. }) { BETA } else { ALPHA[k] * BETA }
    }

    /// The row whose table token `j` draws from.
    fn row(self, toy: Toy, j: usize) -> usize {
        let (document, word) = toy.tokens[j];
        if self.moves == (Moves::Zen { by_document: true }) { document } else { word }
    }

    /// Tokens `block` in the order in which the sampler comes to them.
    pub(crate) fn order(self, toy: Toy, mut block: Vec<usize>) -> Vec<usize> {
        let by_word = matches!(self.moves, Moves::Light { .. } | Moves::Zen { by_document: false });
        block.sort_by_key(|&j| {
            let (document, word) = toy.tokens[j];
            if by_word { (word, document) } else { (document, word) }
        });
        block
    }

    /// Whether token `at` of a block needs a new table: LightLDA's and ZenLDA's are a visit's.
    fn visits(self, toy: Toy, block: &[usize], at: usize) -> bool {
        let row = |at: usize| self.row(toy, block[at]);
        !matches!(self.moves, Moves::Alias) && (at == 0 || row(at) != row(at - 1))
    }

    /// The epoch as a chain: waves of blocks of tokens.
    pub(crate) fn chain(self, toy: Toy, waves: &[Vec<Vec<usize>>]) -> Chain {
        let from = |state| {
            let tables = vec![Table::default(); toy.num_words.max(toy.num_documents())];
            let mut paths = vec![Path { state, tables, p: 1.0 }];
            for blocks in waves {
                paths = paths.iter().flat_map(|path| self.wave(toy, path, blocks)).collect();
            }
            let mut law = vec![0.0; toy.num_states()];
            paths.iter().for_each(|path| law[path.state] += path.p);
            law
        };
        Chain((0..toy.num_states()).map(from).collect())
    }

    /// All ways of a wave: blocks move different tokens, have different words, and see nothing of
    /// each other.
    fn wave(self, toy: Toy, start: &Path, blocks: &[Vec<usize>]) -> Vec<Path> {
        let totals = toy.counts(start.state, None).totals;
        let shared = std::array::from_fn(|k| self.shared_factor(k) / (totals[k] + toy.beta_bar()));
        let mut all = vec![start.clone()];
        for block in blocks {
            let mut alone = vec![Path { p: 1.0, ..start.clone() }];
            for (at, &j) in block.iter().enumerate() {
                let new = self.visits(toy, block, at);
                let token = |path| self.token(toy, path, j, shared, new);
                alone = alone.iter().flat_map(token).collect();
            }
            let merged = |before: &Path, path: &Path| {
                let mut both = before.clone();
                for &j in block {
                    both.state = toy.with_topic(both.state, j, toy.topic(path.state, j));
                    both.tables[self.row(toy, j)] = path.tables[self.row(toy, j)];
                }
                both.p *= path.p;
                both
            };
            all = all.iter().flat_map(|a| alone.iter().map(move |b| merged(a, b))).collect();
        }
        all
    }

    /// All ways of a token, whose table is new if need be or if `new` says so.
    fn token(self, toy: Toy, path: &Path, j: usize, shared: [f64; TOPICS], new: bool) -> Vec<Path> {
        let mut path = path.clone();
        let (old, row) = (toy.topic(path.state, j), self.row(toy, j));
        let table = &mut path.tables[row];
        if table.left == 0 || new {
            let counts = toy.counts(path.state, None);
            table.counts = match self.moves {
                Moves::Zen { by_document: true } => counts.documents[row],
                _ => counts.words[row],
            };
            table.units =
                std::array::from_fn(|k| self.factor(k) / (counts.totals[k] + toy.beta_bar()));
            table.left = match self.moves {
                Moves::Zen { .. } => usize::MAX,
                // As many a topic as LightLDA lets draw from a word's table; AliasLDA lets one.
                Moves::Light { .. } => 2 * topics(&table.counts),
                Moves::Alias => topics(&table.counts),
            };
        }
        table.left -= 1;
        let stale = std::array::from_fn(|k| {
            if k != old || !self.without_own {
                return table.counts[k] * table.units[k] + shared[k];
            }
            let rest = toy.counts(path.state, Some(j)).totals[k] + toy.beta_bar();
            ((table.counts[k] - 1.0) * table.units[k] + shared[k]) * (rest + 1.0) / rest
        });
        let law = self.law(toy, path.state, j, stale);
        let to = |(k, q): (usize, f64)| {
            let state = toy.with_topic(path.state, j, k);
            Path { state, p: path.p * q, ..path.clone() }
        };
        law.into_iter().enumerate().filter(|&(_, q)| q > 0.0).map(to).collect()
    }

    /// Law of the new topic of token `j`, whose stale masses are `stale`.
    pub(crate) fn law(
        self,
        toy: Toy,
        state: usize,
        j: usize,
        stale: [f64; TOPICS],
    ) -> [f64; TOPICS] {
        let (d, w) = toy.tokens[j];
        let rest = toy.counts(state, Some(j));
        let inverse: [f64; TOPICS] =
            std::array::from_fn(|k| 1.0 / (rest.totals[k] + toy.beta_bar()));
        let document: [f64; TOPICS] = std::array::from_fn(|k| rest.documents[d][k] + ALPHA[k]);
        let by_word: [f64; TOPICS] =
            std::array::from_fn(|k| (rest.words[w][k] + BETA) * inverse[k]);
        let target: [f64; TOPICS] = std::array::from_fn(|k| document[k] * by_word[k]);
        let mut law = [0.0; TOPICS];
        law[toy.topic(state, j)] = 1.0;
        for _ in 0..self.steps {
            match self.moves {
                Moves::Zen { by_document } => {
                    let weights: [f64; TOPICS] = std::array::from_fn(|k| {
                        let fresh = match by_document {
                            true => rest.words[w][k] * document[k] * inverse[k],
                            false => rest.documents[d][k] * by_word[k],
                        };
                        fresh + stale[k]
                    });
                    let sum: f64 = weights.iter().sum();
                    law = weights.map(|weight| weight / sum);
                }
                Moves::Alias => {
                    let q: [f64; TOPICS] =
                        std::array::from_fn(|k| rest.documents[d][k] * by_word[k] + stale[k]);
                    law = step(
                        law,
                        |_| q,
                        q.iter().sum(),
                        |s, t| target[t] * q[s] / (target[s] * q[t]),
                    );
                }
                Moves::Light { document: by_document, word } => {
                    if by_document {
                        // The token is among the positions, under its current topic.
                        let q = |s: usize| {
                            std::array::from_fn(|k| document[k] + f64::from(u8::from(k == s)))
                        };
                        let sum = document.iter().sum::<f64>() + 1.0;
                        law = step(law, q, sum, |s, t| by_word[t] / by_word[s]);
                    }
                    if word {
                        let dead = (self.topics - TOPICS) as f64 * BETA / toy.beta_bar();
                        let sum = stale.iter().sum::<f64>() + dead;
                        law = step(
                            law,
                            |_| stale,
                            sum,
                            |s, t| target[t] * stale[s] / (target[s] * stale[t]),
                        );
                    }
                }
            }
        }
        law
    }
}

/// Topics that are counted.
fn topics(counts: &[f64; TOPICS]) -> usize {
    counts.iter().filter(|&&count| count > 0.0).count()
}

/// One proposal of masses `q(s)` out of `sum`, taken with probability min(1, ratio(s, t)); what is
/// not proposed of these topics changes nothing.
fn step(
    law: [f64; TOPICS],
    q: impl Fn(usize) -> [f64; TOPICS],
    sum: f64,
    ratio: impl Fn(usize, usize) -> f64,
) -> [f64; TOPICS] {
    let mut next = law;
    for s in 0..TOPICS {
        for t in (0..TOPICS).filter(|&t| t != s) {
            let moved = law[s] * q(s)[t] / sum * ratio(s, t).min(1.0);
            next[s] -= moved;
            next[t] += moved;
        }
    }
    next
}
