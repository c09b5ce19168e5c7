//! One history: a run, its target, and the faults that occur.

use std::collections::BTreeMap;
use std::sync::Arc;

use lda_dist::cluster::{Message, Phase};
use lda_dist::snapshot::LATEST;
use lda_dist::storage::{Memory, Storage};
use lda_transport::Time;
use lda_transport::rpc::Window;
use lda_transport::sim::{Chaos, FaultWindow, SplitMix64};

use super::coverage::{Kind, Part, Who};
use super::lost_workers::{LostWorkers, end_of_those_who_take_part};
use super::random_runs::{Run, Task};
use super::recovery::world_with;
use super::targeted_faults::{Target, Watch};
use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
/// Time between two looks at the states of nodes.
const LOOK: Duration = Duration::from_micros(25);
/// Largest number of crashes: a run gives up after too many restarts without an epoch.
const MOST_CRASHES: u32 = 40;

/// Actions that were started and end later.
#[derive(Clone, Copy, Debug)]
enum Action {
    Crash(NodeId),
    Start(NodeId),
    Mend(NodeId, NodeId),
    Unsilence(NodeId, NodeId),
}

pub struct History<'a> {
    pub run: &'a Run,
    target: Target,
    setup: Setup,
    storage: Arc<Memory>,
    pub world: World<Node>,
    pub watch: Watch,
    numbers: SplitMix64,
    agenda: BTreeMap<(Time, u32), Action>,
    begun: u32,
    /// Number of targeted crashes, as opposed to random ones.
    crashes: u32,
    /// A node that is cut off from the master until the master has sent it a request, or until this
    /// time.
    isolated: Option<(NodeId, Time)>,
    /// Times of the next stop of a node, and of the next targeted fault.
    next_stop: Time,
    next_isolation: Time,
    next_strike: Time,
    pub stops: u64,
    /// Only in elastic runs.
    pub lost: LostWorkers,
    pub what: String,
}

impl<'a> History<'a> {
    pub fn new(task: &'a Task, target: Target, seed: u64) -> Self {
        let mut numbers = SplitMix64::new(seed);
        let (run, setup) = task.run(target, &mut numbers);
        let mut share = |most: f64| (numbers.below(1000) + 1) as f64 / 1000.0 * most;
        let mut network = Network {
            loss: share(0.03),
            duplication: share(0.05),
            reordering: share(0.2),
            late_delivery: share(1.0),
            full: share(0.02),
            ..Network::default()
        };
        network.detection_delay = target.detection_delay().unwrap_or(numbers.up_to(MILLISECOND));
        let storage = Arc::new(Memory::default());
        let window = target.window();
        let often = move |mut config: Config| {
            config.retry = Some(5 * MILLISECOND);
            if let Some(requests) = window {
                config.window = Window { requests, ..config.window };
            }
            config
        };
        let mut world = world_with(&setup, &run.stored, &storage, network, seed, often);
        let watch = Watch::new(&setup, target, seed);
        world.observe(watch.clone());
        let spell = |every: u64, lasting: u64| {
            let (every, lasting) = (Duration::from_millis(every), Duration::from_millis(lasting));
            Some(FaultWindow { every, lasting })
        };
        let crashes = spell(60 + 20 * (seed % 7), 10);
        world.set_chaos(Chaos { crashes, cuts: spell(150, 10), silences: spell(150, 10) });
        if let Some([from, to]) = target.slow(&setup) {
            world.change_way(from, to, |way| way.latency = 2 * MILLISECOND);
        }
        let next_stop = world.now() + numbers.up_to(target.stops_every());
        let (next_strike, next_isolation) = (Time::ZERO, Time::ZERO);
        let agenda = BTreeMap::new();
        let what = format!("seed {seed}, {target:?}");
        let (begun, crashes, stops, isolated) = (0, 0, 0, None);
        Self {
            run,
            target,
            setup,
            storage,
            world,
            watch,
            numbers,
            agenda,
            begun,
            crashes,
            isolated,
            next_stop,
            next_isolation,
            next_strike,
            stops,
            lost: LostWorkers::default(),
            what,
        }
    }

    fn nodes(&self) -> u64 {
        u64::from(1 + self.setup.options.servers + self.setup.workers)
    }

    fn in_time(&mut self, longest: [u32; 4], action: Action) {
        let longest = Duration::from_micros(longest[self.numbers.below(4) as usize].into());
        let time = self.world.now() + self.numbers.up_to(longest);
        self.begun += 1;
        self.agenda.insert((time, self.begun), action);
    }

    /// Runs with faults for this time.
    pub fn run_with_faults(&mut self, time: Duration) {
        let end = self.world.now() + time;
        // If the target is about it, a node that was released stays for a while.
        let rarely = if self.target.is_of_early_end() { 400 } else { 40 };
        while self.world.now() < end {
            self.world.run_for(LOOK);
            self.do_due_actions();
            self.restart_ended_nodes(rarely);
            if is_finished(&self.world) && self.numbers.below(100) == 0 {
                self.continue_run();
            }
            self.stop_a_node();
            self.isolate();
            self.strike();
            if self.setup.is_elastic() {
                self.lost.act(&mut self.world, &self.setup, &mut self.numbers);
            }
        }
        self.watch.rest();
        self.agenda.clear();
        self.world.heal();
    }

    fn do_due_actions(&mut self) {
        while let Some(first) = self.agenda.first_entry()
            && first.key().0 <= self.world.now()
        {
            match first.remove() {
                Action::Crash(id) => self.crash(id),
                Action::Start(id) if self.world.program(id).is_none() => self.world.restart(id),
                Action::Start(_) => {}
                Action::Mend(a, b) => self.world.mend(a, b),
                Action::Unsilence(from, to) => self.world.unsilence(from, to),
            }
        }
    }

    /// Restarts nodes that were stopped and have ended, with probability 1 / `rarely` per look.
    fn restart_ended_nodes(&mut self, rarely: u64) {
        for id in (0..self.nodes() as u32).map(NodeId) {
            let has_ended = self.world.program(id).is_some_and(|node| node.stopped().is_some());
            if has_ended && self.numbers.below(rarely) == 0 {
                self.world.restart(id);
            }
        }
    }

    /// Continues a run that has finished.
    fn continue_run(&mut self) {
        let any = NodeId(self.numbers.below(self.nodes()) as u32);
        let id = if self.numbers.below(2) == 0 { MASTER } else { any };
        // A restarted master continues from the checkpoint, or starts from nothing. After a restart
        // of any other node the run finishes again.
        if id == MASTER && self.numbers.below(4) > 0 {
            self.storage.remove(LATEST).unwrap();
        }
        self.world.restart(id);
    }

    fn any(&mut self, who: Who) -> NodeId {
        let (servers, workers) = (self.setup.options.servers, self.setup.workers);
        match who {
            Who::Master => MASTER,
            Who::Server => self.setup.server(self.numbers.below(servers.into()) as u32),
            Who::Worker => self.setup.worker(self.numbers.below(workers.into()) as u32),
        }
    }

    /// A server or worker other than these.
    fn other(&mut self, than: [NodeId; 2]) -> NodeId {
        loop {
            let other = NodeId(1 + self.numbers.below(self.nodes() - 1) as u32);
            if !than.contains(&other) {
                return other;
            }
        }
    }

    fn is_at(&self, id: NodeId, phase: Phase) -> bool {
        self.world.program(id).is_some_and(|node| node.phase() == phase)
    }

    /// Whether the master is within an epoch.
    fn is_in_epoch(&self) -> bool {
        let phases = [Phase::Sampling, Phase::Ending, Phase::Beginning];
        phases.into_iter().any(|phase| self.is_at(MASTER, phase))
    }

    /// Stops a random node.
    fn stop_a_node(&mut self) {
        if self.world.now() < self.next_stop {
            return;
        }
        let Some(id) = self.node_to_stop() else { return };
        self.world.with(id, |node, cx| node.stop(cx));
        self.stops += 1;
        self.next_stop = self.world.now() + self.numbers.up_to(self.target.stops_every());
    }

    /// Chooses the node to stop: any, or the one that the target needs.
    fn node_to_stop(&mut self) -> Option<NodeId> {
        let Target { kind: Kind { to, message, part }, phase } = self.target;
        let any = NodeId(self.numbers.below(self.nodes()) as u32);
        let by_chance = self.numbers.below(4000) == 0;
        match (message, part) {
            // A master that is collecting has to restart the run before nodes end.
            (Message::Rows, Part::Answered) if phase == Phase::Keeping => (self.is_in_epoch()
                && self.watch.target_in_flight(&self.world).is_some())
            .then_some(any),
            _ if by_chance => Some(any),
            // What happens later may be requested at any time.
            (Message::Stop, Part::Asked) => (phase >= Phase::Keeping || self.is_at(MASTER, phase))
                .then(|| self.other([MASTER; 2])),
            (Message::Stop, Part::Answered) => {
                let id = self.any(to);
                self.is_at(id, phase).then_some(id)
            }
            // The node may go at once, because the attempt has ended.
            (Message::Finish, Part::Asked) if phase < Phase::Finished => {
                let id = self.any(to);
                self.is_at(id, phase).then(|| {
                    let other = self.other([id; 2]);
                    self.in_time([200, 500, 1000, 2000], Action::Crash(other));
                    id
                })
            }
            _ if self.target.is_of_early_end() => {
                let id = self.other([MASTER; 2]);
                self.is_at(id, Phase::Waiting).then_some(id)
            }
            // Nodes end after an epoch, and requests to others are in flight for a while then.
            (Message::Keep, _) => (self.is_in_epoch()
                && self.watch.target_in_flight(&self.world).is_none())
            .then_some(any),
            _ => Some(any),
        }
    }

    /// Cuts a node off from another one, which then crashes, so that the node learns of the crash
    /// late or never. Its requests meanwhile go to the crashed incarnation or, if they are sent
    /// later, to the next one.
    fn isolate(&mut self) {
        if let Some([before, asked]) = self.target.asked_at() {
            return self.isolate_master_until(before, asked);
        }
        if self.world.now() < self.next_isolation {
            return;
        }
        let Target { kind: Kind { message, .. }, .. } = self.target;
        let often = self.target.is_queued() || message == Message::RestartRequest;
        if often && self.watch.target_in_flight(&self.world).is_some() {
            return;
        }
        let is_sampled = self.target.is_queued() && message != Message::Join;
        if is_sampled && !self.is_at(MASTER, Phase::Sampling) {
            return;
        }
        let every = if often { 20 } else { 300 } * MILLISECOND;
        self.next_isolation = self.world.now() + self.numbers.up_to(every);
        let from = self.any(Who::Worker);
        let to = self.any(Who::Server);
        self.world.cut(from, to);
        self.in_time([300, 500, 2000, 4000], Action::Crash(to));
        self.in_time([3000, 6000, 10_000, 20_000], Action::Mend(from, to));
    }

    /// The same for the master, before and after it sends a request.
    fn isolate_master_until(&mut self, before: Phase, asked: Phase) {
        let now = self.world.now();
        let Some((to, until)) = self.isolated else {
            if now >= self.next_isolation
                && self.is_at(MASTER, before)
                && self.numbers.below(8) == 0
            {
                let to = match self.target.kind.to {
                    // The server that has not replied yet, or the other one, which has ended the
                    // round.
                    Who::Server => self.setup.server(u32::from(before == asked)),
                    who => self.any(who),
                };
                self.world.cut(MASTER, to);
                self.isolated = Some((to, now + 10 * MILLISECOND));
            }
            return;
        };
        let has_asked = self.is_at(MASTER, asked);
        if !has_asked && self.is_at(MASTER, before) && now < until {
            return;
        }
        if has_asked {
            // The master waits while another node is away.
            let other = self.other([to; 2]);
            self.crash(other);
            self.world.restart(to);
            self.next_isolation = now + self.numbers.up_to(10 * MILLISECOND);
        }
        self.isolated = None;
        self.world.mend(MASTER, to);
    }

    /// Fails one end of a target message in flight, or the link between both. If its receiver is
    /// not in the phase and will not reach it, causes what may lead to it.
    fn strike(&mut self) {
        let now = self.world.now();
        let Some((from, to, is_at)) = self.watch.target_in_flight(&self.world) else { return };
        if now < self.next_strike {
            return;
        }
        if !is_at {
            return self.bring(from, to);
        }
        if self.numbers.below(2) > 0 {
            return;
        }
        self.next_strike = now + self.numbers.up_to(2 * MILLISECOND);
        match self.numbers.below(5) {
            0 => self.crash(from),
            1 => self.crash(to),
            2 => self.cut(from, to),
            3 => {
                self.world.silence(from, to);
                self.in_time([200, 1000, 3000, 20_000], Action::Unsilence(from, to));
            }
            // The message arrives.
            _ => {}
        }
    }

    /// Leads the receiver of a target message to its phase.
    fn bring(&mut self, from: NodeId, to: NodeId) {
        let Some(phase) = self.world.program(to).map(Role::phase) else { return };
        if self.target.comes_from(phase) || self.numbers.below(20) > 0 {
            return;
        }
        self.next_strike = self.world.now() + self.numbers.up_to(6 * MILLISECOND);
        if !is_finished(&self.world) {
            // The run restarts, and messages in flight stay so.
            let other = self.other([from, to]);
            self.crash(other);
        } else if from != MASTER && to != MASTER {
            self.crash(MASTER);
        }
    }

    fn crash(&mut self, id: NodeId) {
        if self.crashes == MOST_CRASHES {
            return;
        }
        self.crashes += 1;
        self.world.crash(id);
        self.in_time([0, 300, 2000, 10_000], Action::Start(id));
    }

    fn cut(&mut self, a: NodeId, b: NodeId) {
        self.world.cut(a, b);
        self.in_time([0, 300, 2000, 10_000], Action::Mend(a, b));
    }

    /// Runs to the end without further faults. Nodes that have crashed since the run finished have
    /// no state: the run then continues from the checkpoint, until all nodes have theirs.
    pub fn end(&mut self) -> End {
        for _ in 0..100_000 {
            self.restart_ended_nodes(1);
            if is_finished(&self.world) {
                if let Some(end) = self.whole_end() {
                    return end;
                }
                self.world.restart(MASTER);
            }
            self.world.run_for(MILLISECOND);
            if self.setup.is_elastic() {
                self.lost.act_at_end(&mut self.world, &self.setup);
            }
            for id in self.world.living() {
                let failed = self.world.program(id).and_then(Role::failed);
                assert!(failed.is_none(), "{}: {id}: {}", self.what, failed.unwrap());
            }
        }
        let stands = |id| self.world.program(id).map(|node| (node.phase(), node.state().round));
        let all: Vec<_> = (0..self.nodes() as u32).map(NodeId).map(stands).collect();
        panic!("{}: it does not end: {all:?}, {:?}", self.what, self.lost);
    }

    /// State at the end, if no node has crashed since.
    fn whole_end(&mut self) -> Option<End> {
        let Self { world, setup, run, .. } = self;
        if setup.is_elastic() {
            return end_of_those_who_take_part(world, setup, run.stored.firsts());
        }
        self.is_whole().then(|| of_world(&mut self.world, &self.setup, &self.run.stored))
    }

    fn is_whole(&self) -> bool {
        (0..self.nodes() as u32).map(NodeId).all(|id| match self.world.program(id) {
            Some(Role::Server(server)) => server.is_finished() && server.rows().is_some(),
            Some(Role::Worker(worker)) => worker.is_finished() && !worker.shards().is_empty(),
            Some(Role::Master(_)) => true,
            None => false,
        })
    }
}
