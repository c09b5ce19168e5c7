//! Comparison of all counts with a recount.

use super::State;
use crate::corpus::Corpus;
use crate::counts::{Rows, TopicIndex};

/// Counts that differ from a recount of the assignments: a bug in a sampler, or damaged memory. Rows
/// are (topic, count) by ascending topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// A total C_k.
    #[error("C_k of topic {topic} is {found}, not {expected}")]
    Total {
        /// Topic k.
        topic: u32,
        /// C_k as the run holds it.
        found: u32,
        /// C_k by a recount.
        expected: u32,
    },
    /// A document's row C_d.
    #[error("C_d of document {document} is {found:?}, not {expected:?}")]
    Document {
        /// Document id.
        document: u32,
        /// The row as the run holds it.
        found: Vec<(u32, u32)>,
        /// The row by a recount.
        expected: Vec<(u32, u32)>,
    },
    /// A word's row C_w.
    #[error("C_w of word {word} is {found:?}, not {expected:?}")]
    Word {
        /// Word id.
        word: u32,
        /// The row as the run holds it.
        found: Vec<(u32, u32)>,
        /// The row by a recount.
        expected: Vec<(u32, u32)>,
    },
}

/// The compared rows of counts.
#[derive(Clone, Copy)]
enum Axis {
    Document,
    Word,
}

impl<T: TopicIndex> State<T> {
    /// Compares C_k and C_w with those of a state of the same words and topics, which were recounted.
    pub fn compare(&self, counted: &Self) -> Result<(), CountsError> {
        compare_totals(&self.totals, &counted.totals)?;
        for (range, (rows, recounted)) in self.word_rows.iter().zip(&counted.word_rows).enumerate()
        {
            for (row, &word) in self.words.words(range).iter().enumerate() {
                let mut expected = Vec::new();
                recounted.for_each(row, |topic, count| expected.push((topic, count)));
                if let Some((found, expected)) = difference(rows, row, expected) {
                    return Err(CountsError::Word { word, found, expected });
                }
            }
        }
        Ok(())
    }

    /// Compares all counts with a recount from the assignments.
    pub fn check(&self, corpus: &Corpus) -> Result<(), CountsError> {
        let mut totals = self.pseudo_totals();
        for set in &self.sets {
            for slot in 0..set.slots.num_tokens() {
                totals[set.topic(slot) as usize] += 1;
            }
        }
        compare_totals(&self.totals, &totals)?;
        let mut wrong = None;
        let mut compare = |axis: Axis, id: u32, rows: &Rows<T>, row, counts: &[(u32, u32)]| {
            if let Some((found, expected)) = difference(rows, row, counts.to_vec()) {
                wrong.get_or_insert(match axis {
                    Axis::Document => CountsError::Document { document: id, found, expected },
                    Axis::Word => CountsError::Word { word: id, found, expected },
                });
            }
        };
        for set in &self.sets {
            set.recount_documents(corpus, &self.words, self.topics, |range, local, counts| {
                if let Some(rows) = set.rows.get(range) {
                    compare(Axis::Document, set.slots.documents(range)[local], rows, local, counts);
                }
            });
        }
        self.recount_words(|range, local, counts| {
            if let Some(rows) = self.word_rows.get(range) {
                compare(Axis::Word, self.words.words(range)[local], rows, local, counts);
            }
        });
        wrong.map_or(Ok(()), Err)
    }
}

fn compare_totals(found: &[u32], expected: &[u32]) -> Result<(), CountsError> {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let error = |k| CountsError::Total { topic: k as u32, found: found[k], expected: expected[k] };
    differs.map_or(Ok(()), |k| Err(error(k)))
}

/// (topic, count) by ascending topic.
type Counts = Vec<(u32, u32)>;

/// A row and the counts expected in it, both by ascending topic; `None` if they are the same.
fn difference<T: TopicIndex>(
    rows: &Rows<T>,
    row: usize,
    mut expected: Counts,
) -> Option<(Counts, Counts)> {
    let mut found = Vec::with_capacity(expected.len());
    rows.for_each(row, |topic, count| found.push((topic, count)));
    found.sort_unstable();
    expected.sort_unstable();
    (found != expected).then_some((found, expected))
}
