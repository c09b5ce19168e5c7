//! Who runs a cell: one of our samplers, or a rival.

use std::fmt;
use std::str::FromStr;

use lda_core::train::SamplerKind;
use serde::{Deserialize, Serialize};

/// A program of other people, driven by an adapter (`rivals/` of this crate) on the user's own
/// installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Rival {
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

impl Rival {
    /// Every rival, in the order of this list.
    pub const ALL: [Self; 6] =
        [Self::Tomotopy, Self::Gensim, Self::ScikitLearn, Self::Spark, Self::Mallet, Self::WarpLda];

    /// Name as it stands in plans, reports and on command lines.
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

    /// The environment's variable that holds the path of its executable; none, if it is a Python
    /// package.
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::Mallet => Some("LDA_MALLET"),
            Self::WarpLda => Some("LDA_WARPLDA"),
            Self::Tomotopy | Self::Gensim | Self::ScikitLearn | Self::Spark => None,
        }
    }
}

/// One of our samplers, the one of them that is picked by itself, or a rival. Written as its name, which no two share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Contender {
    /// A sampler of this library.
    Sampler(SamplerKind),
    /// The one of them that the library picks.
    Auto,
    /// A rival.
    Rival(Rival),
}

impl Contender {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampler(kind) => kind.name(),
            Self::Auto => "auto",
            Self::Rival(rival) => rival.name(),
        }
    }

    /// Whether it is a rival.
    pub fn is_rival(self) -> bool {
        matches!(self, Self::Rival(_))
    }
}

impl From<SamplerKind> for Contender {
    fn from(kind: SamplerKind) -> Self {
        Self::Sampler(kind)
    }
}

impl From<Rival> for Contender {
    fn from(rival: Rival) -> Self {
        Self::Rival(rival)
    }
}

/// Names of all samplers, for people: "exact, f-plus or warp".
pub fn sampler_names() -> String {
    join(SamplerKind::ALL.map(SamplerKind::name).into_iter().chain(["auto"]).collect::<Vec<_>>())
}

/// Names of all rivals, likewise.
pub fn rival_names() -> String {
    join(Rival::ALL.map(Rival::name))
}

fn join(names: impl AsRef<[&'static str]>) -> String {
    match names.as_ref() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl FromStr for Rival {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|rival| rival.name() == name);
        found.ok_or_else(|| format!("unknown rival {name:?}: use {}", rival_names()))
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == Self::Auto.name() {
            return Ok(Self::Auto);
        }
        if let Ok(kind) = name.parse::<SamplerKind>() {
            return Ok(kind.into());
        }
        let unknown = |_| {
            format!("unknown contender {name:?}: use {}, or {}", sampler_names(), rival_names())
        };
        name.parse::<Rival>().map(Self::from).map_err(unknown)
    }
}

impl TryFrom<String> for Rival {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl TryFrom<String> for Contender {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Rival> for String {
    fn from(rival: Rival) -> Self {
        rival.name().to_owned()
    }
}

impl From<Contender> for String {
    fn from(contender: Contender) -> Self {
        contender.name().to_owned()
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_contender() {
        let samplers = SamplerKind::ALL.into_iter().map(Contender::from);
        let rivals = Rival::ALL.into_iter().map(Contender::from);
        for contender in samplers.chain(rivals).chain([Contender::Auto]) {
            assert_eq!(contender.name().parse(), Ok(contender));
            let json = serde_json::to_string(&contender).unwrap();
            assert_eq!(json, format!("\"{}\"", contender.name()));
            assert_eq!(serde_json::from_str::<Contender>(&json).unwrap(), contender);
        }
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        let error = "vowpal".parse::<Contender>().unwrap_err();
        assert!(error.contains("f-plus") && error.contains("spark, mallet or warplda"), "{error}");
        assert!("f-plus".parse::<Rival>().unwrap_err().contains("tomotopy"));
    }
}
