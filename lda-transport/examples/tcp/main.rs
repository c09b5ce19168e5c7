//! A transport over plain TCP, in under 200 lines of code, as an example of how one is written: nobody is
//! asked who he is, and nothing is encrypted. Run it, and it passes the suite.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

use lda_transport::conformance::{self, Effort, Subject};
use lda_transport::{NodeId, Transport};

mod transport;

use transport::Tcp;

/// Nodes of this process, each with an address of its own.
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
    let said = write!(io::stdout(), "{report}");
    if report.passed() && said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_holds() {
        let effort = Effort { bytes: 16 << 20, ..Effort::default() };
        let report = conformance::run(&mut Loopback::default(), &effort);
        assert!(report.passed(), "{report}");
    }
}
