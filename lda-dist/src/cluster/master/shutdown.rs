//! Nodes that have to end go between two epochs, and all of them after the last.

use lda_transport::rpc::RequestKind;

use super::super::control::Control;
use super::super::{MASTER, Port};
use super::{Master, RequestPurpose, Step};

impl Master {
    /// This node has to end, and with it all.
    pub(in crate::cluster) fn stop(&mut self, port: &mut dyn Port) {
        if !self.is_ending() {
            self.stopping.insert(MASTER);
        }
        if self.step == Step::Waiting {
            self.release_stopping(port);
        }
    }

    /// The epoch that the run goes on from when it is begun again, if it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped.filter(|_| self.is_finished())
    }

    /// Lets those go that have to end, between two epochs. The others wait for them to come again.
    pub(super) fn release_stopping(&mut self, port: &mut dyn Port) {
        let stopping = std::mem::take(&mut self.stopping);
        if stopping.contains(&MASTER) {
            self.stopped = Some(self.kept);
            if self.step == Step::Waiting {
                // Who is here hears it from the transport.
                self.step = Step::Finished;
            } else {
                self.finish(port);
            }
        } else if !stopping.is_empty() {
            self.step = Step::Waiting;
            self.clear_requests(port);
            let finish =
                self.finish_message(true).encode(self.setup.spec.topics(), self.setup.spec.words());
            for node in stopping {
                self.here.remove(&node);
                self.requests.send(port, node, RequestKind::Push, &finish, RequestPurpose::Leave);
            }
        }
    }

    pub(super) fn finish(&mut self, port: &mut dyn Port) {
        self.step = Step::Finishing(self.num_others());
        let finish = self.finish_message(self.stopped.is_some());
        self.send_servers(&finish, RequestKind::Push, RequestPurpose::Finish, port);
        self.send_workers(&finish, RequestKind::Push, RequestPurpose::Finish, port);
    }

    pub(super) fn finish_message(&self, stopped: bool) -> Control {
        Control::Finish { attempt: self.attempt, kept: self.kept, stopped }
    }
}
