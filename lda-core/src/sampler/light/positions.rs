//! Topics of every document's tokens, from which a random one is drawn.
//!
//! The document proposal is ∝ C_dk + α_k. The topic of a random token of the document is a draw
//! from its counts C_dk, in O(1) and from one cache line. In the order by word, the tokens of a
//! document lie far apart, so their topics are copied here, document after document: first the
//! block's tokens in the order in which the sweep visits them, so that one cursor per document
//! points to the next; then the tokens of other blocks, which do not change during the sweep and
//! are known by their counts alone. Documents without a token in the block are left out.
//!
//! Cost: a pass over the block's tokens and the rows of their documents, and over all tokens of
//! those documents if there are many blocks. Memory per thread: a topic id per token of these
//! documents and 16 bytes per document.

use std::ops::Range;

use crate::counts::{Rows, TopicIndex};
use crate::simd::Lanes;

/// Location of a document's topics.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    start: u64,
    /// Tokens of the document.
    len: u32,
    /// Number of its tokens that the sweep has passed.
    next: u32,
}

impl Head {
    #[inline(always)]
    fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// Topics of the tokens of a range of documents.
#[derive(Debug, Default)]
pub(super) struct Positions<T> {
    heads: Vec<Head>,
    topics: Vec<T>,
}

impl<T: TopicIndex> Positions<T> {
    /// Copies the topics; `z` and `partner` are topic and document of the block's tokens. `counts`
    /// is scratch: zero for every topic, before and after the call.
    pub fn write(&mut self, documents: &Rows<T>, z: &[T], partner: &[u32], counts: &mut [u32]) {
        let Self { heads, topics } = self;
        heads.clear();
        heads.reserve_exact(documents.len());
        heads.resize(documents.len(), Head::default());
        // First `next` counts the block's tokens.
        partner.iter().for_each(|&d| heads[d as usize].next += 1);
        let mut end = 0;
        for (d, head) in heads.iter_mut().enumerate() {
            let mut len = 0;
            if std::mem::take(&mut head.next) > 0 {
                documents.for_each(d, |_, count| len += count);
            }
            *head = Head { start: end, len, next: 0 };
            end += u64::from(len);
        }
        topics.reserve_exact((end as usize).saturating_sub(topics.len()));
        topics.resize(end as usize, T::default());
        for (&topic, &d) in z.iter().zip(partner) {
            let head = &mut heads[d as usize];
            topics[head.start as usize + head.next as usize] = topic;
            head.next += 1;
        }
        for (d, head) in heads.iter_mut().enumerate() {
            let own = std::mem::take(&mut head.next);
            if own == head.len {
                continue;
            }
            let (own, mut others) = topics[head.range()].split_at_mut(own as usize);
            own.iter().for_each(|topic| counts[topic.get() as usize] += 1);
            documents.for_each(d, |topic, count| {
                let count = (count - counts[topic as usize]) as usize;
                let (these, rest) = std::mem::take(&mut others).split_at_mut(count);
                these.fill(T::new(topic));
                others = rest;
            });
            own.iter().for_each(|topic| counts[topic.get() as usize] = 0);
        }
    }

    /// Prefetches the head of `document`.
    #[inline(always)]
    pub fn ask_head<L: Lanes>(&self, l: L, document: usize) {
        l.prefetch(&self.heads, document);
    }

    /// Prefetches the topic of the next token of `document`.
    #[inline(always)]
    pub fn ask_next<L: Lanes>(&self, l: L, document: usize) {
        let head = self.heads[document];
        l.prefetch(&self.topics, head.start as usize + head.next as usize);
    }

    /// Prefetches the topic of token `at` of `document`.
    #[inline(always)]
    pub fn ask<L: Lanes>(&self, l: L, document: usize, at: usize) {
        l.prefetch(&self.topics, self.heads[document].start as usize + at);
    }

    /// Number of tokens of `document`.
    #[inline(always)]
    pub fn tokens(&self, document: usize) -> u32 {
        self.heads[document].len
    }

    /// The topics of `document`, and the index of its next token among them.
    #[inline(always)]
    pub fn next(&self, document: usize) -> (&[T], usize) {
        let head = self.heads[document];
        (&self.topics[head.range()], head.next as usize)
    }

    /// Sets the topic of the next token of `document`.
    #[inline(always)]
    pub fn put(&mut self, document: usize, topic: T) {
        let head = &mut self.heads[document];
        let at = head.start as usize + head.next as usize;
        head.next += 1;
        self.topics[at] = topic;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counts::Density;

    /// A token: its document, its topic, and whether the block has it.
    fn tokens() -> impl Strategy<Value = Vec<(u32, u16, bool)>> {
        prop::collection::vec((0..5u32, 0..40u16, any::<bool>()), 0..200)
    }

    proptest! {
        /// Every document's topics are what its row counts, first the block's in their order.
        #[test]
        fn topics_are_those_that_are_counted(tokens in tokens(), dense in any::<bool>()) {
            let density = if dense { Density::Dense } else { Density::Auto };
            let mut rows = Rows::<u16>::new(40, [200; 5].into_iter(), density).unwrap();
            tokens.iter().for_each(|&(d, topic, _)| rows.increment(d as usize, topic.into()));
            let own = tokens.iter().filter(|token| token.2);
            let (z, partner): (Vec<u16>, Vec<u32>) = own.map(|&(d, topic, _)| (topic, d)).unzip();
            let mut counts = vec![0; 40];
            let mut positions = Positions::default();
            // The second write overwrites the results of the first.
            for _ in 0..2 {
                positions.write(&rows, &z, &partner, &mut counts);
            }
            prop_assert!(counts.iter().all(|&count| count == 0));
            for d in (0..5).filter(|d| partner.contains(d)) {
                let of = |own: bool| {
                    let of = move |&&(e, _, has): &&(u32, u16, bool)| (e, has) == (d, own);
                    tokens.iter().filter(of).map(|token| token.1).collect::<Vec<_>>()
                };
                let (topics, next) = positions.next(d as usize);
                let (own, others) = topics.split_at(of(true).len());
                prop_assert_eq!(next, 0);
                prop_assert_eq!(own, of(true));
                let sorted = |mut topics: Vec<u16>| { topics.sort_unstable(); topics };
                prop_assert_eq!(sorted(others.to_vec()), sorted(of(false)));
            }
            for d in (0..5).filter(|d| !partner.contains(d)) {
                prop_assert_eq!(positions.tokens(d as usize), 0);
            }
        }
    }

    #[test]
    fn what_becomes_of_a_token_is_drawn_from_next() {
        let mut rows = Rows::<u32>::new(10, [3, 2].into_iter(), Density::Auto).unwrap();
        for (d, topic) in [(0, 1), (0, 2), (1, 3), (0, 4), (1, 5)] {
            rows.increment(d, topic);
        }
        let mut positions = Positions::default();
        positions.write(&rows, &[2, 3, 1], &[0, 1, 0], &mut [0; 10]);
        positions.put(0, 7);
        assert_eq!(positions.next(0), ([7, 1, 4].as_slice(), 1));
        assert_eq!(positions.next(1), ([3, 5].as_slice(), 0));
        assert_eq!((positions.tokens(0), positions.tokens(1)), (3, 2));
    }
}
