//! Output of the arguments of `pyLDAvis.prepare` as JSON.
//!
//! ```python
//! with open("vis.json", encoding="utf-8") as file:
//!     page = pyLDAvis.prepare(**json.load(file))
//! ```
//!
//! Lengths and frequencies count the tokens in the model's vocabulary. `createJSON` of LDAvis in R calls
//! the same values phi, theta, doc.length, vocab and term.frequency.

use std::io::{self, Write};

use lda_core::Corpus;
use lda_core::infer::{Answer, Inference};
use lda_core::model::TopicModel;
use lda_examples::matrix::Matrix;

/// Writes the JSON of `corpus`, which has word ids of the model, and of its `answers`.
///
/// # Errors
/// Those of `out`.
pub fn write(
    inference: &Inference<&TopicModel>,
    corpus: &Corpus,
    answers: &[Answer],
    out: &mut impl Write,
) -> io::Result<()> {
    let model = inference.model();
    out.write_all(b"{\"topic_term_dists\":[")?;
    let mut first = true;
    Matrix::of_topics(model).for_each_row(|_, cells| {
        comma(&mut first, out)?;
        list(cells, out)
    })?;
    out.write_all(b"],\"doc_topic_dists\":[")?;
    first = true;
    for answer in answers {
        comma(&mut first, out)?;
        list(inference.distribution(answer), out)?;
    }
    out.write_all(b"],\"doc_lengths\":")?;
    list(answers.iter().map(|answer| answer.tokens), out)?;
    out.write_all(b",\"vocab\":[")?;
    first = true;
    for word in 0..model.num_words() {
        comma(&mut first, out)?;
        match model.vocabulary() {
            Some(vocabulary) => serde_json::to_writer(&mut *out, vocabulary.word(word as u32))?,
            None => write!(out, "\"{word}\"")?,
        }
    }
    out.write_all(b"],\"term_frequency\":")?;
    let mut frequencies = corpus.word_frequencies();
    frequencies.resize(model.num_words(), 0);
    list(frequencies, out)?;
    out.write_all(b"}\n")
}

fn comma(first: &mut bool, out: &mut impl Write) -> io::Result<()> {
    if std::mem::take(first) { Ok(()) } else { out.write_all(b",") }
}

fn list(numbers: impl IntoIterator<Item = impl ToString>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"[")?;
    let mut first = true;
    for number in numbers {
        comma(&mut first, out)?;
        out.write_all(number.to_string().as_bytes())?;
    }
    out.write_all(b"]")
}
