//! What fails by itself.

use std::time::Duration;

use super::event_queue::{Fault, SimEvent};
use super::world::World;
use crate::rpc::Program;
use crate::transport::NodeId;

/// How often links and nodes fail by themselves. None of a kind where it is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// A link is cut and both ends hear of it; one time in four, all links between some nodes and the
    /// others.
    pub cuts: Option<FaultWindow>,
    /// Frames vanish in one direction, and nobody hears of it; one time in four, on all links between some
    /// nodes and the others.
    pub silences: Option<FaultWindow>,
    /// A node crashes, and starts again.
    pub crashes: Option<FaultWindow>,
}

/// How often, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultWindow {
    /// Time between two, on average; up to twice as long.
    pub every: Duration,
    /// How long one lasts at most; as many last a half, a quarter, an eighth.
    pub lasting: Duration,
}

impl Chaos {
    fn spell(&self, fault: Fault) -> Option<FaultWindow> {
        match fault {
            Fault::Cut => self.cuts,
            Fault::Silence => self.silences,
            Fault::Crash => self.crashes,
        }
    }
}

impl<P: Program> World<P> {
    /// Changes what fails by itself from now on. What has failed ends in its time.
    pub fn set_chaos(&mut self, chaos: Chaos) {
        self.chaos = chaos;
        self.chaos_serial += 1;
        for fault in [Fault::Cut, Fault::Silence, Fault::Crash] {
            self.foresee(fault);
        }
    }

    /// Sets the time of the next one.
    fn foresee(&mut self, fault: Fault) {
        if let Some(spell) = self.chaos.spell(fault) {
            // Not twice at once, or time would not go on.
            let wait =
                self.chances.up_to(spell.every.saturating_mul(2)).max(Duration::from_nanos(1));
            let serial = self.chaos_serial;
            self.events.add(self.now + wait, SimEvent::Fault { fault, serial });
        }
    }

    pub(super) fn fail(&mut self, fault: Fault, serial: u64) {
        let Some(spell) = self.chaos.spell(fault).filter(|_| serial == self.chaos_serial) else {
            return;
        };
        self.foresee(fault);
        let halves = self.chances.below(8) as u32;
        let end = self.now + self.chances.up_to(spell.lasting / (1 << halves));
        match fault {
            Fault::Cut => {
                for (a, b) in self.some_links() {
                    self.cut(a, b);
                    let serial = self.links[&(a, b)].serial;
                    self.events.add(end, SimEvent::Mend { a, b, serial });
                }
            }
            Fault::Silence => {
                let turned = self.chances.below(2) == 0;
                for (a, b) in self.some_links() {
                    let (from, to) = if turned { (b, a) } else { (a, b) };
                    self.silence(from, to);
                    let serial = self.way(from, to).serial;
                    self.events.add(end, SimEvent::Unsilence { from, to, serial });
                }
            }
            Fault::Crash => {
                let living: Vec<NodeId> = self.living().collect();
                if !living.is_empty() {
                    let id = living[self.chances.below(living.len() as u64) as usize];
                    let life = self.life_of(id);
                    self.crash(id);
                    self.events.add(end, SimEvent::Start { id, life });
                }
            }
        }
    }

    /// One link, or those between two parts of all nodes.
    fn some_links(&mut self) -> Vec<(NodeId, NodeId)> {
        let all: Vec<(NodeId, NodeId)> = self.links.keys().copied().collect();
        if all.is_empty() {
            return all;
        }
        if self.chances.below(4) > 0 {
            return vec![all[self.chances.below(all.len() as u64) as usize]];
        }
        let mut part = Vec::new();
        for &id in self.nodes.keys() {
            if self.chances.below(2) == 0 {
                part.push(id);
            }
        }
        let between = |&(a, b): &(NodeId, NodeId)| part.contains(&a) != part.contains(&b);
        all.into_iter().filter(between).collect()
    }
}
