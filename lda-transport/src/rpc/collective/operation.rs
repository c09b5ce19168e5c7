//! What one member does in one operation: pieces come, and pieces go.
//!
//! Each piece is seen to on its own, so that it does not matter in which order they come.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Collective;
use super::part::Part;
use super::sum::Sum;
use crate::frame::Frame;

/// Contents up to here go straight, in bytes: what a message costs whatever its length.
pub(super) const STRAIGHT: usize = 4096;

/// A piece for the member of a rank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub to: usize,
    pub part: Part,
}

#[derive(Debug)]
pub(super) struct Operation {
    place: Place,
    work: Work,
}

/// Where a member stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub rank: usize,
    pub members: usize,
    /// Bytes of a piece.
    pub piece: usize,
    /// Bytes of a content, at most.
    longest: u64,
}

#[derive(Debug)]
enum Work {
    Barrier { below: Vec<usize>, released: bool },
    Broadcast { root: usize, content: Content },
    Sum(Sum),
    Gather { contents: Vec<Content> },
}

impl Operation {
    /// Begins; what is to be sent first goes to `out`. The root of a broadcast is its rank.
    pub fn new(
        collective: Collective,
        root: usize,
        (rank, members): (usize, usize),
        piece: usize,
        longest: u64,
        out: &mut Vec<Out>,
    ) -> Self {
        let place = Place { rank, members, piece, longest };
        let work = match collective {
            Collective::Barrier => {
                let below: Vec<usize> = place.below(0).collect();
                let work = Work::Barrier { released: false, below };
                let mut operation = Self { place, work };
                operation.rise(out);
                return operation;
            }
            Collective::Broadcast { content, .. } => {
                if let Some(content) = &content {
                    let below = place.below(root);
                    below.for_each(|to| place.send_whole(to, root, false, content, out));
                }
                Work::Broadcast {
                    root,
                    content: content.map_or_else(Content::default, Content::of),
                }
            }
            Collective::ReduceScatter { element, values } => {
                Work::Sum(Sum::new(place, element, values, out))
            }
            Collective::AllGather { content } => {
                let straight = content.len() <= STRAIGHT.min(piece);
                let to = if straight { place.others().collect() } else { vec![place.next()] };
                for to in to.into_iter().filter(|&to| to != rank) {
                    place.send_whole(to, rank, straight, &content, out);
                }
                let mut contents: Vec<Content> = (0..members).map(|_| Content::default()).collect();
                contents[rank] = Content::of(content);
                Work::Gather { contents }
            }
        };
        Self { place, work }
    }

    /// Takes a piece of the member of rank `from`; what is to be sent on goes to `out`.
    ///
    /// # Errors
    /// Words that say why no such piece belongs to this operation.
    pub fn take(&mut self, from: usize, part: Part, out: &mut Vec<Out>) -> Result<(), String> {
        let place = self.place;
        let origin = part.origin as usize;
        let expected = |expected: bool| {
            if expected {
                Ok(())
            } else {
                Err(format!("a piece of {origin} that comes from {from}"))
            }
        };
        match &mut self.work {
            Work::Barrier { below, released } => {
                if origin == 0 {
                    let at = below.iter().position(|&rank| rank == from);
                    below.swap_remove(at.ok_or("it has come up twice, or from elsewhere")?);
                    self.rise(out);
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
                out.extend(below.map(|to| Out { to, part: part.clone() }));
                Ok(())
            }
            Work::Sum(sum) => sum.take(place, from, part, out),
            Work::Gather { contents } => {
                let way = if part.straight { origin } else { place.last() };
                expected(from == way && origin < place.members && origin != place.rank)?;
                contents[origin].take(&part, place)?;
                if !part.straight && place.next() != origin {
                    out.push(Out { to: place.next(), part });
                }
                Ok(())
            }
        }
    }

    /// Says in the tree that all below have begun, or that all have.
    fn rise(&mut self, out: &mut Vec<Out>) {
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

    /// Whether this member has all that it gets.
    pub fn is_complete(&self) -> bool {
        match &self.work {
            Work::Barrier { released, .. } => *released,
            Work::Broadcast { content, .. } => content.is_complete(),
            Work::Sum(sum) => sum.is_complete(),
            Work::Gather { contents } => contents.iter().all(Content::is_complete),
        }
    }

    /// The ranks of those that have to send something yet.
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

    /// What it gets.
    pub fn into_result(self) -> Vec<Frame> {
        match self.work {
            Work::Barrier { .. } => Vec::new(),
            Work::Broadcast { content, .. } => vec![content.into_frame()],
            Work::Sum(sum) => vec![Frame::from(sum.into_sums())],
            Work::Gather { contents } => contents.into_iter().map(Content::into_frame).collect(),
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

    /// In the binary tree of that root.
    fn above(self, root: usize) -> Option<usize> {
        let place = (self.rank + self.members - root) % self.members;
        (place > 0).then(|| ((place - 1) / 2 + root) % self.members)
    }

    fn below(self, root: usize) -> impl Iterator<Item = usize> {
        let place = (self.rank + self.members - root) % self.members;
        let below = [2 * place + 1, 2 * place + 2].into_iter();
        below
            .filter(move |&place| place < self.members)
            .map(move |place| (place + root) % self.members)
    }

    fn signal(self, to: usize, way: u32) -> Out {
        let part =
            Part { origin: way, index: 0, straight: false, length: 0, payload: Frame::new() };
        Out { to, part }
    }

    /// A content in pieces; where it is empty there is one without bytes.
    fn send_whole(
        self,
        to: usize,
        origin: usize,
        straight: bool,
        content: &Frame,
        out: &mut Vec<Out>,
    ) {
        let length = content.len() as u64;
        for index in 0..pieces(content.len(), self.piece).max(1) {
            let payload = content.slice(piece_of(index, content.len(), self.piece));
            let (origin, index) = (origin as u32, index as u32);
            out.push(Out { to, part: Part { origin, index, straight, length, payload } });
        }
    }
}

pub(super) fn pieces(bytes: usize, piece: usize) -> usize {
    bytes.div_ceil(piece)
}

/// The place of a piece in `bytes`.
pub(super) fn piece_of(index: usize, bytes: usize, piece: usize) -> Range<usize> {
    index * piece..bytes.min((index + 1) * piece)
}

/// A content, as far as it has come.
#[derive(Debug, Default)]
struct Content {
    /// None while nothing has.
    length: Option<u64>,
    pieces: BTreeMap<u32, Frame>,
    come: u64,
}

impl Content {
    fn of(whole: Frame) -> Self {
        let length = whole.len() as u64;
        Self { length: Some(length), pieces: BTreeMap::from([(0, whole)]), come: length }
    }

    fn take(&mut self, part: &Part, place: Place) -> Result<(), String> {
        let length = self.length.unwrap_or(part.length);
        if part.length != length || length > place.longest {
            return Err(format!("{} bytes, where {length} were said or are the most", part.length));
        }
        let (index, piece) = (u64::from(part.index), place.piece as u64);
        let end = length.min((index + 1) * piece);
        let expected = end.checked_sub(index * piece);
        if expected != Some(part.payload.len() as u64) || index > 0 && expected == Some(0) {
            return Err(format!("piece {index} has {} bytes", part.payload.len()));
        }
        if self.pieces.insert(part.index, part.payload.clone()).is_some() {
            return Err(format!("piece {index} comes twice"));
        }
        self.length = Some(length);
        self.come += part.payload.len() as u64;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.come) && !self.pieces.is_empty()
    }

    /// Copied, unless it is one piece.
    fn into_frame(mut self) -> Frame {
        if self.pieces.len() == 1 {
            return self.pieces.pop_first().map_or_else(Frame::new, |(_, piece)| piece);
        }
        let mut whole = Vec::with_capacity(self.come as usize);
        self.pieces.values().for_each(|piece| whole.extend_from_slice(piece));
        Frame::from(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Element;
    use crate::transport::NodeId;

    const PIECE: usize = 16;

    /// Runs an operation at all members, with pieces in an order by `seed`; what each gets.
    fn run(
        members: usize,
        root: usize,
        seed: u64,
        of: impl Fn(usize) -> Collective,
    ) -> Vec<Vec<Frame>> {
        let mut underway = Vec::new();
        let mut operations = Vec::new();
        let mut most = vec![0; members];
        let mut send = |from: usize, out: &mut Vec<Out>, underway: &mut Vec<(usize, Out)>| {
            most[from] += out.len();
            underway.extend(out.drain(..).map(|out| (from, out)));
        };
        for rank in 0..members {
            let mut out = Vec::new();
            operations.push(Operation::new(
                of(rank),
                root,
                (rank, members),
                PIECE,
                1 << 20,
                &mut out,
            ));
            send(rank, &mut out, &mut underway);
        }
        let mut numbers = seed;
        while !underway.is_empty() {
            numbers = numbers.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (numbers >> 33) as usize % underway.len();
            let (from, Out { to, part }) = underway.swap_remove(at);
            assert!(to != from && part.payload.len() <= PIECE);
            let mut out = Vec::new();
            operations[to].take(from, part, &mut out).unwrap();
            send(to, &mut out, &mut underway);
        }
        assert!(operations.iter().all(Operation::is_complete));
        assert!(operations.iter().all(|operation| operation.awaited().is_empty()));
        operations.into_iter().map(Operation::into_result).collect()
    }

    fn content(rank: usize, len: usize) -> Frame {
        Frame::from((0..len).map(|at| (at * 7 + rank) as u8).collect::<Vec<u8>>())
    }

    #[test]
    fn everybody_gets_what_the_root_has() {
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
    fn everybody_gets_what_everybody_has() {
        for members in 1..=17 {
            // Short ones go straight, others around.
            for scale in [0, 1, 5, 40] {
                let own = |rank: usize| content(rank, rank * scale);
                let got = run(members, 0, 2, |rank| Collective::AllGather { content: own(rank) });
                let expected: Vec<Frame> = (0..members).map(own).collect();
                assert!(got.iter().all(|got| *got == expected), "{members} {scale}");
            }
        }
    }

    /// The sums of the member of rank `of`, one after the other.
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
    fn sums_have_the_bits_of_sums_one_after_the_other() {
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
    fn a_barrier_ends_nowhere_before_it_has_begun_everywhere() {
        for members in 2..=17 {
            assert!(run(members, 0, 3, |_| Collective::Barrier).iter().all(Vec::is_empty));
            for late in 0..members {
                let begin = |rank, out: &mut Vec<Out>| {
                    Operation::new(Collective::Barrier, 0, (rank, members), PIECE, 0, out)
                };
                let mut operations = BTreeMap::new();
                let mut underway = Vec::new();
                for rank in (0..members).filter(|&rank| rank != late) {
                    let mut out = Vec::new();
                    operations.insert(rank, begin(rank, &mut out));
                    underway.extend(out.into_iter().map(|out| (rank, out)));
                }
                while let Some(at) = underway.iter().position(|(_, out)| out.to != late) {
                    let (from, Out { to, part }) = underway.swap_remove(at);
                    let mut out = Vec::new();
                    operations.get_mut(&to).unwrap().take(from, part, &mut out).unwrap();
                    underway.extend(out.into_iter().map(|out| (to, out)));
                }
                assert!(operations.values().all(|operation| !operation.is_complete()));
                assert!(operations.values().any(|operation| operation.awaited().contains(&late)));
            }
        }
    }

    #[test]
    fn pieces_that_do_not_belong_are_refused() {
        let part = |origin, index, length, bytes: usize| Part {
            origin,
            index,
            straight: false,
            length,
            payload: Frame::from(vec![0; bytes]),
        };
        let mut out = Vec::new();
        let mut begin = |collective| Operation::new(collective, 1, (0, 4), PIECE, 1000, &mut out);
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
        assert!(refuses(&mut broadcast, above, part(2, 0, 20, 16)), "of somebody else");
        assert!(refuses(&mut broadcast, above, part(1, 0, 20, 15)), "too short");
        assert!(refuses(&mut broadcast, above, part(1, 2, 20, 0)), "beyond the end");
        assert!(refuses(&mut broadcast, above, part(1, u32::MAX, 20, 16)), "far beyond");
        assert!(!refuses(&mut broadcast, above, part(1, 0, 20, 16)));
        assert!(refuses(&mut broadcast, above, part(1, 0, 20, 16)), "twice");
        assert!(refuses(&mut broadcast, above, part(1, 1, 36, 16)), "of another length");
        assert!(refuses(&mut gather, 3, part(0, 0, 8, 8)), "its own");
        assert!(refuses(&mut gather, 3, part(4, 0, 8, 8)), "of nobody");
        assert!(refuses(&mut gather, 3, part(2, 0, 1001, 16)), "too long");
        assert!(!refuses(&mut gather, 3, part(2, 0, 1000, 16)));
        assert!(refuses(&mut sum, 3, part(3, 0, 1600, 16)), "begun by the wrong member");
        assert!(refuses(&mut sum, 2, part(0, 0, 1600, 16)), "from elsewhere");
        assert!(refuses(&mut sum, 3, part(0, 25, 1600, 16)), "beyond the end");
        assert!(!refuses(&mut sum, 3, part(0, 24, 1600, 16)));
        assert!(refuses(&mut sum, 3, part(0, 24, 1600, 16)), "twice");
    }
}
