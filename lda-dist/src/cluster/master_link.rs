//! What a server or worker tells the master.

use lda_transport::endpoint::{Kind, Outcome, RequestId};

use super::control::Control;
use super::outbox::Outbox;
use super::{Failed, MASTER, Port, Setup, outcome};

/// The way to the master, whichever is there now.
#[derive(Debug, Default)]
pub(super) struct Link {
    outbox: Outbox<()>,
    /// Of the master that knows of this node.
    incarnation: Option<u64>,
}

impl Link {
    /// Whether it is another master than the one before, which knows nothing of this node yet.
    pub fn is_new(&mut self, incarnation: u64) -> bool {
        self.incarnation.replace(incarnation) != Some(incarnation)
    }

    pub fn tell(&mut self, control: &Control, setup: &Setup, port: &mut dyn Port) {
        let bytes = control.encode(setup.job.topics(), setup.job.words());
        self.outbox.send(port, MASTER, Kind::Push, &bytes, ());
    }

    /// The master takes more.
    pub fn ready(&mut self, port: &mut dyn Port) {
        self.outbox.ready(port, MASTER);
    }

    /// A request to the master has ended. What it had not heard before it ended the next one asks for.
    pub fn ended(&mut self, request: RequestId, how: Outcome) -> Result<(), Failed> {
        self.outbox.ended(request);
        outcome(request, how).map(|_| ())
    }
}
