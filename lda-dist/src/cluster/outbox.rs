//! Requests of a role, and what they were for.

use std::collections::{BTreeMap, VecDeque};

use lda_transport::NodeId;
use lda_transport::endpoint::{Draft, Kind, RequestId};

use super::Port;

/// Requests that are underway, and those that wait until their peer takes more.
#[derive(Debug)]
pub(super) struct Outbox<For> {
    waiting: BTreeMap<NodeId, VecDeque<(Kind, Draft, For)>>,
    /// What they were for, and their bytes.
    underway: BTreeMap<RequestId, (For, usize)>,
    /// Of all of them.
    bytes: usize,
}

impl<For> Default for Outbox<For> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), underway: BTreeMap::new(), bytes: 0 }
    }
}

impl<For> Outbox<For> {
    pub fn send(&mut self, port: &mut dyn Port, peer: NodeId, kind: Kind, body: &[u8], what: For) {
        self.bytes += body.len();
        let waiting = self.waiting.entry(peer).or_default();
        waiting.push_back((kind, Draft::from(body), what));
        if waiting.len() == 1 {
            self.ready(port, peer);
        }
    }

    /// The peer takes more.
    pub fn ready(&mut self, port: &mut dyn Port, peer: NodeId) {
        let Some(waiting) = self.waiting.get_mut(&peer) else { return };
        while let Some((kind, draft, what)) = waiting.pop_front() {
            let len = draft.body().len();
            match port.ask(peer, kind, draft) {
                Ok(request) => {
                    self.underway.insert(request, (what, len));
                }
                Err(busy) => {
                    waiting.push_front((kind, busy.draft, what));
                    return;
                }
            }
        }
        self.waiting.remove(&peer);
    }

    /// Nobody wants to know any more what becomes of them, and those that wait are not sent.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.underway.clear();
        self.bytes = 0;
    }

    /// The same, but for those of this kind.
    pub fn clear_but(&mut self, keep: impl Fn(&For) -> bool) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|(_, _, what)| keep(what));
            !waiting.is_empty()
        });
        self.underway.retain(|_, (what, _)| keep(what));
        let waiting = self.waiting.values().flatten().map(|(_, draft, _)| draft.body().len());
        self.bytes = waiting.chain(self.underway.values().map(|(_, len)| *len)).sum();
    }

    /// What waits for a peer is not sent.
    pub fn forget(&mut self, peer: NodeId) {
        let forgotten = self.waiting.remove(&peer).into_iter().flatten();
        self.bytes -= forgotten.map(|(_, draft, _)| draft.body().len()).sum::<usize>();
    }

    /// A request has ended: what it was for.
    pub fn ended(&mut self, request: RequestId) -> Option<For> {
        let (what, len) = self.underway.remove(&request)?;
        self.bytes -= len;
        Some(what)
    }

    /// Bytes of requests that wait or are underway.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use lda_transport::endpoint::{Busy, Ticket};

    use super::*;

    /// Takes so many requests.
    struct Takes(u64);

    impl Port for Takes {
        fn ask(&mut self, peer: NodeId, _: Kind, draft: Draft) -> Result<RequestId, Busy> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Ok(RequestId { peer, number: left })
                }
                None => Err(Busy { peer, draft }),
            }
        }

        fn reply(&mut self, _: Ticket, _: Draft) {}

        fn reject(&mut self, _: Ticket, _: Draft) {}
    }

    #[test]
    fn bytes_are_of_all_that_has_no_end_yet() {
        let (mut outbox, mut port) = (Outbox::default(), Takes(3));
        let peers = [1, 2].map(NodeId);
        for (len, peer) in (1..=6).zip(peers.into_iter().cycle()) {
            outbox.send(&mut port, peer, Kind::Push, &vec![0; len], len);
        }
        assert_eq!(outbox.bytes(), 21);
        // It was the first that was taken.
        assert_eq!(outbox.ended(RequestId { peer: peers[0], number: 2 }), Some(1));
        assert_eq!(outbox.bytes(), 20);
        // 4 and 6 wait for the second, 5 for the first.
        outbox.forget(peers[1]);
        assert_eq!(outbox.bytes(), 10);
        outbox.clear_but(|&len| len == 3 || len == 5);
        assert_eq!(outbox.bytes(), 8);
        outbox.clear();
        assert_eq!(outbox.bytes(), 0);
    }
}
