//! Configuration file of a run, the same for all its nodes.
//!
//! ```toml
//! documents = "nips"            # from `lda cluster cut`: a directory, or s3://bucket/nips
//! run = "nips-2"                # nodes of other runs are rejected
//! patience = 60.0               # seconds to wait for the restart of a node
//!
//! [training]                    # options of `lda cluster local`
//! topics = 1000
//! workers = 2
//! servers = 1
//! save = "nips.lda"             # written by the master
//!
//! [snapshots]                   # checkpoints, from which a run restarts after a failure
//! directory = "nips-2"          # shared by master and workers, or an object store
//! every = 10                    # epochs
//!
//! [locality]                    # place shards on workers that hold them; default: consecutive shards
//! workers = ["node-7", ""]      # machine of each worker, as in `hosts` next to the documents; "" unknown
//!
//! [grpc]                        # without it, and without --nodes: MPI
//! master = "10.0.0.1:7000"
//! servers = ["10.0.0.2:7000"]
//! workers = "lda-worker-{index}.lda:7000"
//!
//! [grpc.tls]                    # without it, the traffic is not encrypted
//! authority = "ca.pem"
//! certificate = "{role}-{index}.pem"
//! key = "{role}-{index}.key"
//! ```
//!
//! Relative paths start at the directory of the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lda_dist::cluster::{MASTER, Setup};
use lda_transport::NodeId;
use serde::Deserialize;
use thiserror::Error;

use crate::commands::cluster::args::RoleName;
use crate::commands::cluster::place::Place;
use crate::commands::cluster::training::Training;

/// Maximum size of the file in bytes; addresses of a million nodes are smaller.
const LONGEST: u64 = 64 << 20;

/// Errors of a configuration file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        error: std::io::Error,
    },
    /// The file is not a valid configuration.
    #[error("{path}: {error}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        #[source]
        error: Box<toml::de::Error>,
    },
    /// `patience` is not a duration.
    #[error("{path}: patience is {found}: give seconds, 0 or more", path = path.display())]
    Patience {
        /// The file.
        path: PathBuf,
        /// The value.
        found: f64,
    },
    /// The number of addresses differs from the number of nodes.
    #[error("[grpc] has {found} addresses of {role}s, but `{role}s = {expected}`: give {expected}")]
    Addresses {
        /// Role of the nodes.
        role: &'static str,
        /// Number of addresses.
        found: usize,
        /// Number of nodes.
        expected: u32,
    },
    /// The number of machines differs from the number of workers.
    #[error(
        "[locality] has machines of {found} workers, but `workers = {expected}`: give one per worker, \
         \"\" if unknown"
    )]
    Machines {
        /// Number of machines.
        found: usize,
        /// Number of workers.
        expected: u32,
    },
    /// The master has no address.
    #[error("[grpc] has no address of the master: give `master`, or a list by --nodes")]
    Master,
    /// No such node.
    #[error("there is no {role} {index}: there are {count}, from 0")]
    UnknownWorker {
        /// Role of the node.
        role: &'static str,
        /// Index of the node.
        index: u32,
        /// How many there are.
        count: u32,
    },
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Output of `lda cluster cut`.
    pub documents: Place,
    /// Name of the run; nodes of other runs are rejected.
    #[serde(default)]
    pub run: String,
    /// Seconds to wait for the restart of a node.
    #[serde(default)]
    pub patience: f64,
    /// Model and division of the work.
    #[serde(default)]
    pub training: Training,
    /// Checkpoints; `None` for none.
    pub snapshots: Option<Snapshots>,
    /// Machines of the workers, to place shards near them.
    pub locality: Option<Locality>,
    /// gRPC; without it the transport is MPI.
    pub grpc: Option<Grpc>,
}

/// Checkpoints of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snapshots {
    /// Directory or object store.
    pub directory: Place,
    /// Epochs between checkpoints.
    #[serde(default = "ten")]
    pub every: u32,
}

fn ten() -> u32 {
    10
}

/// Machines of the workers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Locality {
    /// Machine of each worker; empty if unknown.
    pub workers: Vec<String>,
}

impl Locality {
    /// Machine of each worker; `None` if unknown.
    ///
    /// # Errors
    /// [`ConfigError::Machines`].
    pub fn machines(&self, workers: u32) -> Result<Vec<Option<String>>, ConfigError> {
        let found = self.workers.len();
        if found != workers as usize {
            return Err(ConfigError::Machines { found, expected: workers });
        }
        Ok(self.workers.iter().map(|host| Some(host.clone()).filter(|it| !it.is_empty())).collect())
    }
}

/// Addresses and certificates of gRPC; a [list of nodes](crate::commands::cluster::nodes) may replace the
/// addresses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grpc {
    /// Address of the master.
    pub master: String,
    /// Addresses of the servers.
    pub servers: Addresses,
    /// Addresses of the workers.
    pub workers: Addresses,
    /// Certificates; without them the traffic is not encrypted.
    pub tls: Option<Tls>,
}

/// Addresses of nodes: one each, or a pattern in which `{index}` stands for the number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Addresses {
    /// A pattern for all.
    Pattern(String),
    /// One per node.
    Each(Vec<String>),
}

impl Default for Addresses {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

/// PEM files; `{role}` and `{index}` stand for role and number of the node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// Certificate of the authority that signed all certificates.
    pub authority: String,
    /// Certificate of the node, with intermediate certificates.
    pub certificate: String,
    /// Private key of the node.
    pub key: String,
}

/// Role and number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// Role.
    pub role: RoleName,
    /// Number among the nodes of its role, from 0.
    pub index: u32,
}

impl Which {
    /// Role and number of the node with this id.
    pub fn of(setup: &Setup, id: NodeId) -> Self {
        let servers = setup.options.servers;
        match id.0 {
            0 => Self { role: RoleName::Master, index: 0 },
            id if id <= servers => Self { role: RoleName::Server, index: id - 1 },
            id => Self { role: RoleName::Worker, index: id - 1 - servers },
        }
    }

    /// Id of the node.
    ///
    /// # Errors
    /// [`ConfigError::UnknownWorker`].
    pub fn id(self, setup: &Setup) -> Result<NodeId, ConfigError> {
        let Self { role, index } = self;
        let (count, id) = match role {
            RoleName::Master => (1, MASTER),
            RoleName::Server => (setup.options.servers, setup.server(index)),
            RoleName::Worker => (setup.workers, setup.worker(index)),
        };
        if index < count {
            Ok(id)
        } else {
            Err(ConfigError::UnknownWorker { role: role.name(), index, count })
        }
    }

    /// Replaces `{role}` and `{index}` in a pattern.
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "only gRPC asks"))]
    pub fn fill(self, pattern: &str) -> String {
        pattern.replace("{role}", self.role.name()).replace("{index}", &self.index.to_string())
    }
}

impl Config {
    /// Reads a configuration; relative paths start at the directory of the file.
    ///
    /// # Errors
    /// [`ConfigError`], with the file and the line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let read = || {
            if fs::metadata(path)?.len() > LONGEST {
                return Err(std::io::Error::other(format!("more than {LONGEST} bytes")));
            }
            fs::read_to_string(path)
        };
        let text = read().map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
        let mut config: Self = toml::from_str(&text)
            .map_err(|error| ConfigError::Parse { path: path.to_owned(), error: error.into() })?;
        if Duration::try_from_secs_f64(config.patience).is_err() {
            return Err(ConfigError::Patience { path: path.to_owned(), found: config.patience });
        }
        let base = path.parent().unwrap_or(Path::new(""));
        config.snapshots = config.snapshots.map(|Snapshots { directory, every }| Snapshots {
            directory: directory.within(base),
            every,
        });
        config.documents = config.documents.within(base);
        config.training.save = config.training.save.map(|save| base.join(save));
        config.training.log = config.training.log.map(|log| base.join(log));
        if let Some(Grpc { tls: Some(tls), .. }) = &mut config.grpc {
            for file in [&mut tls.authority, &mut tls.certificate, &mut tls.key] {
                *file = base.join(&*file).to_string_lossy().into_owned();
            }
        }
        Ok(config)
    }
}

impl Grpc {
    /// Checks that every node has an address.
    ///
    /// # Errors
    /// [`ConfigError::Master`] and [`ConfigError::Addresses`].
    pub fn check(&self, training: &Training) -> Result<(), ConfigError> {
        if self.master.is_empty() {
            return Err(ConfigError::Master);
        }
        for (role, addresses, expected) in [
            ("server", &self.servers, training.servers),
            ("worker", &self.workers, training.workers),
        ] {
            if let Addresses::Each(each) = addresses
                && each.len() != expected as usize
            {
                return Err(ConfigError::Addresses { role, found: each.len(), expected });
            }
        }
        Ok(())
    }

    /// Address of a node.
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "only gRPC asks"))]
    pub fn address(&self, which: Which) -> String {
        let of = match which.role {
            RoleName::Master => return which.fill(&self.master),
            RoleName::Server => &self.servers,
            RoleName::Worker => &self.workers,
        };
        match of {
            Addresses::Pattern(pattern) => which.fill(pattern),
            Addresses::Each(each) => which.fill(&each[which.index as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "documents = \"nips\"\n[training]\nworkers = 2\n[grpc]\nmaster = \"m:1\"\n\
        servers = [\"s:1\"]\nworkers = \"w-{index}:1\"\n[grpc.tls]\nauthority = \"/ca.pem\"\n\
        certificate = \"{role}-{index}.pem\"\nkey = \"{role}.key\"\n";

    fn read(text: &str) -> Result<Config, ConfigError> {
        // A separate file per call, because tests run in parallel.
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lda-config-{}-{number}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        let read = Config::read(&path);
        fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn nodes_have_addresses_and_files() {
        let config = read(FILE).unwrap();
        assert_eq!(config.documents, Place::Directory(std::env::temp_dir().join("nips")));
        let grpc = config.grpc.unwrap();
        grpc.check(&config.training).unwrap();
        let which = |role, index| Which { role, index };
        assert_eq!(grpc.address(which(RoleName::Master, 0)), "m:1");
        assert_eq!(grpc.address(which(RoleName::Server, 0)), "s:1");
        assert_eq!(grpc.address(which(RoleName::Worker, 1)), "w-1:1");
        let tls = grpc.tls.unwrap();
        assert_eq!(tls.authority, "/ca.pem");
        assert!(which(RoleName::Worker, 1).fill(&tls.certificate).ends_with("/worker-1.pem"));
    }

    #[test]
    fn the_kubernetes_manifests_match_their_configuration() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/run.toml");
        let config = Config::read(&path).unwrap();
        let grpc = config.grpc.unwrap();
        grpc.check(&config.training).unwrap();
        let last = Which { role: RoleName::Worker, index: config.training.workers - 1 };
        assert_eq!(grpc.address(last), "lda-worker-3.lda:7000");
        assert_eq!(last.fill(&grpc.tls.unwrap().key), "/etc/lda/tls/worker-3.key");
        let replicas = |file: &str, name: &str, count: u32| {
            let text = fs::read_to_string(path.with_file_name(file)).unwrap();
            let line = format!("  {name}: {count}");
            assert!(text.lines().any(|found| found == line), "{file}: {line}");
        };
        replicas("servers.yaml", "replicas", config.training.servers);
        replicas("workers.yaml", "completions", config.training.workers);
        replicas("workers.yaml", "parallelism", config.training.workers);
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let refused = |from: &str, to: &str| {
            let config = read(&FILE.replacen(from, to, 1))?;
            config.grpc.as_ref().map_or(Ok(()), |grpc| grpc.check(&config.training))
        };
        let said = |from, to| refused(from, to).unwrap_err().to_string();
        assert!(said("documents", "document").contains("unknown field"));
        let patience = "patience = -1.0\n[training]";
        assert!(said("[training]", patience).contains("patience is -1: give seconds, 0 or more"));
        assert!(said("workers = 2", "workers = two").contains("line 3"));
        assert!(said("\"s:1\"", "\"s:1\", \"s:2\"").contains("2 addresses of servers, but"));
        assert!(said("servers = [\"s:1\"]\n", "").contains("0 addresses of servers, but"));
        assert!(said("master = \"m:1\"\n", "").contains("[grpc] has no address of the master"));
        assert!(Config::read(Path::new("/nowhere/x.toml")).is_err());
    }

    #[test]
    fn a_node_has_a_number() {
        let extent =
            crate::commands::cluster::training::Extent { documents: 10, words: 10, fingerprint: 1 };
        let training = Training { workers: 2, servers: 3, ..Training::default() };
        let setup = training.setup(None, extent).unwrap();
        for id in (0..6).map(NodeId) {
            assert_eq!(Which::of(&setup, id).id(&setup).unwrap(), id);
        }
        let error = Which { role: RoleName::Worker, index: 2 }.id(&setup).unwrap_err();
        assert_eq!(error.to_string(), "there is no worker 2: there are 2, from 0");
    }
}
