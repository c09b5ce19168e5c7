//! Diagnostics of the topics of a run: a table on standard output, or CSV.

use std::io::{self, Write};

use lda_core::Corpus;
use lda_core::eval::{Coherence, CoherenceOptions, Diagnostics, Measure, coherence, leading_words};
use lda_core::model::TopicModel;
use lda_core::train::Trainer;
use lda_examples::matrix::write_field;
use lda_examples::table::{largest_first, name};

use crate::commands::train::error::TrainError;

/// Diagnostics of a model by the most probable words of its topics.
#[derive(Debug)]
pub struct TopicDiagnostics<'a> {
    model: &'a TopicModel,
    words: Vec<Vec<u32>>,
    found: Diagnostics,
    /// Coherence by measure; C_V only of documents with an order of tokens.
    coherence: Vec<(&'static str, Coherence)>,
}

impl<'a> TopicDiagnostics<'a> {
    /// Measures the topics in the documents that they were trained on, by `words` words each.
    ///
    /// # Errors
    /// [`TrainError::Coherence`].
    pub fn new(
        trainer: &Trainer<&Corpus>,
        model: &'a TopicModel,
        words: usize,
    ) -> Result<Self, TrainError> {
        let corpus = trainer.corpus();
        let found = trainer.diagnose(words);
        let words = leading_words(model, words);
        let measure =
            |measure| coherence(corpus, &words, &CoherenceOptions::fitting(measure, corpus));
        let mut measures = Vec::new();
        if corpus.has_token_order() {
            measures.push(("c-v", measure(Measure::Cv)?));
        }
        measures.push(("npmi", measure(Measure::Npmi)?));
        measures.push(("u-mass", measure(Measure::UMass)?));
        Ok(Self { model, words, found, coherence: measures })
    }

    /// Prints the `limit` largest topics and the means over all topics.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn print(&self, limit: usize, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "topic  tokens  documents  effective-words  exclusivity")?;
        self.coherence.iter().try_for_each(|(name, _)| write!(out, "  {name:>7}"))?;
        writeln!(out)?;
        let totals: Vec<u64> = self.found.topics.iter().map(|topic| topic.tokens).collect();
        let number =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        for topic in largest_first(&totals).into_iter().take(limit) {
            let found = &self.found.topics[topic];
            write!(out, "{topic:>5}  {:>6}  {:>9}", found.tokens, found.documents)?;
            write!(out, "  {:>15.1}  {:>11.3}", found.effective_words, found.exclusivity)?;
            for (_, coherence) in &self.coherence {
                write!(out, "  {:>7}", number(coherence.topics[topic]))?;
            }
            writeln!(out)?;
        }
        for (name, coherence) in &self.coherence {
            write!(out, "mean {name} {}, ", number(coherence.mean()))?;
        }
        writeln!(out, "diversity {:.3}", self.found.diversity)
    }

    /// Writes a line per topic, after a comment with the options of the run.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, options: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "# options: {options}")?;
        write!(
            out,
            "topic,tokens,documents,effective-documents,effective-words,exclusivity,c-v,npmi,u-mass"
        )?;
        writeln!(out, ",words")?;
        let vocabulary = self.model.vocabulary();
        for (topic, found) in self.found.topics.iter().enumerate() {
            write!(out, "{topic},{},{}", found.tokens, found.documents)?;
            write!(out, ",{},{}", found.effective_documents, found.effective_words)?;
            write!(out, ",{}", found.exclusivity)?;
            for column in ["c-v", "npmi", "u-mass"] {
                let measured = self.coherence.iter().find(|(name, _)| *name == column);
                match measured.and_then(|(_, coherence)| coherence.topics[topic]) {
                    Some(value) => write!(out, ",{value}")?,
                    None => write!(out, ",")?,
                }
            }
            let words: Vec<String> =
                self.words[topic].iter().map(|&word| name(vocabulary, word)).collect();
            write!(out, ",")?;
            write_field(out, &words.join(" "))?;
            writeln!(out)?;
        }
        Ok(())
    }
}
