//! The topic of every token, as written by a baseline.
//!
//! ```text
//! assignments D V K
//! word:topic word:topic ...      one line per document, empty without tokens; ids from 0
//! ```
//!
//! A baseline's counts are accepted only if they match the corpus: every document must have its own
//! words with the right counts. Reading is bounded by the size of the corpus.

use std::io::BufRead;
use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};

use super::lines::Lines;

/// Longest header, and longest token with its blank: two ids of ten digits.
const HEADER: usize = 64;
const TOKEN: usize = 22;

/// Topics of all tokens, and the counts derived from them.
#[derive(Debug)]
pub(super) struct Assignments {
    num_topics: usize,
    /// Topics by document, within a document by ascending word.
    topics: Vec<u32>,
    /// `topics[starts[d]..starts[d + 1]]` belong to document d.
    starts: Vec<usize>,
    /// `entries[offsets[w]..offsets[w + 1]]` is the row of word w: (topic, tokens), topics
    /// ascending.
    offsets: Vec<usize>,
    entries: Vec<(u32, u32)>,
    totals: Vec<u64>,
}

impl Assignments {
    /// Reads the topics of the corpus's tokens.
    ///
    /// # Errors
    /// The first malformed line, and what is wrong with it.
    pub(super) fn read(reader: impl BufRead, corpus: &Corpus, topics: u32) -> Result<Self, String> {
        let (documents, words) = (corpus.num_documents(), corpus.num_words());
        let mut lines = Lines::new(reader);
        let expected = format!("assignments {documents} {words} {topics}");
        let header = lines.expect(HEADER, "the header")?;
        if header != expected {
            return Err(format!(
                "line 1: the header is {header:?}, but this run needs {expected:?}"
            ));
        }
        let tokens = corpus.num_tokens() as usize;
        let mut starts = vec![0];
        // Sorted by word, the pairs give the word rows.
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(tokens);
        for d in 0..documents {
            let length = corpus.doc_length(d) as usize;
            let line = lines.expect(length.saturating_mul(TOKEN) + HEADER, "the last document")?;
            let start = pairs.len();
            let outcome = document(line, length, topics, &mut pairs).and_then(|()| {
                pairs[start..].sort_unstable();
                agree(&pairs[start..], corpus.document(d).iter())
            });
            let number = lines.number();
            outcome.map_err(|error| format!("line {number}, document {d}: {error}"))?;
            starts.push(pairs.len());
        }
        lines.end()?;
        Ok(Self::new(pairs, starts, words, topics as usize))
    }

    fn new(
        mut pairs: Vec<(u32, u32)>,
        starts: Vec<usize>,
        words: usize,
        num_topics: usize,
    ) -> Self {
        let topics = pairs.iter().map(|&(_, topic)| topic).collect();
        pairs.sort_unstable();
        let (mut offsets, mut entries) = (vec![0; words + 1], Vec::new());
        let mut totals = vec![0u64; num_topics];
        for run in pairs.chunk_by(|a, b| a == b) {
            let (word, topic) = run[0];
            // A word's tokens in a document fit 32 bits; in the corpus they may not.
            entries.push((topic, u32::try_from(run.len()).unwrap_or(u32::MAX)));
            offsets[word as usize + 1] += 1;
            totals[topic as usize] += run.len() as u64;
        }
        for w in 0..words {
            offsets[w + 1] += offsets[w];
        }
        Self { num_topics, topics, starts, offsets, entries, totals }
    }

    /// Topics of a document's tokens, by ascending word.
    pub(super) fn document(&self, d: usize) -> &[u32] {
        &self.topics[self.starts[d]..self.starts[d + 1]]
    }
}

/// Appends (word, topic) of each token of a line.
fn document(
    line: &str,
    length: usize,
    topics: u32,
    pairs: &mut Vec<(u32, u32)>,
) -> Result<(), String> {
    let mut found = 0;
    for token in line.split_ascii_whitespace() {
        found += 1;
        if found > length {
            return Err(format!("more tokens than the {length} of the corpus"));
        }
        let ids = token.split_once(':').and_then(|(w, k)| Some((w.parse().ok()?, k.parse().ok()?)));
        let Some((word, topic)) = ids else {
            return Err(format!("{token:?} is not a token: write word:topic"));
        };
        if topic >= topics {
            return Err(format!("topic {topic} is not below {topics}"));
        }
        pairs.push((word, topic));
    }
    if found < length {
        return Err(format!("{found} tokens, but {length} in the corpus"));
    }
    Ok(())
}

/// Whether sorted pairs contain the document's words with the right counts.
fn agree(
    pairs: &[(u32, u32)],
    mut document: impl Iterator<Item = (u32, u32)>,
) -> Result<(), String> {
    for run in pairs.chunk_by(|a, b| a.0 == b.0) {
        let found = (run[0].0, run.len() as u64);
        let expected = document.next();
        if expected.is_none_or(|(word, count)| (word, u64::from(count)) != found) {
            let (word, count) = found;
            return Err(format!("word {word} occurs {count} times, unlike in the corpus"));
        }
    }
    Ok(())
}

impl DocumentCounts for Assignments {
    fn num_topics(&self) -> usize {
        self.num_topics
    }

    fn num_documents(&self) -> usize {
        self.starts.len() - 1
    }

    fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>) {
        let (mut topics, mut row) = (Vec::new(), Vec::new());
        for d in documents {
            topics.clear();
            topics.extend_from_slice(self.document(d));
            topics.sort_unstable();
            row.clear();
            row.extend(topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
            visit(d, &row);
        }
    }
}

impl WordCounts for Assignments {
    fn num_topics(&self) -> usize {
        self.num_topics
    }

    fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        for word in words {
            visit(word, &self.entries[self.offsets[word]..self.offsets[word + 1]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use lda_core::eval::log_joint;
    use lda_core::train::{TrainOptions, Trainer};
    use proptest::prelude::*;

    use super::*;

    /// Documents [0 0 2], [], [1 2 2].
    fn corpus() -> Corpus {
        Corpus::from_tokens([vec![0, 0, 2], vec![], vec![1, 2, 2]]).unwrap()
    }

    fn read(text: &str) -> Result<Assignments, String> {
        Assignments::read(text.as_bytes(), &corpus(), 2)
    }

    #[test]
    fn topics_come_in_the_order_of_words() {
        let found = read("assignments 3 3 2\n2:1 0:1 0:0\n\n2:1 1:0 2:0\n").unwrap();
        assert_eq!(found.document(0), [0, 1, 1]);
        assert_eq!((found.document(1), found.document(2)), (&[][..], &[0, 0, 1][..]));
        let mut rows = Vec::new();
        found.visit_words(0..3, &mut |word, row| rows.push((word, row.to_vec())));
        let expected = [(0, vec![(0, 1), (1, 1)]), (1, vec![(0, 1)]), (2, vec![(0, 1), (1, 2)])];
        assert_eq!(rows, expected);
        assert_eq!(found.totals, [3, 3]);
    }

    #[test]
    fn the_log_joint_is_that_of_the_same_topics_in_training() {
        let corpus = Corpus::from_tokens((0..20u32).map(|d| (0..9).map(move |i| (d * i) % 7)));
        let corpus = corpus.unwrap();
        let options = TrainOptions::new(5);
        let mut trainer = Trainer::new(&corpus, &options).unwrap();
        trainer.epoch();
        let assignments = trainer.assignments();
        let mut text = "assignments 20 7 5\n".to_owned();
        for (d, document) in corpus.documents().enumerate() {
            let words = document.iter().flat_map(|(w, n)| std::iter::repeat_n(w, n as usize));
            let tokens = words.zip(assignments.document(d)).map(|(w, k)| format!("{w}:{k}"));
            let mut tokens: Vec<String> = tokens.collect();
            // The order within a line is free.
            tokens.rotate_left(d % 9);
            text += &format!("{}\n", tokens.join(" "));
        }
        let found = Assignments::read(text.as_bytes(), &corpus, 5).unwrap();
        let (alpha, beta) = trainer.priors();
        let joint = log_joint(&found, &alpha, beta).unwrap();
        assert!((joint.total() - trainer.log_joint().total()).abs() < 1e-9);
    }

    #[test]
    fn errors_name_their_line() {
        for (text, expected) in [
            ("", "line 1: the file ends before the header"),
            ("assignments 3 3 9\n", "line 1: the header is"),
            ("assignments 3 3 2\n0:0 0:0 2:1\n\n", "line 4: the file ends"),
            ("assignments 3 3 2\n0:0 0:0\n\n1:0 2:0 2:0\n", "line 2, document 0: 2 tokens"),
            ("assignments 3 3 2\n0:0 0:0 2:0 2:0\n", "line 2, document 0: more tokens"),
            ("assignments 3 3 2\n0:0 0:0 1:0\n", "line 2, document 0: word 1 occurs 1 times"),
            ("assignments 3 3 2\n0:0 0:0 2:2\n", "line 2, document 0: topic 2 is not below 2"),
            ("assignments 3 3 2\n0:0 0:0 2:-1\n", "\"2:-1\" is not a token"),
            ("assignments 3 3 2\n0:0 0:0 9:1\n", "word 9 occurs 1 times"),
            ("assignments 3 3 2\n0:0 0:0 2:1\n0:1\n", "line 3, document 1: more tokens"),
            ("assignments 3 3 2\n0:0 0:0 2:0\n\n1:0 2:0 2:0\n1:1\n", "line 5: more lines"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let endless = format!("assignments 3 3 2\n{}", " ".repeat(1 << 20));
        assert!(
            read(&endless).unwrap_err().contains("line 2: longer than the maximum of 130 bytes")
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Assignments::read(&bytes[..], &corpus(), 2);
            let mut text = b"assignments 3 3 2\n".to_vec();
            text.extend(bytes);
            let _ = Assignments::read(&text[..], &corpus(), 2);
        }

        #[test]
        fn nearly_valid_input_is_read_or_refused(
            lines in proptest::collection::vec("([0-4]:[0-3] ?){0,5}", 0..5),
        ) {
            let text = format!("assignments 3 3 2\n{}\n", lines.join("\n"));
            if let Ok(found) = read(&text) {
                prop_assert_eq!(found.totals.iter().sum::<u64>(), 6);
                prop_assert_eq!(found.topics.len(), 6);
            }
        }
    }
}
