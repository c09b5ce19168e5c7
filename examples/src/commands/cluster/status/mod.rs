//! Status of a node over HTTP: a page (`/`), the same as JSON (`/status.json`), metrics for Prometheus
//! (`/metrics`), and `/healthz`.
//!
//! The status is read-only: requests do not change a run, and the node never waits for a client.

mod metrics;

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use lda_core::corpus::Vocabulary;
use lda_dist::cluster::{LostPeer, NodeState, NonZeros, Peers, Report, Setup, Topics};
use lda_dist::spec::JOINING;
use lda_examples::connections::{self, Bounds, Observer};
use lda_examples::metrics::MEDIA_TYPE;
use lda_examples::table;
use serde::Serialize;

use crate::commands::cluster::role::NodeName;
use metrics::Metrics;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");
/// No scripts or styles but those of this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'";
/// Maximum number of epochs of the page; above it every second one is dropped.
const MOST: usize = 2048;
/// Minimum time between two updates of the state.
const EVERY: Duration = Duration::from_millis(250);

/// Bounds of the connections: they take files of the node.
const BOUNDS: Bounds = Bounds {
    connections: 64,
    per_client: 32,
    idle: Duration::from_secs(30),
    timeout: Duration::from_secs(30),
};

/// Does not log connections: the log of a node is about the run.
struct Unobserved;

impl Observer for Unobserved {
    type Connected = ();

    fn connected(&self) {}

    fn failed(&self, _: Option<SocketAddr>, _: &dyn Display) {}
}

/// Status of a node, written by its thread and read by HTTP requests.
#[derive(Clone, Debug)]
pub struct Status(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    node: Node,
    tokens: f64,
    metrics: Metrics,
    progress: Mutex<Progress>,
}

/// Constant facts of a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Node {
    role: &'static str,
    index: u32,
    topics: u32,
    words: u32,
    tokens: u64,
    epochs: u32,
    workers: u32,
    servers: u32,
    shards: u16,
    partitions: u32,
    rounds: u16,
}

#[derive(Debug)]
struct Progress {
    /// Start of the current epoch, and time of the last update.
    begun: Instant,
    updated: Option<Instant>,
    state: Option<NodeState>,
    peers: Connections,
    epochs: Vec<Epoch>,
    topics: Option<Table>,
}

/// Connections of the node.
#[derive(Clone, Debug, Default, Serialize)]
struct Connections {
    up: usize,
    needed: usize,
    /// Peers that the node waits for.
    lost: Vec<Lost>,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    node: String,
    why: String,
    /// Time without the node, and until it is given up, in seconds.
    seconds: u64,
    left: u64,
}

/// Report of an epoch; only at the master.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Epoch {
    epoch: u32,
    attempt: u32,
    kept: u32,
    seconds: f64,
    tokens_per_second: f64,
    log_joint_per_token: Option<f64>,
    non_zeros: Option<Full>,
    bytes: Bytes,
    worker_memory: u64,
    server_memory: u64,
    /// Shares of the time of the workers.
    waited_for_servers: f64,
    waited_for_others: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Bytes {
    pulled: u64,
    gained: u64,
    pushed: u64,
    totals: u64,
}

/// Counts above 0.
#[derive(Clone, Debug, Serialize)]
struct Full {
    words: u64,
    documents: u64,
}

/// Topics at the end of an epoch.
#[derive(Clone, Debug, Serialize)]
struct Table {
    epoch: u32,
    /// The topics shown.
    largest: Vec<Topic>,
}

#[derive(Clone, Debug, Serialize)]
struct Topic {
    topic: usize,
    /// Share of all tokens.
    share: f64,
    words: Vec<String>,
}

/// The content of `/status.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    node: &'a Node,
    /// Progress of the current round; `None` while nodes join.
    epoch: Option<u32>,
    round: Option<u16>,
    memory: u64,
    peers: &'a Connections,
    epochs: &'a [Epoch],
    topics: Option<&'a Table>,
}

impl Status {
    /// Status of a node in a run with `tokens` tokens.
    pub fn new(setup: &Setup, name: NodeName, tokens: u64) -> Self {
        let Setup { spec, options, workers, epochs, .. } = setup;
        let node = Node {
            role: name.role.name(),
            index: name.index,
            topics: spec.topics(),
            words: spec.words(),
            tokens,
            epochs: *epochs,
            workers: *workers,
            servers: options.servers,
            shards: options.shards,
            partitions: options.partitions,
            rounds: options.rounds,
        };
        let progress = Progress {
            begun: Instant::now(),
            updated: None,
            state: None,
            peers: Connections::default(),
            epochs: Vec::new(),
            topics: None,
        };
        let metrics = Metrics::new(node.role, node.index);
        Self(Arc::new(Shared {
            node,
            tokens: tokens as f64,
            metrics,
            progress: Mutex::new(progress),
        }))
    }

    /// Serves the status on a thread of its own; returns the address, with the port that the system
    /// chose if port 0 was given.
    ///
    /// # Errors
    /// If the address is not available, or a thread cannot be started.
    pub fn listen(&self, address: &str) -> io::Result<SocketAddr> {
        let listener = std::net::TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let routes = Router::new()
            .route("/", get(page))
            .route("/page.js", get(|| text("text/javascript", SCRIPT)))
            .route("/page.css", get(|| text("text/css", STYLE)))
            .route("/status.json", get(document))
            .route("/metrics", get(figures))
            .route("/healthz", get(|| async { "ok\n" }))
            .with_state(self.clone());
        thread::Builder::new().name("status".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                // The server ends with the process.
                let ended = std::future::pending();
                connections::serve(listener, BOUNDS, Arc::new(Unobserved), routes, ended).await;
            });
        })?;
        Ok(address)
    }

    /// Whether it is time for the next [update](Self::update).
    pub fn is_due(&self) -> bool {
        self.progress(|progress| progress.updated.is_none_or(|before| before.elapsed() >= EVERY))
    }

    /// Updates the state of the node.
    pub fn update(&self, state: NodeState) {
        self.0.metrics.update(&state);
        self.progress(|progress| {
            progress.updated = Some(Instant::now());
            progress.state = Some(state);
        });
    }

    /// Updates the connections of the node.
    pub fn set_peers(&self, setup: &Setup, peers: &Peers, lost: &[LostPeer]) {
        self.0.metrics.set_peers(peers);
        let described = |lost: &LostPeer| Lost {
            node: setup.role_of(lost.peer).to_string(),
            why: lost.why.to_string(),
            seconds: lost.since.as_secs(),
            left: lost.left.as_secs(),
        };
        let lost = lost.iter().map(described).collect();
        let connections = Connections { up: peers.connected(), needed: peers.expected(), lost };
        self.progress(|progress| progress.peers = connections);
    }

    /// Adds the master's report of an epoch.
    pub fn report(&self, report: &Report) {
        let Shared { node, tokens, metrics, .. } = &*self.0;
        self.progress(|progress| {
            let seconds = progress.begun.elapsed().as_secs_f64().max(1e-9);
            progress.begun = Instant::now();
            let share = |time: Duration| time.as_secs_f64() / (seconds * f64::from(node.workers));
            let of = &report.bytes;
            let epoch = Epoch {
                epoch: report.epoch,
                attempt: report.attempt,
                kept: report.kept,
                seconds,
                tokens_per_second: tokens / seconds,
                log_joint_per_token: report.log_joint.map(|joint| joint / tokens),
                non_zeros: report
                    .non_zeros
                    .map(|NonZeros { words, documents }| Full { words, documents }),
                bytes: Bytes {
                    pulled: of.sizes.saturating_add(of.routes).saturating_add(of.rows),
                    gained: of.gained,
                    pushed: of.pushed.saturating_add(of.answers),
                    totals: of.totals,
                },
                worker_memory: report.memory.worker,
                server_memory: report.memory.server,
                waited_for_servers: share(report.waited.servers),
                waited_for_others: share(report.waited.master),
            };
            metrics.report(report, epoch.tokens_per_second, epoch.log_joint_per_token);
            // An epoch that is repeated after a restart replaces its first report.
            progress.epochs.retain(|before| before.epoch < report.epoch);
            if progress.epochs.len() == MOST {
                let mut number = 0;
                progress.epochs.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
            }
            progress.epochs.push(epoch);
        });
    }

    /// Updates the table of topics: the `shown` largest ones with their top words.
    pub fn set_topics(&self, topics: &Topics, vocabulary: Option<&Vocabulary>, shown: usize) {
        let Topics { epoch, totals, words } = topics;
        if self.progress(|progress| {
            progress.topics.as_ref().is_some_and(|before| before.epoch == *epoch)
        }) {
            return;
        }
        let tokens = totals.iter().sum::<u64>().max(1) as f64;
        let named = |topic: usize| Topic {
            topic,
            share: totals[topic] as f64 / tokens,
            words: words[topic].iter().map(|top| table::name(vocabulary, top.word)).collect(),
        };
        let largest = table::largest_first(totals).into_iter().take(shown).map(named).collect();
        self.progress(|progress| progress.topics = Some(Table { epoch: *epoch, largest }));
    }

    fn progress<R>(&self, with: impl FnOnce(&mut Progress) -> R) -> R {
        with(&mut self.0.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE))
}

/// A text with its media type, which browsers must not guess.
async fn text(media_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media_type), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")], text)
}

async fn document(State(status): State<Status>) -> impl IntoResponse {
    let text = status.progress(|progress| {
        let round = progress.state.map(|state| state.round);
        let on = round.filter(|round| round.number != JOINING);
        serde_json::to_string(&Document {
            node: &status.0.node,
            epoch: on.map(|round| round.epoch),
            round: on.map(|round| round.number),
            memory: progress.state.map_or(0, |state| state.memory),
            peers: &progress.peers,
            epochs: &progress.epochs,
            topics: progress.topics.as_ref(),
        })
    });
    let json = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (json, text.expect("numbers and strings can be written as JSON"))
}

async fn figures(State(status): State<Status>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], status.0.metrics.encode())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use lda_core::eval::TopWord;
    use lda_dist::cluster::{Memory, Waited};
    use lda_dist::spec::Round;

    use super::*;
    use crate::commands::cluster::role::RoleName;
    use crate::commands::cluster::training::{Extent, Training};

    fn status() -> Status {
        let extent = Extent { documents: 10, words: 10, mean_length: 9.9, fingerprint: 1 };
        let training = Training { workers: 2, ..Training::default() };
        let setup = training.setup(None, extent, None).unwrap();
        Status::new(&setup, NodeName { role: RoleName::Master, index: 0 }, 1000)
    }

    fn report(epoch: u32) -> Report {
        let waited = Waited { servers: Duration::from_secs(3), ..Waited::default() };
        let bytes = lda_dist::stats::Bytes { rows: 10, pushed: 7, ..Default::default() };
        let memory = Memory { worker: 11, server: 12 };
        let mut report = Report::default();
        (report.epoch, report.attempt, report.bytes) = (epoch, 1, bytes);
        (report.memory, report.waited) = (memory, waited);
        report.log_joint = Some(-5e3);
        report.non_zeros = Some(NonZeros { words: 40, documents: 50 });
        report
    }

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn pages_have_the_state_of_the_node() {
        let status = status();
        assert!(status.is_due());
        let round = Round { epoch: 3, number: 1, attempt: 1 };
        status.update(NodeState { round, memory: 77, waited: Waited::default() });
        assert!(!status.is_due());
        status.report(&report(1));
        status.report(&report(2));
        let word = |word| TopWord { word, count: 4, probability: 0.5, score: 0.5 };
        let words = vec![vec![word(3)], vec![word(7), word(8)]];
        status.set_topics(&Topics { epoch: 2, totals: vec![250, 750], words }, None, 1);
        let address = status.listen("127.0.0.1:0").unwrap();
        let json = ask(address, "/status.json");
        let (_, body) = json.split_once("\r\n\r\n").unwrap();
        let found: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&found["node"]["role"], &found["epoch"]), (&"master".into(), &3.into()));
        assert_eq!(found["epochs"][1]["log-joint-per-token"], -5.0);
        assert_eq!(found["epochs"][1]["bytes"]["pulled"], 10);
        assert_eq!(found["epochs"][1]["non-zeros"]["words"], 40);
        let largest = serde_json::json!([{ "topic": 1, "share": 0.75, "words": ["#7", "#8"] }]);
        assert_eq!((&found["topics"]["epoch"], &found["topics"]["largest"]), (&2.into(), &largest));
        assert_eq!(found["memory"], 77);
        let page = ask(address, "/");
        assert!(page.contains("<title>") && !page.contains("unsafe-inline"), "{page}");
        for (name, media_type) in [("page.js", "text/javascript"), ("page.css", "text/css")] {
            assert!(page.contains(&format!("=\"{name}\"")), "{page}");
            let file = ask(address, &format!("/{name}"));
            assert!(file.starts_with("HTTP/1.1 200") && file.contains(media_type), "{file}");
        }
        assert!(ask(address, "/healthz").ends_with("ok\n"));
        assert!(ask(address, "/nothing").starts_with("HTTP/1.1 404"));
        let figures = ask(address, "/metrics");
        for line in [
            "lda_epochs_total{role=\"master\",index=\"0\"} 2",
            "lda_epoch{role=\"master\",index=\"0\"} 3",
            "lda_log_joint_per_token{role=\"master\",index=\"0\"} -5.0",
            "lda_moved_bytes_total{role=\"master\",index=\"0\",what=\"rows\"} 20",
            "lda_heaviest_memory_bytes{role=\"master\",index=\"0\",of=\"server\"} 12",
            "lda_non_zeros{role=\"master\",index=\"0\",of=\"documents\"} 50",
        ] {
            assert!(figures.lines().any(|found| found == line), "{line} in {figures}");
        }
    }

    #[test]
    fn repeated_epochs_are_listed_once_and_many_are_thinned() {
        let status = status();
        (1..=5).chain(3..=4).for_each(|epoch| status.report(&report(epoch)));
        let epochs = |status: &Status| {
            status.progress(|progress| {
                progress.epochs.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>()
            })
        };
        assert_eq!(epochs(&status), [1, 2, 3, 4]);
        (5..=3000).for_each(|epoch| status.report(&report(epoch)));
        let found = epochs(&status);
        assert!(found.len() <= MOST && found.is_sorted() && found.last() == Some(&3000));
    }
}
