//! State machine of one member in one operation: parts arrive, and parts are sent.
//!
//! Each part is processed on its own, so parts may arrive in any order.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Collective;
use super::part::Part;
use super::sum::Sum;
use crate::frame::Frame;

/// Longest content that is sent directly to its receivers, in bytes. Up to here the cost of a
/// message does not depend on its length.
pub(super) const MAX_DIRECT_LEN: usize = 4096;

/// A part for the member of rank `to`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutgoingPart {
    pub to: usize,
    pub part: Part,
}

/// A running operation.
#[derive(Debug)]
pub(super) struct Operation {
    place: Place,
    work: Work,
}

/// Rank of this member, and limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub rank: usize,
    pub members: usize,
    /// Length of a part, in bytes.
    pub part_len: usize,
    /// Longest content, in bytes.
    longest: u64,
}

#[derive(Debug)]
enum Work {
    Barrier { below: Vec<usize>, released: bool },
    Broadcast { root: usize, content: ContentParts },
    Sum(Sum),
    Gather { contents: Vec<ContentParts> },
}

impl Operation {
    /// Begins an operation. Adds the first parts to send to `out`. `root` is the rank of a
    /// broadcast's root.
    pub fn new(
        collective: Collective,
        root: usize,
        (rank, members): (usize, usize),
        part_len: usize,
        longest: u64,
        out: &mut Vec<OutgoingPart>,
    ) -> Self {
        let place = Place { rank, members, part_len, longest };
        let work = match collective {
            Collective::Barrier => {
                let below: Vec<usize> = place.below(0).collect();
                let work = Work::Barrier { released: false, below };
                let mut operation = Self { place, work };
                operation.send_up(out);
                return operation;
            }
            Collective::Broadcast { content, .. } => {
                if let Some(content) = &content {
                    let below = place.below(root);
                    below.for_each(|to| place.send_content(to, root, false, content, out));
                }
                Work::Broadcast {
                    root,
                    content: content.map_or_else(ContentParts::default, ContentParts::of),
                }
            }
            Collective::ReduceScatter { element, values } => {
                Work::Sum(Sum::new(place, element, values, out))
            }
            Collective::AllGather { content } => {
                let direct = content.len() <= MAX_DIRECT_LEN.min(part_len);
                let to = if direct { place.others().collect() } else { vec![place.next()] };
                for to in to.into_iter().filter(|&to| to != rank) {
                    place.send_content(to, rank, direct, &content, out);
                }
                let mut contents: Vec<ContentParts> =
                    (0..members).map(|_| ContentParts::default()).collect();
                contents[rank] = ContentParts::of(content);
                Work::Gather { contents }
            }
        };
        Self { place, work }
    }

    /// Takes a part from the member of rank `from`. Adds the parts to send on to `out`.
    ///
    /// # Errors
    /// Reason why the part does not belong to this operation.
    pub fn take(
        &mut self,
        from: usize,
        part: Part,
        out: &mut Vec<OutgoingPart>,
    ) -> Result<(), String> {
        let place = self.place;
        let origin = part.origin as usize;
        let expected = |expected: bool| {
            if expected { Ok(()) } else { Err(format!("a part of {origin} from {from}")) }
        };
        match &mut self.work {
            Work::Barrier { below, released } => {
                if origin == 0 {
                    let at = below.iter().position(|&rank| rank == from);
                    below.swap_remove(at.ok_or("it has been sent up twice, or by another member")?);
                    self.send_up(out);
                } else {
                    expected(Some(from) == place.above(0) && !*released && below.is_empty())?;
                    *released = true;
                    place.below(0).for_each(|to| out.push(place.signal(to, 1)));
                }
                Ok(())
            }
            Work::Broadcast { root, content } => {
                expected(Some(from) == place.above(*root) && origin == *root)?;
                content.take(&part, place)?;
                let below = place.below(*root);
                out.extend(below.map(|to| OutgoingPart { to, part: part.clone() }));
                Ok(())
            }
            Work::Sum(sum) => sum.take(place, from, part, out),
            Work::Gather { contents } => {
                let way = if part.direct { origin } else { place.last() };
                expected(from == way && origin < place.members && origin != place.rank)?;
                contents[origin].take(&part, place)?;
                if !part.direct && place.next() != origin {
                    out.push(OutgoingPart { to: place.next(), part });
                }
                Ok(())
            }
        }
    }

    /// Notifies the member above when all members below have begun the barrier. At the root of the
    /// tree all members have then begun it, and the members below are released.
    fn send_up(&mut self, out: &mut Vec<OutgoingPart>) {
        let Work::Barrier { below, released } = &mut self.work else { return };
        if below.is_empty() {
            if let Some(above) = self.place.above(0) {
                out.push(self.place.signal(above, 0));
            } else {
                *released = true;
                self.place.below(0).for_each(|to| out.push(self.place.signal(to, 1)));
            }
        }
    }

    /// Whether the result of this member is complete.
    pub fn is_complete(&self) -> bool {
        match &self.work {
            Work::Barrier { released, .. } => *released,
            Work::Broadcast { content, .. } => content.is_complete(),
            Work::Sum(sum) => sum.is_complete(),
            Work::Gather { contents } => contents.iter().all(ContentParts::is_complete),
        }
    }

    /// Returns the ranks of members that have not sent everything.
    pub fn awaited(&self) -> Vec<usize> {
        let place = self.place;
        match &self.work {
            _ if self.is_complete() => Vec::new(),
            Work::Barrier { below, .. } if !below.is_empty() => below.clone(),
            Work::Barrier { .. } => place.above(0).into_iter().collect(),
            Work::Broadcast { root, .. } => place.above(*root).into_iter().collect(),
            Work::Sum(sum) => sum.awaited(place),
            Work::Gather { contents } => {
                place.others().filter(|&rank| !contents[rank].is_complete()).collect()
            }
        }
    }

    /// Returns the result of this member.
    pub fn into_result(self) -> Vec<Frame> {
        match self.work {
            Work::Barrier { .. } => Vec::new(),
            Work::Broadcast { content, .. } => vec![content.into_frame()],
            Work::Sum(sum) => vec![Frame::from(sum.into_sums())],
            Work::Gather { contents } => {
                contents.into_iter().map(ContentParts::into_frame).collect()
            }
        }
    }
}

impl Place {
    pub fn next(self) -> usize {
        (self.rank + 1) % self.members
    }

    pub fn last(self) -> usize {
        (self.rank + self.members - 1) % self.members
    }

    pub fn others(self) -> impl Iterator<Item = usize> {
        (1..self.members).map(move |step| (self.rank + step) % self.members)
    }

    /// Returns the rank above this member in the binary tree of this root.
    fn above(self, root: usize) -> Option<usize> {
        let place = (self.rank + self.members - root) % self.members;
        (place > 0).then(|| ((place - 1) / 2 + root) % self.members)
    }

    /// Returns the ranks below this member in the binary tree of this root.
    fn below(self, root: usize) -> impl Iterator<Item = usize> {
        let place = (self.rank + self.members - root) % self.members;
        let below = [2 * place + 1, 2 * place + 2].into_iter();
        below
            .filter(move |&place| place < self.members)
            .map(move |place| (place + root) % self.members)
    }

    fn signal(self, to: usize, way: u32) -> OutgoingPart {
        let part = Part { origin: way, index: 0, direct: false, length: 0, payload: Frame::new() };
        OutgoingPart { to, part }
    }

    /// Adds all parts of a content to `out`: one without bytes if it is empty.
    fn send_content(
        self,
        to: usize,
        origin: usize,
        direct: bool,
        content: &Frame,
        out: &mut Vec<OutgoingPart>,
    ) {
        let length = content.len() as u64;
        for index in 0..num_parts(content.len(), self.part_len).max(1) {
            let payload = content.slice(part_range(index, content.len(), self.part_len));
            let (origin, index) = (origin as u32, index as u32);
            out.push(OutgoingPart { to, part: Part { origin, index, direct, length, payload } });
        }
    }
}

/// Returns the number of parts of a content of `bytes`.
pub(super) fn num_parts(bytes: usize, part_len: usize) -> usize {
    bytes.div_ceil(part_len)
}

/// Returns the bytes of a part in a content of `bytes`.
pub(super) fn part_range(index: usize, bytes: usize, part_len: usize) -> Range<usize> {
    index * part_len..bytes.min((index + 1) * part_len)
}

/// A content, as far as it has arrived.
#[derive(Debug, Default)]
struct ContentParts {
    /// `None` until the first part has arrived.
    length: Option<u64>,
    parts: BTreeMap<u32, Frame>,
    /// Bytes that have arrived.
    arrived: u64,
}

impl ContentParts {
    fn of(whole: Frame) -> Self {
        let length = whole.len() as u64;
        Self { length: Some(length), parts: BTreeMap::from([(0, whole)]), arrived: length }
    }

    fn take(&mut self, part: &Part, place: Place) -> Result<(), String> {
        let length = self.length.unwrap_or(part.length);
        if part.length != length || length > place.longest {
            return Err(format!(
                "a content of {} bytes, not {length} as before, or longer than the limit",
                part.length
            ));
        }
        let (index, part_len) = (u64::from(part.index), place.part_len as u64);
        let end = length.min((index + 1) * part_len);
        let expected = end.checked_sub(index * part_len);
        if expected != Some(part.payload.len() as u64) || index > 0 && expected == Some(0) {
            return Err(format!("part {index} has {} bytes", part.payload.len()));
        }
        if self.parts.insert(part.index, part.payload.clone()).is_some() {
            return Err(format!("part {index} arrived twice"));
        }
        self.length = Some(length);
        self.arrived += part.payload.len() as u64;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.arrived) && !self.parts.is_empty()
    }

    /// Returns the content. Copies it, unless it is a single part.
    fn into_frame(mut self) -> Frame {
        if self.parts.len() == 1 {
            return self.parts.pop_first().map_or_else(Frame::new, |(_, part)| part);
        }
        let mut whole = Vec::with_capacity(self.arrived as usize);
        self.parts.values().for_each(|part| whole.extend_from_slice(part));
        Frame::from(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Element;
    use crate::transport::NodeId;

    const PART_LEN: usize = 16;

    /// Runs an operation at all members; `seed` determines the order of the parts. Returns their
    /// results.
    fn run(
        members: usize,
        root: usize,
        seed: u64,
        of: impl Fn(usize) -> Collective,
    ) -> Vec<Vec<Frame>> {
        let mut in_flight = Vec::new();
        let mut operations = Vec::new();
        let mut most = vec![0; members];
        let mut send = |from: usize,
                        out: &mut Vec<OutgoingPart>,
                        in_flight: &mut Vec<(usize, OutgoingPart)>| {
            most[from] += out.len();
            in_flight.extend(out.drain(..).map(|out| (from, out)));
        };
        for rank in 0..members {
            let mut out = Vec::new();
            operations.push(Operation::new(
                of(rank),
                root,
                (rank, members),
                PART_LEN,
                1 << 20,
                &mut out,
            ));
            send(rank, &mut out, &mut in_flight);
        }
        let mut numbers = seed;
        while !in_flight.is_empty() {
            numbers = numbers.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (numbers >> 33) as usize % in_flight.len();
            let (from, OutgoingPart { to, part }) = in_flight.swap_remove(at);
            assert!(to != from && part.payload.len() <= PART_LEN);
            let mut out = Vec::new();
            operations[to].take(from, part, &mut out).unwrap();
            send(to, &mut out, &mut in_flight);
        }
        assert!(operations.iter().all(Operation::is_complete));
        assert!(operations.iter().all(|operation| operation.awaited().is_empty()));
        operations.into_iter().map(Operation::into_result).collect()
    }

    fn content(rank: usize, len: usize) -> Frame {
        Frame::from((0..len).map(|at| (at * 7 + rank) as u8).collect::<Vec<u8>>())
    }

    #[test]
    fn broadcast_sends_the_content_of_the_root() {
        for members in 1..=17 {
            for (len, root) in [(0, 0), (1, members - 1), (16, members / 2), (100, members / 3)] {
                let node = NodeId(root as u32);
                let own = |rank| (rank == root).then(|| content(root, len));
                let got = run(members, root, 1, |rank| Collective::Broadcast {
                    root: node,
                    content: own(rank),
                });
                assert!(got.iter().all(|got| *got == [content(root, len)]), "{members} {len}");
            }
        }
    }

    #[test]
    fn all_gather_sends_all_contents() {
        for members in 1..=17 {
            // Short contents are sent directly, others around the ring.
            for scale in [0, 1, 5, 40] {
                let own = |rank: usize| content(rank, rank * scale);
                let got = run(members, 0, 2, |rank| Collective::AllGather { content: own(rank) });
                let expected: Vec<Frame> = (0..members).map(own).collect();
                assert!(got.iter().all(|got| *got == expected), "{members} {scale}");
            }
        }
    }

    /// Returns the sums of the member of rank `of`, added sequentially.
    fn sums(members: usize, of: usize, values: &[Vec<f32>]) -> Vec<f32> {
        let len = values[0].len();
        let part = of * len / members..(of + 1) * len / members;
        part.map(|at| {
            (1..members).fold(values[(of + 1) % members][at], |sum, step| {
                if step == 1 && members == 1 {
                    sum
                } else {
                    sum + values[(of + 1 + step) % members][at]
                }
            })
        })
        .collect()
    }

    #[test]
    fn sums_have_the_bits_of_sequential_sums() {
        for members in 1..=17 {
            for len in [0, 1, 3, members, 10 * members + 1, 40 * members] {
                let values: Vec<Vec<f32>> = (0..members)
                    .map(|rank| (0..len).map(|at| 1e7 / (1 + at * 31 + rank * 17) as f32).collect())
                    .collect();
                let bytes = |values: &[f32]| -> Frame {
                    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
                };
                let of = |rank: usize| Collective::ReduceScatter {
                    element: Element::F32,
                    values: bytes(&values[rank]),
                };
                for (seed, got) in (0..2).map(|seed| (seed, run(members, 0, seed, of))) {
                    for (rank, got) in got.iter().enumerate() {
                        let expected = bytes(&sums(members, rank, &values));
                        assert_eq!(*got, [expected], "{members} {len} {rank} {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_barrier_ends_at_no_member_before_all_have_begun() {
        for members in 2..=17 {
            assert!(run(members, 0, 3, |_| Collective::Barrier).iter().all(Vec::is_empty));
            for late in 0..members {
                let begin = |rank, out: &mut Vec<OutgoingPart>| {
                    Operation::new(Collective::Barrier, 0, (rank, members), PART_LEN, 0, out)
                };
                let mut operations = BTreeMap::new();
                let mut in_flight = Vec::new();
                for rank in (0..members).filter(|&rank| rank != late) {
                    let mut out = Vec::new();
                    operations.insert(rank, begin(rank, &mut out));
                    in_flight.extend(out.into_iter().map(|out| (rank, out)));
                }
                while let Some(at) = in_flight.iter().position(|(_, out)| out.to != late) {
                    let (from, OutgoingPart { to, part }) = in_flight.swap_remove(at);
                    let mut out = Vec::new();
                    operations.get_mut(&to).unwrap().take(from, part, &mut out).unwrap();
                    in_flight.extend(out.into_iter().map(|out| (to, out)));
                }
                assert!(operations.values().all(|operation| !operation.is_complete()));
                assert!(operations.values().any(|operation| operation.awaited().contains(&late)));
            }
        }
    }

    #[test]
    fn parts_of_other_operations_are_rejected() {
        let part = |origin, index, length, bytes: usize| Part {
            origin,
            index,
            direct: false,
            length,
            payload: Frame::from(vec![0; bytes]),
        };
        let mut out = Vec::new();
        let mut begin =
            |collective| Operation::new(collective, 1, (0, 4), PART_LEN, 1000, &mut out);
        let mut broadcast = begin(Collective::Broadcast { root: NodeId(1), content: None });
        let mut gather = begin(Collective::AllGather { content: Frame::new() });
        let values = Frame::from(vec![0; 4 * 4 * 100]);
        let mut sum = begin(Collective::ReduceScatter { element: Element::I32, values });
        let mut refuses = |operation: &mut Operation, from, part: Part| {
            let before = out.len();
            let refused = operation.take(from, part, &mut out).is_err();
            assert!(!refused || out.len() == before);
            refused
        };
        let above = broadcast.awaited()[0];
        assert!(refuses(&mut broadcast, (above + 1) % 4, part(1, 0, 20, 16)), "from elsewhere");
        assert!(refuses(&mut broadcast, above, part(2, 0, 20, 16)), "of another member");
        assert!(refuses(&mut broadcast, above, part(1, 0, 20, 15)), "too short");
        assert!(refuses(&mut broadcast, above, part(1, 2, 20, 0)), "beyond the end");
        assert!(refuses(&mut broadcast, above, part(1, u32::MAX, 20, 16)), "far beyond");
        assert!(!refuses(&mut broadcast, above, part(1, 0, 20, 16)));
        assert!(refuses(&mut broadcast, above, part(1, 0, 20, 16)), "twice");
        assert!(refuses(&mut broadcast, above, part(1, 1, 36, 16)), "of another length");
        assert!(refuses(&mut gather, 3, part(0, 0, 8, 8)), "its own");
        assert!(refuses(&mut gather, 3, part(4, 0, 8, 8)), "of an unknown member");
        assert!(refuses(&mut gather, 3, part(2, 0, 1001, 16)), "too long");
        assert!(!refuses(&mut gather, 3, part(2, 0, 1000, 16)));
        assert!(refuses(&mut sum, 3, part(3, 0, 1600, 16)), "begun by the wrong member");
        assert!(refuses(&mut sum, 2, part(0, 0, 1600, 16)), "from elsewhere");
        assert!(refuses(&mut sum, 3, part(0, 25, 1600, 16)), "beyond the end");
        assert!(!refuses(&mut sum, 3, part(0, 24, 1600, 16)));
        assert!(refuses(&mut sum, 3, part(0, 24, 1600, 16)), "twice");
    }
}
