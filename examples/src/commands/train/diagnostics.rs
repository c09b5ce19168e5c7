//! Diagnostics of the topics of a run: a table on standard output, or CSV.

use std::io::{self, Write};

use lda_core::Corpus;
use lda_core::corpus::blocks::Blocks;
use lda_core::eval::{
    self, Coherence, CoherenceOptions, Diagnostics, Measure, Window, leading_words,
};
use lda_core::model::TopicModel;
use lda_core::train::Trainer;
use lda_core::train::blocks::BlockTrainer;
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
        let mut coherence = Vec::new();
        for (name, measure) in measures(corpus.has_token_order()) {
            let options = CoherenceOptions::fitting(measure, corpus);
            coherence.push((name, eval::coherence(corpus, &words, &options)?));
        }
        Ok(Self { model, words, found, coherence })
    }

    /// Measures the topics in the documents of blocks, which have no order of tokens. All blocks are read.
    ///
    /// # Errors
    /// [`TrainError::Blocks`], and of the files of the blocks.
    pub fn of_blocks<B: Blocks>(
        trainer: &mut BlockTrainer<B>,
        model: &'a TopicModel,
        words: usize,
    ) -> Result<Self, TrainError> {
        let found = trainer.diagnose(words)?;
        let words = leading_words(model, words);
        let mut coherence = Vec::new();
        for (name, measure) in measures(false) {
            let window = Some(Window::Documents);
            let options = CoherenceOptions { window, ..CoherenceOptions::new(measure) };
            coherence.push((name, trainer.coherence(&words, &options)?));
        }
        Ok(Self { model, words, found, coherence })
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

/// Measures of coherence by the name of their column; C_V needs the order of the tokens.
fn measures(has_order: bool) -> impl Iterator<Item = (&'static str, Measure)> {
    let all = [("c-v", Measure::Cv), ("npmi", Measure::Npmi), ("u-mass", Measure::UMass)];
    all.into_iter().skip(usize::from(!has_order))
}
