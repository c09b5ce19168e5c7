//! Configuration file of a run, the same for all its nodes.
//!
//! ```toml
//! documents = "nips"            # from `lda cluster cut`: a directory, or s3://bucket/nips
//! run = "nips-2"                # nodes of other runs are rejected
//! patience = 60.0               # seconds to wait for a node that is lost; default: 60, but none
//!                               # for one that has ended
//! min-workers = 1               # workers with which the run goes on when others leave or are lost, which
//!                               # needs [snapshots] and [grpc]; default: all
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
//! [held-out]                    # report the perplexity of documents of `cut --held-out`; default: none
//! patience = 3                  # evaluations without improvement after which the run ends; default: all epochs
//!
//! [locality]                    # place shards on workers that hold them; default: consecutive shards
//! workers = ["node-7", ""]      # machine of each worker, as in `hosts` next to the documents; "" unknown;
//!                               # default: the hosts of their addresses in [grpc] or --nodes
//!
//! [grpc]                        # without it, and without --nodes: MPI
//! master = "10.0.0.1:7000"
//! servers = ["10.0.0.2:7000"]
//! workers = "lda-worker-{index}.lda:7000"
//!
//! token-file = "nips-2.token"   # secret that all nodes share; default: none
//!
//! [grpc.tls]                    # without it, only on one machine, or with `insecure = true` in [grpc]
//! authority = "ca.pem"
//! certificate = "{role}-{index}.pem"
//! key = "{role}-{index}.key"
//! name = "{host}"               # name that the certificate of a node must have; default: its host
//! ```
//!
//! Relative paths start at the directory of the file.

use std::collections::HashMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lda_dist::cluster::Patience;
use serde::Deserialize;
use thiserror::Error;

use crate::commands::cluster::role::{NodeName, RoleName};
use crate::commands::cluster::storage_url::StorageUrl;
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
    /// Workers that may leave cannot pass the topics of their shards on.
    #[error(
        "{path}: min-workers is below the number of workers, but there is no table [snapshots], by which \
         topics pass from one worker to another: add it, or omit min-workers",
        path = path.display()
    )]
    Elastic {
        /// The file.
        path: PathBuf,
    },
    /// A patience without evaluations.
    #[error(
        "{path}: patience in [held-out] needs evaluations: set evaluate-every above 0, or omit patience",
        path = path.display()
    )]
    NoEvaluations {
        /// The file.
        path: PathBuf,
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
    /// The machines of the workers are not known.
    #[error(
        "[locality] has no machines, and there is no [grpc] with addresses: give `workers`, one per worker, \"\" if unknown"
    )]
    NoMachines,
    /// Certificates do not tell two nodes apart.
    #[error(
        "{first} and {second} have the host {host}, so each could take the place of the other with a \
         certificate of this name: give `name = \"{{role}}-{{index}}\"` in [grpc.tls] and certificates \
         with these names, or `name = \"{{host}}\"` if all nodes trust each other"
    )]
    SharedHost {
        /// Node with this host.
        first: String,
        /// Another one.
        second: String,
        /// Their host.
        host: String,
    },
    /// The master has no address.
    #[error("[grpc] has no address of the master: give `master`, or a list by --nodes")]
    Master,
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Output of `lda cluster cut`.
    pub documents: StorageUrl,
    /// Name of the run; nodes of other runs are rejected.
    #[serde(default)]
    pub run: String,
    /// Seconds to wait for a node that is lost.
    pub patience: Option<f64>,
    /// Smallest number of workers with which the run goes on; default all.
    pub min_workers: Option<u32>,
    /// Model and division of the work.
    #[serde(default)]
    pub training: Training,
    /// Checkpoints; `None` for none.
    pub snapshots: Option<Snapshots>,
    /// Perplexity of held-out documents; `None` for none.
    pub held_out: Option<HeldOut>,
    /// Machines of the workers, to place shards near them.
    pub locality: Option<Locality>,
    /// Transport between the nodes: gRPC if the file has a table `[grpc]`.
    #[serde(rename = "grpc", default)]
    pub transport: TransportChoice,
}

/// Perplexity of the documents that `lda cluster cut --held-out` keeps out of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HeldOut {
    /// Evaluations in a row without an improvement, after which the run ends.
    pub patience: Option<NonZeroU32>,
}

/// Transport between the nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Grpc")]
pub enum TransportChoice {
    /// gRPC, with the addresses of the nodes.
    Grpc(Box<Grpc>),
    /// MPI, whose ranks are the nodes.
    #[default]
    Mpi,
}

impl From<Grpc> for TransportChoice {
    fn from(grpc: Grpc) -> Self {
        Self::Grpc(Box::new(grpc))
    }
}

/// Checkpoints of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snapshots {
    /// Directory or object store.
    pub directory: StorageUrl,
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
    /// Machine of each worker, empty if unknown; by default the host of its address.
    pub workers: Option<Vec<String>>,
}

impl Locality {
    /// Machine of each worker; `None` if unknown.
    ///
    /// # Errors
    /// [`ConfigError::Machines`], [`ConfigError::NoMachines`].
    pub fn machines(
        &self,
        workers: u32,
        grpc: Option<&Grpc>,
    ) -> Result<Vec<Option<String>>, ConfigError> {
        let of_address = |grpc: &Grpc| {
            let workers = (0..workers).map(|index| NodeName { role: RoleName::Worker, index });
            workers.map(|node| host(&grpc.address(node)).to_owned()).collect()
        };
        let given = self.workers.clone().or_else(|| grpc.map(of_address));
        let machines = given.ok_or(ConfigError::NoMachines)?;
        let found = machines.len();
        if found != workers as usize {
            return Err(ConfigError::Machines { found, expected: workers });
        }
        Ok(machines.into_iter().map(|host| Some(host).filter(|it| !it.is_empty())).collect())
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
    /// Allows traffic between machines without certificates.
    pub insecure: bool,
    /// File of the secret that all nodes share.
    pub token_file: Option<String>,
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
    /// Name that the certificate of a node must have, among its subject alternative names; `{host}`
    /// stands for the host of its address. By default this host, which must be that of one node only.
    pub name: Option<String>,
}

impl Tls {
    /// Name that the certificate of a node at this address must have.
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "only for gRPC"))]
    pub fn name(&self, node: NodeName, address: &str) -> String {
        let pattern = self.name.as_deref().unwrap_or("{host}");
        node.fill(pattern).replace("{host}", host(address))
    }
}

/// Host of an address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

impl Config {
    /// Time to wait for a lost node.
    pub fn patience(&self) -> Patience {
        let given = self.patience.map(Duration::try_from_secs_f64);
        given.and_then(Result::ok).map_or_else(Patience::default, Patience::new)
    }

    /// Checks that workers can leave, if they may.
    fn check_elastic(&self, path: &Path) -> Result<(), ConfigError> {
        let is_elastic = self.min_workers.is_some_and(|least| least < self.training.workers);
        if is_elastic && self.snapshots.is_none() {
            return Err(ConfigError::Elastic { path: path.to_owned() });
        }
        Ok(())
    }

    /// Reads a configuration; relative paths start at `base`, by default the directory of the file.
    ///
    /// # Errors
    /// [`ConfigError`], with the file and the line.
    pub fn read(path: &Path, base: Option<&Path>) -> Result<Self, ConfigError> {
        let read = || {
            if fs::metadata(path)?.len() > LONGEST {
                return Err(std::io::Error::other(format!("more than {LONGEST} bytes")));
            }
            fs::read_to_string(path)
        };
        let text = read().map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
        let mut config: Self = toml::from_str(&text)
            .map_err(|error| ConfigError::Parse { path: path.to_owned(), error: error.into() })?;
        if let Some(found) = config.patience
            && Duration::try_from_secs_f64(found).is_err()
        {
            return Err(ConfigError::Patience { path: path.to_owned(), found });
        }
        config.check_elastic(path)?;
        if config.held_out.is_some_and(|held_out| held_out.patience.is_some())
            && config.training.evaluate_every == 0
        {
            return Err(ConfigError::NoEvaluations { path: path.to_owned() });
        }
        let base = base.unwrap_or(path.parent().unwrap_or(Path::new("")));
        config.snapshots = config.snapshots.map(|Snapshots { directory, every }| Snapshots {
            directory: directory.within(base),
            every,
        });
        config.documents = config.documents.within(base);
        config.training.save = config.training.save.map(|save| base.join(save));
        config.training.log = config.training.log.map(|log| base.join(log));
        config.training.from = config.training.from.map(|from| base.join(from));
        if let TransportChoice::Grpc(grpc) = &mut config.transport {
            let Grpc { tls, token_file, .. } = &mut **grpc;
            let of_tls = tls
                .iter_mut()
                .flat_map(|Tls { authority, certificate, key, .. }| [authority, certificate, key]);
            for file in of_tls.chain(token_file) {
                *file = base.join(&*file).to_string_lossy().into_owned();
            }
        }
        Ok(config)
    }
}

impl Grpc {
    /// Checks that every node has an address, and that its certificate is of no other node.
    ///
    /// # Errors
    /// [`ConfigError::Master`], [`ConfigError::Addresses`] and [`ConfigError::SharedHost`].
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
        if self.tls.as_ref().is_some_and(|tls| tls.name.is_none()) {
            self.check_hosts(training)
        } else {
            Ok(())
        }
    }

    /// Checks that no two nodes have the same host.
    fn check_hosts(&self, training: &Training) -> Result<(), ConfigError> {
        let mut hosts = HashMap::new();
        let counts = [
            (RoleName::Master, 1),
            (RoleName::Server, training.servers),
            (RoleName::Worker, training.workers),
        ];
        let nodes = counts
            .into_iter()
            .flat_map(|(role, count)| (0..count).map(move |index| NodeName { role, index }));
        for node in nodes {
            let host = host(&self.address(node)).to_owned();
            if let Some(first) = hosts.insert(host.clone(), node) {
                let [first, second] = [first, node]
                    .map(|NodeName { role, index }| format!("{} {index}", role.name()));
                return Err(ConfigError::SharedHost { first, second, host });
            }
        }
        Ok(())
    }

    /// Address of a node.
    pub fn address(&self, node: NodeName) -> String {
        let of = match node.role {
            RoleName::Master => return node.fill(&self.master),
            RoleName::Server => &self.servers,
            RoleName::Worker => &self.workers,
        };
        match of {
            Addresses::Pattern(pattern) => node.fill(pattern),
            Addresses::Each(each) => node.fill(&each[node.index as usize]),
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
        let read = Config::read(&path, None);
        fs::remove_file(&path).unwrap();
        read
    }

    fn grpc(config: &Config) -> &Grpc {
        match &config.transport {
            TransportChoice::Grpc(grpc) => grpc,
            TransportChoice::Mpi => panic!("no [grpc]"),
        }
    }

    #[test]
    fn without_grpc_the_transport_is_mpi() {
        assert_eq!(read("documents = \"nips\"\n").unwrap().transport, TransportChoice::Mpi);
    }

    #[test]
    fn a_patience_needs_evaluations() {
        let held_out = |text: &str| read(text).map(|config| config.held_out);
        let patience = NonZeroU32::new(3);
        assert_eq!(held_out("documents = \"nips\"\n").unwrap(), None);
        let file = "documents = \"nips\"\n[held-out]\n";
        assert_eq!(held_out(file).unwrap(), Some(HeldOut { patience: None }));
        let file = format!("{file}patience = 3\n");
        assert_eq!(held_out(&file).unwrap(), Some(HeldOut { patience }));
        let never = held_out(&format!("{file}[training]\nevaluate-every = 0\n")).unwrap_err();
        assert!(never.to_string().contains("set evaluate-every above 0"), "{never}");
        let none = held_out(&file.replace('3', "0")).unwrap_err().to_string();
        assert!(none.contains("line 3"), "{none}");
    }

    /// A launcher may send the file to a machine on which the directory has another name.
    #[test]
    fn relative_paths_may_start_elsewhere() {
        let path = std::env::temp_dir().join(format!("lda-base-{}.toml", std::process::id()));
        fs::write(&path, format!("{FILE}[snapshots]\ndirectory = \"s3://bucket/kept\"\n")).unwrap();
        let read = Config::read(&path, Some(Path::new("/shared")));
        fs::remove_file(&path).unwrap();
        let config = read.unwrap();
        assert_eq!(config.documents, StorageUrl::Directory("/shared/nips".into()));
        let kept = StorageUrl::Store("s3://bucket/kept".to_owned());
        assert_eq!(config.snapshots.as_ref().unwrap().directory, kept);
        assert_eq!(grpc(&config).tls.as_ref().unwrap().key, "/shared/{role}.key");
    }

    #[test]
    fn workers_are_on_the_machines_of_their_addresses() {
        let config = read(&format!("{FILE}[locality]\n")).unwrap();
        let locality = config.locality.clone().unwrap();
        let machines = locality.machines(2, Some(grpc(&config))).unwrap();
        assert_eq!(machines, ["w-0", "w-1"].map(|host| Some(host.to_owned())));
        let said = locality.machines(2, None).unwrap_err().to_string();
        assert!(said.contains("give `workers`, one per worker"), "{said}");
        let given = Locality { workers: Some(vec![String::new(), "node-7".to_owned()]) };
        let machines = given.machines(2, Some(grpc(&config))).unwrap();
        assert_eq!(machines, [None, Some("node-7".to_owned())]);
        assert!(given.machines(3, None).is_err());
    }

    #[test]
    fn nodes_have_addresses_and_files() {
        let config = read(FILE).unwrap();
        assert_eq!(config.documents, StorageUrl::Directory(std::env::temp_dir().join("nips")));
        let grpc = grpc(&config);
        grpc.check(&config.training).unwrap();
        let name = |role, index| NodeName { role, index };
        assert_eq!(grpc.address(name(RoleName::Master, 0)), "m:1");
        assert_eq!(grpc.address(name(RoleName::Server, 0)), "s:1");
        assert_eq!(grpc.address(name(RoleName::Worker, 1)), "w-1:1");
        let tls = grpc.tls.as_ref().unwrap();
        assert_eq!(tls.authority, "/ca.pem");
        assert!(name(RoleName::Worker, 1).fill(&tls.certificate).ends_with("/worker-1.pem"));
        assert_eq!(tls.name(name(RoleName::Worker, 1), "w-1:1"), "w-1");
    }

    #[test]
    fn certificates_have_a_name_for_each_node() {
        let shared = FILE.replace("w-{index}:1", "s:{index}");
        let grpc_of = |more: &str| {
            let config = read(&format!("{shared}{more}")).unwrap();
            let grpc = grpc(&config).clone();
            grpc.check(&config.training).map(|()| grpc)
        };
        let said = grpc_of("").unwrap_err().to_string();
        assert!(said.starts_with("server 0 and worker 0 have the host s, so each"), "{said}");
        let node = NodeName { role: RoleName::Worker, index: 1 };
        for (pattern, expected) in [("{role}-{index}", "worker-1"), ("{host}", "::1")] {
            let grpc = grpc_of(&format!("name = \"{pattern}\"\n")).unwrap();
            assert_eq!(grpc.tls.unwrap().name(node, "[::1]:7000"), expected);
        }
    }

    #[test]
    fn the_kubernetes_manifests_match_their_configuration() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/run.toml");
        let config = Config::read(&path, None).unwrap();
        let grpc = grpc(&config);
        grpc.check(&config.training).unwrap();
        let last = NodeName { role: RoleName::Worker, index: config.training.workers - 1 };
        assert_eq!(grpc.address(last), "lda-worker-3.lda:7000");
        assert_eq!(last.fill(&grpc.tls.as_ref().unwrap().key), "/etc/lda/tls/worker-3.key");
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
            grpc(&config).check(&config.training)
        };
        let said = |from, to| refused(from, to).unwrap_err().to_string();
        assert!(said("documents", "document").contains("unknown field"));
        let patience = "patience = -1.0\n[training]";
        assert!(said("[training]", patience).contains("patience is -1: give seconds, 0 or more"));
        assert!(said("workers = 2", "workers = two").contains("line 3"));
        assert!(said("\"s:1\"", "\"s:1\", \"s:2\"").contains("2 addresses of servers, but"));
        assert!(said("servers = [\"s:1\"]\n", "").contains("0 addresses of servers, but"));
        assert!(said("master = \"m:1\"\n", "").contains("[grpc] has no address of the master"));
        let elastic = "min-workers = 1\n[training]";
        assert!(said("[training]", elastic).contains("no table [snapshots], by which topics pass"));
        assert!(Config::read(Path::new("/nowhere/x.toml"), None).is_err());
    }
}
