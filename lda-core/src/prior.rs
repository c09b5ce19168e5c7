//! The Dirichlet priors: α over a document's topics, β over a topic's words.
//!
//! α is one number for all topics, or one number per topic; β is one number for all words. Both act
//! as pseudo-counts: α_k = 0.1 weighs as much as a tenth of a token. A prior must be above zero:
//! with zero some topics could never be drawn, and lnΓ has a pole there. Samplers compute in single
//! precision, so a prior and its sum must be in the range of `f32`: an infinite weight would give
//! all tokens to one topic.
//!
//! Griffiths & Steyvers (2004) use α = 50/K and β = 0.01. For documents shorter than 400 tokens
//! [`TrainOptions::default_alpha`](crate::TrainOptions::default_alpha) is smaller, with figures.

pub mod learn;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Error of checking a prior.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A value that is zero, negative, infinite or NaN.
    #[error("{parameter} is {value}: give a finite number above 0")]
    NotPositive {
        /// Name of the value: `alpha`, `alpha[k]` (topic k) or `beta`.
        parameter: Cow<'static, str>,
        /// The value.
        value: f64,
    },
    /// A value beyond the range of `f32`, or so small that `f32` loses its digits.
    #[error("{parameter} is {value}: give a number from 1.2e-38 to 3.4e38")]
    OutOfRange {
        /// Name of the value: `alpha`, `alpha[k]` (topic k) or `beta`.
        parameter: Cow<'static, str>,
        /// The value.
        value: f64,
    },
    /// The number of values of α differs from the number of topics.
    #[error("alpha has {found} values for {num_topics} topics: give one a topic, or one for all")]
    WrongLength {
        /// Number of values of α.
        found: usize,
        /// Number of topics K.
        num_topics: usize,
    },
    /// The sum over topics or words is beyond the range of `f32`, although each value is within.
    #[error("{parameter} summed over all {terms} entries is above 3.4e38: give smaller values")]
    SumOverflows {
        /// `alpha` or `beta`.
        parameter: &'static str,
        /// Number of topics (α) or words (β).
        terms: usize,
    },
}

/// Prior α of the topics of a document.
///
/// Serialised as a number (symmetric) or a list of numbers (one per topic).
///
/// ```
/// use lda_core::prior::Alpha;
///
/// let symmetric = Alpha::Symmetric(0.5);
/// assert_eq!((symmetric.get(3), symmetric.sum(4)), (0.5, 2.0));
///
/// let per_topic = Alpha::from(vec![0.5, 1.5]);
/// assert_eq!((per_topic.get(1), per_topic.sum(2)), (1.5, 2.0));
/// assert!(per_topic.check(3).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Alpha {
    /// The same α_k for every topic.
    Symmetric(f64),
    /// α_k of topic k at index k.
    PerTopic(Vec<f64>),
}

impl Alpha {
    /// α_k of one topic.
    ///
    /// # Panics
    /// If α is per topic and `topic` is out of range.
    #[inline]
    pub fn get(&self, topic: usize) -> f64 {
        match self {
            Self::Symmetric(alpha) => *alpha,
            Self::PerTopic(alphas) => alphas[topic],
        }
    }

    /// The values: one for all topics, or one per topic.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::Symmetric(alpha) => std::slice::from_ref(alpha),
            Self::PerTopic(alphas) => alphas,
        }
    }

    /// Inverse of [`as_slice`](Self::as_slice); `None` if the slice is empty. One value is
    /// symmetric.
    pub(crate) fn from_slice(alphas: &[f64]) -> Option<Self> {
        match alphas {
            [] => None,
            &[alpha] => Some(Self::Symmetric(alpha)),
            _ => Some(Self::PerTopic(alphas.to_vec())),
        }
    }

    /// ᾱ, the sum of α_k over `num_topics` topics.
    ///
    /// The same bits at every call: the values are added in order of topics.
    pub fn sum(&self, num_topics: usize) -> f64 {
        match self {
            Self::Symmetric(alpha) => alpha * num_topics as f64,
            Self::PerTopic(alphas) => alphas.iter().take(num_topics).sum(),
        }
    }

    /// Checks that this is a valid prior for `num_topics` topics.
    ///
    /// # Errors
    /// [`PriorError`] if a value is not above zero, if there are not `num_topics` values, or if a
    /// value or their sum is out of the range of `f32`.
    pub fn check(&self, num_topics: usize) -> Result<(), PriorError> {
        match self {
            Self::Symmetric(alpha) => check_value(*alpha, || Cow::Borrowed("alpha"))?,
            Self::PerTopic(alphas) => {
                if alphas.len() != num_topics {
                    return Err(PriorError::WrongLength { found: alphas.len(), num_topics });
                }
                for (topic, &alpha) in alphas.iter().enumerate() {
                    check_value(alpha, || Cow::Owned(format!("alpha[{topic}]")))?;
                }
            }
        }
        check_sum("alpha", self.sum(num_topics), num_topics)
    }
}

impl From<f64> for Alpha {
    fn from(alpha: f64) -> Self {
        Self::Symmetric(alpha)
    }
}

impl From<Vec<f64>> for Alpha {
    fn from(alphas: Vec<f64>) -> Self {
        Self::PerTopic(alphas)
    }
}

/// Checks that `beta` is a valid prior for a vocabulary of `num_words` words.
///
/// # Errors
/// [`PriorError`] if `beta` is not above zero, or if it or β̄ = V·β is out of the range of `f32`.
///
/// ```
/// use lda_core::prior::check_beta;
///
/// assert!(check_beta(0.01, 7_000).is_ok());
/// let refused = check_beta(f64::NAN, 7_000).unwrap_err();
/// assert_eq!(refused.to_string(), "beta is NaN: give a finite number above 0");
/// ```
pub fn check_beta(beta: f64, num_words: usize) -> Result<(), PriorError> {
    check_value(beta, || Cow::Borrowed("beta"))?;
    check_sum("beta", beta * num_words as f64, num_words)
}

fn check_value(
    value: f64,
    parameter: impl FnOnce() -> Cow<'static, str>,
) -> Result<(), PriorError> {
    if !(value.is_finite() && value > 0.0) {
        Err(PriorError::NotPositive { parameter: parameter(), value })
    } else if !(value as f32).is_normal() {
        Err(PriorError::OutOfRange { parameter: parameter(), value })
    } else {
        Ok(())
    }
}

fn check_sum(parameter: &'static str, sum: f64, terms: usize) -> Result<(), PriorError> {
    let is_finite = (sum as f32).is_finite();
    if is_finite { Ok(()) } else { Err(PriorError::SumOverflows { parameter, terms }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_values_that_are_not_finite_and_positive() {
        for value in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let symmetric = Alpha::Symmetric(value).check(2).unwrap_err();
            assert!(symmetric.to_string().starts_with(&format!("alpha is {value}")), "{symmetric}");
            let second = Alpha::PerTopic(vec![0.1, value]).check(2).unwrap_err();
            assert!(second.to_string().starts_with("alpha[1] is "), "{second}");
            let beta = check_beta(value, 2).unwrap_err();
            assert!(beta.to_string().starts_with("beta is "), "{beta}");
        }
    }

    #[test]
    fn rejects_a_wrong_length_and_what_single_precision_cannot_hold() {
        assert_eq!(
            Alpha::PerTopic(vec![0.1; 3]).check(4),
            Err(PriorError::WrongLength { found: 3, num_topics: 4 })
        );
        assert_eq!(
            Alpha::Symmetric(2e38).check(2),
            Err(PriorError::SumOverflows { parameter: "alpha", terms: 2 })
        );
        assert_eq!(
            check_beta(2e38, 2),
            Err(PriorError::SumOverflows { parameter: "beta", terms: 2 })
        );
        for value in [1e39, f64::MAX, 1e-39, f64::from_bits(1)] {
            let refused = Alpha::PerTopic(vec![0.1, value]).check(2).unwrap_err().to_string();
            assert!(refused.starts_with("alpha[1] is ") && refused.contains("3.4e38"), "{refused}");
            assert!(Alpha::Symmetric(value).check(1).is_err() && check_beta(value, 1).is_err());
        }
    }

    #[test]
    fn accepts_the_smallest_prior_and_one_topic() {
        assert_eq!(Alpha::Symmetric(f32::MIN_POSITIVE.into()).check(1), Ok(()));
        assert_eq!(Alpha::Symmetric(f32::MAX.into()).check(1), Ok(()));
        assert_eq!(Alpha::PerTopic(vec![50.0]).check(1), Ok(()));
        assert_eq!(check_beta(f32::MIN_POSITIVE.into(), 1), Ok(()));
    }

    #[test]
    fn is_a_number_or_a_list_in_json() {
        for (alpha, json) in
            [(Alpha::Symmetric(0.05), "0.05"), (Alpha::PerTopic(vec![0.5, 1.5]), "[0.5,1.5]")]
        {
            assert_eq!(serde_json::to_string(&alpha).unwrap(), json);
            assert_eq!(serde_json::from_str::<Alpha>(json).unwrap(), alpha);
        }
    }
}
