//! The samplers by name, and what not all of them can do.

use serde::{Deserialize, Serialize};

use super::OptionsError;

/// Which sampler trains.
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
}

impl SamplerKind {
    /// Every kind, in the order of this list.
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

    /// Whether it makes Metropolis-Hastings steps, whose number can be asked for.
    pub fn takes_mh_steps(self) -> bool {
        matches!(self, Self::Alias | Self::Light | Self::Warp | Self::Hybrid)
    }

    /// Whether it makes proposals of two kinds, of which one can be left out.
    pub fn takes_proposals(self) -> bool {
        self == Self::Light
    }

    /// Whether it can leave out converged tokens: it resamples the tokens that it is lent, each by
    /// itself. WarpLDA carries proposals from pass to pass, for all tokens of a row at once.
    pub fn takes_exclusion(self) -> bool {
        !matches!(self, Self::Warp | Self::Hybrid)
    }

    /// Whether epochs of WarpLDA can go before its own.
    pub fn takes_warm_up(self) -> bool {
        self != Self::Warp
    }

    /// Names of the samplers of which `able` is true, for an error's remedy.
    pub(super) fn names(able: impl Fn(Self) -> bool) -> String {
        let names: Vec<_> =
            Self::ALL.into_iter().filter(|&kind| able(kind)).map(Self::name).collect();
        names.join(", ")
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
            .find(|kind| kind.name() == name)
            .ok_or_else(|| OptionsError::UnknownSampler { name: name.to_owned() })
    }
}
