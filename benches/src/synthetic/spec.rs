//! Parameters of a generated corpus, their limits, and the presets.

use std::fmt;
use std::str::FromStr;

use lda_core::container::FileError;
use lda_core::corpus::BuildError;
use thiserror::Error;

/// Limits that keep a mistyped number from filling the machine.
const MOST_DOCUMENTS: usize = 1 << 28;
const MOST_WORDS: usize = 1 << 24;
const MOST_TOPICS: usize = 1 << 16;
const MOST_TOKENS: f64 = (1u64 << 32) as f64;
const MOST_PIECES: f64 = (1u64 << 28) as f64;
const LONGEST_DOCUMENT: u32 = 1 << 20;

/// Why a corpus cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SynthesisError {
    /// A parameter outside its range.
    #[error("{parameter} is {value}: give {expected}")]
    OutOfRange {
        /// Name of the field of [`Spec`], or `scale`.
        parameter: &'static str,
        /// The given value.
        value: f64,
        /// The valid values.
        expected: &'static str,
    },
    /// The corpus would be too large.
    #[error(transparent)]
    TooLarge(#[from] BuildError),
    /// A block of documents cannot be written.
    #[error("{0}")]
    Blocks(String),
    /// There is no preset of this name.
    #[error(
        "no preset is called {0:?}: there are nytlike, pubmedlike, baikelike, weblike and cellslike"
    )]
    UnknownPreset(String),
}

impl SynthesisError {
    pub(super) fn blocks(error: FileError) -> Self {
        Self::Blocks(error.to_string())
    }
}

/// Log-normal lengths of a share of the documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Part of the documents with lengths of this mode, relative to the other modes' weights.
    pub weight: f64,
    /// Mean number of tokens.
    pub mean: f64,
    /// Standard deviation of the logarithm of the length.
    pub sigma: f64,
}

/// Parameters of the law from which a corpus is drawn.
///
/// Words follow Zipf's law over the whole corpus; each topic is drawn from a Dirichlet around it,
/// each document's topics from a symmetric Dirichlet. Ranks are assigned to words at random, so ids
/// are not in order of frequency, as in an alphabetical vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Documents D.
    pub num_documents: usize,
    /// Number of words that may occur; the vocabulary consists of those that do.
    pub num_words: usize,
    /// Topics K.
    pub num_topics: usize,
    /// Exponent s of Zipf's law: the word of rank r has base probability ∝ r^−s.
    pub zipf_exponent: f64,
    /// Concentration c of the topics: φ_k ~ Dirichlet(c · base). With small values a topic has few
    /// words and shares few of them with others; with large ones every topic resembles the base.
    pub concentration: f64,
    /// θ_d ~ Dirichlet(α, …, α).
    pub alpha: f64,
    /// Modes of the documents' lengths, at least one.
    pub lengths: Vec<Lengths>,
}

impl Default for Spec {
    /// 1,000 documents of about 100 tokens over 10 well separated topics: training takes seconds
    /// with any sampler, and a good sampler recovers the topics.
    fn default() -> Self {
        Self {
            num_documents: 1_000,
            num_words: 2_000,
            num_topics: 10,
            zipf_exponent: 0.8,
            concentration: 50.0,
            alpha: 0.1,
            lengths: vec![Lengths { weight: 1.0, mean: 100.0, sigma: 0.4 }],
        }
    }
}

impl Spec {
    /// The same law with `scale` times as many documents, at least one.
    ///
    /// Topics, word probabilities and documents do not change: at 1 %, the corpus is the first
    /// hundredth of the whole one. Only the vocabulary shrinks, since it lacks the words that do
    /// not occur.
    ///
    /// # Errors
    /// [`SynthesisError::OutOfRange`], unless the scale is finite and above 0.
    pub fn scaled(mut self, scale: f64) -> Result<Self, SynthesisError> {
        require("scale", scale, scale.is_finite() && scale > 0.0, "a finite number above 0")?;
        let documents = (self.num_documents as f64 * scale).round().max(1.0);
        self.num_documents = documents as usize;
        Ok(self)
    }

    /// Checks that a corpus can be generated from these parameters.
    ///
    /// # Errors
    /// [`SynthesisError::OutOfRange`] names the first field at fault.
    pub fn check(&self) -> Result<(), SynthesisError> {
        let within = |parameter, value: usize, most: usize, expected| {
            require(parameter, value as f64, (1..=most).contains(&value), expected)
        };
        within("num_documents", self.num_documents, MOST_DOCUMENTS, "1 to 268,435,456")?;
        within("num_words", self.num_words, MOST_WORDS, "1 to 16,777,216")?;
        within("num_topics", self.num_topics, MOST_TOPICS, "1 to 65,536")?;
        let s = self.zipf_exponent;
        require("zipf_exponent", s, (0.0..=10.0).contains(&s), "0 to 10")?;
        let c = self.concentration;
        let pieces = c * self.num_topics as f64 * 23.0;
        let expected = "0.001 to a value that times the topics is below 11 million";
        require("concentration", c, c >= 0.001 && pieces <= MOST_PIECES, expected)?;
        let a = self.alpha;
        require("alpha", a, (1e-6..=1e6).contains(&a), "0.000001 to 1,000,000")?;
        within("lengths", self.lengths.len(), 64, "1 to 64 modes")?;
        for &Lengths { weight, mean, sigma } in &self.lengths {
            require("lengths.weight", weight, (1e-6..=1e6).contains(&weight), "0.000001 to 10⁶")?;
            let longest = f64::from(LONGEST_DOCUMENT);
            require("lengths.mean", mean, (1.0..=longest).contains(&mean), "1 to 1,048,576")?;
            require("lengths.sigma", sigma, (0.0..=3.0).contains(&sigma), "0 to 3")?;
        }
        let expected = "fewer documents or shorter ones: a corpus holds 2^32 tokens";
        let tokens = self.num_documents as f64 * self.mean_length();
        require("num_documents * lengths.mean", tokens, tokens < MOST_TOKENS, expected)
    }

    /// Mean length over all modes.
    fn mean_length(&self) -> f64 {
        let weights: f64 = self.lengths.iter().map(|mode| mode.weight).sum();
        self.lengths.iter().map(|mode| mode.weight * mode.mean).sum::<f64>() / weights
    }

    /// Length of the longest possible document; a longer draw is cut to it.
    pub(super) fn longest_document() -> f64 {
        f64::from(LONGEST_DOCUMENT)
    }
}

fn require(
    parameter: &'static str,
    value: f64,
    holds: bool,
    expected: &'static str,
) -> Result<(), SynthesisError> {
    if holds { Ok(()) } else { Err(SynthesisError::OutOfRange { parameter, value, expected }) }
}

/// Corpora shaped like known ones.
///
/// The first three have about 9.9 million tokens at scale 1, of 200 topics of concentration 1,000 around
/// Zipf(1.07), with θ_d ~ Dirichlet(0.05). Their topics are close to each other, since they share the frequent
/// words: sparse samplers gain less than on real text. The last two have large sizes: a large vocabulary, and long
/// documents whose words are nearly all distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// NYTimes: 30,000 documents of 330 tokens.
    NytLike,
    /// PubMed abstracts: 110,000 documents of 90 tokens.
    PubmedLike,
    /// BaiKe of LDA* (table 1: mean length 148, "many long documents as well as many short
    /// documents"): 67,000 documents, of which 92 % have about 30 tokens and 8 % about 1,500; the
    /// long ones hold four fifths of the tokens.
    BaikeLike,
    /// Pages and queries of the web, 50 million tokens at scale 1: 10.5 million words of Zipf(1), of which a million
    /// occur, 1,000 topics of concentration 1,000, and 620,000 documents of mostly 20 to 200 tokens.
    WebLike,
    /// Cells of single-cell chromatin accessibility (cisTopic, Bravo González-Blas et al. 2019), 50 million tokens at
    /// scale 1: 600,000 regions of Zipf(0.4), 40 topics of concentration 40,000, and 1,750 cells of mostly 1,000 to
    /// 150,000 distinct regions with counts of 1 to 4.
    CellsLike,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 5] =
        [Self::NytLike, Self::PubmedLike, Self::BaikeLike, Self::WebLike, Self::CellsLike];

    /// The name on a command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::NytLike => "nytlike",
            Self::PubmedLike => "pubmedlike",
            Self::BaikeLike => "baikelike",
            Self::WebLike => "weblike",
            Self::CellsLike => "cellslike",
        }
    }

    /// Its parameters at scale 1.
    pub fn spec(self) -> Spec {
        let mode = |weight, mean, sigma| Lengths { weight, mean, sigma };
        let (num_documents, lengths) = match self {
            Self::NytLike => (30_000, vec![mode(1.0, 330.0, 0.7)]),
            Self::PubmedLike => (110_000, vec![mode(1.0, 90.0, 0.5)]),
            Self::BaikeLike => (67_000, vec![mode(0.92, 30.0, 0.5), mode(0.08, 1500.0, 0.4)]),
            Self::WebLike => (620_000, vec![mode(1.0, 80.0, 0.6)]),
            Self::CellsLike => (1_750, vec![mode(1.0, 28_600.0, 0.9)]),
        };
        let of_text = Spec {
            num_documents,
            num_words: 100_000,
            num_topics: 200,
            zipf_exponent: 1.07,
            concentration: 1_000.0,
            alpha: 0.05,
            lengths,
        };
        match self {
            Self::NytLike | Self::PubmedLike | Self::BaikeLike => of_text,
            Self::WebLike => Spec {
                num_words: 10_500_000,
                num_topics: 1_000,
                zipf_exponent: 1.0,
                alpha: 0.005,
                ..of_text
            },
            Self::CellsLike => Spec {
                num_words: 600_000,
                num_topics: 40,
                zipf_exponent: 0.4,
                concentration: 40_000.0,
                alpha: 0.1,
                ..of_text
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = SynthesisError;

    fn from_str(name: &str) -> Result<Self, SynthesisError> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| SynthesisError::UnknownPreset(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_legal_and_found_by_name() {
        for preset in Preset::ALL {
            assert_eq!(preset.spec().check(), Ok(()));
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        assert!("nyt".parse::<Preset>().unwrap_err().to_string().contains("pubmedlike"));
    }

    #[test]
    fn every_parameter_is_checked() {
        type Change = fn(&mut Spec);
        let changes: [(&str, Change); 13] = [
            ("num_documents * lengths.mean", |s| s.num_documents = 1 << 28),
            ("num_documents", |s| s.num_documents = 0),
            ("num_words", |s| s.num_words = usize::MAX),
            ("num_topics", |s| s.num_topics = 0),
            ("zipf_exponent", |s| s.zipf_exponent = f64::NAN),
            ("concentration", |s| s.concentration = 0.0),
            ("concentration", |s| s.concentration = 1e12),
            ("alpha", |s| s.alpha = -1.0),
            ("lengths", |s| s.lengths.clear()),
            ("lengths.weight", |s| s.lengths[0].weight = 0.0),
            ("lengths.mean", |s| s.lengths[0].mean = 0.5),
            ("lengths.sigma", |s| s.lengths[0].sigma = f64::INFINITY),
            ("lengths.mean", |s| s.lengths[0].mean = 1e9),
        ];
        for (name, change) in changes {
            let mut spec = Spec::default();
            change(&mut spec);
            match spec.check() {
                Err(SynthesisError::OutOfRange { parameter, .. }) => assert_eq!(parameter, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Spec::default().scaled(scale).is_err());
        }
        assert!(Spec::default().scaled(1e300).unwrap().check().is_err());
        assert_eq!(Spec::default().scaled(1e-9).unwrap().num_documents, 1);
    }
}
