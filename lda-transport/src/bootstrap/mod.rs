//! Who the nodes are and where, as those say who started them.
//!
//! | started by | [`Started`] from | addresses |
//! |---|---|---|
//! | a person, or a script, as on Spark | [`mod@file`]: a list of nodes, and which of them this is | those of the list |
//! | `mpirun` of Open MPI | [`open_mpi`]: `OMPI_COMM_WORLD_RANK`, `_SIZE` | none: the transport knows them |
//! | `srun` of Slurm | [`slurm`]: `SLURM_PROCID`, `SLURM_STEP_NODELIST` and others | hosts of the list, a port a task |
//! | an indexed Job of Kubernetes | [`kubernetes`]: `JOB_COMPLETION_INDEX`, `HOSTNAME` | names of the headless service |
//! | a StatefulSet of Kubernetes | [`kubernetes`]: `HOSTNAME` | the same |
//! | the program itself | a [`Started`] of its own | its own |
//!
//! None of these waits or opens a connection. The environment is a function, so that a program can look
//! elsewhere, and tests need not change that of the process; [`system`] is the one of the process.
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
//! let started = slurm::started(&environment, 7000)?;
//! let addresses: Vec<&str> = started.nodes.iter().filter_map(|node| node.address.as_deref()).collect();
//! assert_eq!((started.this.0, addresses), (2, vec!["n07:7000", "n07:7001", "n08:7000"]));
//! # Ok::<(), bootstrap::Error>(())
//! ```

pub mod file;
pub mod kubernetes;
pub mod open_mpi;
pub mod slurm;

use std::path::PathBuf;

use thiserror::Error;

use crate::transport::NodeId;

/// Names to values, as those of a process.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// That of this process. A value that is no text is none.
pub fn system(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What a node is told when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which one it is.
    pub this: NodeId,
    /// All of them, this one too.
    pub nodes: Vec<Placed>,
    /// What names this run, the same for all its nodes: where there is a job, its number or name.
    pub job: Option<String>,
}

impl Started {
    /// Where this node is.
    pub fn place(&self) -> Option<&Placed> {
        self.nodes.iter().find(|node| node.id == self.this)
    }

    /// The numbers of all of them, for a [`Group`](crate::endpoint::Group).
    pub fn ids(&self) -> Vec<NodeId> {
        self.nodes.iter().map(|node| node.id).collect()
    }
}

/// A node and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which.
    pub id: NodeId,
    /// Host and port, where the transport does not find it by itself.
    pub address: Option<String>,
    /// What it is to be, where that was said.
    pub role: Option<String>,
}

/// What cannot be made out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable that is not there.
    #[error("{name} is not set: {remedy}")]
    Unset {
        /// Which.
        name: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A variable that says something else than it should.
    #[error("{name} is {value:?}: {why}")]
    Value {
        /// Which.
        name: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// A list of nodes that cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// Of the list.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// A line of it that is none.
    #[error("{path}:{line}: {why}", path = path.display())]
    Line {
        /// Of the list.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A node that is not in the list.
    #[error("{path}: {node} is not in it; it has {count} nodes", path = path.display())]
    Absent {
        /// Of the list.
        path: PathBuf,
        /// Who.
        node: NodeId,
        /// How many are.
        count: usize,
    },
    /// Tasks that do not lie one after the other.
    #[error(
        "task {task} should be number {local} of host {host} by the list of hosts, and is not: start the \
         tasks with --distribution=block"
    )]
    Distribution {
        /// This one.
        task: u32,
        /// Its host, as it should be.
        host: String,
        /// Its place there.
        local: usize,
    },
}

/// Nodes that can be told apart, at most: so that a list of some bytes does not become one that fills the memory.
const MOST: usize = 1 << 20;

fn required(
    environment: Environment<'_>,
    name: &'static str,
    remedy: &'static str,
) -> Result<String, Error> {
    environment(name).ok_or(Error::Unset { name, remedy })
}

/// The number that a variable is.
fn number(name: &'static str, value: &str) -> Result<u32, Error> {
    value.trim().parse().map_err(|_| Error::Value {
        name,
        value: value.to_owned(),
        why: "a number is expected".to_owned(),
    })
}

/// A number of nodes, and which of them this is.
fn rank_and_size(
    environment: Environment<'_>,
    [rank, size]: [&'static str; 2],
    remedy: &'static str,
) -> Result<(u32, u32), Error> {
    let this = number(rank, &required(environment, rank, remedy)?)?;
    let text = required(environment, size, remedy)?;
    let count = number(size, &text)?;
    if count as usize > MOST || this >= count {
        let why = format!("{rank} is {this}; at most {MOST} nodes are taken");
        return Err(Error::Value { name: size, value: text, why });
    }
    Ok((this, count))
}

#[cfg(test)]
mod tests {
    use super::Environment;

    /// An environment of these, for as long as it is used.
    pub(super) fn with<T>(pairs: &[(&str, &str)], test: impl FnOnce(Environment<'_>) -> T) -> T {
        test(&|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }
}
