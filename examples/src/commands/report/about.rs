//! The section "About" of a page: its provenance.

use std::path::Path;

use lda_core::Corpus;
use lda_core::eval::approximate::LEADING;
use lda_core::model::TopicModel;
use lda_core::prior::Alpha;

use crate::commands::report::args::Args;
use crate::commands::report::contents::{CorpusSize, Section};
use crate::commands::report::curve::file_name;
use crate::commands::report::similar::Similar;

/// Inputs of a page.
pub struct Origin<'a> {
    pub args: &'a Args,
    pub model: &'a TopicModel,
    pub corpus: &'a Corpus,
    pub size: &'a CorpusSize,
    pub similar: &'a Similar,
    /// Number of documents in the page.
    pub shown: usize,
}

impl Origin<'_> {
    /// The tables of the section.
    pub fn sections(&self) -> Vec<Section> {
        let sections = [
            ("Model", self.model()),
            ("Training options", self.options()),
            ("Documents", self.documents()),
            ("This page", self.page()),
        ];
        let filled = sections.into_iter().filter(|(_, rows)| !rows.is_empty());
        filled.map(|(title, rows)| Section { title, rows }).collect()
    }

    fn model(&self) -> Vec<(String, String)> {
        let (model, provenance) = (self.model, self.model.provenance());
        let kind = if model.counts().is_some() { "counts" } else { "probabilities" };
        let mut rows = vec![
            row("file", file_name(&self.args.model)),
            row("topics", model.num_topics()),
            row("words", model.num_words()),
            row("contains", kind),
            row("alpha", alpha(model.alpha())),
        ];
        rows.extend(model.counts().map(|counts| row("beta", counts.beta())));
        rows.extend(provenance.epochs.map(|x| row("epochs", x)));
        rows.extend(provenance.log_joint.map(|x| row("log joint likelihood per token", x)));
        rows.extend(provenance.documents.map(|x| row("documents trained on", x)));
        rows.extend(provenance.tokens.map(|x| row("tokens trained on", x)));
        rows.extend(
            provenance.corpus.map(|x| row("fingerprint of these documents", format!("{x:016x}"))),
        );
        // The page may go to others: names of files, not the directories of this machine.
        rows.extend(provenance.notes.iter().map(|(name, value)| match name.as_str() {
            "input" => row(name, file_name(Path::new(value))),
            _ => row(name, value),
        }));
        rows
    }

    fn options(&self) -> Vec<(String, String)> {
        // Without α, which is in the table of the model and may have one value per topic.
        self.model.provenance().options.clone()
    }

    fn documents(&self) -> Vec<(String, String)> {
        let fingerprint = self.corpus.fingerprint();
        let same = match self.model.provenance().corpus {
            Some(trained) if trained == fingerprint => "yes",
            Some(_) => "no",
            None => "unknown",
        };
        vec![
            row("file", file_name(&self.args.path)),
            row("documents", self.size.documents),
            row("tokens of known words", self.size.tokens),
            row("tokens of unknown words, left out", self.size.unknown),
            row("fingerprint", format!("{fingerprint:016x}")),
            row("model was trained on them", same),
        ]
    }

    fn page(&self) -> Vec<(String, String)> {
        vec![
            row("program", format!("lda report {}", env!("CARGO_PKG_VERSION"))),
            row("inference method", self.args.inference.method.name()),
            row("seed", self.args.inference.method.seed),
            row("documents shown", format!("{} of {}", self.shown, self.size.documents)),
            row("maximum words per document", self.args.document_words),
            row("stress of the map", format!("{:.3}", self.similar.stress)),
            row(
                "distances of topics",
                match self.similar.is_approximate {
                    true => format!("by the {LEADING} leading words of each topic"),
                    false => "exact".to_owned(),
                },
            ),
        ]
    }
}

fn row(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn alpha(alpha: &Alpha) -> String {
    match alpha {
        Alpha::Symmetric(alpha) => alpha.to_string(),
        Alpha::PerTopic(all) => {
            format!("one per topic, {:.4} in total", all.iter().sum::<f64>())
        }
    }
}
