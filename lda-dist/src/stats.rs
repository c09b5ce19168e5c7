//! Bytes that move between workers and servers.

use crate::request::Kind;

/// Bytes of messages, without the framing that a transport adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Sizes of rows, one byte per word, and the requests for them.
    pub sizes: u64,
    /// Requests for rows, one bit per word.
    pub routes: u64,
    /// Rows, to workers.
    pub rows: u64,
    /// Deltas of rows, to servers.
    pub gained: u64,
    /// Documents and their tokens, to servers.
    pub pushed: u64,
    /// New topics of pushed tokens, to workers.
    pub answers: u64,
    /// C_k: the delta from each server, and the sum to each shard and server.
    pub totals: u64,
}

impl Bytes {
    /// Adds other bytes, field by field; saturates.
    pub fn add(&mut self, more: &Self) {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = more;
        let to = [
            &mut self.sizes,
            &mut self.routes,
            &mut self.rows,
            &mut self.gained,
            &mut self.pushed,
            &mut self.answers,
            &mut self.totals,
        ];
        for (to, more) in to.into_iter().zip([sizes, routes, rows, gained, pushed, answers, totals])
        {
            *to = to.saturating_add(*more);
        }
    }

    /// Adds a request to a server.
    pub(crate) fn count_request(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Sizes => self.sizes += bytes,
            Kind::Pull => self.routes += bytes,
            Kind::Push => self.pushed += bytes,
            Kind::PushDeltas | Kind::PushRows => self.gained += bytes,
            // Sent before the first epoch.
            Kind::Join => {}
        }
    }

    /// Adds a server's reply to a request of this kind.
    pub(crate) fn count_reply(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Sizes => self.sizes += bytes,
            Kind::Pull => self.rows += bytes,
            Kind::Push => self.answers += bytes,
            // These replies are empty.
            Kind::PushDeltas | Kind::PushRows | Kind::Join => {}
        }
    }

    /// Sum of all fields; saturates.
    pub fn total(&self) -> u64 {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = *self;
        let all = [sizes, routes, rows, gained, pushed, answers, totals];
        all.into_iter().fold(0, u64::saturating_add)
    }
}
