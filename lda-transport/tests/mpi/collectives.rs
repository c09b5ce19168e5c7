//! What ranks do together.

use std::time::Duration;

use lda_transport::mpi::{self, MpiOptions};
use lda_transport::node::{Asked, Node, Silent};
use lda_transport::rpc::{
    Collective, CollectiveError, Element, Group, MessageBuf, OperationId, Outcome,
};
use lda_transport::{Arrival, Frame, NodeId, Transport, Wait};

use super::frames::{PATIENCE, node};

const MOMENT: Duration = Duration::from_millis(300);

/// What a rank has in a round, of some length.
fn content(rank: usize, round: usize, len: usize) -> Frame {
    (0..len).map(|at| (rank * 31 + round * 7 + at * 13) as u8).collect::<Vec<u8>>().into()
}

/// What a rank adds, of numbers that wrap around.
fn terms(rank: usize, len: usize) -> Vec<u64> {
    (0..len as u64).map(|at| (rank as u64 + 1).wrapping_mul(at + 3) << 58 | at).collect()
}

/// All that a group may do, with contents of all kinds, compared with what one would do by oneself.
fn all_of_it(node: &Node, group: &Group, all: usize) {
    let (this, members) = (group.rank(), group.members());
    for (round, len) in [0, 1, 5000, 300_000, 3_000_000].into_iter().enumerate() {
        node.barrier(group, PATIENCE).unwrap();
        let root = round * 5 % all;
        let own = (this == root).then(|| content(root, round, len));
        let got = node.broadcast(group, members[root], own, PATIENCE).unwrap();
        assert!(got == content(root, round, len), "{len} bytes of rank {root}");
        // As much of all, nearly so, and of one alone.
        let lengths: [&dyn Fn(usize) -> usize; 3] =
            [&|_| len / all, &|rank| (len / all).saturating_sub(rank), &|rank| {
                if rank == root { len } else { rank % 2 }
            }];
        for length in lengths {
            let own = content(this, round, length(this));
            let got = node.all_gather(group, own, PATIENCE).unwrap();
            let expected = |rank| content(rank, round, length(rank));
            let right = got.iter().enumerate().all(|(rank, got)| *got == expected(rank));
            assert!(right && got.len() == all, "{len} bytes gathered");
        }
    }
    for len in [0, 1, all - 1, all + 1, 1000, 100_000] {
        let part = this * len / all..(this + 1) * len / all;
        let sums = (0..all).fold(vec![0u64; len], |sums, rank| {
            sums.iter().zip(terms(rank, len)).map(|(sum, term)| sum.wrapping_add(term)).collect()
        });
        let got = node.reduce_scatter(group, &terms(this, len), PATIENCE).unwrap();
        assert_eq!(got, sums[part.clone()], "{len} numbers of 64 bits");
        let short = |numbers: &[u64]| numbers.iter().map(|it| *it as i32).collect::<Vec<i32>>();
        let sums: Vec<i32> = (0..all).fold(vec![0; len], |sums, rank| {
            let terms = short(&terms(rank, len));
            sums.iter().zip(terms).map(|(sum, term)| sum.wrapping_add(term)).collect()
        });
        let got = node.reduce_scatter(group, &short(&terms(this, len)), PATIENCE).unwrap();
        assert_eq!(got, sums[part], "{len} numbers of 32 bits");
        assert_eq!(node.all_reduce(group, &short(&terms(this, len)), PATIENCE).unwrap(), sums);
    }
}

pub fn same_by_either_way() {
    let (node, all) = node(Silent);
    let native = Group::new(1, all.clone(), node.id()).unwrap();
    all_of_it(&node, &native, all.len());
    // The same, in another order of the members: over frames.
    let mut turned = all.clone();
    turned.reverse();
    let frames = Group::new(2, turned, node.id()).unwrap();
    all_of_it(&node, &frames, all.len());
    // Floats have the bits of the order that is promised, by rank from the next one on.
    let term = |rank: usize| 0.1f32 * (rank + 1) as f32;
    let got = node.all_reduce(&native, &vec![term(native.rank()); all.len()], PATIENCE).unwrap();
    for (rank, got) in got.iter().enumerate() {
        let order = (1..=all.len()).map(|step| (rank + step) % all.len());
        assert_eq!(got.to_bits(), order.map(term).reduce(|a, b| a + b).unwrap().to_bits());
    }
    // Many at once, of several kinds, waited for from the last to the first.
    let begun: Vec<_> = (0..60)
        .map(|round| {
            let content = content(native.rank(), round, round * 100);
            let collective = match round % 3 {
                0 => Collective::Barrier,
                1 => Collective::AllGather { content },
                _ => Collective::Broadcast {
                    root: all[round % all.len()],
                    content: (round % all.len() == native.rank()).then_some(content),
                },
            };
            node.begin(&native, collective, PATIENCE)
        })
        .collect();
    for (round, pending) in begun.into_iter().enumerate().rev() {
        let got = pending.wait().unwrap();
        let expected = |rank| content(rank, round, round * 100);
        match round % 3 {
            0 => assert!(got.is_empty()),
            1 => assert!(got.iter().enumerate().all(|(rank, got)| *got == expected(rank))),
            _ => assert_eq!(got, [expected(round % all.len())]),
        }
    }
    node.close(PATIENCE).unwrap();
}

/// Without a node, so that nothing but MPI can have done it.
pub fn hook() {
    let mut node = mpi::start(&MpiOptions::default()).unwrap();
    let (this, all) = (node.id(), node.all());
    let together = node.together().expect("MPI has operations");
    assert_eq!(together.members(), all);
    let values = Frame::from(vec![0; 12]);
    let floats = Collective::ReduceScatter { element: Element::F32, values: values.clone() };
    let id = |number| OperationId { group: 7, number };
    assert_eq!(together.begin(id(0), floats.clone(), 100), Err(floats));
    let gathering = Collective::AllGather { content: content(this.0 as usize, 0, 9) };
    together.begin(id(0), gathering, 100).unwrap();
    together.begin(id(1), Collective::Barrier, 100).unwrap();
    // Longer than one of them takes: all hear of it.
    let content_of = |len| Collective::AllGather { content: content(0, 0, len) };
    let longest = if this == NodeId(2) { 10 } else { 100 };
    together.begin(id(2), content_of(11.min(longest as usize)), longest).unwrap();
    let mut ends = Vec::new();
    while ends.len() < 3 {
        let arrival = node.receive(Wait::For(PATIENCE)).unwrap().expect("an end");
        assert!(!matches!(arrival, Arrival::Frame { .. }));
        if let Arrival::Together { operation, result } = arrival {
            ends.push((operation, result));
        }
    }
    ends.sort_by_key(|end| end.0);
    let gathered = (0..3).map(|rank| content(rank, 0, 9)).collect();
    assert_eq!(ends[..2], [(id(0), Ok(gathered)), (id(1), Ok(vec![]))]);
    let long = matches!(ends[2].1, Err(CollectiveError::Mismatch { peer: NodeId(0), .. }));
    assert!(long, "{ends:?}");
    assert!(node.together().is_none(), "after a failure MPI does no more");
    node.close(PATIENCE);
}

/// A node whose answers say that it has come so far.
fn answering() -> (Node, Vec<NodeId>) {
    node(|asked: Asked| {
        let answer = asked.message();
        asked.reply(answer);
    })
}

pub fn deadline() {
    let (node, all) = answering();
    let group = |id| Group::new(id, all.clone(), node.id()).unwrap();
    if node.id() == NodeId(0) {
        let error = node.barrier(&group(1), MOMENT).unwrap_err();
        // Over frames it would say who is missing.
        assert_eq!(error, CollectiveError::Deadline { missing: Vec::new() });
        assert!(error.to_string().ends_with("deadline"), "{error}");
    } else {
        // It ends here long before the deadline, as the other has given up, or is asked for over frames by now; who
        // comes later than the next one's deadline hears of that.
        std::thread::sleep(3 * MOMENT);
        let error = node.barrier(&group(1), MOMENT).unwrap_err();
        let is_told =
            matches!(error, CollectiveError::Deadline { .. } | CollectiveError::Rejected { .. });
        assert!(is_told && error.to_string().contains("deadline"), "{error}");
    }
    all_of_it(&node, &group(2), all.len());
    node.close(PATIENCE).unwrap();
}

pub fn mismatch() {
    let (node, all) = answering();
    let group = |id| Group::new(id, all.clone(), node.id()).unwrap();
    let error = if node.id() == NodeId(1) {
        node.all_gather(&group(1), Frame::new(), PATIENCE).unwrap_err()
    } else {
        node.barrier(&group(1), PATIENCE).unwrap_err()
    };
    let CollectiveError::Mismatch { peer, words } = error else { panic!("{error}") };
    assert_eq!(peer, NodeId(u32::from(node.id() != NodeId(1))), "{words}");
    assert!(words.contains("a barrier") && words.contains("a gathering"), "{words}");
    all_of_it(&node, &group(2), all.len());
    node.close(PATIENCE).unwrap();
}

/// Ranks have begun as many operations as their number is, and close.
pub fn left_behind() {
    let (node, all) = answering();
    let group = Group::new(1, all.clone(), node.id()).unwrap();
    node.barrier(&group, PATIENCE).unwrap();
    let begin = |_| node.begin(&group, Collective::Barrier, PATIENCE);
    let begun: Vec<_> = (0..10 * node.id().0).map(begin).collect();
    // All that every rank has begun ends well, the others end when the first rank closes.
    if node.id() == NodeId(0) {
        for &peer in &all[1..] {
            let outcome = node.call(peer, MessageBuf::new(), PATIENCE).wait();
            assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        }
    } else {
        for pending in begun {
            let error = pending.wait().unwrap_err();
            assert!(matches!(error, CollectiveError::Rejected { .. }), "{error}");
        }
    }
    node.close(PATIENCE).unwrap();
}
