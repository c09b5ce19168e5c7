//! Role and number of a node.

use clap::ValueEnum;
use lda_dist::cluster::{MASTER, NodeRole, Setup};
use lda_transport::NodeId;
use thiserror::Error;

/// Role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Starts the rounds and writes the model
    Master,
    /// Holds topic counts of words
    Server,
    /// Holds documents and samples topics
    Worker,
}

impl RoleName {
    /// Name of the role, as in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Server => "server",
            Self::Worker => "worker",
        }
    }
}

/// A number of nodes in words: "1 server", "2 servers".
pub fn counted(number: u32, role: RoleName) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {}{plural}", role.name())
}

/// The run has no such node.
#[derive(Debug, Error)]
#[error("there is no {role} {index}: there are {count}, from 0")]
pub struct UnknownNode {
    role: &'static str,
    index: u32,
    count: u32,
}

/// Role and number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeName {
    /// Role.
    pub role: RoleName,
    /// Number among the nodes of its role, from 0.
    pub index: u32,
}

impl NodeName {
    /// Role and number of the node with this id.
    pub fn of(setup: &Setup, id: NodeId) -> Self {
        let (role, index) = match setup.role_of(id) {
            NodeRole::Master => (RoleName::Master, 0),
            NodeRole::Server(index) => (RoleName::Server, index),
            NodeRole::Worker(index) => (RoleName::Worker, index),
        };
        Self { role, index }
    }

    /// Id of the node.
    ///
    /// # Errors
    /// [`UnknownNode`].
    pub fn id(self, setup: &Setup) -> Result<NodeId, UnknownNode> {
        let Self { role, index } = self;
        let (count, id) = match role {
            RoleName::Master => (1, MASTER),
            RoleName::Server => (setup.options.servers, setup.server(index)),
            RoleName::Worker => (setup.workers, setup.worker(index)),
        };
        if index < count { Ok(id) } else { Err(UnknownNode { role: role.name(), index, count }) }
    }

    /// Replaces `{role}` and `{index}` in a pattern.
    pub fn fill(self, pattern: &str) -> String {
        pattern.replace("{role}", self.role.name()).replace("{index}", &self.index.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::training::{Extent, Training};

    #[test]
    fn nodes_are_counted() {
        assert_eq!(counted(1, RoleName::Server), "1 server");
        assert_eq!(counted(0, RoleName::Worker), "0 workers");
    }

    #[test]
    fn a_node_has_a_number() {
        let extent = Extent { documents: 10, words: 10, mean_length: 9.9, fingerprint: 1 };
        let training = Training { workers: 2, servers: 3, ..Training::default() };
        let setup = training.setup(None, extent, None).unwrap();
        for id in (0..6).map(NodeId) {
            assert_eq!(NodeName::of(&setup, id).id(&setup).unwrap(), id);
        }
        let error = NodeName { role: RoleName::Worker, index: 2 }.id(&setup).unwrap_err();
        assert_eq!(error.to_string(), "there is no worker 2: there are 2, from 0");
    }
}
