//! Random failures of links and nodes.

use std::time::Duration;

use super::event_queue::{Fault, SimEvent};
use super::world::World;
use crate::rpc::Program;
use crate::transport::NodeId;

/// Frequency of random failures, by kind; `None` for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// A link is cut, which both ends notice; one time in four, all links between some nodes and
    /// the others.
    pub cuts: Option<FaultWindow>,
    /// Frames are lost silently in one direction; one time in four, on all links between some nodes
    /// and the others.
    pub silences: Option<FaultWindow>,
    /// A node crashes and restarts.
    pub crashes: Option<FaultWindow>,
}

/// Frequency and duration of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultWindow {
    /// Average time between two failures. Each time is uniform, up to twice the average.
    pub every: Duration,
    /// Longest duration. It is halved 0 to 7 times with equal probability, then drawn uniformly.
    pub lasting: Duration,
}

impl Chaos {
    fn window(&self, fault: Fault) -> Option<FaultWindow> {
        match fault {
            Fault::Cut => self.cuts,
            Fault::Silence => self.silences,
            Fault::Crash => self.crashes,
        }
    }
}

impl<P: Program> World<P> {
    /// Changes the random failures from now on. Failures in progress end at their time.
    pub fn set_chaos(&mut self, chaos: Chaos) {
        self.chaos = chaos;
        self.chaos_serial += 1;
        for fault in [Fault::Cut, Fault::Silence, Fault::Crash] {
            self.schedule_fault(fault);
        }
    }

    /// Schedules the next failure of a kind.
    fn schedule_fault(&mut self, fault: Fault) {
        if let Some(window) = self.chaos.window(fault) {
            // INVARIANT: at least a nanosecond, or time would not advance.
            let wait =
                self.fault_rng.up_to(window.every.saturating_mul(2)).max(Duration::from_nanos(1));
            let serial = self.chaos_serial;
            self.events.add(self.now + wait, SimEvent::Fault { fault, serial });
        }
    }

    pub(super) fn fail(&mut self, fault: Fault, serial: u64) {
        let Some(window) = self.chaos.window(fault).filter(|_| serial == self.chaos_serial) else {
            return;
        };
        self.schedule_fault(fault);
        let halves = self.fault_rng.below(8) as u32;
        let end = self.now + self.fault_rng.up_to(window.lasting / (1 << halves));
        match fault {
            Fault::Cut => {
                for (a, b) in self.some_links() {
                    self.cut(a, b);
                    let serial = self.links[&(a, b)].serial;
                    self.events.add(end, SimEvent::Mend { a, b, serial });
                }
            }
            Fault::Silence => {
                let turned = self.fault_rng.below(2) == 0;
                for (a, b) in self.some_links() {
                    let (from, to) = if turned { (b, a) } else { (a, b) };
                    self.silence(from, to);
                    let serial = self.direction(from, to).serial;
                    self.events.add(end, SimEvent::Unsilence { from, to, serial });
                }
            }
            Fault::Crash => {
                let living: Vec<NodeId> = self.living().collect();
                if !living.is_empty() {
                    let id = living[self.fault_rng.below(living.len() as u64) as usize];
                    let generation = self.generation_of(id);
                    self.crash(id);
                    self.events.add(end, SimEvent::Start { id, generation });
                }
            }
        }
    }

    /// Returns a random link, or all links between two random sets of nodes.
    fn some_links(&mut self) -> Vec<(NodeId, NodeId)> {
        let all: Vec<(NodeId, NodeId)> = self.links.keys().copied().collect();
        if all.is_empty() {
            return all;
        }
        if self.fault_rng.below(4) > 0 {
            return vec![all[self.fault_rng.below(all.len() as u64) as usize]];
        }
        let mut part = Vec::new();
        for &id in self.nodes.keys() {
            if self.fault_rng.below(2) == 0 {
                part.push(id);
            }
        }
        let between = |&(a, b): &(NodeId, NodeId)| part.contains(&a) != part.contains(&b);
        all.into_iter().filter(between).collect()
    }
}
