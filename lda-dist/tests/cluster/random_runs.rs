//! Random histories of runs in which everything fails. All must end with the bits of one process,
//! and together they must cover every fault of every message at every phase of its receiver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use lda_transport::sim::SplitMix64;

use super::coverage::Table;
use super::history::History;
use super::recovery::{check, spec};
use super::targeted_faults::Target;
use super::*;

/// Time during which faults occur.
const SUFFERING: Duration = Duration::from_millis(300);

/// Documents, and the expected end of runs over them.
pub struct Task {
    corpus: Corpus,
    workers: Vec<u32>,
    /// Change of the setup of all runs.
    set_up: fn(Setup) -> Setup,
    runs: Vec<Run>,
}

/// Setup with one worker, and the end of its run in one process.
pub struct Run {
    setup: Setup,
    pub stored: InMemory,
    pub expected: End,
}

impl Task {
    /// Runs over these documents, with these numbers of workers.
    fn new(corpus: Corpus, workers: &[u32], set_up: fn(Setup) -> Setup) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for target in reachability::targets() {
            let setup = set_up(target.set_up(spec(&corpus, 1)));
            if runs.iter().all(|run| run.setup != setup) {
                let stored = InMemory::new(corpus.clone(), setup.options.shards).unwrap();
                let expected = expected(&corpus, &setup);
                runs.push(Run { setup, stored, expected });
            }
        }
        Self { corpus, workers: workers.to_vec(), set_up, runs }
    }

    /// The expected run and the setup for a target.
    pub fn run(&self, target: Target, numbers: &mut SplitMix64) -> (&Run, Setup) {
        let workers = self.workers[numbers.below(self.workers.len() as u64) as usize];
        let setup = (self.set_up)(target.set_up(spec(&self.corpus, workers)));
        let alike = |run: &&Run| run.setup == setup.clone().workers(1);
        (self.runs.iter().find(alike).expect("it is one of all preys"), setup)
    }
}

/// Sum over some histories.
#[derive(Debug, Default)]
struct Sum {
    table: Table,
    attempts: u64,
    stops: u64,
    crashes: [u64; 3],
    faults: Option<u64>,
    steps: u64,
    /// Workers that were given up, and of these, those that came back.
    given_up: [u64; 2],
}

impl Sum {
    fn merge(&mut self, other: &Self) {
        self.table.merge(&other.table);
        self.attempts += other.attempts;
        self.stops += other.stops;
        (0..3).for_each(|role| self.crashes[role] += other.crashes[role]);
        self.faults = self.faults.into_iter().chain(other.faults).min();
        self.steps += other.steps;
        (0..2).for_each(|at| self.given_up[at] += other.given_up[at]);
    }
}

/// Runs a history and checks its end.
fn history(task: &Task, target: Target, seed: u64) -> Sum {
    let mut history = History::new(task, target, seed);
    history.run_with_faults(SUFFERING);
    let found = history.end();
    let History { run, world, watch, what, stops, lost, .. } = history;
    let seen = watch.seen();
    assert!(seen.failed.is_empty(), "{what}: {:?}", seen.failed);
    check(&found, &run.expected, &what);
    recount(&found, &task.corpus, &what);
    Sum {
        table: seen.table.clone(),
        attempts: u64::from(seen.attempts),
        stops,
        crashes: seen.crashes,
        faults: Some(world.faults()),
        steps: world.steps(),
        given_up: [lost.given_up, lost.left_behind],
    }
}

/// Checks that every token is there once, and that C_w, C_k and C_d are the counts of the topics.
fn recount(found: &End, corpus: &Corpus, what: &str) {
    // Both lists ascend.
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
    assert!(is_there(&found.collected) == words, "{what}: C_w as it was gathered");
    assert!(is_there(&found.documents) == rows(documents), "{what}: C_d");
    assert_eq!(found.totals, totals, "{what}: C_k");
}

/// Runs histories on all processors.
fn random_runs(task: &Task, seeds: std::ops::Range<u64>) -> Sum {
    let next = AtomicU64::new(seeds.start);
    let targets = reachability::targets();
    let run = || {
        let mut sum = Sum::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return sum;
            }
            // A sample of all kinds, if there are few histories.
            let target = targets[(seed as usize * 101) % targets.len()];
            sum.merge(&history(task, target, seed));
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
    let sum = random_runs(&Task::new(corpus(), &[3, 4], |setup| setup), 0..60);
    reachability::nothing_came_where_nothing_can(&sum.table);
    assert!(sum.attempts > 60 && sum.stops > 60, "{sum:?}");
    assert!(sum.crashes.iter().all(|&crashes| crashes > 60), "{sum:?}");
}

/// Half of all tokens belong to one word, whose row lies on both servers.
fn with_a_hot_word() -> Task {
    let task = Task::new(hot::skewed(), &[3, 4], hot::of_many_topics);
    for run in &task.runs {
        let placement = hot::placed(&task.corpus, &run.setup);
        assert!(placement.num_slices() > placement.num_partitions());
    }
    task
}

#[test]
fn faults_leave_no_trace_with_hot_words() {
    let sum = random_runs(&with_a_hot_word(), 0..12);
    reachability::nothing_came_where_nothing_can(&sum.table);
    assert!(sum.attempts > 12 && sum.crashes.iter().all(|&crashes| crashes > 6), "{sum:?}");
}

/// Two or three workers for four shards, so that rows stay at one for several rounds.
fn with_rows_that_stay(corpus: Corpus) -> Task {
    Task::new(corpus, &[2, 3], |mut setup| {
        if setup.options.routing == Routing::Cheapest {
            setup.options.routing = Routing::Pull;
        }
        setup
    })
}

#[test]
fn faults_leave_no_trace_while_rows_stay() {
    let task = with_rows_that_stay(corpus());
    assert!(task.runs.iter().any(|run| run.expected.rows_may_stay));
    let sum = random_runs(&task, 0..40);
    reachability::nothing_came_where_nothing_can(&sum.table);
    assert!(sum.attempts > 40 && sum.crashes.iter().all(|&crashes| crashes > 40), "{sum:?}");
}

#[test]
fn faults_leave_no_trace_in_learnt_priors() {
    let sum = random_runs(&Task::new(corpus(), &[2, 3], priors::learnt), 0..24);
    assert!(sum.attempts > 24 && sum.crashes.iter().all(|&crashes| crashes > 24), "{sum:?}");
}

#[test]
fn faults_leave_no_trace_while_tokens_are_left_out() {
    let task = Task::new(corpus(), &[2, 3], exclusion::from_the_second_epoch);
    let sum = random_runs(&task, 0..24);
    assert!(sum.attempts > 24 && sum.crashes.iter().all(|&crashes| crashes > 24), "{sum:?}");
}

/// Workers leave and come, and some are lost for ever.
fn with_elastic_workers(corpus: Corpus) -> Task {
    Task::new(corpus, &[3, 4], |setup| setup.min_workers(1))
}

#[test]
fn faults_leave_no_trace_in_elastic_runs() {
    let sum = random_runs(&with_elastic_workers(corpus()), 0..60);
    assert!(sum.crashes.iter().all(|&crashes| crashes > 60), "{sum:?}");
    assert!(sum.given_up.iter().all(|&workers| workers > 60), "{sum:?}");
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
    let begun = Instant::now();
    let task = Task::new(corpus.clone(), &[3, 4], |setup| setup);
    let mut sum = random_runs(&task, 0..HISTORIES / 2);
    reachability::nothing_came_where_nothing_can(&sum.table);
    let elastic = with_elastic_workers(corpus.clone());
    sum.merge(&random_runs(&elastic, HISTORIES / 2..HISTORIES));
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", sum.table);
    println!(
        "{HISTORIES} histories: {} events in {seconds:.1} s; attempts: {}; nodes asked to end: {}; crashes of \
         masters, servers, workers: {:?}; fewest faults: {:?}; in elastic runs, workers given up, and come \
         back since: {:?}",
        sum.steps, sum.attempts, sum.stops, sum.crashes, sum.faults, sum.given_up
    );
    let (cells, least) = reachability::everything_else_came(&sum.table, 10);
    println!("each of {cells} cells has seen {least} messages or more");
    const MORE: u64 = 1000;
    for (what, task) in [
        ("a word on both servers", with_a_hot_word()),
        ("rows that stay at workers", with_rows_that_stay(corpus.clone())),
        ("priors that are learnt", Task::new(corpus.clone(), &[2, 3], priors::learnt)),
        ("tokens left out", Task::new(corpus, &[2, 3], exclusion::from_the_second_epoch)),
    ] {
        let begun = Instant::now();
        let sum = random_runs(&task, 0..MORE);
        reachability::nothing_came_where_nothing_can(&sum.table);
        println!(
            "{MORE} with {what} in {:.1} s; crashes of masters, servers, workers: {:?}",
            begun.elapsed().as_secs_f64(),
            sum.crashes
        );
    }
}
