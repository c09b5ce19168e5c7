//! Checks of requests over the transport.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::member::{Executions, Member, Members};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::rpc::{self, FailureReason, RequestKind};
use crate::split_mix::SplitMix64;
use crate::transport::{NodeId, Transport};
use crate::wrap::{Failing, Faults};

/// Requests from each member to each other member.
const REQUESTS: u64 = 60;

/// Makes requests of all kinds to all other members and passes each outcome to `check`.
fn request_all(
    member: &mut Member<'_>,
    max_len: usize,
    effort: &Effort,
    check: impl Fn(u64, RequestKind, &Frame, rpc::Outcome) -> Result<(), String>,
) -> Result<(), String> {
    let this = member.id();
    let from = u64::from(this.0) + 1;
    let mut rng = SplitMix64::new(effort.seed ^ from);
    let mut open = Vec::new();
    for round in 0..REQUESTS {
        for &peer in member.all.iter().filter(|&&peer| peer != this) {
            let kinds = [RequestKind::Pull, RequestKind::Push, RequestKind::Call];
            let kind = kinds[(round % 3) as usize];
            let number = from << 48 | round << 16 | u64::from(peer.0);
            let mut body = number.to_le_bytes().to_vec();
            body.resize(8 + rng.below(max_len as u64) as usize, rng.draw() as u8);
            let request = member.request(peer, kind, &body, effort.patience)?;
            open.push((number, kind, Frame::from(body), request));
        }
    }
    for (number, kind, body, request) in open {
        let outcome = member.outcome(request)?;
        check(number, kind, &body, outcome)?;
    }
    Ok(())
}

pub fn answers(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let (executions, max_len) = (Executions::default(), AtomicUsize::new(0));
    let members = Members { count: 3, lossy: false, answers: true, executions: &executions };
    let wrap = |inner: Box<dyn Transport>| {
        // Less the header of a message.
        let len = inner.capabilities().max_frame_len.saturating_sub(64).clamp(1, 5000);
        max_len.store(len, SeqCst);
        inner
    };
    members.run(subject, effort, wrap, |member| {
        request_all(
            member,
            max_len.load(SeqCst),
            effort,
            |number, _, body, outcome| match outcome {
                rpc::Outcome::Done(answer) if answer == *body => Ok(()),
                other => Err(format!("request {number:x} ended as {other:?}")),
            },
        )
    })?;
    let counts: Vec<u32> = executions.counts().values().copied().collect();
    if counts != [1; 240] {
        return Err(format!("240 pushes and calls were executed {counts:?} times"));
    }
    Ok(Outcome::Passed)
}

pub fn deadlines(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let executions = Executions::default();
    // Members that never answer, and do not reject either.
    let members = Members { count: 2, lossy: false, answers: false, executions: &executions };
    members.run(
        subject,
        effort,
        |inner| inner,
        |member| {
            if member.id() != NodeId(0) {
                return Ok(());
            }
            let (timeout, start) = (Duration::from_millis(200), Instant::now());
            let request = member.request(NodeId(1), RequestKind::Push, &[], timeout)?;
            let outcome = member.outcome(request)?;
            let elapsed = start.elapsed();
            let expected = rpc::Outcome::Unknown { reason: FailureReason::Deadline, sent: true };
            if outcome != expected || elapsed < timeout || elapsed > timeout + effort.patience / 2 {
                return Err(format!(
                    "a push without an answer ended as {outcome:?} after {elapsed:?}"
                ));
            }
            Ok(())
        },
    )?;
    Ok(Outcome::Passed)
}

pub fn once(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let away = Duration::from_millis(20);
    let faults = Faults { lost: 50, doubled: 50, changed: 0, cut: 10, away };
    let wrap = |inner: Box<dyn Transport>| -> Box<dyn Transport> {
        let seed = effort.seed ^ u64::from(inner.id().0) << 8;
        Box::new(Failing::new(inner, faults, seed))
    };
    let executions = Executions::default();
    let members = Members { count: 3, lossy: true, answers: true, executions: &executions };
    let ended: Mutex<Vec<(u64, bool)>> = Mutex::default();
    members.run(subject, effort, wrap, |member| {
        request_all(member, 100, effort, |number, kind, body, outcome| {
            let done = match outcome {
                rpc::Outcome::Done(answer) if answer == *body => true,
                rpc::Outcome::Unknown { .. } => false,
                other => return Err(format!("request {number:x} ended as {other:?}")),
            };
            if kind != RequestKind::Pull {
                let mut ended = ended.lock().map_err(|error| error.to_string())?;
                ended.push((number, done));
            }
            Ok(())
        })
    })?;
    let counts = executions.counts();
    for (number, done) in ended.into_inner().map_err(|error| error.to_string())? {
        let times = counts.get(&number).copied().unwrap_or(0);
        if times > 1 || done && times == 0 {
            return Err(format!("push {number:x} (done: {done}) was executed {times} times"));
        }
    }
    Ok(Outcome::Passed)
}
