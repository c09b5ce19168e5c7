//! In-process reference implementation: all shards and servers in one process, round by round.
//!
//! Every distributed run must produce the bits of this one.
//!
//! Without staleness, rounds are **bulk-synchronous**: rows that are pulled in a round are those of its start, a shard
//! sees its own changes and no others, and the changes of all shards are added at its end. So
//! results depend neither on the order of the shards nor on the workers that sample them, and any
//! number of workers over any transport produces the same bits.
//!
//! An epoch has R rounds, and the partitions are in R groups. In round r shard s of S samples group
//! (r + ⌊s R / S⌋) mod R. With at least as many rounds as shards no two shards sample the same word
//! in a round, and only C_k is stale, by one round; `lda_core` does the same with its waves. With
//! one round all shards sample every word at once from counts that are an epoch old (AD-LDA, Newman
//! et al. 2009): fewer barriers, and a worse model. On kos with K = 100 the log joint per token
//! after 200 epochs was −8.32 in one process, −8.34 with one shard, −8.33 with four shards and four
//! rounds, −8.33 with eight and eight; and −8.47 with four shards and one round, −8.48 with eight
//! shards and one round.
//!
//! With a [staleness](crate::config::Options::sync) of s rounds overlap: round c starts when
//! round c − s − 1 has ended everywhere, and reads the counts of that moment. No worker waits for
//! the slowest worker of the round before, and the bits still do not depend on any order. Counts
//! are s rounds older than without staleness. With (1 + s) S rounds no two shards sample the same
//! word in overlapping rounds, so rows of C_w are as fresh as before, and C_k is old by as many
//! tokens as before. A shard knows its own changes at once. A server that samples for a shard sees
//! the shard's changes of C_k s rounds later.
//!
//! A shard's tokens that are sampled on a server are counted in C_d and C_w at once, and in C_k
//! from the shard's next partition on.
//!
//! Every message is encoded, decoded and counted ([`Bytes`]), but not sent.
//!
//! ```
//! use lda_core::Corpus;
//! use lda_core::eval::log_joint;
//! use lda_dist::config::Options;
//! use lda_dist::in_process::InProcess;
//! use lda_dist::spec::ModelSpec;
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
mod event;
mod exchange;

use std::collections::VecDeque;
use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};
use lda_core::prior::learn::CountHistograms;
use lda_core::train::Learn;

use crate::config::Options;
use crate::partition_sampler::{PartitionSampler, RoundContext};
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::{cut, group, place};
use crate::priors::Priors;
use crate::server::Server;
use crate::shard::{Shard, ShardDocuments};
use crate::spans::span;
use crate::spec::{ModelSpec, Round};
use crate::stats::Bytes;
use crate::trip::TripContext;
use crate::wire::RowCode;

pub use error::InProcessError;
use event::Observer;
pub use event::{Event, Exchange};
use exchange::Servers;

/// A run in one process.
#[derive(Debug)]
pub struct InProcess<T: TopicIndex> {
    /// The model with the priors of the current epoch.
    spec: ModelSpec,
    options: Options,
    placement: Placement,
    shards: Vec<Shard<T>>,
    /// First document of each shard, and the end.
    firsts: Vec<usize>,
    servers: Vec<Server<T>>,
    sampler: PartitionSampler<T>,
    /// C_k after the last round.
    totals: Vec<u32>,
    /// Open rounds in order, each with C_k at its start.
    rounds: VecDeque<(Round, Vec<u32>)>,
    /// The last round that was started.
    begun: Round,
    /// Priors that have been learnt for the next epoch.
    learnt: Option<Priors>,
}

impl<T: TopicIndex> InProcess<T> {
    /// Cuts documents and words, and counts the first topics.
    ///
    /// # Errors
    /// [`InProcessError`] if the options are invalid, or do not fit the corpus.
    pub fn new(
        spec: &ModelSpec,
        corpus: &Corpus,
        options: &Options,
    ) -> Result<Self, InProcessError> {
        let shards = options.shards;
        let firsts = cut(corpus, shards)?;
        let placement = place(spec, options, &WordStats::of(corpus), DocumentLengths::of(corpus))?;
        let shards = (0..shards).zip(firsts.windows(2)).map(|(number, ends)| {
            let documents = ShardDocuments { corpus, range: ends[0]..ends[1], first: 0 };
            Shard::new(spec, options.hybrid, &placement, number, documents)
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
            sampler: PartitionSampler::new(spec.topics(), options.sampler),
            totals: vec![0; spec.topics() as usize],
            rounds: VecDeque::new(),
            begun: Round::joining(0, 0),
            learnt: None,
            placement,
        };
        run.join()?;
        run.begin_rounds(Round::joining(0, 0));
        Ok(run)
    }

    /// Sends the shards' first counts to the servers.
    fn join(&mut self) -> Result<(), InProcessError> {
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

    /// Starts the rounds that may be open after this one has ended, and learns priors if that is due.
    fn begin_rounds(&mut self, ended: Round) {
        let Options { rounds, .. } = self.options;
        let is_last = ended.is_last(rounds);
        if is_last {
            self.learn(ended.epoch);
        }
        // An epoch whose priors are learnt starts when the one before has ended.
        let current = ended.epoch + u32::from(is_last);
        let last_epoch = self.spec.updates().next_update(current, u32::MAX);
        let open = self.options.sync.open_from(ended.next(rounds), rounds);
        let begun = self.begun;
        for round in open.skip_while(|open| *open <= begun) {
            if round.epoch > last_epoch {
                break;
            }
            self.begun = round;
            self.servers.iter_mut().for_each(|server| server.begin_round(round, &self.totals));
            self.rounds.push_back((round, self.totals.clone()));
        }
    }

    /// Learns the priors of the next epoch, if that is due after this one.
    fn learn(&mut self, epoch: u32) {
        let Some(learn) = self.spec.updates().due_after(epoch) else { return };
        let Priors { mut alpha, mut beta } = self.spec.priors();
        let topics = self.spec.topics() as usize;
        if let Some(mut documents) = learn.document_histograms(topics) {
            documents.add_documents(self);
            alpha = learn.next_alpha(&alpha, topics, &mut documents);
        }
        if learn.beta {
            let mut words = CountHistograms::of_all_topics();
            words.add_words(self);
            beta = words.beta(self.spec.words() as usize, beta, Learn::STEPS);
        }
        let priors = Priors { alpha, beta };
        for server in &mut self.servers {
            server.set_priors(&priors).expect("learnt priors are finite, and above 0");
        }
        self.learnt = Some(priors);
    }

    /// Ends a round; returns the bytes of C_k.
    fn end_round(&mut self, round: Round, observer: Observer<'_>) -> Result<u64, InProcessError> {
        let code = RowCode::new(self.spec.topics());
        let mut bytes = 0;
        let mut all = vec![0i64; self.totals.len()];
        let mut of_server = all.clone();
        for (number, server) in (0..).zip(&mut self.servers) {
            of_server.fill(0);
            observer(Event::Begins { server: number });
            server.end_round(round, &mut of_server)?;
            observer(Event::Ends { server: number });
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

    /// Samples every token once; returns the bytes that a distributed run would move.
    ///
    /// # Errors
    /// [`InProcessError::Total`] if a count overflows.
    pub fn epoch(&mut self) -> Result<Bytes, InProcessError> {
        self.epoch_watched(&mut |_| {})
    }

    /// Like [`epoch`](Self::epoch), with the shards in this order. Results do not depend on it.
    ///
    /// # Errors
    /// See [`epoch`](Self::epoch).
    ///
    /// # Panics
    /// If a number in `order` is not that of a shard.
    pub fn epoch_in_order(&mut self, order: &[usize]) -> Result<Bytes, InProcessError> {
        self.run_epoch(order, &mut |_| {})
    }

    /// Like [`epoch`](Self::epoch), and passes every [`Event`] to `observer`.
    ///
    /// # Errors
    /// See [`epoch`](Self::epoch).
    pub fn epoch_watched(
        &mut self,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Bytes, InProcessError> {
        let order: Vec<usize> = (0..self.shards.len()).collect();
        self.run_epoch(&order, observer)
    }

    fn run_epoch(
        &mut self,
        order: &[usize],
        observer: Observer<'_>,
    ) -> Result<Bytes, InProcessError> {
        let mut bytes = Bytes::default();
        let epoch = self.rounds.front().map_or(0, |(round, _)| round.epoch);
        order
            .iter()
            .for_each(|&shard| self.shards[shard].begin_epoch(&self.spec, &self.options, epoch));
        if let Some(learnt) = self.learnt.take() {
            self.spec = self.spec.with_priors(&learnt).expect("priors that were checked");
        }
        if let Some((_, totals)) = self.rounds.front()
            && let Some(spec) = self.spec.by_size(totals)
        {
            self.spec = spec;
        }
        for number in 0..self.options.rounds {
            let Some((round, totals)) = self.rounds.pop_front() else { break };
            let _span = span!(INFO, "round", epoch = round.epoch, round = round.number);
            for &shard in order {
                self.run_shard(shard, (round, &totals), &mut bytes, observer)?;
            }
            debug_assert_eq!(round.number, number, "rounds are in order");
            bytes.totals += self.end_round(round, observer)?;
            self.begin_rounds(round);
        }
        Ok(bytes)
    }

    /// One round of one shard, with C_k at the round's start.
    fn run_shard(
        &mut self,
        number: usize,
        (round, totals): (Round, &[u32]),
        bytes: &mut Bytes,
        observer: Observer<'_>,
    ) -> Result<(), InProcessError> {
        let Self { spec, options, placement, shards, servers, sampler, .. } = self;
        let shard = &mut shards[number];
        let context = RoundContext { spec, round, totals, passes: options.passes };
        let lacking = if spec.waits_before(round) { 0 } else { options.sync.own_rounds_lacking(0) };
        shard.begin_round(totals, lacking)?;
        if round.number == 0 {
            shard.sample_documents(sampler, &context);
        }
        let run = TripContext { spec, options, placement };
        let mut servers = Servers { run, servers, round, bytes, observer };
        for partition in group(options, placement, number as u16, round.number) {
            servers.exchange(shard, sampler, &context, partition)?;
        }
        Ok(())
    }

    /// Calls `f(document, word, topic)` for every token.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32, u32)) {
        for (shard, &first) in self.shards.iter().zip(&self.firsts) {
            shard
                .tokens()
                .for_each(|document, word, topic| f(document + first as u32, word, topic));
        }
    }

    /// α and β of the last epoch.
    pub fn priors(&self) -> Priors {
        self.spec.priors()
    }

    /// The shards.
    pub fn shards(&self) -> &[Shard<T>] {
        &self.shards
    }

    /// The servers.
    pub fn servers(&self) -> &[Server<T>] {
        &self.servers
    }

    /// C_k after the last round that has ended.
    pub fn totals(&self) -> &[u32] {
        &self.totals
    }
}

/// Non-zero deltas by topic. Only their encoded size is used: a change beyond 31 bits is written in
/// as many bits as one of 31.
fn sparse(deltas: &[i64]) -> Vec<(u32, i32)> {
    let non_zero = deltas.iter().enumerate().filter(|(_, delta)| **delta != 0);
    non_zero
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
            self.shards[shard].tokens().row(document - self.firsts[shard], &mut row);
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
