//! Example of a transport: plain TCP, without authentication or encryption. Running it runs the
//! conformance suite, which it passes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

use lda_transport::conformance::{self, Effort, Subject};
use lda_transport::{NodeId, Transport};

mod transport;

use transport::Tcp;

/// Nodes of this process, each with its own address.
#[derive(Default)]
struct Loopback(BTreeMap<NodeId, SocketAddr>);

impl Subject for Loopback {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        let bind = |id| (NodeId(id), TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let listeners: Vec<_> = (0..nodes).map(bind).collect();
        let address = |(id, at): &(NodeId, TcpListener)| (*id, at.local_addr().expect("bound"));
        self.0 = listeners.iter().map(address).collect();
        let node = |(id, listener)| Box::new(Tcp::new(id, listener, &self.0)) as Box<dyn Transport>;
        listeners.into_iter().map(node).collect()
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        let listener = TcpListener::bind(self.0[&id]).ok()?;
        Some(Box::new(Tcp::new(id, listener, &self.0)))
    }
}

fn main() -> ExitCode {
    let report = conformance::run(&mut Loopback::default(), &Effort::default());
    let written = write!(io::stdout(), "{report}");
    if report.passed() && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lda_transport::{Arrival, Frame, Wait};

    use super::*;

    const LONG: Wait = Wait::For(Duration::from_secs(30));

    #[test]
    fn the_contract_holds() {
        let effort = Effort { bytes: 16 << 20, ..Effort::default() };
        let report = conformance::run(&mut Loopback::default(), &effort);
        assert!(report.passed(), "{report}");
    }

    #[test]
    fn a_node_that_only_sends_is_reconnected() {
        let mut nodes = Loopback::default();
        let mut mesh = nodes.mesh(2);
        for node in &mut mesh {
            assert!(matches!(node.receive(LONG), Ok(Some(Arrival::Up { .. }))));
        }
        let mut sends = mesh.pop().expect("two");
        let mut rejoins = mesh.pop().expect("two");
        for number in 0..5000_u32 {
            let frame = Frame::from(number.to_le_bytes().to_vec());
            sends.send(NodeId(0), frame.clone()).expect("the queue is empty");
            let peer = NodeId(1);
            assert_eq!(rejoins.receive(LONG), Ok(Some(Arrival::Frame { peer, frame })));
        }
        drop(rejoins);
        let mut rejoins = nodes.rejoin(NodeId(0)).expect("the address is free");
        assert_eq!(rejoins.receive(LONG), Ok(Some(Arrival::Up { peer: NodeId(1) })));
    }
}
