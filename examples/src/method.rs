//! Command-line options of inference.

use clap::{ValueEnum, value_parser};
use lda_core::infer::Method;

use crate::parsers::positive;

/// Inference method, its options and its seed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Inference")]
pub struct MethodArgs {
    /// Inference method
    #[arg(id = "method", long = "method", value_name = "METHOD", value_enum,
        default_value_t = MethodName::FoldIn)]
    name: MethodName,
    /// fold-in: number of sweeps before the first sample
    #[arg(long, value_name = "N", default_value_t = 10)]
    burn_in: u32,
    /// fold-in: number of samples, whose mean is the answer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..))]
    samples: u32,
    /// rt: maximum number of sweeps
    #[arg(long, value_name = "N", default_value_t = 5)]
    sweeps: u32,
    /// variational: maximum number of iterations
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = value_parser!(u32).range(1..))]
    iterations: u32,
    /// variational: stop when the shares change by less than this in total
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = positive)]
    tolerance: f64,
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

impl MethodArgs {
    /// Returns the selected method with its options.
    pub fn method(&self) -> Method {
        match self.name {
            MethodName::FoldIn => Method::FoldIn { burn_in: self.burn_in, samples: self.samples },
            MethodName::Rt => Method::Rt { sweeps: self.sweeps },
            MethodName::Variational => {
                Method::Variational { iterations: self.iterations, tolerance: self.tolerance }
            }
        }
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
        assert_eq!(method(""), Method::FOLD_IN);
        assert_eq!(method("--method rt"), Method::RT);
        assert_eq!(method("--method variational"), Method::VARIATIONAL);
        assert_eq!(method("--burn-in 3 --samples 4"), Method::FoldIn { burn_in: 3, samples: 4 });
    }
}
