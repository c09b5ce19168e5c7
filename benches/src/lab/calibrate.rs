//! What a token costs each sampler on this machine, by document length and K.
//!
//! F+LDA looks at all K_d topics of a token's document, so it slows down with the length of
//! documents; WarpLDA does the same work for any. Where the two cost the same depends on the
//! machine: on its vectors, caches and memory. The hybrid decides by such a table.
//!
//! Every point is a generated corpus whose documents all have the same length. Some epochs settle
//! the counts (rows get sparse), then some are timed, and the median epoch counts. It is the cost of
//! a *token*, not of progress: a token resampled by F+LDA is worth several Metropolis-Hastings steps
//! (see [`thresholds`](super::thresholds) for that).

use std::fmt::Write;

use lda_core::Corpus;
use lda_core::train::{Options, SamplerKind, Trainer};

use super::process::cpu_time;
use super::{LabError, Machine, median};
use crate::synthetic::{Lengths, Spec};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Samplers.
    pub samplers: Vec<SamplerKind>,
    /// Tokens a document.
    pub lengths: Vec<u32>,
    /// Topics K.
    pub topics: Vec<u32>,
    /// Tokens of each corpus, about.
    pub tokens: u32,
    /// Epochs that settle the counts.
    pub settle: u32,
    /// Epochs that are timed.
    pub timed: u32,
}

impl Default for Calibration {
    /// Some minutes.
    fn default() -> Self {
        Self {
            samplers: vec![SamplerKind::FPlus, SamplerKind::Warp],
            lengths: vec![10, 30, 100, 300, 1000, 3000],
            topics: vec![100, 1000, 10_000],
            tokens: 1_000_000,
            settle: 20,
            timed: 5,
        }
    }
}

/// Cost of a token at each length.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Sampler.
    pub sampler: SamplerKind,
    /// Topics K.
    pub topics: u32,
    /// CPU nanoseconds, in the order of [`Calibration::lengths`].
    pub nanoseconds: Vec<f64>,
}

impl Calibration {
    /// Measures, on one thread; `on` hears of each point.
    ///
    /// # Errors
    /// [`LabError::Value`], [`LabError::Synthesis`] or [`LabError::Options`], if something asked for
    /// makes no sense.
    pub fn measure(
        &self,
        mut on: impl FnMut(SamplerKind, u32, u32, f64),
    ) -> Result<Vec<Cost>, LabError> {
        for (key, value) in [("timed", self.timed), ("tokens", self.tokens)] {
            if value == 0 {
                let remedy = "give at least 1".to_owned();
                return Err(LabError::Value { key, value: "0".to_owned(), remedy });
            }
        }
        let mut costs = Vec::new();
        for &topics in &self.topics {
            for &sampler in &self.samplers {
                costs.push(Cost { sampler, topics, nanoseconds: Vec::new() });
            }
        }
        for &length in &self.lengths {
            let corpus = corpus(length, self.tokens)?;
            for cost in &mut costs {
                let nanoseconds = self.time(&corpus, cost.sampler, cost.topics)?;
                on(cost.sampler, cost.topics, length, nanoseconds);
                cost.nanoseconds.push(nanoseconds);
            }
        }
        Ok(costs)
    }

    fn time(&self, corpus: &Corpus, sampler: SamplerKind, topics: u32) -> Result<f64, LabError> {
        let options = Options { topics, sampler, threads: Some(1), seed: 1, ..Options::default() };
        let mut trainer = Trainer::new(corpus, &options)?;
        for _ in 0..self.settle {
            trainer.epoch();
        }
        let epochs = (0..self.timed).map(|_| {
            let before = cpu_time();
            trainer.epoch();
            (cpu_time() - before).as_secs_f64()
        });
        let seconds = median(epochs.collect::<Vec<_>>()).unwrap_or(f64::NAN);
        Ok(seconds * 1e9 / corpus.num_tokens() as f64)
    }

    /// The costs as TOML, with the machine in comments.
    pub fn toml(&self, costs: &[Cost], machine: &Machine) -> String {
        let mut out = format!(
            "# CPU nanoseconds a token by document length, one thread; the median of {} epochs \
             after {}.\n# {}\nlengths = {:?}\n",
            self.timed,
            self.settle,
            machine.describe(),
            self.lengths
        );
        for &topics in &self.topics {
            // Writing to a string does not fail.
            let _ = writeln!(out, "\n[[cost]]\ntopics = {topics}");
            let here = costs.iter().filter(|cost| cost.topics == topics);
            for cost in here.clone() {
                let values: Vec<_> = cost.nanoseconds.iter().map(|ns| format!("{ns:.1}")).collect();
                let _ = writeln!(out, "{} = [{}]", cost.sampler, values.join(", "));
            }
            let of = |kind| here.clone().find(|cost| cost.sampler == kind);
            if let (Some(f_plus), Some(warp)) = (of(SamplerKind::FPlus), of(SamplerKind::Warp)) {
                let line = match self.crossing(&f_plus.nanoseconds, &warp.nanoseconds) {
                    Some(length) => format!("same-cost-length = {length:.0}"),
                    None => "# The cheaper of the two is the same at every length.".to_owned(),
                };
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }

    /// Length from which the second sampler is the cheaper, between the measured ones by the
    /// logarithms of length and ratio.
    fn crossing(&self, first: &[f64], second: &[f64]) -> Option<f64> {
        let ratios: Vec<f64> = first.iter().zip(second).map(|(a, b)| (a / b).ln()).collect();
        let i = ratios.windows(2).position(|pair| pair[0] < 0.0 && pair[1] >= 0.0)?;
        let share = -ratios[i] / (ratios[i + 1] - ratios[i]);
        let (a, b) = (f64::from(self.lengths[i]).ln(), f64::from(self.lengths[i + 1]).ln());
        Some((a + share * (b - a)).exp())
    }
}

/// Documents of one length. Topics share little, as in real text.
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
        let calibration = Calibration {
            lengths: vec![10, 50],
            topics: vec![5, 8],
            tokens: 2_000,
            settle: 1,
            timed: 2,
            ..Calibration::default()
        };
        let mut points = 0;
        let costs = calibration.measure(|_, _, _, _| points += 1).unwrap();
        assert_eq!((points, costs.len()), (8, 4));
        assert!(costs.iter().all(|cost| cost.nanoseconds.iter().all(|ns| *ns > 0.0)));
        let text = calibration.toml(&costs, &Machine::detect());
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["lengths"].as_array().unwrap().len(), 2);
        assert_eq!(table["cost"].as_array().unwrap().len(), 2);
        assert_eq!(table["cost"][1]["f-plus"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_same_cost_lies_between_lengths() {
        let calibration = Calibration { lengths: vec![10, 1000], ..Calibration::default() };
        let at = calibration.crossing(&[1.0, 4.0], &[2.0, 2.0]).unwrap();
        assert!((at - 100.0).abs() < 1e-9, "{at}");
        assert_eq!(calibration.crossing(&[1.0, 1.5], &[2.0, 2.0]), None);
    }

    #[test]
    fn documents_have_the_length_asked_for() {
        let corpus = corpus(30, 3_000).unwrap();
        assert_eq!(corpus.num_documents(), 100);
        assert!((0..100).all(|d| corpus.doc_length(d) == 30));
        assert!(
            Calibration { timed: 0, ..Calibration::default() }.measure(|_, _, _, _| {}).is_err()
        );
    }
}
