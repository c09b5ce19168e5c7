//! The arrays of a layout, so that it can be stored.

use super::{InverseIndex, Order, RowRun, TokenLayout, TokenOrder};
use crate::layout::WordRanges;

/// The arrays of a layout, as [`TokenLayout`] has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutParts {
    pub documents: Vec<u32>,
    pub lengths: Vec<u32>,
    pub starts: Vec<u32>,
    pub visit_starts: Vec<u64>,
    pub slot_starts: Vec<u64>,
    pub rows: Vec<u32>,
    pub ends: Vec<u32>,
    /// Empty if a sampler walks documents by the inverse index.
    pub partner: Vec<u32>,
}

impl TokenLayout {
    /// A copy of the arrays but the partners, which [`partner`](Self::partner) returns.
    pub(crate) fn parts(&self) -> LayoutParts {
        let wide = |starts: &[usize]| starts.iter().map(|&start| start as u64).collect();
        LayoutParts {
            documents: self.documents.clone(),
            lengths: self.lengths.clone(),
            starts: self.starts.clone(),
            visit_starts: wide(&self.visit_starts),
            slot_starts: wide(&self.slot_starts),
            rows: self.visits.iter().map(|visit| visit.row).collect(),
            ends: self.visits.iter().map(|visit| visit.end).collect(),
            partner: Vec::new(),
        }
    }

    /// A layout of these arrays, of documents with numbers below `documents`; `None` if they contradict each
    /// other or the words.
    pub(crate) fn from_parts(
        parts: LayoutParts,
        order: TokenOrder,
        words: &WordRanges,
        documents: u64,
    ) -> Option<Self> {
        let narrow = |starts: &[u64]| -> Option<Vec<usize>> {
            let is_sound = starts.first() == Some(&0) && starts.is_sorted();
            starts
                .iter()
                .map(|&start| usize::try_from(start).ok())
                .collect::<Option<_>>()
                .filter(|_| is_sound)
        };
        let (visit_starts, slot_starts) =
            (narrow(&parts.visit_starts)?, narrow(&parts.slot_starts)?);
        let LayoutParts { documents: held, lengths, starts, rows, ends, partner, .. } = parts;
        let visits: Vec<RowRun> =
            rows.into_iter().zip(ends).map(|(row, end)| RowRun { row, end }).collect();
        let layout = Self {
            order,
            documents: held,
            lengths,
            starts,
            visit_starts,
            slot_starts,
            visits,
            partner,
        };
        (layout.is_sound(words, documents)).then_some(layout)
    }

    /// Returns true if all indices are in range and all lengths add up.
    fn is_sound(&self, words: &WordRanges, documents: u64) -> bool {
        let (ranges, tokens) = (words.num_ranges(), self.slot_starts.last().copied());
        let edges = ranges * ranges * Order::ALL.len() + 1;
        let shapes = self.starts.len() == ranges + 1
            && self.starts[0] == 0
            && self.starts.is_sorted()
            && self.starts[ranges] as usize == self.documents.len()
            && self.lengths.len() == self.documents.len()
            && (self.visit_starts.len(), self.slot_starts.len()) == (edges, edges)
            && self.visit_starts.last() == Some(&self.visits.len())
            && (self.partner.is_empty() || Some(self.partner.len()) == tokens);
        shapes
            && self.documents.iter().all(|&document| u64::from(document) < documents)
            && (0..ranges).all(|range| self.is_sound_range(words, range))
    }

    fn is_sound_range(&self, words: &WordRanges, range: usize) -> bool {
        let documents = self.documents(range).len() as u32;
        let tokens: u64 = self.lengths(range).iter().map(|&length| u64::from(length)).sum();
        self.range_slots(range).len() as u64 == tokens
            && (0..self.num_ranges()).all(|word_range| {
                let words = words.words(word_range).len() as u32;
                Order::ALL.into_iter().all(|order| {
                    let bounds = self.block(range, word_range, order);
                    let (rows, partners) = match order {
                        Order::ByWord => (words, documents),
                        Order::ByDocument => (documents, words),
                    };
                    let visits = &self.visits[bounds.visits];
                    let mut last = 0;
                    let ascend = visits.iter().all(|visit| {
                        let is_next = visit.row < rows && visit.end > last;
                        last = visit.end;
                        is_next
                    });
                    let partner = self.partner.get(bounds.slots.clone()).unwrap_or_default();
                    ascend
                        && last as usize == bounds.slots.len()
                        && partner.iter().all(|&partner| partner < partners)
                })
            })
    }
}

impl InverseIndex {
    /// The slots of all ranges.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// An index of these slots; `None` if they are not those of the layout's tokens: each slot of a range once.
    pub(crate) fn from_slots(layout: &TokenLayout, slots: Vec<u32>) -> Option<Self> {
        if slots.len() != layout.num_tokens() {
            return None;
        }
        let mut starts = vec![0];
        starts.extend((0..layout.num_ranges()).map(|range| layout.range_slots(range).end));
        let mut seen = Vec::new();
        for ends in starts.windows(2) {
            let of_range = &slots[ends[0]..ends[1]];
            seen.clear();
            seen.resize(of_range.len(), false);
            for &slot in of_range {
                if std::mem::replace(seen.get_mut(slot as usize)?, true) {
                    return None;
                }
            }
        }
        Some(Self { slots, starts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;

    fn corpus() -> Corpus {
        let documents = (0..40u32).map(|d| (0..1 + d % 30).map(move |i| (d * 31 + i * i) % 97));
        Corpus::from_tokens(documents).unwrap()
    }

    fn parts(order: TokenOrder) -> (WordRanges, TokenLayout, LayoutParts) {
        let corpus = corpus();
        let words = WordRanges::new(&corpus.word_frequencies(), 3);
        let all: Vec<u32> = (0..40).collect();
        let layout = TokenLayout::new(&corpus, &all, &words, order);
        let parts = LayoutParts { partner: layout.partner().to_vec(), ..layout.parts() };
        (words, layout, parts)
    }

    #[test]
    fn layouts_come_back_from_their_parts() {
        for order in [
            TokenOrder::All(Order::ByWord),
            TokenOrder::All(Order::ByDocument),
            TokenOrder::ByDegree,
        ] {
            let (words, layout, parts) = parts(order);
            let again = TokenLayout::from_parts(parts, order, &words, 40).unwrap();
            assert_eq!(format!("{again:?}"), format!("{layout:?}"));
        }
        let (_, layout, _) = parts(TokenOrder::All(Order::ByWord));
        let index = InverseIndex::new(&layout);
        let again = InverseIndex::from_slots(&layout, index.slots().to_vec()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{index:?}"));
        let mut twice = index.slots().to_vec();
        twice[1] = twice[0];
        assert!(InverseIndex::from_slots(&layout, twice).is_none());
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        type Change = fn(&mut LayoutParts);
        let changes: [Change; 12] = [
            |parts| parts.documents[3] = 40,
            |parts| parts.lengths[0] += 1,
            |parts| parts.starts[1] += 1,
            |parts| parts.starts[0] = 1,
            |parts| {
                parts.starts.pop();
            },
            |parts| parts.visit_starts[1] = u64::MAX,
            |parts| *parts.visit_starts.last_mut().unwrap() -= 1,
            |parts| parts.slot_starts[2] += 1,
            |parts| parts.rows[0] = 97,
            |parts| parts.ends[0] = 0,
            |parts| parts.partner[5] = 40,
            |parts| {
                parts.partner.pop();
            },
        ];
        let order = TokenOrder::All(Order::ByWord);
        for (number, change) in changes.into_iter().enumerate() {
            let (words, _, mut parts) = parts(order);
            change(&mut parts);
            assert!(TokenLayout::from_parts(parts, order, &words, 40).is_none(), "{number}");
        }
    }
}
