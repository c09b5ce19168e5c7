//! The topics that a run has given to tokens, as users see them.

use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::train::state::State;

/// The topic of every token: documents in order, in each document words ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignments {
    /// Document d's tokens are `topics[offsets[d]..offsets[d + 1]]`.
    offsets: Vec<u64>,
    topics: Vec<u32>,
}

impl Assignments {
    /// Those of a snapshot, one a token.
    pub(super) fn taken<T: TopicIndex>(corpus: &Corpus, topics: &[T]) -> Self {
        let mut next = 0;
        let ends = corpus.documents().map(|document| {
            next += document.len();
            next
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        Self { offsets, topics: topics.iter().map(|topic| topic.get()).collect() }
    }

    pub(super) fn new<T: TopicIndex>(state: &State<T>, corpus: &Corpus) -> Self {
        let mut offsets = Vec::with_capacity(corpus.num_documents() + 1);
        offsets.push(0);
        let mut next = 0;
        for d in 0..corpus.num_documents() {
            next += corpus.document(d).len();
            offsets.push(next);
        }
        let mut topics = vec![0; next as usize];
        for set in &state.sets {
            for range in 0..set.slots.num_ranges() {
                let base = set.slots.range_slots(range).start;
                let documents = set.slots.documents(range);
                let (mut current, mut at) = (usize::MAX, 0);
                set.slots.for_each_pair(corpus, &state.words, range, |local, _, slots| {
                    if local != current {
                        (current, at) = (local, offsets[documents[local] as usize] as usize);
                    }
                    for slot in slots {
                        topics[at] = set.topic(base + slot as usize);
                        at += 1;
                    }
                });
            }
        }
        Self { offsets, topics }
    }

    /// Topics of document `d`'s tokens, by ascending word id.
    pub fn document(&self, d: usize) -> &[u32] {
        &self.topics[self.offsets[d] as usize..self.offsets[d + 1] as usize]
    }

    /// Number of documents.
    pub fn num_documents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// All topics, documents one after the other.
    pub fn as_slice(&self) -> &[u32] {
        &self.topics
    }

    /// A hash of all topics that does not change between versions or machines (FNV-1a, 64 bits,
    /// over the topics as little-endian 32-bit words).
    pub fn fingerprint(&self) -> u64 {
        self.topics
            .iter()
            .flat_map(|topic| topic.to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
    }
}
