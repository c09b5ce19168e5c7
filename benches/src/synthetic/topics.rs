//! Topics over a Zipf vocabulary, drawn exactly and sparsely.
//!
//! A topic is Dirichlet(c · base) over V words. With c = 1,000 and V = 100,000 nearly all V
//! parameters are far below one, so that drawing V gammas would make V numbers of which most are
//! zero in floating point. The same law by its sticks (Sethuraman 1994): break a stick of length 1
//! again and again, each time at a Beta(1, c) share of what is left, and give every piece to a word
//! drawn from the base. After c · ln 2³² pieces less than 2⁻³² is left, which is dropped: about
//! 22,000 pieces per topic, on some 6,000 distinct words.

use super::portable::{Stream, exp, ln};

/// Stop breaking when this much of the stick is left.
const DROPPED: f64 = 1.0 / (1u64 << 32) as f64;

/// Probabilities r^−s of the ranks r = 1…V, not normalised.
pub(super) fn zipf(num_words: usize, exponent: f64) -> Vec<f64> {
    (1..=num_words).map(|rank| exp(-exponent * ln(rank as f64))).collect()
}

/// One topic: (word, probability) ascending by word, probabilities adding to 1.
pub(super) fn break_stick(
    base: &Alias,
    concentration: f64,
    stream: &mut Stream,
) -> Vec<(u32, f64)> {
    let mut pieces = Vec::with_capacity((concentration * 23.0) as usize + 16);
    let mut left = 1.0;
    while left > DROPPED {
        let uniform = 1.0 - stream.unit();
        let rest = left * exp((ln(uniform) / concentration).max(-700.0));
        pieces.push((base.draw(stream.bits()), left - rest));
        left = rest;
    }
    // Stable: pieces of one word are added in the order they were broken.
    pieces.sort_by_key(|piece| piece.0);
    pieces.dedup_by(|piece, kept| {
        let same = piece.0 == kept.0;
        if same {
            kept.1 += piece.1;
        }
        same
    });
    pieces.shrink_to_fit();
    let total: f64 = pieces.iter().map(|piece| piece.1).sum();
    for piece in &mut pieces {
        piece.1 /= total;
    }
    pieces
}

/// Walker's alias table over words (Vose's construction): a draw takes one random number.
///
/// The crate under test has a better one; a corpus must not change when that one does.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    cells: Vec<Cell>,
}

/// A draw in this cell gives `word` if the low 32 bits are below the threshold, else `other`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    threshold: u32,
    word: u32,
    other: u32,
}

impl Alias {
    /// The table of (word, weight) pairs: at least one, fewer than 2³², of positive sum.
    pub(super) fn new(weights: &[(u32, f64)]) -> Self {
        let total: f64 = weights.iter().map(|pair| pair.1).sum();
        let scale = weights.len() as f64 / total;
        let mut share: Vec<f64> = weights.iter().map(|pair| pair.1 * scale).collect();
        let (mut large, mut small): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&i| share[i] >= 1.0);
        let mut cells: Vec<Cell> = weights
            .iter()
            .map(|&(word, _)| Cell { threshold: u32::MAX, word, other: word })
            .collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            // `as` saturates, and rounds down: a word of weight 0 is never drawn from its cell.
            cells[poor].threshold = (share[poor] * (1u64 << 32) as f64) as u32;
            cells[poor].other = weights[rich].0;
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { cells }
    }

    /// The word that 64 random bits stand for.
    #[inline]
    pub(super) fn draw(&self, bits: u64) -> u32 {
        let cell = self.cells[(((bits >> 32) * self.cells.len() as u64) >> 32) as usize];
        if (bits as u32) < cell.threshold { cell.word } else { cell.other }
    }
}

#[cfg(test)]
mod tests {
    use super::super::portable::Purpose;
    use super::*;

    #[test]
    fn alias_table_gives_back_its_weights() {
        let weights: Vec<(u32, f64)> = [0.0, 3.0, 1.0, 0.5, 2.5, 0.001]
            .into_iter()
            .enumerate()
            .map(|(w, p)| (w as u32, p))
            .collect();
        let alias = Alias::new(&weights);
        let mut mass = [0.0; 6];
        for cell in &alias.cells {
            let own = f64::from(cell.threshold) / (1u64 << 32) as f64;
            mass[cell.word as usize] += own / 6.0;
            mass[cell.other as usize] += (1.0 - own) / 6.0;
        }
        for (found, (_, weight)) in mass.iter().zip(&weights) {
            assert!((found - weight / 7.001).abs() < 1e-9, "{mass:?}");
        }
        assert_eq!(mass[0], 0.0);
    }

    #[test]
    fn every_draw_of_an_alias_table_is_in_range() {
        let alias = Alias::new(&[(4, 1.0), (9, 2.0), (11, 4.0)]);
        for bits in [0, 1, u64::MAX, u64::MAX << 32, u64::from(u32::MAX), 1 << 63] {
            assert!([4, 9, 11].contains(&alias.draw(bits)));
        }
    }

    /// Mean and variance of Dirichlet(c · p): p and p(1 − p)/(c + 1).
    #[test]
    fn sticks_have_the_moments_of_a_dirichlet() {
        let base: Vec<(u32, f64)> = vec![(0, 0.5), (1, 0.3), (2, 0.15), (3, 0.05)];
        let alias = Alias::new(&base);
        let (concentration, repeats) = (4.0, 40_000);
        let mut mean = [0.0; 4];
        let mut square = [0.0; 4];
        for number in 0..repeats {
            let mut stream = Stream::new(3, Purpose::Topic, number);
            for (word, probability) in break_stick(&alias, concentration, &mut stream) {
                mean[word as usize] += probability / repeats as f64;
                square[word as usize] += probability * probability / repeats as f64;
            }
        }
        for (word, &(_, p)) in base.iter().enumerate() {
            let variance = p * (1.0 - p) / (concentration + 1.0);
            let error = (variance / repeats as f64).sqrt();
            assert!((mean[word] - p).abs() < 5.0 * error, "mean of {word}: {}", mean[word]);
            let found = square[word] - mean[word] * mean[word];
            assert!((found / variance - 1.0).abs() < 0.05, "variance of {word}: {found}");
        }
    }
}
