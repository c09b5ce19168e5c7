//! Replacement of the collective operations without the feature `collectives`: there are none, and
//! parts of operations of other nodes are rejected.

use super::wire::Status;
use super::{Action, Endpoint, MessageBuf, RequestKind};
use crate::time::Time;

/// The operations of a node: none.
#[derive(Debug, Default)]
pub(super) struct Collectives {}

impl Collectives {
    pub fn next_timer(&self) -> Time {
        Time::NEVER
    }

    pub fn due(&mut self, _now: Time) {}

    pub fn close(&mut self) {}
}

impl Endpoint {
    /// Passes the actions of peers on to the program, and rejects parts of operations.
    pub(super) fn sort(&mut self, now: Time) {
        // Each part is answered at once, so none is left to be abandoned.
        self.abandoned.clear();
        while let Some(action) = self.fresh.pop_front() {
            if let Action::Request { reply_to, kind: RequestKind::Part, .. } = action {
                let reason = &b"this node is built without the feature `collectives`"[..];
                self.answer(reply_to, Status::Rejected, MessageBuf::from(reason), now);
            } else {
                self.actions.push_back(action);
            }
        }
    }
}
