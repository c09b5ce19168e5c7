//! Shape of rows after some epochs: the number of topics of a row of n tokens, and their skew.
//!
//! At the start each token has any of K topics, so n tokens have K (1 − (1 − 1/K)^n) distinct ones.
//! Later they have fewer, which is measured: rows are binned by tokens, two bins per octave, and
//! between bin means ln x is interpolated linearly over ln n, where x is the number of uniformly
//! distributed tokens that would have equally many topics: K (1 − e^(−x/K)). Beyond the last bin
//! the line continues with the slope of the last two octaves, so a row never has more than K
//! topics.
//!
//! A row of n tokens and k topics has counts of 1 each, and the remaining n − k tokens are
//! distributed with shares proportional to 1/i^u for the i-th topic. u is chosen so that rows take
//! as many bytes as the measured ones.

use std::collections::BTreeMap;

use lda_dist::wire::RowCode;
use serde::{Deserialize, Serialize};

use super::rng::Rng;

/// Span of ln n at the end of the measured line that determines the extrapolation.
const END: f64 = 2.0 * std::f64::consts::LN_2;
/// Candidate values of u.
const UNEVEN: [f64; 13] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0];
/// Rows drawn per bin to choose u.
const DRAWN: u32 = 24;
/// Above this number, tokens are assigned to topics by shares instead of one by one.
pub(super) const ONE_BY_ONE: u64 = 1 << 15;

/// Shape of the rows of one kind after some epochs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Curve {
    /// (ln n, ln x), ascending; empty at the start.
    points: Vec<(f64, f64)>,
    /// Slope beyond the last point.
    slope: f64,
    /// The exponent u.
    uneven: f64,
}

/// Sums over rows of similar length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bin {
    pub rows: u64,
    pub tokens: u64,
    pub entries: u64,
    pub bytes: u64,
}

/// Measured rows, binned by tokens.
#[derive(Debug, Default)]
pub(super) struct Bins(BTreeMap<u32, Bin>);

impl Bins {
    pub fn add(&mut self, code: RowCode, row: &[(u32, u32)]) {
        let tokens: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
        if tokens == 0 {
            return;
        }
        let bin = self.0.entry((2.0 * (tokens as f64).log2()).round() as u32).or_default();
        bin.rows += 1;
        bin.tokens += tokens;
        bin.entries += row.len() as u64;
        bin.bytes += code.size(row) as u64;
    }
}

impl Bin {
    fn mean(of: u64, rows: u64) -> f64 {
        of as f64 / rows as f64
    }
}

impl Curve {
    /// Fits a curve to measured rows.
    pub(super) fn fit(topics: u32, bins: &Bins, rng: &mut Rng) -> Self {
        let all = f64::from(topics);
        let point = |bin: &Bin| {
            let (tokens, entries) =
                (Bin::mean(bin.tokens, bin.rows), Bin::mean(bin.entries, bin.rows));
            // A row with nearly all topics carries no information about x.
            let is_seen = entries < 0.98 * all;
            is_seen.then(|| (tokens.ln(), (-all * (-entries / all).ln_1p()).ln()))
        };
        let mut points: Vec<(f64, f64)> = bins.0.values().filter_map(point).collect();
        points.dedup_by(|next, before| next.0 <= before.0);
        let mut curve = Self { slope: 1.0, uneven: 0.0, points };
        if let (Some(&last), [_, _, ..]) = (curve.points.last(), &curve.points[..]) {
            let first = curve.points.iter().find(|point| point.0 >= last.0 - END - 1e-9);
            let first = first.copied().filter(|first| first.0 < last.0);
            let first = first.unwrap_or(curve.points[curve.points.len() - 2]);
            curve.slope = ((last.1 - first.1) / (last.0 - first.0)).clamp(0.0, 1.0);
        }
        let code = RowCode::new(topics);
        let mut off = |uneven: f64| {
            let of = Self { uneven, ..curve.clone() };
            let each = bins.0.values().map(|bin| {
                let tokens = Bin::mean(bin.tokens, bin.rows);
                let mut draw = || code.size(&of.row(topics, rng.round(tokens), rng)) as f64;
                let drawn: f64 = (0..DRAWN).map(|_| draw()).sum::<f64>() / f64::from(DRAWN);
                let real = Bin::mean(bin.bytes, bin.rows);
                bin.bytes as f64 * (drawn / real).ln().powi(2)
            });
            each.sum::<f64>()
        };
        let tried = UNEVEN.map(|uneven| (uneven, off(uneven)));
        let best = tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        Self { uneven: best.map_or(0.0, |best| best.0), ..curve }
    }

    /// Mean number of topics of a row of `tokens` tokens.
    pub fn entries(&self, topics: u32, tokens: f64) -> f64 {
        let at = tokens.max(1.0).ln();
        let drawn = match self.points.partition_point(|point| point.0 < at) {
            _ if self.points.is_empty() => tokens.max(1.0),
            0 => self.points[0].1.exp().min(tokens.max(1.0)),
            after if after == self.points.len() => {
                let last = self.points[after - 1];
                (last.1 + self.slope * (at - last.0)).exp()
            }
            after => {
                let (low, high) = (self.points[after - 1], self.points[after]);
                let share = (at - low.0) / (high.0 - low.0);
                (low.1 + share * (high.1 - low.1)).exp()
            }
        };
        let all = f64::from(topics);
        (-all * (-drawn / all).exp_m1()).clamp(1.0, tokens.max(1.0))
    }

    /// Shares of a row's topics, the largest first, summing to 1.
    pub(super) fn shares(&self, topics: usize) -> Vec<f64> {
        let mut shares: Vec<f64> = (1..=topics).map(|i| (i as f64).powf(-self.uneven)).collect();
        let all: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= all);
        shares
    }

    /// Draws a row of `tokens` tokens.
    pub(super) fn row(&self, topics: u32, tokens: u64, rng: &mut Rng) -> Vec<(u32, u32)> {
        let most = u64::from(u32::MAX);
        if self.points.is_empty() {
            if tokens <= ONE_BY_ONE {
                let mut drawn: Vec<u32> = (0..tokens).map(|_| rng.below(topics)).collect();
                drawn.sort_unstable();
                let runs = drawn.chunk_by(|a, b| a == b);
                return runs.map(|run| (run[0], run.len() as u32)).collect();
            }
            let mean = tokens as f64 / f64::from(topics);
            let each = (0..topics).map(|topic| (topic, rng.poisson(mean).min(most) as u32));
            return each.filter(|entry| entry.1 > 0).collect();
        }
        let mean = self.entries(topics, tokens as f64);
        let entries = rng.round(mean).clamp(1, tokens.max(1)).min(topics.into()) as usize;
        let left = tokens.saturating_sub(entries as u64);
        let mut counts = vec![1u64; entries];
        deal(left, &self.shares(entries), &mut counts, rng);
        // The first topic is arbitrary and does not matter; only gaps are drawn.
        for at in (1..counts.len()).rev() {
            counts.swap(at, rng.below(at as u32 + 1) as usize);
        }
        let some = rng.some(entries as u32, topics);
        some.into_iter().zip(counts).map(|(topic, count)| (topic, count.min(most) as u32)).collect()
    }
}

/// Distributes tokens over topics by their shares.
fn deal(tokens: u64, shares: &[f64], counts: &mut [u64], rng: &mut Rng) {
    if tokens > ONE_BY_ONE {
        for (count, share) in counts.iter_mut().zip(shares) {
            *count += rng.poisson(share * tokens as f64);
        }
        return;
    }
    let up_to = up_to(shares);
    (0..tokens).for_each(|_| counts[one(&up_to, rng)] += 1);
}

/// Cumulative sums of shares.
pub(super) fn up_to(shares: &[f64]) -> Vec<f64> {
    let mut so_far = 0.0;
    let sums = shares.iter().map(|share| {
        so_far += share;
        so_far
    });
    sums.collect()
}

/// Draws an index from cumulative sums.
pub(super) fn one(up_to: &[f64], rng: &mut Rng) -> usize {
    let at = rng.unit() * up_to.last().copied().unwrap_or(0.0);
    up_to.partition_point(|&up_to| up_to <= at).min(up_to.len() - 1)
}

/// The properties of a model that traffic depends on, after some epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Completed epochs; 0 at the start.
    pub after: u32,
    /// Rows of C_w.
    pub words: Curve,
    /// Rows of C_d.
    pub documents: Curve,
    /// Share of the tokens whose topic changes in the next epoch.
    pub changed: f64,
    /// Share of the changed tokens whose new topic was present in their document.
    pub within: f64,
    /// Tokens of the largest topic over the mean.
    pub largest: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPICS: u32 = 500;

    fn bins(curve: &Curve, rng: &mut Rng) -> Bins {
        let mut bins = Bins::default();
        for tokens in [1, 2, 3, 5, 9, 20, 45, 100, 400, 1500, 6000, 30_000] {
            for _ in 0..40 {
                bins.add(RowCode::new(TOPICS), &curve.row(TOPICS, tokens, rng));
            }
        }
        bins
    }

    #[test]
    fn a_row_at_the_start_has_the_expected_number_of_topics() {
        let curve = Curve::default();
        for tokens in [1.0, 10.0, 500.0, 40_000.0] {
            let exact = 500.0 * (1.0 - (1.0 - 1.0 / 500.0f64).powf(tokens));
            let found = curve.entries(TOPICS, tokens);
            assert!((found / exact - 1.0).abs() < 0.002, "{found} and {exact}");
        }
        let mut rng = Rng::new(1, 1);
        let row = curve.row(TOPICS, 1_000_000, &mut rng);
        let all: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
        assert!(row.len() == 500 && all.abs_diff(1_000_000) < 5000, "{all}");
    }

    #[test]
    fn measured_values_are_reproduced() {
        let mut rng = Rng::new(7, 1);
        let points = vec![(0.0, 0.0), (5.0, 3.0), (11.0, 6.5)];
        let made = Curve { points, slope: 0.58, uneven: 1.0 };
        let fitted = Curve::fit(TOPICS, &bins(&made, &mut rng), &mut rng);
        assert!((fitted.uneven - 1.0).abs() < 0.3, "{fitted:?}");
        assert!((fitted.slope - 0.58).abs() < 0.1, "{fitted:?}");
        for tokens in [1.0, 4.0, 30.0, 700.0, 20_000.0, 1e6, 1e9] {
            let (made, found) = (made.entries(TOPICS, tokens), fitted.entries(TOPICS, tokens));
            assert!((found / made - 1.0).abs() < 0.1, "{found} and {made} of {tokens}");
        }
    }

    #[test]
    fn tokens_are_divided_completely() {
        let mut rng = Rng::new(2, 1);
        let mut counts = [0; 3];
        deal(1000, &[0.5, 0.3, 0.2], &mut counts, &mut rng);
        assert_eq!(counts.iter().sum::<u64>(), 1000);
        let mut counts = [0; 3];
        deal(1_000_000, &[0.5, 0.3, 0.2], &mut counts, &mut rng);
        assert!(counts[0].abs_diff(500_000) < 4000, "{counts:?}");
    }
}
