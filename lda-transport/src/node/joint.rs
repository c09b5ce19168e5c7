//! Operations that the transport does by its own means.

use std::collections::{BTreeSet, HashMap};

use super::Gathered;
use super::pending::Promise;
use crate::rpc::{Collective, CollectiveError, Group, OperationId, check};
use crate::time::Time;
use crate::transport::Transport;

#[derive(Default)]
pub(super) struct Joint {
    /// How many each group has begun.
    numbers: HashMap<u64, u64>,
    running: HashMap<OperationId, (Time, Promise<Gathered>)>,
    timers: BTreeSet<(Time, OperationId)>,
}

impl Joint {
    /// Begins an operation where the transport can do it, for a group that is all its nodes; else gives it back.
    pub fn begin(
        &mut self,
        transport: &mut dyn Transport,
        (group, collective): (&Group, Collective),
        longest: u64,
        deadline: Time,
        mut promise: Promise<Gathered>,
    ) -> Option<(Collective, Promise<Gathered>)> {
        let fits = |members: &[_]| members == group.members();
        let Some(together) = transport.together().filter(|it| fits(it.members())) else {
            return Some((collective, promise));
        };
        if let Err(error) = check(group, &collective, longest) {
            promise.end(Err(CollectiveError::Begin(error)));
            return None;
        }
        let number = self.numbers.entry(group.id()).or_default();
        let operation = OperationId { group: group.id(), number: *number };
        if let Err(collective) = together.begin(operation, collective, longest) {
            return Some((collective, promise));
        }
        *number += 1;
        promise.handed = true;
        self.timers.insert((deadline, operation));
        self.running.insert(operation, (deadline, promise));
        None
    }

    /// Ends an operation, if its deadline has not.
    pub fn end(&mut self, operation: OperationId, result: Gathered) {
        if let Some((deadline, promise)) = self.running.remove(&operation) {
            self.timers.remove(&(deadline, operation));
            promise.end(result);
        }
    }

    /// Ends those whose deadline has come.
    pub fn due(&mut self, transport: &mut dyn Transport, now: Time) {
        while let Some(&(_, operation)) = self.timers.first().filter(|timer| timer.0 <= now) {
            if let Some(together) = transport.together() {
                together.abandon(operation);
            }
            self.end(operation, Err(CollectiveError::Deadline { missing: Vec::new() }));
        }
    }

    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |timer| timer.0)
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }
}
