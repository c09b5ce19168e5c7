//! A history: what is to go wrong, by seed, and the run of it.

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
    /// Requests that each takes of another at once.
    pub window: u32,
    /// How long nodes ask, at least, and how many faults there are then, at least.
    pub asking: Duration,
    pub faults: u64,
    /// Between two requests of a node, at most.
    pub gap: Duration,
    pub patience: u32,
    /// Milliseconds that answers take, while nodes ask.
    pub answers: [u32; 5],
    /// Starts that give a node another configuration than the others have.
    pub misfits: f64,
    /// Frames that are no message when they arrive.
    pub garbled: f64,
    pub bug: Option<Bug>,
    /// Whether a new incarnation knows which group of nodes is the last.
    pub is_told: bool,
}

/// What came of it.
pub struct History {
    pub ends: [u64; 4],
    pub most_doing: usize,
    /// Requests that were rejected because too many were being done.
    pub busy: u64,
    /// What was done and could not be told.
    pub untold: u64,
    /// How often what nodes do together went well, at each of them.
    pub gathered: u64,
    pub strays: u64,
    /// How long it took at most, when all was healed, until everything had ended.
    pub slow: Duration,
    pub faults: u64,
    pub steps: u64,
    pub fingerprint: u64,
    pub coverage: Coverage,
    /// Of the last lines.
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

    /// Three to six nodes; each fault in four of five seeds or so, and strangers in half of
    /// them.
    pub fn of(seed: u64) -> Self {
        let mut numbers = SplitMix64::new(!seed);
        let mut some = |share: f64| {
            let most = numbers.below(1000) as f64 / 1000.0 * share;
            if numbers.below(5) == 0 { 0.0 } else { most }
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
        let farthest = [2, 20, 150][numbers.below(3) as usize];
        network.latency = numbers.up_to(MILLISECOND * farthest);
        network.jitter = numbers.up_to(MILLISECOND * 2);
        network.detour = numbers.up_to(MILLISECOND * 120);
        network.detection_delay = numbers.up_to(MILLISECOND * 100);
        network.bandwidth = [1_000_000_000, 100_000, 30_000][numbers.below(3) as usize];
        network.queue_bytes = 400 + numbers.below(2000) as usize;
        let mut spell = |every: u32, lasting: u32| {
            let every = MILLISECOND * (20 + numbers.below(u64::from(every)) as u32);
            let spell = FaultWindow { every, lasting: MILLISECOND * lasting };
            (numbers.below(5) > 0, spell)
        };
        let [cuts, silences, crashes] = [spell(200, 600), spell(300, 900), spell(200, 900)];
        let some = |(is, spell): (bool, FaultWindow)| is.then_some(spell);
        let (silences, crashes) = (some(silences), some(crashes));
        // Something has to fail, or those that do not fit are refused, and no more is heard of them.
        let cuts = some(cuts).or(crashes.is_none().then_some(cuts.1));
        let window = [1, 2, 4, 4, 8][numbers.below(5) as usize];
        let nodes = 3 + numbers.below(4) as u32;
        let slow = [[0, 0, 1, 5, 60], [0, 0, 1, 5, 60], [0, 5, 6000, 6000, 6000]];
        let answers = slow[numbers.below(3) as usize];
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
            piece: 128,
            max_content_len: 4096,
            ..Config::new(identity)
        }
    }

    fn world(&self, log: &Rc<RefCell<Log>>) -> World<Peer> {
        let mut world = World::new(&self.options);
        for id in (0..self.nodes).map(NodeId) {
            let (scenario, log) = (self.clone(), log.clone());
            let mut numbers = SplitMix64::new(self.options.seed ^ u64::from(id.0) << 40);
            world.add(id, move |birth| {
                let mut incarnation = birth.incarnation;
                if scenario.bug == Some(Bug::Forgets) {
                    incarnation = u64::from(id.0) + 1;
                }
                let misfit = numbers.chance(scenario.misfits) && log.borrow().asking;
                let configuration = if misfit { 100 + birth.incarnation } else { 2 };
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
        let (mut numbers, log) = (SplitMix64::new(self.options.seed ^ 3), log.clone());
        let mut rewrite = bug.map(Bug::rewriting);
        if garbled > 0.0 || bug.is_some() {
            world.rewrite(move |from, to, frame| {
                if log.borrow().asking && numbers.chance(garbled) {
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

    /// Has the nodes ask while things fail, and again when all is healed, until everything has ended.
    ///
    /// # Errors
    /// What was not as promised.
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
        // What is done together is done again when all have come to the same group.
        let all_gathered = |world: &World<Peer>| log.borrow().well.len() == world.living().count();
        let begun = world.now();
        while !all_gathered(&world) && world.now().since(begun) < SECOND * 60 {
            world.run_for(MILLISECOND * 100);
        }
        if !all_gathered(&world) {
            let what = format!("only {:?} do anything together", log.borrow().well);
            log.borrow_mut().blame(what);
        }
        let last = world.living().filter_map(|id| world.program(id)?.running()).max();
        log.borrow_mut().last_begun = last.unwrap_or_default();
        log.borrow_mut().gathering = false;
        let mut slow = finish(&mut world);
        // And now all ends well.
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
            wrong.push(format!("{} requests have no end", open(&world)));
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

    /// Sixteen nodes for so long, and all that can go wrong.
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
        let spell = |every| Some(FaultWindow { every: SECOND * every, lasting: SECOND * 5 });
        let chaos = Chaos { cuts: spell(2), silences: spell(3), crashes: spell(1) };
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

    /// The same, with what happened last in words.
    pub fn in_words(&self, lines: usize) -> Self {
        let options = Options { keep: lines, ..self.options };
        Self { options, ..self.clone() }
    }

    /// Ends refusals: who did not fit does now, and all come up again, when what is late has come.
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

/// Goes on until every request has ended, or for a minute; how long that was.
fn finish(world: &mut World<Peer>) -> Duration {
    let begun = world.now();
    while open(world) > 0 && world.now().since(begun) < SECOND * 60 {
        world.run_for(MILLISECOND * 100);
    }
    world.now().since(begun)
}
