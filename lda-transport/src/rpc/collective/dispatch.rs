//! The endpoint's part: operations begin, their pieces become requests, and requests become pieces.

use super::{BeginError, Collective, CollectiveError, Deed, Group, OperationId};
use crate::rpc::message_buf::MessageBuf;
use crate::rpc::wire::Status;
use crate::rpc::{Action, Endpoint, FailureReason, RequestKind};
use crate::time::Time;

impl Endpoint {
    /// Begins an operation with the other members of a group; its end is an [`Action::CollectiveDone`].
    ///
    /// # Errors
    /// [`BeginError`]: what this member gives does not fit, and no operation has begun. It has not been counted
    /// either, so that the others wait for it until their deadline.
    pub fn begin(
        &mut self,
        group: &Group,
        collective: Collective,
        deadline: Time,
        now: Time,
    ) -> Result<OperationId, BeginError> {
        let Self { peers, collectives, config, .. } = self;
        let incarnation =
            |id| peers.get(&id).filter(|peer| peer.is_joined()).map_or(0, |peer| peer.known());
        let bounds = (config.piece, config.max_content_len);
        let id = collectives.begin(group, collective, bounds, deadline, incarnation)?;
        self.sort(now);
        Ok(id)
    }

    /// Ends an operation at this node, if it has not ended.
    pub fn abandon(&mut self, operation: OperationId, now: Time) {
        self.collectives.fail(operation, CollectiveError::Cancelled);
        self.sort(now);
    }

    /// Tells the operations what is for them of what has happened, and does what they say; what is left is for
    /// the program.
    pub(in crate::rpc) fn sort(&mut self, now: Time) {
        loop {
            if let Some(deed) = self.collectives.next_deed() {
                self.perform(deed, now);
                continue;
            }
            if let Some(reply_to) = self.abandoned.pop() {
                self.collectives.forget(reply_to);
                continue;
            }
            let Some(action) = self.fresh.pop_front() else { break };
            match action {
                Action::Request { reply_to, kind: RequestKind::Part, body } => {
                    let window = self.config.window;
                    self.collectives.piece(reply_to, &body, window);
                }
                Action::Completed { request, outcome } => {
                    let outcome = self.collectives.ended(request, outcome);
                    self.actions
                        .extend(outcome.map(|outcome| Action::Completed { request, outcome }));
                }
                other => {
                    match &other {
                        Action::Joined { peer, incarnation, .. } => {
                            self.collectives.met(*peer, *incarnation);
                        }
                        Action::Refused { peer, .. } => {
                            self.collectives.lose(*peer, FailureReason::Refused)
                        }
                        _ => {}
                    }
                    self.actions.push_back(other);
                }
            }
        }
    }

    fn perform(&mut self, deed: Deed, now: Time) {
        match deed {
            Deed::Request { operation, to, message, deadline } => {
                // They have a bound of their own.
                let request = self.add(to, RequestKind::Part, message, deadline, usize::MAX);
                let request = request.expect("that many never wait");
                self.collectives.sent(request, Some(operation));
            }
            Deed::Notify { to, message } => {
                let deadline = now + self.config.silence_timeout * 2;
                let request = self.add(to, RequestKind::Part, message, deadline, usize::MAX);
                self.collectives.sent(request.expect("that many never wait"), None);
            }
            Deed::Answer { reply_to, refusal } => {
                let status = if refusal.is_some() { Status::Rejected } else { Status::Done };
                let message = refusal
                    .map_or_else(MessageBuf::new, |words| MessageBuf::from(words.as_bytes()));
                self.answer(reply_to, status, message, now);
            }
            Deed::Cancel(request) => self.end(request, FailureReason::Cancelled, now),
            Deed::Report { operation, result } => {
                self.actions.push_back(Action::CollectiveDone { operation, result });
            }
        }
    }
}
