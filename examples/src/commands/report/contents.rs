//! What a page shows, as its script reads it.
//!
//! Names of words, titles and paths are data here and text in the page, never markup. Fields that end
//! in `codes` are [encoded](crate::commands::report::encode).

use serde::Serialize;

/// All of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Name of the documents' file.
    pub title: String,
    /// Words that some list or document holds, ascending in the model's ids.
    pub words: Vec<String>,
    /// Tokens of each of them in all topics.
    pub frequency_codes: String,
    pub counts: CountsScale,
    /// By number.
    pub topics: Vec<Topic>,
    /// Ascending.
    pub documents: Vec<Document>,
    pub corpus: CorpusSize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    pub curves: Vec<Curve>,
    pub about: Vec<Section>,
}

/// What makes probabilities of counts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountsScale {
    /// φ = (count + beta) / (total of the topic + beta_sum).
    pub beta: f64,
    pub beta_sum: f64,
    /// Tokens of all topics.
    pub tokens: u64,
    /// Whether counts are of tokens; else they stand for real numbers.
    pub exact: bool,
    /// Words a list shows.
    pub shown: usize,
    /// Steps of λ from 0 to 1 at which lists are right.
    pub steps: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Topic {
    /// Tokens.
    pub total: u64,
    /// Place in the plane, in thousandths.
    pub place: [i32; 2],
    /// (gap to the word before, count) of the candidates.
    pub word_codes: String,
    /// (place among the documents, share in thousandths), most typical first.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Tokens of words that the model knows.
    pub tokens: u64,
    /// Of words that it does not.
    pub unknown: u64,
    /// (topic, share in thousandths), largest first.
    pub topic_codes: String,
    /// (gap to the word before, which of the topics, tokens) of the words shown.
    pub word_codes: String,
    /// Where the order is known: which of the words, token by token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_codes: Option<String>,
}

/// Sizes of what was read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CorpusSize {
    pub documents: usize,
    /// Tokens of words that the model knows.
    pub tokens: u64,
    /// Of words that it does not.
    pub unknown: u64,
}

/// Shares of topics over time.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Time {
    /// What a bin is: `month`, `year`, ...
    pub unit: &'static str,
    /// Names of the bins, none left out.
    pub bins: Vec<String>,
    /// Tokens of each.
    pub tokens: Vec<u64>,
    /// By topic: its share of the tokens of each bin, in hundredths of a per cent.
    pub share_codes: Vec<String>,
}

/// How a run went.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    pub name: String,
    /// What it was, in a few words.
    pub caption: String,
    pub epochs: Vec<u32>,
    pub seconds: Vec<f64>,
    /// Log joint likelihood a token.
    pub values: Vec<f64>,
    /// (epoch, seconds, perplexity of held-out documents), where there were some.
    pub perplexity: Vec<(u32, f64, f64)>,
}

/// A table of names and values.
#[derive(Debug, PartialEq, Serialize)]
pub struct Section {
    pub title: &'static str,
    pub rows: Vec<(String, String)>,
}
