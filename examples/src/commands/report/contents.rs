//! Data of a page, serialized as JSON for its script.
//!
//! Words, titles and paths are data here and text in the page, never markup. Fields that end in `codes`
//! are [encoded](crate::commands::report::encode).

use serde::Serialize;

/// All data of a page.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Name of the document file.
    pub title: String,
    /// Words in some list or document, by ascending word id of the model.
    pub words: Vec<String>,
    /// Number of tokens of each of these words in all topics.
    pub frequency_codes: String,
    pub counts: CountsScale,
    /// By number.
    pub topics: Vec<Topic>,
    /// Ascending.
    pub documents: Vec<Document>,
    pub corpus: CorpusSize,
    /// Kruskal's stress of the map.
    pub stress: f64,
    /// Measure and windows of the topics' coherence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coherence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    pub curves: Vec<Curve>,
    pub about: Vec<Section>,
}

/// Smoothing that turns counts into probabilities.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountsScale {
    /// φ = (count + beta) / (total of the topic + beta_sum).
    pub beta: f64,
    pub beta_sum: f64,
    /// Number of tokens of all topics.
    pub tokens: u64,
    /// Whether counts are token counts; otherwise they are scaled real numbers.
    pub exact: bool,
    /// Number of words in a list.
    pub shown: usize,
    /// Number of steps of λ from 0 to 1 at which lists are exact.
    pub steps: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Topic {
    /// Name that the user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Coherence of its top words in the documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coherence: Option<f64>,
    /// Tokens.
    pub total: u64,
    /// Coordinates in the map, in thousandths.
    pub place: [i32; 2],
    /// (gap to the word before, count) of the candidates.
    pub word_codes: String,
    /// (index in the documents, share in thousandths), most typical first.
    pub document_codes: String,
    /// (topic, distance in thousandths), nearest first.
    pub near: Vec<(u32, u32)>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Its number in the corpus, from 0.
    pub number: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Beginning of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Number of tokens in the model's vocabulary.
    pub tokens: u64,
    /// Number of other tokens.
    pub unknown: u64,
    /// (topic, share in thousandths), largest first.
    pub topic_codes: String,
    /// (gap to the previous word, index of the topic in `topic_codes`, tokens) for each word shown.
    pub word_codes: String,
    /// Index of the word of each token, if the word order is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_codes: Option<String>,
}

/// Sizes of the corpus.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CorpusSize {
    pub documents: usize,
    /// Number of tokens in the model's vocabulary.
    pub tokens: u64,
    /// Number of other tokens.
    pub unknown: u64,
}

/// Shares of topics over time.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Time {
    /// Length of a bin: `month`, `year`, ...
    pub unit: &'static str,
    /// Names of the bins, without gaps.
    pub bins: Vec<String>,
    /// Number of tokens per bin.
    pub tokens: Vec<u64>,
    /// Share of the tokens of each bin, in hundredths of a percent, by topic.
    pub share_codes: Vec<String>,
}

/// Likelihood curve of a run.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    pub name: String,
    /// Main options of the run, for people.
    pub caption: String,
    pub epochs: Vec<u32>,
    pub seconds: Vec<f64>,
    /// (epoch, seconds, log joint likelihood per token).
    pub values: Vec<f64>,
    /// (epoch, seconds, held-out perplexity); empty without held-out documents.
    pub perplexity: Vec<(u32, f64, f64)>,
    /// (epoch, seconds, sampler) of the first evaluated epoch of each sampler but the first.
    pub changes: Vec<(u32, f64, String)>,
}

/// A table of names and values.
#[derive(Debug, PartialEq, Serialize)]
pub struct Section {
    pub title: &'static str,
    pub rows: Vec<(String, String)>,
}
