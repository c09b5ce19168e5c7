//! Sampling of the partitions whose rows are at the worker, on several threads.

use lda_core::counts::TopicIndex;

use super::super::super::Failed;
use super::super::Node;
use super::super::tasks::PartitionTask;
use super::flight::{PartitionInFlight, Source};
use super::{Attempt, RequestPurpose};
use crate::config::Options;
use crate::held_rows::HeldRows;
use crate::partition_sampler::{PartitionSampler, RoundContext};
use crate::plan::{next_turn_of, round_of};
use crate::shard::{AnswerError, Shard};
use crate::spec::Round;
use crate::trip::{TripContext, TripRequest};

/// Result of sampling a partition: the deltas to push.
type SampledTask = (PartitionTask, Result<Vec<TripRequest>, AnswerError>);

impl<T: TopicIndex> Attempt<T> {
    /// Samples the long documents of as many shards as there are threads, or the partitions whose rows are
    /// there, one of a shard; returns whether there were any. Requests that wait should be sent before
    /// this is called.
    pub fn work(&mut self, node: &mut Node<'_, T>) -> Result<bool, Failed> {
        if !self.long_documents.is_empty() {
            self.sample_long_documents(node);
            if self.long_documents.is_empty() {
                self.advance(node)?;
            }
            return Ok(true);
        }
        self.finish_requests(node)?;
        let sampled = self.sample_ready(node);
        let any = !sampled.is_empty();
        for (task, sampled) in sampled {
            for request in sampled? {
                self.send(&request, RequestPurpose::Deltas(task.round), node);
                self.reports.expect(task.round, 1);
            }
            self.finish_partition(task, node)?;
        }
        Ok(any)
    }

    /// WarpLDA's pass over the long documents of the next shards.
    fn sample_long_documents(&mut self, node: &mut Node<'_, T>) {
        let options = &node.setup.options;
        let (spec, round, totals) = (&self.spec, self.round, &self.totals[..]);
        let passes = options.passes;
        let context = RoundContext { spec, round, totals, passes };
        let most = node.samplers.threads().min(self.long_documents.len());
        let next: Vec<usize> = self.long_documents.drain(..most).collect();
        let shards = self.shards.iter_mut().enumerate();
        let jobs = shards.filter(|(index, _)| next.contains(index)).collect();
        let sample =
            |shard: &mut Shard<T>, sampler: &mut _| shard.sample_documents(sampler, &context);
        node.samplers.each(jobs, sample);
    }

    /// Makes the rows of requests that are complete.
    fn finish_requests(&mut self, node: &mut Node<'_, T>) -> Result<(), Failed> {
        let Self { placement, shards, in_flight, .. } = self;
        let (run, options) = (node.setup.trip(placement), &node.setup.options);
        let is_complete = |flight: &&mut PartitionInFlight<T>| match &flight.source {
            Source::Requested(request) => request.is_complete(),
            _ => false,
        };
        let jobs = in_flight.iter_mut().filter(is_complete);
        let jobs = jobs.map(|flight| (flight.task.shard, flight)).collect();
        let finished = node.samplers.each(jobs, |flight: &mut PartitionInFlight<T>, _| {
            let turns = turns(flight.task, options, shards);
            let turns: Vec<&Shard<T>> = turns.into_iter().map(|index| &shards[index]).collect();
            if let Source::Requested(request) = &mut flight.source {
                flight.source = Source::Held(request.finish(run, &turns)?);
            }
            Ok(())
        });
        Ok(finished.into_iter().collect::<Result<(), AnswerError>>()?)
    }

    /// Starts to push all changes of rows that stay here, which ends before another epoch starts.
    pub(super) fn push_held_rows(&mut self, node: &mut Node<'_, T>) {
        let ahead = self.held.iter().filter(|(_, rows)| rows.is_ahead());
        self.to_push = ahead.map(|(&partition, _)| partition).collect();
        // Requests that are not sent yet are not acknowledged either.
        self.reports.expect(self.round, self.to_push.len());
        self.push_more(node);
    }

    /// Pushes the changes of further partitions, while fewer requests are in flight than partitions may be.
    pub(super) fn push_more(&mut self, node: &mut Node<'_, T>) {
        let most = node.setup.max_partitions_in_flight(self.shards.len());
        let round = self.round;
        while !self.to_push.is_empty()
            && self.reports.unacknowledged(round) < self.to_push.len() + most
        {
            let Self { placement, held, to_push, .. } = self;
            let run = node.setup.trip(placement);
            let next = to_push.drain(..node.samplers.threads().min(to_push.len()));
            let next: Vec<u16> = next.collect();
            let jobs = held.iter_mut().filter(|(partition, _)| next.contains(partition));
            let jobs = jobs.map(|(&partition, rows)| (usize::from(partition), rows)).collect();
            let push = |rows: &mut HeldRows<T>, _: &mut _| rows.push(run, round);
            let requests = node.samplers.each(jobs, push);
            for request in requests.into_iter().flatten() {
                self.send(&request, RequestPurpose::Deltas(round), node);
                self.reports.expect(round, 1);
            }
            next.iter().for_each(|_| self.reports.acknowledge(round));
        }
    }

    /// Samples the partitions whose rows are there, if they are the first of their shard.
    fn sample_ready(&mut self, node: &mut Node<'_, T>) -> Vec<SampledTask> {
        let options = &node.setup.options;
        let stay = |shard: &Shard<T>| next_turn(shard.number(), options, &self.shards).is_some();
        let stay: Vec<bool> = self.shards.iter().map(stay).collect();
        let Self { placement, spec, shards, in_flight, round, totals, .. } = self;
        let context = RoundContext { spec, round: *round, totals, passes: options.passes };
        let run = node.setup.trip(placement);
        let mut shards: Vec<Option<&mut Shard<T>>> = shards.iter_mut().map(Some).collect();
        // The first partition of each shard.
        let firsts = in_flight
            .iter_mut()
            .filter_map(|flight| Some((shards[flight.task.shard].take()?, flight)));
        let is_ready = |(_, flight): &(_, &mut PartitionInFlight<T>)| {
            flight.task.round == *round && flight.source.is_ready()
        };
        let jobs = firsts.filter(is_ready).map(|job| (job.1.task.shard, job)).collect();
        node.samplers.each(jobs, |(shard, flight), sampler| {
            let task = flight.task;
            let stay = stay[task.shard];
            (task, sample(run, (shard, flight), sampler, &context, stay))
        })
    }

    /// Ends a partition that is done; then the shard's next partition may push.
    pub(super) fn finish_partition(
        &mut self,
        task: PartitionTask,
        node: &mut Node<'_, T>,
    ) -> Result<(), Failed> {
        let is_done = |flight: &PartitionInFlight<T>| {
            let is_done = match &flight.source {
                Source::Trip(trip) => trip.is_done(),
                Source::Requested(_) => false,
                Source::Held(_) => true,
            };
            flight.task == task && is_done
        };
        let Some(index) = self.in_flight.iter().position(is_done) else { return Ok(()) };
        let Some(flight) = self.in_flight.remove(index) else { return Ok(()) };
        let Self { placement, shards, held, .. } = self;
        match flight.source {
            Source::Trip(trip) => {
                trip.finish(node.setup.trip(placement), &mut shards[task.shard])?
            }
            Source::Requested(_) => {}
            Source::Held(rows) => {
                let number = shards[task.shard].number();
                if next_turn(number, &node.setup.options, shards).is_some() {
                    held.insert(task.partition, rows);
                }
            }
        }
        self.push_next(task.shard, node);
        self.advance(node)
    }
}

/// Samples a shard's tokens of a partition whose rows are there; returns the deltas to push, with those of
/// rows that came from servers for several shards only if these do not `stay`.
fn sample<T: TopicIndex>(
    run: TripContext<'_>,
    (shard, flight): (&mut Shard<T>, &mut PartitionInFlight<T>),
    sampler: &mut PartitionSampler<T>,
    context: &RoundContext<'_>,
    stay: bool,
) -> Result<Vec<TripRequest>, AnswerError> {
    match &mut flight.source {
        Source::Trip(trip) => {
            let sampled = trip.sample(run, shard, sampler, context)?;
            Ok(sampled.map_or(Vec::new(), |sampled| sampled.deltas))
        }
        Source::Held(rows) => {
            rows.sample(run, shard, sampler, context);
            Ok(if stay { Vec::new() } else { rows.push(run, context.round) })
        }
        Source::Requested(_) => Ok(Vec::new()),
    }
}

/// Indices of the shards that sample the task's partition one after another, before another worker does; in
/// an epoch that excludes converged tokens, only until its end.
pub(super) fn turns<T: TopicIndex>(
    task: PartitionTask,
    options: &Options,
    shards: &[Shard<T>],
) -> Vec<usize> {
    let (shard, Round { epoch, number, .. }) = (shards[task.shard].number(), task.round);
    let is_in_epoch = |index: usize| {
        let round = round_of(options, shards[index].number(), (shard, number));
        !options.excludes_in(epoch) || round > number
    };
    let mut turns = vec![task.shard];
    while let Some(index) = next_turn(shards[turns[turns.len() - 1]].number(), options, shards)
        && index != task.shard
        && is_in_epoch(index)
    {
        turns.push(index);
    }
    turns
}

/// Index of the shard that samples the partitions of this shard next, if it is at this worker.
fn next_turn<T: TopicIndex>(number: u16, options: &Options, shards: &[Shard<T>]) -> Option<usize> {
    let next = next_turn_of(number, options.shards);
    shards.binary_search_by_key(&next, Shard::number).ok()
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::train::SamplerOptions;

    use super::*;
    use crate::config::{Hybrid, Routing};
    use crate::placement::{Partitioner, Placement};
    use crate::shard::ShardDocuments;
    use crate::spec::ModelSpec;

    /// The words that the next epoch samples are not known before it starts.
    #[test]
    fn turns_end_with_an_epoch_that_excludes_tokens() {
        let corpus = Corpus::from_tokens([[0, 1], [1, 2], [0, 2], [1, 1]]).unwrap();
        let spec = ModelSpec::new(3, 3, 0.1.into(), 0.01, 4).unwrap();
        let placement = Placement::new(Partitioner::Range, &[1; 3], 1, 1).unwrap();
        // A worker with shards 0, 1 and 2 of four, which take turns in this order: 2, 1, 0.
        let shard = |number: u16| {
            let range = usize::from(number)..usize::from(number) + 1;
            let documents = ShardDocuments { corpus: &corpus, range, first: number.into() };
            Shard::<u16>::new(&spec, Hybrid::default(), &placement, number, documents).unwrap()
        };
        let shards = [0, 1, 2].map(shard);
        let options =
            Options { shards: 4, rounds: 4, routing: Routing::Pull, ..Options::default() };
        let sampler = SamplerOptions::FPlus { exclude_from: Some(5) };
        let excluding = Options { sampler, ..options };
        let turns = |options: &Options, epoch, number, shard| {
            let round = Round { epoch, number, attempt: 1 };
            super::turns(PartitionTask { round, shard, partition: 0 }, options, &shards)
        };
        for (number, shard, all, until_the_end) in [
            (0, 2, &[2, 1, 0][..], &[2, 1, 0][..]),
            (1, 2, &[2, 1, 0], &[2, 1, 0]),
            (2, 2, &[2, 1, 0], &[2, 1]),
            (3, 2, &[2, 1, 0], &[2]),
            (3, 0, &[0], &[0]),
        ] {
            assert_eq!(turns(&options, 5, number, shard), all);
            assert_eq!(turns(&excluding, 4, number, shard), all);
            assert_eq!(turns(&excluding, 5, number, shard), until_the_end, "{number} {shard}");
        }
    }
}
