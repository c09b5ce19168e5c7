//! A sampler with the options that only it has.

use serde::{Deserialize, Serialize};

use super::{OptionsError, Resolved, SamplerKind};
use crate::sampler::Proposals;

/// A sampler and its own options. A [`SamplerKind`] converts into one with default values.
///
/// ```
/// use lda_core::sampler::Proposals;
/// use lda_core::train::{SamplerKind, SamplerOptions, TrainOptions};
///
/// let exact = TrainOptions::new(50).sampler(SamplerKind::FPlus);
/// let light = SamplerOptions::Light { steps: 4, proposals: Proposals::Cycle, exclude_from: None };
/// let light = TrainOptions::new(50).sampler(light);
/// assert_ne!(exact, light);
/// ```
///
/// * `steps`: Metropolis-Hastings steps M per token and pass, 1 to 64; default 1. With WarpLDA each
///   is a proposal that the token carries, and more proposals take memory and mix less per second
///   than more passes: on 26 M tokens in long documents with K = 1,000, M = 2 took 1.3 times as
///   long as M = 1 to reach a likelihood.
/// * `exclude_from`: from this epoch on, counted from 1, a token that keeps its topic is sampled
///   less and less often (ZenLDA's converged-token exclusion): with probability min{1, 2^(i−t)},
///   where t is the number of times in a row that it was sampled and kept its topic, and i is the
///   number of epochs for which it has been left out since. **Biased**: which tokens move depends
///   on whether they moved before. Costs one byte per token. Default: off. WarpLDA has no such
///   option: it carries proposals from pass to pass, for all tokens of a row at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[non_exhaustive]
pub enum SamplerOptions {
    /// [By K and the lengths of documents](super::Choice::auto); the default.
    Auto {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// All K weights for every token.
    Exact {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// F+LDA by word.
    FPlus {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// F+LDA by document.
    FPlusDoc {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// SparseLDA.
    Sparse {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// AliasLDA.
    Alias {
        /// Metropolis-Hastings steps per token.
        steps: u32,
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// LightLDA.
    Light {
        /// Metropolis-Hastings steps per token.
        steps: u32,
        /// Kinds of proposals.
        proposals: Proposals,
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// ZenLDA by word.
    Zen {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// ZenLDA by document.
    ZenDoc {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// ZenLDAHybrid.
    ZenHybrid {
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
    /// WarpLDA.
    Warp {
        /// Proposals that a token carries.
        steps: u32,
    },
    /// LDA*'s pair of samplers: F+LDA for short documents, WarpLDA for long ones.
    Hybrid {
        /// Proposals that a token of a long document carries.
        steps: u32,
        /// WarpLDA's passes are repeated in an epoch until a token has had as many steps as one
        /// acceptance takes on average (LDA* heuristic 2), but no more than this; default 16.
        step_cap: u32,
        /// Documents with more tokens than this go to WarpLDA (LDA* heuristic 1). Default: by K, see
        /// [`default_short_length`](super::TrainOptions::default_short_length); and if either side
        /// would have less than a quarter of the tokens, all go to the other.
        short_length: Option<u32>,
    },
    /// A sampler given to [`Trainer::with_sampler`](crate::train::Trainer::with_sampler).
    Custom {
        /// Metropolis-Hastings steps per token ([`Context::mh_steps`](crate::sampler::Context)); 0 if
        /// the sampler makes none.
        steps: u32,
        /// First epoch of converged-token exclusion.
        exclude_from: Option<u32>,
    },
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self::Auto { exclude_from: None }
    }
}

/// `None` is [`Auto`](SamplerOptions::Auto).
impl From<Option<SamplerKind>> for SamplerOptions {
    fn from(kind: Option<SamplerKind>) -> Self {
        kind.map(Self::from).unwrap_or_default()
    }
}

impl From<SamplerKind> for SamplerOptions {
    fn from(kind: SamplerKind) -> Self {
        let exclude_from = None;
        match kind {
            SamplerKind::Exact => Self::Exact { exclude_from },
            SamplerKind::FPlus => Self::FPlus { exclude_from },
            SamplerKind::FPlusDoc => Self::FPlusDoc { exclude_from },
            SamplerKind::Sparse => Self::Sparse { exclude_from },
            SamplerKind::Alias => Self::Alias { steps: 1, exclude_from },
            SamplerKind::Light => {
                Self::Light { steps: 1, proposals: Proposals::default(), exclude_from }
            }
            SamplerKind::Zen => Self::Zen { exclude_from },
            SamplerKind::ZenDoc => Self::ZenDoc { exclude_from },
            SamplerKind::ZenHybrid => Self::ZenHybrid { exclude_from },
            SamplerKind::Warp => Self::Warp { steps: 1 },
            SamplerKind::Hybrid => Self::Hybrid { steps: 1, step_cap: 16, short_length: None },
            SamplerKind::Custom => Self::Custom { steps: 0, exclude_from },
        }
    }
}

/// The sampler of a run, with its options as resolved.
impl From<&Resolved> for SamplerOptions {
    fn from(resolved: &Resolved) -> Self {
        let mut options = Self::from(resolved.sampler);
        if let Some(steps) = options.steps_mut() {
            *steps = resolved.mh_steps;
        }
        if let Some(exclude_from) = options.exclude_from_mut() {
            *exclude_from = resolved.exclude_converged_from;
        }
        match &mut options {
            Self::Light { proposals, .. } => *proposals = resolved.proposals,
            Self::Hybrid { step_cap, short_length, .. } => {
                *step_cap = resolved.mh_steps_cap.unwrap_or(*step_cap);
                *short_length = Some(resolved.short_length);
            }
            _ => {}
        }
        options
    }
}

impl SamplerOptions {
    /// The kind of the sampler; `None` for [`Auto`](Self::Auto).
    pub fn kind(&self) -> Option<SamplerKind> {
        Some(match self {
            Self::Auto { .. } => return None,
            Self::Exact { .. } => SamplerKind::Exact,
            Self::FPlus { .. } => SamplerKind::FPlus,
            Self::FPlusDoc { .. } => SamplerKind::FPlusDoc,
            Self::Sparse { .. } => SamplerKind::Sparse,
            Self::Alias { .. } => SamplerKind::Alias,
            Self::Light { .. } => SamplerKind::Light,
            Self::Zen { .. } => SamplerKind::Zen,
            Self::ZenDoc { .. } => SamplerKind::ZenDoc,
            Self::ZenHybrid { .. } => SamplerKind::ZenHybrid,
            Self::Warp { .. } => SamplerKind::Warp,
            Self::Hybrid { .. } => SamplerKind::Hybrid,
            Self::Custom { .. } => SamplerKind::Custom,
        })
    }

    /// Metropolis-Hastings steps per token and pass; `None` for a sampler that makes none.
    pub fn steps(mut self) -> Option<u32> {
        self.steps_mut().copied()
    }

    /// First epoch of converged-token exclusion, if it is on.
    pub fn exclude_from(mut self) -> Option<u32> {
        self.exclude_from_mut().and_then(|epoch| *epoch)
    }

    /// The same sampler with `steps` steps.
    ///
    /// # Errors
    /// [`OptionsError::NotOfSampler`], if the sampler makes no Metropolis-Hastings steps.
    pub fn with_steps(self, steps: u32) -> Result<Self, OptionsError> {
        self.with("mh-steps", Self::steps_mut, steps)
    }

    /// The same sampler, which excludes converged tokens from epoch `epoch` on.
    ///
    /// # Errors
    /// [`OptionsError::NotOfSampler`] for samplers that cannot (WarpLDA and the hybrid).
    pub fn with_exclusion(self, epoch: u32) -> Result<Self, OptionsError> {
        self.with("exclude-converged-from", Self::exclude_from_mut, Some(epoch))
    }

    /// The same sampler with these proposals.
    ///
    /// # Errors
    /// [`OptionsError::NotOfSampler`], unless it is LightLDA.
    pub fn with_proposals(self, given: Proposals) -> Result<Self, OptionsError> {
        self.with("proposals", Self::proposals_mut, given)
    }

    /// The same hybrid with this [`short_length`](Self::Hybrid::short_length).
    ///
    /// # Errors
    /// [`OptionsError::NotOfSampler`], unless it is the hybrid.
    pub fn with_short_length(self, tokens: u32) -> Result<Self, OptionsError> {
        self.with("short-length", Self::short_length_mut, Some(tokens))
    }

    /// The same hybrid with this [`step_cap`](Self::Hybrid::step_cap).
    ///
    /// # Errors
    /// [`OptionsError::NotOfSampler`], unless it is the hybrid.
    pub fn with_step_cap(self, steps: u32) -> Result<Self, OptionsError> {
        self.with("mh-steps-cap", Self::step_cap_mut, steps)
    }

    /// Sets the field of `option` to `value`; the error lists the samplers that have the field.
    fn with<V>(
        mut self,
        option: &'static str,
        field: impl Fn(&mut Self) -> Option<&mut V>,
        value: V,
    ) -> Result<Self, OptionsError> {
        let sampler = self.kind().map_or("auto", SamplerKind::name);
        let Some(own) = field(&mut self) else {
            let has = |&kind: &SamplerKind| field(&mut Self::from(kind)).is_some();
            let samplers = SamplerKind::ALL.into_iter().filter(has).collect();
            return Err(OptionsError::NotOfSampler { option, sampler, samplers });
        };
        *own = value;
        Ok(self)
    }

    fn steps_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Alias { steps, .. }
            | Self::Light { steps, .. }
            | Self::Warp { steps }
            | Self::Hybrid { steps, .. }
            | Self::Custom { steps, .. } => Some(steps),
            _ => None,
        }
    }

    fn proposals_mut(&mut self) -> Option<&mut Proposals> {
        match self {
            Self::Light { proposals, .. } => Some(proposals),
            _ => None,
        }
    }

    fn short_length_mut(&mut self) -> Option<&mut Option<u32>> {
        match self {
            Self::Hybrid { short_length, .. } => Some(short_length),
            _ => None,
        }
    }

    fn step_cap_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Hybrid { step_cap, .. } => Some(step_cap),
            _ => None,
        }
    }

    fn exclude_from_mut(&mut self) -> Option<&mut Option<u32>> {
        match self {
            Self::Auto { exclude_from }
            | Self::Exact { exclude_from }
            | Self::FPlus { exclude_from }
            | Self::FPlusDoc { exclude_from }
            | Self::Sparse { exclude_from }
            | Self::Alias { exclude_from, .. }
            | Self::Light { exclude_from, .. }
            | Self::Zen { exclude_from }
            | Self::ZenDoc { exclude_from }
            | Self::ZenHybrid { exclude_from }
            | Self::Custom { exclude_from, .. } => Some(exclude_from),
            Self::Warp { .. } | Self::Hybrid { .. } => None,
        }
    }
}
