//! Histories: the faults of a seed, and their run.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lda_transport::rpc::{Config, Identity, RequestKind, Window};
use lda_transport::sim::{Chaos, Coverage, FaultWindow, Network, Options, SplitMix64, World};
use lda_transport::{Frame, NodeId};

use crate::log::Log;
use crate::peer::Peer;
use crate::seeded_bugs::Bug;

pub const MILLISECOND: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Scenario {
    pub options: Options,
    pub nodes: u32,
    /// Window of each node, in requests.
    pub window: u32,
    /// Least time in which nodes make requests.
    pub asking: Duration,
    /// Least number of faults in that time.
    pub faults: u64,
    /// Longest time between two requests of a node.
    pub gap: Duration,
    pub patience: u32,
    /// Milliseconds that answers take while nodes make requests.
    pub answers: [u32; 5],
    /// Share of starts at which a node has another configuration.
    pub misfits: f64,
    /// Share of frames that are not a message when they arrive.
    pub garbled: f64,
    pub bug: Option<Bug>,
    /// Whether a new incarnation knows the last group.
    pub is_told: bool,
}

/// Result of a history.
pub struct History {
    pub ends: [u64; 4],
    pub most_doing: usize,
    /// Number of rejections by overload.
    pub busy: u64,
    /// Number of executed requests whose reply was too long.
    pub untold: u64,
    /// Number of successful collective operations at all nodes.
    pub gathered: u64,
    pub strays: u64,
    /// Longest time from the end of the faults until every request had ended.
    pub slow: Duration,
    pub faults: u64,
    pub steps: u64,
    pub fingerprint: u64,
    pub coverage: Coverage,
    /// The last lines of the trace.
    pub text: String,
}

impl Scenario {
    /// Without faults.
    pub fn calm(seed: u64) -> Self {
        let network = Network { latency: MILLISECOND, max_frame_len: 1500, ..Network::default() };
        Self {
            options: Options { seed, network, ..Options::default() },
            nodes: 4,
            window: 4,
            asking: SECOND * 3,
            faults: 0,
            gap: MILLISECOND * 24,
            patience: 1,
            answers: [0, 0, 1, 5, 60],
            misfits: 0.0,
            garbled: 0.0,
            bug: None,
            is_told: false,
        }
    }

    /// Three to six nodes; each fault in about four of five seeds, and incompatible nodes in half
    /// of them.
    pub fn of(seed: u64) -> Self {
        let mut rng = SplitMix64::new(!seed);
        let mut some = |share: f64| {
            let most = rng.below(1000) as f64 / 1000.0 * share;
            if rng.below(5) == 0 { 0.0 } else { most }
        };
        let mut network = Network {
            loss: some(0.15),
            duplication: some(0.25),
            reordering: some(0.6),
            late_delivery: some(1.0),
            full: some(0.35),
            max_frame_len: 1500,
            ..Network::default()
        };
        let strange = some(1.0) > 0.4;
        let (misfits, garbled) = if strange { (some(0.5), some(0.03)) } else { (0.0, 0.0) };
        let farthest = [2, 20, 150][rng.below(3) as usize];
        network.latency = rng.up_to(MILLISECOND * farthest);
        network.jitter = rng.up_to(MILLISECOND * 2);
        network.detour = rng.up_to(MILLISECOND * 120);
        network.detection_delay = rng.up_to(MILLISECOND * 100);
        network.bandwidth = [1_000_000_000, 100_000, 30_000][rng.below(3) as usize];
        network.queue_bytes = 400 + rng.below(2000) as usize;
        let mut window_of = |every: u32, lasting: u32| {
            let every = MILLISECOND * (20 + rng.below(u64::from(every)) as u32);
            let window_of = FaultWindow { every, lasting: MILLISECOND * lasting };
            (rng.below(5) > 0, window_of)
        };
        let [cuts, silences, crashes] =
            [window_of(200, 600), window_of(300, 900), window_of(200, 900)];
        let some = |(is, window_of): (bool, FaultWindow)| is.then_some(window_of);
        let (silences, crashes) = (some(silences), some(crashes));
        // Some connection has to fail; otherwise incompatible nodes are refused once and never
        // again.
        let cuts = some(cuts).or(crashes.is_none().then_some(cuts.1));
        let window = [1, 2, 4, 4, 8][rng.below(5) as usize];
        let nodes = 3 + rng.below(4) as u32;
        let slow = [[0, 0, 1, 5, 60], [0, 0, 1, 5, 60], [0, 5, 6000, 6000, 6000]];
        let answers = slow[rng.below(3) as usize];
        Self {
            options: Options { seed, network, chaos: Chaos { cuts, silences, crashes }, keep: 0 },
            nodes,
            window,
            faults: 5,
            gap: MILLISECOND * 6 * nodes,
            answers,
            misfits,
            garbled,
            ..Self::calm(seed)
        }
    }

    fn config(&self, identity: Identity) -> Config {
        let Options { network, chaos, .. } = self.options;
        let lossy = network.loss > 0.0 || network.reordering > 0.0 || chaos.silences.is_some();
        Config {
            window: Window { requests: self.window, bytes: 900 },
            in_flight: 1200,
            queue: 8,
            hello_interval: MILLISECOND * 50,
            heartbeat_interval: MILLISECOND * 100,
            silence_timeout: MILLISECOND * 250,
            retry: lossy.then_some(MILLISECOND * 40),
            part_len: 128,
            max_content_len: 4096,
            ..Config::new(identity)
        }
    }

    fn world(&self, log: &Rc<RefCell<Log>>) -> World<Peer> {
        let mut world = World::new(&self.options);
        for id in (0..self.nodes).map(NodeId) {
            let (scenario, log) = (self.clone(), log.clone());
            let mut rng = SplitMix64::new(self.options.seed ^ u64::from(id.0) << 40);
            world.add(id, move |start| {
                let mut incarnation = start.incarnation;
                if scenario.bug == Some(Bug::Forgets) {
                    incarnation = u64::from(id.0) + 1;
                }
                let misfit = rng.chance(scenario.misfits) && log.borrow().asking;
                let configuration = if misfit { 100 + start.incarnation } else { 2 };
                if misfit {
                    log.borrow_mut().misfits.insert(id);
                } else {
                    log.borrow_mut().misfits.remove(&id);
                }
                let identity = Identity { incarnation, role: 0, run: 1, configuration };
                let (gap, patience) = (scenario.gap, scenario.patience);
                let mut peer = Peer::new(log.clone(), scenario.nodes, gap, patience);
                peer.times = scenario.answers;
                peer.is_told = scenario.is_told;
                peer.resends = scenario.bug == Some(Bug::Resends);
                (scenario.config(identity), peer)
            });
        }
        let (bug, garbled) = (self.bug, self.garbled);
        let (mut rng, log) = (SplitMix64::new(self.options.seed ^ 3), log.clone());
        let mut rewrite = bug.map(Bug::rewriting);
        if garbled > 0.0 || bug.is_some() {
            world.rewrite(move |from, to, frame| {
                if log.borrow().asking && rng.chance(garbled) {
                    return Frame::from(vec![0xff; frame.len()]);
                }
                match &mut rewrite {
                    Some(rewrite) => rewrite(from, to, frame),
                    None => frame,
                }
            });
        }
        world
    }

    /// Runs the nodes with faults, then without, until every request has ended.
    ///
    /// # Errors
    /// The promises that were broken.
    pub fn run(&self) -> Result<History, String> {
        let peaceful = self.misfits == 0.0 && self.garbled == 0.0;
        let log = Rc::new(RefCell::new(Log::new(peaceful)));
        let mut world = self.world(&log);
        world.run_for(self.asking);
        while world.faults() < self.faults {
            world.run_for(self.asking / 5);
        }
        let faults = world.faults();
        log.borrow_mut().asking = false;
        world.heal();
        if !peaceful {
            self.reconcile(&mut world, &log);
        }
        // Operations succeed again when all nodes have reached the same group.
        let all_gathered = |world: &World<Peer>| log.borrow().well.len() == world.living().count();
        let begun = world.now();
        while !all_gathered(&world) && world.now().since(begun) < SECOND * 60 {
            world.run_for(MILLISECOND * 100);
        }
        if !all_gathered(&world) {
            let what = format!("only {:?} complete operations", log.borrow().well);
            log.borrow_mut().blame(what);
        }
        let last = world.living().filter_map(|id| world.program(id)?.running()).max();
        log.borrow_mut().last_begun = last.unwrap_or_default();
        log.borrow_mut().gathering = false;
        let mut slow = finish(&mut world);
        // From here on every request must succeed.
        let next = log.borrow().next();
        log.borrow_mut().healed = Some(next);
        for (a, kind) in (0..self.nodes)
            .zip([RequestKind::Pull, RequestKind::Push, RequestKind::Call].into_iter().cycle())
        {
            for b in (0..self.nodes).filter(|&b| b != a) {
                world.with(NodeId(a), |peer, cx| peer.ask(NodeId(b), kind, 100, SECOND * 30, cx));
            }
        }
        slow = slow.max(finish(&mut world));
        let log = log.borrow();
        let mut wrong = log.wrong.clone();
        if open(&world) > 0 {
            wrong.push(format!("{} requests have no outcome", open(&world)));
        }
        if !wrong.is_empty() {
            let seed = self.options.seed;
            return Err(format!("seed {seed}: {}\n{}", wrong.join("\n"), world.trace()));
        }
        Ok(History {
            ends: log.ends,
            most_doing: log.most_doing,
            busy: log.busy,
            untold: log.untold,
            gathered: log.gathered,
            strays: world.living().map(|id| world.endpoint(id).unwrap().strays()).sum(),
            slow,
            faults,
            steps: world.steps(),
            fingerprint: world.trace().fingerprint(),
            coverage: world.coverage().clone(),
            text: world.trace().to_string(),
        })
    }

    /// Sixteen nodes with all faults, for this time.
    pub fn soak(seed: u64, asking: Duration) -> Self {
        let network = Network {
            latency: MILLISECOND,
            jitter: MILLISECOND,
            bandwidth: 100_000,
            queue_bytes: 2000,
            loss: 0.02,
            duplication: 0.02,
            reordering: 0.05,
            detour: MILLISECOND * 20,
            late_delivery: 0.5,
            full: 0.02,
            max_frame_len: 1500,
            detection_delay: MILLISECOND * 20,
        };
        let window_of = |every| Some(FaultWindow { every: SECOND * every, lasting: SECOND * 5 });
        let chaos = Chaos { cuts: window_of(2), silences: window_of(3), crashes: window_of(1) };
        Self {
            options: Options { seed, network, chaos, keep: 0 },
            nodes: 16,
            asking,
            faults: 5,
            gap: MILLISECOND * 200,
            misfits: 0.05,
            garbled: 0.0001,
            is_told: true,
            ..Self::calm(seed)
        }
    }

    /// Returns the same scenario, which keeps this many lines of text.
    pub fn with_text(&self, lines: usize) -> Self {
        let options = Options { keep: lines, ..self.options };
        Self { options, ..self.clone() }
    }

    /// Ends refusals: restarts incompatible nodes with the common configuration and reconnects all,
    /// after late frames have arrived.
    fn reconcile(&self, world: &mut World<Peer>, log: &Rc<RefCell<Log>>) {
        world.change(|network| network.late_delivery = 0.0);
        world.run_for(SECOND * 2);
        let misfits: Vec<NodeId> = log.borrow().misfits.iter().copied().collect();
        misfits.into_iter().for_each(|id| world.restart(id));
        for a in (0..self.nodes).map(NodeId) {
            for b in (0..a.0).map(NodeId) {
                world.cut(a, b);
                world.mend(a, b);
            }
        }
    }
}

fn open(world: &World<Peer>) -> usize {
    world.living().map(|id| world.program(id).unwrap().open()).sum()
}

/// Runs until every request has ended, for at most a minute. Returns the time that it took.
fn finish(world: &mut World<Peer>) -> Duration {
    let begun = world.now();
    while open(world) > 0 && world.now().since(begun) < SECOND * 60 {
        world.run_for(MILLISECOND * 100);
    }
    world.now().since(begun)
}
