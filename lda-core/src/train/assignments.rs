//! The topic assignments z of a run.

use crate::corpus::Corpus;
use crate::counts::TopicIndex;

/// The topic of every token: documents in order, in each document words ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignments {
    /// Document d's tokens are `topics[offsets[d]..offsets[d + 1]]`.
    offsets: Vec<u64>,
    topics: Vec<u32>,
}

impl Assignments {
    /// Topics of a snapshot, one per token.
    pub(super) fn taken<T: TopicIndex>(corpus: &Corpus, topics: &[T]) -> Self {
        let mut next = 0;
        let ends = corpus.documents().map(|document| {
            next += document.len();
            next
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        Self { offsets, topics: topics.iter().map(|topic| topic.get()).collect() }
    }

    /// The topics of all tokens of `corpus`: documents in order, in each document words ascending.
    /// `None` if there is not one topic per token.
    pub fn new(corpus: &Corpus, topics: Vec<u32>) -> Option<Self> {
        let fits = topics.len() as u64 == corpus.num_tokens();
        let mut next = 0;
        let ends = corpus.documents().map(|document| {
            next += document.len();
            next
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        fits.then_some(Self { offsets, topics })
    }

    /// Topics by document; document d's are `topics[offsets[d]..offsets[d + 1]]`.
    pub(super) fn from_parts(offsets: Vec<u64>, topics: Vec<u32>) -> Self {
        Self { offsets, topics }
    }

    /// Checks that there is one topic for each token of `corpus`, and that all are below `topics`.
    pub(super) fn check(&self, corpus: &Corpus, topics: u32) -> Result<(), String> {
        let (documents, given) = (corpus.num_documents(), self.num_documents());
        if documents != given {
            return Err(format!("they are for {given} documents, the corpus has {documents}"));
        }
        for d in 0..documents {
            let (tokens, given) = (corpus.doc_length(d), self.document(d).len());
            if tokens != given as u64 {
                return Err(format!("document {d} has {tokens} tokens and {given} topics"));
            }
        }
        match self.topics.iter().find(|&&topic| topic >= topics) {
            Some(topic) => {
                Err(format!("there is topic {topic}, but the run has topics below {topics}"))
            }
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

    /// Assignments of the documents `kept`, in this order, as [`Corpus::select`] keeps documents.
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

    /// Assignments of the tokens whose word `kept` allows, as [`Corpus::select_words`] keeps words;
    /// `corpus` is the one trained on.
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

    /// All topics, document after document.
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
