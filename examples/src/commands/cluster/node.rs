//! `lda cluster node`: one node of a run over gRPC or MPI.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lda_core::container::checksum;
use lda_core::counts::TopicIndex;
use lda_dist::cluster::{self, Failed, Peers, Role, RunError, Setup, SnapshotWriter};
use lda_dist::documents::StoredDocuments;
use lda_dist::locality::{assign, near_tokens};
use lda_dist::storage::Storage;
use lda_examples::output::Output;
use lda_transport::bootstrap::{kubernetes, system};
use lda_transport::rpc::Identity;
use lda_transport::{NodeId, Transport};

use crate::commands::cluster::args::Node;
use crate::commands::cluster::config::{Config, Grpc, HeldOut, TransportChoice};
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::from_model::from_stored;
use crate::commands::cluster::held_out::HeldOutDocuments;
use crate::commands::cluster::incarnation;
use crate::commands::cluster::monitor::Monitor;
use crate::commands::cluster::nodes;
use crate::commands::cluster::results::Results;
use crate::commands::cluster::role::{NodeName, RoleName};
use crate::commands::cluster::stop;
use crate::commands::cluster::stop_rule::StopRule;
use crate::commands::cluster::training::Extent;

type Documents = StoredDocuments<Arc<dyn Storage>>;

/// Runs a node until the run is finished.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Node) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    if args.end_with_input {
        stop::with_input().map_err(ClusterError::Signals)?;
    }
    let config = Config::read(&args.config, args.base.as_deref())?;
    let place = |error| ClusterError::Stored { place: config.documents.to_string(), error };
    let documents = StoredDocuments::open(config.documents.open()?).map_err(place)?;
    let from = from_stored(&config, &documents)?;
    let mut setup = config.training.setup(
        Some(documents.num_shards()),
        Extent::of(&documents),
        from.as_ref(),
    )?;
    setup.min_workers = config.min_workers;
    setup.checkpoint_every = config.snapshots.as_ref().map_or(0, |snapshots| snapshots.every);
    setup.collect_model |= config.held_out.is_some();
    setup.collect_evaluated = config.held_out.is_some_and(|it| it.patience.is_some());
    let divided = |error| RunError::from(Failed::from(error));
    setup.check().map_err(divided)?;
    let addresses = addresses(args, &config, &setup)?;
    let mut near = None;
    if let Some(locality) = &config.locality {
        let grpc = addresses.as_ref().map(|(_, grpc)| grpc);
        let machines = locality.machines(setup.workers, grpc)?;
        let held = documents.shard_locations().map_err(place)?;
        let assigned = assign(&held, &machines).map_err(divided)?;
        near = Some(near_tokens(&held, &machines, &assigned));
        setup.assignment = assigned.into();
    }
    let stop = stop::listen(stop::AfterEpoch::Checkpoint).map_err(ClusterError::Signals)?;
    let mut transport = match &addresses {
        Some((id, grpc)) => over_grpc(args, grpc, &setup, *id)?,
        None => rank(&setup)?,
    };
    let node = NodeName::of(&setup, transport.id());
    let worker = (node.role == RoleName::Worker).then_some(node.index);
    ClusterError::check_threads(args.program.threads(), &setup, worker.into_iter())?;
    let tokens = documents.num_tokens();
    let needed = setup.least_memory(setup.role_of(transport.id()), tokens);
    ClusterError::check_memory("this node needs", needed)?;
    // Opened before training, so that a path that cannot be written fails at once.
    let save = config.training.save.as_deref().filter(|_| node.role == RoleName::Master);
    let output = save.map(Output::create_file).transpose()?;
    args.program.note(&format!("{} {}", node.role.name(), node.index));
    let named = node.role == RoleName::Master && (output.is_some() || setup.top_words > 0);
    let vocabulary = if named { documents.vocabulary().map_err(place)? } else { None };
    if let Some(near) = near.filter(|_| node.role == RoleName::Master) {
        args.program
            .note(&format!("{near} of {tokens} tokens are on the machines of their workers"));
    }
    let is_master = node.role == RoleName::Master;
    let held_out = is_master.then(|| held_out(&config, &documents)).transpose()?.flatten();
    let rule = held_out.as_ref().and_then(HeldOutDocuments::rule);
    let (address, log) = (args.status.as_deref(), config.training.log.as_deref());
    let mut monitor = Monitor::new(&args.program, &setup, node, tokens, address, log)?
        .stopping(StopRule::new(&config.training, None).held_out(rule))
        .evaluating(held_out.clone())
        .naming(vocabulary.as_ref(), config.training.show_topics);
    let results = if u64::from(setup.spec.topics()) <= u16::MAX_TOPICS {
        train::<u16>(&config, &setup, &documents, &stop, &mut *transport, &mut monitor)?
    } else {
        train::<u32>(&config, &setup, &documents, &stop, &mut *transport, &mut monitor)?
    };
    match results {
        Some(results) => {
            results.write(&config.training, vocabulary.as_ref(), output, held_out.as_ref())
        }
        None => Ok(()),
    }
}

/// Reads the held-out documents, if the run evaluates them.
fn held_out(
    config: &Config,
    documents: &Documents,
) -> Result<Option<HeldOutDocuments>, ClusterError> {
    let Some(HeldOut { patience }) = config.held_out else { return Ok(None) };
    let place = config.documents.to_string();
    match documents.held_out() {
        Ok(Some(corpus)) => {
            let patience = patience.map(NonZeroU32::get);
            Ok(Some(HeldOutDocuments::new(corpus, config.training.seed, patience)))
        }
        Ok(None) => Err(ClusterError::NoHeldOut { place }),
        Err(error) => Err(ClusterError::Stored { place, error }),
    }
}

/// Runs the role to the end and returns the results if it is the master.
fn train<T: TopicIndex>(
    config: &Config,
    setup: &Setup,
    documents: &Documents,
    stop: &AtomicBool,
    transport: &mut dyn Transport,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Results>, ClusterError> {
    let storage = config.snapshots.as_ref().map(|snapshots| snapshots.directory.create());
    let storage = storage.transpose()?;
    let name = NodeName::of(setup, transport.id());
    let incarnation = incarnation::next(storage.as_deref(), name, &mut |line| monitor.note(line));
    let snapshot_writer = storage.map(SnapshotWriter::beside);
    let role = Role::<T, Documents>::new(
        setup.clone(),
        transport.id(),
        documents.clone(),
        snapshot_writer,
    );
    let identity = Identity {
        incarnation,
        role: role.number(),
        run: u128::from(checksum(config.run.as_bytes())),
        configuration: setup.fingerprint(),
    };
    let mut watch = |role: &mut Role<T, Documents>, peers: &Peers| monitor.poll(role, Some(peers));
    let patience = config.patience();
    let endpoint = cluster::config(setup, identity);
    let ended = cluster::run(role, transport, endpoint, patience, Some(stop), &mut watch)?;
    Ok(Results::of(&ended))
}

/// This node, and the addresses of all nodes; `None` for MPI.
fn addresses(
    args: &Node,
    config: &Config,
    setup: &Setup,
) -> Result<Option<(NodeId, Grpc)>, ClusterError> {
    let grpc = match &config.transport {
        TransportChoice::Grpc(grpc) => (**grpc).clone(),
        // The list of nodes has the addresses.
        TransportChoice::Mpi if args.nodes.is_some() => Grpc::default(),
        TransportChoice::Mpi if args.role.is_some() => {
            let why = "the configuration has no [grpc], and the rank of MPI decides the role: omit --role";
            return Err(ClusterError::Usage(why.to_owned()));
        }
        TransportChoice::Mpi if setup.is_elastic() => {
            let why = "min-workers is below the number of workers, but ranks of MPI cannot leave: use [grpc]";
            return Err(ClusterError::Usage(why.to_owned()));
        }
        TransportChoice::Mpi => return Ok(None),
    };
    let Some(role) = args.role else {
        return Err(ClusterError::Usage("give --role: master, server or worker".to_owned()));
    };
    let index = match (args.index, role) {
        (Some(index), _) => index,
        (None, RoleName::Master) => 0,
        (None, _) => kubernetes::pod(&system)?.1,
    };
    let id = NodeName { role, index }.id(setup)?;
    let grpc = match &args.nodes {
        Some(list) => nodes::locate(list, id, setup, grpc)?,
        None => grpc,
    };
    grpc.check(&config.training)?;
    Ok(Some((id, grpc)))
}

#[cfg(feature = "grpc")]
fn over_grpc(
    args: &Node,
    grpc: &Grpc,
    setup: &Setup,
    id: NodeId,
) -> Result<Box<dyn Transport>, ClusterError> {
    use std::fmt::Display;

    use lda_transport::grpc::{GrpcOptions, Peer, Tls, Token};

    /// Maximum size of a frame, above that of the rows of a partition; a larger one is rejected.
    const MAX_FRAME_LEN: usize = 1 << 30;

    let this = NodeName::of(setup, id);
    let mut options = GrpcOptions::default();
    options.listen = Some(args.listen.clone().unwrap_or_else(|| grpc.address(this)));
    options.max_frame_len = MAX_FRAME_LEN;
    options.allowlist_only = true;
    options.tls = grpc.tls.as_ref().map(|tls| {
        Tls::new(this.fill(&tls.authority), this.fill(&tls.certificate), this.fill(&tls.key))
    });
    options.insecure = grpc.insecure;
    if let Some(path) = &grpc.token_file {
        let refused = |error: &dyn Display| ClusterError::Transport(format!("{path}: {error}"));
        let secret = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
        options.token = Token::new(secret.trim()).map_err(|error| refused(&error))?;
    }
    let all = (0..1 + setup.options.servers + setup.workers).map(NodeId);
    for other in all.filter(|&other| other != id) {
        let name = NodeName::of(setup, other);
        // Nodes of the same role do not communicate.
        if name.role == this.role {
            continue;
        }
        let address = grpc.address(name);
        // No other node has a certificate of this name, so that none can take this id.
        let named = grpc.tls.as_ref().map(|tls| tls.name(name, &address));
        let peer = Peer::at(address);
        options.peers.insert(other, named.map_or(peer.clone(), |named| peer.named(named)));
    }
    // The transport logs why a peer cannot connect.
    if !args.program.is_quiet() {
        let log =
            tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN);
        log.with_writer(std::io::stderr).with_ansi(false).with_target(false).init();
    }
    match lda_transport::grpc::Grpc::start(id, options) {
        Ok(node) => Ok(Box::new(node)),
        Err(error) => Err(ClusterError::Transport(error.to_string())),
    }
}

#[cfg(not(feature = "grpc"))]
fn over_grpc(_: &Node, _: &Grpc, _: &Setup, _: NodeId) -> Result<Box<dyn Transport>, ClusterError> {
    Err(ClusterError::Usage("this build has no gRPC: build it with --features grpc".to_owned()))
}

#[cfg(feature = "mpi")]
fn rank(setup: &Setup) -> Result<Box<dyn Transport>, ClusterError> {
    use lda_transport::mpi;

    use crate::commands::cluster::role::counted;

    let node = mpi::start(&mpi::MpiOptions::default())
        .map_err(|error| ClusterError::Transport(error.to_string()))?;
    let (ranks, nodes) = (node.all().len(), 1 + setup.options.servers + setup.workers);
    if ranks != nodes as usize {
        let servers = counted(setup.options.servers, RoleName::Server);
        let workers = counted(setup.workers, RoleName::Worker);
        return Err(ClusterError::Usage(format!(
            "{ranks} MPI ranks for a master, {servers} and {workers}: start {nodes}"
        )));
    }
    Ok(Box::new(node))
}

#[cfg(not(feature = "mpi"))]
fn rank(_: &Setup) -> Result<Box<dyn Transport>, ClusterError> {
    let why =
        "the configuration has no [grpc], and this build has no MPI: build it with --features mpi";
    Err(ClusterError::Usage(why.to_owned()))
}
