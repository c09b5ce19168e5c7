//! Learning of priors during a run.

use serde::{Deserialize, Serialize};

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
    /// Whether priors are learnt before epoch `epoch`, counted from 1.
    pub(crate) fn is_due(self, epoch: u32) -> bool {
        epoch > self.burn_in && (epoch - self.burn_in - 1).is_multiple_of(self.every)
    }
}
