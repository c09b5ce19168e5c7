//! Rows that the master collects in evaluated epochs.

use std::collections::BTreeMap;

use lda_dist::cluster::CollectedCounts;

use super::recovery::{run_until, spec as recovering};
use super::*;

type Rows = Vec<(u32, Vec<(u32, u32)>)>;

fn rows(counts: &CollectedCounts) -> Rows {
    let mut rows = Rows::new();
    counts.visit_words(0..counts.num_words(), &mut |word, row| {
        rows.push((word as u32, row.to_vec()));
    });
    rows
}

/// Rows and priors after each epoch of a run in one process.
fn after_epochs(corpus: &Corpus, setup: &Setup) -> BTreeMap<u32, (Rows, Priors)> {
    let mut run = InProcess::<u16>::new(&setup.spec, corpus, &setup.options).unwrap();
    let epochs = 1..=setup.epochs;
    epochs
        .map(|epoch| {
            run.epoch().unwrap();
            let mut rows = Rows::new();
            run.visit_words(0..run.num_words(), &mut |word, row| {
                rows.push((word as u32, row.to_vec()));
            });
            (epoch, (rows, run.priors()))
        })
        .collect()
}

#[test]
fn evaluated_epochs_have_the_counts_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for (routing, lost) in [
        (Routing::Pull, vec![]),
        (Routing::Cheapest, vec![]),
        (Routing::Pull, vec![NodeId(2)]),
        (Routing::Pull, vec![MASTER]),
    ] {
        let mut setup = priors::learnt(recovering(&corpus, 3)).epochs(7).evaluate_every(2);
        setup.options.routing = routing;
        let setup = setup.collect_evaluated(true);
        let expected = after_epochs(&corpus, &setup);
        let mut world = world(&setup, &stored, Network::default(), 5);
        let mut reports = Vec::new();
        for epoch in 1..6 {
            reports.extend(run_until(&mut world, epoch));
            // At another moment of the next epoch each time, also while rows are collected.
            world.run_for(Duration::from_micros(900) * epoch);
            lost.iter().for_each(|&node| world.restart(node));
        }
        run(&mut world);
        let model = world.with(MASTER, |node, _| match node {
            Role::Master(master) => {
                reports.extend(std::iter::from_fn(|| master.report()));
                rows(master.counts().unwrap())
            }
            _ => Rows::new(),
        });
        assert_eq!(model.unwrap(), expected[&7].0);
        let found: BTreeMap<u32, Report> =
            reports.into_iter().map(|report| (report.epoch, report)).collect();
        assert!(found.keys().copied().eq(1..=7), "{lost:?}");
        for (epoch, report) in found {
            let (expected, priors) = &expected[&epoch];
            let counts = report.counts.map(|counts| rows(&counts));
            let is_due = [2, 4, 6, 7].contains(&epoch);
            assert_eq!(counts.as_ref(), is_due.then_some(expected), "{lost:?}: epoch {epoch}");
            assert_eq!(report.priors.as_ref(), Some(priors), "{lost:?}: epoch {epoch}");
        }
    }
}

#[test]
fn rows_are_not_collected_while_rounds_overlap() {
    let mut setup = recovering(&corpus(), 2).collect_evaluated(true);
    assert_eq!(setup.check(), Ok(()));
    setup.options.sync = SyncMode::rounds(1);
    assert_eq!(setup.check(), Err(ConfigError::CollectedStaleness { staleness: 1 }));
    assert_eq!(setup.evaluate_every(0).check(), Ok(()));
}

/// The model is that of the last epoch, also if this is not evaluated.
#[test]
fn a_run_that_ends_early_has_the_rows_of_its_end() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = recovering(&corpus, 3).evaluate_every(4).collect_evaluated(true);
    let mut world = world(&setup, &stored, Network::default(), 5);
    let reports = run_until(&mut world, 5);
    assert!(reports.iter().any(|report| report.counts.is_some()));
    world.with(MASTER, |node, _| {
        if let Role::Master(master) = node {
            master.end_early();
        }
    });
    run(&mut world);
    let end = world.with(MASTER, |node, _| match node {
        Role::Master(master) => {
            let last = std::iter::from_fn(|| master.report()).last().unwrap();
            (last.epoch, last.counts.is_some(), rows(master.counts().unwrap()))
        }
        _ => (0, true, Rows::new()),
    });
    let (epoch, is_evaluated, found) = end.unwrap();
    assert!((6..8).contains(&epoch) && !is_evaluated);
    assert_eq!(found, after_epochs(&corpus, &setup)[&epoch].0);
}
