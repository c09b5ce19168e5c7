//! Command-line options of inference.

use clap::{ValueEnum, value_parser};
use lda_core::infer::Method;
use thiserror::Error;

use crate::parsers::positive;

/// Inference method, its options and its seed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Inference")]
pub struct MethodArgs {
    /// Inference method
    #[arg(id = "method", long = "method", value_name = "METHOD", value_enum,
        default_value_t = MethodName::FoldIn)]
    name: MethodName,
    /// fold-in: number of sweeps before the first sample [default: 10]
    #[arg(long, value_name = "N")]
    burn_in: Option<u32>,
    /// fold-in: number of samples, whose mean is the answer [default: 20]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    samples: Option<u32>,
    /// rt: maximum number of sweeps [default: 5]
    #[arg(long, value_name = "N")]
    sweeps: Option<u32>,
    /// variational: maximum number of iterations [default: 100]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// variational: stop when the shares change by less than this in total [default: 0.001]
    #[arg(long, value_name = "X", value_parser = positive)]
    tolerance: Option<f64>,
    /// fold-in: random seed; the topics of a document do not depend on other documents
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

/// Names of the methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Gibbs sampling; the shares are samples of the posterior
    FoldIn,
    /// RT-LDA: fastest, biased towards the leading topic
    Rt,
    /// Variational E-step; deterministic
    Variational,
}

/// An option was given that the selected method does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("--{option} is an option of --method {method}: give that method, or omit --{option}")]
pub struct MethodError {
    option: &'static str,
    method: &'static str,
}

impl MethodArgs {
    /// Name of the selected method.
    pub fn name(&self) -> &'static str {
        match self.name {
            MethodName::FoldIn => Method::FOLD_IN.name(),
            MethodName::Rt => Method::RT.name(),
            MethodName::Variational => Method::VARIATIONAL.name(),
        }
    }

    /// Returns the selected method with its options.
    ///
    /// # Errors
    /// [`MethodError`], if an option of another method was given.
    pub fn method(&self) -> Result<Method, MethodError> {
        let Self { name, burn_in, samples, sweeps, iterations, tolerance, .. } = *self;
        let options = [
            ("burn-in", burn_in.is_some(), MethodName::FoldIn, "fold-in"),
            ("samples", samples.is_some(), MethodName::FoldIn, "fold-in"),
            ("sweeps", sweeps.is_some(), MethodName::Rt, "rt"),
            ("iterations", iterations.is_some(), MethodName::Variational, "variational"),
            ("tolerance", tolerance.is_some(), MethodName::Variational, "variational"),
        ];
        for (option, is_given, of, method) in options {
            if is_given && of != name {
                return Err(MethodError { option, method });
            }
        }
        Ok(match name {
            MethodName::FoldIn => {
                Method::FoldIn { burn_in: burn_in.unwrap_or(10), samples: samples.unwrap_or(20) }
            }
            MethodName::Rt => Method::Rt { sweeps: sweeps.unwrap_or(5) },
            MethodName::Variational => Method::Variational {
                iterations: iterations.unwrap_or(100),
                tolerance: tolerance.unwrap_or(1e-3),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        method: MethodArgs,
    }

    #[test]
    fn methods_arrive() {
        let method = |line: &str| {
            let words = ["program"].into_iter().chain(line.split_whitespace());
            Line::try_parse_from(words).unwrap().method.method()
        };
        assert_eq!(method(""), Ok(Method::FOLD_IN));
        assert_eq!(method("--method rt"), Ok(Method::RT));
        assert_eq!(method("--method variational"), Ok(Method::VARIATIONAL));
        let expected = Method::FoldIn { burn_in: 3, samples: 4 };
        assert_eq!(method("--burn-in 3 --samples 4"), Ok(expected));
        for (line, option) in [
            ("--method rt --burn-in 10", "burn-in"),
            ("--method variational --samples 20", "samples"),
            ("--sweeps 5", "sweeps"),
            ("--method rt --iterations 5", "iterations"),
            ("--tolerance 0.1", "tolerance"),
        ] {
            let error = method(line).unwrap_err();
            assert_eq!(error.option, option, "{line}: {error}");
        }
    }
}
