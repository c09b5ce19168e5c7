//! Assembly of pairs, in any order, into compressed sparse rows.
//!
//! Pairs are appended to the arrays of the finished corpus. Consecutive documents need nothing
//! else; a document whose words do not ascend is sorted, and its repeats are merged, when it ends.
//! When a document id recurs, the document of each pair is stored from then on (4 bytes per pair),
//! and `finish` sorts all pairs *in place*, along the cycles of the permutation, so that the arrays
//! never exist twice.
//!
//! Memory: the arrays grow to the size that the input predicts. A reader knows which share of its
//! input it has read, so after some pairs it can extrapolate their number; without that, the arrays
//! grow by half.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{BlockSink, Destination};
use super::{Corpus, MAX_DOCUMENTS, MAX_PAIRS, MAX_TOKENS};

/// Progress of reading, shared between the reader, which updates it, and the assembly.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    consumed: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Extent {
    pub(super) fn of(total: Option<u64>) -> Self {
        Self { consumed: Arc::default(), total }
    }

    pub(super) fn advance(&self, bytes: usize) {
        // Only one thread writes; the type is atomic only so that a builder is `Send`.
        let consumed = self.consumed.load(Ordering::Relaxed) + bytes as u64;
        self.consumed.store(consumed, Ordering::Relaxed);
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Extrapolates `len` to the end of the input, assuming that the rest is like the part read.
    fn extrapolate(&self, len: usize) -> Option<usize> {
        let (consumed, total) = (self.consumed(), self.total?);
        if consumed == 0 || consumed > total {
            return None;
        }
        let expected = len as u128 * u128::from(total) / u128::from(consumed);
        Some(usize::try_from(expected + expected / 64 + 64).unwrap_or(usize::MAX))
    }

    /// New capacity of an array that is full with `len` items.
    pub(super) fn capacity_after(&self, len: usize) -> usize {
        // Never more than twice what has been read, so that a header cannot cause an allocation.
        let expected = self.extrapolate(len).unwrap_or(len + len / 2);
        expected.clamp(len + len / 8 + 64, 2 * len + 1024)
    }
}

/// Appends an item to an array that grows with the extent of the input.
pub(super) fn push(array: &mut Vec<u32>, item: u32, extent: &Extent) -> Result<(), Excess> {
    if array.len() == array.capacity() {
        let more = extent.capacity_after(array.len()) - array.len();
        array.try_reserve_exact(more).map_err(|_| Excess::Memory)?;
    }
    array.push(item);
    Ok(())
}

/// Frees unused capacity, unless it is too little to be worth a copy.
pub(super) fn shrink<T>(array: &mut Vec<T>) {
    if array.capacity() - array.len() > array.len() / 32 {
        array.shrink_to_fit();
    }
}

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Documents,
    Pairs,
    Tokens,
    EmptyDocuments {
        limit: u64,
    },
    /// The counts of one word in one document add up to more than 2^32 - 1.
    Count {
        word: u32,
    },
    Memory,
    /// A document comes after one with a larger number, which is in a block already.
    OutOfOrder,
    /// A block could not be written; its receiver has the error.
    Block,
}

/// Irregularities of the input that were normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    pub(super) unsorted_pairs: u64,
    pub(super) repeated_pairs: u64,
    pub(super) zero_counts: u64,
    pub(super) empty_documents: u64,
    pub(super) out_of_order_documents: u64,
}

#[derive(Debug)]
pub(super) struct Assembly {
    /// Ends of the finished documents, after a first 0.
    offsets: Vec<u32>,
    words: Vec<u32>,
    counts: Vec<u32>,
    /// The document of each pair; present once a document id has recurred.
    documents: Option<Vec<u32>>,
    /// The current document; used only by `push_at`.
    current: u32,
    /// First pair of the unfinished document.
    start: usize,
    /// The smallest word that keeps the order ascending.
    next: u64,
    ascending: bool,
    tokens: u64,
    /// One above the largest word of a dropped pair; kept pairs are in `words`.
    width: u32,
    declared: Option<usize>,
    max_empty: u64,
    extent: Extent,
    repairs: Repairs,
    scratch: Vec<u64>,
    /// Receiver of blocks, if documents do not stay here.
    blocks: Option<BlockSink>,
    /// Documents in blocks.
    in_blocks: usize,
}

impl Assembly {
    pub(super) fn new(destination: impl Into<Destination>, max_empty: u64) -> Self {
        let Destination { extent, blocks } = destination.into();
        // Only the documents of a block are here at a time, whatever the size of the input.
        let extent = if blocks.is_some() { Extent::default() } else { extent };
        Self {
            blocks,
            in_blocks: 0,
            offsets: vec![0],
            words: Vec::new(),
            counts: Vec::new(),
            documents: None,
            current: 0,
            start: 0,
            next: 0,
            ascending: true,
            tokens: 0,
            width: 0,
            declared: None,
            max_empty,
            extent,
            repairs: Repairs::default(),
            scratch: Vec::new(),
        }
    }

    /// Reserves memory for the `documents` and `pairs` that a header states, but for at most
    /// `plausible` of each: a wrong header must not cause a huge allocation.
    pub(super) fn announce(
        &mut self,
        documents: u64,
        pairs: u64,
        plausible: u64,
    ) -> Result<(), Excess> {
        if self.blocks.is_some() {
            return Ok(());
        }
        let believed = |count: u64| usize::try_from(count.min(plausible)).unwrap_or(0);
        self.declared = usize::try_from(pairs).ok();
        self.words.try_reserve_exact(believed(pairs)).map_err(|_| Excess::Memory)?;
        self.counts.try_reserve_exact(believed(pairs)).map_err(|_| Excess::Memory)?;
        self.offsets.try_reserve_exact(believed(documents)).map_err(|_| Excess::Memory)
    }

    /// Number of documents finished so far.
    pub(super) fn num_documents(&self) -> usize {
        self.in_blocks + self.offsets.len() - 1
    }

    /// Number of documents that were finished and are in blocks.
    pub(super) fn num_in_blocks(&self) -> usize {
        self.in_blocks
    }

    /// Appends a pair to the unfinished document. The word is at most `MAX_WORD`.
    #[inline]
    pub(super) fn push(&mut self, word: u32, count: u32) -> Result<(), Excess> {
        if count == 0 {
            self.repairs.zero_counts += 1;
            self.width = self.width.max(word + 1);
            return Ok(());
        }
        let place = u64::from(word);
        if place < self.next {
            self.ascending = false;
            self.repairs.unsorted_pairs += u64::from(place + 1 < self.next);
        }
        self.next = place + 1;
        if self.words.len() == self.words.capacity() {
            self.grow()?;
        }
        self.words.push(word);
        self.counts.push(count);
        Ok(())
    }

    /// Appends a pair to any document. The word is at most `MAX_WORD`.
    #[inline]
    pub(super) fn push_at(&mut self, document: u32, word: u32, count: u32) -> Result<(), Excess> {
        if document != self.current {
            self.turn_to(document)?;
        }
        self.push(word, count)?;
        if let Some(documents) = &mut self.documents
            && count > 0
        {
            push(documents, document, &self.extent)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Excess> {
        let len = self.words.len();
        if len >= MAX_PAIRS {
            return Err(Excess::Pairs);
        }
        let mut capacity = self.extent.capacity_after(len);
        if let Some(declared) = self.declared.filter(|&declared| declared > len) {
            capacity = capacity.min(declared);
        }
        let more = capacity.min(MAX_PAIRS) - len;
        self.words.try_reserve_exact(more).map_err(|_| Excess::Memory)?;
        self.counts.try_reserve_exact(more).map_err(|_| Excess::Memory)
    }

    fn turn_to(&mut self, document: u32) -> Result<(), Excess> {
        if self.documents.is_none() {
            if document > self.current {
                return self.finish_before(document);
            }
            if self.blocks.is_some() {
                return Err(Excess::OutOfOrder);
            }
            self.scatter()?;
        }
        self.repairs.out_of_order_documents += u64::from(document < self.current);
        self.current = document;
        self.next = 0;
        Ok(())
    }

    fn finish_before(&mut self, document: u32) -> Result<(), Excess> {
        // All skipped documents are empty. Check the limit before they are allocated.
        let skipped = u64::from(document - self.current - 1);
        if self.repairs.empty_documents + skipped > self.max_empty {
            return Err(Excess::EmptyDocuments { limit: self.max_empty });
        }
        while self.current < document {
            self.end_document()?;
            self.current += 1;
        }
        Ok(())
    }

    /// Ends the current document. If documents go into blocks, it may end one.
    #[inline]
    pub(super) fn end_document(&mut self) -> Result<(), Excess> {
        self.end_document_with(|_, _| ())
    }

    /// As [`end_document`](Self::end_document); `attach` adds to the documents of a block, of which it gets the
    /// number, what is not here.
    #[inline]
    pub(super) fn end_document_with(
        &mut self,
        attach: impl FnOnce(&mut Corpus, usize),
    ) -> Result<(), Excess> {
        self.end_pairs()?;
        match &self.blocks {
            Some(blocks) if blocks.is_full(self.tokens) => self.end_block(attach),
            _ => Ok(()),
        }
    }

    /// Moves the finished documents into a block.
    #[cold]
    fn end_block(&mut self, attach: impl FnOnce(&mut Corpus, usize)) -> Result<(), Excess> {
        let documents = self.offsets.len() - 1;
        let words = std::mem::take(&mut self.words);
        let num_words = words.iter().max().map_or(0, |&word| word + 1);
        self.width = self.width.max(num_words);
        let mut block = Corpus {
            offsets: std::mem::replace(&mut self.offsets, vec![0]),
            words,
            counts: std::mem::take(&mut self.counts),
            num_words,
            num_tokens: std::mem::take(&mut self.tokens),
            width_is_open: false,
            vocabulary: None,
            dates: None,
            sequence: None,
            names: None,
        };
        attach(&mut block, documents);
        (self.start, self.in_blocks) = (0, self.in_blocks + documents);
        let is_written = self.blocks.as_ref().is_some_and(|blocks| blocks.push(&block));
        if is_written { Ok(()) } else { Err(Excess::Block) }
    }

    /// Ends the pairs of the current document.
    #[inline]
    fn end_pairs(&mut self) -> Result<(), Excess> {
        if !self.ascending {
            let end = self.normalise(self.start..self.words.len(), self.start)?;
            self.words.truncate(end);
            self.counts.truncate(end);
        }
        let end = self.words.len();
        if end == self.start {
            self.count_empty(1)?;
        }
        self.tokens += self.counts[self.start..].iter().map(|&n| u64::from(n)).sum::<u64>();
        if self.tokens > MAX_TOKENS {
            return Err(Excess::Tokens);
        }
        if self.offsets.len() > MAX_DOCUMENTS {
            return Err(Excess::Documents);
        }
        push(&mut self.offsets, end as u32, &self.extent)?;
        self.start = end;
        self.next = 0;
        self.ascending = true;
        Ok(())
    }

    fn count_empty(&mut self, documents: u64) -> Result<(), Excess> {
        self.repairs.empty_documents += documents;
        if self.repairs.empty_documents > self.max_empty {
            return Err(Excess::EmptyDocuments { limit: self.max_empty });
        }
        Ok(())
    }

    /// Sorts and merges the pairs of one document and moves them to `to`, which is at or before
    /// their start. Returns their new end.
    fn normalise(&mut self, pairs: std::ops::Range<usize>, to: usize) -> Result<usize, Excess> {
        self.scratch.clear();
        self.scratch.try_reserve_exact(pairs.len()).map_err(|_| Excess::Memory)?;
        for i in pairs {
            // Word above count in one integer: sorting integers sorts by word.
            self.scratch.push(u64::from(self.words[i]) << 32 | u64::from(self.counts[i]));
        }
        self.scratch.sort_unstable();
        let mut end = to;
        for &pair in &self.scratch {
            let (word, count) = ((pair >> 32) as u32, pair as u32);
            if end > to && self.words[end - 1] == word {
                let sum = self.counts[end - 1].checked_add(count);
                self.counts[end - 1] = sum.ok_or(Excess::Count { word })?;
                self.repairs.repeated_pairs += 1;
            } else {
                self.words[end] = word;
                self.counts[end] = count;
                end += 1;
            }
        }
        // Free the scratch of a giant document.
        if self.scratch.capacity() > 1 << 16 {
            self.scratch = Vec::new();
        }
        Ok(end)
    }

    /// Switches to any order: stores the document of each pair from now on.
    #[cold]
    fn scatter(&mut self) -> Result<(), Excess> {
        let mut documents = Vec::new();
        documents.try_reserve_exact(self.words.capacity()).map_err(|_| Excess::Memory)?;
        for (document, range) in self.offsets.windows(2).enumerate() {
            documents.resize(documents.len() + (range[1] - range[0]) as usize, document as u32);
        }
        documents.resize(self.words.len(), self.current);
        self.documents = Some(documents);
        self.offsets = Vec::new();
        self.repairs.empty_documents = 0;
        self.tokens = 0;
        Ok(())
    }

    /// Finishes a corpus whose documents were all ended by [`end_document`](Self::end_document).
    pub(super) fn finish(self) -> Result<(Corpus, Repairs), Excess> {
        let documents = self.num_documents() as u32;
        self.finish_at(documents)
    }

    /// Finishes a corpus of `num_documents`, which is above every document id pushed. The number of
    /// words is the largest word plus one.
    pub(super) fn finish_at(mut self, num_documents: u32) -> Result<(Corpus, Repairs), Excess> {
        if num_documents as usize > MAX_DOCUMENTS {
            return Err(Excess::Documents);
        }
        match self.documents.take() {
            Some(documents) => self.gather(documents, num_documents as usize)?,
            None => {
                let missing = (num_documents as usize - self.num_documents()) as u64;
                if self.repairs.empty_documents + missing.saturating_sub(1) > self.max_empty {
                    return Err(Excess::EmptyDocuments { limit: self.max_empty });
                }
                if self.blocks.is_none() {
                    let room = self.offsets.try_reserve_exact(missing as usize);
                    room.map_err(|_| Excess::Memory)?;
                }
                while self.num_documents() < num_documents as usize {
                    self.end_document()?;
                }
            }
        }
        shrink(&mut self.offsets);
        shrink(&mut self.words);
        shrink(&mut self.counts);
        let corpus = Corpus {
            offsets: self.offsets,
            num_words: self.words.iter().max().map_or(0, |&word| word + 1).max(self.width),
            words: self.words,
            counts: self.counts,
            num_tokens: self.tokens,
            width_is_open: true,
            vocabulary: None,
            dates: None,
            sequence: None,
            names: None,
        };
        Ok((corpus, self.repairs))
    }

    /// Groups scattered pairs by document, in place: one bucket per document, filled along the
    /// cycles of the permutation.
    fn gather(&mut self, mut documents: Vec<u32>, num_documents: usize) -> Result<(), Excess> {
        let least_empty = num_documents.saturating_sub(documents.len()) as u64;
        if least_empty > self.max_empty {
            return Err(Excess::EmptyDocuments { limit: self.max_empty });
        }
        let mut offsets: Vec<u32> = Vec::new();
        let mut heads: Vec<u32> = Vec::new();
        offsets.try_reserve_exact(num_documents + 1).map_err(|_| Excess::Memory)?;
        heads.try_reserve_exact(num_documents).map_err(|_| Excess::Memory)?;
        offsets.resize(num_documents + 1, 0);
        for &document in &documents {
            offsets[document as usize + 1] += 1;
        }
        for d in 0..num_documents {
            offsets[d + 1] += offsets[d];
        }
        heads.extend_from_slice(&offsets[..num_documents]);
        // INVARIANT: pairs before `heads[d]` in bucket d are in place. Each swap puts one more pair
        // in place, so the loops take one swap per pair.
        for d in 0..num_documents {
            while heads[d] < offsets[d + 1] {
                let here = heads[d] as usize;
                let home = documents[here] as usize;
                let there = heads[home] as usize;
                documents.swap(here, there);
                self.words.swap(here, there);
                self.counts.swap(here, there);
                heads[home] += 1;
            }
        }
        drop((documents, heads));
        self.merge_buckets(&mut offsets)?;
        self.offsets = offsets;
        Ok(())
    }

    /// Sorts and merges the pairs of each bucket, and closes the gaps that merging leaves.
    fn merge_buckets(&mut self, offsets: &mut [u32]) -> Result<(), Excess> {
        let (mut begin, mut end) = (0, 0);
        for d in 0..offsets.len() - 1 {
            let bucket = begin..offsets[d + 1] as usize;
            begin = bucket.end;
            if bucket.is_empty() {
                self.count_empty(1)?;
            }
            let first = end;
            end = if self.words[bucket.clone()].is_sorted_by(|a, b| a < b) {
                self.words.copy_within(bucket.clone(), first);
                self.counts.copy_within(bucket.clone(), first);
                first + bucket.len()
            } else {
                self.normalise(bucket, first)?
            };
            offsets[d + 1] = end as u32;
            self.tokens += self.counts[first..end].iter().map(|&n| u64::from(n)).sum::<u64>();
            if self.tokens > MAX_TOKENS {
                return Err(Excess::Tokens);
            }
        }
        self.words.truncate(end);
        self.counts.truncate(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn assembly() -> Assembly {
        Assembly::new(Extent::default(), 1000)
    }

    fn rows(corpus: &Corpus) -> Vec<Vec<(u32, u32)>> {
        corpus.documents().map(|document| document.iter().collect()).collect()
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_corpus(
            pairs in prop::collection::vec((0u32..8, 0u32..12, 0u32..4), 0..80),
        ) {
            let mut model = vec![BTreeMap::new(); 9];
            let mut assembly = assembly();
            for &(document, word, count) in &pairs {
                assembly.push_at(document, word, count).unwrap();
                if count > 0 {
                    *model[document as usize].entry(word).or_insert(0) += count;
                }
            }
            let (corpus, repairs) = assembly.finish_at(9).unwrap();
            let model: Vec<Vec<(u32, u32)>> =
                model.into_iter().map(|row| row.into_iter().collect()).collect();
            prop_assert_eq!(rows(&corpus), model.clone());
            let kept = pairs.iter().filter(|pair| pair.2 > 0).count();
            let tokens: u64 = pairs.iter().map(|pair| u64::from(pair.2)).sum();
            prop_assert_eq!(corpus.num_tokens(), tokens);
            let width = pairs.iter().map(|pair| pair.1 as usize + 1).max().unwrap_or(0);
            prop_assert_eq!(corpus.num_words(), width);
            prop_assert_eq!(repairs.zero_counts as usize, pairs.len() - kept);
            prop_assert_eq!(repairs.repeated_pairs as usize, kept - corpus.num_pairs());
            let empty = model.iter().filter(|row| row.is_empty()).count();
            prop_assert_eq!(repairs.empty_documents as usize, empty);
        }
    }

    #[test]
    fn disorder_is_counted() {
        let mut assembly = assembly();
        for (document, word) in [(0, 5), (0, 3), (0, 3), (2, 0), (1, 4), (1, 2), (2, 0)] {
            assembly.push_at(document, word, 1).unwrap();
        }
        let (corpus, repairs) = assembly.finish_at(3).unwrap();
        assert_eq!(rows(&corpus), [vec![(3, 2), (5, 1)], vec![(2, 1), (4, 1)], vec![(0, 2)]]);
        let expected = Repairs {
            unsorted_pairs: 2,
            repeated_pairs: 2,
            out_of_order_documents: 1,
            ..Repairs::default()
        };
        assert_eq!(repairs, expected);
    }

    #[test]
    fn a_merged_count_that_overflows_is_refused() {
        let mut assembly = assembly();
        assembly.push(7, u32::MAX).unwrap();
        assembly.push(7, 1).unwrap();
        assert_eq!(assembly.end_document(), Err(Excess::Count { word: 7 }));
    }

    #[test]
    fn tokens_have_a_limit() {
        let mut assembly = assembly();
        assembly.push(0, u32::MAX).unwrap();
        assembly.push(1, 1).unwrap();
        assembly.end_document().unwrap();
        assembly.push(0, 1).unwrap();
        assert_eq!(assembly.end_document(), Err(Excess::Tokens));
    }

    #[test]
    fn empty_documents_have_a_limit() {
        let mut ordered = assembly();
        assert_eq!(ordered.push_at(2000, 0, 1), Err(Excess::EmptyDocuments { limit: 1000 }));
        let mut trailing = assembly();
        trailing.push_at(0, 0, 1).unwrap();
        let error = trailing.finish_at(u32::MAX - 1).unwrap_err();
        assert_eq!(error, Excess::EmptyDocuments { limit: 1000 });
        let mut scattered = assembly();
        scattered.push_at(1, 0, 1).unwrap();
        scattered.push_at(0, 0, 1).unwrap();
        let error = scattered.finish_at(u32::MAX - 1).unwrap_err();
        assert_eq!(error, Excess::EmptyDocuments { limit: 1000 });
    }

    #[test]
    fn growth_follows_the_input_but_never_a_promise() {
        let extent = Extent::of(Some(1000));
        extent.advance(500);
        assert_eq!(extent.capacity_after(10_000), 20_000 + 20_000 / 64 + 64);
        let hostile = Extent::of(Some(u64::MAX));
        hostile.advance(1);
        assert_eq!(hostile.capacity_after(10_000), 21_024);
        assert_eq!(Extent::default().capacity_after(10_000), 15_000);
    }
}
