//! Rounds at a worker: partitions of its shards, some of which are underway at once.
//!
//! Rows and their sizes are as of the round's start, whenever they are asked for: those of the next partitions come
//! while one is sampled. What is pushed is another matter, since rows of C_d go with it, which the shard's partitions
//! before have changed. It leaves when it is the partition's **turn**, when those before it of the same shard are done;
//! what the partition pulls is sampled while its answer is underway, and other shards' partitions are. What words have
//! gained leaves as soon as it is known. Long documents are sampled by themselves while the epoch's first rows are on
//! their way. None of this changes a bit.
//!
//! Rows of [hot words](crate::placement) come from several servers, and are sampled when all are there; nothing is
//! asked before, as they are pulled in any case.
//!
//! Where rounds [overlap](crate::together::Options::slack) this goes on from one to the next: rows of the next round
//! come while this one's last are sampled, and what this one has gained is still on its way then. Only an epoch begins
//! with nothing underway, as rows of C_d are measured then, by which words are pulled or pushed.
//!
//! ```text
//! departs:   sizes → routes → pull
//! its turn:                        push ────────────────→ answer
//!                                  sample what has come → gained      both are there: it is done
//! ```

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{RequestId, RequestKind};

use super::super::control::{Control, Took};
use super::super::{Failed, MASTER, Port};
use super::{For, Worker};
use crate::documents::Documents;
use crate::job::Round;
use crate::partition_sampler::SliceRows;
use crate::request::{self, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{Plan, Shard};
use crate::together::{Bytes, Routing, group, routes};
use crate::wire::PushCode;

/// A partition of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub round: Round,
    /// Among this worker's shards.
    pub shard: usize,
    pub partition: u16,
}

/// A partition that is underway.
#[derive(Debug)]
pub(super) struct Flight {
    place: Place,
    /// From when they are known until its turn.
    routes: Option<Vec<Route>>,
    /// From its turn on.
    plan: Option<Plan>,
    pulled: Pulled,
    answer: Option<Frame>,
}

/// What becomes of tokens whose rows are pulled.
#[derive(Debug)]
enum Pulled {
    /// Rows of some slices have come.
    Awaited(Vec<Option<Frame>>),
    /// Of all slices.
    There(Vec<Frame>),
    Sampled,
}

impl Pulled {
    /// Rows of the slice at this place have come.
    fn put(&mut self, at: usize, frame: Frame) {
        let Self::Awaited(slices) = self else { return };
        if let Some(slice) = slices.get_mut(at) {
            *slice = Some(frame);
        }
        if slices.iter().all(Option::is_some) {
            *self = Self::There(slices.drain(..).flatten().collect());
        }
    }
}

impl Flight {
    fn new(place: Place) -> Self {
        Self { place, routes: None, plan: None, pulled: Pulled::Awaited(Vec::new()), answer: None }
    }

    /// Whether its tokens can be sampled here.
    fn has_work(&self) -> bool {
        self.plan.is_some() && matches!(self.pulled, Pulled::There(_))
    }

    /// Whether all tokens have their topics, but for those that the answer has.
    fn is_done(&self) -> bool {
        self.plan.is_some() && matches!(self.pulled, Pulled::Sampled) && self.answer.is_some()
    }
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// More partitions, as many as may be underway, and rounds as they end and begin.
    pub(super) fn go_on(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        loop {
            while self.flights.len() <= usize::from(self.setup.ahead) {
                if self.left.is_empty() && !self.queue() {
                    break;
                }
                let Some(place) = self.left.pop_front() else { continue };
                self.flights.push_back(Flight::new(place));
                self.depart(place, port)?;
            }
            if self.sampling && self.is_sampled() {
                self.sampling = false;
                let took = self.took();
                if took.is_some() && self.setup.keeps(self.round.epoch) {
                    self.keep();
                }
                self.ending.push_back((self.round, took));
            }
            if self.sampling || !self.enter(port)? {
                break;
            }
        }
        self.tell_done(port);
        Ok(())
    }

    /// Whether nothing of this round is left to sample.
    fn is_sampled(&self) -> bool {
        let left = self.left.iter().chain(self.flights.iter().map(|flight| &flight.place));
        self.long_left.is_empty() && !left.into_iter().any(|place| place.round == self.round)
    }

    /// Puts the partitions of the next round of this epoch behind those that are left; false where it may not begin
    /// yet.
    fn queue(&mut self) -> bool {
        let next = self.queued.next(self.setup.options.rounds);
        let may_begin = next.epoch == self.round.epoch && self.begun.contains_key(&next);
        if may_begin {
            self.queue_round(next);
        }
        may_begin
    }

    fn queue_round(&mut self, round: Round) {
        self.queued = round;
        let Some(placement) = &self.placement else { return };
        // Shards take turns: one's tokens are sampled while another's are underway.
        let mut by_turn: Vec<(usize, Place)> = Vec::new();
        for (at, shard) in self.shards.iter().enumerate() {
            let group = group(&self.setup.options, placement, shard.number(), round.number);
            let some = group.filter(|&partition| !shard.words(partition).is_empty());
            by_turn.extend(some.map(|partition| Place { round, shard: at, partition }).enumerate());
        }
        by_turn.sort_by_key(|(turn, _)| *turn);
        self.left.extend(by_turn.into_iter().map(|(_, place)| place));
    }

    /// Begins to sample the next round; false where it may not begin yet.
    fn enter(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        let round = self.round.next(self.setup.options.rounds);
        let Some(gained) = self.begun.remove(&round) else { return Ok(false) };
        for (topic, by) in gained {
            let total = &mut self.totals[topic as usize];
            *total = total.checked_add_signed(by).ok_or_else(|| Failed::Message {
                peer: MASTER,
                what: "totals below 0".to_owned(),
            })?;
        }
        (self.round, self.sampling) = (round, true);
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if round.number == 0 {
                shard.begin_epoch(&self.setup.job);
                if shard.has_long() {
                    self.long_left.push_back(at);
                }
            }
            shard.begin_round(&self.totals, self.setup.options.slack)?;
        }
        if self.queued < round {
            self.queue_round(round);
        }
        (0..self.shards.len()).for_each(|shard| self.push_next(shard, port));
        Ok(true)
    }

    /// Tells the master of rounds that are done, in order.
    fn tell_done(&mut self, port: &mut dyn Port) {
        while let Some((round, _)) = self.ending.front() {
            if self.to_be_done.get(round).is_some_and(|&left| left > 0) {
                return;
            }
            self.to_be_done.remove(round);
            let Some((round, took)) = self.ending.pop_front() else { return };
            self.note_kept();
            let told = Control::Done { round, kept: self.kept, took };
            self.link.tell(&told, &self.setup, port);
        }
    }

    /// What an epoch took, after its last round.
    fn took(&mut self) -> Option<Took> {
        let epoch = self.round.epoch;
        if !self.round.is_last(self.setup.options.rounds) {
            return None;
        }
        let part = |shard: &Shard<T>| (shard.number(), shard.log_joint(&self.setup.job));
        let judged = self.setup.judges(epoch);
        let parts = if judged { self.shards.iter().map(part).collect() } else { Vec::new() };
        let non_zeros = if judged { self.shards.iter().map(Shard::non_zeros).sum() } else { 0 };
        let (bytes, waited) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.waited));
        Some(Took { bytes, waited, memory: self.memory(), non_zeros, parts })
    }

    /// Bytes held, without what travels.
    pub(super) fn memory(&self) -> u64 {
        let shards: usize = self.shards.iter().map(Shard::memory).sum();
        (shards + self.sampler.memory() + self.planned) as u64
    }

    /// Asks for what does not depend on the partitions before.
    fn depart(&mut self, place: Place, port: &mut dyn Port) -> Result<(), Failed> {
        let Self { setup, placement: Some(placement), shards, .. } = self else { return Ok(()) };
        let partition = place.partition;
        if setup.options.routing == Routing::Cheapest && !placement.is_hot(partition.into()) {
            self.ask(place, partition, request::Kind::Sizes, &[], For::Sizes(place), port);
            return Ok(());
        }
        let routes = routes(&setup.options, placement, &shards[place.shard], partition, &[]);
        self.pull(place, routes, port)
    }

    /// Slices of a partition, by topics.
    fn slices(&self, place: Place) -> Vec<u16> {
        let Some(placement) = &self.placement else { return Vec::new() };
        placement.slices(place.partition.into()).map(|slice| slice as u16).collect()
    }

    /// Asks for rows.
    fn pull(
        &mut self,
        place: Place,
        routes: Vec<Route>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let slices = self.slices(place);
        let Some(flight) = self.flights.iter_mut().find(|flight| flight.place == place) else {
            return Ok(());
        };
        if routes.contains(&Route::Pull) {
            let mut body = Vec::new();
            put_routes(&routes, &mut body);
            flight.routes = Some(routes);
            flight.pulled = Pulled::Awaited(vec![None; slices.len()]);
            for (at, slice) in (0..).zip(slices) {
                self.ask(place, slice, request::Kind::Pull, &body, For::Rows(place, at), port);
            }
        } else {
            flight.routes = Some(routes);
            flight.pulled = Pulled::Sampled;
        }
        self.push_next(place.shard, port);
        Ok(())
    }

    /// Pushes documents of the partition of a shard whose turn it is, once its routes are known.
    fn push_next(&mut self, shard: usize, port: &mut dyn Port) {
        let first = self.flights.iter_mut().find(|flight| flight.place.shard == shard);
        let Some(flight) = first.filter(|flight| flight.place.round == self.round) else { return };
        let Some(routes) = flight.routes.take() else { return };
        let place = flight.place;
        let plan = self.shards[shard].request(place.partition, routes);
        let code = self.code(&plan);
        let mut body = Vec::new();
        plan.pushed.iter().for_each(|document| code.encode(document, &mut body));
        let first = self.flights.iter_mut().find(|flight| flight.place == place);
        let flight = first.expect("it is underway");
        flight.answer = plan.pushed.is_empty().then(|| Vec::new().into());
        flight.plan = Some(plan);
        let plans = self.flights.iter().filter_map(|flight| flight.plan.as_ref());
        self.planned = self.planned.max(plans.map(Plan::memory).sum());
        if !body.is_empty() {
            self.ask(place, place.partition, request::Kind::Push, &body, For::Answer(place), port);
        }
    }

    fn code(&self, plan: &Plan) -> PushCode {
        let words = plan.routes.len() as u32;
        PushCode::new(self.setup.job.topics(), words, self.setup.options.longest)
    }

    /// Asks the server of a slice of a partition.
    fn ask(
        &mut self,
        place: Place,
        slice: u16,
        kind: request::Kind,
        body: &[u8],
        what: For,
        port: &mut dyn Port,
    ) {
        let Some(placement) = &self.placement else { return };
        let Place { round, shard, .. } = place;
        let mut bytes = Vec::new();
        request::begin(kind, &self.shards[shard].about(slice, round), &mut bytes);
        bytes.extend_from_slice(body);
        self.bytes.count_request(kind, bytes.len() as u64);
        let server = self.setup.server(placement.server(slice.into()));
        let how = match kind {
            request::Kind::Sizes | request::Kind::Pull => RequestKind::Pull,
            request::Kind::Push => RequestKind::Call,
            request::Kind::Join | request::Kind::Gained => RequestKind::Push,
        };
        self.outbox.send(port, server, how, &bytes, what);
    }

    /// A server has done what it was asked.
    pub(super) fn ended(
        &mut self,
        what: For,
        request: RequestId,
        frame: Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let Bytes { sizes, answers, rows, .. } = &mut self.bytes;
        let len = frame.len() as u64;
        match what {
            For::Join(round) | For::Gained(round) => {
                if let Some(left) = self.to_be_done.get_mut(&round) {
                    *left = left.saturating_sub(1);
                }
                self.join(port);
                self.tell_done(port);
                Ok(())
            }
            For::Sizes(place) => {
                *sizes += len;
                let shard = &self.shards[place.shard];
                let (found, words) = (frame.len(), shard.words(place.partition).len());
                if found != words {
                    let what = format!("{found} sizes of {words} words");
                    return Err(Failed::Message { peer: request.peer, what });
                }
                let sizes: Vec<u32> = frame.iter().map(|&byte| size_of_byte(byte)).collect();
                let Some(placement) = &self.placement else { return Ok(()) };
                let routes = routes(&self.setup.options, placement, shard, place.partition, &sizes);
                self.pull(place, routes, port)
            }
            For::Rows(place, at) => {
                *rows += len;
                let mut flights = self.flights.iter_mut();
                if let Some(flight) = flights.find(|flight| flight.place == place) {
                    flight.pulled.put(usize::from(at), frame);
                }
                Ok(())
            }
            For::Answer(place) => {
                *answers += len;
                let mut flights = self.flights.iter_mut();
                if let Some(flight) = flights.find(|flight| flight.place == place) {
                    flight.answer = Some(frame);
                }
                self.land(place, port)
            }
        }
    }

    /// Samples a partition whose rows have come and whose turn it is, and before it long documents by themselves; false
    /// where there is none. What was asked before should have left by then.
    pub(in super::super) fn work(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        if let Some(shard) = self.long_left.pop_front() {
            let Self { setup, shards, sampler, totals, round, .. } = self;
            shards[shard].sample_documents(sampler, &setup.job, *round, totals);
            if self.long_left.is_empty() {
                self.go_on(port)?;
            }
            return Ok(true);
        }
        let Some(flight) = self.flights.iter_mut().find(|flight| flight.has_work()) else {
            return Ok(false);
        };
        let Flight { place, plan: Some(plan), pulled, .. } = flight else { return Ok(false) };
        let (place, before) = (*place, std::mem::replace(pulled, Pulled::Sampled));
        let Pulled::There(rows) = before else { return Ok(false) };
        let Self { setup, placement: Some(placement), shards, sampler, totals, round, .. } = self
        else {
            return Ok(false);
        };
        let mut body = Vec::new();
        put_routes(&plan.routes, &mut body);
        let numbers = placement.slices(place.partition.into());
        let topics = numbers.map(|slice| placement.slice(slice, setup.job.topics()).1);
        let of_slice = |(topics, rows)| SliceRows { topics, rows, deltas: body.clone() };
        let mut slices: Vec<SliceRows<'_>> =
            topics.zip(rows.iter().map(|it| &it[..])).map(of_slice).collect();
        let shard = &mut shards[place.shard];
        let (job, passes) = (&setup.job, setup.options.passes);
        shard.sample(sampler, job, *round, place.partition, plan, passes, totals, &mut slices)?;
        let gained: Vec<Vec<u8>> = slices.into_iter().map(|slice| slice.deltas).collect();
        for (slice, gained) in self.slices(place).into_iter().zip(gained) {
            let what = For::Gained(place.round);
            self.ask(place, slice, request::Kind::Gained, &gained, what, port);
            *self.to_be_done.entry(place.round).or_default() += 1;
        }
        self.land(place, port)?;
        Ok(true)
    }

    /// Ends a partition, if all of it is done: then the next of its shard has its turn.
    fn land(&mut self, place: Place, port: &mut dyn Port) -> Result<(), Failed> {
        let done = |flight: &Flight| flight.place == place && flight.is_done();
        let Some(at) = self.flights.iter().position(done) else { return Ok(()) };
        let Some(Flight { plan: Some(plan), answer: Some(answer), .. }) = self.flights.remove(at)
        else {
            return Ok(());
        };
        let code = self.code(&plan);
        self.shards[place.shard].answered(code, place.partition, &plan, &answer)?;
        self.push_next(place.shard, port);
        self.go_on(port)
    }
}
