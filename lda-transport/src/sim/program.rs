//! Starts of simulated nodes, and the services of the simulator for their programs.

use std::fmt;

use super::event_queue::{EventQueue, SimEvent};
use super::trace::Trace;
use crate::rpc::Host;
use crate::time::Time;
use crate::transport::NodeId;

/// A node that is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStart {
    /// The node.
    pub id: NodeId,
    /// Number of starts of all nodes so far, this one included: usable as an incarnation.
    pub incarnation: u64,
    /// Time of the start.
    pub now: Time,
}

/// The simulator as seen by the program of one node.
#[derive(Debug)]
pub(super) struct SimHost<'a> {
    pub id: NodeId,
    pub now: Time,
    /// Number of this start among those of all nodes.
    pub generation: u64,
    pub events: &'a mut EventQueue,
    pub trace: &'a mut Trace,
}

impl Host for SimHost<'_> {
    fn set_timer(&mut self, at: Time, timer: u64) {
        let (id, generation) = (self.id, self.generation);
        self.events.add(at, SimEvent::Timer { id, generation, timer });
    }

    fn note(&mut self, text: &dyn fmt::Display) {
        self.trace.note(self.now, self.id, text);
    }
}
