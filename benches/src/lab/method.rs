//! The methods that a cell can run: our samplers, the Pólya urn of the examples, and the baselines.

use std::fmt;
use std::str::FromStr;

use lda_core::train::SamplerKind;
use serde::{Deserialize, Serialize};

/// Another project's program, run by an adapter (`baselines/` of this package) on the user's own
/// installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Baseline {
    /// tomotopy, collapsed Gibbs sampling in C++.
    Tomotopy,
    /// gensim, online variational Bayes.
    Gensim,
    /// scikit-learn, online variational Bayes.
    ScikitLearn,
    /// Spark MLlib, expectation maximisation on a graph.
    Spark,
    /// MALLET, SparseLDA in Java.
    Mallet,
    /// WarpLDA in C++, by its authors.
    WarpLda,
}

impl Baseline {
    /// Every baseline, in the order of this list.
    pub const ALL: [Self; 6] =
        [Self::Tomotopy, Self::Gensim, Self::ScikitLearn, Self::Spark, Self::Mallet, Self::WarpLda];

    /// Name in plans, reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tomotopy => "tomotopy",
            Self::Gensim => "gensim",
            Self::ScikitLearn => "scikit-learn",
            Self::Spark => "spark",
            Self::Mallet => "mallet",
            Self::WarpLda => "warplda",
        }
    }

    /// Environment variable with the path of its executable; `None` for a Python package.
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::Mallet => Some("LDA_MALLET"),
            Self::WarpLda => Some("LDA_WARPLDA"),
            Self::Tomotopy | Self::Gensim | Self::ScikitLearn | Self::Spark => None,
        }
    }
}

/// One of our samplers, the automatic choice among them, the Pólya urn, or a baseline. Serialised as its unique
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Method {
    /// A sampler of this library.
    Sampler(SamplerKind),
    /// The sampler of `lda-core/examples/polya_urn`, through
    /// [`Trainer::with_sampler`](lda_core::train::Trainer::with_sampler).
    PolyaUrn,
    /// The library's automatic choice.
    Auto,
    /// A baseline.
    Baseline(Baseline),
}

impl Method {
    /// Name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampler(kind) => kind.name(),
            Self::PolyaUrn => "polya-urn",
            Self::Auto => "auto",
            Self::Baseline(baseline) => baseline.name(),
        }
    }

    /// Whether it is a baseline.
    pub fn is_baseline(self) -> bool {
        matches!(self, Self::Baseline(_))
    }
}

impl From<SamplerKind> for Method {
    fn from(kind: SamplerKind) -> Self {
        Self::Sampler(kind)
    }
}

impl From<Baseline> for Method {
    fn from(baseline: Baseline) -> Self {
        Self::Baseline(baseline)
    }
}

/// Names of all samplers for messages: "exact, f-plus or warp".
pub fn sampler_names() -> String {
    let others = [Method::PolyaUrn, Method::Auto].map(Method::name);
    join(SamplerKind::ALL.map(SamplerKind::name).into_iter().chain(others).collect::<Vec<_>>())
}

/// Names of all baselines for messages.
pub fn baseline_names() -> String {
    join(Baseline::ALL.map(Baseline::name))
}

fn join(names: impl AsRef<[&'static str]>) -> String {
    match names.as_ref() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl FromStr for Baseline {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|baseline| baseline.name() == name);
        found.ok_or_else(|| format!("unknown baseline {name:?}: use {}", baseline_names()))
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let samplers = SamplerKind::ALL.into_iter().map(Self::from);
        let found = samplers.chain([Self::PolyaUrn, Self::Auto]).find(|other| other.name() == name);
        if let Some(found) = found {
            return Ok(found);
        }
        let unknown = |_| {
            format!("unknown method {name:?}: use {}, or {}", sampler_names(), baseline_names())
        };
        name.parse::<Baseline>().map(Self::from).map_err(unknown)
    }
}

impl TryFrom<String> for Baseline {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Baseline> for String {
    fn from(baseline: Baseline) -> Self {
        baseline.name().to_owned()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.name().to_owned()
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_method() {
        let samplers = SamplerKind::ALL.into_iter().map(Method::from);
        let baselines = Baseline::ALL.into_iter().map(Method::from);
        for method in samplers.chain(baselines).chain([Method::PolyaUrn, Method::Auto]) {
            assert_eq!(method.name().parse(), Ok(method));
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(json, format!("\"{}\"", method.name()));
            assert_eq!(serde_json::from_str::<Method>(&json).unwrap(), method);
        }
    }

    #[test]
    fn errors_of_unknown_names_list_the_known_ones() {
        let error = "vowpal".parse::<Method>().unwrap_err();
        assert!(error.contains("f-plus") && error.contains("spark, mallet or warplda"), "{error}");
        assert!("custom".parse::<Method>().is_err(), "a plan cannot name a caller's sampler");
        assert!("f-plus".parse::<Baseline>().unwrap_err().contains("tomotopy"));
    }
}
