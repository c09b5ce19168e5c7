//! Learning of priors during a run.

use serde::{Deserialize, Serialize};

use super::OptionsError;
use super::resolve::{positive, value};
use crate::prior::Alpha;
use crate::prior::learn::CountHistograms;

/// Priors that are learnt from the counts during the run ([`prior::learn`](crate::prior::learn)).
///
/// The counts of the first epochs carry no information on priors, so learning begins later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Learn {
    /// How α is learnt; default per topic.
    pub alpha: LearnAlpha,
    /// Whether β is learnt; default true.
    pub beta: bool,
    /// Epochs before the first update; default 50.
    pub burn_in: u32,
    /// Epochs between updates, at least 1; default 10.
    pub every: u32,
}

impl Default for Learn {
    fn default() -> Self {
        Self { alpha: LearnAlpha::PerTopic, beta: true, burn_in: 50, every: 10 }
    }
}

/// How α is learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnAlpha {
    /// Not at all.
    Fixed,
    /// One value for all topics.
    Symmetric,
    /// One value per topic.
    #[default]
    PerTopic,
}

impl LearnAlpha {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Symmetric, Self::PerTopic];

    /// Name as it stands in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Symmetric => "symmetric",
            Self::PerTopic => "per-topic",
        }
    }
}

impl Learn {
    /// Number of fixed-point iterations per update. A few suffice, as the priors are near the fixed point
    /// and the counts change anyway.
    pub const STEPS: u32 = 10;

    /// Returns true if priors are learnt before epoch `epoch`, counted from 1.
    pub fn is_due(self, epoch: u32) -> bool {
        epoch > self.burn_in && (epoch - self.burn_in - 1).is_multiple_of(self.every)
    }

    /// Empty histograms of the documents' counts from which α is learnt; `None` if it is fixed.
    pub fn document_histograms(self, topics: usize) -> Option<CountHistograms> {
        match self.alpha {
            LearnAlpha::Fixed => None,
            LearnAlpha::Symmetric => Some(CountHistograms::of_all_topics()),
            LearnAlpha::PerTopic => Some(CountHistograms::per_topic(topics)),
        }
    }

    /// The next α, from [histograms](Self::document_histograms) with the counts of all documents.
    pub fn next_alpha(
        self,
        alpha: &Alpha,
        topics: usize,
        documents: &mut CountHistograms,
    ) -> Alpha {
        match (self.alpha, alpha) {
            (LearnAlpha::Fixed, alpha) => alpha.clone(),
            (LearnAlpha::Symmetric, Alpha::Symmetric(alpha)) => {
                Alpha::Symmetric(documents.symmetric_alpha(topics, *alpha, Self::STEPS))
            }
            (_, alpha) => Alpha::PerTopic(documents.alpha_per_topic(alpha, Self::STEPS)),
        }
    }
}

/// Checks options that change priors during a run: [`alpha_by_size`](super::TrainOptions::alpha_by_size)
/// and [`learn`](super::TrainOptions::learn), beside the α from which the run starts.
///
/// # Errors
/// [`OptionsError::Value`] if a number is out of range, or two options set the same prior.
pub fn check_prior_updates(
    alpha: &Alpha,
    alpha_by_size: Option<f64>,
    learn: Option<Learn>,
) -> Result<(), OptionsError> {
    positive("learn-every", learn.map(|learn| f64::from(learn.every)))?;
    if let Some(smoothing) = alpha_by_size.filter(|x| !(1e-6..=1e15).contains(x)) {
        return Err(value("alpha-by-size", smoothing, "give a number from 1e-6 to 1e15"));
    }
    let is_list = matches!(alpha, Alpha::PerTopic(_));
    if alpha_by_size.is_some() && is_list {
        let remedy = "give one alpha for all topics, or leave alpha-by-size out";
        return Err(value("alpha-by-size", "set beside one alpha per topic", remedy));
    }
    let Some(learn) = learn else { return Ok(()) };
    if alpha_by_size.is_some() && learn.alpha != LearnAlpha::Fixed {
        let remedy = "leave one of them out";
        return Err(value("alpha-by-size", "set beside a learnt alpha", remedy));
    }
    if learn.alpha == LearnAlpha::Symmetric && is_list {
        let remedy = "ask for per-topic, or give one alpha for all topics";
        return Err(value("learn-alpha", "symmetric beside one alpha per topic", remedy));
    }
    Ok(())
}
