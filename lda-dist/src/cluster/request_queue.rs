//! Requests of a role that are in flight or wait, each with its purpose.
//!
//! A broadcast message is stored once, and copied only for recipients to which it is in flight: at
//! most [`BROADCAST_BYTES`] bytes, or one message. The other recipients wait until some of these
//! have replied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lda_transport::rpc::{MessageBuf, RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::Port;

/// Bytes of the master's broadcast messages that may be in flight, unless a single message has
/// more.
pub const BROADCAST_BYTES: usize = 64 << 20;

/// Requests in flight, and requests that wait until their peer accepts more.
#[derive(Debug)]
pub(super) struct RequestQueue<P> {
    waiting: BTreeMap<NodeId, VecDeque<Request<P>>>,
    in_flight: BTreeMap<RequestId, InFlight<P>>,
    /// Bytes of all requests, as if broadcast messages were copied.
    bytes: usize,
    /// Bytes of broadcast messages in flight, and their limit.
    broadcast_in_flight: usize,
    max_broadcast: usize,
    /// Peers whose first waiting request exceeds that limit.
    blocked: BTreeSet<NodeId>,
}

#[derive(Debug)]
struct Request<P> {
    kind: RequestKind,
    body: Body,
    purpose: P,
}

#[derive(Debug)]
enum Body {
    Own(MessageBuf),
    Shared(Frame),
}

#[derive(Debug)]
struct InFlight<P> {
    purpose: P,
    len: usize,
    is_shared: bool,
}

impl<P> Request<P> {
    fn len(&self) -> usize {
        match &self.body {
            Body::Own(draft) => draft.body().len(),
            Body::Shared(frame) => frame.len(),
        }
    }
}

impl<P> Default for RequestQueue<P> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            bytes: 0,
            broadcast_in_flight: 0,
            max_broadcast: BROADCAST_BYTES,
            blocked: BTreeSet::new(),
        }
    }
}

impl<P> RequestQueue<P> {
    /// Sends a request to a peer.
    pub fn send(
        &mut self,
        port: &mut dyn Port,
        peer: NodeId,
        kind: RequestKind,
        body: &[u8],
        purpose: P,
    ) {
        self.add(port, peer, Request { kind, body: Body::Own(MessageBuf::from(body)), purpose });
    }

    /// Sends a message to one of its many recipients.
    pub fn broadcast(
        &mut self,
        port: &mut dyn Port,
        peer: NodeId,
        kind: RequestKind,
        body: &Frame,
        purpose: P,
    ) {
        self.add(port, peer, Request { kind, body: Body::Shared(body.clone()), purpose });
    }

    fn add(&mut self, port: &mut dyn Port, peer: NodeId, request: Request<P>) {
        self.bytes += request.len();
        let waiting = self.waiting.entry(peer).or_default();
        waiting.push_back(request);
        if waiting.len() == 1 {
            self.ready(port, peer);
        }
    }

    /// The peer accepts more requests.
    pub fn ready(&mut self, port: &mut dyn Port, peer: NodeId) {
        let Some(waiting) = self.waiting.get_mut(&peer) else { return };
        while let Some(request) = waiting.pop_front() {
            let len = request.len();
            let Request { kind, body, purpose } = request;
            let (draft, shared) = match body {
                Body::Own(draft) => (draft, None),
                Body::Shared(frame)
                    if self.broadcast_in_flight > 0
                        && self.broadcast_in_flight + len > self.max_broadcast =>
                {
                    waiting.push_front(Request { kind, body: Body::Shared(frame), purpose });
                    self.blocked.insert(peer);
                    return;
                }
                Body::Shared(frame) => (MessageBuf::from(&frame[..]), Some(frame)),
            };
            match port.ask(peer, kind, draft) {
                Ok(request) => {
                    let is_shared = shared.is_some();
                    self.broadcast_in_flight += if is_shared { len } else { 0 };
                    self.in_flight.insert(request, InFlight { purpose, len, is_shared });
                }
                Err(busy) => {
                    let body = shared.map_or(Body::Own(busy.message), Body::Shared);
                    waiting.push_front(Request { kind, body, purpose });
                    return;
                }
            }
        }
        self.waiting.remove(&peer);
    }

    /// Drops all requests: those that wait are not sent, and outcomes of the others are ignored.
    pub fn clear(&mut self) {
        let max_broadcast = self.max_broadcast;
        *self = Self { max_broadcast, ..Self::default() };
    }

    /// Drops all requests except those with a purpose for which `keep` is true.
    pub fn clear_but(&mut self, port: &mut dyn Port, keep: impl Fn(&P) -> bool) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|request| keep(&request.purpose));
            !waiting.is_empty()
        });
        self.in_flight.retain(|_, InFlight { purpose, .. }| keep(purpose));
        self.blocked.retain(|peer| self.waiting.contains_key(peer));
        let waiting = self.waiting.values().flatten().map(Request::len);
        self.bytes = waiting.chain(self.in_flight.values().map(|in_flight| in_flight.len)).sum();
        let shared = self.in_flight.values().filter(|in_flight| in_flight.is_shared);
        self.broadcast_in_flight = shared.map(|in_flight| in_flight.len).sum();
        self.send_blocked(port);
    }

    /// Drops the requests that wait for a peer.
    pub fn forget(&mut self, peer: NodeId) {
        self.blocked.remove(&peer);
        let forgotten = self.waiting.remove(&peer).into_iter().flatten();
        self.bytes -= forgotten.map(|request| request.len()).sum::<usize>();
    }

    /// Whether a request to this peer waits or is in flight.
    pub fn awaits(&self, peer: NodeId) -> bool {
        self.waiting.contains_key(&peer)
            || self.in_flight.keys().any(|request| request.peer == peer)
    }

    /// Drops all requests to a peer that is given up: outcomes of those in flight are ignored.
    pub fn give_up(&mut self, port: &mut dyn Port, peer: NodeId) {
        self.forget(peer);
        let in_flight: Vec<RequestId> =
            self.in_flight.keys().filter(|request| request.peer == peer).copied().collect();
        for request in in_flight {
            self.ended(port, request);
        }
    }

    /// A request has ended; returns its purpose.
    pub fn ended(&mut self, port: &mut dyn Port, request: RequestId) -> Option<P> {
        let InFlight { purpose, len, is_shared } = self.in_flight.remove(&request)?;
        self.bytes -= len;
        if is_shared {
            self.broadcast_in_flight -= len;
            self.send_blocked(port);
        }
        Some(purpose)
    }

    /// Sends blocked broadcast messages, as many as may be in flight.
    fn send_blocked(&mut self, port: &mut dyn Port) {
        while let Some(peer) = self.blocked.pop_first() {
            self.ready(port, peer);
            if self.blocked.contains(&peer) {
                return;
            }
        }
    }

    /// Bytes of requests that wait or are in flight.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use lda_transport::rpc::{Overloaded, ReplyHandle};

    use super::*;

    /// A port that accepts a number of requests.
    struct Takes(u64);

    impl Port for Takes {
        fn ask(
            &mut self,
            peer: NodeId,
            _: RequestKind,
            draft: MessageBuf,
        ) -> Result<RequestId, Overloaded> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Ok(RequestId { peer, number: left })
                }
                None => Err(Overloaded { peer, message: draft }),
            }
        }

        fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}

        fn refuse(&mut self, _: NodeId, _: String) {}
    }

    #[test]
    fn requests_to_a_peer_that_is_given_up_are_dropped() {
        let (mut requests, mut port) = (RequestQueue::default(), Takes(2));
        let peers = [1, 2].map(NodeId);
        for peer in peers.into_iter().chain([NodeId(1)]) {
            requests.broadcast(&mut port, peer, RequestKind::Push, &vec![0; 10].into(), ());
        }
        assert!(peers.into_iter().all(|peer| requests.awaits(peer)));
        requests.give_up(&mut port, NodeId(1));
        assert_eq!((requests.awaits(NodeId(1)), requests.awaits(NodeId(2))), (false, true));
        assert_eq!(requests.bytes(), 10);
    }

    #[test]
    fn bytes_are_of_all_that_has_no_end_yet() {
        let (mut requests, mut port) = (RequestQueue::default(), Takes(3));
        let peers = [1, 2].map(NodeId);
        for (len, peer) in (1..=6).zip(peers.into_iter().cycle()) {
            requests.send(&mut port, peer, RequestKind::Push, &vec![0; len], len);
        }
        assert_eq!(requests.bytes(), 21);
        // The first request was accepted.
        assert_eq!(requests.ended(&mut port, RequestId { peer: peers[0], number: 2 }), Some(1));
        assert_eq!(requests.bytes(), 20);
        // 4 and 6 wait for the second, 5 for the first.
        requests.forget(peers[1]);
        assert_eq!(requests.bytes(), 10);
        requests.clear_but(&mut port, |&len| len == 3 || len == 5);
        assert_eq!(requests.bytes(), 8);
        requests.clear();
        assert_eq!(requests.bytes(), 0);
    }

    #[test]
    fn what_is_said_to_many_is_underway_to_some_at_a_time() {
        let (mut requests, mut port) =
            (RequestQueue { max_broadcast: 250, ..RequestQueue::default() }, Takes(100));
        let in_flight = |requests: &RequestQueue<char>| -> Vec<u32> {
            requests.in_flight.keys().map(|request| request.peer.0).collect()
        };
        let body = Frame::from(vec![7; 100]);
        for peer in 1..=5 {
            requests.broadcast(&mut port, NodeId(peer), RequestKind::Push, &body, 'a');
        }
        assert_eq!((in_flight(&requests), requests.bytes()), (vec![1, 2], 500));
        // A message to a single peer does not wait for broadcasts, except for earlier ones to that
        // peer.
        requests.send(&mut port, NodeId(6), RequestKind::Push, &[7; 300], 'b');
        requests.send(&mut port, NodeId(5), RequestKind::Push, &[7; 300], 'b');
        assert_eq!(in_flight(&requests), [1, 2, 6]);
        // A peer that accepts more gets no more than may be in flight.
        requests.ready(&mut port, NodeId(4));
        assert_eq!(in_flight(&requests), [1, 2, 6]);
        // Each reply makes room for another recipient, but not for one that is forgotten.
        requests.forget(NodeId(3));
        for (peer, left) in [(2, vec![1, 4, 6]), (1, vec![4, 5, 5, 6])] {
            let request =
                *requests.in_flight.keys().find(|request| request.peer.0 == peer).unwrap();
            assert_eq!(requests.ended(&mut port, request), Some('a'));
            assert_eq!(in_flight(&requests), left);
        }
        assert_eq!(
            (requests.broadcast_in_flight, requests.bytes(), requests.waiting.len()),
            (200, 800, 0)
        );
        requests.clear_but(&mut port, |&purpose| purpose == 'b');
        assert_eq!((requests.broadcast_in_flight, requests.bytes()), (0, 600));
        // A message beyond the limit goes to one recipient at a time.
        let long = Frame::from(vec![7; 1000]);
        for peer in [1, 2] {
            requests.broadcast(&mut port, NodeId(peer), RequestKind::Push, &long, 'c');
        }
        assert_eq!(in_flight(&requests), [1, 5, 6]);
        // Remaining requests are not blocked by those that are dropped.
        requests.send(&mut port, NodeId(2), RequestKind::Push, &[7], 'b');
        assert_eq!(in_flight(&requests), [1, 5, 6]);
        requests.clear_but(&mut port, |&purpose| purpose == 'b');
        assert_eq!(
            (in_flight(&requests), requests.broadcast_in_flight, requests.blocked.len()),
            (vec![2, 5, 6], 0, 0)
        );
        requests.clear();
        assert_eq!((requests.bytes(), requests.max_broadcast), (0, 250));
    }

    #[test]
    fn one_that_is_busy_hears_later_what_is_said_to_many() {
        let (mut requests, mut port) = (RequestQueue::default(), Takes(1));
        let body = Frame::from(vec![7; 100]);
        for peer in [1, 2] {
            requests.broadcast(&mut port, NodeId(peer), RequestKind::Push, &body, ());
        }
        assert_eq!(
            (requests.in_flight.len(), requests.broadcast_in_flight, requests.bytes()),
            (1, 100, 200)
        );
        port.0 = 1;
        requests.ready(&mut port, NodeId(2));
        assert_eq!(
            (requests.in_flight.len(), requests.broadcast_in_flight, requests.bytes()),
            (2, 200, 200)
        );
    }
}
