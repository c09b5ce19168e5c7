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
//! joint a token after 200 epochs was −8.32 in one process, −8.34 with one shard, −8.33 with four and four rounds, −8.33
//! with eight and eight; and −8.47 with four shards and one round, −8.48 with eight.
//!
//! Of a shard's own tokens those that are sampled on a server are counted in C_d and C_w at once, and in C_k from the
//! shard's next partition on.
//!
//! Everything that would travel is written and read as it would be, and counted ([`Bytes`]); nothing is sent.
//!
//! ```
//! use lda_core::Corpus;
//! use lda_core::eval::log_joint;
//! use lda_dist::job::Job;
//! use lda_dist::together::{Options, Together};
//!
//! let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
//! let job = Job::new(4, 8, 0.1.into(), 0.01, 42)?;
//! let mut run = Together::<u16>::new(&job, &corpus, &Options { shards: 3, ..Options::default() })?;
//! let before = log_joint(&run, job.alpha(), job.beta())?.total();
//! for _ in 0..20 {
//!     run.epoch()?;
//! }
//! assert!(log_joint(&run, job.alpha(), job.beta())?.total() > before);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::eval::{DocumentCounts, Visit, WordCounts};
use thiserror::Error;

use crate::bench::Bench;
use crate::job::{JOINING, Job, Round};
use crate::placement::{Partitioner, Placement, PlacementError, estimated_cost};
use crate::request::{self, Kind, put_routes, size_of_byte};
use crate::route::Route;
use crate::server::{RequestError, Server};
use crate::shard::{AnswerError, Hybrid, MAX_STEPS, Shard, ShardError};
use crate::wire::{PushCode, RowCode};

/// Bytes of a row that nobody would pull.
const DEAR: u32 = u32::MAX / 2;

/// Why a run cannot be, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TogetherError {
    /// Words cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A shard cannot be.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// No shards, or fewer documents.
    #[error("{shards} shards of {documents} documents: give 1 to as many as there are")]
    Shards {
        /// Shards.
        shards: u16,
        /// Documents.
        documents: usize,
    },
    /// Too many partitions.
    #[error("{partitions} partitions: give 65,535 at most")]
    Partitions {
        /// How many.
        partitions: u32,
    },
    /// No rounds, or more than partitions.
    #[error("{rounds} rounds of {partitions} partitions: give 1 to as many as there are")]
    Rounds {
        /// Rounds.
        rounds: u16,
        /// Partitions.
        partitions: usize,
    },
    /// Steps that WarpLDA cannot do.
    #[error("{steps} steps a token: give 1 to {MAX_STEPS}")]
    Steps {
        /// How many.
        steps: u16,
    },
    /// No workers, or more than shards.
    #[error("{workers} workers for {shards} shards: give 1 to as many as there are shards")]
    Workers {
        /// Workers.
        workers: u32,
        /// Shards.
        shards: u16,
    },
    /// A server has refused something.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A shard has.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// More tokens of a topic than 32 bits.
    #[error("topic {topic} has {tokens} tokens, beyond 32 bits")]
    Total {
        /// Which.
        topic: usize,
        /// Tokens.
        tokens: i64,
    },
}

/// Which words are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// Those that cost less so ([`route`](crate::route)): LDA*'s asymmetric servers.
    Cheapest,
    /// All of them: the symmetric mode.
    Pull,
    /// None, but for those of documents that are not pushed or that WarpLDA samples.
    Push,
}

/// How a job is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Parts of the documents, about equal in tokens.
    pub shards: u16,
    /// Partitions of the words.
    pub partitions: u32,
    /// Rounds an epoch: as many as shards at least, that no word is sampled by two at once; at most as there are
    /// partitions.
    pub rounds: u16,
    /// Servers.
    pub servers: u32,
    /// How words find their servers.
    pub partitioner: Partitioner,
    /// Which words are pulled.
    pub routing: Routing,
    /// Documents of more tokens are not pushed.
    pub longest: u32,
    /// Which documents WarpLDA samples; they are not pushed either.
    pub hybrid: Hybrid,
}

impl Default for Options {
    fn default() -> Self {
        let partitioner = Partitioner::SkewAware;
        let routing = Routing::Cheapest;
        let (longest, hybrid) = (1 << 16, Hybrid::default());
        Self {
            shards: 1,
            partitions: 1,
            rounds: 1,
            servers: 1,
            partitioner,
            routing,
            longest,
            hybrid,
        }
    }
}

impl Options {
    /// Whether they make sense, whatever the documents are.
    ///
    /// # Errors
    /// [`TogetherError::Steps`].
    pub fn check(&self) -> Result<(), TogetherError> {
        let steps = self.hybrid.mh_steps;
        if (1..=MAX_STEPS).contains(&steps) { Ok(()) } else { Err(TogetherError::Steps { steps }) }
    }
}

/// Bytes that would travel, without what a transport puts around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// How long rows are, a byte a word, and asking for it.
    pub sizes: u64,
    /// Which words are pulled, a bit a word.
    pub routes: u64,
    /// Rows, to workers.
    pub rows: u64,
    /// What they have gained, to servers.
    pub gained: u64,
    /// Documents and their tokens, to servers.
    pub pushed: u64,
    /// Their topics, to workers.
    pub answers: u64,
    /// C_k: what each server's rows have gained, and to each shard and server.
    pub totals: u64,
}

impl Bytes {
    /// As much more.
    pub fn add(&mut self, more: &Self) {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = more;
        let to = [
            &mut self.sizes,
            &mut self.routes,
            &mut self.rows,
            &mut self.gained,
            &mut self.pushed,
            &mut self.answers,
            &mut self.totals,
        ];
        for (to, more) in to.into_iter().zip([sizes, routes, rows, gained, pushed, answers, totals])
        {
            *to = to.saturating_add(*more);
        }
    }

    /// Of a request, on its way to a server.
    pub(crate) fn count_request(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Sizes => self.sizes += bytes,
            Kind::Pull => self.routes += bytes,
            Kind::Push => self.pushed += bytes,
            Kind::Gained => self.gained += bytes,
            // Before the first epoch.
            Kind::Join => {}
        }
    }

    /// All.
    pub fn total(&self) -> u64 {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = *self;
        let all = [sizes, routes, rows, gained, pushed, answers, totals];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// A run.
#[derive(Debug)]
pub struct Together<T: TopicIndex> {
    job: Job,
    options: Options,
    placement: Placement,
    shards: Vec<Shard<T>>,
    /// First document of each shard, and the end.
    firsts: Vec<usize>,
    servers: Vec<Server<T>>,
    bench: Bench<T>,
    totals: Vec<u32>,
    epoch: u32,
}

impl<T: TopicIndex> Together<T> {
    /// Cuts documents and words, and counts the first topics.
    ///
    /// # Errors
    /// [`TogetherError`].
    pub fn new(job: &Job, corpus: &Corpus, options: &Options) -> Result<Self, TogetherError> {
        let (shards, documents) = (options.shards, corpus.num_documents() as u64);
        let firsts = cut(corpus, shards)?;
        let placement = place(job, options, &corpus.word_frequencies(), documents)?;
        let shards = (0..shards).zip(firsts.windows(2)).map(|(number, ends)| {
            let documents = ends[0]..ends[1];
            Shard::new(job, options.hybrid, &placement, number, corpus, documents, 0)
        });
        let shards = shards.collect::<Result<Vec<Shard<T>>, _>>()?;
        let of_server = |server: u32| {
            let partitions = 0..placement.num_partitions() as u32;
            let own = partitions.filter(|&partition| placement.server(partition) == server);
            Server::new(
                job,
                options.longest,
                0,
                own.map(|number| (number as u16, placement.words(number).collect())),
            )
        };
        let mut run = Self {
            servers: (0..placement.num_servers()).map(of_server).collect(),
            job: job.clone(),
            options: *options,
            shards,
            firsts,
            bench: Bench::new(job.topics()),
            totals: vec![0; job.topics() as usize],
            epoch: 0,
            placement,
        };
        run.count()?;
        Ok(run)
    }

    /// Partitions, and the server of each.
    fn partitions(&self) -> Vec<(u16, usize)> {
        let server = |partition: u32| self.placement.server(partition) as usize;
        (0..self.placement.num_partitions() as u32).map(|p| (p as u16, server(p))).collect()
    }

    /// Brings the shards' first topics to the servers.
    fn count(&mut self) -> Result<(), TogetherError> {
        let mut request = Vec::new();
        for (partition, server) in self.partitions() {
            for shard in &self.shards {
                request.clear();
                let joining = Round { epoch: 0, number: JOINING, attempt: 0 };
                shard.join(&self.job, &self.placement, partition, joining, &mut request);
                self.servers[server].serve(&request, &mut Vec::new())?;
            }
        }
        self.end_round()?;
        Ok(())
    }

    /// Ends a round; returns the bytes of C_k.
    fn end_round(&mut self) -> Result<u64, TogetherError> {
        let code = RowCode::new(self.job.topics());
        let mut bytes = 0;
        let mut all = vec![0i64; self.totals.len()];
        let mut of_server = all.clone();
        for server in &mut self.servers {
            of_server.fill(0);
            server.end_round(&mut of_server)?;
            bytes += code.size(&sparse(&of_server)) as u64;
            all.iter_mut().zip(&of_server).for_each(|(all, of_server)| *all += of_server);
        }
        for (topic, (total, change)) in self.totals.iter_mut().zip(&all).enumerate() {
            let tokens = i64::from(*total) + change;
            *total = u32::try_from(tokens).map_err(|_| TogetherError::Total { topic, tokens })?;
        }
        bytes += code.size(&sparse(&all)) as u64 * (self.servers.len() + self.shards.len()) as u64;
        Ok(bytes)
    }

    /// Samples every token once; returns the bytes that this would take to move.
    ///
    /// # Errors
    /// [`TogetherError`].
    pub fn epoch(&mut self) -> Result<Bytes, TogetherError> {
        let order: Vec<usize> = (0..self.shards.len()).collect();
        self.epoch_in_order(&order)
    }

    /// The same, shards in this order, which does not matter.
    ///
    /// # Errors
    /// [`TogetherError`].
    ///
    /// # Panics
    /// If a number is not of a shard.
    pub fn epoch_in_order(&mut self, order: &[usize]) -> Result<Bytes, TogetherError> {
        self.epoch += 1;
        let mut bytes = Bytes::default();
        order.iter().for_each(|&shard| self.shards[shard].begin_epoch(&self.job));
        for number in 0..self.options.rounds {
            let round = Round { epoch: self.epoch, number, attempt: 0 };
            self.servers.iter_mut().for_each(|server| server.begin_round(round, &self.totals));
            for &shard in order {
                self.shards[shard].begin_round(&self.totals)?;
                if number == 0 {
                    let Self { job, shards, bench, totals, .. } = &mut *self;
                    shards[shard].sample_documents(bench, job, round, totals);
                }
                for partition in group(&self.options, &self.placement, shard as u16, number) {
                    let server = self.placement.server(partition.into()) as usize;
                    self.exchange(shard, partition, server, round, &mut bytes)?;
                }
            }
            bytes.totals += self.end_round()?;
        }
        Ok(bytes)
    }

    /// One partition of one shard.
    fn exchange(
        &mut self,
        shard: usize,
        partition: u16,
        server: usize,
        round: Round,
        bytes: &mut Bytes,
    ) -> Result<(), TogetherError> {
        let Self { job, options, shards, servers, bench, totals, .. } = self;
        let (shard, server) = (&mut shards[shard], &mut servers[server]);
        let about = shard.about(partition, round);
        let words = shard.words(partition).len();
        if words == 0 {
            return Ok(());
        }
        let mut ask = |kind: Kind, body: &[u8]| {
            let (mut request, mut reply) = (Vec::new(), Vec::new());
            request::begin(kind, &about, &mut request);
            request.extend_from_slice(body);
            server.serve(&request, &mut reply)?;
            let (there, back) = (request.len() as u64, reply.len() as u64);
            Ok::<_, TogetherError>((reply, there, back))
        };
        let mut sizes = Vec::new();
        if options.routing == Routing::Cheapest {
            let (found, there, back) = ask(Kind::Sizes, &[])?;
            bytes.sizes += there + back;
            sizes.extend(found.into_iter().map(size_of_byte));
        }
        let routes = routes(options, shard, partition, &sizes);
        let plan = shard.request(partition, routes);
        let code = PushCode::new(job.topics(), words as u32, options.longest);
        let (mut body, mut answer) = (Vec::new(), Vec::new());
        plan.pushed.iter().for_each(|document| code.encode(document, &mut body));
        if !body.is_empty() {
            let (reply, there, back) = ask(Kind::Push, &body)?;
            answer = reply;
            bytes.pushed += there;
            bytes.answers += back;
        }
        if plan.routes.contains(&Route::Pull) {
            body.clear();
            put_routes(&plan.routes, &mut body);
            let (rows, there, back) = ask(Kind::Pull, &body)?;
            bytes.routes += there;
            bytes.rows += back;
            shard.sample(bench, job, round, partition, &plan, totals, &rows, &mut body)?;
            bytes.gained += ask(Kind::Gained, &body)?.1;
        }
        shard.answered(code, partition, &plan, &answer)?;
        Ok(())
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

/// What becomes of a partition's words; the sizes of their rows matter where the cheapest way is asked for.
pub(crate) fn routes<T: TopicIndex>(
    options: &Options,
    shard: &Shard<T>,
    partition: u16,
    sizes: &[u32],
) -> Vec<Route> {
    let words = shard.words(partition).len();
    match options.routing {
        Routing::Pull => vec![Route::Pull; words],
        Routing::Push => shard.routes(partition, &vec![DEAR; words], options.longest),
        Routing::Cheapest => shard.routes(partition, sizes, options.longest),
    }
}

/// Places words by what they cost before anything is known of their topics. `frequencies` are the tokens of each word,
/// in so many documents.
///
/// # Errors
/// [`TogetherError`], where words or documents cannot be divided so.
pub fn place(
    job: &Job,
    options: &Options,
    frequencies: &[u64],
    documents: u64,
) -> Result<Placement, TogetherError> {
    let Options { shards, partitions, rounds, servers, partitioner, .. } = *options;
    options.check()?;
    if shards == 0 {
        return Err(TogetherError::Shards { shards, documents: documents as usize });
    }
    if u16::try_from(partitions).is_err() {
        return Err(TogetherError::Partitions { partitions });
    }
    let mean = frequencies.iter().sum::<u64>().div_ceil(documents.max(1));
    let cost = |&tokens: &u64| estimated_cost(tokens, job.topics(), shards.into(), mean);
    let costs: Vec<u64> = frequencies.iter().map(cost).collect();
    let placement = Placement::new(partitioner, &costs, partitions, servers)?;
    let partitions = placement.num_partitions();
    if rounds == 0 || usize::from(rounds) > partitions {
        return Err(TogetherError::Rounds { rounds, partitions });
    }
    Ok(placement)
}

/// Partitions that a shard has in a round.
pub(crate) fn group(
    options: &Options,
    placement: &Placement,
    shard: u16,
    round: u16,
) -> Range<u16> {
    let (shards, rounds) = (u64::from(options.shards), u64::from(options.rounds));
    let group = (u64::from(round) + u64::from(shard) * rounds / shards) % rounds;
    let first = |group: u64| (group * placement.num_partitions() as u64 / rounds) as u16;
    first(group)..first(group + 1)
}

/// Where a corpus is cut into so many parts, in order and about equal in tokens, none without a document: the first
/// document of each, and the end.
///
/// # Errors
/// [`TogetherError::Shards`], if there are fewer documents, or no parts.
pub fn cut(corpus: &Corpus, shards: u16) -> Result<Vec<usize>, TogetherError> {
    let documents = corpus.num_documents();
    if shards == 0 || usize::from(shards) > documents {
        return Err(TogetherError::Shards { shards, documents });
    }
    let (documents, shards) = (corpus.num_documents(), usize::from(shards));
    let tokens = u128::from(corpus.num_tokens());
    let (mut firsts, mut before) = (vec![0], 0u128);
    for (document, length) in corpus.documents().map(|document| document.len()).enumerate() {
        let number = firsts.len();
        // As many documents must be left as shards.
        let must = documents - document == shards - number;
        let may =
            document > firsts[number - 1] && before * shards as u128 >= tokens * number as u128;
        if number < shards && (must || may) {
            firsts.push(document);
        }
        before += u128::from(length);
    }
    firsts.push(documents);
    Ok(firsts)
}

/// What there is of numbers by topic.
fn sparse(numbers: &[i64]) -> Vec<(u32, i32)> {
    let there = numbers.iter().enumerate().filter(|(_, number)| **number != 0);
    // Sizes are all that is asked for; a change beyond 31 bits is written in as many as one of 31.
    there
        .map(|(topic, &by)| (topic as u32, by.clamp(-i64::from(i32::MAX), i32::MAX.into()) as i32))
        .collect()
}

impl<T: TopicIndex> DocumentCounts for Together<T> {
    fn num_topics(&self) -> usize {
        self.job.topics() as usize
    }

    fn num_documents(&self) -> usize {
        self.firsts[self.shards.len()]
    }

    fn visit_documents(&self, documents: Range<usize>, visit: &mut Visit<'_>) {
        let mut row = Vec::new();
        for document in documents {
            let shard = self.firsts.partition_point(|&first| first <= document) - 1;
            self.shards[shard].row(document - self.firsts[shard], &mut row);
            visit(document, &row);
        }
    }
}

impl<T: TopicIndex> WordCounts for Together<T> {
    fn num_topics(&self) -> usize {
        self.job.topics() as usize
    }

    fn num_words(&self) -> usize {
        self.job.words() as usize
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic].into()
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut Visit<'_>) {
        let mut row = Vec::new();
        for word in words {
            let partition = self.placement.partition(word as u32);
            let server = self.placement.server(partition) as usize;
            self.servers[server].row(partition as u16, word as u32, &mut row);
            visit(word, &row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_cut_about_evenly() {
        let lengths = [900, 1, 1, 1, 40, 30, 27];
        let corpus = Corpus::from_tokens(lengths.map(|length| vec![0; length])).unwrap();
        let cut = |corpus: &Corpus, shards| super::cut(corpus, shards).unwrap();
        assert_eq!(cut(&corpus, 1), [0, 7]);
        assert_eq!(cut(&corpus, 2), [0, 1, 7]);
        assert_eq!(cut(&corpus, 7), [0, 1, 2, 3, 4, 5, 6, 7]);
        let even = Corpus::from_tokens(vec![vec![0; 10]; 12]).unwrap();
        assert_eq!(cut(&even, 4), [0, 3, 6, 9, 12]);
    }
}
