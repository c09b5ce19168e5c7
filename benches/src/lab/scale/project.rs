//! Projects what an epoch costs each role for a given corpus and division.

use lda_core::counts::{Density, Rows};
use lda_dist::cluster::BROADCAST_BYTES;
use lda_dist::config::{Options, Routing};
use lda_dist::placement::{self, Placement, WordStats};
use lda_dist::plan::place;
use lda_dist::spec::ModelSpec;
use serde::{Deserialize, Serialize};

use super::super::LabError;
use super::plan::MachinePlan;
use super::rates::Rates;
use super::rng::Rng;
use super::rounds;
use super::sizes::{Size, Sizes, class, totals};
use super::state::State;
use super::traffic_model::{Moved, Pairs, Pulled};
use super::words::{Lengths, Repeats};

/// Tokens or words drawn in all sampled pairs together.
const DRAWN: f64 = 1.5e6;
/// Least and largest number of sampled (shard, partition) pairs.
const PAIRS: (f64, f64) = (4.0, 30_000.0);
/// Limit of the bytes of decoded rows that a server caches.
const MOST_DECODED: f64 = (64 << 20) as f64;

/// A corpus and its division into shards, partitions and rounds.
pub(super) struct Division<'a> {
    pub frequencies: &'a [u64],
    pub lengths: &'a Lengths,
    pub repeats: &'a Repeats,
    pub topics: u32,
    pub options: Options,
    pub seed: u64,
    pub placement: Placement,
    /// True if workers push whole rows. Nodes of a cluster do so; a run in one process pushes deltas only.
    pub pushes_rows: bool,
}

/// Bytes per epoch, by kind of message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BytesByKind {
    /// Row lengths, which decide the routes.
    pub sizes: f64,
    /// Routes: which words are pulled.
    pub routes: f64,
    /// Pulled rows.
    pub rows: f64,
    /// Deltas of pulled rows.
    pub gained: f64,
    /// Pushed documents and their tokens.
    pub pushed: f64,
    /// New topics of pushed tokens.
    pub answers: f64,
    /// Totals C_k.
    pub totals: f64,
}

/// Bytes through the link of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// Bytes received.
    pub to: f64,
    /// Bytes sent.
    pub from: f64,
}

/// Projected cost of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Projected {
    /// Bytes that move.
    pub bytes: BytesByKind,
    /// Share of the tokens that servers sample.
    pub pushed: f64,
    /// Times that a document's row is sent per epoch: pushed documents over documents.
    pub sent: f64,
    /// Link of a worker.
    pub worker: Link,
    /// Link of the heaviest server.
    pub server: Link,
    /// Link of the master.
    pub master: Link,
    /// Bytes of the heaviest server over the mean.
    pub heaviest: f64,
    /// Bytes held by a worker.
    pub worker_memory: f64,
    /// Bytes held by the heaviest server.
    pub server_memory: f64,
    /// Bytes held by the master during start-up.
    pub master_memory: f64,
    /// CPU seconds of a worker.
    pub worker_seconds: f64,
    /// CPU seconds of the heaviest server, without ends of rounds.
    pub server_seconds: f64,
    /// CPU seconds of the heaviest server for ends of rounds.
    pub end_seconds: f64,
    /// Non-zeros of C_w.
    pub entries: f64,
    /// Encoded bytes of C_w.
    pub row_bytes: f64,
    /// Bytes of the longest reply to a pull.
    pub longest_pull: f64,
    /// Bytes of the longest push.
    pub longest_push: f64,
    /// Times, one per link rate.
    pub times: Vec<Time>,
}

/// Seconds per epoch at one link rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Time {
    /// Link rate in Gbit/s.
    pub gbit: f64,
    /// Seconds that the link of a worker is busy.
    pub worker: f64,
    /// Seconds that the link of the heaviest server is busy.
    pub server: f64,
    /// Seconds that the link of the master is busy.
    pub master: f64,
    /// Fixed cost of all rounds, without the workers' sampling.
    pub beside: f64,
    /// Sampling alone: the sum over rounds of the slowest shard.
    pub sampling: f64,
    /// Whole epoch if communication is hidden behind sampling.
    pub hidden: f64,
    /// Whole epoch if communication is not hidden.
    pub waited: f64,
    /// `hidden` with a thread per core, for which a worker needs as many shards, and a server as many slices.
    pub cores: f64,
}

/// Cost of one partition.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// CPU seconds of one shard on its worker.
    worker: f64,
    /// CPU seconds of the server, for all shards.
    server: f64,
    /// Bytes that the server receives from all shards.
    to: f64,
    /// Bytes that the server sends to all shards.
    from: f64,
    /// Non-zeros of the rows that one shard pulls.
    entries: f64,
    /// Tokens that one shard samples with pulled rows.
    tokens: f64,
    /// Encoded bytes of all rows.
    bytes: f64,
    /// Non-zeros of all rows.
    all_entries: f64,
    /// Non-zeros of rows that are rebuilt, over all rounds.
    ended: f64,
}

/// Upper bound of the bytes of a start message: 7 bits per byte, for the tokens and the documents
/// of each word.
pub(super) fn start_bytes(frequencies: &[u64]) -> f64 {
    let bytes = |&tokens: &u64| 2 * (tokens.max(1).ilog2() / 7 + 1);
    frequencies.iter().map(|tokens| f64::from(bytes(tokens))).sum()
}

impl<'a> Division<'a> {
    /// Places the words on servers.
    pub fn new(
        frequencies: &'a [u64],
        lengths: &'a Lengths,
        repeats: &'a Repeats,
        topics: u32,
        options: &Options,
        seed: u64,
    ) -> Result<Self, LabError> {
        let refuse = |error: &dyn std::error::Error| LabError::Value {
            key: "arm",
            value: format!("{} shards and {} servers", options.shards, options.servers),
            remedy: error.to_string(),
        };
        let words = u32::try_from(frequencies.len()).unwrap_or(u32::MAX);
        let spec = ModelSpec::new(topics, words, (50.0 / f64::from(topics)).into(), 0.01, seed)
            .map_err(|error| refuse(&error))?;
        let of_all = |&tokens: &u64| {
            let n = tokens as f64;
            let run = repeats.mean(n / lengths.documents());
            ((n / run).round() as u64).clamp(tokens.min(1), tokens)
        };
        let documents = frequencies.iter().map(of_all).collect();
        let words =
            WordStats::new(frequencies.to_vec(), documents).map_err(|error| refuse(&error))?;
        let squares = lengths
            .each()
            .iter()
            .map(|&(length, documents)| f64::from(length) * f64::from(length) * documents);
        let squares = squares.sum::<f64>() as u64;
        let known = placement::DocumentLengths { documents: lengths.documents() as u64, squares };
        let placement = place(&spec, options, &words, known).map_err(|error| refuse(&error))?;
        let pushes_rows = false;
        Ok(Self {
            frequencies,
            lengths,
            repeats,
            topics,
            options: *options,
            seed,
            placement,
            pushes_rows,
        })
    }

    /// The division of a cluster's run. Where rows stay at workers, which is where all are pulled and no two
    /// shards sample a word at the same time, rows of as many tokens in a shard as they have topics are pushed as
    /// wholes.
    pub fn of_cluster(self) -> Self {
        let Options { shards, rounds, sync, routing, .. } = self.options;
        let apart = u32::from(shards) * (1 + u32::from(sync.staleness()));
        let pushes_rows = routing == Routing::Pull && u32::from(rounds) >= apart;
        Self { pushes_rows, ..self }
    }

    fn tokens(&self) -> f64 {
        self.frequencies.iter().map(|&tokens| tokens as f64).sum()
    }

    /// Mean traffic of a (shard, partition) pair, and the pulled words. Partitions of hot words lie
    /// on several servers, are few and differ from the others: pairs of them are drawn separately
    /// and weighted by their number.
    pub fn pair(&self, sizes: &Sizes<'_>) -> (Moved, Vec<Pulled>) {
        let shards = f64::from(self.options.shards);
        let mut pairs = Pairs::new(sizes, self.lengths, self.repeats, &self.options, self.seed);
        pairs.pushes_rows = self.pushes_rows;
        let all = self.placement.num_partitions() as u32;
        let (hot, others): (Vec<u32>, Vec<u32>) =
            (0..all).partition(|&partition| self.placement.slices(partition).len() > 1);
        let (mut mean, mut by) = (Moved::default(), Vec::new());
        let mut rng = Rng::new(self.seed, 77);
        let mut number = 0;
        for alike in [others, hot].iter().filter(|alike| !alike.is_empty()) {
            let of_words = |&partition: &u32| {
                let words = self.placement.words(partition);
                words.map(|word| self.frequencies[word as usize])
            };
            let (words, tokens) = alike
                .iter()
                .flat_map(of_words)
                .fold((0.0, 0.0), |all, tokens| (all.0 + 1.0, all.1 + tokens as f64));
            let partitions = alike.len() as f64;
            let a_pair = (tokens / shards).max(words) / partitions;
            let count = (DRAWN / a_pair).clamp(PAIRS.0, PAIRS.1).min(partitions * shards).round();
            // Draws each partition equally often.
            let first = rng.below(alike.len() as u32) as usize;
            for step in 0..count as u64 {
                let step = (step as f64 * partitions / count.min(partitions)) as usize;
                let partition = alike[(first + step) % alike.len()];
                let moved = pairs.draw(of_words(&partition), number, &mut by);
                mean.add(&moved, partitions / f64::from(all) / count);
                number += 1;
            }
        }
        (mean, by)
    }

    /// Bytes of all pairs, without C_k.
    pub fn bytes(&self, mean: &Moved) -> BytesByKind {
        let all = self.placement.num_partitions() as f64 * f64::from(self.options.shards);
        let Moved { sizes, routes, rows, gained, pushed, answers, .. } = *mean;
        BytesByKind {
            sizes: all * sizes,
            routes: all * routes,
            rows: all * rows,
            gained: all * gained,
            pushed: all * pushed,
            answers: all * answers,
            totals: 0.0,
        }
    }

    /// Bytes of the change of C_k in a round: from one server, and summed over all.
    pub fn round_totals(&self, state: &State) -> (f64, f64) {
        let moves = self.tokens() * state.changed / f64::from(self.options.rounds);
        let mut rng = Rng::new(self.seed, 78);
        let servers = f64::from(self.options.servers);
        let of_server = totals(self.topics, moves / servers, &mut rng);
        (of_server, totals(self.topics, moves, &mut rng))
    }

    /// Bytes held by all shards when nothing is being sampled.
    pub fn shards_memory(&self, words: f64) -> f64 {
        let shards = f64::from(self.options.shards);
        let topics = self.topics as usize;
        let rows = self.lengths.each().iter().map(|&(length, documents)| {
            let one = Rows::<u16>::bytes(topics, std::iter::once(length.into()), Density::Auto);
            documents * (one as f64 + 20.0)
        });
        let of_shard =
            4.0 * f64::from(self.topics) * (2.0 + f64::from(self.options.sync.staleness()));
        6.0 * self.tokens() + rows.sum::<f64>() + shards * of_shard + 8.0 * words
    }

    /// Bytes held by all servers between two epochs. `row_bytes` is the encoded size of all rows.
    pub fn servers_memory(&self, mean: &Moved, row_bytes: f64) -> f64 {
        let (all, servers) = (self.frequencies.len() as f64, f64::from(self.options.servers));
        let pairs = self.placement.num_partitions() as f64 * f64::from(self.options.shards);
        let words = mean.words * pairs;
        // Decoded rows for sampling pushed tokens, cached or read on demand. Zero if nothing is
        // pushed.
        let each = self.frequencies.iter().copied();
        let counts = Rows::<u16>::bytes(self.topics as usize, each, Density::Auto) as f64;
        let is_kept = mean.pushed_tokens > 0.0
            && self.options.rounds < self.options.shards
            && counts < servers * MOST_DECODED;
        let kept = if is_kept { counts } else { 8.0 * servers * mean.row_entries };
        // Memory of the largest request, which is close to the mean one: decoded rows, document
        // rows, tokens.
        let request = mean.row_memory
            + 5.0 * mean.document_entries
            + 40.0 * mean.documents
            + 14.0 * mean.pushed_tokens;
        let row_bytes = row_bytes + kept + servers * request;
        // Words of shards and partitions with their token counts, row offsets, three arrays of K
        // numbers, and C_k.
        row_bytes + 4.0 * words + 20.0 * all + servers * 28.0 * f64::from(self.topics)
    }

    /// Cost of each partition.
    fn loads(&self, sizes: &Sizes<'_>, mean: &Moved, by: &[Pulled], rates: &Rates) -> Vec<Load> {
        let (shards, rounds) = (f64::from(self.options.shards), f64::from(self.options.rounds));
        let most = self.frequencies.iter().copied().max().unwrap_or(1);
        let classes = class(most) as usize + 1;
        let size: Vec<Size> = (0..classes as u32).map(|it| sizes.row_of_class(it)).collect();
        // A class that was not drawn takes the value of the next lower one.
        let mut ways = vec![(0.0, 0.0); classes];
        let mut last = if self.options.routing == Routing::Pull { (1.0, 1.0) } else { (0.0, 0.0) };
        for (at, way) in ways.iter_mut().enumerate() {
            if let Some(of) = by.get(at).filter(|of| of.words > 0.0) {
                last = (of.pulled / of.words, of.pulled_tokens / of.tokens);
            }
            *way = last;
        }
        let per = |of: f64, tokens: f64| if tokens > 0.0 { of / tokens } else { 0.0 };
        let document_entries = per(mean.document_entries, mean.pushed_tokens);
        let push_bytes = per(mean.pushed, mean.pushed_tokens);
        let answer_bytes = per(mean.answers, mean.pushed_tokens);
        let gained_bytes = per(mean.gained, mean.pulled_tokens);
        let gained_entries = per(mean.gained_entries, mean.pulled_tokens);
        let Rates { token, entry, asked_token, asked_entry, pushed_token, pushed_entry, .. } =
            *rates;
        let asked = asked_token + document_entries * asked_entry;
        let sampled = pushed_token + document_entries * pushed_entry;
        let documents = self.lengths.documents();
        let of_partition = |partition: u32| {
            let mut load = Load::default();
            for word in self.placement.words(partition) {
                let tokens = self.frequencies[word as usize] as f64;
                let class = class(tokens as u64) as usize;
                let (row, (pulled, pulled_tokens)) = (size[class], ways[class]);
                // Number of shards that contain the word.
                let run = self.repeats.mean(tokens / documents);
                let there = -(-tokens / (shards * run)).exp_m1() * shards;
                let (here, away) = (tokens * pulled_tokens, tokens * (1.0 - pulled_tokens));
                let is_whole = self.pushes_rows && row.entries <= tokens / there;
                if is_whole {
                    load.worker += there / shards * row.bytes * rates.written_byte;
                }
                load.worker += (here * token + away * asked) / shards
                    + there / shards * pulled * row.entries * entry;
                load.server += there * pulled * row.bytes * rates.served_byte
                    + here * gained_entries * rates.gained_entry
                    + away * sampled
                    + there * (1.0 - pulled) * row.entries * entry;
                load.to += here * gained_bytes + away * push_bytes;
                load.from += there * pulled * row.bytes + away * answer_bytes;
                load.entries += there / shards * pulled * row.entries;
                load.tokens += here / shards;
                load.bytes += row.bytes;
                load.all_entries += row.entries;
                // Rows without changes in a round stay as they are, and so do those that were pushed.
                let changed = -(-tokens * sizes.state.changed / rounds).exp_m1();
                if !is_whole {
                    load.ended += rounds * changed * row.entries;
                }
            }
            load
        };
        (0..self.placement.num_partitions() as u32).map(of_partition).collect()
    }

    /// Interpolates the measured rates to these documents.
    fn rates(&self, state: &State, rates: &[Rates]) -> Rates {
        let each = self.lengths.each().iter().map(|&(length, documents)| {
            let tokens = f64::from(length) * documents;
            (tokens, tokens * state.documents.entries(self.topics, length.into()))
        });
        let (tokens, topics) = each.fold((0.0, 0.0), |all, it| (all.0 + it.0, all.1 + it.1));
        Rates::of(rates, state.after, topics / tokens)
    }

    /// CPU seconds of all workers, and of all servers.
    pub fn seconds(
        &self,
        sizes: &Sizes<'_>,
        mean: &Moved,
        by: &[Pulled],
        rates: &[Rates],
    ) -> (f64, f64) {
        let rates = &self.rates(sizes.state, rates);
        let loads = self.loads(sizes, mean, by, rates);
        let ends = loads.iter().map(|load| load.ended).sum::<f64>() * rates.ended_entry;
        let workers: f64 = loads.iter().map(|load| load.worker).sum();
        let servers: f64 = loads.iter().map(|load| load.server).sum();
        (workers * f64::from(self.options.shards), servers + ends)
    }

    /// Projects an epoch.
    pub fn project(&self, sizes: &Sizes<'_>, rates: &[Rates], machine: &MachinePlan) -> Projected {
        let state = sizes.state;
        let rates = &self.rates(state, rates);
        let Options { shards, servers, rounds, .. } = self.options;
        let (shards, servers, rounds) = (f64::from(shards), f64::from(servers), f64::from(rounds));
        let (mean, by) = self.pair(sizes);
        let loads = self.loads(sizes, &mean, &by, rates);
        let partitions = loads.len() as f64;
        let (of_server, of_all) = self.round_totals(state);
        let mut bytes = self.bytes(&mean);
        bytes.totals = rounds * (servers * of_server + (servers + shards) * of_all);
        let by_server = |of: &dyn Fn(&Load) -> f64| {
            let mut all = vec![0.0; self.options.servers as usize];
            for (partition, load) in (0..).zip(&loads) {
                let slices = self.placement.slices(partition);
                let part = of(load) / slices.len() as f64;
                slices.for_each(|slice| all[self.placement.server(slice) as usize] += part);
            }
            all
        };
        let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
        let by_bytes = by_server(&|load| load.to + load.from);
        let heaviest = most(&by_bytes) / (by_bytes.iter().sum::<f64>() / servers);
        let (to, from) = mean.both_ways();
        let link = |nodes: f64| Link {
            to: partitions * shards * to / nodes,
            from: partitions * shards * from / nodes,
        };
        let a_round = rounds * of_all;
        let (of_servers, of_workers) = (link(servers), link(shards));
        let words = mean.words * partitions * shards;
        let row_bytes: f64 = loads.iter().map(|load| load.bytes).sum();
        let entries: f64 = loads.iter().map(|load| load.all_entries).sum();
        let largest = loads.iter().map(|load| 16.0 * load.entries + 14.0 * load.tokens);
        // Token and document frequencies, 8 bytes each.
        let frequencies = 16.0 * self.frequencies.len() as f64;
        let start = start_bytes(self.frequencies);
        // Deltas of a round, with capacity for twice as much.
        let gained = (mean.gained_entries * partitions * shards
            + 2.0 * mean.pushed_tokens * state.changed * partitions * shards)
            / (rounds * servers);
        let changes = 32.0 * gained.min(1.3 * entries / servers);
        let at_rest = self.servers_memory(&mean, row_bytes) / servers;
        let mut projected = Projected {
            bytes,
            pushed: mean.pushed_tokens / (mean.pushed_tokens + mean.pulled_tokens),
            sent: mean.documents * partitions * shards / self.lengths.documents(),
            worker: Link { to: of_workers.from + a_round, from: of_workers.to },
            server: Link {
                to: heaviest * of_servers.to + a_round,
                from: heaviest * of_servers.from + rounds * of_server,
            },
            master: Link {
                to: rounds * servers * of_server,
                from: rounds * (servers + shards) * of_all,
            },
            heaviest,
            worker_memory: self.shards_memory(words) / shards
                + most(&largest.collect::<Vec<_>>())
                + 2.0 * frequencies,
            // Rows before and after the round coexist while a round ends.
            server_memory: heaviest * (at_rest + row_bytes / servers + changes) + 2.0 * frequencies,
            // Plus the start message and its copies in flight.
            master_memory: 2.0 * frequencies
                + start
                + (start * servers.max(shards)).min(start.max(BROADCAST_BYTES as f64)),
            worker_seconds: loads.iter().map(|load| load.worker).sum(),
            server_seconds: most(&by_server(&|load| load.server)),
            end_seconds: loads.iter().map(|load| load.ended).sum::<f64>() / servers
                * rates.ended_entry,
            entries,
            row_bytes,
            longest_pull: most(&loads.iter().map(|load| load.from / shards).collect::<Vec<_>>()),
            longest_push: most(&loads.iter().map(|load| load.to / shards).collect::<Vec<_>>()),
            times: Vec::new(),
        };
        let times = machine.gbit.iter().map(|&gbit| self.time(&projected, &loads, gbit, machine));
        projected.times = times.collect();
        projected
    }

    fn time(&self, of: &Projected, loads: &[Load], gbit: f64, machine: &MachinePlan) -> Time {
        let Options { shards, servers, rounds, sync, .. } = self.options;
        let bytes_a_second = gbit * 1e9 / 8.0;
        let over = |link: &Link| link.to.max(link.from) / bytes_a_second;
        let (worker, server, master) = (over(&of.worker), over(&of.server), over(&of.master));
        let nodes = f64::from(shards) + f64::from(servers);
        let (all, of_shard) = (f64::from(rounds), f64::from(shards));
        // Per round: end and its reply, begin to servers and its reply, begin to workers, and done.
        let messages = 2.0 * f64::from(servers) + nodes;
        let ends = of.end_seconds / all;
        let beside = 6.0 * machine.latency_ms / 1e3
            + messages * machine.message_us / 1e6
            + master / all
            + ends;
        let first = |group: u64| (group * loads.len() as u64 / u64::from(rounds)) as usize;
        let groups = |network: bool, cores: f64| -> Vec<f64> {
            let of_group = |group: u64| {
                let own = &loads[first(group)..first(group + 1)];
                let here: f64 = own.iter().map(|load| load.worker).sum();
                let there: f64 = own.iter().map(|load| load.server).sum::<f64>() / of_shard;
                let moves: f64 = own.iter().map(|load| load.to + load.from).sum::<f64>() / of_shard;
                let sampled = here.max(there) / cores;
                if network { sampled + moves / bytes_a_second } else { sampled }
            };
            (0..u64::from(rounds)).map(of_group).collect()
        };
        let seconds = |groups: &[f64], beside| {
            rounds::seconds(groups, shards.into(), sync.staleness(), beside)
        };
        let alone = groups(false, 1.0);
        let bound = |cores: f64| {
            let at_servers = (of.server_seconds + of.end_seconds) / cores;
            worker.max(server).max(master).max(at_servers)
        };
        Time {
            gbit,
            worker,
            server,
            master,
            beside,
            sampling: seconds(&alone, 0.0),
            hidden: seconds(&alone, beside).max(bound(1.0)),
            waited: seconds(&groups(true, 1.0), beside).max(bound(1.0)),
            cores: seconds(&groups(false, machine.cores), beside - ends + ends / machine.cores)
                .max(bound(machine.cores)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{CorpusPlan, ScaleArm, ScalePlan};
    use super::super::state::Curve;
    use super::super::words::frequencies;
    use super::*;

    fn beginning() -> State {
        State {
            after: 0,
            words: Curve::default(),
            documents: Curve::default(),
            changed: 0.9,
            within: 0.3,
            largest: 1.0,
        }
    }

    fn projected(arm: &ScaleArm, machines: u16) -> Projected {
        let CorpusPlan { exponent, shift, spread, .. } = CorpusPlan::default();
        let each = frequencies(20_000, 10_000_000, exponent, shift, 1);
        let lengths = Lengths::log_normal(100_000.0, 100.0, spread);
        let state = beginning();
        let rates = Rates { token: 1e-6, pushed_token: 1e-6, ..Rates::default() };
        let (options, repeats) = (arm.options(machines), Repeats::default());
        let division = Division::new(&each, &lengths, &repeats, 500, &options, 1).unwrap();
        division.project(&Sizes::new(500, &state, 1), &[rates], &ScalePlan::default().machine)
    }

    #[test]
    fn projections_are_consistent() {
        let pull =
            ScaleArm { routing: super::super::super::traffic::Route::Pull, ..ScaleArm::default() };
        let (symmetric, asymmetric) = (projected(&pull, 50), projected(&ScaleArm::default(), 50));
        assert_eq!((symmetric.pushed, symmetric.bytes.pushed), (0.0, 0.0));
        assert!(asymmetric.bytes.total() < symmetric.bytes.total() * 1.01);
        // Ten million tokens at one microsecond, on fifty workers.
        assert!((symmetric.worker_seconds - 0.2).abs() < 1e-3, "{symmetric:?}");
        for of in [&symmetric, &asymmetric] {
            // Servers receive what workers send; C_k travels through the master.
            let moved = of.bytes.total() - of.bytes.totals;
            let by_workers =
                50.0 * (of.worker.to + of.worker.from) - 50.0 * (of.master.from / 2.0 / 50.0);
            assert!((by_workers / moved - 1.0).abs() < 1e-3, "{by_workers} and {moved}");
            assert!(of.heaviest >= 1.0 && of.entries > 0.0);
            for time in &of.times {
                assert!(time.sampling >= of.worker_seconds * 0.999, "{time:?}");
                assert!(time.waited >= time.hidden && time.hidden >= time.sampling, "{time:?}");
            }
            assert!(of.times[0].worker > of.times[1].worker);
        }
    }

    #[test]
    fn a_few_pairs_stand_for_all_where_words_are_hot() {
        // Enough tokens that few pairs are drawn, and enough servers that frequent words lie on
        // several.
        let each = frequencies(20_000, 300_000_000_000, 1.2, 30.0, 1);
        let lengths = Lengths::log_normal(3e9, 100.0, 1.0);
        let state = beginning();
        let arm =
            ScaleArm { routing: super::super::super::traffic::Route::Pull, ..ScaleArm::default() };
        let (options, repeats) = (arm.options(400), Repeats::default());
        let division = Division::new(&each, &lengths, &repeats, 2000, &options, 1).unwrap();
        let all = division.placement.num_partitions() as u32;
        let is_hot = |&partition: &u32| division.placement.slices(partition).len() > 1;
        assert!((0..all).filter(is_hot).count() > 4);
        let (mean, _) = division.pair(&Sizes::new(2000, &state, 1));
        let pairs = f64::from(all) * 400.0;
        // Every shard contains every word.
        assert!((mean.words * pairs / 8e6 - 1.0).abs() < 0.02, "{mean:?}, {all} partitions");
        assert!((mean.pulled_tokens * pairs / 3e11 - 1.0).abs() < 0.1, "{mean:?}");
    }

    /// Rows that a worker pushes as wholes take bytes and no server's time.
    #[test]
    fn rows_are_pushed_as_wholes_where_they_stay() {
        let each = frequencies(20_000, 10_000_000, 1.2, 30.0, 1);
        let lengths = Lengths::log_normal(100_000.0, 100.0, 1.0);
        let (state, repeats) = (beginning(), Repeats::default());
        let pull =
            ScaleArm { routing: super::super::super::traffic::Route::Pull, ..ScaleArm::default() };
        let takes = |arm: &ScaleArm, of_cluster: bool| {
            let options = arm.options(10);
            let division = Division::new(&each, &lengths, &repeats, 500, &options, 1).unwrap();
            let division = if of_cluster { division.of_cluster() } else { division };
            division.project(&Sizes::new(500, &state, 1), &[], &ScalePlan::default().machine)
        };
        let [merged, whole] = [false, true].map(|of_cluster| takes(&pull, of_cluster));
        assert!(whole.bytes.gained > merged.bytes.gained, "{whole:?}, {merged:?}");
        assert!(whole.bytes.rows == merged.bytes.rows && whole.bytes.total() > 0.0);
        let together = ScaleArm { rounds: Some(5), ..pull };
        assert_eq!(takes(&together, true), takes(&together, false));
    }

    #[test]
    fn fewer_rounds_move_less_and_wait_less() {
        let once = ScaleArm { rounds: Some(1), ..ScaleArm::default() };
        let (many, one) = (projected(&ScaleArm::default(), 50), projected(&once, 50));
        assert!(one.bytes.totals < many.bytes.totals / 5.0);
        assert!(one.times[0].sampling < many.times[0].sampling);
        assert!(one.end_seconds <= many.end_seconds);
    }
}
