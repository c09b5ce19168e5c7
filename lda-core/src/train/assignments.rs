//! The topic assignments z of a run.

use thiserror::Error;

use crate::corpus::Corpus;
use crate::counts::TopicIndex;

/// Error: topics that were drawn elsewhere are not of this corpus.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AssignmentsError {
    /// There are more or fewer documents.
    #[error("there are topics of {given} documents, and the corpus has {documents}")]
    Documents {
        /// Documents with topics.
        given: usize,
        /// Documents of the corpus.
        documents: usize,
    },
    /// A document has other words.
    #[error(
        "document {document} has word {word} {expected} times, but {given} topics are given for it: \
         give the words of this corpus, with each of their tokens"
    )]
    Words {
        /// The document.
        document: usize,
        /// The smallest word that differs.
        word: u32,
        /// Number of tokens with a topic.
        given: usize,
        /// Number of tokens in the corpus.
        expected: usize,
    },
}

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

    /// Topics that another sampler drew: (word, topic) of each token, by document, in any order within a
    /// document. A run that [begins with them](super::Init::topics) continues the other's.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::train::{Assignments, Init, TrainOptions, Trainer};
    ///
    /// let corpus = Corpus::from_words([["tree", "leaf", "tree"], ["sea", "wave", "sea"]])?;
    /// let drawn = [[(1, 0), (0, 0), (0, 1)], [(2, 1), (3, 1), (2, 1)]];
    /// let topics = Assignments::from_documents(&corpus, drawn)?;
    /// let init = Init { topics: Some(&topics), ..Init::default() };
    /// let trainer = Trainer::with_init(&corpus, &TrainOptions::new(2), init)?;
    /// assert_eq!(trainer.assignments(), topics);
    /// assert_eq!(trainer.model().counts().unwrap().totals(), [2, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AssignmentsError`] unless there is one topic for each token of the corpus.
    pub fn from_documents<D>(
        corpus: &Corpus,
        documents: impl IntoIterator<Item = D>,
    ) -> Result<Self, AssignmentsError>
    where
        D: IntoIterator<Item = (u32, u32)>,
    {
        let mut found = Self { offsets: vec![0], topics: Vec::new() };
        let mut tokens: Vec<(u32, u32)> = Vec::new();
        let num_documents = corpus.num_documents();
        for (d, document) in documents.into_iter().enumerate() {
            if d >= num_documents {
                let (given, documents) = (d + 1, num_documents);
                return Err(AssignmentsError::Documents { given, documents });
            }
            tokens.clear();
            tokens.extend(document);
            tokens.sort_by_key(|&(word, _)| word);
            check_words(corpus, d, &tokens)?;
            found.topics.extend(tokens.iter().map(|&(_, topic)| topic));
            found.offsets.push(found.topics.len() as u64);
        }
        let (given, documents) = (found.num_documents(), num_documents);
        match given == documents {
            true => Ok(found),
            false => Err(AssignmentsError::Documents { given, documents }),
        }
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

/// Checks that the sorted `tokens` have the words of a document.
fn check_words(
    corpus: &Corpus,
    document: usize,
    tokens: &[(u32, u32)],
) -> Result<(), AssignmentsError> {
    let mut given = tokens.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, run.len())).peekable();
    let mut expected = corpus.document(document).iter().peekable();
    loop {
        let (here, there) = (given.peek().copied(), expected.peek().copied());
        let word = match (here, there) {
            (None, None) => return Ok(()),
            (Some((here, _)), Some((there, _))) => here.min(there),
            (Some((word, _)), None) | (None, Some((word, _))) => word,
        };
        let given = given.next_if(|run| run.0 == word).map_or(0, |run| run.1);
        let expected = expected.next_if(|pair| pair.0 == word).map_or(0, |pair| pair.1 as usize);
        if given != expected {
            return Err(AssignmentsError::Words { document, word, given, expected });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_another_corpus_are_refused() {
        let corpus = Corpus::from_tokens([vec![0, 2, 2], vec![], vec![1]]).unwrap();
        let of = |documents: &[&[(u32, u32)]]| {
            let documents = documents.iter().map(|document| document.iter().copied());
            Assignments::from_documents(&corpus, documents)
        };
        let found = of(&[&[(2, 7), (0, 5), (2, 6)], &[], &[(1, 0)]]).unwrap();
        assert_eq!(found.as_slice(), [5, 7, 6, 0]);
        assert!(found.document(1).is_empty());
        let first: &[(u32, u32)] = &[(0, 1), (2, 1), (2, 1)];
        for (documents, said) in [
            (&[first, &[]][..], "topics of 2 documents, and the corpus has 3"),
            (&[first, &[], &[(1, 0)], &[]], "topics of 4 documents, and the corpus has 3"),
            (&[&[(0, 1), (2, 1)]], "document 0 has word 2 2 times, but 1 topics"),
            (&[&[(2, 1), (2, 1)]], "document 0 has word 0 1 times, but 0 topics"),
            (&[&[(0, 1), (1, 1), (2, 1)]], "document 0 has word 1 0 times, but 1 topics"),
            (&[first, &[(9, 0)]], "document 1 has word 9 0 times, but 1 topics"),
        ] {
            let error = of(documents).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
