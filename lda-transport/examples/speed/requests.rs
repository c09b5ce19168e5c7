//! Pushes of nodes, each done at most once.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use lda_transport::node::{Asked, Node, Pending, Silent};
use lda_transport::rpc::{Config, Identity, Outcome};
use lda_transport::{NodeId, Transport};

use super::{Result, Sender};

/// Requests that are open at once, and their bytes: as much as a queue of [`lda_transport::grpc`] holds.
const OPEN: usize = 256;
const OPEN_BYTES: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn config() -> Config {
    Config::new(Identity { incarnation: 1, role: 0, run: 1, configuration: 1 })
}

pub fn receive(transport: Box<dyn Transport>) -> Result<()> {
    let service = |asked: Asked| {
        let answer = asked.message();
        asked.reply(answer);
    };
    let _node = Node::start(transport, config(), service)?;
    // Until it is ended.
    loop {
        thread::park();
    }
}

pub struct Pushes {
    node: Node,
    open: VecDeque<Pending<Outcome>>,
}

impl Pushes {
    pub fn new(transport: Box<dyn Transport>) -> Result<Self> {
        let node = Node::start(transport, config(), Silent)?;
        node.wait_for(&[NodeId(0)], PATIENCE)?;
        Ok(Self { node, open: VecDeque::new() })
    }

    fn push(&mut self, len: usize) {
        let mut message = self.node.message();
        message.resize(len, 1);
        self.open.push_back(self.node.push(NodeId(0), message, PATIENCE));
    }

    fn end_one(&mut self) -> Result<()> {
        match self.open.pop_front().map(Pending::wait) {
            None | Some(Outcome::Done(_)) => Ok(()),
            Some(other) => Err(format!("a push ended as {other:?}").into()),
        }
    }
}

impl Sender for Pushes {
    fn pour(&mut self, count: usize, len: usize) -> Result<()> {
        for _ in 0..count {
            if self.open.len() >= OPEN.min(OPEN_BYTES / len) {
                self.end_one()?;
            }
            self.push(len);
        }
        while !self.open.is_empty() {
            self.end_one()?;
        }
        Ok(())
    }

    fn round(&mut self, len: usize) -> Result<()> {
        self.push(len);
        self.end_one()
    }
}
