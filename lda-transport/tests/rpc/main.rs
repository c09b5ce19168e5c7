//! Endpoints in a simulated network that loses, duplicates, delays and reorders frames, with links
//! that are cut or silenced and nodes that crash and restart: every request ends as promised.

mod collectives;
mod log;
mod peer;
mod reachability;
mod scenario;
mod seeded_bugs;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use lda_transport::sim::{Chaos, Coverage, FaultWindow};
use scenario::{History, MILLISECOND, SECOND, Scenario};
use seeded_bugs::Bug;

/// Runs a history. Panics with the violation and the events before it if a promise is broken.
fn history(scenario: &Scenario) -> History {
    let fail = |error| {
        let words = scenario.with_text(200).run().err();
        panic!("{}\n{scenario:#?}", words.unwrap_or(error))
    };
    scenario.run().unwrap_or_else(fail)
}

/// Sums over many histories.
#[derive(Default)]
struct Sum {
    ends: [u64; 4],
    busy: u64,
    gathered: u64,
    coverage: Coverage,
    steps: u64,
    slowest: Duration,
    fewest_faults: Option<u64>,
}

impl Sum {
    fn add(&mut self, history: &History) {
        self.merge(&Self {
            ends: history.ends,
            busy: history.busy,
            gathered: history.gathered,
            coverage: history.coverage.clone(),
            steps: history.steps,
            slowest: history.slow,
            fewest_faults: Some(history.faults),
        });
    }

    fn merge(&mut self, other: &Self) {
        self.ends = std::array::from_fn(|place| self.ends[place] + other.ends[place]);
        self.busy += other.busy;
        self.gathered += other.gathered;
        self.coverage.merge(&other.coverage);
        self.steps += other.steps;
        self.slowest = self.slowest.max(other.slowest);
        let both = self.fewest_faults.into_iter().chain(other.fewest_faults);
        self.fewest_faults = both.min();
    }
}

/// Runs histories on all cores.
fn histories(seeds: Range<u64>) -> Sum {
    let next = AtomicU64::new(seeds.start);
    let run = || {
        let mut sum = Sum::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return sum;
            }
            let scenario = Scenario::of(seed);
            assert!(scenario.nodes >= 3);
            let history = self::history(&scenario);
            if seed.is_multiple_of(50) {
                let again = scenario.run().expect("the first run kept all promises");
                assert_eq!(again.fingerprint, history.fingerprint, "seed {seed}");
            }
            sum.add(&history);
        }
    };
    let mut all = Sum::default();
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, |count| count.get());
        let running: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        for one in running {
            all.merge(&one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    assert!(all.fewest_faults >= Some(5), "{:?}", all.fewest_faults);
    // A fraction of the deadlines: no request hangs until its deadline.
    assert!(all.slowest < SECOND * 20, "{:?}", all.slowest);
    all
}

#[test]
fn all_requests_are_executed_without_faults() {
    let mut scenario = Scenario { asking: SECOND * 6, gap: MILLISECOND * 16, ..Scenario::calm(1) };
    scenario.options.network.full = 0.02;
    let history = history(&scenario);
    let [done, rejected, restarted, unknown] = history.ends;
    assert!(done > 1000 && rejected > 50, "{done} {rejected}");
    assert_eq!((restarted, unknown), (0, history.untold));
    assert!(history.gathered > 300, "{}", history.gathered);
    assert_eq!(history.strays, 0);
    assert_eq!(history.most_doing, 4, "the window is kept, and used");
}

#[test]
fn cuts_only_cost_time() {
    for seed in 0..20 {
        let mut scenario = Scenario { patience: 100, ..Scenario::calm(seed) };
        scenario.options.network.detection_delay = MILLISECOND * 20;
        let window = FaultWindow { every: MILLISECOND * 30, lasting: MILLISECOND * 600 };
        scenario.options.chaos = Chaos { cuts: Some(window), ..Chaos::default() };
        let History { ends, untold, gathered, .. } = history(&scenario);
        let [done, rejected, restarted, unknown] = ends;
        assert!(done > 30 && rejected > 3 && gathered > 12, "{done} {rejected} {gathered}");
        assert_eq!((restarted, unknown), (0, untold), "seed {seed}");
    }
}

#[test]
fn an_overloaded_request_is_not_executed_later() {
    let mut busy = 0;
    for seed in 0..20 {
        let answers = [0, 1000, 3000, 3000, 3000];
        let calm = Scenario::calm(seed);
        let mut scenario = Scenario { window: 1, answers, gap: MILLISECOND * 40, ..calm };
        let network = &mut scenario.options.network;
        (network.latency, network.detour) = (MILLISECOND * 20, MILLISECOND * 100);
        (network.loss, network.duplication) = (0.1, 0.3);
        busy += history(&scenario).busy;
    }
    assert!(busy > 100, "{busy}");
}

#[test]
fn every_push_ends_as_promised_under_every_fault() {
    let sum = histories(0..300);
    // Each kind of outcome has occurred.
    assert!(sum.ends.iter().all(|&sum| sum > 100), "{:?}", sum.ends);
    assert!(sum.busy > 100 && sum.gathered > 3000, "{} {}", sum.busy, sum.gathered);
    reachability::no_unreachable_cell_has_frames(&sum.coverage);
}

#[test]
#[ignore = "half a minute in a release build: .ci/extended runs it"]
#[expect(clippy::print_stdout, reason = "the table is the purpose of the test")]
fn ten_thousand_histories_reach_everything() {
    const HISTORIES: u64 = 10_000;
    let begun = Instant::now();
    let sum = histories(0..HISTORIES);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", sum.coverage);
    println!(
        "{HISTORIES} histories: {} events in {seconds:.1} s; done, rejected, unknown for a new incarnation, \
         unknown: {:?}; collectives: {}; at most {:?} until all had ended",
        sum.steps, sum.ends, sum.gathered, sum.slowest
    );
    reachability::no_unreachable_cell_has_frames(&sum.coverage);
    reachability::all_other_cells_have_frames(&sum.coverage, 10);
}

#[test]
fn seeded_bugs_are_detected() {
    for bug in Bug::ALL {
        let found = |seed| Scenario { bug: Some(bug), ..Scenario::of(seed) }.run().err();
        let found: Vec<String> = (0..20).filter_map(found).collect();
        assert!(found.len() > 2, "{bug:?} was found in {} of 20 histories", found.len());
        let words = bug.found_as();
        assert!(found.iter().any(|error| error.contains(words)), "{bug:?}: {}", found[0]);
    }
}

#[test]
fn a_seed_determines_the_history() {
    for seed in 0..10 {
        let run = |seed| history(&Scenario::of(seed).with_text(usize::MAX));
        let (one, same, other) = (run(seed), run(seed), run(seed + 1));
        assert_eq!(one.fingerprint, same.fingerprint);
        assert_eq!(one.text, same.text);
        assert_ne!(one.fingerprint, other.fingerprint);
        // Keeping lines of text changes nothing.
        assert_eq!(one.fingerprint, history(&Scenario::of(seed)).fingerprint);
        assert!(one.text.lines().count() > 1000);
    }
}

#[test]
fn sixteen_nodes_go_on_for_a_minute() {
    soak(SECOND * 60);
}

#[test]
#[ignore = "an hour of the simulation, a quarter of a minute in a release build: .ci/extended runs it"]
#[expect(clippy::print_stdout, reason = "prints its speed")]
fn sixteen_nodes_go_on_for_an_hour() {
    let begun = Instant::now();
    let history = soak(SECOND * 3600);
    let seconds = begun.elapsed().as_secs_f64();
    let (steps, faults) = (history.steps, history.faults);
    let rate = steps as f64 / seconds;
    println!(
        "{steps} events, {faults} faults in {seconds:.1} s: {rate:.0} per second; {:?}",
        history.ends
    );
}

fn soak(asking: Duration) -> History {
    let history = history(&Scenario::soak(1, asking));
    let least = asking.as_secs();
    assert!(history.faults > 100 * least, "{}", history.faults);
    let [done, rejected, restarted, unknown] = history.ends;
    assert!(done > 20 * least && rejected > least, "{done} {rejected}");
    assert!(restarted > least / 10 && unknown > least, "{restarted} {unknown}");
    history
}
