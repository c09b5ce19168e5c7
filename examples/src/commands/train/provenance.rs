//! Where a result comes from: every output says it.

use std::ffi::OsStr;
use std::path::Path;

use lda_core::Corpus;
use lda_core::prior::Alpha;
use lda_core::train::Resolved;
use lda_examples::json::ascii_line;
use serde::Serialize;

use crate::commands::train::basis::BasisArgs;

/// The program, the resolved options and the input. Two runs that agree in it agree in every bit
/// of their results; neither clock nor number of threads is in it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Provenance {
    program: &'static str,
    #[serde(flatten)]
    resolved: Resolved,
    /// Epochs sampled; absent in lines of the log, which have their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u32>,
    evaluate_every: u32,
    input: Input,
}

/// What was trained on.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    /// The path as given, or what stands for it.
    pub path: String,
    /// File of the words' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<String>,
    /// How it was read, as far as options say so.
    pub reading: serde_json::Value,
    /// Share of the documents kept out of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// What it began with, where this run began.
    #[serde(flatten)]
    pub basis: Option<Basis>,
    /// Hash of the pseudo-counts that this came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pseudo_counts: Option<String>,
    documents: usize,
    words: usize,
    tokens: u64,
    /// Hash of the documents trained on.
    fingerprint: String,
}

/// What a run began with, beside its documents.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum Basis {
    /// A model.
    Model {
        /// Its file.
        from: String,
        /// Share of its counts.
        from_share: f64,
    },
    /// Words of topics.
    Seeds {
        /// Their file.
        seed_topics: String,
        /// Tokens that each counts as.
        seed_weight: u32,
    },
}

impl Basis {
    /// As the command line says.
    pub fn of(args: &BasisArgs) -> Option<Self> {
        let BasisArgs { from, from_share, seed_topics, seed_weight } = args;
        let text = |path: &Path| path.display().to_string();
        let model = from.as_deref().map(|from| (text(from), *from_share));
        let seeds = seed_topics.as_deref().map(|seeds| (text(seeds), *seed_weight));
        match (model, seeds) {
            (Some((from, from_share)), _) => Some(Self::Model { from, from_share }),
            (None, Some((seed_topics, seed_weight))) => {
                Some(Self::Seeds { seed_topics, seed_weight })
            }
            (None, None) => None,
        }
    }
}

impl Input {
    /// Describes `corpus`, which came from `path`.
    pub fn new(path: String, corpus: &Corpus, reading: serde_json::Value) -> Self {
        let mut input = Self {
            path,
            vocabulary: None,
            reading,
            held_out: None,
            basis: None,
            pseudo_counts: None,
            documents: 0,
            words: 0,
            tokens: 0,
            fingerprint: String::new(),
        };
        input.measure(corpus);
        input
    }

    /// Takes the sizes of `corpus`.
    pub fn measure(&mut self, corpus: &Corpus) {
        self.documents = corpus.num_documents();
        self.words = corpus.num_words();
        self.tokens = corpus.num_tokens();
        self.fingerprint = format!("{:016x}", corpus.fingerprint());
    }
}

impl Provenance {
    /// Of a run that starts.
    pub fn new(resolved: &Resolved, evaluate_every: u32, input: Input) -> Self {
        let resolved = resolved.clone();
        Self { program: "train", resolved, epochs: None, evaluate_every, input }
    }

    /// Of a run that ended after so many epochs.
    pub fn after(mut self, epochs: u32) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// What a model's file says of itself, beside what the library knows.
    pub fn of_model(&self, known: &lda_core::model::Provenance) -> lda_core::model::Provenance {
        let mut notes = vec![
            ("program".to_owned(), format!("{} {}", self.program, env!("CARGO_PKG_VERSION"))),
            ("input".to_owned(), self.input.path.clone()),
        ];
        if let Some(share) = self.input.held_out {
            notes.push(("held-out".to_owned(), share.to_string()));
        }
        let mut provenance = known.clone();
        provenance.notes = notes;
        provenance
    }

    /// What was trained on, in a few words.
    pub fn title(&self) -> String {
        let path = Path::new(&self.input.path);
        let name = path.file_name().map_or(self.input.path.as_str().into(), OsStr::to_string_lossy);
        let topics = self.resolved.topics;
        format!("{name}: {topics} topic{}", if topics == 1 { "" } else { "s" })
    }

    /// The options and sizes that a person asks for first.
    pub fn caption(&self) -> String {
        let Self { program, resolved, input, .. } = self;
        let alpha = match &resolved.alpha {
            Alpha::Symmetric(alpha) => short(*alpha),
            Alpha::PerTopic(_) => "per topic".to_owned(),
        };
        let warm_up = match resolved.warm_up {
            0 => String::new(),
            epochs => format!(" after {epochs} epochs of warp"),
        };
        let mut caption = format!(
            "{program} {}: {} sampler{warm_up}, {} topics, alpha {alpha}, beta {}, seed {}, {}",
            resolved.version,
            resolved.sampler,
            resolved.topics,
            short(resolved.beta),
            resolved.seed,
            resolved.isa
        );
        if let Some(epochs) = self.epochs {
            caption.push_str(&format!(", {epochs} epochs"));
        }
        let Input { documents, words, tokens, .. } = input;
        caption.push_str(&format!("; {words} words, {tokens} tokens, {documents} documents"));
        if let Some(share) = input.held_out {
            caption.push_str(&format!(", {share} of them held out"));
        }
        caption
    }

    /// One line of JSON, all ASCII: it fits a comment of any format.
    pub fn to_json(&self) -> String {
        ascii_line(self)
    }
}

/// Four digits of a number, for a person: 50/3 is 16.67.
fn short(value: f64) -> String {
    format!("{value:.3e}").parse::<f64>().map_or_else(|_| value.to_string(), |v| v.to_string())
}

#[cfg(test)]
mod tests {
    use lda_core::train::TrainOptions;

    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [50.0 / 3.0, 50.0 / 1e6, 0.01, 50.0].map(short);
        assert_eq!(shown, ["16.67", "0.00005", "0.01", "50"]);
    }

    #[test]
    fn json_is_ascii_and_parses_back() {
        let corpus = Corpus::from_words([["a", "b"]]).unwrap();
        let resolved = TrainOptions::default().resolve(&corpus).unwrap();
        let path = "dír/\u{1f600}\n\u{7f}";
        let input = Input::new(path.to_owned(), &corpus, serde_json::json!({}));
        let json = Provenance::new(&resolved, 10, input).after(3).to_json();
        assert!(json.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["input"]["path"], path);
        assert_eq!((&value["topics"], &value["epochs"]), (&100.into(), &3.into()));
        assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    }
}
