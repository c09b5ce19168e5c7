//! Requests and operations over the transport, by nodes with threads of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::node::{Asked, Node, Service};
use crate::rpc::{
    self, Collective, Config, Element, FailureReason, Group, Identity, MessageBuf, RequestKind,
};
use crate::split_mix::SplitMix64;
use crate::transport::{Capabilities, NodeId, Transport};
use crate::wrap::{Failing, Faults};

/// Of nodes whose frames may be no longer than the transport takes.
fn config(can: Capabilities, lossy: bool) -> Config {
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 1 };
    // With the head, and of an operation's pieces the tag.
    let piece = (can.max_frame_len.saturating_sub(256) & !7).clamp(8, 16 << 10);
    let retry = lossy.then_some(Duration::from_millis(50));
    Config { piece, retry, ..Config::new(identity) }
}

/// Nodes that have all joined each other.
fn nodes(
    subject: &mut dyn Subject,
    count: u32,
    effort: &Effort,
    wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
    lossy: bool,
    mut service: impl FnMut(NodeId) -> Box<dyn FnMut(Asked) + Send>,
) -> Result<Vec<Node>, String> {
    let mut nodes = Vec::new();
    for transport in subject.mesh(count) {
        let (id, config) = (transport.id(), config(transport.capabilities(), lossy));
        nodes.push(start(wrap(transport), config, service(id))?);
    }
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.id()).collect();
    for node in &nodes {
        let others: Vec<NodeId> = ids.iter().copied().filter(|&id| id != node.id()).collect();
        node.wait_for(&others, effort.patience).map_err(|missing| missing.to_string())?;
    }
    Ok(nodes)
}

fn start(
    transport: Box<dyn Transport>,
    config: Config,
    service: Box<dyn FnMut(Asked) + Send>,
) -> Result<Node, String> {
    struct Boxed(Box<dyn FnMut(Asked) + Send>);
    impl Service for Boxed {
        fn asked(&mut self, asked: Asked) {
            (self.0)(asked);
        }
    }
    Node::start(transport, config, Boxed(service)).map_err(|error| error.to_string())
}

/// How often each push was done, by its number.
type Book = Arc<Mutex<BTreeMap<u64, u32>>>;

fn number_of(body: &[u8]) -> u64 {
    body.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}

/// Answers with what it was asked, and writes down what it has done.
fn clerk(book: &Book) -> Box<dyn FnMut(Asked) + Send> {
    let book = Arc::clone(book);
    Box::new(move |asked| {
        let mut answer = asked.message();
        answer.extend_from_slice(asked.body());
        if asked.kind() != RequestKind::Pull {
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            *book.entry(number_of(asked.body())).or_default() += 1;
        }
        asked.reply(answer);
    })
}

/// Every node makes so many requests of each kind to each other node, and looks at what each came to.
fn ask(
    nodes: &[Node],
    each: u64,
    longest: usize,
    effort: &Effort,
    end: impl Fn(u64, RequestKind, &Frame, rpc::Outcome) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let talk = |node: &Node, from: u64| {
        let mut numbers = SplitMix64::new(effort.seed ^ from);
        let mut open = Vec::new();
        for round in 0..each {
            for peer in nodes.iter().map(|peer| peer.id()).filter(|&peer| peer != node.id()) {
                let kind =
                    [RequestKind::Pull, RequestKind::Push, RequestKind::Call][(round % 3) as usize];
                let number = from << 48 | round << 16 | u64::from(peer.0);
                let mut body = number.to_le_bytes().to_vec();
                body.resize(8 + numbers.below(longest as u64) as usize, numbers.draw() as u8);
                let message = MessageBuf::from(&body[..]);
                let pending = node.request(peer, kind, message, effort.patience);
                open.push((number, kind, Frame::from(body), pending));
            }
        }
        open.into_iter()
            .try_for_each(|(number, kind, body, pending)| end(number, kind, &body, pending.wait()))
    };
    thread::scope(|scope| {
        let talk = &talk;
        let talking: Vec<_> =
            (1..).zip(nodes).map(|(from, node)| scope.spawn(move || talk(node, from))).collect();
        let joined = |one: thread::ScopedJoinHandle<'_, _>| {
            one.join().map_err(|_| "a thread that asked panicked".to_owned())?
        };
        talking.into_iter().try_for_each(joined)
    })
}

pub fn answers(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let (book, longest) = (Book::default(), Mutex::new(5000));
    let wrap = |inner: Box<dyn Transport>| {
        // Less what a message has of its own.
        *longest.lock().unwrap_or_else(PoisonError::into_inner) =
            inner.capabilities().max_frame_len.saturating_sub(64).clamp(1, 5000);
        inner
    };
    let nodes = nodes(subject, 3, effort, wrap, false, |_| clerk(&book))?;
    let longest = *longest.lock().unwrap_or_else(PoisonError::into_inner);
    ask(&nodes, 60, longest, effort, |number, _, body, outcome| match outcome {
        rpc::Outcome::Done(answer) if answer == *body => Ok(()),
        other => Err(format!("request {number:x} ended as {other:?}")),
    })?;
    let book = book.lock().unwrap_or_else(PoisonError::into_inner);
    let done: Vec<u32> = book.values().copied().collect();
    if done != [1; 240] {
        return Err(format!("240 pushes and calls were done {done:?} times"));
    }
    Ok(Outcome::Passed)
}

pub fn deadlines(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    // One that never answers, and does not say that either.
    let kept: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let keep = |_| -> Box<dyn FnMut(Asked) + Send> {
        let kept = Arc::clone(&kept);
        Box::new(move |asked| kept.lock().unwrap_or_else(PoisonError::into_inner).push(asked))
    };
    let nodes = nodes(subject, 2, effort, |inner| inner, false, keep)?;
    let (within, began) = (Duration::from_millis(200), Instant::now());
    let to = nodes[1].id();
    let end = nodes[0].push(to, MessageBuf::new(), within).wait();
    let took = began.elapsed();
    let expected = rpc::Outcome::Unknown { reason: FailureReason::Deadline, sent: true };
    if end != expected || took < within || took > within + effort.patience / 2 {
        return Err(format!("a push without an answer ended as {end:?} after {took:?}"));
    }
    kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(Outcome::Passed)
}

pub fn once(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let away = Duration::from_millis(20);
    let faults = Faults { lost: 50, doubled: 50, changed: 0, cut: 10, away };
    let wrap = |inner: Box<dyn Transport>| -> Box<dyn Transport> {
        let seed = effort.seed ^ u64::from(inner.id().0) << 8;
        Box::new(Failing::new(inner, faults, seed))
    };
    let book = Book::default();
    let nodes = nodes(subject, 3, effort, wrap, true, |_| clerk(&book))?;
    let ended: Mutex<Vec<(u64, bool)>> = Mutex::default();
    ask(&nodes, 60, 100, effort, |number, kind, body, outcome| {
        let done = match outcome {
            rpc::Outcome::Done(answer) if answer == *body => true,
            rpc::Outcome::Unknown { .. } => false,
            other => return Err(format!("request {number:x} ended as {other:?}")),
        };
        if kind != RequestKind::Pull {
            ended.lock().unwrap_or_else(PoisonError::into_inner).push((number, done));
        }
        Ok(())
    })?;
    let book = book.lock().unwrap_or_else(PoisonError::into_inner);
    for (number, done) in ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let times = book.get(&number).copied().unwrap_or(0);
        if times > 1 || done && times == 0 {
            return Err(format!(
                "push {number:x}, which ended as done: {done}, was done {times} times"
            ));
        }
    }
    Ok(Outcome::Passed)
}

/// Bytes of a member's content: of any length, and some of several pieces.
fn content(seed: u64, rank: usize, len: usize) -> Frame {
    let mut numbers = SplitMix64::new(seed ^ rank as u64);
    Frame::from((0..len).map(|_| numbers.draw() as u8).collect::<Vec<u8>>())
}

pub fn together(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    for count in (1..=17).rev() {
        let silent = |_| -> Box<dyn FnMut(Asked) + Send> { Box::new(drop) };
        let nodes = nodes(subject, count, effort, |inner| inner, false, silent)?;
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id()).collect();
        let lengths = [0, 7, 5000, 100_000];
        thread::scope(|scope| {
            let running: Vec<_> = nodes
                .iter()
                .enumerate()
                .map(|(rank, node)| {
                    let ids = ids.clone();
                    scope.spawn(move || member(node, rank, ids, &lengths, effort))
                })
                .collect();
            running
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| "a member panicked".to_owned())?)
        })
        .map_err(|reason| format!("{count} members: {reason}"))?;
    }
    Ok(Outcome::Passed)
}

/// One member's part, and what it should get.
fn member(
    node: &Node,
    rank: usize,
    ids: Vec<NodeId>,
    lengths: &[usize],
    effort: &Effort,
) -> Result<(), String> {
    let (count, seed) = (ids.len(), effort.seed);
    let group = Group::new(1, ids.clone(), node.id()).map_err(|error| error.to_string())?;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", node.id());
    for (round, &len) in lengths.iter().enumerate() {
        node.barrier(&group, effort.patience).map_err(|error| failed(&error))?;
        let root = (round * 5) % count;
        let own = (rank == root).then(|| content(seed, root, len));
        let got = node.broadcast(&group, ids[root], own, effort.patience);
        if got.map_err(|error| failed(&error))? != content(seed, root, len) {
            return Err(failed(&"a broadcast gave something else"));
        }
        let own = |rank: usize| content(seed, rank, len * (rank + 1) / count);
        let got = node.all_gather(&group, own(rank), effort.patience);
        if got.map_err(|error| failed(&error))? != (0..count).map(own).collect::<Vec<_>>() {
            return Err(failed(&"a gathering gave something else"));
        }
        let values = |rank: usize| -> Vec<f32> {
            let bytes = content(seed ^ 1, rank, len);
            bytes.iter().map(|&byte| f32::from(byte) * 1.1 + rank as f32).collect()
        };
        let frame: Vec<u8> = values(rank).into_iter().flat_map(f32::to_le_bytes).collect();
        let sum = Collective::ReduceScatter { element: Element::F32, values: Frame::from(frame) };
        let got =
            node.begin(&group, sum, effort.patience).wait().map_err(|error| failed(&error))?;
        // One after the other, from the member after this one around to it.
        let mut sums = values((rank + 1) % count);
        for step in 2..=count {
            let next = values((rank + step) % count);
            sums.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
        }
        let part = rank * len / count..(rank + 1) * len / count;
        let expected: Vec<u8> = sums[part].iter().flat_map(|sum| sum.to_le_bytes()).collect();
        if got != [Frame::from(expected)] {
            return Err(failed(&"a sum has other bits"));
        }
    }
    // All stay until all are done.
    node.barrier(&group, effort.patience).map_err(|error| failed(&error))
}
