//! Converged tokens that are left out are the same on all nodes, whatever fails, and their words do not
//! travel.

use lda_core::train::SamplerOptions;
use lda_dist::cluster::SavedCounts;

use super::recovery::{spec as recovering, survive_a_lost_worker, survive_crashes};
use super::*;

/// The same run, which excludes converged tokens from this epoch on.
fn excluding(setup: Setup, kind: SamplerKind, from: u32) -> Setup {
    let sampler = SamplerOptions::from(kind).with_exclusion(from).unwrap();
    let options = Options { sampler, ..setup.options };
    setup.options(options)
}

/// Converged tokens are left out early, in the tests of other modules.
pub fn from_the_second_epoch(setup: Setup) -> Setup {
    let options =
        Options { sampler: setup.options.sampler.with_exclusion(2).unwrap(), ..setup.options };
    setup.options(options)
}

#[test]
fn a_run_that_excludes_tokens_has_the_bits_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let long = Hybrid { short_length: 15, mh_steps: 2 };
    for (routing, rounds, staleness, hybrid, kind) in [
        (Routing::Pull, 5, 0, Hybrid::default(), SamplerKind::FPlus),
        (Routing::Pull, 11, 1, Hybrid::default(), SamplerKind::Alias),
        (Routing::Pull, 3, 0, long, SamplerKind::Sparse),
        (Routing::Push, 3, 1, Hybrid::default(), SamplerKind::Light),
        (Routing::Cheapest, 5, 2, Hybrid::default(), SamplerKind::ZenHybrid),
        (Routing::Cheapest, 2, 0, long, SamplerKind::FPlus),
    ] {
        let sync = SyncMode::rounds(staleness);
        let cut = Options { shards: 5, partitions: 13, rounds, sync, ..Options::default() };
        let options = Options { servers: 3, routing, hybrid, ..cut };
        let of = |workers| excluding(setup(&corpus, workers, options), kind, 3).epochs(8);
        let expected = expected(&corpus, &of(1));
        for (workers, network) in [(1, Network::default()), (2, bad), (5, bad)] {
            let setup = of(workers);
            let mut world = world(&setup, &stored, network, u64::from(workers));
            run(&mut world);
            let found = of_world(&mut world, &setup, &stored);
            assert!(found.is_like(&expected), "{workers} workers, {setup:?}");
        }
    }
}

/// Documents about one of four themes, whose words do not occur in others: most tokens converge.
fn themes() -> Corpus {
    let document = |d: u32| (0..20).map(move |at| 15 * (d % 4) + (7 * d + at * at) % 15);
    Corpus::from_tokens((0..48).map(|d| document(d).collect::<Vec<_>>())).unwrap()
}

#[test]
fn words_without_tokens_that_are_due_do_not_travel() {
    let corpus = themes();
    let tokens = corpus.num_tokens();
    for (routing, rounds) in [(Routing::Pull, 4), (Routing::Pull, 1), (Routing::Push, 4)] {
        let cut = Options { shards: 4, partitions: 6, rounds, ..Options::default() };
        let of = |from| {
            let setup = setup(&corpus, 1, Options { routing, ..cut });
            let spec = ModelSpec::new(4, corpus.num_words() as u32, 0.1.into(), BETA, 3).unwrap();
            excluding(setup.spec(spec).epochs(30), SamplerKind::FPlus, from)
        };
        let reports = |from| expected(&corpus, &of(from)).reports;
        let (all, some) = (reports(1000), reports(10));
        assert!(all.iter().all(|report| report.sampled == tokens));
        assert_eq!(all[..8].len(), 8);
        for (all, some) in all.iter().zip(&some).take(9) {
            assert_eq!((some.sampled, some.bytes), (all.sampled, all.bytes));
        }
        // The first epoch that excludes tokens knows none that have converged.
        assert_eq!(some[9].sampled, tokens);
        let late = |reports: &[Report], of: fn(&Report) -> u64| -> u64 {
            reports[20..].iter().map(of).sum()
        };
        let share = late(&some, |it| it.sampled) as f64 / late(&all, |it| it.sampled) as f64;
        assert!((0.15..0.5).contains(&share), "{share}");
        let moved = |reports: &[Report]| late(reports, |it| it.bytes.rows + it.bytes.pushed);
        assert!(moved(&some) * 10 < moved(&all) * 9, "{} {}", moved(&some), moved(&all));
    }
}

/// A worker that has the rows of all partitions pulls those that it samples, once per epoch.
#[test]
fn rows_that_stay_do_so_until_the_end_of_an_epoch() {
    let corpus = themes();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let cut = Options { shards: 4, partitions: 4, rounds: 4, ..Options::default() };
    let options = Options { routing: Routing::Pull, ..cut };
    let of = |from| {
        let setup = setup(&corpus, 1, options).epochs(20).evaluate_every(0);
        let spec = ModelSpec::new(4, corpus.num_words() as u32, 0.1.into(), BETA, 3).unwrap();
        excluding(setup.spec(spec), SamplerKind::FPlus, from)
    };
    let rows = |setup: &Setup| -> Vec<u64> {
        let mut world = world(setup, &stored, Network::default(), 1);
        run(&mut world);
        let reports = of_world(&mut world, setup, &stored).reports;
        reports.iter().map(|report| report.bytes.rows).collect()
    };
    let stays = rows(&of(1000));
    assert!(stays[0] > 0 && stays[1..].iter().all(|&bytes| bytes == 0), "{stays:?}");
    let expected = expected(&corpus, &of(5));
    for (epoch, bytes) in (1..).zip(rows(&of(5))) {
        let once = expected.reports[epoch - 1].bytes.rows;
        match epoch {
            1 => assert_eq!(bytes, stays[0]),
            2..5 => assert_eq!(bytes, 0, "epoch {epoch}"),
            // Each shard alone would pull them again.
            _ => assert!(bytes > 0 && bytes < once, "epoch {epoch}: {bytes} of {once}"),
        }
    }
}

/// Ages are in the checkpoints, in memory and on storage.
#[test]
fn crashes_leave_out_the_same_tokens() {
    let corpus = corpus();
    for kind in [SamplerKind::FPlus, SamplerKind::Light] {
        survive_crashes(&corpus, |workers| excluding(recovering(&corpus, workers), kind, 2));
    }
}

#[test]
fn a_lost_worker_reads_ages_from_the_checkpoint() {
    let corpus = corpus();
    let setup = |workers| excluding(recovering(&corpus, workers), SamplerKind::FPlus, 2);
    let storage = survive_a_lost_worker(&corpus, setup);
    // The model of the last checkpoint can be read, ages or not.
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let saved = SavedCounts::read(&setup(2).checkpoint_every(3), &stored, &*storage).unwrap();
    assert_eq!(saved.epoch, 8);
}
