//! Encoded sizes of rows by their tokens: rows are drawn and measured by the encoder.

use std::cell::RefCell;
use std::collections::HashMap;

use lda_dist::wire::RowCode;

use super::rng::Rng;
use super::state::{ONE_BY_ONE, State, one, up_to};

/// Each token count up to this number is a class of its own.
const SINGLE: u64 = 16;
/// Number of classes per octave of larger counts.
const AN_OCTAVE: f64 = 4.0;
/// Non-zeros drawn per class, over all its rows.
const DRAWN: f64 = 30_000.0;

/// Mean non-zeros and bytes of the drawn rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub entries: f64,
    pub bytes: f64,
}

/// Row sizes of a state, computed on demand.
pub(super) struct Sizes<'a> {
    pub topics: u32,
    pub state: &'a State,
    seed: u64,
    /// By token class.
    rows: RefCell<HashMap<u32, Size>>,
    /// By the classes of the word's tokens in the corpus and in the shard.
    gained: RefCell<HashMap<(u32, u32), Size>>,
}

/// Class of a number of tokens.
pub(super) fn class(tokens: u64) -> u32 {
    if tokens <= SINGLE {
        return tokens as u32;
    }
    let octaves = (tokens as f64 / SINGLE as f64).log2();
    SINGLE as u32 + (octaves * AN_OCTAVE).floor() as u32
}

/// Smallest number of tokens of a class.
fn least(class: u32) -> f64 {
    let above = class.saturating_sub(SINGLE as u32);
    let low = f64::from(class.min(SINGLE as u32));
    low * (f64::from(above) / AN_OCTAVE).exp2()
}

impl<'a> Sizes<'a> {
    pub fn new(topics: u32, state: &'a State, seed: u64) -> Self {
        Self { topics, state, seed, rows: RefCell::default(), gained: RefCell::default() }
    }

    /// Size of a row of C_w.
    pub fn row(&self, tokens: u64) -> Size {
        if tokens == 0 {
            return Size { entries: 0.0, bytes: 1.0 };
        }
        let class = class(tokens);
        let low = self.row_of(class);
        if tokens <= SINGLE {
            return low;
        }
        let (from, to) = (least(class), least(class + 1));
        let share = (tokens as f64 / from).ln() / (to / from).ln();
        let high = self.row_of(class + 1);
        let between = |low: f64, high: f64| low + share * (high - low);
        Size { entries: between(low.entries, high.entries), bytes: between(low.bytes, high.bytes) }
    }

    /// Size of a row in the middle of a class.
    pub fn row_of_class(&self, class: u32) -> Size {
        let middle = if class <= SINGLE as u32 { 1.0 } else { (0.5 / AN_OCTAVE).exp2() };
        self.row((least(class) * middle) as u64)
    }

    fn row_of(&self, class: u32) -> Size {
        if let Some(&known) = self.rows.borrow().get(&class) {
            return known;
        }
        let mut rng = Rng::new(self.seed, 1000 + u64::from(class));
        let (tokens, code) = (least(class), RowCode::new(self.topics));
        let rows = (DRAWN / tokens.min(f64::from(self.topics))).clamp(3.0, 1000.0) as u32;
        let mut size = Size::default();
        for _ in 0..rows {
            let row = self.state.words.row(self.topics, rng.round(tokens), &mut rng);
            size.entries += row.len() as f64 / f64::from(rows);
            size.bytes += code.size(&row) as f64 / f64::from(rows);
        }
        self.rows.borrow_mut().insert(class, size);
        size
    }

    /// Shares of the topics that tokens of a word leave or enter in an epoch.
    fn moving(&self, tokens: f64) -> Vec<f64> {
        let words = &self.state.words;
        let both = if self.state.after == 0 {
            self.topics
        } else {
            words.entries(self.topics, 2.0 * tokens).round() as u32
        };
        words.shares(both.clamp(2, self.topics.max(2)) as usize)
    }

    /// Size of the delta that one shard's epoch makes to a row. `tokens` are those of the word,
    /// `of_shard` those in the shard.
    pub fn gained(&self, tokens: u64, of_shard: u64) -> Size {
        let classes = (class(tokens), class(of_shard));
        if let Some(&known) = self.gained.borrow().get(&classes) {
            return known;
        }
        let number = u64::from(classes.0) << 20 | u64::from(classes.1) << 1 | 1 << 50;
        let mut rng = Rng::new(self.seed, number);
        let code = RowCode::new(self.topics);
        // The middle of the class.
        let middle = if of_shard <= SINGLE { 1.0 } else { (0.5 / AN_OCTAVE).exp2() };
        if self.topics == 1 {
            return Size { entries: 0.0, bytes: 1.0 };
        }
        let moves = self.state.changed * least(classes.1) * middle;
        let shares = self.moving(tokens as f64);
        let sums = up_to(&shares);
        let rows = (DRAWN / 10.0 / (2.0 * moves).clamp(1.0, shares.len() as f64)).clamp(2.0, 200.0);
        let mut size = Size::default();
        for _ in 0..rows as u32 {
            let row = gained(self.topics, (&shares, &sums), rng.round(moves), &mut rng);
            size.entries += row.len() as f64 / rows.floor();
            size.bytes += code.size(&row) as f64 / rows.floor();
        }
        self.gained.borrow_mut().insert(classes, size);
        size
    }
}

/// Delta of a row in which `moves` tokens change their topics, given the shares of the topics.
fn gained(
    topics: u32,
    (shares, up_to): (&[f64], &[f64]),
    moves: u64,
    rng: &mut Rng,
) -> Vec<(u32, i32)> {
    let mut each = vec![0i64; shares.len()];
    if moves > ONE_BY_ONE {
        // Difference of two Poisson numbers; a token that returns to its topic counts in both or in
        // neither.
        for (by, share) in each.iter_mut().zip(shares) {
            *by =
                rng.poisson(share * moves as f64) as i64 - rng.poisson(share * moves as f64) as i64;
        }
    } else {
        for _ in 0..moves {
            let from = one(up_to, rng);
            let mut to = one(up_to, rng);
            while to == from {
                to = one(up_to, rng);
            }
            each[from] -= 1;
            each[to] += 1;
        }
    }
    let most = i64::from(i32::MAX);
    let some = each.into_iter().filter(|&by| by != 0);
    let mut gained: Vec<i32> = some.map(|by| by.clamp(-most, most) as i32).collect();
    for at in (1..gained.len()).rev() {
        gained.swap(at, rng.below(at as u32 + 1) as usize);
    }
    let below = topics.max(gained.len() as u32);
    rng.some(gained.len() as u32, below).into_iter().zip(gained).collect()
}

/// Encoded bytes of the change of C_k when `moves` tokens change their topics.
pub(super) fn totals(topics: u32, moves: f64, rng: &mut Rng) -> f64 {
    let shares = vec![1.0 / f64::from(topics); topics as usize];
    if topics == 1 {
        return 1.0;
    }
    RowCode::new(topics).size(&gained(topics, (&shares, &up_to(&shares)), moves as u64, rng)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::scale::state::Curve;

    fn start() -> State {
        let (words, documents) = (Curve::default(), Curve::default());
        State { after: 0, words, documents, changed: 0.9, within: 0.1, largest: 1.0 }
    }

    #[test]
    fn classes_start_at_their_bounds() {
        for tokens in [1, 2, 15, 16, 17, 19, 20, 31, 32, 1000, 1 << 40] {
            let of = class(tokens);
            let (from, to) = (least(of), least(of + 1));
            assert!(from <= tokens as f64 * 1.000_001 && (tokens as f64) < to * 1.07, "{tokens}");
        }
        assert_eq!(class(32), 20);
        assert!((least(20) - 32.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_are_those_of_drawn_rows() {
        let state = start();
        let sizes = Sizes::new(1000, &state, 1);
        let one = sizes.row(1);
        // One byte and twelve bits.
        assert!((one.entries - 1.0).abs() < 1e-9 && (one.bytes - 3.0).abs() < 1e-9, "{one:?}");
        let mut rng = Rng::new(9, 9);
        for tokens in [7, 90, 3333, 200_000] {
            let found = sizes.row(tokens);
            let mut draw = || {
                let row = state.words.row(1000, tokens, &mut rng);
                RowCode::new(1000).size(&row) as f64
            };
            let drawn = (0..50).map(|_| draw()).sum::<f64>() / 50.0;
            assert!((found.bytes / drawn - 1.0).abs() < 0.03, "{found:?} and {drawn}");
        }
        let few = sizes.gained(90, 1);
        // Nine of ten tokens move from one topic to another.
        assert!((few.entries - 1.8).abs() < 0.15, "{few:?}");
        let many = sizes.gained(1 << 20, 1 << 19);
        assert!(many.entries > 900.0 && many.entries <= 1000.0, "{many:?}");
    }
}
