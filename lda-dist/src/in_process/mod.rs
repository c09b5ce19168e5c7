//! Shards and servers in one process, round by round: what every other way of running them has to come to.
//!
//! A round is **bulk-synchronous**: all that is pulled in it is as of its start, a shard sees its own changes and no
//! others, and what all have changed comes in when it ends. So neither the order of shards matters nor who works on
//! them, and any number of workers, over any transport, gives these bits.
//!
//! An epoch has R rounds and partitions are in R groups. In round r shard s of S has group (r + ⌊s R / S⌋) mod R: where
//! there are as many rounds as shards no two shards sample the same word in a round, and all that is stale is C_k, by a
//! round. That is what `lda_core` does with its waves. With one round all shards sample each word at once, by counts
//! that are an epoch old (AD-LDA, Newman et al. 2009): fewer barriers, and a worse model. On kos with K = 100 the log
//! joint a token after 200 epochs was −8.32 in one process, −8.34 with one shard, −8.33 with four and four rounds,
//! −8.33 with eight and eight; and −8.47 with four shards and one round, −8.48 with eight.
//!
//! With [staleness](crate::config::Options::staleness) of s rounds overlap: round c begins when round c − s − 1 has ended, everywhere, and
//! what is pulled in it is as of then. Nobody waits for the slowest of the round before, and the bits are still those
//! of any order. That makes counts older by s rounds; with (1 + s) S rounds no two shards sample the same word in
//! rounds that overlap, so that rows of C_w are as fresh as before, and C_k is of as many tokens ago. What a shard has
//! changed itself it knows; a server that samples for it knows it s rounds later, in C_k.
//!
//! Of a shard's own tokens those that are sampled on a server are counted in C_d and C_w at once, and in C_k from the
//! shard's next partition on.
//!
//! Everything that would travel is written and read as it would be, and counted ([`Bytes`]); nothing is sent.
//!
//! ```
//! use lda_core::Corpus;
//! use lda_core::eval::log_joint;
//! use lda_dist::spec::ModelSpec;
//! use lda_dist::config::Options;
//! use lda_dist::in_process::InProcess;
//!
//! let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
//! let spec = ModelSpec::new(4, 8, 0.1.into(), 0.01, 42)?;
//! let mut run = InProcess::<u16>::new(&spec, &corpus, &Options { shards: 3, ..Options::default() })?;
//! let before = log_joint(&run, spec.alpha(), spec.beta())?.total();
//! for _ in 0..20 {
//!     run.epoch()?;
//! }
//! assert!(log_joint(&run, spec.alpha(), spec.beta())?.total() > before);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;

use std::collections::VecDeque;
use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};

use crate::config::Options;
use crate::partition_sampler::{PartitionSampler, SliceRows};
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::{cut, group, needs_sizes, place, routes};
use crate::request::{self, Kind, RequestHeader, put_routes, size_of_byte};
use crate::route::Route;
use crate::server::Server;
use crate::shard::{Shard, TransferStats};
use crate::spec::{ModelSpec, Round};
use crate::stats::Bytes;
use crate::wire::{Document, PushCode, RowCode};

pub use error::InProcessError;

/// Something that happens in an epoch, for who [watches](InProcess::epoch_watched).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// A server begins to work: what time it takes is for who watches to tell.
    Begins {
        /// Which.
        server: u32,
    },
    /// It has done what it was asked, or has ended a round.
    Ends {
        /// Which.
        server: u32,
    },
    /// A shard has asked a server, which has answered.
    Exchange(Exchange<'a>),
}

/// A request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// Who was asked.
    pub server: u32,
    /// What was asked.
    pub kind: Kind,
    /// Bytes there.
    pub request: u64,
    /// Bytes back.
    pub reply: u64,
    /// Rows that were pulled, or what they have gained; else none. Those of several slices are told of with the first.
    pub rows: u64,
    /// Topics of all of them.
    pub entries: u64,
    /// Documents that were pushed; else empty.
    pub documents: &'a [Document],
}

/// Who watches.
type Watch<'a, 'b> = &'a mut (dyn FnMut(Happening<'_>) + 'b);

/// A run.
#[derive(Debug)]
pub struct InProcess<T: TopicIndex> {
    spec: ModelSpec,
    options: Options,
    placement: Placement,
    shards: Vec<Shard<T>>,
    /// First document of each shard, and the end.
    firsts: Vec<usize>,
    servers: Vec<Server<T>>,
    sampler: PartitionSampler<T>,
    totals: Vec<u32>,
    /// Rounds that are on, and C_k of when each was begun.
    rounds: VecDeque<(Round, Vec<u32>)>,
    /// The last that was begun.
    begun: Round,
}

impl<T: TopicIndex> InProcess<T> {
    /// Cuts documents and words, and counts the first topics.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub fn new(
        spec: &ModelSpec,
        corpus: &Corpus,
        options: &Options,
    ) -> Result<Self, InProcessError> {
        let shards = options.shards;
        let firsts = cut(corpus, shards)?;
        let placement = place(spec, options, &WordStats::of(corpus), DocumentLengths::of(corpus))?;
        let shards = (0..shards).zip(firsts.windows(2)).map(|(number, ends)| {
            let documents = ends[0]..ends[1];
            Shard::new(spec, options.hybrid, &placement, number, corpus, documents, 0)
        });
        let shards = shards.collect::<Result<Vec<Shard<T>>, _>>()?;
        let of_server = |server: u32| {
            let own = placement.slices_on(server, spec.topics());
            Server::new(spec, options, Round::joining(0, 0), own)
        };
        let mut run = Self {
            servers: (0..placement.num_servers()).map(of_server).collect(),
            spec: spec.clone(),
            options: *options,
            shards,
            firsts,
            sampler: PartitionSampler::new(spec.topics()),
            totals: vec![0; spec.topics() as usize],
            rounds: VecDeque::new(),
            begun: Round::joining(0, 0),
            placement,
        };
        run.count()?;
        (0..=options.staleness).for_each(|_| run.begin_round());
        Ok(run)
    }

    /// Brings the shards' first topics to the servers.
    fn count(&mut self) -> Result<(), InProcessError> {
        let mut request = Vec::new();
        for slice in 0..self.placement.num_slices() as u32 {
            let server = &mut self.servers[self.placement.server(slice) as usize];
            for shard in &self.shards {
                request.clear();
                let joining = Round::joining(0, 0);
                shard.join(&self.spec, &self.placement, slice as u16, joining, &mut request);
                server.serve(&request, &mut Vec::new())?;
            }
        }
        self.end_round(Round::joining(0, 0), &mut |_| {})?;
        Ok(())
    }

    /// Begins the round after the last that is on.
    fn begin_round(&mut self) {
        self.begun = self.begun.next(self.options.rounds);
        let round = self.begun;
        self.servers.iter_mut().for_each(|server| server.begin_round(round, &self.totals));
        self.rounds.push_back((round, self.totals.clone()));
    }

    /// Ends a round; returns the bytes of C_k.
    fn end_round(
        &mut self,
        round: Round,
        watch: &mut dyn FnMut(Happening<'_>),
    ) -> Result<u64, InProcessError> {
        let code = RowCode::new(self.spec.topics());
        let mut bytes = 0;
        let mut all = vec![0i64; self.totals.len()];
        let mut of_server = all.clone();
        for (number, server) in (0..).zip(&mut self.servers) {
            of_server.fill(0);
            watch(Happening::Begins { server: number });
            server.end_round(round, &mut of_server)?;
            watch(Happening::Ends { server: number });
            bytes += code.size(&sparse(&of_server)) as u64;
            all.iter_mut().zip(&of_server).for_each(|(all, of_server)| *all += of_server);
        }
        for (topic, (total, change)) in self.totals.iter_mut().zip(&all).enumerate() {
            let tokens = i64::from(*total) + change;
            *total = u32::try_from(tokens).map_err(|_| InProcessError::Total { topic, tokens })?;
        }
        bytes += code.size(&sparse(&all)) as u64 * (self.servers.len() + self.shards.len()) as u64;
        Ok(bytes)
    }

    /// Samples every token once; returns the bytes that this would take to move.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub fn epoch(&mut self) -> Result<Bytes, InProcessError> {
        let order: Vec<usize> = (0..self.shards.len()).collect();
        self.epoch_in_order(&order)
    }

    /// The same, shards in this order, which does not matter.
    ///
    /// # Errors
    /// [`InProcessError`].
    ///
    /// # Panics
    /// If a number is not of a shard.
    pub fn epoch_in_order(&mut self, order: &[usize]) -> Result<Bytes, InProcessError> {
        self.run_epoch(order, &mut |_| {})
    }

    /// The same, and `watch` is told what happens.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub fn epoch_watched(
        &mut self,
        watch: &mut dyn FnMut(Happening<'_>),
    ) -> Result<Bytes, InProcessError> {
        let order: Vec<usize> = (0..self.shards.len()).collect();
        self.run_epoch(&order, watch)
    }

    fn run_epoch(
        &mut self,
        order: &[usize],
        watch: &mut dyn FnMut(Happening<'_>),
    ) -> Result<Bytes, InProcessError> {
        let mut bytes = Bytes::default();
        order.iter().for_each(|&shard| self.shards[shard].begin_epoch(&self.spec));
        for number in 0..self.options.rounds {
            let Some((round, totals)) = self.rounds.pop_front() else { break };
            for &shard in order {
                let Self { spec, options, shards, sampler, .. } = &mut *self;
                shards[shard].begin_round(&totals, options.staleness)?;
                if number == 0 {
                    shards[shard].sample_documents(sampler, spec, round, &totals);
                }
                for partition in group(&self.options, &self.placement, shard as u16, number) {
                    bytes.add(&self.exchange(shard, partition, round, &totals, watch)?);
                }
            }
            bytes.totals += self.end_round(round, watch)?;
            self.begin_round();
        }
        Ok(bytes)
    }

    /// One partition of one shard; returns the bytes that this would take to move.
    fn exchange(
        &mut self,
        shard: usize,
        partition: u16,
        round: Round,
        totals: &[u32],
        watch: &mut dyn FnMut(Happening<'_>),
    ) -> Result<Bytes, InProcessError> {
        let Self { spec, options, placement, shards, servers, sampler, .. } = self;
        let shard = &mut shards[shard];
        let words = shard.words(partition).len();
        let mut bytes = Bytes::default();
        if words == 0 {
            return Ok(bytes);
        }
        let of_shard = shard.header(partition, round);
        let mut ask = |slice: u16, kind: Kind, body: &[u8], watch: Watch<'_, '_>| {
            let number = placement.server(slice.into());
            let (mut request, mut reply) = (Vec::new(), Vec::new());
            request::begin(kind, &RequestHeader { slice, ..of_shard }, &mut request);
            request.extend_from_slice(body);
            watch(Happening::Begins { server: number });
            servers[number as usize].serve(&request, &mut reply)?;
            watch(Happening::Ends { server: number });
            let (there, back) = (request.len() as u64, reply.len() as u64);
            let seen = Exchange {
                server: number,
                kind,
                request: there,
                reply: back,
                rows: 0,
                entries: 0,
                documents: &[],
            };
            Ok::<_, InProcessError>((reply, seen))
        };
        let mut sizes = Vec::new();
        if needs_sizes(options, placement, partition) {
            let (found, seen) = ask(partition, Kind::Sizes, &[], watch)?;
            bytes.sizes += seen.request + seen.reply;
            watch(Happening::Exchange(seen));
            sizes.extend(found.into_iter().map(size_of_byte));
        }
        let routes = routes(options, placement, shard, partition, &sizes);
        let plan = shard.request(partition, routes);
        let code = PushCode::new(spec.topics(), words as u32, options.max_pushed_len);
        let (mut body, mut answer) = (Vec::new(), Vec::new());
        plan.pushed.iter().for_each(|document| code.encode(document, &mut body));
        if !body.is_empty() {
            let (reply, seen) = ask(partition, Kind::Push, &body, watch)?;
            answer = reply;
            bytes.pushed += seen.request;
            bytes.answers += seen.reply;
            watch(Happening::Exchange(Exchange { documents: &plan.pushed, ..seen }));
        }
        if plan.routes.contains(&Route::Pull) {
            body.clear();
            put_routes(&plan.routes, &mut body);
            let mut pulled = Vec::new();
            for slice in placement.slices(partition.into()) {
                let (rows, seen) = ask(slice as u16, Kind::Pull, &body, watch)?;
                bytes.routes += seen.request;
                bytes.rows += seen.reply;
                pulled.push((slice, rows, seen));
            }
            let topics = |slice| placement.slice(slice, spec.topics()).1;
            let mut slices = Vec::new();
            for (slice, rows, _) in &pulled {
                slices.push(SliceRows { topics: topics(*slice), rows, deltas: body.clone() });
            }
            let passes = options.passes;
            let moved = shard.sample(
                sampler,
                spec,
                round,
                partition,
                &plan,
                passes,
                totals,
                &mut slices,
            )?;
            let gained: Vec<Vec<u8>> = slices.into_iter().map(|slice| slice.deltas).collect();
            // Told with the first slice's.
            let mut moved = Some(moved);
            for ((slice, _, seen), gained) in pulled.into_iter().zip(gained) {
                let TransferStats { rows, pulled: entries, gained: changes } =
                    moved.take().unwrap_or_default();
                watch(Happening::Exchange(Exchange { rows, entries, ..seen }));
                let (_, seen) = ask(slice as u16, Kind::PushDeltas, &gained, watch)?;
                bytes.gained += seen.request;
                watch(Happening::Exchange(Exchange { rows, entries: changes, ..seen }));
            }
        }
        shard.answered(code, partition, &plan, &answer)?;
        Ok(bytes)
    }

    /// Every token: `f(document, word, topic)`.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32, u32)) {
        for (shard, &first) in self.shards.iter().zip(&self.firsts) {
            shard.for_each(|document, word, topic| f(document + first as u32, word, topic));
        }
    }

    /// The shards.
    pub fn shards(&self) -> &[Shard<T>] {
        &self.shards
    }

    /// The servers.
    pub fn servers(&self) -> &[Server<T>] {
        &self.servers
    }

    /// C_k.
    pub fn totals(&self) -> &[u32] {
        &self.totals
    }
}

/// What there is of numbers by topic.
fn sparse(numbers: &[i64]) -> Vec<(u32, i32)> {
    let there = numbers.iter().enumerate().filter(|(_, number)| **number != 0);
    // Sizes are all that is asked for; a change beyond 31 bits is written in as many as one of 31.
    there
        .map(|(topic, &by)| (topic as u32, by.clamp(-i64::from(i32::MAX), i32::MAX.into()) as i32))
        .collect()
}

impl<T: TopicIndex> DocumentCounts for InProcess<T> {
    fn num_topics(&self) -> usize {
        self.spec.topics() as usize
    }

    fn num_documents(&self) -> usize {
        self.firsts[self.shards.len()]
    }

    fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>) {
        let mut row = Vec::new();
        for document in documents {
            let shard = self.firsts.partition_point(|&first| first <= document) - 1;
            self.shards[shard].row(document - self.firsts[shard], &mut row);
            visit(document, &row);
        }
    }
}

impl<T: TopicIndex> WordCounts for InProcess<T> {
    fn num_topics(&self) -> usize {
        self.spec.topics() as usize
    }

    fn num_words(&self) -> usize {
        self.spec.words() as usize
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic].into()
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        let mut row = Vec::new();
        for word in words {
            row.clear();
            for slice in self.placement.slices(self.placement.partition(word as u32)) {
                let server = self.placement.server(slice) as usize;
                self.servers[server].row(slice as u16, word as u32, &mut row);
            }
            visit(word, &row);
        }
    }
}
