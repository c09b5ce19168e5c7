//! The file of `--nodes`: addresses of nodes, for launchers that know them only after the start.
//!
//! ```text
//! # node  address          role, as the master is node 0, servers come next and then workers
//! 0       10.0.0.7:41233   master
//! 1       10.0.0.7:35571   server
//! 2       10.0.0.9:40089   worker
//! ```

use std::path::{Path, PathBuf};

use lda_dist::cluster::Setup;
use lda_transport::NodeId;
use lda_transport::bootstrap::{BootstrapError, Member, file};
use thiserror::Error;

use crate::commands::cluster::config::{Addresses, Grpc};
use crate::commands::cluster::role::{NodeName, RoleName};

/// Errors of a list of nodes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodesError {
    /// The list cannot be read.
    #[error(transparent)]
    List(#[from] BootstrapError),
    /// The list does not have every node of the run exactly once.
    #[error(
        "{path}: {found} nodes, with numbers up to {last}, for a master, {servers} servers and {workers} workers: \
         list each once, from 0",
        path = path.display()
    )]
    Count {
        /// The list.
        path: PathBuf,
        /// Number of nodes in the list.
        found: usize,
        /// Largest node number in the list.
        last: u32,
        /// Number of servers of the run.
        servers: u32,
        /// Number of workers of the run.
        workers: u32,
    },
    /// A node is listed with another role.
    #[error(
        "{path}: {id} is listed as {found:?} but is {role} {index}: list the master, then the servers, \
         then the workers",
        path = path.display()
    )]
    Role {
        /// The list.
        path: PathBuf,
        /// Id of the node.
        id: NodeId,
        /// Role in the list.
        found: String,
        /// Role of the node in the run.
        role: &'static str,
        /// Its number in that role.
        index: u32,
    },
}

/// Reads a list and replaces the addresses of the configuration with it.
///
/// # Errors
/// [`NodesError`].
pub fn locate(
    path: &Path,
    this: NodeId,
    setup: &Setup,
    mut grpc: Grpc,
) -> Result<Grpc, NodesError> {
    let mut nodes = file::read(path, this)?.nodes;
    nodes.sort_unstable_by_key(|node| node.id);
    let (servers, workers) = (setup.options.servers, setup.workers);
    let (found, last) = (nodes.len(), nodes.last().map_or(0, |node| node.id.0));
    // No node is listed twice, so these two conditions imply that every node is listed.
    if found as u64 != 1 + u64::from(servers) + u64::from(workers) || last as usize != found - 1 {
        let path = path.to_owned();
        return Err(NodesError::Count { path, found, last, servers, workers });
    }
    let [mut of_servers, mut of_workers] = [Vec::new(), Vec::new()];
    for Member { id, address, role } in nodes {
        let node = NodeName::of(setup, id);
        if let Some(found) = role.filter(|role| role != node.role.name()) {
            let (role, index, path) = (node.role.name(), node.index, path.to_owned());
            return Err(NodesError::Role { path, id, found, role, index });
        }
        let address = address.unwrap_or_default();
        match node.role {
            RoleName::Master => grpc.master = address,
            RoleName::Server => of_servers.push(address),
            RoleName::Worker => of_workers.push(address),
        }
    }
    grpc.servers = Addresses::Each(of_servers);
    grpc.workers = Addresses::Each(of_workers);
    Ok(grpc)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::commands::cluster::training::{Extent, Training};

    fn locate(list: &str, this: u32) -> Result<Grpc, NodesError> {
        let extent = Extent { documents: 10, words: 10, mean_length: 9.9, fingerprint: 1 };
        let training = Training { workers: 2, ..Training::default() };
        let setup = training.setup(None, extent, None).unwrap();
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lda-nodes-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, list).unwrap();
        let of_configuration = Grpc { master: "old:1".to_owned(), ..Grpc::default() };
        let located = super::locate(&path, NodeId(this), &setup, of_configuration);
        fs::remove_file(&path).unwrap();
        located
    }

    #[test]
    fn a_list_in_any_order_has_the_addresses() {
        let grpc = locate("3 d:4\n0 a:1 master\n1 b:2 server\n2 c:3 worker\n", 3).unwrap();
        let at = |role, index| grpc.address(NodeName { role, index });
        assert_eq!(at(RoleName::Master, 0), "a:1");
        assert_eq!(at(RoleName::Server, 0), "b:2");
        assert_eq!(at(RoleName::Worker, 0), "c:3");
        assert_eq!(at(RoleName::Worker, 1), "d:4");
    }

    #[test]
    fn a_list_of_other_nodes_is_refused() {
        let said = |list, this| locate(list, this).unwrap_err().to_string();
        let few = said("0 a:1\n1 b:2\n2 c:3\n", 0);
        assert!(few.ends_with(
            "3 nodes, with numbers up to 2, for a master, 1 servers and 2 workers: list each once, from 0"
        ));
        assert!(said("0 a:1\n1 b:2\n2 c:3\n4 d:4\n", 0).contains("4 nodes, with numbers up to 4"));
        let other = said("0 a:1\n1 b:2 worker\n2 c:3\n3 d:4", 0);
        assert!(other.contains("node 1 is listed as \"worker\" but is server 0"), "{other}");
        assert!(said("0 a:1\n1 b:2\n2 c:3\n", 3).contains("node 3 is not in the list"));
        assert!(said("0 a\n", 0).contains(":1: \"a\" is not an address"));
    }
}
