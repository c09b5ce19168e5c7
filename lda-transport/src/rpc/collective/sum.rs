//! Reduce-scatter: vectors are added.
//!
//! The sums of the member of rank c start with the vector of rank c + 1 and move from member to
//! member, up to c. Terms that are sent directly are added in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Element;
use super::operation::{MAX_DIRECT_LEN, OutgoingPart, Place, num_parts, part_range};
use super::part::Part;
use crate::frame::Frame;

/// Partial sums that move around the ring, or terms that are sent directly.
#[derive(Debug)]
pub(super) struct Sum {
    element: Element,
    values: Frame,
    direct: bool,
    /// Terms of other members, by rank, until all have arrived.
    terms: BTreeMap<usize, Frame>,
    /// Sums of this member.
    sums: Vec<u8>,
    /// Parts of the sums that have not arrived.
    missing: BTreeSet<u32>,
}

impl Sum {
    pub fn new(place: Place, element: Element, values: Frame, out: &mut Vec<OutgoingPart>) -> Self {
        let (rank, members) = (place.rank, place.members);
        let longest = values.len().div_ceil(members) + element.bytes();
        let direct = members > 2 && longest <= MAX_DIRECT_LEN.min(place.part_len);
        let mut sum = Self {
            element,
            values,
            direct,
            terms: BTreeMap::new(),
            sums: Vec::new(),
            missing: BTreeSet::new(),
        };
        let own = sum.range(rank, members);
        sum.sums = sum.values[own].to_vec();
        if members > 1 {
            sum.missing = (0..num_parts(sum.sums.len(), place.part_len) as u32).collect();
        }
        let first = if direct { place.others().collect() } else { vec![place.last()] };
        let to = |of: usize| if direct { of } else { place.next() };
        for of in first.into_iter().filter(|&of| of != rank) {
            let range = sum.range(of, members);
            for index in 0..num_parts(range.len(), place.part_len) {
                let part_bytes = part_range(index, range.len(), place.part_len);
                let payload =
                    sum.values.slice(range.start + part_bytes.start..range.start + part_bytes.end);
                out.push(OutgoingPart { to: to(of), part: sum.part(of, index, payload) });
            }
        }
        sum
    }

    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Returns the ranks of members that have not sent everything.
    pub fn awaited(&self, place: Place) -> Vec<usize> {
        if self.direct {
            place.others().filter(|rank| !self.terms.contains_key(rank)).collect()
        } else {
            vec![place.last()]
        }
    }

    pub fn into_sums(self) -> Vec<u8> {
        self.sums
    }

    fn part(&self, of: usize, index: usize, payload: Frame) -> Part {
        let (direct, length) = (self.direct, self.values.len() as u64);
        Part { origin: of as u32, index: index as u32, direct, length, payload }
    }

    /// Returns the bytes whose sums a member gets.
    fn range(&self, rank: usize, members: usize) -> Range<usize> {
        let size = self.element.bytes();
        let len = (self.values.len() / size) as u128;
        let at = |rank: usize| (len * rank as u128 / members as u128) as usize * size;
        at(rank)..at(rank + 1)
    }

    /// Takes a part from the member of rank `from`. Adds the parts to send on to `out`.
    pub fn take(
        &mut self,
        place: Place,
        from: usize,
        part: Part,
        out: &mut Vec<OutgoingPart>,
    ) -> Result<(), String> {
        let of = part.origin as usize;
        let way = if self.direct { of == place.rank } else { from == place.last() && of != from };
        if part.direct != self.direct || !way || of >= place.members {
            return Err(format!("sums of {of} from {from}"));
        }
        let range = self.range(of, place.members);
        let index = part.index as usize;
        if index >= num_parts(range.len(), place.part_len) {
            return Err(format!("part {index} of sums with fewer parts"));
        }
        let part_bytes = part_range(index, range.len(), place.part_len);
        if part.payload.len() != part_bytes.len() {
            return Err(format!("part {index} of sums has {} bytes", part.payload.len()));
        }
        if of == place.rank && !self.missing.contains(&part.index) {
            return Err(format!("part {index} of sums arrived twice"));
        }
        if self.direct {
            if self.terms.insert(from, part.payload).is_some() {
                return Err(format!("the term of {from} arrived twice"));
            }
            if self.terms.len() == place.members - 1 {
                // INVARIANT: the order of ranks, and this member last, as around the ring: sums of
                // `f32` depend on it.
                let mut terms = place.others().map(|rank| &self.terms[&rank]);
                let mut sums = terms.next().map_or_else(Vec::new, |first| first.to_vec());
                terms.for_each(|term| add(self.element, &mut sums, term));
                add(self.element, &mut sums, &self.sums);
                self.sums = sums;
                self.missing.clear();
            }
            return Ok(());
        }
        let own = &self.values[range.start + part_bytes.start..range.start + part_bytes.end];
        let mut sums = part.payload.to_vec();
        add(self.element, &mut sums, own);
        if of == place.rank {
            self.sums[part_bytes].copy_from_slice(&sums);
            self.missing.remove(&part.index);
        } else {
            out.push(OutgoingPart {
                to: place.next(),
                part: self.part(of, index, Frame::from(sums)),
            });
        }
        Ok(())
    }
}

/// Adds `terms` to `sums`, element by element.
fn add(element: Element, sums: &mut [u8], terms: &[u8]) {
    fn each<const N: usize>(
        sums: &mut [u8],
        terms: &[u8],
        add: impl Fn([u8; N], [u8; N]) -> [u8; N],
    ) {
        let (sums, _) = sums.as_chunks_mut::<N>();
        let (terms, _) = terms.as_chunks::<N>();
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum = add(*sum, *term));
    }
    match element {
        Element::I32 => each(sums, terms, |a, b| {
            i32::from_le_bytes(a).wrapping_add(i32::from_le_bytes(b)).to_le_bytes()
        }),
        Element::I64 => each(sums, terms, |a, b| {
            i64::from_le_bytes(a).wrapping_add(i64::from_le_bytes(b)).to_le_bytes()
        }),
        Element::F32 => {
            each(sums, terms, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around() {
        let mut sums = [u32::MAX.to_le_bytes(), 5u32.to_le_bytes()].concat();
        add(Element::I32, &mut sums, &[2u32.to_le_bytes(), 9u32.to_le_bytes()].concat());
        assert_eq!(sums, [1u32.to_le_bytes(), 14u32.to_le_bytes()].concat());
        let mut sums = (-3i64).to_le_bytes();
        add(Element::I64, &mut sums, &i64::MIN.to_le_bytes());
        assert_eq!(i64::from_le_bytes(sums), i64::MAX - 2);
    }
}
