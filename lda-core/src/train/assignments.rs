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

    /// Whether they are one for each token of `corpus`, and below `topics`.
    pub(super) fn check(&self, corpus: &Corpus, topics: u32) -> Result<(), String> {
        let (documents, given) = (corpus.num_documents(), self.num_documents());
        if documents != given {
            return Err(format!("they are of {given} documents, the corpus has {documents}"));
        }
        for d in 0..documents {
            let (tokens, given) = (corpus.doc_length(d), self.document(d).len());
            if tokens != given as u64 {
                return Err(format!("document {d} has {tokens} tokens and {given} topics"));
            }
        }
        match self.topics.iter().find(|&&topic| topic >= topics) {
            Some(topic) => Err(format!("there is topic {topic}, and {topics} were asked for")),
            None => Ok(()),
        }
    }

    /// Topics of document `d`'s tokens, by ascending word id.
    pub fn document(&self, d: usize) -> &[u32] {
        &self.topics[self.offsets[d] as usize..self.offsets[d + 1] as usize]
    }

    /// (word, topic) of document `d`'s tokens; `corpus` is the one trained on.
    ///
    /// # Panics
    /// If `d` is not below [`num_documents`](Self::num_documents).
    pub fn tokens(&self, corpus: &Corpus, d: usize) -> impl Iterator<Item = (u32, u32)> {
        let pairs = corpus.document(d).iter();
        let words = pairs.flat_map(|(word, count)| std::iter::repeat_n(word, count as usize));
        words.zip(self.document(d).iter().copied())
    }

    /// Those of the documents `kept`, in this order: what [`Corpus::select`] keeps.
    ///
    /// # Panics
    /// If one is not below [`num_documents`](Self::num_documents).
    pub fn select(&self, kept: impl IntoIterator<Item = usize>) -> Self {
        let mut part = Self { offsets: vec![0], topics: Vec::new() };
        for d in kept {
            part.topics.extend_from_slice(self.document(d));
            part.offsets.push(part.topics.len() as u64);
        }
        part
    }

    /// Those of the tokens of words that `kept` allows: what [`Corpus::select_words`] keeps of `corpus`,
    /// the one trained on.
    pub fn select_words(&self, corpus: &Corpus, kept: impl Fn(u32) -> bool) -> Self {
        let mut part = Self { offsets: vec![0], topics: Vec::new() };
        for d in 0..self.num_documents() {
            let tokens = self.tokens(corpus, d).filter(|&(word, _)| kept(word));
            part.topics.extend(tokens.map(|(_, topic)| topic));
            part.offsets.push(part.topics.len() as u64);
        }
        part
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
