//! Sparse entries by word: offsets, topics and values.

use crate::container::{Array, FileError};
use crate::counts::TopicIndex;

/// Topics of a word's entries, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics<'a> {
    /// For a model with at most 65,536 topics.
    Narrow(&'a [u16]),
    /// For a model with more topics.
    Wide(&'a [u32]),
}

impl<'a> Topics<'a> {
    /// Number of entries.
    pub fn len(self) -> usize {
        match self {
            Self::Narrow(topics) => topics.len(),
            Self::Wide(topics) => topics.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Topic `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    pub fn get(self, i: usize) -> u32 {
        match self {
            Self::Narrow(topics) => topics[i].get(),
            Self::Wide(topics) => topics[i],
        }
    }

    /// Iterates over the topics.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        (0..self.len()).map(move |i| self.get(i))
    }

    /// Index of `topic`, by binary search.
    pub fn position(self, topic: u32) -> Option<usize> {
        match self {
            Self::Narrow(topics) => topics.binary_search(&u16::try_from(topic).ok()?).ok(),
            Self::Wide(topics) => topics.binary_search(&topic).ok(),
        }
    }
}

/// Entries of a word: topics and their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entries<'a, V> {
    /// Topics, ascending.
    pub topics: Topics<'a>,
    /// Value of each topic.
    pub values: &'a [V],
}

impl<'a, V: Copy> Entries<'a, V> {
    /// Number of entries.
    pub fn len(self) -> usize {
        self.values.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.values.is_empty()
    }

    /// (topic, value) pairs, topics ascending.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (u32, V)> + use<'a, V> {
        self.topics.iter().zip(self.values.iter().copied())
    }
}

/// Topics of the entries of each word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    /// Word w's entries are `offsets[w]..offsets[w + 1]`.
    pub offsets: Array<u64>,
    pub topics: TopicArray,
}

/// Topics of all entries, in 16 bits if the number of topics allows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TopicArray {
    Narrow(Array<u16>),
    Wide(Array<u32>),
}

impl TopicArray {
    /// A builder with capacity for `entries`.
    pub fn with_capacity(num_topics: usize, entries: usize) -> Builder {
        if num_topics as u64 <= u16::MAX_TOPICS {
            Builder::Narrow(Vec::with_capacity(entries))
        } else {
            Builder::Wide(Vec::with_capacity(entries))
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(topics) => topics.len(),
            Self::Wide(topics) => topics.len(),
        }
    }
}

/// Builder of a [`TopicArray`].
pub(super) enum Builder {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Builder {
    pub fn push(&mut self, topic: u32) {
        match self {
            Self::Narrow(topics) => topics.push(<u16 as TopicIndex>::new(topic)),
            Self::Wide(topics) => topics.push(topic),
        }
    }

    pub fn finish(self) -> TopicArray {
        match self {
            Self::Narrow(topics) => TopicArray::Narrow(topics.into()),
            Self::Wide(topics) => TopicArray::Wide(topics.into()),
        }
    }
}

impl Pattern {
    pub fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    pub fn range(&self, word: usize) -> std::ops::Range<usize> {
        self.offsets[word] as usize..self.offsets[word + 1] as usize
    }

    #[inline]
    pub fn topics(&self, word: usize) -> Topics<'_> {
        let range = self.range(word);
        match &self.topics {
            TopicArray::Narrow(topics) => Topics::Narrow(&topics[range]),
            TopicArray::Wide(topics) => Topics::Wide(&topics[range]),
        }
    }

    /// Checks that offsets ascend from 0 to the number of entries.
    pub fn check_offsets(&self) -> Result<(), FileError> {
        let offsets = &*self.offsets;
        let ends = (offsets.first(), offsets.last());
        if ends != (Some(&0), Some(&(self.topics.len() as u64))) || !offsets.is_sorted() {
            return Err(FileError::malformed(
                "offsets",
                "they do not ascend from 0 to the number of entries",
            ));
        }
        Ok(())
    }

    /// Checks that the topics of each word ascend and are below `num_topics`.
    pub fn check_topics(&self, num_topics: usize) -> Result<(), FileError> {
        for word in 0..self.num_words() {
            let topics = self.topics(word);
            let ascend = match topics {
                Topics::Narrow(topics) => topics.is_sorted_by(|a, b| a < b),
                Topics::Wide(topics) => topics.is_sorted_by(|a, b| a < b),
            };
            let within = topics.is_empty() || (topics.get(topics.len() - 1) as usize) < num_topics;
            if !ascend || !within {
                let reason = format!("those of word {word} do not ascend below {num_topics}");
                return Err(FileError::malformed("topics", reason));
            }
        }
        Ok(())
    }

    pub fn memory(&self) -> usize {
        self.offsets.memory()
            + match &self.topics {
                TopicArray::Narrow(topics) => topics.memory(),
                TopicArray::Wide(topics) => topics.memory(),
            }
    }
}

/// Value of an entry: a count or an excess.
pub(crate) trait Value: Copy {
    /// φ_kw minus the floor, where `scale` is 1 / (C_k + Vβ).
    fn excess(self, scale: f64) -> f64;
}

impl Value for u32 {
    #[inline(always)]
    fn excess(self, scale: f64) -> f64 {
        f64::from(self) * scale
    }
}

impl Value for f32 {
    #[inline(always)]
    fn excess(self, _scale: f64) -> f64 {
        f64::from(self)
    }
}

/// All entries, by word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, T, V> {
    offsets: &'a [u64],
    topics: &'a [T],
    values: &'a [V],
}

impl<'a, T, V> Rows<'a, T, V> {
    /// Topics and values of `word`, which must be below V.
    #[inline(always)]
    pub fn word(&self, word: u32) -> (&'a [T], &'a [V]) {
        let word = word as usize;
        let range = self.offsets[word] as usize..self.offsets[word + 1] as usize;
        (&self.topics[range.clone()], &self.values[range])
    }
}

/// All entries, for each combination of topic width and value type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnyRows<'a> {
    NarrowCounts(Rows<'a, u16, u32>),
    WideCounts(Rows<'a, u32, u32>),
    NarrowWeights(Rows<'a, u16, f32>),
    WideWeights(Rows<'a, u32, f32>),
}

/// Values of all entries.
pub(super) enum Values<'a> {
    Counts(&'a [u32]),
    Weights(&'a [f32]),
}

impl<'a> AnyRows<'a> {
    pub(super) fn new(pattern: &'a Pattern, values: Values<'a>) -> Self {
        let offsets = &*pattern.offsets;
        match (&pattern.topics, values) {
            (TopicArray::Narrow(topics), Values::Counts(values)) => {
                Self::NarrowCounts(Rows { offsets, topics, values })
            }
            (TopicArray::Wide(topics), Values::Counts(values)) => {
                Self::WideCounts(Rows { offsets, topics, values })
            }
            (TopicArray::Narrow(topics), Values::Weights(values)) => {
                Self::NarrowWeights(Rows { offsets, topics, values })
            }
            (TopicArray::Wide(topics), Values::Weights(values)) => {
                Self::WideWeights(Rows { offsets, topics, values })
            }
        }
    }
}

/// Compiles the body for each variant of [`AnyRows`] and runs the one that applies.
macro_rules! with_rows {
    ($rows:expr, $r:ident => $body:expr) => {
        match $rows {
            $crate::model::AnyRows::NarrowCounts($r) => $body,
            $crate::model::AnyRows::WideCounts($r) => $body,
            $crate::model::AnyRows::NarrowWeights($r) => $body,
            $crate::model::AnyRows::WideWeights($r) => $body,
        }
    };
}
pub(crate) use with_rows;
