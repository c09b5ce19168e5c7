//! Shows what breaks first: the bounds of the design, and how far a projection is above or below
//! each.

use super::plan::{CorpusPlan, MachinePlan, ScalePlan};
use super::project::start_bytes;
use super::state::State;
use super::words::{Lengths, frequencies};
use super::{Line, Measured};

/// Default limit of the bytes of a gRPC frame, which the program `cluster` uses too.
const FRAME: f64 = (16u64 << 20) as f64;
const FRAME_OF_CLUSTER: f64 = (1u64 << 30) as f64;
/// Bytes that a peer may have in flight to a node.
const UNDERWAY: f64 = (64u64 << 20) as f64;
/// Default limit of the peers of a gRPC node.
const MOST_PEERS: f64 = 4096.0;
/// Largest number of tokens of a run.
const MOST_TOKENS: f64 = (1u64 << 48) as f64;
/// Limit of 16-bit numbers.
const SHORT: f64 = 65_536.0;
const WORD: f64 = 4_294_967_296.0;
/// Limit of the bytes of a shard's rows of C_d.
const ROWS: f64 = (64u64 << 30) as f64;

/// A bound of the design and the projected value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// The bounded quantity.
    pub what: &'static str,
    /// Projected value.
    pub there: f64,
    /// The bound.
    pub bound: f64,
    pub unit: &'static str,
    /// Consequence beyond the bound, and the remedy.
    pub then: &'static str,
    pub next: &'static str,
}

impl Limit {
    /// Projected value over the bound; above 1 it is exceeded.
    pub fn over(&self) -> f64 {
        self.there / self.bound
    }
}

/// Bounds of a line, the most exceeded first.
pub(super) fn limits(plan: &ScalePlan, measured: &Measured, line: &Line) -> Vec<Limit> {
    let CorpusPlan { documents, words, exponent, shift, spread, .. } = plan.corpus;
    let MachinePlan { memory_gib, .. } = plan.machine;
    let memory = memory_gib * f64::from(1 << 30);
    let takes = &line.takes;
    let (shards, servers) = (f64::from(line.shards), f64::from(line.servers));
    let (rounds, partitions) = (f64::from(line.rounds), f64::from(line.partitions));
    let mean = line.tokens / documents as f64;
    let lengths = Lengths::log_normal(documents as f64, mean, spread);
    let each = frequencies(words, line.tokens as u64, exponent, shift, plan.seed);
    let most = each.iter().copied().max().unwrap_or(0) as f64;
    let largest = |state: &State| state.largest;
    let largest = measured.states.iter().map(largest).fold(1.0, f64::max);
    let rows = takes.worker_memory;
    let slow =
        takes.times.iter().min_by(|a, b| a.gbit.total_cmp(&b.gbit)).copied().unwrap_or_default();
    let sampling = takes.worker_seconds;
    let of = |what, there, bound, unit, then, next| Limit { what, there, bound, unit, then, next };
    let mut limits = vec![
        of(
            "memory of the master: words, and copies of the start message in flight",
            takes.master_memory,
            memory,
            "bytes",
            "the master runs out of memory",
            "send the words in parts",
        ),
        of(
            "start message in one frame of gRPC's default size",
            start_bytes(&each),
            FRAME,
            "bytes",
            "the frame is rejected, and the run does not start",
            "several messages, or the 1 GiB frames of `lda cluster`",
        ),
        of(
            "start message in one frame of `lda cluster`",
            start_bytes(&each),
            FRAME_OF_CLUSTER,
            "bytes",
            "the frame is rejected",
            "several messages",
        ),
        of(
            "rows of a partition that a shard pulls, in one frame of gRPC's default size",
            takes.longest_pull,
            FRAME,
            "bytes",
            "the reply is rejected",
            "more partitions, or the 1 GiB frames of `lda cluster`",
        ),
        of(
            "tokens of the largest topic",
            largest * line.tokens / f64::from(plan.topics),
            WORD,
            "tokens",
            "C_k does not fit into 32 bits: the run ends",
            "C_k in 64 bits, in samplers too; or more topics",
        ),
        of(
            "tokens of the most frequent word, all in one topic",
            most,
            WORD,
            "tokens",
            "a count of its row does not fit into 32 bits",
            "leave such words out, or counts of 64 bits on servers",
        ),
        of(
            "tokens of a partition on a worker",
            (line.tokens / (shards * partitions)).max(most / shards),
            WORD,
            "tokens",
            "a shard cannot be made",
            "more shards",
        ),
        of(
            "shards",
            shards,
            SHORT,
            "shards",
            "shard numbers overflow",
            "wider numbers on the wire",
        ),
        of("partitions", partitions, SHORT, "partitions", "as above", "as above"),
        of(
            "tokens of the job",
            line.tokens,
            MOST_TOKENS,
            "tokens",
            "the start is refused",
            "not needed",
        ),
        of(
            "rows of C_d of a shard",
            lengths_bytes(&lengths, plan.topics) / shards,
            ROWS,
            "bytes",
            "a shard cannot be made",
            "more shards per worker",
        ),
        of(
            "memory of a worker",
            rows,
            memory,
            "bytes",
            "out of memory",
            "more workers, or tokens on disk",
        ),
        of(
            "memory of the heaviest server",
            takes.server_memory,
            memory,
            "bytes",
            "out of memory",
            "more servers; rebuild rows one partition at a time",
        ),
        of(
            "all rows of C_w at the master, if it collects the model",
            8.0 * takes.entries,
            memory,
            "bytes",
            "out of memory",
            "servers write their rows to storage",
        ),
        of(
            "bytes in flight from workers to a server, at worst",
            shards * UNDERWAY,
            memory,
            "bytes",
            "only memory bounds it",
            "a window that is divided among workers",
        ),
        of(
            "connections of the master",
            shards + servers,
            MOST_PEERS,
            "peers",
            "gRPC rejects more by default",
            "a tree of masters",
        ),
        of(
            "rounds as long as their slowest shard, over a worker's sampling",
            slow.sampling,
            sampling,
            "s",
            "workers wait for the one with the most frequent words",
            "fewer rounds, staleness above 0, or partitions that are even by tokens",
        ),
        of(
            "time besides sampling in all rounds (slow links), over a worker's sampling",
            rounds * slow.beside,
            sampling,
            "s",
            "barriers take longer than the work between them",
            "fewer rounds, or a tree for C_k",
        ),
        of(
            "master's link (slow), over a worker's sampling",
            slow.master,
            sampling,
            "s",
            "C_k goes to every node in every round",
            "a tree for C_k, or fewer rounds",
        ),
        of(
            "heaviest server, on its one core, over a worker's sampling",
            takes.server_seconds,
            sampling,
            "s",
            "workers wait for it",
            "threads of a server; more servers",
        ),
        of(
            "rebuilding of rows at ends of rounds, over a worker's sampling",
            takes.end_seconds,
            sampling,
            "s",
            "all workers wait while servers rebuild rows",
            "rebuild changed rows during the next round",
        ),
        of(
            "worker's link (slow), over its sampling",
            slow.worker,
            sampling,
            "s",
            "workers wait for rows",
            "the asymmetric architecture; faster links",
        ),
        of(
            "heaviest server's link (slow), over a worker's sampling",
            slow.server,
            sampling,
            "s",
            "workers wait for rows",
            "more servers; faster links",
        ),
    ];
    limits.sort_by(|a, b| b.over().total_cmp(&a.over()));
    limits
}

fn lengths_bytes(lengths: &Lengths, topics: u32) -> f64 {
    use lda_core::counts::{Density, Rows};
    let of = |&(length, documents): &(u32, f64)| {
        let row =
            Rows::<u16>::bytes(topics as usize, std::iter::once(length.into()), Density::Auto);
        documents * row as f64
    };
    lengths.each().iter().map(of).sum()
}
