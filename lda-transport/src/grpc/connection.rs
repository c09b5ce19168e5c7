//! A connection from its hello to its end, the same on both sides.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

use super::error::Trouble;
use super::io::{End, Party};
use super::node::{Item, Link, Node, Phase};
use super::wire::Hello;
use crate::inbox::Slot;
use crate::transport::{Loss, NodeId};

/// How long the rest of a connection may take to go, when a part of it has.
const MOMENT: Duration = Duration::from_millis(20);

/// What goes out, as tonic asks for it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub link: Arc<Link>,
    pub inbox: Slot<Item>,
}

impl Stream for Outgoing {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let taken = ready!(self.link.outbox.poll(cx));
        Poll::Ready(taken.map(|taken| {
            if taken.room {
                // A node that has closed has nobody to tell.
                let _ = self.inbox.put(Item::Room(Arc::clone(&self.link)));
            }
            taken.frame
        }))
    }
}

/// That a peer is up. Its end is heard however it comes, even by a panic: tonic has some for peers that break
/// its rules.
#[derive(Debug)]
struct Presence<'a> {
    node: &'a Node,
    link: &'a Arc<Link>,
    loss: Loss,
    /// There until the end.
    turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.link.outbox.cut();
        let (node, peer, loss) = (self.node.id.0, self.link.peer.0, self.loss.clone());
        tracing::info!(node, peer, ?loss, "down");
        if let Some(turn) = self.turn.take() {
            let _ = self.node.inbox.put(Item::Down(Arc::clone(self.link), loss, turn));
        }
    }
}

/// Why a connection stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The peer has a later one.
    Replaced,
    /// This node closes.
    Closing,
}

impl Node {
    /// Whether what a peer says of itself is what this node can live with. `dialed` is who was looked for, by
    /// the side that looked.
    pub fn check(&self, hello: &Hello, dialed: Option<NodeId>) -> Result<(), Trouble> {
        let (here, peer) = (self.id, hello.from);
        let uninvited = |why| Err(Trouble::Uninvited { here, peer, why });
        if hello.to != here {
            return Err(Trouble::WrongNode { expected: hello.to, found: here });
        }
        match dialed {
            Some(expected) if expected != peer => {
                return Err(Trouble::WrongNode { expected, found: peer });
            }
            None if peer == here => return uninvited("it has the same number"),
            None if peer < here => return uninvited("of two, the one with the larger number does"),
            None if self.options.known_only && !self.options.peers.contains_key(&peer) => {
                return uninvited("it is not among the peers");
            }
            _ => {}
        }
        let ours = self.options.longest_frame as u64;
        if hello.longest_frame != ours {
            return Err(Trouble::LongestFrame { ours, theirs: hello.longest_frame });
        }
        Ok(())
    }

    /// Keeps a peer up until its end, from when the program has heard of the end of the one before.
    pub async fn attend(&self, link: &Arc<Link>, party: &Party, mut frames: Streaming<Bytes>) {
        let mut stop = pin!(self.stop(link));
        let turn = tokio::select! {
            biased;
            _ = &mut stop => None,
            turn = Arc::clone(&link.seat.turn).acquire_owned() => {
                Some(turn.expect("nobody closes it"))
            }
        };
        let Some(turn) = turn else {
            link.outbox.cut();
            return;
        };
        self.note(link.peer, None);
        tracing::info!(node = self.id.0, peer = link.peer.0, address = %party.address, "up");
        // A node that has closed has nobody to tell.
        let _ = self.inbox.put(Item::Up(Arc::clone(link)));
        let loss = Loss::Broken("what it said made the connection panic".to_owned());
        let mut presence = Presence { node: self, link, loss, turn: Some(turn) };
        presence.loss = self.read(link, party, stop, &mut frames).await;
    }

    /// Until a connection has to stop.
    async fn stop(&self, link: &Link) -> Stop {
        let mut phase = self.phase.clone();
        tokio::select! {
            () = link.replaced() => Stop::Replaced,
            () = reaches(&mut phase, Phase::Closing) => Stop::Closing,
        }
    }

    /// Puts frames into the inbox, as far as there is room, until there are no more.
    async fn read(
        &self,
        link: &Arc<Link>,
        party: &Party,
        mut stop: Pin<&mut impl Future<Output = Stop>>,
        frames: &mut Streaming<Bytes>,
    ) -> Loss {
        let stop = loop {
            let message = tokio::select! {
                biased;
                stop = &mut stop => break stop,
                message = frames.message() => message,
            };
            let frame = match message {
                Ok(Some(frame)) => frame,
                Ok(None) => return end(party, self.options.ping).await,
                Err(status) => return loss(party, &status),
            };
            tokio::select! {
                biased;
                stop = &mut stop => break stop,
                () = link.seat.take_room(frame.len()) => {}
            }
            let _ = self.inbox.put(Item::Frame(Arc::clone(link), frame.into()));
        };
        if stop == Stop::Replaced {
            return Loss::Broken("the peer has connected anew".to_owned());
        }
        let mut phase = self.phase.clone();
        // What comes now nobody takes; the end is that the peer has taken what it was sent.
        link.outbox.finish();
        loop {
            tokio::select! {
                message = frames.message() => match message {
                    Ok(Some(_)) => {}
                    Ok(None) => return end(party, self.options.ping).await,
                    Err(status) => return loss(party, &status),
                },
                () = reaches(&mut phase, Phase::Leaving) => return Loss::Closed,
            }
        }
    }
}

/// Until a node is so near its end.
pub(super) async fn reaches(phase: &mut tokio::sync::watch::Receiver<Phase>, least: Phase) {
    // A node that is gone is at its end.
    let _ = phase.wait_for(|&phase| phase >= least).await;
}

/// Why a stream has come to its end, as it seems. To tonic's server a call that the other has broken off is
/// the same as a connection that hyper has given up, because nothing answers; then nothing was read for long,
/// and the stream of bytes is gone, or about to be.
async fn end(party: &Party, ping: Duration) -> Loss {
    let silent = party.silence() >= ping;
    let gone = silent && tokio::time::timeout(MOMENT, party.left()).await.is_ok();
    match party.end() {
        Some(End::Failed(trouble)) => Loss::Broken(trouble.to_string()),
        None if gone => Loss::Broken("it does not answer".to_owned()),
        Some(End::Over) | None => Loss::Closed,
    }
}

/// Why nothing more can be read.
fn loss(party: &Party, status: &Status) -> Loss {
    match party.end() {
        Some(End::Over) => Loss::Closed,
        Some(End::Failed(trouble)) => Loss::Broken(trouble.to_string()),
        None if status.code() == Code::Cancelled => Loss::Closed,
        None => Loss::Broken(words(status)),
    }
}

/// What a status says, for a person.
pub(super) fn words(status: &Status) -> String {
    match status.message() {
        "" => status.code().to_string(),
        message => message.to_owned(),
    }
}
