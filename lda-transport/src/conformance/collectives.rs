//! Checks of collective operations over the transport.

use super::member::{Executions, Member, Members};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::rpc::{Collective, Element, Group};
use crate::split_mix::SplitMix64;

/// Lengths of contents: empty, shorter than a part, and several parts.
const LENGTHS: [usize; 4] = [0, 7, 5000, 100_000];

pub fn all_sizes(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    for count in (1..=17).rev() {
        let executions = Executions::default();
        let members = Members { count, lossy: false, answers: false, executions: &executions };
        let result = members.run(subject, effort, |inner| inner, |member| check(member, effort));
        result.map_err(|reason| format!("{count} members: {reason}"))?;
    }
    Ok(Outcome::Passed)
}

/// Content of the member of rank `rank`.
fn content(seed: u64, rank: usize, len: usize) -> Frame {
    let mut rng = SplitMix64::new(seed ^ rank as u64);
    Frame::from((0..len).map(|_| rng.draw() as u8).collect::<Vec<u8>>())
}

/// Vector that the member of rank `rank` contributes to a sum.
fn terms(seed: u64, rank: usize, len: usize) -> Vec<f32> {
    let bytes = content(seed ^ 1, rank, len);
    bytes.iter().map(|&byte| f32::from(byte) * 1.1 + rank as f32).collect()
}

/// Runs all operations at one member and compares its results.
fn check(member: &mut Member<'_>, effort: &Effort) -> Result<(), String> {
    let (this, all) = (member.id(), member.all.to_vec());
    let group = Group::new(1, all, this).map_err(|error| error.to_string())?;
    let result = LENGTHS.into_iter().enumerate().try_for_each(|(round, len)| {
        member.run(&group, Collective::Barrier)?;
        broadcast(member, &group, round, len, effort.seed)?;
        all_gather(member, &group, len, effort.seed)?;
        reduce_scatter(member, &group, len, effort.seed)
    });
    result.map_err(|error| format!("{this}: {error}"))
}

fn broadcast(
    member: &mut Member<'_>,
    group: &Group,
    round: usize,
    len: usize,
    seed: u64,
) -> Result<(), String> {
    let root = (round * 5) % group.members().len();
    let own = (group.rank() == root).then(|| content(seed, root, len));
    let collective = Collective::Broadcast { root: group.members()[root], content: own };
    if member.run(group, collective)? != [content(seed, root, len)] {
        return Err("a broadcast gave other bytes than the root's".to_owned());
    }
    Ok(())
}

fn all_gather(member: &mut Member<'_>, group: &Group, len: usize, seed: u64) -> Result<(), String> {
    let count = group.members().len();
    let of = |rank: usize| content(seed, rank, len * (rank + 1) / count);
    let own = Collective::AllGather { content: of(group.rank()) };
    if member.run(group, own)? != (0..count).map(of).collect::<Vec<_>>() {
        return Err("an all-gather gave other bytes than the members'".to_owned());
    }
    Ok(())
}

fn reduce_scatter(
    member: &mut Member<'_>,
    group: &Group,
    len: usize,
    seed: u64,
) -> Result<(), String> {
    let (rank, count) = (group.rank(), group.members().len());
    let own = terms(seed, rank, len).into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let sum = Collective::ReduceScatter { element: Element::F32, values: Frame::from(own) };
    let result = member.run(group, sum)?;
    // The expected sums, added one after the other in the order of ranks, starting after this
    // member.
    let mut sums = terms(seed, (rank + 1) % count, len);
    for step in 2..=count {
        let next = terms(seed, (rank + step) % count, len);
        sums.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
    }
    let part = rank * len / count..(rank + 1) * len / count;
    let expected: Vec<u8> = sums[part].iter().flat_map(|sum| sum.to_le_bytes()).collect();
    if result != [Frame::from(expected)] {
        return Err("a sum has other bits than a sequential one".to_owned());
    }
    Ok(())
}
