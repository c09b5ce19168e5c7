//! State of a shard between two rounds of an epoch, from which the epoch can go on at another worker.
//!
//! Between two epochs all counts follow from the topics. Within an epoch two more things have an influence on
//! the results: the order of the entries of C_d's rows, which depends on the tokens that were sampled so far,
//! and the sizes of these rows at the epoch's start, from which the routes of words follow.
//!
//! Cost: 5 bytes per document, and a topic per entry of the rows that are not in the order of topics.

use lda_core::counts::{Form, TopicIndex};

use super::{RestoreError, Shard, ShardState, ShardTokens};
use crate::spec::ModelSpec;

/// Form of a document's row of C_d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// A count per topic.
    Dense,
    /// A list in the order of topics.
    Sorted,
    /// A list in another order.
    Listed,
}

/// State of a shard between two rounds of an epoch, if it has no long documents and the epoch samples all
/// tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MidEpochState<T> {
    /// Topics of all tokens.
    pub state: ShardState<T>,
    /// Encoded size of each document's row at the epoch's start.
    pub sizes: Vec<u32>,
    /// Form of each document's row.
    pub forms: Vec<RowForm>,
    /// Topics of the rows that are [`Listed`](RowForm::Listed), in their order, document by document.
    pub listed: Vec<T>,
}

impl<T: TopicIndex> ShardTokens<T> {
    /// State from which the epoch can go on.
    pub(crate) fn mid_epoch_state(&self) -> MidEpochState<T> {
        let documents = self.num_documents();
        let mut found = MidEpochState {
            state: self.state(),
            sizes: Vec::with_capacity(documents),
            forms: Vec::with_capacity(documents),
            listed: Vec::new(),
        };
        let mut topics: Vec<u32> = Vec::new();
        for document in 0..documents {
            let place = self.places[document] as usize;
            found.sizes.push(self.sizes[place]);
            found.forms.push(match self.rows.listed(place) {
                None => RowForm::Dense,
                Some(list) => {
                    topics.clear();
                    topics.extend(list);
                    if topics.is_sorted() {
                        RowForm::Sorted
                    } else {
                        found.listed.extend(topics.iter().map(|&topic| T::new(topic)));
                        RowForm::Listed
                    }
                }
            });
        }
        found
    }

    /// Sets the sizes and the forms and orders of rows, whose counts are there.
    fn restore_rows(&mut self, from: &MidEpochState<T>) -> Result<(), RestoreError> {
        let MidEpochState { sizes, forms, listed, .. } = from;
        let documents = self.lengths.len();
        if [sizes.len(), forms.len(), self.num_documents()] != [documents; 3] {
            let found = sizes.len().min(forms.len());
            return Err(RestoreError::Documents { found, expected: documents });
        }
        let (mut listed, mut row, mut list) = (&listed[..], Vec::new(), Vec::new());
        for (document, (&size, form)) in sizes.iter().zip(forms).enumerate() {
            let place = self.places[document] as usize;
            let other = RestoreError::Row { document };
            self.sizes[place] = size;
            self.row_at(place, &mut row);
            let is_list = match form {
                RowForm::Dense if self.rows.form_of(place) == Form::Sparse => {
                    let may_be_dense = self.rows.may_be_dense(place);
                    if may_be_dense {
                        self.rows.densify(place);
                    }
                    may_be_dense
                }
                RowForm::Dense => true,
                RowForm::Sorted => self.rows.write_list(place, &row),
                RowForm::Listed => {
                    let (topics, rest) = listed.split_at_checked(row.len()).ok_or(other)?;
                    listed = rest;
                    in_order(&row, topics, &mut list).ok_or(other)?;
                    self.rows.write_list(place, &list)
                }
            };
            if !is_list {
                return Err(other);
            }
        }
        match listed.len() {
            0 => Ok(()),
            _ => Err(RestoreError::Row { document: documents }),
        }
    }
}

impl<T: TopicIndex> Shard<T> {
    /// Restores the state within an epoch that [`MidEpochState`] holds.
    ///
    /// # Errors
    /// [`RestoreError`]; then the shard has to be restored from another state.
    pub fn restore_mid_epoch(
        &mut self,
        spec: &ModelSpec,
        from: &MidEpochState<T>,
    ) -> Result<(), RestoreError> {
        self.restore(spec, &from.state)?;
        self.tokens.restore_rows(from)
    }
}

/// Writes the entries of a row, topics ascending, to `list` in the order of `topics`; `None` if these are not
/// the row's.
fn in_order<T: TopicIndex>(
    row: &[(u32, u32)],
    topics: &[T],
    list: &mut Vec<(u32, u32)>,
) -> Option<()> {
    list.clear();
    for topic in topics {
        list.push(row[row.binary_search_by_key(&topic.get(), |entry| entry.0).ok()?]);
    }
    // As many topics as the row has, each of them one of the row's: they are its topics if none is there twice.
    let mut sorted = list.clone();
    sorted.sort_unstable();
    (sorted == row).then_some(())
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::*;
    use crate::config::{Hybrid, Options};
    use crate::placement::{Partitioner, Placement};
    use crate::shard::ShardDocuments;

    const TOPICS: u32 = 400;

    fn spec() -> ModelSpec {
        ModelSpec::new(TOPICS, 30, 0.1.into(), 0.01, 4).unwrap()
    }

    /// A shard of documents of which some rows are lists, some dense, and some may be both.
    fn shard() -> Shard<u16> {
        let lengths = [3, 40, 150, 300, 900, 5000];
        let documents = lengths.map(|length| (0..length).map(|at| at * 7 % 30).collect::<Vec<_>>());
        let corpus = Corpus::from_tokens(documents).unwrap();
        let placement = Placement::new(Partitioner::Range, &[1; 30], 3, 1).unwrap();
        let range = 0..corpus.num_documents();
        let documents = ShardDocuments { corpus: &corpus, range, first: 0 };
        Shard::new(&spec(), Hybrid::default(), &placement, 0, documents).unwrap()
    }

    /// Moves tokens of a partition as sampling does, those of document 3 to a few topics.
    fn change(shard: &mut Shard<u16>, partition: usize) {
        let ShardTokens { parts, rows, places, .. } = &mut shard.tokens;
        let few = places[3] as usize;
        let part = &mut parts[partition];
        for token in 0..part.topics.len() {
            let (document, old) = (part.documents[token] as usize, part.topics[token].get());
            let topics = if document == few { 7 } else { TOPICS };
            let new = (old * 31 + token as u32 * 7) % topics;
            rows.decrement(document, old);
            rows.increment(document, new);
            part.set_topic(token, new as u16);
        }
    }

    /// Size at the epoch's start, form and entries of each row.
    fn rows(shard: &Shard<u16>) -> Vec<String> {
        let rows = &shard.tokens.rows;
        let row = |place: usize| {
            let mut entries = Vec::new();
            rows.for_each(place, |topic, count| entries.push((topic, count)));
            format!("{} {:?} {entries:?}", shard.tokens.sizes[place], rows.form_of(place))
        };
        (0..rows.len()).map(row).collect()
    }

    /// Otherwise the rest of the epoch would have other draws or routes at another worker.
    #[test]
    fn rows_come_back_in_their_order() {
        let mut first = shard();
        first.begin_epoch(&spec(), &Options::default(), 1);
        (0..3).for_each(|partition| change(&mut first, partition));
        let kept = first.tokens.mid_epoch_state();
        for form in [RowForm::Dense, RowForm::Listed] {
            assert!(kept.forms.contains(&form), "{form:?} in {:?}", kept.forms);
        }
        let mut other = shard();
        other.restore(&spec(), &kept.state).unwrap();
        assert_ne!(rows(&other), rows(&first), "topics alone are not enough");
        other.restore_mid_epoch(&spec(), &kept).unwrap();
        assert_eq!(rows(&other), rows(&first));
        assert_eq!(other.tokens.mid_epoch_state(), kept);
        assert_eq!(other.own, first.own_after_a_round());
    }

    #[test]
    fn rows_of_other_documents_are_refused() {
        let mut first = shard();
        (0..2).for_each(|partition| change(&mut first, partition));
        let kept = first.tokens.mid_epoch_state();
        let refused = |change: &dyn Fn(&mut MidEpochState<u16>)| {
            let mut other = kept.clone();
            change(&mut other);
            shard().restore_mid_epoch(&spec(), &other).unwrap_err()
        };
        let fewer = RestoreError::Documents { found: 5, expected: 6 };
        assert_eq!(refused(&|it| it.sizes.truncate(5)), fewer);
        assert_eq!(refused(&|it| it.forms.truncate(5)), fewer);
        let listed = kept.forms.iter().position(|&form| form == RowForm::Listed).unwrap();
        let row = RestoreError::Row { document: listed };
        assert_eq!(refused(&|it| it.listed[1] = it.listed[0]), row, "a topic twice");
        assert_eq!(refused(&|it| it.listed[0] = 399), row, "a topic that is not in the row");
        assert_eq!(refused(&|it| it.listed.truncate(1)), row);
        assert_eq!(refused(&|it| it.listed.push(3)), RestoreError::Row { document: 6 });
        let short = RestoreError::Row { document: 0 };
        assert_eq!(
            refused(&|it| it.forms[0] = RowForm::Dense),
            short,
            "a row that is always a list"
        );
        let tokens = |it: &mut MidEpochState<u16>| it.state.topics.truncate(9);
        assert!(matches!(refused(&tokens), RestoreError::Tokens { found: 9, .. }));
    }

    impl Shard<u16> {
        fn own_after_a_round(&self) -> super::super::OwnCounts {
            super::super::own_counts(&spec(), &self.tokens)
        }
    }
}
