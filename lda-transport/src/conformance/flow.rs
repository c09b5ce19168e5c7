//! What a receiver that does not receive does to others.

use std::time::Duration;

use super::node::mesh;
use super::{Effort, Outcome, Subject};
use crate::split_mix::SplitMix64;
use crate::transport::{NodeId, Wait};

/// How long a queue has to stay full to be full: what lies in it may still be on its way to the receiver's
/// side.
const SETTLED: Duration = Duration::from_millis(300);

pub fn backpressure(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 3, effort)?;
    let (mut sender, mut stalled, mut third) = {
        let third = nodes.pop().expect("three");
        let stalled = nodes.pop().expect("two");
        (nodes.pop().expect("one"), stalled, third)
    };
    let capabilities = sender.transport.capabilities();
    let len = capabilities.max_frame_len.min(1 << 14);
    let most = capabilities.queue_bytes + len;
    let frame = |number: u64| SplitMix64::new(effort.seed ^ number).frame(Vec::new(), len);
    let mut taken = 0u64;
    loop {
        if sender.try_send(stalled.id(), frame(taken))?.is_none() {
            taken += 1;
            if taken * len as u64 > most as u64 {
                return Err(format!(
                    "{taken} frames of {len} bytes were taken for a node that does not receive, \
                     which is more than {} bytes",
                    capabilities.queue_bytes
                ));
            }
        } else {
            sender.rooms.clear();
            sender.step(Wait::For(SETTLED))?;
            if sender.rooms.is_empty() {
                break;
            }
        }
    }
    // Others do not feel it, in either direction.
    for number in 0..100 {
        sender.send(third.id(), frame(number))?;
        third.send(sender.id(), frame(number))?;
        for node in [&mut sender, &mut third] {
            let (_, found) = node.frame()?;
            if found != frame(number) {
                return Err("another frame came than was sent".to_owned());
            }
            node.transport.release(found);
        }
    }
    for number in 0..taken {
        let (peer, found) = stalled.frame()?;
        if peer != NodeId(0) || found != frame(number) {
            return Err(format!("frame {number} is not as it was when its receiver took it up"));
        }
        stalled.transport.release(found);
    }
    sender.until("room", |node| node.rooms.contains(&NodeId(1)))?;
    sender.send(stalled.id(), frame(taken))?;
    let (_, found) = stalled.frame()?;
    if found == frame(taken) {
        Ok(Outcome::Passed)
    } else {
        Err("after the stall another frame came than was sent".to_owned())
    }
}
