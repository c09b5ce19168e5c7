//! Histories of runs in which everything fails: all of them end with the bits of one process, and together they have
//! seen each message meet each fault at each stage of the role that was to get it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use lda_dist::cluster::{Message, Stage};
use lda_dist::storage::Memory;
use lda_transport::Time;
use lda_transport::sim::{Chaos, Numbers, Spell};

use super::ambush::{Prey, Watch};
use super::coverage::{Kind, Part, Table, Who};
use super::recovery::{check, job, world_with};
use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
/// Between two looks at how nodes stand.
const LOOK: Duration = Duration::from_micros(25);

/// What is to be run, and what has to come of it.
struct Task {
    corpus: Corpus,
    stored: InMemory,
    setups: Vec<Setup>,
    expected: End,
}

impl Task {
    /// Of these documents, by so many workers.
    fn new(corpus: Corpus, epochs: u32, workers: &[u32]) -> Self {
        let setup = |&workers: &u32| Setup { epochs, ..job(&corpus, workers) };
        let setups: Vec<Setup> = workers.iter().map(setup).collect();
        let stored = InMemory::new(corpus.clone(), setups[0].options.shards).unwrap();
        let expected = expected(&corpus, &setup(&1));
        Self { corpus, stored, setups, expected }
    }
}

/// What some histories have seen.
#[derive(Debug, Default)]
struct Sum {
    table: Table,
    attempts: u64,
    stops: u64,
    crashes: [u64; 3],
    faults: Option<u64>,
    steps: u64,
}

impl Sum {
    fn merge(&mut self, other: &Self) {
        self.table.merge(&other.table);
        self.attempts += other.attempts;
        self.stops += other.stops;
        (0..3).for_each(|role| self.crashes[role] += other.crashes[role]);
        self.faults = self.faults.into_iter().chain(other.faults).min();
        self.steps += other.steps;
    }
}

/// What has been begun and comes to an end.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Crash(NodeId),
    Start(NodeId),
    Mend(NodeId, NodeId),
    Unsilence(NodeId, NodeId),
}

struct History<'a> {
    task: &'a Task,
    prey: Prey,
    setup: &'a Setup,
    world: World<Node>,
    watch: Watch,
    numbers: Numbers,
    agenda: BTreeMap<(Time, u32), Deed>,
    begun: u32,
    /// When the next node is asked to end, and when faults strike again.
    stops_every: Duration,
    next_stop: Time,
    next_siege: Time,
    next_strike: Time,
    stops: u64,
    what: String,
}

impl<'a> History<'a> {
    fn new(task: &'a Task, prey: Prey, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let setup = &task.setups[seed as usize % task.setups.len()];
        let mut share = |most: f64| (numbers.below(1000) + 1) as f64 / 1000.0 * most;
        let mut network = Network {
            loss: share(0.03),
            doubling: share(0.05),
            reordering: share(0.2),
            ghosts: share(1.0),
            full: share(0.02),
            ..Network::default()
        };
        network.notice = numbers.up_to(MILLISECOND);
        let storage = Arc::new(Memory::default());
        let often = |config| Config { retry: Some(5 * MILLISECOND), ..config };
        let mut world = world_with(setup, &task.stored, &storage, network, seed, often);
        let watch = Watch::new(setup, prey, seed);
        world.observe(watch.clone());
        let spell = |every: u64, lasting: u64| {
            let (every, lasting) = (Duration::from_millis(every), Duration::from_millis(lasting));
            Some(Spell { every, lasting })
        };
        let crashes = spell(60 + 20 * (seed % 7), 10);
        world.set_chaos(Chaos { crashes, cuts: spell(150, 10), silences: spell(150, 10) });
        match prey.kind.message {
            Message::Again => world.change(|way| way.notice = 30 * MILLISECOND),
            _ if asks_who_waits(prey) => world.change(|way| way.notice = Duration::ZERO),
            _ => {}
        }
        // Who has rows of one server waits for the other, and asks the first when it hears from that one.
        if asks_who_waits(prey) && is_of_round(prey) {
            for worker in 0..setup.workers {
                let slow = |way: &mut Network| way.latency = 2 * MILLISECOND;
                world.change_way(setup.server(0), setup.worker(worker), slow);
            }
        }
        // Twice as long as on average.
        let is_of_stops = matches!(prey.kind.message, Message::Stop | Message::Keep)
            || prey.stage == Stage::Keeping;
        let stops_every = if is_of_stops { 30 } else { 100 } * MILLISECOND;
        let next_stop = world.now() + numbers.up_to(stops_every);
        let (next_strike, next_siege) = (Time::ZERO, Time::ZERO);
        let agenda = BTreeMap::new();
        let what = format!("seed {seed}, {prey:?}");
        let (begun, stops) = (0, 0);
        Self {
            task,
            prey,
            setup,
            world,
            watch,
            numbers,
            agenda,
            begun,
            stops_every,
            next_stop,
            next_siege,
            next_strike,
            stops,
            what,
        }
    }

    fn nodes(&self) -> u64 {
        u64::from(1 + self.setup.options.servers + self.setup.workers)
    }

    fn in_time(&mut self, longest: [u32; 4], deed: Deed) {
        let longest = Duration::from_micros(longest[self.numbers.below(4) as usize].into());
        let time = self.world.now() + self.numbers.up_to(longest);
        self.begun += 1;
        self.agenda.insert((time, self.begun), deed);
    }

    /// Has everything fail for so long.
    fn suffer(&mut self, time: Duration) {
        let end = self.world.now() + time;
        while self.world.now() < end {
            self.world.run_for(LOOK);
            self.do_what_is_due();
            self.go_on_with_who_has_ended(40);
            if is_finished(&self.world) && self.numbers.below(100) == 0 {
                // Whoever it is, the run is finished again; if it is the master, it goes on from what was kept.
                let any = self.numbers.below(self.nodes()) as u32;
                self.world.restart(if self.numbers.below(2) == 0 { MASTER } else { NodeId(any) });
            }
            self.stop_somebody();
            self.besiege();
            self.strike();
        }
        self.watch.rest();
        self.agenda.clear();
        self.world.heal();
    }

    fn do_what_is_due(&mut self) {
        while let Some(first) = self.agenda.first_entry()
            && first.key().0 <= self.world.now()
        {
            match first.remove() {
                Deed::Crash(id) => self.crash(id),
                Deed::Start(id) if self.world.program(id).is_none() => self.world.restart(id),
                Deed::Start(_) => {}
                Deed::Mend(a, b) => self.world.mend(a, b),
                Deed::Unsilence(from, to) => self.world.unsilence(from, to),
            }
        }
    }

    /// Starts those that were asked to end and have; each look one in so many.
    fn go_on_with_who_has_ended(&mut self, rarely: u64) {
        for id in (0..self.nodes() as u32).map(NodeId) {
            let has_ended = self.world.program(id).is_some_and(|node| node.stopped().is_some());
            if has_ended && self.numbers.below(rarely) == 0 {
                self.world.restart(id);
            }
        }
    }

    fn any(&mut self, who: Who) -> NodeId {
        let (servers, workers) = (self.setup.options.servers, self.setup.workers);
        match who {
            Who::Master => MASTER,
            Who::Server => self.setup.server(self.numbers.below(servers.into()) as u32),
            Who::Worker => self.setup.worker(self.numbers.below(workers.into()) as u32),
        }
    }

    /// Asks somebody to end; where that is what the prey is about, when it hits it.
    fn stop_somebody(&mut self) {
        let Prey { kind: Kind { to, message, part }, stage } = self.prey;
        if self.world.now() < self.next_stop {
            return;
        }
        let mut id = NodeId(self.numbers.below(self.nodes()) as u32);
        if message == Message::Stop && self.numbers.below(8) > 0 {
            let (who, other) = (self.any(to), self.any(Who::Worker));
            if self.world.program(who).map(Role::stage) != Some(stage) {
                return;
            }
            id = if part == Part::Answered { who } else { other };
        }
        self.world.with(id, |node, cx| node.stop(cx));
        self.stops += 1;
        self.next_stop = self.world.now() + self.numbers.up_to(self.stops_every);
    }

    /// Parts one from another who then crashes, so that it does not hear of it, or hears of it late. What it asks of the
    /// other meanwhile is for one that is gone, or, if it is not sent before, for the next.
    fn besiege(&mut self) {
        let Prey { kind: Kind { to, message, .. }, .. } = self.prey;
        if self.world.now() < self.next_siege {
            return;
        }
        let to_waiting = asks_who_waits(self.prey);
        let (from, to) = if to_waiting && is_of_round(self.prey) {
            (self.any(Who::Worker), self.setup.server(1))
        } else if to_waiting {
            // Just before it asks.
            let before = match (message, to) {
                (Message::Begin, Who::Worker) => Some(Stage::Beginning),
                (Message::Begin | Message::Keep | Message::Rows, _) => Some(Stage::Ending),
                (Message::End, _) => Some(Stage::Sampling),
                _ => None,
            };
            let now = self.world.program(MASTER).map(Role::stage);
            if before.is_some() && before != now {
                return;
            }
            (MASTER, self.any(to))
        } else {
            (self.any(Who::Worker), self.any(Who::Server))
        };
        let often = to_waiting || message == Message::Again;
        let every = if often { 20 } else { 300 } * MILLISECOND;
        self.next_siege = self.world.now() + self.numbers.up_to(every);
        self.world.cut(from, to);
        self.in_time([300, 500, 2000, 4000], Deed::Crash(to));
        self.in_time([3000, 6000, 10_000, 20_000], Deed::Mend(from, to));
    }

    /// Has one end of prey that is underway fail, or the link between them; where its receiver is not at its stage, now and
    /// then what may bring it there.
    fn strike(&mut self) {
        let now = self.world.now();
        let Some((from, to, is_at)) = self.watch.prey_underway(&self.world) else { return };
        let Prey { kind, stage } = self.prey;
        let goes_back = matches!(kind.message, Message::Rows | Message::Keep | Message::Finish)
            && stage < Stage::Keeping;
        let goes_back = goes_back || asks_who_waits(self.prey);
        let rarely = if is_at {
            3
        } else if goes_back {
            20
        } else {
            200
        };
        if now < self.next_strike || self.numbers.below(rarely) > 0 {
            return;
        }
        self.next_strike = now + self.numbers.up_to(6 * MILLISECOND);
        match self.numbers.below(4) {
            // What is not sent before the receiver has started anew is for that one.
            0 if !is_at => {
                self.cut(from, to);
                self.crash(to);
            }
            // The run goes back, and what is underway stays so.
            _ if !is_at => {
                let other = NodeId(1 + self.numbers.below(self.nodes() - 1) as u32);
                if other != from && other != to {
                    self.crash(other);
                }
            }
            0 => self.crash(from),
            1 => self.crash(to),
            2 => self.cut(from, to),
            _ => {
                self.world.silence(from, to);
                self.in_time([200, 1000, 3000, 20_000], Deed::Unsilence(from, to));
            }
        }
    }

    fn crash(&mut self, id: NodeId) {
        self.world.crash(id);
        self.in_time([0, 300, 2000, 10_000], Deed::Start(id));
    }

    fn cut(&mut self, a: NodeId, b: NodeId) {
        self.world.cut(a, b);
        self.in_time([0, 300, 2000, 10_000], Deed::Mend(a, b));
    }

    /// Runs to the end, when nothing fails by itself any more. Who has crashed since the run was finished knows nothing:
    /// the run goes on from what was kept, until all know what they have.
    fn end(&mut self) -> End {
        for _ in 0..100_000 {
            self.go_on_with_who_has_ended(1);
            if is_finished(&self.world) {
                if self.is_whole() {
                    return of_world(&mut self.world, self.setup, &self.task.stored);
                }
                self.world.restart(MASTER);
            }
            self.world.run_for(MILLISECOND);
            for id in self.world.living() {
                let failed = self.world.program(id).and_then(Role::failed);
                assert!(failed.is_none(), "{}: {id}: {}", self.what, failed.unwrap());
            }
        }
        let stands = |id| self.world.program(id).map(|node| (node.stage(), node.state().round));
        let all: Vec<_> = (0..self.nodes() as u32).map(NodeId).map(stands).collect();
        panic!("{}: it does not end: {all:?}", self.what);
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

/// Whether prey is asked of one that has started anew and has not been told anything.
fn asks_who_waits(prey: Prey) -> bool {
    let Prey { kind: Kind { to, part, .. }, stage } = prey;
    stage == Stage::Waiting && part == Part::Asked && to != Who::Master
}

/// Whether prey is what workers ask of servers in a round.
fn is_of_round(prey: Prey) -> bool {
    use Message::{Gained, Join, Pull, Push, Sizes};
    matches!(prey.kind.message, Join | Sizes | Pull | Push | Gained)
}

/// Runs a history and checks what is left.
fn history(task: &Task, prey: Prey, seed: u64) -> Sum {
    let mut history = History::new(task, prey, seed);
    history.suffer(300 * MILLISECOND);
    let found = history.end();
    let History { world, watch, what, stops, .. } = history;
    let seen = watch.seen();
    assert!(seen.failed.is_empty(), "{what}: {:?}", seen.failed);
    check(&found, &task.expected, &what);
    recount(&found, &task.corpus, &what);
    Sum {
        table: seen.table.clone(),
        attempts: u64::from(seen.attempts),
        stops,
        crashes: seen.crashes,
        faults: Some(world.faults()),
        steps: world.steps(),
    }
}

/// Whether each token is there once, and C_w, C_k and C_d are what is counted of their topics.
fn recount(found: &End, corpus: &Corpus, what: &str) {
    // Both ascend.
    let tokens = (0..).zip(corpus.documents()).flat_map(|(document, words)| {
        words.iter().flat_map(move |(word, count)| (0..count).map(move |_| (document, word)))
    });
    let there = found.tokens.iter().map(|&(document, word, _)| (document, word));
    assert!(there.eq(tokens), "{what}: tokens");
    let mut words = BTreeMap::<u32, BTreeMap<u32, u32>>::new();
    let mut documents = words.clone();
    let mut totals = vec![0; found.totals.len()];
    for &(document, word, topic) in &found.tokens {
        *words.entry(word).or_default().entry(topic).or_default() += 1;
        *documents.entry(document).or_default().entry(topic).or_default() += 1;
        totals[topic as usize] += 1;
    }
    let rows = |counts: BTreeMap<u32, BTreeMap<u32, u32>>| -> Vec<(u32, Vec<(u32, u32)>)> {
        counts.into_iter().map(|(of, row)| (of, row.into_iter().collect())).collect()
    };
    let is_there = |rows: &[(u32, Vec<(u32, u32)>)]| -> Vec<(u32, Vec<(u32, u32)>)> {
        rows.iter().filter(|(_, row)| !row.is_empty()).cloned().collect()
    };
    let words = rows(words);
    assert!(is_there(&found.rows) == words, "{what}: C_w");
    assert!(is_there(&found.gathered) == words, "{what}: C_w as it was gathered");
    assert!(is_there(&found.documents) == rows(documents), "{what}: C_d");
    assert_eq!(found.totals, totals, "{what}: C_k");
}

/// On all processors.
fn histories(task: &Task, seeds: std::ops::Range<u64>) -> Sum {
    let next = AtomicU64::new(seeds.start);
    let preys = reach::preys();
    let run = || {
        let mut sum = Sum::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return sum;
            }
            let prey = preys[seed as usize % preys.len()];
            sum.merge(&history(task, prey, seed));
        }
    };
    let mut all = Sum::default();
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let running: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        for one in running {
            all.merge(&one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    assert!(all.faults >= Some(5), "{:?}", all.faults);
    all
}

#[test]
fn everything_that_fails_leaves_no_trace() {
    let sum = histories(&Task::new(corpus(), 4, &[3, 4]), 0..60);
    reach::nothing_came_where_nothing_can(&sum.table);
    assert!(sum.attempts > 60 && sum.stops > 60, "{sum:?}");
    assert!(sum.crashes.iter().all(|&crashes| crashes > 60), "{sum:?}");
}

/// Three or four workers, two servers, 5,000 tokens, on all cores.
#[test]
#[ignore = "minutes: .ci/extended runs it"]
#[expect(clippy::print_stdout, reason = "its table is what it is for")]
fn ten_thousand_histories_reach_everything() {
    const HISTORIES: u64 = 10_000;
    let mut rng = Xoshiro256PlusPlus::from_seed(9);
    let document = |_| (0..50).map(|_| rng.below(300).min(rng.below(300))).collect::<Vec<_>>();
    let corpus = Corpus::from_tokens((0..100).map(document).collect::<Vec<_>>()).unwrap();
    assert_eq!(corpus.num_tokens(), 5000);
    let task = Task::new(corpus, 5, &[3, 4]);
    let begun = Instant::now();
    let sum = histories(&task, 0..HISTORIES);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", sum.table);
    println!(
        "{HISTORIES} histories: {} events in {seconds:.1} s; attempts: {}; nodes asked to end: {}; crashes of \
         masters, servers, workers: {:?}; fewest faults: {:?}",
        sum.steps, sum.attempts, sum.stops, sum.crashes, sum.faults
    );
    reach::nothing_came_where_nothing_can(&sum.table);
    let (reachable, few) = reach::everything_else_came(&sum.table, 10);
    println!("of {reachable} cells {few} have seen fewer than 10");
}
