//! Messages from a server or worker to the master.

use lda_transport::rpc::{Outcome, RequestId, RequestKind};

use super::control::Control;
use super::epoch_range::EpochRange;
use super::request_queue::RequestQueue;
use super::{Failed, MASTER, Port, Setup, outcome};

/// Connection to the master, across its restarts.
#[derive(Debug, Default)]
pub(super) struct Link {
    requests: RequestQueue<()>,
    /// Incarnation of the master that knows this node.
    incarnation: Option<u64>,
    /// Whether this node has to stop, which a new master must know too.
    stopping: bool,
}

impl Link {
    /// Returns whether the master was restarted since, and does not know this node yet.
    pub fn is_new(&mut self, incarnation: u64) -> bool {
        self.incarnation.replace(incarnation) != Some(incarnation)
    }

    pub fn send(&mut self, control: &Control, setup: &Setup, port: &mut dyn Port) {
        let bytes = control.encode(setup.spec.topics(), setup.spec.words());
        self.requests.send(port, MASTER, RequestKind::Push, &bytes, ());
    }

    /// Reports that this node has to stop.
    pub fn stop(&mut self, setup: &Setup, port: &mut dyn Port) {
        if !std::mem::replace(&mut self.stopping, true) && self.incarnation.is_some() {
            self.send(&Control::Stop {}, setup, port);
        }
    }

    /// Reports that this node is ready, after everything else that a new master needs.
    pub fn introduce(
        &mut self,
        attempt: u32,
        in_memory: EpochRange,
        setup: &Setup,
        port: &mut dyn Port,
    ) {
        self.send(&Control::Ready { attempt, in_memory }, setup, port);
        if self.stopping {
            self.send(&Control::Stop {}, setup, port);
        }
    }

    /// The master accepts more requests.
    pub fn ready(&mut self, port: &mut dyn Port) {
        self.requests.ready(port, MASTER);
    }

    /// Ends the session with a master that has sent a message that makes no sense.
    pub fn refuse(&mut self, what: String, port: &mut dyn Port) {
        port.refuse(MASTER, what);
        self.requests.forget(MASTER);
    }

    /// A request to the master has ended. If the master was restarted before it replied, the new
    /// master requests everything again.
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
