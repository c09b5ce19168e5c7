//! The samplers by name.

use serde::{Deserialize, Serialize};

use super::OptionsError;

/// The name of a sampler. Its options are [`SamplerOptions`](super::SamplerOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SamplerKind {
    /// All K weights for every token; the reference.
    Exact,
    /// F+LDA by word: exact, O(K_d + log K).
    FPlus,
    /// F+LDA by document: exact, O(K_w + log K).
    FPlusDoc,
    /// SparseLDA, by document in three buckets: exact, O(K_d + K_w).
    Sparse,
    /// AliasLDA: the document's part fresh, the rest stale, Metropolis-Hastings; O(K_d + M).
    Alias,
    /// LightLDA: Metropolis-Hastings by word with two proposals in turn, O(M).
    Light,
    /// ZenLDA by word: one part fresh, the others from tables, with remedies; O(K_d).
    Zen,
    /// ZenLDA by document: O(K_w).
    ZenDoc,
    /// ZenLDAHybrid: each token by the longer of its two rows; O(min(K_d, K_w)).
    ZenHybrid,
    /// WarpLDA: Metropolis-Hastings with counts delayed by a pass, O(M).
    Warp,
    /// LDA*'s pair: F+LDA for short documents, WarpLDA for long ones.
    Hybrid,
    /// A sampler given to [`Trainer::with_sampler`](crate::train::Trainer::with_sampler).
    Custom,
}

impl SamplerKind {
    /// Every sampler of this crate, in the order of this list.
    pub const ALL: [Self; 11] = [
        Self::Exact,
        Self::FPlus,
        Self::FPlusDoc,
        Self::Sparse,
        Self::Alias,
        Self::Light,
        Self::Zen,
        Self::ZenDoc,
        Self::ZenHybrid,
        Self::Warp,
        Self::Hybrid,
    ];

    /// Names of all samplers, for an error's remedy.
    pub(super) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Name as it stands in options, reports and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::FPlus => "f-plus",
            Self::FPlusDoc => "f-plus-doc",
            Self::Sparse => "sparse",
            Self::Alias => "alias",
            Self::Light => "light",
            Self::Zen => "zen",
            Self::ZenDoc => "zen-doc",
            Self::ZenHybrid => "zen-hybrid",
            Self::Warp => "warp",
            Self::Hybrid => "hybrid",
            Self::Custom => "custom",
        }
    }
}

impl std::fmt::Display for SamplerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for SamplerKind {
    type Err = OptionsError;

    fn from_str(name: &str) -> Result<Self, OptionsError> {
        Self::ALL
            .into_iter()
            .chain([Self::Custom])
            .find(|kind| kind.name() == name)
            .ok_or_else(|| OptionsError::UnknownSampler { name: name.to_owned() })
    }
}
