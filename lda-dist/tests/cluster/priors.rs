//! Priors that change during a run are the same on all nodes, whatever fails.

use lda_core::train::{Learn, LearnAlpha};
use lda_dist::cluster::SavedCounts;

use super::recovery::{spec as recovering, survive_a_lost_worker, survive_crashes};
use super::*;

const LEARN: Learn = Learn { alpha: LearnAlpha::PerTopic, beta: true, burn_in: 1, every: 2 };

/// α by topic size, and what is learnt.
type Updates = (Option<f64>, Option<Learn>);

/// All ways in which priors change.
const UPDATES: [Updates; 5] = [
    (Some(40.0), None),
    (None, Some(LEARN)),
    (None, Some(Learn { alpha: LearnAlpha::Symmetric, beta: false, burn_in: 0, every: 1 })),
    (None, Some(Learn { alpha: LearnAlpha::Fixed, burn_in: 0, ..LEARN })),
    (Some(7.0), Some(Learn { alpha: LearnAlpha::Fixed, every: 1, ..LEARN })),
];

fn with(updates: Updates, setup: Setup) -> Setup {
    let words = setup.spec.words();
    let spec = ModelSpec::builder(80, words).alpha(0.1).beta(BETA).seed(3);
    setup.spec(spec.alpha_by_size(updates.0).learn(updates.1).build().unwrap())
}

/// Priors that change in every epoch, in the tests of other modules.
pub fn learnt(setup: Setup) -> Setup {
    with((None, Some(Learn { burn_in: 0, every: 1, ..LEARN })), setup)
}

/// α by topic size, in the tests of other modules.
pub fn by_size(setup: Setup) -> Setup {
    with((Some(40.0), None), setup)
}

#[test]
fn changing_priors_are_those_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let long = Hybrid { short_length: 15, mh_steps: 2 };
    for (routing, rounds, staleness, hybrid) in [
        (Routing::Pull, 5, 0, Hybrid::default()),
        (Routing::Cheapest, 5, 0, long),
        (Routing::Push, 3, 1, Hybrid::default()),
        (Routing::Cheapest, 3, 2, Hybrid::default()),
    ] {
        for updates in UPDATES {
            let sync = SyncMode::rounds(staleness);
            let cut = Options { shards: 5, partitions: 7, rounds, sync, ..Options::default() };
            let options = Options { servers: 3, routing, hybrid, ..cut };
            let setup = |workers| {
                with(updates, setup(&corpus, workers, options)).epochs(6).evaluate_every(4)
            };
            let expected = expected(&corpus, &setup(1));
            assert_ne!(expected.priors, Some(setup(1).spec.priors()));
            for (workers, network) in [(1, Network::default()), (3, bad)] {
                let setup = setup(workers);
                let mut world = world(&setup, &stored, network, u64::from(workers));
                run(&mut world);
                let found = of_world(&mut world, &setup, &stored);
                assert_eq!(found.priors, expected.priors, "{workers} workers, {setup:?}");
                assert!(found.is_like(&expected), "{workers} workers, {setup:?}");
            }
        }
    }
}

/// Those of an epoch are in its checkpoints, in memory and on storage.
#[test]
fn crashes_leave_the_same_priors() {
    let corpus = corpus();
    for updates in UPDATES {
        survive_crashes(&corpus, |workers| with(updates, recovering(&corpus, workers)));
    }
}

/// A lost worker reads the priors of the checkpoint, which are others than those of the start.
#[test]
fn a_lost_worker_has_the_priors_of_the_checkpoint() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for updates in UPDATES {
        // Priors of epoch 3 are learnt, and stay for some epochs, or change after it.
        let setup = |workers| with(updates, recovering(&corpus, workers)).checkpoint_every(3);
        let storage = survive_a_lost_worker(&corpus, setup);
        // The model of the last checkpoint has its priors, too.
        let saved = SavedCounts::read(&setup(2), &stored, &*storage).unwrap();
        assert_eq!(saved.epoch, 8);
        assert_eq!(Some(saved.priors), expected(&corpus, &setup(1)).priors);
    }
}
