//! Provenance of a result, which every output contains.

use std::ffi::OsStr;
use std::path::Path;

use lda_core::Corpus;
use lda_core::corpus::blocks::Blocks;
use lda_core::prior::Alpha;
use lda_core::train::Resolved;
use lda_examples::json::ascii_line;
use serde::Serialize;

use crate::commands::train::args::InitArgs;

/// The program, the resolved options and the input. Two runs with equal provenance have bit-identical
/// results; it contains neither the time nor the number of threads.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Provenance {
    program: &'static str,
    #[serde(flatten)]
    resolved: Resolved,
    /// Number of epochs; absent in lines of the log, which have their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u32>,
    evaluate_every: u32,
    input: Input,
}

/// Description of the training documents.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    /// Path as given, or the name of the Rust sources.
    pub path: String,
    /// Vocabulary file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<String>,
    /// Options of the reader.
    pub reading: serde_json::Value,
    /// Share of the documents kept out of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Initialization; absent if the run was resumed.
    #[serde(flatten)]
    pub init: Option<Init>,
    /// Hash of the pseudo-counts of the initialization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pseudo_counts: Option<String>,
    documents: usize,
    words: usize,
    tokens: u64,
    /// Hash of the training documents.
    fingerprint: String,
}

/// Initialization of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum Init {
    /// An existing model.
    Model {
        /// File of the model.
        from: String,
        /// Share of its counts that are kept.
        from_share: f64,
    },
    /// Seed words of topics.
    Seeds {
        /// File of the seed words.
        seed_topics: String,
        /// Weight of each seed word, in tokens.
        seed_weight: u32,
    },
}

impl Init {
    /// The initialization that the options select; `None` for a random one.
    pub fn of(args: &InitArgs) -> Option<Self> {
        let InitArgs { from, from_share, seed_topics, seed_weight } = args;
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
    /// Describes `corpus`, which was read from `path`.
    pub fn new(path: String, corpus: &Corpus, reading: serde_json::Value) -> Self {
        let mut input = Self::without_sizes(path, reading);
        input.measure(corpus);
        input
    }

    /// Describes the documents of blocks.
    pub fn of_blocks(path: String, blocks: &impl Blocks, fingerprint: u64) -> Self {
        let (statistics, reading) =
            (blocks.statistics(), serde_json::json!({ "blocks": blocks.parts().len() }));
        Self {
            documents: statistics.num_documents() as usize,
            words: statistics.num_words(),
            tokens: statistics.num_tokens(),
            fingerprint: format!("{fingerprint:016x}"),
            ..Self::without_sizes(path, reading)
        }
    }

    fn without_sizes(path: String, reading: serde_json::Value) -> Self {
        Self {
            path,
            vocabulary: None,
            reading,
            held_out: None,
            init: None,
            pseudo_counts: None,
            documents: 0,
            words: 0,
            tokens: 0,
            fingerprint: String::new(),
        }
    }

    /// Sets sizes and fingerprint to those of `corpus`.
    pub fn measure(&mut self, corpus: &Corpus) {
        self.documents = corpus.num_documents();
        self.words = corpus.num_words();
        self.tokens = corpus.num_tokens();
        self.fingerprint = format!("{:016x}", corpus.fingerprint());
    }
}

impl Provenance {
    /// Provenance of a run that starts.
    pub fn new(resolved: &Resolved, evaluate_every: u32, input: Input) -> Self {
        let resolved = resolved.clone();
        Self { program: "train", resolved, epochs: None, evaluate_every, input }
    }

    /// Provenance of a run that ended after `epochs` epochs; `resolved` has the warm-up that it had.
    pub fn after(mut self, resolved: &Resolved, epochs: u32) -> Self {
        self.resolved.warm_up = resolved.warm_up.min(epochs);
        self.epochs = Some(epochs);
        self
    }

    /// Provenance for a model file: `known` from the library, and notes of this program.
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

    /// Title for a plot: file name and number of topics.
    pub fn title(&self) -> String {
        let path = Path::new(&self.input.path);
        let name = path.file_name().map_or(self.input.path.as_str().into(), OsStr::to_string_lossy);
        let topics = self.resolved.topics;
        format!("{name}: {topics} topic{}", if topics == 1 { "" } else { "s" })
    }

    /// The main options and sizes, for people.
    pub fn caption(&self) -> String {
        let Self { program, resolved, input, .. } = self;
        let alpha = match &resolved.alpha {
            Alpha::Symmetric(alpha) => short(*alpha),
            Alpha::PerTopic(_) => "per topic".to_owned(),
        };
        let warm_up = match resolved.warm_up {
            0 => String::new(),
            epochs if self.epochs == Some(epochs) => {
                " not reached: all epochs are of warp".to_owned()
            }
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

    /// One line of ASCII JSON, which fits in a comment of any format.
    pub fn to_json(&self) -> String {
        ascii_line(self)
    }
}

/// Formats a number with four digits: 50/3 is 16.67.
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
        let json = Provenance::new(&resolved, 10, input).after(&resolved, 3).to_json();
        assert!(json.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["input"]["path"], path);
        assert_eq!((&value["topics"], &value["epochs"]), (&100.into(), &3.into()));
        assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    }
}
