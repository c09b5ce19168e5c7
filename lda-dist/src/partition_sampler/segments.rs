//! Tokens that are sampled word by word, cut into segments: one word in one range of documents.

use lda_core::counts::TopicIndex;
use lda_core::layout::RowRun;

use super::tokens::Tokens;

/// Tokens of one word in one range of documents, or some of them.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Index of the document range.
    range: u32,
    /// Index of the word in the partition.
    word: u32,
    /// First token, counted in the order in which they were added.
    start: u32,
    /// End of the tokens, exclusive.
    end: u32,
}

/// Segments in the order in which they are sampled, and copies of their tokens in that order.
pub(super) struct Segments<T> {
    segments: Vec<Segment>,
    /// Scratch: the first token of each word that is not in a segment yet.
    starts: Vec<u32>,
    pub visits: Vec<RowRun>,
    pub documents: Vec<u32>,
    pub topics: Vec<T>,
}

impl<T: TopicIndex> Segments<T> {
    pub fn new() -> Self {
        Self {
            segments: Vec::new(),
            starts: Vec::new(),
            visits: Vec::new(),
            documents: Vec::new(),
            topics: Vec::new(),
        }
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        size_of::<Segment>() * self.segments.capacity()
            + size_of::<RowRun>() * self.visits.capacity()
            + size_of::<u32>() * (self.starts.capacity() + self.documents.capacity())
            + size_of::<T>() * self.topics.capacity()
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Cuts the tokens of each word at the ends of document ranges: segments are ordered by range,
    /// then by word. Leaves out the tokens for which `others` is true, if it is there.
    ///
    /// # Panics
    /// If a document is beyond the last range, or if the documents of a word do not ascend.
    pub fn cut(&mut self, tokens: &Tokens<T>, ends: &[u32], others: Option<&[bool]>) {
        let Self { segments, starts, .. } = self;
        segments.clear();
        starts.clear();
        starts.extend(tokens.words().map(|(_, of_word)| of_word.start));
        for (range, &end) in (0..).zip(ends) {
            for ((word, of_word), start) in tokens.words().zip(&mut *starts) {
                let left = &tokens.documents[*start as usize..of_word.end as usize];
                let len = left.partition_point(|&document| document < end) as u32;
                let segment = Segment { range, word, start: *start, end: *start + len };
                *start = segment.end;
                match others {
                    _ if len == 0 => {}
                    Some(others) => push_except(segments, segment, others),
                    None => segments.push(segment),
                }
            }
        }
        let are_in =
            tokens.words().zip(&*starts).all(|((_, of_word), &start)| start == of_word.end);
        assert!(are_in, "a document is beyond the last range");
    }

    /// Copies the tokens of all segments, with their topics after the last pass. The parts of a word
    /// in one range of documents are one visit.
    pub fn gather(&mut self, tokens: &Tokens<T>) {
        self.visits.clear();
        self.documents.clear();
        self.topics.clear();
        let mut last = None;
        for &Segment { range, word, start, end } in &self.segments {
            let of_segment = start as usize..end as usize;
            self.documents.extend_from_slice(&tokens.documents[of_segment.clone()]);
            self.topics.extend_from_slice(&tokens.after[of_segment]);
            if last.replace((range, word)) == Some((range, word)) {
                self.visits.pop();
            }
            self.visits.push(RowRun { row: word, end: self.topics.len() as u32 });
        }
    }

    /// Writes the new topics of all segments back to the tokens.
    pub fn scatter(&self, tokens: &mut Tokens<T>) {
        let mut sampled = &self.topics[..];
        for &Segment { start, end, .. } in &self.segments {
            let (of_segment, rest) = sampled.split_at((end - start) as usize);
            tokens.after[start as usize..end as usize].copy_from_slice(of_segment);
            sampled = rest;
        }
    }
}

/// Adds the parts of a segment whose tokens are not in `others`.
fn push_except(segments: &mut Vec<Segment>, segment: Segment, others: &[bool]) {
    let mut start = segment.start;
    for run in others[start as usize..segment.end as usize].chunk_by(|a, b| a == b) {
        let end = start + run.len() as u32;
        if !run[0] {
            segments.push(Segment { start, end, ..segment });
        }
        start = end;
    }
}
