//! Topic counts of one document during RT-LDA inference.

use super::tables::Tables;
use crate::counts::TopicIndex;
use crate::simd::LANES;

/// C_d as a list of its non-zeros, with the position of each topic in the list.
///
/// INVARIANT: `dense` is all zero between documents, and only topics with tokens are written. So a
/// document costs no O(K), and the same scratch serves any model.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// C_dk + α_k where C_dk > 0, else 0, by topic.
    dense: Vec<f32>,
    /// Position in the list of each topic with C_dk > 0, by topic.
    place: Vec<u32>,
    /// Topics of the entries, in no order, padded to whole vectors; entries past `len` have factor
    /// 0.
    topics: Vec<u32>,
    /// C_dk. 64 bits, since document length is unbounded.
    counts: Vec<u64>,
    /// C_dk + α_k where C_dk > 0, else 0.
    factors: Vec<f32>,
    /// floor_k.
    floors: Vec<f32>,
    len: usize,
}

impl Row {
    /// Grows the arrays to the number of topics of a model.
    pub fn begin(&mut self, topics: usize) {
        if self.dense.len() < topics {
            self.dense.resize(topics, 0.0);
            self.place.resize(topics, 0);
        }
    }

    /// Number of entries: K_d, or one more while a token is removed and its topic has no other.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Topics, C_dk + α_k and floor_k of all entries, padded to whole vectors by entries of factor
    /// 0.
    #[inline(always)]
    pub fn entries(&self) -> (&[u32], &[f32], &[f32]) {
        let end = self.len.next_multiple_of(LANES);
        (&self.topics[..end], &self.factors[..end], &self.floors[..end])
    }

    /// C_dk + α_k where C_dk > 0, else 0, by topic.
    #[inline(always)]
    pub fn dense(&self) -> &[f32] {
        &self.dense
    }

    /// Removes a token from a topic. The entry stays, because most tokens return to their topic;
    /// without tokens it has factor 0 and so weight 0, like a topic without an entry.
    #[inline(always)]
    pub fn take<T: TopicIndex>(&mut self, tables: &Tables<T>, topic: u32) {
        let at = self.place[topic as usize] as usize;
        self.set(tables, at, topic, self.counts[at] - 1);
    }

    /// Undoes [`take`](Self::take).
    #[inline(always)]
    pub fn put_back<T: TopicIndex>(&mut self, tables: &Tables<T>, topic: u32) {
        let at = self.place[topic as usize] as usize;
        self.set(tables, at, topic, self.counts[at] + 1);
    }

    /// Drops the entry of `topic` if [`take`](Self::take) has removed its last token.
    #[inline(always)]
    pub fn leave(&mut self, topic: u32) {
        let at = self.place[topic as usize] as usize;
        if self.counts[at] == 0 {
            self.len -= 1;
            let last = self.len;
            self.place[self.topics[last] as usize] = at as u32;
            self.topics[at] = self.topics[last];
            self.counts[at] = self.counts[last];
            self.factors[at] = self.factors[last];
            self.floors[at] = self.floors[last];
            self.factors[last] = 0.0;
        }
    }

    /// Adds a token to a topic.
    #[inline(always)]
    pub fn add<T: TopicIndex>(&mut self, tables: &Tables<T>, topic: u32) {
        // A factor is at least 1 where there is a token.
        if self.dense[topic as usize] > 0.0 {
            return self.put_back(tables, topic);
        }
        let at = self.len;
        if at == self.topics.len() {
            self.grow();
        }
        self.len += 1;
        self.place[topic as usize] = at as u32;
        self.topics[at] = topic;
        self.floors[at] = tables.floor[topic as usize];
        self.set(tables, at, topic, 1);
    }

    #[inline(always)]
    fn set<T: TopicIndex>(&mut self, tables: &Tables<T>, at: usize, topic: u32, count: u64) {
        let factor = if count > 0 { count as f32 + tables.alpha[topic as usize] } else { 0.0 };
        self.counts[at] = count;
        self.factors[at] = factor;
        self.dense[topic as usize] = factor;
    }

    /// Not inlined, so that the loop over tokens stays small.
    #[cold]
    fn grow(&mut self) {
        let len = self.topics.len() + LANES;
        self.topics.resize(len, 0);
        self.counts.resize(len, 0);
        self.factors.resize(len, 0.0);
        self.floors.resize(len, 0.0);
    }

    /// Moves the counts to `to`, topics ascending; the row is then empty.
    pub fn drain_into(&mut self, to: &mut Vec<(u32, u64)>) {
        to.clear();
        to.extend(self.topics.iter().copied().zip(self.counts.iter().copied()).take(self.len));
        to.sort_unstable();
        for &(topic, _) in to.iter() {
            self.dense[topic as usize] = 0.0;
        }
        self.factors[..self.len].fill(0.0);
        self.len = 0;
    }

    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        size_of::<f32>() * (self.dense.capacity() + self.place.capacity())
            + size_of::<u32>() * self.topics.capacity()
            + size_of::<u64>() * self.counts.capacity()
            + size_of::<f32>() * (self.factors.capacity() + self.floors.capacity())
    }
}
