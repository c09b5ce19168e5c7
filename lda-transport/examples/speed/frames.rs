//! Frames over a transport.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};

use lda_transport::grpc::{Grpc, GrpcOptions, Peer, Tls};
use lda_transport::{Arrival, Frame, NodeId, ReceiveError, SendError, Transport, Wait};

use super::tcp::Tcp;
use super::{Result, Sender};

/// Meaning of the first byte of a frame for its receiver.
const NOTHING: u8 = 0;
const BACK: u8 = 1;

pub fn grpc_receiver(tls: Option<Tls>) -> Result<Grpc> {
    let mut options = GrpcOptions::default();
    options.tls = tls;
    let node = Grpc::start(NodeId(0), options)?;
    println!("{}", node.address().ok_or("it listens")?);
    Ok(node)
}

pub fn grpc(address: &str, tls: Option<Tls>) -> Result<Grpc> {
    let mut options = GrpcOptions::default();
    options.tls = tls;
    options.listen = None;
    options.peers.insert(NodeId(0), Peer::at(address.to_owned()));
    Ok(Grpc::start(NodeId(1), options)?)
}

/// Both sides know both addresses; nothing listens at the second.
fn addresses(of: SocketAddr) -> BTreeMap<NodeId, SocketAddr> {
    [(NodeId(0), of), (NodeId(1), of)].into()
}

pub fn tcp_receiver() -> Result<Tcp> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("{address}");
    Ok(Tcp::new(NodeId(0), listener, &addresses(address)))
}

pub fn tcp(address: &str) -> Result<Tcp> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(Tcp::new(NodeId(1), listener, &addresses(address.parse()?)))
}

/// Receiving side; ends when the sender does.
pub fn receive(node: Box<dyn Transport>) -> Result<()> {
    Ok(receive_until_closed(node)?)
}

pub fn receive_until_closed(mut node: Box<dyn Transport>) -> std::result::Result<(), ReceiveError> {
    loop {
        match node.receive(Wait::Forever)? {
            Some(Arrival::Frame { peer, frame }) if frame.first() == Some(&BACK) => {
                // One frame at a time is sent back, so there is space.
                let _ = node.send(peer, frame);
            }
            Some(Arrival::Frame { frame, .. }) => node.release(frame),
            Some(Arrival::Down { .. }) => return Ok(()),
            _ => {}
        }
    }
}

pub struct Frames {
    node: Box<dyn Transport>,
    to: NodeId,
}

impl Frames {
    /// Waits until the peer is up.
    pub fn new(mut node: Box<dyn Transport>, to: NodeId) -> Result<Self> {
        while node.receive(Wait::Forever)? != Some(Arrival::Up { peer: to }) {}
        Ok(Self { node, to })
    }

    fn send(&mut self, asks: u8, len: usize) -> Result<()> {
        let mut buffer = self.node.take_buffer();
        // Writing the content costs the same for every transport and is not measured.
        buffer.resize(len, asks);
        buffer[0] = asks;
        let mut frame = Frame::from(buffer);
        while let Err(unsent) = self.node.send(self.to, frame) {
            if unsent.error != SendError::Full {
                return Err(unsent.into());
            }
            frame = unsent.frame;
            while !matches!(self.node.receive(Wait::Forever)?, Some(Arrival::Writable { .. })) {}
        }
        Ok(())
    }

    fn await_back(&mut self) -> Result<()> {
        loop {
            match self.node.receive(Wait::Forever)? {
                Some(Arrival::Frame { frame, .. }) => {
                    self.node.release(frame);
                    return Ok(());
                }
                Some(Arrival::Down { reason, .. }) => {
                    return Err(
                        io::Error::other(format!("the receiver is gone: {reason:?}")).into()
                    );
                }
                _ => {}
            }
        }
    }
}

impl Sender for Frames {
    fn pour(&mut self, count: usize, len: usize) -> Result<()> {
        for _ in 0..count {
            self.send(NOTHING, len)?;
        }
        self.round(1)
    }

    fn round(&mut self, len: usize) -> Result<()> {
        self.send(BACK, len)?;
        self.await_back()
    }
}
