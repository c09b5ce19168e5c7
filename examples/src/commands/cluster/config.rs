//! The file that tells all nodes of a run what is trained and who they are.
//!
//! ```toml
//! documents = "nips"            # of `cluster cut`: a directory, or an object store, as s3://bucket/nips
//! run = "nips-2"                # nodes of other runs are turned away
//! patience = 60.0               # seconds that a node which has ended may take to come again
//!
//! [training]                    # options of `cluster local`
//! topics = 1000
//! workers = 2
//! servers = 1
//! save = "nips.lda"             # by the master
//!
//! [snapshots]                   # what a run goes on from when a node has failed, or all
//! directory = "nips-2"          # that master and workers see, or an object store
//! every = 10                    # epochs
//!
//! [locality]                    # shards go to workers near them; without it, each has a run of the shards
//! workers = ["node-7", ""]      # the machine of each, as `hosts` beside the documents has it; "" if not known
//!
//! [grpc]                        # without it, and without --nodes: ranks of MPI
//! master = "10.0.0.1:7000"
//! servers = ["10.0.0.2:7000"]
//! workers = "lda-worker-{index}.lda:7000"
//!
//! [grpc.tls]                    # without it, whoever is on the way can read along
//! authority = "ca.pem"
//! certificate = "{role}-{index}.pem"
//! key = "{role}-{index}.key"
//! ```
//!
//! Paths begin where the file is.

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

/// Bytes of a file, at most: addresses of a million nodes are fewer.
const LONGEST: u64 = 64 << 20;

/// A file that tells of no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// It is none.
    #[error("{path}: {error}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where, and why.
        #[source]
        error: Box<toml::de::Error>,
    },
    /// A time that is none.
    #[error("{path}: patience is {found}: give seconds, 0 or more", path = path.display())]
    Patience {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: f64,
    },
    /// Not as many addresses as nodes.
    #[error("{found} addresses of {role}s, where `{role}s = {expected}`: give as many")]
    Addresses {
        /// Of what.
        role: &'static str,
        /// How many.
        found: usize,
        /// How many nodes.
        expected: u32,
    },
    /// Not as many machines as workers.
    #[error(
        "[locality] has machines of {found} workers, where `workers = {expected}`: give one each, \"\" where it is not \
         known"
    )]
    Machines {
        /// How many.
        found: usize,
        /// How many workers.
        expected: u32,
    },
    /// The master is nowhere.
    #[error("[grpc] has no address of the master: give `master`, or a list by --nodes")]
    Master,
    /// No such node.
    #[error("there is no {role} {index}: there are {count}, from 0")]
    Nobody {
        /// What it would be.
        role: &'static str,
        /// Which.
        index: u32,
        /// How many there are.
        count: u32,
    },
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Where `cluster cut` has put them.
    pub documents: Place,
    /// Name of the run.
    #[serde(default)]
    pub run: String,
    /// Seconds that a node which has ended may take to come again.
    #[serde(default)]
    pub patience: f64,
    /// What is trained.
    #[serde(default)]
    pub training: Training,
    /// What is kept underway.
    pub snapshots: Option<Snapshots>,
    /// Which workers are near which shards.
    pub locality: Option<Locality>,
    /// How nodes reach each other; without it they are ranks of MPI.
    pub grpc: Option<Grpc>,
}

/// What is kept underway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snapshots {
    /// Where.
    pub directory: Place,
    /// After every so many epochs.
    #[serde(default = "ten")]
    pub every: u32,
}

fn ten() -> u32 {
    10
}

/// Where workers are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Locality {
    /// The machine of each, or nothing.
    pub workers: Vec<String>,
}

impl Locality {
    /// The machine of each of so many workers, where it is known.
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

/// How nodes reach each other over gRPC; addresses may be told [otherwise](crate::commands::cluster::nodes).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grpc {
    /// Address of the master.
    pub master: String,
    /// Of the servers.
    pub servers: Addresses,
    /// Of the workers.
    pub workers: Addresses,
    /// Certificates.
    pub tls: Option<Tls>,
}

/// Addresses of nodes: each, or one in which `{index}` stands for the number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Addresses {
    /// One for all.
    Pattern(String),
    /// One each.
    Each(Vec<String>),
}

impl Default for Addresses {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

/// Files of PEM; `{role}` and `{index}` stand for the node's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// Of the authority that all certificates are of.
    pub authority: String,
    /// The node's, and those between it and the authority.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// A node: what it is, and which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// What it is.
    pub role: RoleName,
    /// Which of its kind, from 0.
    pub index: u32,
}

impl Which {
    /// The node of that number.
    pub fn of(setup: &Setup, id: NodeId) -> Self {
        let servers = setup.options.servers;
        match id.0 {
            0 => Self { role: RoleName::Master, index: 0 },
            id if id <= servers => Self { role: RoleName::Server, index: id - 1 },
            id => Self { role: RoleName::Worker, index: id - 1 - servers },
        }
    }

    /// Its number.
    ///
    /// # Errors
    /// [`ConfigError::Nobody`].
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
            Err(ConfigError::Nobody { role: role.name(), index, count })
        }
    }

    /// A pattern with what it stands for.
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "only gRPC asks"))]
    pub fn fill(self, pattern: &str) -> String {
        pattern.replace("{role}", self.role.name()).replace("{index}", &self.index.to_string())
    }
}

impl Config {
    /// Reads it; its paths begin where the file is.
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
    /// Whether there is an address for each node.
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

    /// Where a node is.
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
        // A file of each call's own: tests run side by side.
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
    fn the_manifests_tell_of_a_run() {
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
    fn what_tells_of_no_run_is_refused() {
        let refused = |from: &str, to: &str| {
            let config = read(&FILE.replacen(from, to, 1))?;
            config.grpc.as_ref().map_or(Ok(()), |grpc| grpc.check(&config.training))
        };
        let said = |from, to| refused(from, to).unwrap_err().to_string();
        assert!(said("documents", "document").contains("unknown field"));
        let patience = "patience = -1.0\n[training]";
        assert!(said("[training]", patience).contains("patience is -1: give seconds, 0 or more"));
        assert!(said("workers = 2", "workers = two").contains("line 3"));
        assert!(said("\"s:1\"", "\"s:1\", \"s:2\"").contains("2 addresses of servers, where"));
        assert!(said("servers = [\"s:1\"]\n", "").contains("0 addresses of servers, where"));
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
