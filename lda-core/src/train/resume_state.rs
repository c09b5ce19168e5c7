//! State that a run carries from one epoch to the next, in a form independent of the layout.
//!
//! Counts follow from the topics. Four things do not: the order of entries in list rows, which
//! decides the result of a draw; which rows are lists; the pending proposals of WarpLDA; and how
//! settled tokens are, if converged ones are excluded. All of it is stored by document and word, so
//! that a run with another layout could resume from it.

use crate::corpus::Corpus;
use crate::counts::{Rows, TopicIndex};
use crate::train::exclusion::TokenAge;
use crate::train::state::{State, TokenSet};

/// State between two epochs. Documents in order; within a document, tokens by ascending word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResumeState<T> {
    /// Topic of each token.
    pub topics: Vec<T>,
    /// M pending proposals of each token that has any.
    pub proposals: Vec<T>,
    /// One age per token; empty if no token is excluded.
    pub ages: Vec<u8>,
    /// List rows of C_d.
    pub documents: Lists<T>,
    /// List rows of C_w.
    pub words: Lists<T>,
}

/// The rows that are lists, each with its topics in its own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists<T> {
    /// One entry per row, empty if no row is a list: 0 for a dense row, else the length plus one.
    pub lens: Vec<u32>,
    pub topics: Vec<T>,
}

/// Location of a document's or word's row: token set, range, row.
type Home = Option<(u32, u32, u32)>;

impl<T: TopicIndex> Lists<T> {
    fn take<'a>(homes: &[Home], rows: impl Fn(u32, u32) -> Option<&'a Rows<T>>) -> Self {
        let mut lists = Self { lens: Vec::with_capacity(homes.len()), topics: Vec::new() };
        for home in homes {
            let len = home.and_then(|(set, range, row)| {
                let before = lists.topics.len();
                lists.topics.extend(rows(set, range)?.listed(row as usize)?.map(T::new));
                Some((lists.topics.len() - before + 1) as u32)
            });
            lists.lens.push(len.unwrap_or(0));
        }
        if lists.lens.iter().all(|&len| len == 0) { Self::default() } else { lists }
    }

    /// Topics of each row, `None` for a dense row. Returns `None` if the lengths do not add up.
    fn rows(&self, rows: usize) -> Option<Vec<Option<&[T]>>> {
        if self.lens.is_empty() && self.topics.is_empty() {
            return Some(vec![None; rows]);
        }
        let mut rest = &self.topics[..];
        let mut of = |len: u32| match len.checked_sub(1) {
            None => Some(None),
            Some(len) => {
                let (row, after) = rest.split_at_checked(len as usize)?;
                rest = after;
                Some(Some(row))
            }
        };
        let lists: Vec<Option<&[T]>> =
            self.lens.iter().map(|&len| of(len)).collect::<Option<_>>()?;
        (lists.len() == rows && rest.is_empty()).then_some(lists)
    }
}

impl<T: TopicIndex> State<T> {
    /// Copies the state: 2 or 4 bytes per token, per proposal and per list entry, 1 per token if
    /// converged ones are excluded, 4 per document and word.
    pub fn carried(&self, corpus: &Corpus) -> ResumeState<T> {
        let tokens = corpus.num_tokens() as usize;
        let mut topics = vec![T::default(); tokens];
        let tracked = self.sets.iter().any(|set| set.ages.is_some());
        let mut ages = vec![0; if tracked { tokens } else { 0 }];
        let starts = token_starts(corpus);
        let mut proposed = proposal_starts(self, corpus);
        let mut proposals = vec![T::default(); proposed.pop().expect("ends with the total")];
        for set in &self.sets {
            set.for_each_token(corpus, &self.words, &starts, |at, slot, document, index| {
                let token = &set.tokens[slot * set.stride..(slot + 1) * set.stride];
                topics[at] = token[0];
                if let Some(of_set) = &set.ages {
                    ages[at] = of_set[slot].to_byte();
                }
                if set.stride > 1 {
                    let m = set.stride - 1;
                    let first = proposed[document] + index * m;
                    proposals[first..first + m].copy_from_slice(&token[1..]);
                }
            });
        }
        let documents = Lists::take(&self.document_homes(corpus), |set, range| {
            self.sets[set as usize].rows.get(range as usize)
        });
        let words = Lists::take(&self.word_homes(), |_, range| self.word_rows.get(range as usize));
        ResumeState { topics, proposals, ages, documents, words }
    }

    /// Restores everything in `carried` but the topics, from which this state must have been made.
    ///
    /// # Errors
    /// Returns the name of the part that does not fit. The state must then be dropped.
    pub fn take_up(
        &mut self,
        corpus: &Corpus,
        carried: &ResumeState<T>,
    ) -> Result<(), &'static str> {
        let starts = token_starts(corpus);
        let mut proposed = proposal_starts(self, corpus);
        if proposed.pop() != Some(carried.proposals.len()) {
            return Err("proposals: not as many as the tokens carry");
        }
        let tracked = self.sets.iter().any(|set| set.ages.is_some());
        if carried.ages.len() != if tracked { carried.topics.len() } else { 0 } {
            return Err("ages: not one a token");
        }
        let mut sets = std::mem::take(&mut self.sets);
        for set in &mut sets {
            let (mut tokens, mut ages) = (std::mem::take(&mut set.tokens), set.ages.take());
            let stride = set.stride;
            set.for_each_token(corpus, &self.words, &starts, |at, slot, document, index| {
                if let Some(ages) = &mut ages {
                    ages[slot] = TokenAge::from_byte(carried.ages[at]);
                }
                if stride > 1 {
                    let first = proposed[document] + index * (stride - 1);
                    tokens[slot * stride + 1..(slot + 1) * stride]
                        .copy_from_slice(&carried.proposals[first..first + stride - 1]);
                }
            });
            (set.tokens, set.ages) = (tokens, ages);
        }
        self.sets = sets;
        self.order_documents(corpus, &carried.documents)?;
        self.order_words(&carried.words)
    }

    fn order_documents(&mut self, corpus: &Corpus, lists: &Lists<T>) -> Result<(), &'static str> {
        let lists =
            lists.rows(corpus.num_documents()).ok_or("document lists: they do not add up")?;
        let mut fits = true;
        for s in 0..self.sets.len() {
            let mut rows = std::mem::take(&mut self.sets[s].rows);
            let set = &self.sets[s];
            set.recount_documents(corpus, &self.words, self.topics, |range, local, counts| {
                if let Some(rows) = rows.get_mut(range) {
                    let document = set.slots.documents(range)[local] as usize;
                    fits &= order(rows, local, lists[document], counts);
                }
            });
            self.sets[s].rows = rows;
        }
        if fits { Ok(()) } else { Err("document lists: they do not fit the topics") }
    }

    fn order_words(&mut self, lists: &Lists<T>) -> Result<(), &'static str> {
        let lists = lists.rows(self.words.num_words()).ok_or("word lists: they do not add up")?;
        let mut fits = true;
        let mut rows = std::mem::take(&mut self.word_rows);
        self.recount_words(|range, local, counts| {
            if let Some(rows) = rows.get_mut(range) {
                let word = self.words.words(range)[local] as usize;
                fits &= order(rows, local, lists[word], counts);
            }
        });
        self.word_rows = rows;
        if fits { Ok(()) } else { Err("word lists: they do not fit the topics") }
    }

    fn document_homes(&self, corpus: &Corpus) -> Vec<Home> {
        let mut homes = vec![None; corpus.num_documents()];
        for (s, set) in (0..).zip(&self.sets) {
            for range in 0..set.slots.num_ranges() {
                for (local, &document) in (0..).zip(set.slots.documents(range)) {
                    homes[document as usize] = Some((s, range as u32, local));
                }
            }
        }
        homes
    }

    fn word_homes(&self) -> Vec<Home> {
        let mut homes = vec![None; self.words.num_words()];
        for range in 0..self.words.num_ranges() {
            for (local, &word) in (0..).zip(self.words.words(range)) {
                homes[word as usize] = Some((0, range as u32, local));
            }
        }
        homes
    }
}

/// Restores the order of a list row; false if the list contradicts the counts.
fn order<T: TopicIndex>(
    rows: &mut Rows<T>,
    row: usize,
    list: Option<&[T]>,
    counts: &[(u32, u32)],
) -> bool {
    let Some(list) = list else { return rows.may_be_dense(row) || counts.is_empty() };
    if list.len() != counts.len() {
        return false;
    }
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let count = |topic: u32| {
        let at = sorted.binary_search_by_key(&topic, |&(topic, _)| topic).ok()?;
        // The count is set to 0, so that a topic that is listed twice fails the second time.
        let count = std::mem::take(&mut sorted[at].1);
        (count > 0).then_some((topic, count))
    };
    let entries: Option<Vec<(u32, u32)>> =
        list.iter().map(|topic| topic.get()).map(count).collect();
    entries.is_some_and(|entries| rows.write_list(row, &entries))
}

/// Index of each document's first token.
fn token_starts(corpus: &Corpus) -> Vec<usize> {
    let lengths = corpus.documents().map(|document| document.len() as usize);
    lengths.scan(0, |next, len| Some(std::mem::replace(next, *next + len))).collect()
}

/// Index of each document's first proposal, then the number of proposals.
fn proposal_starts<T: TopicIndex>(state: &State<T>, corpus: &Corpus) -> Vec<usize> {
    let mut starts = vec![0; corpus.num_documents() + 1];
    for set in &state.sets {
        for range in 0..set.slots.num_ranges() {
            for (&document, &len) in set.slots.documents(range).iter().zip(set.slots.lengths(range))
            {
                starts[document as usize] = len as usize * (set.stride - 1);
            }
        }
    }
    let mut next = 0;
    for start in &mut starts {
        next += std::mem::replace(start, next);
    }
    starts
}

impl<T: TopicIndex> TokenSet<T> {
    /// Calls `f(index in the corpus, slot, document, index in the document)` for each token.
    fn for_each_token(
        &self,
        corpus: &Corpus,
        words: &crate::layout::WordRanges,
        starts: &[usize],
        mut f: impl FnMut(usize, usize, usize, usize),
    ) {
        for range in 0..self.slots.num_ranges() {
            let base = self.slots.range_slots(range).start;
            let documents = self.slots.documents(range);
            let (mut current, mut index) = (usize::MAX, 0);
            self.slots.for_each_pair(corpus, words, range, |local, _, slots| {
                if local != current {
                    (current, index) = (local, 0);
                }
                let document = documents[local] as usize;
                for slot in slots {
                    f(starts[document] + index, base + slot as usize, document, index);
                    index += 1;
                }
            });
        }
    }
}
