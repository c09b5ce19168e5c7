//! Drives the trip of a partition: sends its requests to servers of the same process.

use lda_core::counts::TopicIndex;

use super::InProcessError;
use super::event::{Event, Exchange, Observer};
use crate::partition_sampler::{PartitionSampler, RoundContext};
use crate::server::Server;
use crate::shard::Shard;
use crate::spec::Round;
use crate::stats::Bytes;
use crate::trip::{Sampled, Trip, TripContext, TripRequest};

/// The servers, as a shard reaches them in a round.
pub(super) struct Servers<'a, T: TopicIndex> {
    pub run: TripContext<'a>,
    pub servers: &'a mut [Server<T>],
    pub round: Round,
    pub bytes: &'a mut Bytes,
    pub observer: Observer<'a>,
}

impl<T: TopicIndex> Servers<'_, T> {
    /// Samples one partition of one shard.
    pub fn exchange(
        &mut self,
        shard: &mut Shard<T>,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
        partition: u16,
    ) -> Result<(), InProcessError> {
        if !shard.samples(partition) {
            return Ok(());
        }
        let run = self.run;
        let mut trip = Trip::<Vec<u8>>::new(shard.number(), partition, self.round);
        if let Some(request) = trip.start(run, shard) {
            let (sizes, exchange) = self.send(&request)?;
            (self.observer)(Event::Exchange(exchange));
            trip.accept_sizes(run, shard, &sizes)?;
        }
        if let Some(request) = trip.push(run, shard) {
            let (answer, exchange) = self.send(&request)?;
            let documents = trip.pushed();
            (self.observer)(Event::Exchange(Exchange { documents, ..exchange }));
            trip.accept_answer(answer);
        }
        let mut pulled = Vec::new();
        for (position, request) in trip.pull(run).into_iter().enumerate() {
            let (rows, exchange) = self.send(&request)?;
            pulled.push(exchange);
            trip.accept_rows(position, rows);
        }
        if let Some(Sampled { stats, deltas }) = trip.sample(run, shard, sampler, round)? {
            // Rows are reported with the first slice.
            let mut stats = Some(stats);
            for (exchange, request) in pulled.into_iter().zip(deltas) {
                let stats = stats.take().unwrap_or_default();
                let (rows, entries) = (stats.rows, stats.pulled);
                (self.observer)(Event::Exchange(Exchange { rows, entries, ..exchange }));
                let (_, exchange) = self.send(&request)?;
                let entries = stats.deltas;
                (self.observer)(Event::Exchange(Exchange { rows, entries, ..exchange }));
            }
        }
        Ok(trip.finish(run, shard)?)
    }

    /// Sends a request; returns the reply.
    fn send(
        &mut self,
        request: &TripRequest,
    ) -> Result<(Vec<u8>, Exchange<'static>), InProcessError> {
        let (server, kind) = (self.run.placement.server(request.slice()), request.kind);
        let (body, mut reply) = (request.encode(), Vec::new());
        (self.observer)(Event::Begins { server });
        self.servers[server as usize].serve(&body, &mut reply)?;
        (self.observer)(Event::Ends { server });
        let (sent, received) = (body.len() as u64, reply.len() as u64);
        self.bytes.count_request(kind, sent);
        self.bytes.count_reply(kind, received);
        let exchange = Exchange {
            server,
            kind,
            request: sent,
            reply: received,
            rows: 0,
            entries: 0,
            documents: &[],
        };
        Ok((reply, exchange))
    }
}
