//! A wrapper that recounts: whatever a sampler says it did to a block must be what it did.

use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::{Order, RowRun};
use lda_core::sampler::{
    Block, Column, Context, DocumentBlock, GridBlock, Outcome, Pass, Requires, Sampler, WordBlock,
};

use crate::driver::entries;

/// Checks after each block that topics are below K, that rows changed exactly as the assignments
/// did and nowhere else, and that the outcome's totals and counters say the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paranoid<S>(pub S);

impl<T: TopicIndex, S: Sampler<T>> Sampler<T> for Paranoid<S> {
    type Scratch = S::Scratch;

    fn requires(&self) -> Requires {
        self.0.requires()
    }

    fn passes(&self) -> &'static [Pass] {
        self.0.passes()
    }

    fn scratch(&self, topics: usize) -> S::Scratch {
        self.0.scratch(topics)
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut S::Scratch,
        block: Block<'_, T>,
    ) -> Outcome {
        let stride = 1 + if self.0.requires().proposals { cx.mh_steps } else { 0 };
        match block {
            Block::Grid(GridBlock { key, visits, partner, z, words, documents, tables }) => {
                let before = z.to_vec();
                let (words_before, documents_before) = (words.clone(), documents.clone());
                let lent = GridBlock { key, visits, partner, z, words, documents, tables };
                let outcome = self.0.sample(pass, cx, scratch, Block::Grid(lent));
                judge(cx, &outcome, &before, z, 1);
                let mut expected = Changes::new(&words_before, &documents_before);
                let by_word = self.0.passes()[pass].shape.order() == Some(Order::ByWord);
                let mut slot = 0;
                for visit in visits {
                    while slot < visit.end as usize {
                        let (old, new) = (before[slot].get(), z[slot].get());
                        let (row, partner) = (visit.row, partner[slot]);
                        let (word, document) =
                            if by_word { (row, partner) } else { (partner, row) };
                        expected.words.shift(word, old, new);
                        expected.documents.shift(document, old, new);
                        slot += 1;
                    }
                }
                expected.words.compare(words, "word");
                expected.documents.compare(documents, "document");
                outcome
            }
            Block::Words(WordBlock { key, num_words, columns, others, rows, counted }) => {
                assert!(!counted, "all tokens are here");
                let mut columns: Vec<Column<'_, T>> = columns;
                let before: Vec<Vec<T>> = columns.iter().map(|c| c.tokens.to_vec()).collect();
                let other_counts: Vec<(u32, u32)> = others
                    .iter()
                    .flat_map(|o| by_visit(o.visits, o.z.len()).map(|(w, i)| (w, o.z[i].get())))
                    .collect();
                let mut rows = rows;
                let lent = WordBlock {
                    key,
                    num_words,
                    columns: columns
                        .iter_mut()
                        .map(|c| Column { visits: c.visits, tokens: &mut *c.tokens })
                        .collect(),
                    others,
                    rows: rows.as_deref_mut(),
                    counted,
                };
                let outcome = self.0.sample(pass, cx, scratch, Block::Words(lent));
                let after: Vec<T> = columns.iter().flat_map(|c| c.tokens.iter().copied()).collect();
                judge(cx, &outcome, &before.concat(), &after, stride);
                if let Some(rows) = rows {
                    let mut counts = vec![Vec::new(); num_words];
                    for (word, topic) in other_counts {
                        counts[word as usize].push(topic);
                    }
                    for c in &columns {
                        for (word, i) in by_visit(c.visits, c.tokens.len() / stride) {
                            counts[word as usize].push(c.tokens[i * stride].get());
                        }
                    }
                    for (word, topics) in counts.into_iter().enumerate() {
                        assert_eq!(
                            sorted(entries(rows, word)),
                            tally(topics),
                            "C_w of word {word}"
                        );
                    }
                }
                outcome
            }
            Block::Documents(DocumentBlock { key, lengths, inverse, tokens, moving }) => {
                let before = tokens.to_vec();
                let lent = DocumentBlock { key, lengths, inverse, tokens, moving };
                let outcome = self.0.sample(pass, cx, scratch, Block::Documents(lent));
                judge(cx, &outcome, &before, tokens, stride);
                outcome
            }
        }
    }
}

/// Holds an outcome against the tokens before and after.
fn judge<T: TopicIndex>(
    cx: &Context<'_>,
    outcome: &Outcome,
    before: &[T],
    after: &[T],
    stride: usize,
) {
    assert!(after.iter().all(|topic| (topic.get() as usize) < cx.topics), "a topic is not below K");
    let mut totals = vec![0i32; cx.topics];
    let mut changed = 0;
    for (old, new) in before.iter().step_by(stride).zip(after.iter().step_by(stride)) {
        totals[old.get() as usize] -= 1;
        totals[new.get() as usize] += 1;
        changed += u64::from(old != new);
    }
    let mut said = vec![0; cx.topics];
    for &(topic, by) in &outcome.totals {
        assert_eq!(said[topic as usize], 0, "topic {topic} is listed twice");
        said[topic as usize] = by;
    }
    assert_eq!(said, totals, "change of C_k");
    assert_eq!(outcome.tokens, (before.len() / stride) as u64);
    assert_eq!(outcome.changed, changed);
    assert!(outcome.accepted <= outcome.proposed);
    // Every token has the same number of proposals.
    assert_eq!((outcome.proposed + outcome.repeated) % outcome.tokens.max(1), 0);
}

/// (row, token) of every token of some visits.
fn by_visit(visits: &[RowRun], tokens: usize) -> impl Iterator<Item = (u32, usize)> {
    assert_eq!(visits.last().map_or(0, |v| v.end as usize), tokens, "visits cover the tokens");
    let mut start = 0;
    visits.iter().flat_map(move |visit| {
        let range = start..visit.end as usize;
        start = range.end;
        range.map(|i| (visit.row, i))
    })
}

/// The expected rows of both kinds.
struct Changes {
    words: Expected,
    documents: Expected,
}

impl Changes {
    fn new<T: TopicIndex>(words: &Rows<T>, documents: &Rows<T>) -> Self {
        Self { words: Expected::new(words), documents: Expected::new(documents) }
    }
}

struct Expected(Vec<Vec<(u32, u32)>>);

impl Expected {
    fn new<T: TopicIndex>(rows: &Rows<T>) -> Self {
        Self((0..rows.len()).map(|row| sorted(entries(rows, row))).collect())
    }

    fn shift(&mut self, row: u32, old: u32, new: u32) {
        let row = &mut self.0[row as usize];
        let at = row.binary_search_by_key(&old, |&(topic, _)| topic).expect("a token is counted");
        row[at].1 -= 1;
        if row[at].1 == 0 {
            row.remove(at);
        }
        match row.binary_search_by_key(&new, |&(topic, _)| topic) {
            Ok(at) => row[at].1 += 1,
            Err(at) => row.insert(at, (new, 1)),
        }
    }

    fn compare<T: TopicIndex>(&self, rows: &Rows<T>, what: &str) {
        for (row, expected) in self.0.iter().enumerate() {
            assert_eq!(&sorted(entries(rows, row)), expected, "counts of {what} {row}");
        }
    }
}

fn sorted(mut list: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    list.sort_unstable();
    list
}

fn tally(mut topics: Vec<u32>) -> Vec<(u32, u32)> {
    topics.sort_unstable();
    topics.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}
