//! Finds which sampler reaches a likelihood first on this machine, by document length and K.
//!
//! F+LDA visits all K_d topics of a token's document, so it slows down as documents get longer.
//! WarpLDA does the same work for any length, but needs several of its steps for one step of F+LDA,
//! and more of them for short documents. The break-even length depends on the machine: its vector
//! width, caches and memory. The hybrid uses a table of such lengths.
//!
//! Every point is a generated corpus whose documents all have the same length. F+LDA runs some
//! epochs; then WarpLDA runs until its likelihood is as high. CPU time is compared: nanoseconds per
//! token alone would favour WarpLDA at every length.

use std::fmt::Write;
use std::time::Duration;

use lda_core::Corpus;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

use super::process::cpu_time;
use super::{LabError, Machine};
use crate::synthetic::{Lengths, Spec};

/// WarpLDA is stopped at this multiple of F+LDA's time.
const PATIENCE: u32 = 4;

/// Settings of a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Tokens per document.
    pub lengths: Vec<u32>,
    /// Numbers of topics K.
    pub topics: Vec<u32>,
    /// Approximate tokens per corpus.
    pub tokens: u32,
    /// Epochs of F+LDA, whose final likelihood is the target.
    pub epochs: u32,
}

impl Default for Calibration {
    /// Default settings, which take a quarter of an hour.
    fn default() -> Self {
        Self {
            lengths: vec![30, 100, 300, 1000, 3000, 10_000],
            topics: vec![100, 1000, 10_000],
            tokens: 1_000_000,
            epochs: 60,
        }
    }
}

/// Times to the same likelihood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// CPU seconds of F+LDA.
    pub f_plus: f64,
    /// CPU seconds of WarpLDA; `None` if it took more than four times as long.
    pub warp: Option<f64>,
}

/// Times at each length.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of topics K.
    pub topics: u32,
    /// In the order of [`Calibration::lengths`].
    pub pairs: Vec<Pair>,
}

impl Calibration {
    /// Measures on one thread and calls `on` with K, length and times of each point.
    ///
    /// # Errors
    /// [`LabError::Value`], [`LabError::Synthesis`] or [`LabError::Options`] for invalid settings.
    pub fn measure(&self, mut on: impl FnMut(u32, u32, Pair)) -> Result<Vec<Cost>, LabError> {
        for (key, value) in [("epochs", self.epochs), ("tokens", self.tokens)] {
            if value == 0 {
                let remedy = "give at least 1".to_owned();
                return Err(LabError::Value { key, value: "0".to_owned(), remedy });
            }
        }
        let of = |&topics| Cost { topics, pairs: Vec::new() };
        let mut costs: Vec<Cost> = self.topics.iter().map(of).collect();
        for &length in &self.lengths {
            let corpus = corpus(length, self.tokens)?;
            for cost in &mut costs {
                let pair = self.race(&corpus, cost.topics)?;
                on(cost.topics, length, pair);
                cost.pairs.push(pair);
            }
        }
        Ok(costs)
    }

    fn race(&self, corpus: &Corpus, topics: u32) -> Result<Pair, LabError> {
        let trainer = |sampler| {
            let sampler = Some(sampler);
            let options = TrainOptions::new(topics).sampler(sampler).threads(1).seed(1);
            Trainer::new(corpus, &options)
        };
        let mut spent = Duration::ZERO;
        let mut epoch = |trainer: &mut Trainer<&Corpus>| {
            let before = cpu_time();
            trainer.epoch();
            spent += cpu_time() - before;
            spent
        };
        let mut leader = trainer(SamplerKind::FPlus)?;
        let mut f_plus = Duration::ZERO;
        for _ in 0..self.epochs {
            f_plus = epoch(&mut leader);
        }
        let goal = leader.log_joint().total();
        drop(leader);
        let mut follower = trainer(SamplerKind::Warp)?;
        let mut warp = Duration::ZERO;
        while follower.log_joint().total() < goal {
            if warp > f_plus * PATIENCE {
                return Ok(Pair { f_plus: f_plus.as_secs_f64(), warp: None });
            }
            // An epoch changes little, and an evaluation costs more than an epoch.
            for _ in 0..5 {
                warp = epoch(&mut follower) - f_plus;
            }
        }
        Ok(Pair { f_plus: f_plus.as_secs_f64(), warp: Some(warp.as_secs_f64()) })
    }

    /// The times as TOML, with the machine in comments.
    pub fn toml(&self, costs: &[Cost], machine: &Machine) -> String {
        let mut out = format!(
            "# CPU seconds to the likelihood that F+LDA has after {} epochs, by document length; {} \
             tokens, one thread.\n# {}; commit {}\nlengths = {:?}\n",
            self.epochs,
            self.tokens,
            machine.describe(),
            machine.commit,
            self.lengths
        );
        for cost in costs {
            let list = |of: &dyn Fn(&Pair) -> f64| {
                let values: Vec<_> = cost.pairs.iter().map(|p| format!("{:.2}", of(p))).collect();
                values.join(", ")
            };
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "\n[[cost]]\ntopics = {}\nf-plus = [{}]\nwarp = [{}]\n",
                cost.topics,
                list(&|pair| pair.f_plus),
                list(&|pair| pair.warp.unwrap_or(f64::INFINITY)),
            );
            let line = match self.short_length(cost) {
                Some(length) => format!("short-length = {length}"),
                None => "# F+LDA is faster at every length: omit short-length.".to_owned(),
            };
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// Length up to which F+LDA is faster, interpolated between measured lengths by the logarithms
    /// of length and ratio. 0 if WarpLDA is faster at all of them, `None` if it never is.
    fn short_length(&self, cost: &Cost) -> Option<u32> {
        let ratio = |pair: &Pair| (pair.f_plus / pair.warp.unwrap_or(f64::INFINITY)).ln();
        // The last length from which WarpLDA is faster throughout.
        let first = cost.pairs.iter().rposition(|pair| ratio(pair) < 0.0).map_or(0, |i| i + 1);
        let (after, length) = (cost.pairs.get(first)?, *self.lengths.get(first)?);
        let Some(before) = first.checked_sub(1) else { return Some(0) };
        let (low, high) = (ratio(&cost.pairs[before]), ratio(after));
        let share = if low.is_finite() { -low / (high - low) } else { 1.0 };
        let (a, b) = (f64::from(self.lengths[before]).ln(), f64::from(length).ln());
        Some((a + share * (b - a)).exp().round() as u32)
    }
}

/// Generates documents of one length. Topics overlap little, as in real text.
fn corpus(length: u32, tokens: u32) -> Result<Corpus, LabError> {
    let spec = Spec {
        num_documents: (tokens / length.max(1)).max(1) as usize,
        num_words: 20_000,
        num_topics: 100,
        zipf_exponent: 1.0,
        concentration: 200.0,
        alpha: 0.05,
        lengths: vec![Lengths { weight: 1.0, mean: f64::from(length), sigma: 0.0 }],
    };
    Ok(spec.generate(1)?.corpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_measured_and_written() {
        let calibration =
            Calibration { lengths: vec![10, 50], topics: vec![5, 8], tokens: 2_000, epochs: 2 };
        let mut points = 0;
        let costs = calibration.measure(|_, _, _| points += 1).unwrap();
        assert_eq!((points, costs.len()), (4, 2));
        assert!(costs.iter().all(|cost| cost.pairs.iter().all(|pair| pair.f_plus > 0.0)));
        let text = calibration.toml(&costs, &Machine::detect());
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["lengths"].as_array().unwrap().len(), 2);
        assert_eq!(table["cost"].as_array().unwrap().len(), 2);
        assert_eq!(table["cost"][1]["f-plus"].as_array().unwrap().len(), 2);
    }

    fn short_length(pairs: &[(f64, Option<f64>)]) -> Option<u32> {
        let calibration = Calibration { lengths: vec![10, 100, 1000], ..Calibration::default() };
        let pairs = pairs.iter().map(|&(f_plus, warp)| Pair { f_plus, warp }).collect();
        calibration.short_length(&Cost { topics: 10, pairs })
    }

    #[test]
    fn documents_are_short_up_to_where_the_times_cross() {
        let even = Some(2.0);
        assert_eq!(short_length(&[(0.5, even), (1.0, even), (4.0, even)]), Some(316));
        assert_eq!(short_length(&[(1.0, None), (1.0, None), (4.0, even)]), Some(1000));
        assert_eq!(short_length(&[(3.0, even), (4.0, even), (5.0, even)]), Some(0));
        assert_eq!(short_length(&[(1.0, even), (1.0, even), (1.0, even)]), None);
        // A single win of WarpLDA among short documents does not count.
        assert_eq!(short_length(&[(3.0, even), (1.0, even), (1.0, None)]), None);
    }

    #[test]
    fn documents_have_the_length_asked_for() {
        let corpus = corpus(30, 3_000).unwrap();
        assert_eq!(corpus.num_documents(), 100);
        assert!((0..100).all(|d| corpus.doc_length(d) == 30));
        assert!(Calibration { epochs: 0, ..Calibration::default() }.measure(|_, _, _| {}).is_err());
    }
}
