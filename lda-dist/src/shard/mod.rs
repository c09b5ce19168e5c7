//! Shard: documents with their tokens, topics and rows of C_d.
//!
//! A run's documents are cut into **shards**, independently of the workers. A worker has one or
//! more whole shards, and the new topics of a shard's tokens depend only on the shard and on the
//! counts at the round's start. So results do not depend on the number of workers.
//!
//! Tokens are ordered by partition, word and document. Some words of a partition are
//! [pulled](crate::route::Route): their tokens are sampled here, with the rows from the servers.
//! Tokens of the other words are pushed to the server document by document, and its answer contains
//! their new topics. An answer changes single tokens, so it does not undo samples drawn here in the
//! meantime.
//!
//! Documents are cut into ranges, and the tokens of a partition are sampled range by range: the
//! rows of a range fit into a cache, those of a shard do not.
//!
//! [Long](Hybrid) documents are sampled by WarpLDA, if the run has any. Their words are always
//! pulled.
//!
//! Memory per token: 4 bytes and its topic of 2 or 4 bytes; rows of C_d as in [`Rows`](lda_core::counts::Rows); 16 bytes
//! per document; 8 bytes per word of the shard. Per token of a long document: 4 bytes and 2 + M
//! topics, for M [proposals](Hybrid::mh_steps); no row. A byte and a bit per token of other documents, if
//! converged tokens are excluded.

mod error;
mod exclusion;
mod held;
mod long;
mod mid_epoch;
mod own_counts;
mod part;
mod source;
mod state;
mod tokens;
mod transfer;
mod word_stats;

use lda_core::counts::TopicIndex;
use lda_core::sampler::{BlockKey, Outcome};

use crate::config::{Hybrid, Options};
use crate::partition_sampler::{
    NotInRow, PartitionSampler, RoundContext, SampleContext, SliceRows,
};
use crate::placement::Placement;
use crate::request::{self, Kind, RequestHeader};
use crate::route::{self, Route};
use crate::spec::{ModelSpec, Round};
use crate::wire::{self, PushCode, RowCode};

pub use error::{AnswerError, RestoreError, ShardError};
pub use mid_epoch::{MidEpochState, RowForm};
use own_counts::OwnCounts;
pub use source::ShardDocuments;
use source::Source;
pub use state::ShardState;
pub use tokens::ShardTokens;
pub use transfer::{Plan, TransferStats};

/// Part of the documents.
#[derive(Debug)]
pub struct Shard<T: TopicIndex> {
    number: u16,
    tokens: ShardTokens<T>,
    own: OwnCounts,
}

impl<T: TopicIndex> Shard<T> {
    /// A shard of some documents of a corpus. `hybrid` decides which of them WarpLDA samples.
    ///
    /// # Errors
    /// [`ShardError`].
    ///
    /// # Panics
    /// If the range of documents is not within the corpus, or if the placement is for another
    /// vocabulary.
    pub fn new(
        spec: &ModelSpec,
        hybrid: Hybrid,
        placement: &Placement,
        number: u16,
        documents: ShardDocuments<'_>,
    ) -> Result<Self, ShardError> {
        let corpus = documents.corpus;
        if corpus.num_words() != spec.words() as usize {
            return Err(ShardError::Words { found: corpus.num_words(), expected: spec.words() });
        }
        if u64::from(spec.topics()) > T::MAX_TOPICS {
            let (topics, most) = (spec.topics(), T::MAX_TOPICS);
            return Err(ShardError::Topics { topics, most });
        }
        assert_eq!(placement.num_words(), corpus.num_words(), "words of another vocabulary");
        let first_topics = spec.first_topics();
        let source = Source { first_topics, spec, placement, documents };
        let tokens = ShardTokens::new(&source, hybrid)?;
        Ok(Self { number, own: own_counts(spec, &tokens), tokens })
    }

    /// Tokens, topics and counts.
    pub fn tokens(&self) -> &ShardTokens<T> {
        &self.tokens
    }

    /// Returns whether some documents are [long](Hybrid).
    pub fn has_long(&self) -> bool {
        !self.tokens.long.is_empty()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.tokens.memory() + self.own.memory()
    }

    /// Number of the shard.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Writes the request with which this shard joins a slice: its words, and its counts of them.
    ///
    /// # Panics
    /// If there is no such slice, or if the placement is another than that of the shard.
    pub fn join(
        &self,
        spec: &ModelSpec,
        placement: &Placement,
        slice: u16,
        round: Round,
        to: &mut Vec<u8>,
    ) {
        let header = self.header(slice, round);
        request::begin(Kind::Join, &header, to);
        let (partition, topics) = placement.slice(slice.into(), spec.topics());
        let partition = partition as u16;
        let words = self.tokens.words(partition);
        let places: Vec<(u32, u32)> =
            words.iter().map(|&word| (placement.position(word), 1)).collect();
        let all = placement.words(partition.into()).len() as u32;
        if all > 0 {
            RowCode::new(all).encode(&places, to);
        }
        let mut part = Vec::new();
        self.tokens.counts(partition, |_, row| RowCode::encode_part(row, &topics, &mut part, to));
    }

    /// Header of a request of this shard.
    pub fn header(&self, slice: u16, round: Round) -> RequestHeader {
        RequestHeader { shard: self.number, slice, round }
    }

    /// Starts a round with these C_k, which contain the shard's own updates of earlier rounds, except
    /// those of the last `lacking` rounds.
    ///
    /// # Errors
    /// [`AnswerError::Total`].
    ///
    /// # Panics
    /// If `totals` does not have K entries.
    pub fn begin_round(&mut self, totals: &[u32], lacking: usize) -> Result<(), AnswerError> {
        self.own.begin_round(self.tokens.long.untold(), totals, lacking)
    }

    /// Starts an epoch: sorts each row of C_d by topic, so that results do not depend on the order
    /// in which the row was changed; measures the rows' encoded sizes, if documents may be pushed; and chooses
    /// the tokens to sample, if the epoch excludes converged ones.
    pub fn begin_epoch(&mut self, spec: &ModelSpec, options: &Options, epoch: u32) {
        self.tokens.begin_epoch(spec, options, self.number, epoch);
    }

    /// Number of tokens that the current epoch samples.
    pub fn num_sampled(&self) -> usize {
        self.tokens.num_due()
    }

    /// Restores the state that [`ShardTokens::state`] returned, between two epochs.
    ///
    /// # Errors
    /// [`RestoreError`]; then nothing has changed.
    pub fn restore(&mut self, spec: &ModelSpec, state: &ShardState<T>) -> Result<(), RestoreError> {
        self.tokens.restore(spec, state)?;
        self.own = own_counts(spec, &self.tokens);
        Ok(())
    }

    /// Chooses the route of each of a partition's words, given the encoded sizes of their rows.
    /// Documents with more than `max_pushed_len` tokens are not pushed, nor are long ones. The
    /// result does not depend on the partitions that were sampled earlier in this epoch.
    ///
    /// # Panics
    /// If there is no such partition, or if there is not one size per word.
    pub fn routes(&self, partition: u16, pulled: &[u32], max_pushed_len: u32) -> Vec<Route> {
        let ShardTokens { long, parts, lengths, sizes, .. } = &self.tokens;
        let part = &parts[partition as usize];
        assert_eq!(pulled.len(), part.words.len(), "a size a word");
        let long = long.tokens_by_place(partition, part.words.len());
        // An encoded delta is no longer than the row, and than a few bytes per token.
        let both = |(at, &row): (usize, &u32)| {
            row.saturating_add(row.min(2 * (part.due(at).count() as u32 + long[at])))
        };
        let pulled: Vec<u32> = pulled.iter().enumerate().map(both).collect();
        // One more document stands for all long ones.
        let of_warp = lengths.len() as u32;
        let (mut starts, mut of_words, mut tokens) = (vec![0], Vec::new(), Vec::new());
        for (at, &long) in long.iter().enumerate() {
            let documents: Vec<u32> = part.due(at).map(|token| part.documents[token]).collect();
            for run in documents.chunk_by(|a, b| a == b) {
                of_words.push(run[0]);
                tokens.push(run.len() as u32);
            }
            if long > 0 {
                of_words.push(of_warp);
                tokens.push(long);
            }
            starts.push(of_words.len());
        }
        let short = lengths.iter().zip(sizes).map(|(&length, &row)| route::Document {
            row,
            token_bits: route::token_bits(length),
            may_be_pushed: length <= max_pushed_len,
        });
        let stays = route::Document { row: 0, token_bits: 0, may_be_pushed: false };
        let documents: Vec<route::Document> = short.chain([stays]).collect();
        let words = route::Words {
            starts: &starts,
            documents: &of_words,
            tokens: &tokens,
            pulled: &pulled,
        };
        route::route(&words, &documents)
    }

    /// Makes the plan of a partition. It contains the documents to push, with their current topics
    /// and rows of C_d.
    ///
    /// # Panics
    /// If there is no such partition, if there is not one route per word, or if a word of a long
    /// document is pushed.
    pub fn request(&self, partition: u16, routes: Vec<Route>) -> Plan {
        let part = &self.tokens.parts[partition as usize];
        assert_eq!(routes.len(), part.words.len(), "a route a word");
        let mut of_long = self.tokens.long.places(partition);
        assert!(of_long.all(|at| routes[at as usize] == Route::Pull), "WarpLDA wants whole rows");
        // (document, index of the word, token): a word's tokens ascend, so an unstable sort keeps
        // them in order.
        let mut pushed: Vec<(u32, u32, u32)> = Vec::new();
        for (at, _) in routes.iter().enumerate().filter(|(_, route)| **route == Route::Push) {
            pushed
                .extend(part.due(at).map(|token| (part.documents[token], at as u32, token as u32)));
        }
        pushed.sort_unstable();
        let documents = pushed.chunk_by(|a, b| a.0 == b.0).map(|run| {
            let mut document = wire::Document::default();
            self.tokens.row_at(run[0].0 as usize, &mut document.row);
            let topic = |token: u32| part.topics[token as usize].get();
            document.tokens.extend(run.iter().map(|&(_, word, token)| (word, topic(token))));
            document
        });
        let documents = documents.collect();
        let places = pushed.iter().map(|&(_, _, token)| token).collect();
        Plan { routes, pushed: documents, places }
    }

    /// Starts an epoch's sampling with WarpLDA's pass over the long documents, before any partition
    /// is sampled.
    pub(crate) fn sample_documents(
        &mut self,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
    ) {
        let RoundContext { spec, round, totals, .. } = *round;
        let Self { tokens: ShardTokens { long, .. }, own, number } = self;
        if long.is_empty() {
            return;
        }
        // The totals leave out the shard's own changes so far, which depend on when answers to
        // other partitions arrived.
        sampler.run_warp_pass(spec, round, totals, std::iter::repeat(0), |context, scratch, _| {
            let key = BlockKey { shard: *number, documents: 0, words: 0 };
            long.sample_documents(key, 0, context, scratch, |outcome| own.add(outcome));
        });
    }

    /// Samples the tokens of pulled words: those of long documents first, then the others, each as
    /// often as `round` says. The rows are those of the round's start, in slices by topic. The
    /// delta of each pulled word is appended to the slices, in the order of words.
    ///
    /// # Errors
    /// [`AnswerError`]; then nothing has changed.
    ///
    /// # Panics
    /// If `plan` is for another partition.
    pub(crate) fn sample(
        &mut self,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
        partition: u16,
        plan: &Plan,
        slices: &mut [SliceRows<'_>],
    ) -> Result<TransferStats, AnswerError> {
        self.add_pulled_words(sampler, partition, plan, slices)?;
        let key = BlockKey { shard: self.number, documents: 0, words: partition };
        if sampler.has_long() {
            self.sample_long(sampler, round, key, plan);
        }
        let RoundContext { spec, round, totals, passes } = *round;
        let ShardTokens { rows: documents, ends, parts, .. } = &mut self.tokens;
        let own = &mut self.own.changes;
        let mut context = SampleContext { spec, round, key, totals, own, documents };
        sampler.sample(ends, passes, &mut context);
        let part = &mut parts[partition as usize];
        let mut topics = sampler.topics();
        for at in plan.pulled() {
            part.set_sampled(at, &mut topics);
        }
        let pulled = sampler.entries() as u64;
        let mut moved = TransferStats { pulled, ..TransferStats::default() };
        let mut part = Vec::new();
        sampler.for_each_delta(|_, delta| {
            moved.rows += 1;
            moved.deltas += delta.len() as u64;
            for SliceRows { topics, deltas, .. } in &mut *slices {
                RowCode::encode_part(delta, topics, &mut part, deltas);
            }
        });
        Ok(moved)
    }

    /// Passes the rows and tokens of the pulled words to the sampler.
    fn add_pulled_words(
        &self,
        sampler: &mut PartitionSampler<T>,
        partition: u16,
        plan: &Plan,
        slices: &mut [SliceRows<'_>],
    ) -> Result<(), AnswerError> {
        let ShardTokens { parts, long, .. } = &self.tokens;
        let part = &parts[partition as usize];
        let mut walk = long.walk(partition);
        sampler.clear();
        for at in plan.pulled() {
            long.known(&mut walk, partition, at as u32, |known| sampler.add_long_tokens(known));
            let tokens = part.due(at).map(|token| (part.documents[token], part.topics[token]));
            let laid = sampler.add_sliced_word(slices, tokens)?;
            laid.map_err(|NotInRow| AnswerError::Row { word: part.words[at] })?;
        }
        let rest: usize = slices.iter().map(|slice| slice.rows.len()).sum();
        if rest > 0 { Err(AnswerError::Rest { bytes: rest }) } else { Ok(()) }
    }

    /// Samples the long documents' tokens of pulled words: WarpLDA's pass over words, and before
    /// each repeated one a pass over documents.
    fn sample_long(
        &mut self,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
        key: BlockKey,
        plan: &Plan,
    ) {
        let RoundContext { spec, round, totals, passes } = *round;
        let Self { tokens: ShardTokens { long, parts, .. }, own, .. } = self;
        let partition = key.words;
        // Index of each pulled word's row in the sampler.
        let mut row = vec![0; parts[partition as usize].words.len()];
        plan.pulled().zip(0..).for_each(|(at, pulled)| row[at] = pulled);
        for again in 0..passes {
            if again > 0 {
                let mut outcomes = Vec::new();
                let own_now = own.changes.iter().copied();
                sampler.run_warp_pass(spec, round, totals, own_now, |context, scratch, _| {
                    let each = |outcome| outcomes.push(outcome);
                    long.sample_documents(key, again, context, scratch, each);
                });
                outcomes.into_iter().for_each(|outcome| own.add(outcome));
                sampler.invalidate_rows();
            }
            let mut outcome = Outcome::default();
            let own_now = own.changes.iter().copied();
            sampler.run_warp_pass(spec, round, totals, own_now, |context, scratch, rows| {
                outcome = long.sample_words(key, again, context, scratch, rows, &row);
            });
            own.add(outcome);
        }
        let mut walk = long.walk(partition);
        for at in plan.pulled() {
            long.topics(&mut walk, partition, at as u32, |topic| sampler.push_long_topic(topic));
        }
        long.told(partition);
    }

    /// Accepts the new topics of pushed tokens.
    ///
    /// # Errors
    /// [`AnswerError`]; then nothing has changed.
    ///
    /// # Panics
    /// If `plan` is for another partition.
    pub fn answered(
        &mut self,
        code: PushCode,
        partition: u16,
        plan: &Plan,
        answer: &[u8],
    ) -> Result<(), AnswerError> {
        let mut topics = Vec::new();
        code.decode_answer(&plan.pushed, answer, &mut topics)?;
        let Self { tokens: ShardTokens { parts, rows, .. }, own, .. } = self;
        let part = &mut parts[partition as usize];
        for (&token, &topic) in plan.places.iter().zip(&topics) {
            let old = part.topics[token as usize].get();
            if old != topic {
                let document = part.documents[token as usize] as usize;
                rows.decrement(document, old);
                rows.increment(document, topic);
                own.changes[old as usize] -= 1;
                own.changes[topic as usize] += 1;
            }
            part.set_topic(token as usize, T::new(topic));
        }
        Ok(())
    }
}

/// A shard's part of C_k, as servers know it after they have counted its tokens.
fn own_counts<T: TopicIndex>(spec: &ModelSpec, tokens: &ShardTokens<T>) -> OwnCounts {
    let mut counts = vec![0; spec.topics() as usize];
    tokens.for_each_topic(|topic| counts[topic as usize] += 1);
    OwnCounts::new(counts)
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::train::SamplerKind;

    use super::*;
    use crate::placement::Partitioner;

    #[test]
    fn when_an_answer_comes_does_not_matter() {
        // The first document has the words of the first partition, the second those of the second.
        let long: Vec<u32> = (0..400).map(|at| at % 10).collect();
        let short: Vec<u32> = (0..300).map(|at| 10 + at % 10).collect();
        let corpus = Corpus::from_tokens([long, short]).unwrap();
        let spec = ModelSpec::new(5, 20, 0.1.into(), 0.01, 4).unwrap();
        let placement = Placement::new(Partitioner::Range, &[1; 20], 2, 1).unwrap();
        let hybrid = Hybrid { short_length: 300, mh_steps: 2 };
        let round = Round { epoch: 1, number: 0, attempt: 0 };
        let run = |is_early: bool| {
            let documents = ShardDocuments { corpus: &corpus, range: 0..2, first: 0 };
            let mut shard = Shard::<u16>::new(&spec, hybrid, &placement, 0, documents).unwrap();
            // Makes proposals differ from the topics.
            let mut kept = shard.tokens.state();
            let of_long = kept.topics[300..].iter_mut().enumerate();
            of_long.filter(|(at, _)| at % 3 > 0).for_each(|(at, topic)| *topic = (at % 5) as u16);
            shard.restore(&spec, &kept).unwrap();
            let totals = shard.own.counts.clone();
            let mut sampler = PartitionSampler::new(spec.topics(), SamplerKind::FPlus.into());
            // Words of the long document are pulled at any cost.
            assert_eq!(shard.routes(0, &[u32::MAX / 2; 10], 1000), [Route::Pull; 10]);
            let routes = shard.routes(1, &[u32::MAX / 2; 10], 1000);
            assert_eq!(routes, [Route::Push; 10]);
            let plan = shard.request(1, routes);
            let code = PushCode::new(spec.topics(), 10, 1000);
            let mut answer = Vec::new();
            code.encode_answer(&plan.pushed, &[0; 300], &mut answer);
            shard.begin_round(&totals, 0).unwrap();
            if is_early {
                shard.answered(code, 1, &plan, &answer).unwrap();
            }
            let context = RoundContext { spec: &spec, round, totals: &totals, passes: 1 };
            shard.sample_documents(&mut sampler, &context);
            if !is_early {
                shard.answered(code, 1, &plan, &answer).unwrap();
            }
            (shard.tokens.topics(), shard.own)
        };
        assert_eq!(run(true), run(false));
    }
}
