//! Node numbers and addresses, from the launcher that started the nodes.
//!
//! | launcher | source of [`Membership`] | addresses |
//! |---|---|---|
//! | a person or a script, as on Spark | [`mod@file`]: a list of nodes, and the number of this one | those of the list |
//! | `mpirun` of Open MPI | [`open_mpi`]: `OMPI_COMM_WORLD_RANK`, `_SIZE` | none: the MPI transport has its own |
//! | `srun` of Slurm | [`slurm`]: `SLURM_PROCID`, `SLURM_STEP_NODELIST` and others | hosts of the list, one port per task |
//! | an indexed Job of Kubernetes | [`kubernetes`]: `JOB_COMPLETION_INDEX`, `HOSTNAME` | names of the headless service |
//! | a StatefulSet of Kubernetes | [`kubernetes`]: `HOSTNAME` | names of the headless service |
//! | the program itself | a [`Membership`] that it creates | as it chooses |
//!
//! No function here waits or opens a connection. The environment is a parameter, so that a program
//! can take it from elsewhere and tests need not change that of the process, which is [`system`].
//!
//! ```
//! use lda_transport::bootstrap::{self, slurm};
//!
//! let environment = |name: &str| {
//!     Some(match name {
//!         "SLURM_PROCID" => "2",
//!         "SLURM_NTASKS" => "3",
//!         "SLURM_STEP_NODELIST" => "n[07-08]",
//!         "SLURM_STEP_TASKS_PER_NODE" => "2,1",
//!         _ => return None,
//!     })
//!     .map(str::to_owned)
//! };
//! let membership = slurm::membership(&environment, 7000)?;
//! let addresses: Vec<&str> = membership.nodes.iter().filter_map(|node| node.address.as_deref()).collect();
//! assert_eq!((membership.this.0, addresses), (2, vec!["n07:7000", "n07:7001", "n08:7000"]));
//! # Ok::<(), bootstrap::BootstrapError>(())
//! ```

pub mod file;
pub mod kubernetes;
pub mod open_mpi;
pub mod slurm;

use std::path::PathBuf;

use thiserror::Error;

use crate::transport::NodeId;

/// Environment variables, as a function from name to value.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Environment of this process. A variable that is not UTF-8 counts as unset.
pub fn system(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Number of this node, and the list of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Number of this node.
    pub this: NodeId,
    /// All nodes, including this one.
    pub nodes: Vec<Member>,
    /// Name of the run, equal at all nodes: number or name of the launcher's job, if there is one.
    pub job: Option<String>,
}

impl Membership {
    /// Returns the entry of this node.
    pub fn this_member(&self) -> Option<&Member> {
        self.nodes.iter().find(|node| node.id == self.this)
    }

    /// Returns the numbers of all nodes, for a [`Group`](crate::rpc::Group).
    pub fn ids(&self) -> Vec<NodeId> {
        self.nodes.iter().map(|node| node.id).collect()
    }
}

/// Number, address and role of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number of the node.
    pub id: NodeId,
    /// Address as `host:port`. `None` if the transport finds it by itself.
    pub address: Option<String>,
    /// Role in the run, if the list has one.
    pub role: Option<String>,
}

/// Error in the description of the nodes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// An environment variable is not set.
    #[error("{name} is not set: {remedy}")]
    Unset {
        /// Name of the variable.
        name: &'static str,
        /// How to start the program so that it is set.
        remedy: &'static str,
    },
    /// An environment variable has an invalid value.
    #[error("{name} is {value:?}: {reason}")]
    Value {
        /// Name of the variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The problem with the value.
        reason: String,
    },
    /// The list of nodes cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// Path of the list.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// A line of the list is invalid.
    #[error("{path}:{line}: {reason}", path = path.display())]
    Line {
        /// Path of the list.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The problem with the line.
        reason: String,
    },
    /// This node is not in the list.
    #[error("{path}: {node} is not in the list of {count} nodes", path = path.display())]
    Absent {
        /// Path of the list.
        path: PathBuf,
        /// Number of this node.
        node: NodeId,
        /// Number of nodes in the list.
        count: usize,
    },
    /// Slurm has not distributed the tasks in blocks.
    #[error(
        "by the list of hosts task {task} should be number {local} on host {host}, and it is not: start \
         the tasks with --distribution=block"
    )]
    Distribution {
        /// Number of this task.
        task: u32,
        /// Host where a distribution in blocks has this task.
        host: String,
        /// Its number among the tasks of that host.
        local: usize,
    },
}

/// Maximum number of nodes, so that a short text such as `n[0-99999999]` cannot expand to a list
/// that fills the memory.
const MAX_NODES: usize = 1 << 20;

fn required(
    environment: Environment<'_>,
    name: &'static str,
    remedy: &'static str,
) -> Result<String, BootstrapError> {
    environment(name).ok_or(BootstrapError::Unset { name, remedy })
}

/// Parses the value of a variable as a number.
fn number(name: &'static str, value: &str) -> Result<u32, BootstrapError> {
    value.trim().parse().map_err(|_| BootstrapError::Value {
        name,
        value: value.to_owned(),
        reason: "a number is expected".to_owned(),
    })
}

/// Reads the number of this node and the number of nodes.
fn rank_and_size(
    environment: Environment<'_>,
    [rank, size]: [&'static str; 2],
    remedy: &'static str,
) -> Result<(u32, u32), BootstrapError> {
    let this = number(rank, &required(environment, rank, remedy)?)?;
    let text = required(environment, size, remedy)?;
    let count = number(size, &text)?;
    if count as usize > MAX_NODES || this >= count {
        let reason = format!("{rank} is {this}, and at most {MAX_NODES} nodes are supported");
        return Err(BootstrapError::Value { name: size, value: text, reason });
    }
    Ok((this, count))
}

#[cfg(test)]
mod tests {
    use super::Environment;

    /// Runs a test with these variables as the environment.
    pub(super) fn with<T>(pairs: &[(&str, &str)], test: impl FnOnce(Environment<'_>) -> T) -> T {
        test(&|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }
}
