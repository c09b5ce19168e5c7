//! State that tokens carry from one epoch to the next: their topics, pending proposals and ages.

use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::layout::WordRanges;
use crate::train::exclusion::TokenAge;
use crate::train::state::TokenSet;

/// State of the tokens of some documents. Documents in order; within a document, tokens by ascending word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenState<T> {
    /// Topic of each token.
    pub topics: Vec<T>,
    /// M pending proposals of each token that has any.
    pub proposals: Vec<T>,
    /// One age per token; empty if no token is excluded.
    pub ages: Vec<u8>,
}

impl<T: TopicIndex> TokenState<T> {
    /// Copies the state of all tokens of `corpus`, which `sets` hold.
    pub fn of(sets: &[TokenSet<T>], words: &WordRanges, corpus: &Corpus) -> Self {
        let tokens = corpus.num_tokens() as usize;
        let mut topics = vec![T::default(); tokens];
        let tracked = sets.iter().any(|set| set.ages.is_some());
        let mut ages = vec![0; if tracked { tokens } else { 0 }];
        let starts = token_starts(corpus);
        let mut proposed = proposal_starts(sets, corpus);
        let mut proposals = vec![T::default(); proposed.pop().expect("ends with the total")];
        for set in sets {
            set.for_each_token(corpus, words, &starts, |at, slot, document, index| {
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
        Self { topics, proposals, ages }
    }

    /// Restores the topics.
    ///
    /// # Errors
    /// Returns the reason why they do not fit.
    pub fn restore_topics(
        &self,
        sets: &mut [TokenSet<T>],
        words: &WordRanges,
        corpus: &Corpus,
    ) -> Result<(), &'static str> {
        if self.topics.len() as u64 != corpus.num_tokens() {
            return Err("topics: not one a token");
        }
        let starts = token_starts(corpus);
        for set in sets {
            let (mut tokens, stride) = (std::mem::take(&mut set.tokens), set.stride);
            set.for_each_token(corpus, words, &starts, |at, slot, _, _| {
                tokens[slot * stride..(slot + 1) * stride].fill(self.topics[at]);
            });
            set.tokens = tokens;
        }
        Ok(())
    }

    /// Restores everything but the topics.
    ///
    /// # Errors
    /// Returns the reason why it does not fit.
    pub fn restore_rest(
        &self,
        sets: &mut [TokenSet<T>],
        words: &WordRanges,
        corpus: &Corpus,
    ) -> Result<(), &'static str> {
        let mut proposed = proposal_starts(sets, corpus);
        if proposed.pop() != Some(self.proposals.len()) {
            return Err("proposals: not as many as the tokens carry");
        }
        let tracked = sets.iter().any(|set| set.ages.is_some());
        if self.ages.len() != if tracked { self.topics.len() } else { 0 } {
            return Err("ages: not one a token");
        }
        let starts = token_starts(corpus);
        for set in sets.iter_mut().filter(|set| set.stride > 1 || set.ages.is_some()) {
            let (mut tokens, mut ages) = (std::mem::take(&mut set.tokens), set.ages.take());
            let stride = set.stride;
            set.for_each_token(corpus, words, &starts, |at, slot, document, index| {
                if let Some(ages) = &mut ages {
                    ages[slot] = TokenAge::from_byte(self.ages[at]);
                }
                if stride > 1 {
                    let first = proposed[document] + index * (stride - 1);
                    tokens[slot * stride + 1..(slot + 1) * stride]
                        .copy_from_slice(&self.proposals[first..first + stride - 1]);
                }
            });
            (set.tokens, set.ages) = (tokens, ages);
        }
        Ok(())
    }
}

/// Index of each document's first token.
fn token_starts(corpus: &Corpus) -> Vec<usize> {
    let lengths = corpus.documents().map(|document| document.len() as usize);
    lengths.scan(0, |next, len| Some(std::mem::replace(next, *next + len))).collect()
}

/// Index of each document's first proposal, then the number of proposals.
fn proposal_starts<T: TopicIndex>(sets: &[TokenSet<T>], corpus: &Corpus) -> Vec<usize> {
    let mut starts = vec![0; corpus.num_documents() + 1];
    for set in sets {
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
        words: &WordRanges,
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
