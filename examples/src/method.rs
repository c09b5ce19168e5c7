//! How topics of new documents are found, as options of a program.

use clap::{ValueEnum, value_parser};
use lda_core::infer::Method;

use crate::parsers::positive;

/// A method, its options and its seed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Inference")]
pub struct MethodArgs {
    /// How topics are found
    #[arg(id = "method", long = "method", value_name = "METHOD", value_enum,
        default_value_t = MethodName::FoldIn)]
    name: MethodName,
    /// fold-in: sweeps before the first sample
    #[arg(long, value_name = "N", default_value_t = 10)]
    burn_in: u32,
    /// fold-in: samples, whose mean is the answer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..))]
    samples: u32,
    /// rt: sweeps at most
    #[arg(long, value_name = "N", default_value_t = 5)]
    sweeps: u32,
    /// variational: iterations at most
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = value_parser!(u32).range(1..))]
    iterations: u32,
    /// variational: end when shares move by less than this, in all
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = positive)]
    tolerance: f64,
    /// fold-in: seed of all chance; a document's topics do not depend on the others
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Gibbs sampling: shares are the posterior's, up to chance
    FoldIn,
    /// RT-LDA: quickest, and leans to the leading topic
    Rt,
    /// The variational E-step: no chance in it
    Variational,
}

impl MethodArgs {
    /// The method asked for.
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
