//! Runs with pseudo-counts: the same bits for any workers, after crashes and from checkpoints.

use std::sync::Arc;

use lda_core::train::PseudoCounts;
use lda_dist::cluster::SavedCounts;
use lda_dist::storage::Memory;

use super::recovery::{Tally, spec as recovering, world as world_with_storage};
use super::*;

/// Counts of words with tokens and without.
fn with(setup: Setup) -> Setup {
    let words = setup.spec.words();
    let entries = (0..words).flat_map(|word| [(word, word % 80, 2), (word, 3, word % 4)]);
    let counts = PseudoCounts::new(words as usize, 80, entries).unwrap();
    // Priors that change make another model in each epoch.
    let spec = ModelSpec::builder(80, words).alpha(0.1).beta(BETA).seed(3).alpha_by_size(40.0);
    setup.spec(spec.pseudo_counts(Arc::new(counts)).build().unwrap())
}

#[test]
fn any_number_of_workers_gives_the_bits_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let long = Hybrid { short_length: 15, mh_steps: 2 };
    for (routing, hybrid) in [
        (Routing::Pull, Hybrid::default()),
        (Routing::Cheapest, long),
        (Routing::Push, Hybrid::default()),
    ] {
        let cut = Options { shards: 5, partitions: 7, rounds: 5, routing, ..Options::default() };
        let options = Options { servers: 3, hybrid, ..cut };
        let without = expected(&corpus, &setup(&corpus, 1, options));
        let expected = expected(&corpus, &with(setup(&corpus, 1, options)));
        assert!(expected.tokens != without.tokens);
        for (workers, network) in [(1, Network::default()), (3, bad)] {
            let setup = with(setup(&corpus, workers, options));
            let mut world = world(&setup, &stored, network, u64::from(workers));
            run(&mut world);
            let found = of_world(&mut world, &setup, &stored);
            assert!(found.is_like(&expected), "{workers} workers, {routing:?}");
        }
    }
}

#[test]
fn crashes_do_not_change_the_bits() {
    let corpus = corpus();
    let expected = expected(&corpus, &with(recovering(&corpus, 1)));
    let mut tally = Tally::default();
    for seed in 0..16 {
        tally.add(&corpus, &with(recovering(&corpus, 1 + seed as u32 % 4)), &expected, seed);
    }
    assert!(tally.attempts > 16 && tally.further > 4 && tally.whole > 8, "{tally:?}");
}

/// Otherwise a model of a checkpoint would lack what its run went on from.
#[test]
fn counts_of_a_checkpoint_have_them() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = with(recovering(&corpus, 2));
    let storage = Arc::new(Memory::default());
    let mut world = world_with_storage(&setup, &stored, &storage, Network::default(), 5);
    run(&mut world);
    let found = of_world(&mut world, &setup, &stored);
    let saved = SavedCounts::read(&setup, &stored, &*storage).unwrap();
    let mut rows = Vec::new();
    saved.counts.visit_words(0..saved.counts.num_words(), &mut |word, row| {
        rows.push((word as u32, row.to_vec()));
    });
    assert!(rows == found.rows);
}
