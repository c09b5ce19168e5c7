//! State that a run carries from one epoch to the next, in a form independent of the layout.
//!
//! Counts follow from the topics. Four things do not: the order of entries in list rows, which
//! decides the result of a draw; which rows are lists; the pending proposals of WarpLDA; and how
//! settled tokens are, if converged ones are excluded. All of it is stored by document and word, so
//! that a run with another layout could resume from it.

use crate::corpus::Corpus;
use crate::counts::{Rows, TopicIndex};
use crate::train::state::State;
use crate::train::token_state::TokenState;

/// State between two epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResumeState<T> {
    pub tokens: TokenState<T>,
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
        let documents = Lists::take(&self.document_homes(corpus), |set, range| {
            self.sets[set as usize].rows.get(range as usize)
        });
        let tokens = TokenState::of(&self.sets, &self.words, corpus);
        ResumeState { tokens, documents, words: self.word_lists() }
    }

    /// The list rows of C_w.
    pub fn word_lists(&self) -> Lists<T> {
        Lists::take(&self.word_homes(), |_, range| self.word_rows.get(range as usize))
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
        carried.tokens.restore_rest(&mut self.sets, &self.words, corpus)?;
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

    /// Restores the order of the list rows of C_w, whose counts must be those of all tokens.
    ///
    /// # Errors
    /// As [`take_up`](Self::take_up).
    pub fn order_words(&mut self, lists: &Lists<T>) -> Result<(), &'static str> {
        let lists = lists.rows(self.words.num_words()).ok_or("word lists: they do not add up")?;
        let (mut fits, mut counts) = (true, Vec::new());
        for (range, rows) in self.word_rows.iter_mut().enumerate() {
            for (local, &word) in self.words.words(range).iter().enumerate() {
                counts.clear();
                rows.for_each(local, |topic, count| counts.push((topic, count)));
                fits &= order(rows, local, lists[word as usize], &counts);
            }
        }
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
