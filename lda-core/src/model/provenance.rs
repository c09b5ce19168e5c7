//! Provenance of a model.

use crate::container::FileError;
use crate::container::pairs::{OPTION, Pairs};
use crate::prior::Alpha;

/// Prefix of the names of notes.
const NOTE: &str = "note.";

/// Origin of a model: the run, its corpus and notes, as far as known. Stored in the model file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Provenance {
    /// Options of the run by name, without α; empty if unknown.
    /// [`Resolved::from_provenance`](crate::train::Resolved::from_provenance) parses them.
    pub options: Vec<(String, String)>,
    /// α of the options of the run, which may have been learnt since.
    pub initial_alpha: Option<Alpha>,
    /// Epochs of the run.
    pub epochs: Option<u32>,
    /// Log joint per token at the last evaluation.
    pub log_joint: Option<f64>,
    /// Number of documents of the corpus.
    pub documents: Option<u64>,
    /// Number of tokens of the corpus.
    pub tokens: Option<u64>,
    /// [Fingerprint](crate::Corpus::fingerprint) of the corpus.
    pub corpus: Option<u64>,
    /// [Fingerprint](crate::train::PseudoCounts::fingerprint) of the pseudo-counts that the run had
    /// beside its corpus.
    pub pseudo_counts: Option<u64>,
    /// (name, text) notes of the program that made the model; names are distinct.
    pub notes: Vec<(String, String)>,
}

impl Provenance {
    pub(super) fn to_pairs(&self) -> Vec<(String, String)> {
        // The initial α has a section of its own.
        let Self {
            options,
            epochs,
            log_joint,
            documents,
            tokens,
            corpus,
            pseudo_counts,
            notes,
            ..
        } = self;
        let hex = |x: u64| format!("{x:016x}");
        let known = [
            ("epochs", epochs.map(|x| x.to_string())),
            ("log-joint", log_joint.map(|x| x.to_string())),
            ("documents", documents.map(|x| x.to_string())),
            ("tokens", tokens.map(|x| x.to_string())),
            ("corpus", corpus.map(hex)),
            ("pseudo-counts", pseudo_counts.map(hex)),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let options = options.iter();
        let options = options.map(|(name, value)| (format!("{OPTION}{name}"), value.clone()));
        let notes = notes.iter().map(|(name, value)| (format!("{NOTE}{name}"), value.clone()));
        known.chain(options).chain(notes).collect()
    }

    pub(super) fn from_pairs(about: &Pairs, initial_alpha: Alpha) -> Result<Self, FileError> {
        let options = about.under(OPTION).0;
        let initial_alpha = (!options.is_empty()).then_some(initial_alpha);
        let hex = |hex: &str| u64::from_str_radix(hex, 16).ok();
        Ok(Self {
            options,
            initial_alpha,
            epochs: about.read_if("epochs")?,
            log_joint: about.read_if("log-joint")?,
            documents: about.read_if("documents")?,
            tokens: about.read_if("tokens")?,
            corpus: about.parsed("corpus", hex)?,
            pseudo_counts: about.parsed("pseudo-counts", hex)?,
            notes: about.under(NOTE).0,
        })
    }
}
