//! Requests of a role, and what they were for.
//!
//! What is said to many is held once, and copied for those alone to whom it is on its way: at most [`MOST_TOLD`] bytes,
//! or one message. The others hear it as those have answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lda_transport::rpc::{MessageBuf, RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::Port;

/// Bytes of what the master says to many nodes that may be underway, but for one message, which may have more.
pub const MOST_TOLD: usize = 64 << 20;

/// Requests that are underway, and those that wait until their peer takes more.
#[derive(Debug)]
pub(super) struct Outbox<For> {
    waiting: BTreeMap<NodeId, VecDeque<Request<For>>>,
    underway: BTreeMap<RequestId, Underway<For>>,
    /// Of all of them, as if nothing was shared.
    bytes: usize,
    /// Of what is said to many and underway, and at most.
    told: usize,
    most_told: usize,
    /// Peers of which the first request waits for that.
    held: BTreeSet<NodeId>,
}

#[derive(Debug)]
struct Request<For> {
    kind: RequestKind,
    body: Body,
    what: For,
}

#[derive(Debug)]
enum Body {
    Own(MessageBuf),
    Shared(Frame),
}

#[derive(Debug)]
struct Underway<For> {
    what: For,
    len: usize,
    is_shared: bool,
}

impl<For> Request<For> {
    fn len(&self) -> usize {
        match &self.body {
            Body::Own(draft) => draft.body().len(),
            Body::Shared(frame) => frame.len(),
        }
    }
}

impl<For> Default for Outbox<For> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            underway: BTreeMap::new(),
            bytes: 0,
            told: 0,
            most_told: MOST_TOLD,
            held: BTreeSet::new(),
        }
    }
}

impl<For> Outbox<For> {
    /// Asks a peer.
    pub fn send(
        &mut self,
        port: &mut dyn Port,
        peer: NodeId,
        kind: RequestKind,
        body: &[u8],
        what: For,
    ) {
        self.add(port, peer, Request { kind, body: Body::Own(MessageBuf::from(body)), what });
    }

    /// Says the same to a peer as to many others.
    pub fn tell(
        &mut self,
        port: &mut dyn Port,
        peer: NodeId,
        kind: RequestKind,
        body: &Frame,
        what: For,
    ) {
        self.add(port, peer, Request { kind, body: Body::Shared(body.clone()), what });
    }

    fn add(&mut self, port: &mut dyn Port, peer: NodeId, request: Request<For>) {
        self.bytes += request.len();
        let waiting = self.waiting.entry(peer).or_default();
        waiting.push_back(request);
        if waiting.len() == 1 {
            self.ready(port, peer);
        }
    }

    /// The peer takes more.
    pub fn ready(&mut self, port: &mut dyn Port, peer: NodeId) {
        let Some(waiting) = self.waiting.get_mut(&peer) else { return };
        while let Some(request) = waiting.pop_front() {
            let len = request.len();
            let Request { kind, body, what } = request;
            let (draft, shared) = match body {
                Body::Own(draft) => (draft, None),
                Body::Shared(frame) if self.told > 0 && self.told + len > self.most_told => {
                    waiting.push_front(Request { kind, body: Body::Shared(frame), what });
                    self.held.insert(peer);
                    return;
                }
                Body::Shared(frame) => (MessageBuf::from(&frame[..]), Some(frame)),
            };
            match port.ask(peer, kind, draft) {
                Ok(request) => {
                    let is_shared = shared.is_some();
                    self.told += if is_shared { len } else { 0 };
                    self.underway.insert(request, Underway { what, len, is_shared });
                }
                Err(busy) => {
                    let body = shared.map_or(Body::Own(busy.message), Body::Shared);
                    waiting.push_front(Request { kind, body, what });
                    return;
                }
            }
        }
        self.waiting.remove(&peer);
    }

    /// Nobody wants to know any more what becomes of them, and those that wait are not sent.
    pub fn clear(&mut self) {
        let most_told = self.most_told;
        *self = Self { most_told, ..Self::default() };
    }

    /// The same, but for those of this kind, which no others hold up any more.
    pub fn clear_but(&mut self, port: &mut dyn Port, keep: impl Fn(&For) -> bool) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|request| keep(&request.what));
            !waiting.is_empty()
        });
        self.underway.retain(|_, Underway { what, .. }| keep(what));
        self.held.retain(|peer| self.waiting.contains_key(peer));
        let waiting = self.waiting.values().flatten().map(Request::len);
        self.bytes = waiting.chain(self.underway.values().map(|underway| underway.len)).sum();
        let shared = self.underway.values().filter(|underway| underway.is_shared);
        self.told = shared.map(|underway| underway.len).sum();
        self.go_on(port);
    }

    /// What waits for a peer is not sent.
    pub fn forget(&mut self, peer: NodeId) {
        self.held.remove(&peer);
        let forgotten = self.waiting.remove(&peer).into_iter().flatten();
        self.bytes -= forgotten.map(|request| request.len()).sum::<usize>();
    }

    /// A request has ended: what it was for.
    pub fn ended(&mut self, port: &mut dyn Port, request: RequestId) -> Option<For> {
        let Underway { what, len, is_shared } = self.underway.remove(&request)?;
        self.bytes -= len;
        if is_shared {
            self.told -= len;
            self.go_on(port);
        }
        Some(what)
    }

    /// Tells those that were held as much as may be underway.
    fn go_on(&mut self, port: &mut dyn Port) {
        while let Some(peer) = self.held.pop_first() {
            self.ready(port, peer);
            if self.held.contains(&peer) {
                return;
            }
        }
    }

    /// Bytes of requests that wait or are underway.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use lda_transport::rpc::{Overloaded, ReplyHandle};

    use super::*;

    /// Takes so many requests.
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
    }

    #[test]
    fn bytes_are_of_all_that_has_no_end_yet() {
        let (mut outbox, mut port) = (Outbox::default(), Takes(3));
        let peers = [1, 2].map(NodeId);
        for (len, peer) in (1..=6).zip(peers.into_iter().cycle()) {
            outbox.send(&mut port, peer, RequestKind::Push, &vec![0; len], len);
        }
        assert_eq!(outbox.bytes(), 21);
        // It was the first that was taken.
        assert_eq!(outbox.ended(&mut port, RequestId { peer: peers[0], number: 2 }), Some(1));
        assert_eq!(outbox.bytes(), 20);
        // 4 and 6 wait for the second, 5 for the first.
        outbox.forget(peers[1]);
        assert_eq!(outbox.bytes(), 10);
        outbox.clear_but(&mut port, |&len| len == 3 || len == 5);
        assert_eq!(outbox.bytes(), 8);
        outbox.clear();
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn what_is_said_to_many_is_underway_to_some_at_a_time() {
        let (mut outbox, mut port) = (Outbox { most_told: 250, ..Outbox::default() }, Takes(100));
        let underway = |outbox: &Outbox<char>| -> Vec<u32> {
            outbox.underway.keys().map(|request| request.peer.0).collect()
        };
        let body = Frame::from(vec![7; 100]);
        for peer in 1..=5 {
            outbox.tell(&mut port, NodeId(peer), RequestKind::Push, &body, 'a');
        }
        assert_eq!((underway(&outbox), outbox.bytes()), (vec![1, 2], 500));
        // What one peer alone is asked does not wait for it, but for what the peer was to hear before.
        outbox.send(&mut port, NodeId(6), RequestKind::Push, &[7; 300], 'b');
        outbox.send(&mut port, NodeId(5), RequestKind::Push, &[7; 300], 'b');
        assert_eq!(underway(&outbox), [1, 2, 6]);
        // One that takes more is not told more than may be underway.
        outbox.ready(&mut port, NodeId(4));
        assert_eq!(underway(&outbox), [1, 2, 6]);
        // Each that has answered makes room for another, but for one that is gone.
        outbox.forget(NodeId(3));
        for (peer, left) in [(2, vec![1, 4, 6]), (1, vec![4, 5, 5, 6])] {
            let request = *outbox.underway.keys().find(|request| request.peer.0 == peer).unwrap();
            assert_eq!(outbox.ended(&mut port, request), Some('a'));
            assert_eq!(underway(&outbox), left);
        }
        assert_eq!((outbox.told, outbox.bytes(), outbox.waiting.len()), (200, 800, 0));
        outbox.clear_but(&mut port, |&what| what == 'b');
        assert_eq!((outbox.told, outbox.bytes()), (0, 600));
        // One that is too long is said to one at a time.
        let long = Frame::from(vec![7; 1000]);
        for peer in [1, 2] {
            outbox.tell(&mut port, NodeId(peer), RequestKind::Push, &long, 'c');
        }
        assert_eq!(underway(&outbox), [1, 5, 6]);
        // What stays is not held up by what is cleared.
        outbox.send(&mut port, NodeId(2), RequestKind::Push, &[7], 'b');
        assert_eq!(underway(&outbox), [1, 5, 6]);
        outbox.clear_but(&mut port, |&what| what == 'b');
        assert_eq!((underway(&outbox), outbox.told, outbox.held.len()), (vec![2, 5, 6], 0, 0));
        outbox.clear();
        assert_eq!((outbox.bytes(), outbox.most_told), (0, 250));
    }

    #[test]
    fn one_that_is_busy_hears_later_what_is_said_to_many() {
        let (mut outbox, mut port) = (Outbox::default(), Takes(1));
        let body = Frame::from(vec![7; 100]);
        for peer in [1, 2] {
            outbox.tell(&mut port, NodeId(peer), RequestKind::Push, &body, ());
        }
        assert_eq!((outbox.underway.len(), outbox.told, outbox.bytes()), (1, 100, 200));
        port.0 = 1;
        outbox.ready(&mut port, NodeId(2));
        assert_eq!((outbox.underway.len(), outbox.told, outbox.bytes()), (2, 200, 200));
    }
}
