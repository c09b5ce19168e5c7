//! Checks of backpressure: a receiver that does not receive, and its effect on others.

use std::time::Duration;

use super::node::mesh;
use super::{Effort, Outcome, Subject};
use crate::split_mix::SplitMix64;
use crate::transport::{NodeId, Wait};

/// Time for which a queue has to stay full to count as full: frames in it may still move to the
/// side of the receiver.
const SETTLED: Duration = Duration::from_millis(300);

pub fn backpressure(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 3, effort)?;
    let (mut sender, mut stalled, mut third) = {
        let third = nodes.pop().expect("three");
        let stalled = nodes.pop().expect("two");
        (nodes.pop().expect("one"), stalled, third)
    };
    let len = sender.transport.capabilities().max_frame_len.min(1 << 14);
    let frame = |number: u64| SplitMix64::new(effort.seed ^ number).frame(Vec::new(), len);
    let mut taken = 0;
    loop {
        taken = sender.fill(stalled.id(), taken, len, frame)?;
        sender.writable.clear();
        sender.step(Wait::For(SETTLED))?;
        if sender.writable.is_empty() {
            break;
        }
    }
    // Other peers are not affected, in either direction.
    for number in 0..100 {
        sender.send(third.id(), frame(number))?;
        third.send(sender.id(), frame(number))?;
        for node in [&mut sender, &mut third] {
            let (_, found) = node.frame()?;
            if found != frame(number) {
                return Err("another frame arrived than was sent".to_owned());
            }
            node.transport.release(found);
        }
    }
    for number in 0..taken {
        let (peer, found) = stalled.frame()?;
        if peer != NodeId(0) || found != frame(number) {
            return Err(format!("frame {number} has changed while its receiver was stalled"));
        }
        stalled.transport.release(found);
    }
    sender.until("space", |node| node.writable.contains(&NodeId(1)))?;
    sender.send(stalled.id(), frame(taken))?;
    let (_, found) = stalled.frame()?;
    if found == frame(taken) {
        Ok(Outcome::Passed)
    } else {
        Err("after the stall another frame arrived than was sent".to_owned())
    }
}
