//! Collective operations of an endpoint: their parts become requests, and requests become parts.

use super::{BeginError, Collective, CollectiveError, Command, Group, OperationId};
use crate::rpc::message_buf::MessageBuf;
use crate::rpc::wire::Status;
use crate::rpc::{Action, Endpoint, FailureReason, RequestKind};
use crate::time::Time;

impl Endpoint {
    /// Begins an operation of a group. It ends with an [`Action::CollectiveDone`].
    ///
    /// # Errors
    /// [`BeginError`]: the input of this member is invalid. No operation has begun and its number is not
    /// used, so the other members wait for it until their deadline.
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
        let bounds = (config.part_len, config.max_content_len);
        let id = collectives.begin(group, collective, bounds, deadline, incarnation)?;
        self.sort(now);
        Ok(id)
    }

    /// Ends an operation as [`CollectiveError::Cancelled`], unless it has ended.
    pub fn abandon(&mut self, operation: OperationId, now: Time) {
        self.collectives.fail(operation, CollectiveError::Cancelled);
        self.sort(now);
    }

    /// Passes new actions of peers to the operations or to the program, and executes the commands
    /// of the operations.
    //
    // INVARIANT: commands are executed before the next action is passed on, so the operations and
    // the peers agree on the requests that are open.
    pub(in crate::rpc) fn sort(&mut self, now: Time) {
        loop {
            if let Some(command) = self.collectives.next_command() {
                self.perform(command, now);
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
                    self.collectives.take_part(reply_to, &body, window);
                }
                Action::Completed { request, outcome } => {
                    let outcome = self.collectives.request_ended(request, outcome);
                    self.actions
                        .extend(outcome.map(|outcome| Action::Completed { request, outcome }));
                }
                other => {
                    match &other {
                        Action::Joined { peer, incarnation, .. } => {
                            self.collectives.peer_joined(*peer, *incarnation);
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

    fn perform(&mut self, command: Command, now: Time) {
        match command {
            Command::Request { operation, to, message, deadline } => {
                // Operations bound the number of their requests themselves.
                let request = self.add(to, RequestKind::Part, message, deadline, usize::MAX);
                let request = request.expect("the limit is `usize::MAX`");
                self.collectives.sent(request, Some(operation));
            }
            Command::Notify { to, message } => {
                let deadline = now + self.config.silence_timeout * 2;
                let request = self.add(to, RequestKind::Part, message, deadline, usize::MAX);
                self.collectives.sent(request.expect("the limit is `usize::MAX`"), None);
            }
            Command::Answer { reply_to, refusal } => {
                let status = if refusal.is_some() { Status::Rejected } else { Status::Done };
                let message = refusal
                    .map_or_else(MessageBuf::new, |words| MessageBuf::from(words.as_bytes()));
                self.answer(reply_to, status, message, now);
            }
            Command::Cancel(request) => self.end(request, FailureReason::Cancelled, now),
            Command::Report { operation, result } => {
                self.actions.push_back(Action::CollectiveDone { operation, result });
            }
        }
    }
}
