//! Summaries of the runs of one number of topics, and the number that a criterion prefers.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::measures::{ModelMeasures, mean_of};
use crate::eval::align;
use crate::model::TopicModel;

/// A measure by which numbers of topics are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Criterion {
    /// Held-out perplexity.
    Perplexity,
    /// Coherence C_V.
    CV,
    /// Coherence C_NPMI.
    Npmi,
    /// Coherence U_Mass.
    UMass,
    /// Exclusivity of the top words.
    Exclusivity,
    /// Overlap of the topics of different seeds ([`stability`]).
    Stability,
    /// Arun et al. 2010.
    Arun,
    /// Cao et al. 2009.
    CaoJuan,
    /// Deveaud et al. 2014.
    Deveaud,
}

impl Criterion {
    /// All criteria, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::Perplexity,
        Self::CV,
        Self::Npmi,
        Self::UMass,
        Self::Exclusivity,
        Self::Stability,
        Self::Arun,
        Self::CaoJuan,
        Self::Deveaud,
    ];

    /// Name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perplexity => "perplexity",
            Self::CV => "c-v",
            Self::Npmi => "npmi",
            Self::UMass => "u-mass",
            Self::Exclusivity => "exclusivity",
            Self::Stability => "stability",
            Self::Arun => "arun-2010",
            Self::CaoJuan => "cao-juan-2009",
            Self::Deveaud => "deveaud-2014",
        }
    }

    /// Returns whether larger values are better.
    pub fn is_higher_better(self) -> bool {
        !matches!(self, Self::Perplexity | Self::Arun | Self::CaoJuan)
    }

    /// The value of one model; `None` of [`Stability`](Self::Stability), which is of several.
    pub fn of(self, measures: &ModelMeasures) -> Option<f64> {
        match self {
            Self::Perplexity => measures.perplexity,
            Self::CV => measures.c_v,
            Self::Npmi => measures.npmi,
            Self::UMass => measures.u_mass,
            Self::Exclusivity => measures.exclusivity,
            Self::Stability => None,
            Self::Arun => measures.arun,
            Self::CaoJuan => measures.cao_juan,
            Self::Deveaud => measures.deveaud,
        }
    }
}

/// Models of several seeds with the same number of topics, compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stability {
    /// Mean [overlap](crate::eval::Alignment::mean) of two models, 0 to 1.
    pub mean: f64,
    /// Mean overlap of each model with the others.
    pub models: Vec<f64>,
}

/// Aligns the topics of each pair of models, in the current rayon pool. `None` below two models or two
/// topics, or if the models differ in the number of words. Models with few topics overlap more.
pub fn stability(models: &[TopicModel]) -> Option<Stability> {
    let first = models.first()?;
    let fits = |model: &TopicModel| model.num_words() == first.num_words();
    if models.len() < 2 || !models.iter().all(|model| fits(model) && model.num_topics() > 1) {
        return None;
    }
    let pairs: Vec<(usize, usize)> =
        (0..models.len()).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    let overlap =
        |&(i, j): &(usize, usize)| align(&models[i], &models[j]).map(|found| found.mean());
    let overlaps: Option<Vec<f64>> = pairs.par_iter().map(overlap).collect();
    let overlaps = overlaps?;
    let mut sums = vec![0.0; models.len()];
    for (&(i, j), overlap) in pairs.iter().zip(&overlaps) {
        sums[i] += overlap;
        sums[j] += overlap;
    }
    let others = (models.len() - 1) as f64;
    let models = sums.into_iter().map(|sum| sum / others).collect();
    Some(Stability { mean: mean_of(&overlaps)?, models })
}

/// The runs of one number of topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    topics: u32,
    runs: usize,
    /// Mean and standard deviation over the runs, by [`Criterion::ALL`].
    values: [Option<(f64, f64)>; Criterion::ALL.len()],
}

impl Summary {
    /// Means and standard deviations of the measures of these runs. A measure that a run does not have is
    /// left out.
    pub fn new(topics: u32, runs: &[ModelMeasures], stability: Option<f64>) -> Self {
        let values = Criterion::ALL.map(|criterion| {
            if criterion == Criterion::Stability {
                return stability.map(|mean| (mean, 0.0));
            }
            let values: Option<Vec<f64>> = runs.iter().map(|run| criterion.of(run)).collect();
            let values = values?;
            let mean = mean_of(&values)?;
            let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
            let degrees = values.len().saturating_sub(1).max(1) as f64;
            Some((mean, (squares / degrees).sqrt()))
        });
        Self { topics, runs: runs.len(), values }
    }

    /// Number of topics K.
    pub fn topics(&self) -> u32 {
        self.topics
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Mean over the runs; `None` if one does not have the measure.
    pub fn mean(&self, criterion: Criterion) -> Option<f64> {
        self.values[criterion as usize].map(|value| value.0)
    }

    /// Standard deviation over the runs; 0 of a single one.
    pub fn deviation(&self, criterion: Criterion) -> Option<f64> {
        self.values[criterion as usize].map(|value| value.1)
    }
}

/// The number of topics that a criterion prefers; of equal ones the smallest. `None` if no number, or a
/// single one, has a finite value.
pub fn best(summaries: &[Summary], criterion: Criterion) -> Option<u32> {
    let mut values: Vec<(u32, f64)> = Vec::new();
    for summary in summaries {
        let value = summary.mean(criterion).filter(|value| value.is_finite());
        values.extend(value.map(|value| (summary.topics, value)));
    }
    if values.len() < 2 {
        return None;
    }
    let sign = if criterion.is_higher_better() { -1.0 } else { 1.0 };
    values.sort_unstable_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)).then(a.0.cmp(&b.0)));
    values.first().map(|value| value.0)
}
