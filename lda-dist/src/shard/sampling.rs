//! Sampling of a shard's tokens of one partition.

use lda_core::counts::TopicIndex;
use lda_core::sampler::{BlockKey, Outcome};

use super::{AnswerError, Shard};
use crate::partition_sampler::{
    NotInRow, PartitionSampler, RoundContext, SampleContext, SliceRows,
};
use crate::route::{self, Route};
use crate::wire::{self, PushCode, RowCode};

/// Routes of a partition's words, and the documents to push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Route of each of the shard's words of the partition.
    pub routes: Vec<Route>,
    /// Documents with the tokens that the server samples. Words are named by their index among the
    /// shard's.
    pub pushed: Vec<wire::Document>,
    /// Index of each of these tokens among the partition's.
    places: Vec<u32>,
}

/// Rows that were pulled, and deltas that were made from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// Number of rows.
    pub rows: u64,
    /// Topics of all pulled rows.
    pub pulled: u64,
    /// Topics of all deltas.
    pub deltas: u64,
}

impl Plan {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        let documents: usize = self.pushed.iter().map(wire::Document::memory).sum();
        documents + self.routes.capacity() + 4 * self.places.capacity()
    }

    /// Indices of the pulled words.
    fn pulled(&self) -> impl Iterator<Item = usize> {
        let routes = self.routes.iter().enumerate();
        routes.filter(|(_, route)| **route == Route::Pull).map(|(at, _)| at)
    }
}

impl<T: TopicIndex> Shard<T> {
    /// Chooses the route of each of a partition's words, given the encoded sizes of their rows.
    /// Documents with more than `max_pushed_len` tokens are not pushed, nor are long ones. The
    /// result does not depend on the partitions that were sampled earlier in this epoch.
    ///
    /// # Panics
    /// If there is no such partition, or if there is not one size per word.
    pub fn routes(&self, partition: u16, pulled: &[u32], max_pushed_len: u32) -> Vec<Route> {
        let part = &self.parts[partition as usize];
        assert_eq!(pulled.len(), part.words.len(), "a size a word");
        let long = self.long.tokens_by_place(partition, part.words.len());
        // An encoded delta is no longer than the row, and than a few bytes per token.
        let both = |(at, &row): (usize, &u32)| {
            row.saturating_add(row.min(2 * (part.range(at).len() as u32 + long[at])))
        };
        let pulled: Vec<u32> = pulled.iter().enumerate().map(both).collect();
        // One more document stands for all long ones.
        let of_warp = self.lengths.len() as u32;
        let (mut starts, mut of_words, mut tokens) = (vec![0], Vec::new(), Vec::new());
        for (at, &long) in long.iter().enumerate() {
            for run in part.documents[part.range(at)].chunk_by(|a, b| a == b) {
                of_words.push(run[0]);
                tokens.push(run.len() as u32);
            }
            if long > 0 {
                of_words.push(of_warp);
                tokens.push(long);
            }
            starts.push(of_words.len());
        }
        let short = self.lengths.iter().zip(&self.sizes).map(|(&length, &row)| route::Document {
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
        let part = &self.parts[partition as usize];
        assert_eq!(routes.len(), part.words.len(), "a route a word");
        let mut of_long = self.long.places(partition);
        assert!(of_long.all(|at| routes[at as usize] == Route::Pull), "WarpLDA wants whole rows");
        // (document, index of the word, token): a word's tokens ascend, so an unstable sort keeps
        // them in order.
        let mut pushed: Vec<(u32, u32, u32)> = Vec::new();
        for (at, _) in routes.iter().enumerate().filter(|(_, route)| **route == Route::Push) {
            let tokens = part.range(at);
            pushed.extend(tokens.map(|token| (part.documents[token], at as u32, token as u32)));
        }
        pushed.sort_unstable();
        let documents = pushed.chunk_by(|a, b| a.0 == b.0).map(|run| {
            let mut document = wire::Document::default();
            self.row_at(run[0].0 as usize, &mut document.row);
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
        let Self { long, own, number, .. } = self;
        if long.is_empty() {
            return;
        }
        // The totals leave out the shard's own changes so far, which depend on when answers to
        // other partitions arrived.
        sampler.run_warp_pass(spec, round, totals, std::iter::repeat(0), |context, scratch, _| {
            let key = BlockKey { shard: *number, documents: 0, words: 0 };
            long.sample_documents(key, 0, context, scratch, |outcome| add(own, outcome));
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
        let Self { own, rows: documents, ends, parts, .. } = self;
        let mut context = SampleContext { spec, round, key, totals, own, documents };
        sampler.sample(ends, passes, &mut context);
        let part = &mut parts[partition as usize];
        let mut topics = sampler.topics();
        for at in plan.pulled() {
            let range = part.range(at);
            let (of_word, rest) = topics.split_at(range.len());
            part.topics[range].copy_from_slice(of_word);
            topics = rest;
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
        let part = &self.parts[partition as usize];
        let mut walk = self.long.walk(partition);
        sampler.clear();
        for at in plan.pulled() {
            let range = part.range(at);
            self.long
                .known(&mut walk, partition, at as u32, |known| sampler.add_long_tokens(known));
            let documents = part.documents[range.clone()].iter().copied();
            let tokens = documents.zip(part.topics[range].iter().copied());
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
        let Self { long, own, parts, .. } = self;
        let partition = key.words;
        // Index of each pulled word's row in the sampler.
        let mut row = vec![0; parts[partition as usize].words.len()];
        plan.pulled().zip(0..).for_each(|(at, pulled)| row[at] = pulled);
        for again in 0..passes {
            if again > 0 {
                let mut outcomes = Vec::new();
                let own_now = own.iter().copied();
                sampler.run_warp_pass(spec, round, totals, own_now, |context, scratch, _| {
                    let each = |outcome| outcomes.push(outcome);
                    long.sample_documents(key, again, context, scratch, each);
                });
                outcomes.into_iter().for_each(|outcome| add(own, outcome));
                sampler.invalidate_rows();
            }
            let mut outcome = Outcome::default();
            let own_now = own.iter().copied();
            sampler.run_warp_pass(spec, round, totals, own_now, |context, scratch, rows| {
                outcome = long.sample_words(key, again, context, scratch, rows, &row);
            });
            add(own, outcome);
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
        let part = &mut self.parts[partition as usize];
        for (&token, &topic) in plan.places.iter().zip(&topics) {
            let old = part.topics[token as usize].get();
            if old != topic {
                let document = part.documents[token as usize] as usize;
                self.rows.decrement(document, old);
                self.rows.increment(document, topic);
                self.own[old as usize] -= 1;
                self.own[topic as usize] += 1;
                part.topics[token as usize] = T::new(topic);
            }
        }
        Ok(())
    }
}

fn add(own: &mut [i32], outcome: Outcome) {
    for (topic, by) in outcome.totals {
        own[topic as usize] += by;
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::super::ShardDocuments;
    use super::*;
    use crate::config::Hybrid;
    use crate::placement::{Partitioner, Placement};
    use crate::spec::{ModelSpec, Round};
    use crate::sync::SyncMode;

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
            let mut kept = shard.topics();
            let of_long = kept[300..].iter_mut().enumerate();
            of_long.filter(|(at, _)| at % 3 > 0).for_each(|(at, topic)| *topic = (at % 5) as u16);
            shard.restore(&spec, &kept).unwrap();
            let totals = shard.counts.clone();
            let mut sampler = PartitionSampler::new(spec.topics());
            // Words of the long document are pulled at any cost.
            assert_eq!(shard.routes(0, &[u32::MAX / 2; 10], 1000), [Route::Pull; 10]);
            let routes = shard.routes(1, &[u32::MAX / 2; 10], 1000);
            assert_eq!(routes, [Route::Push; 10]);
            let plan = shard.request(1, routes);
            let code = PushCode::new(spec.topics(), 10, 1000);
            let mut answer = Vec::new();
            code.encode_answer(&plan.pushed, &[0; 300], &mut answer);
            shard.begin_round(&totals, SyncMode::Rounds { staleness: 0 }).unwrap();
            if is_early {
                shard.answered(code, 1, &plan, &answer).unwrap();
            }
            let context = RoundContext { spec: &spec, round, totals: &totals, passes: 1 };
            shard.sample_documents(&mut sampler, &context);
            if !is_early {
                shard.answered(code, 1, &plan, &answer).unwrap();
            }
            (shard.topics(), shard.own)
        };
        assert_eq!(run(true), run(false));
    }
}
