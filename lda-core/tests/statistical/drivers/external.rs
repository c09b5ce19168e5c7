//! Blocks of WarpLDA as workers and servers hold them.
//!
//! A **worker** has the records of its own tokens, word by word, copied from the messages that
//! contained them. For the other tokens of its words it has counts only: rows of (topic, tokens), which
//! it expands into as many topics. A **server** has no layout: it gets one list of records per word of a
//! word range, and one list per document, in order.

use lda_core::counts::TopicIndex;
use lda_core::layout::RowRun;
use lda_core::sampler::{
    Block, Column, Context, DocumentBlock, OtherTokens, Outcome, Pass, Requires, Sampler, WordBlock,
};

/// Samples each block in place, in a worker's copy and in a server's, and holds the three against
/// each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct External<S>(pub S);

impl<T: TopicIndex, S: Sampler<T>> Sampler<T> for External<S> {
    type Scratch = [S::Scratch; 3];

    fn requires(&self) -> Requires {
        self.0.requires()
    }

    fn passes(&self) -> &'static [Pass] {
        self.0.passes()
    }

    fn scratch(&self, topics: usize) -> Self::Scratch {
        std::array::from_fn(|_| self.0.scratch(topics))
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        [here, worker, server]: &mut Self::Scratch,
        block: Block<'_, T>,
    ) -> Outcome {
        let stride = 1 + cx.mh_steps;
        match block {
            Block::Words(mut block) => {
                let rows = Lists::gather(block.num_words, &block.others, 1);
                let sorted = Lists(rows.0.iter().map(|row| sorted(row.clone())).collect());
                let (visits, z) = sorted.flatten(1);
                let others = || vec![OtherTokens { visits: &visits, z: &z }];
                // A worker: its own columns, and the rest as counts.
                let counts: Vec<Vec<(u32, u32)>> = rows.0.iter().map(|row| tally(row)).collect();
                let (counted_visits, counted) = spread::<T>(&counts).flatten(1);
                let mut copies: Vec<(Vec<RowRun>, Vec<T>)> =
                    block.columns.iter().map(|c| (c.visits.to_vec(), c.tokens.to_vec())).collect();
                let columns = copies.iter_mut();
                let columns = columns.map(|(visits, tokens)| Column { visits, tokens }).collect();
                let by_worker = Block::Words(WordBlock {
                    key: block.key,
                    num_words: block.num_words,
                    columns,
                    others: vec![OtherTokens { visits: &counted_visits, z: &counted }],
                    rows: None,
                    counted: false,
                });
                let by_worker = self.0.sample(pass, cx, worker, by_worker);
                // A server: one list a word.
                let lists = Lists::gather(block.num_words, &block.columns, stride);
                let (list_visits, mut list) = lists.flatten(stride);
                let by_server = Block::Words(WordBlock {
                    key: block.key,
                    num_words: block.num_words,
                    columns: vec![Column { visits: &list_visits, tokens: &mut list }],
                    others: others(),
                    rows: None,
                    counted: false,
                });
                let by_server = self.0.sample(pass, cx, server, by_server);
                // In place.
                let lent = WordBlock {
                    key: block.key,
                    num_words: block.num_words,
                    columns: block
                        .columns
                        .iter_mut()
                        .map(|c| Column { visits: c.visits, tokens: &mut *c.tokens })
                        .collect(),
                    others: others(),
                    rows: block.rows.as_deref_mut(),
                    counted: false,
                };
                let in_place = self.0.sample(pass, cx, here, Block::Words(lent));
                assert_eq!(in_place, by_worker);
                assert_eq!(in_place, by_server);
                for (column, (_, copy)) in block.columns.iter().zip(&copies) {
                    assert!(column.tokens == copy, "a worker's tokens");
                }
                let after = Lists::gather(block.num_words, &block.columns, stride);
                assert!(after.flatten(stride).1 == list, "a server's tokens");
                in_place
            }
            Block::Documents(block) => {
                let DocumentBlock { key, lengths, inverse, tokens, moving } = block;
                assert_eq!(moving, None, "one process moves all");
                let mut copy = tokens.to_vec();
                let by_worker =
                    DocumentBlock { key, lengths, inverse, tokens: &mut copy, moving: None };
                let by_worker = self.0.sample(pass, cx, worker, Block::Documents(by_worker));
                let in_order = |tokens: &[T]| -> Vec<T> {
                    let record = |&slot: &u32| &tokens[slot as usize * stride..][..stride];
                    inverse.iter().flat_map(record).copied().collect()
                };
                let mut list = in_order(tokens);
                let straight: Vec<u32> = (0..inverse.len() as u32).collect();
                let by_server = DocumentBlock {
                    key,
                    lengths,
                    inverse: &straight,
                    tokens: &mut list,
                    moving: None,
                };
                let by_server = self.0.sample(pass, cx, server, Block::Documents(by_server));
                let lent = DocumentBlock { key, lengths, inverse, tokens, moving };
                let in_place = self.0.sample(pass, cx, here, Block::Documents(lent));
                assert_eq!(in_place, by_worker);
                assert_eq!(in_place, by_server);
                assert!(tokens == copy, "a worker's tokens");
                assert!(in_order(tokens) == list, "a server's tokens");
                in_place
            }
            Block::Grid(_) => panic!("blocks of a grid go to the worker and the server of files"),
        }
    }
}

/// Visits with what they cover.
trait Visited<T> {
    fn parts(&self) -> (&[RowRun], &[T]);
}

impl<T> Visited<T> for Column<'_, T> {
    fn parts(&self) -> (&[RowRun], &[T]) {
        (self.visits, self.tokens)
    }
}

impl<T> Visited<T> for OtherTokens<'_, T> {
    fn parts(&self) -> (&[RowRun], &[T]) {
        (self.visits, self.z)
    }
}

/// One list of values a word.
struct Lists<T>(Vec<Vec<T>>);

impl<T: TopicIndex> Lists<T> {
    /// The words' records, of `stride` values, column after column.
    fn gather(num_words: usize, columns: &[impl Visited<T>], stride: usize) -> Self {
        let mut lists = vec![Vec::new(); num_words];
        for column in columns {
            let (visits, values) = column.parts();
            let mut start = 0;
            for visit in visits {
                let end = visit.end as usize * stride;
                lists[visit.row as usize].extend_from_slice(&values[start..end]);
                start = end;
            }
        }
        Self(lists)
    }

    /// The lists one after the other, and the visits that tell them apart.
    fn flatten(&self, stride: usize) -> (Vec<RowRun>, Vec<T>) {
        let mut visits = Vec::new();
        let mut end = 0;
        for (row, list) in self.0.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            end += (list.len() / stride) as u32;
            visits.push(RowRun { row: row as u32, end });
        }
        (visits, self.0.concat())
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

/// (topic, tokens), ascending: a row as it travels.
fn tally<T: TopicIndex>(topics: &[T]) -> Vec<(u32, u32)> {
    let topics = sorted(topics.to_vec());
    topics.chunk_by(|a, b| a == b).map(|same| (same[0].get(), same.len() as u32)).collect()
}

/// A topic for each token that a row counts.
fn spread<T: TopicIndex>(rows: &[Vec<(u32, u32)>]) -> Lists<T> {
    let topics = |&(topic, count): &(u32, u32)| vec![T::new(topic); count as usize];
    Lists(rows.iter().map(|row| row.iter().flat_map(topics).collect()).collect())
}
