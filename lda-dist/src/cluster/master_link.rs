//! What a server or worker tells the master.

use lda_transport::rpc::{Outcome, RequestId, RequestKind};

use super::control::Control;
use super::request_queue::RequestQueue;
use super::{Failed, MASTER, Port, Setup, outcome};

/// The way to the master, whichever is there now.
#[derive(Debug, Default)]
pub(super) struct Link {
    requests: RequestQueue<()>,
    /// Of the master that knows of this node.
    incarnation: Option<u64>,
    /// Whether this node has to end, which a new master is told too.
    stopping: bool,
}

impl Link {
    /// Whether it is another master than the one before, which knows nothing of this node yet.
    pub fn is_new(&mut self, incarnation: u64) -> bool {
        self.incarnation.replace(incarnation) != Some(incarnation)
    }

    pub fn send(&mut self, control: &Control, setup: &Setup, port: &mut dyn Port) {
        let bytes = control.encode(setup.spec.topics(), setup.spec.words());
        self.requests.send(port, MASTER, RequestKind::Push, &bytes, ());
    }

    /// This node has to end.
    pub fn stop(&mut self, setup: &Setup, port: &mut dyn Port) {
        if !std::mem::replace(&mut self.stopping, true) && self.incarnation.is_some() {
            self.send(&Control::Stop, setup, port);
        }
    }

    /// This node is here, after whatever else a new master has to know of it.
    pub fn introduce(&mut self, attempt: u32, setup: &Setup, port: &mut dyn Port) {
        self.send(&Control::Ready { attempt }, setup, port);
        if self.stopping {
            self.send(&Control::Stop, setup, port);
        }
    }

    /// The master takes more.
    pub fn ready(&mut self, port: &mut dyn Port) {
        self.requests.ready(port, MASTER);
    }

    /// A request to the master has ended. What it had not heard before it ended the next one asks for.
    pub fn ended(
        &mut self,
        request: RequestId,
        how: Outcome,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.requests.ended(port, request);
        outcome(request, how).map(|_| ())
    }
}
