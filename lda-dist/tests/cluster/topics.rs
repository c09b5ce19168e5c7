//! Top words travel to the master, and rows stay on the servers.

use std::sync::Arc;

use lda_core::eval::TopWord;
use lda_dist::storage::Memory;

use super::*;

/// Top words of a run in one process, after the last epoch.
fn expected_words(corpus: &Corpus, setup: &Setup) -> Vec<Vec<TopWord>> {
    let mut run = InProcess::<u16>::new(&setup.spec, corpus, &setup.options).unwrap();
    for _ in 0..setup.epochs {
        run.epoch().unwrap();
    }
    let most = setup.top_words as usize;
    top_words(&run, setup.spec.beta(), most, Ranking::Probability).unwrap()
}

#[test]
fn top_words_are_those_of_all_rows() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for (servers, partitions, wanted) in [(1, 1, 1), (3, 7, 4), (5, 9, 1000), (2, 4, 0)] {
        let cut = Options { shards: 4, rounds: 1, ..Options::default() };
        let setup = setup(&corpus, 2, Options { servers, partitions, ..cut });
        let setup = setup.evaluate_every(0).collect_model(false).top_words(wanted);
        let nodes = run_local::<u16, _>(&setup, &stored, None, None, |_| {}).unwrap();
        let Role::Master(master) = &nodes[0] else { panic!("the first is the master") };
        assert!(master.counts().is_none());
        match master.topics() {
            None => assert_eq!(wanted, 0),
            Some(topics) => {
                assert_eq!((topics.epoch, topics.words.len()), (3, 80));
                assert!(topics.words == expected_words(&corpus, &setup), "{wanted} words");
                let totals = master.totals().iter().map(|&total| total as u64);
                assert!(totals.eq(topics.totals.iter().copied()));
            }
        }
    }
}

#[test]
fn a_finished_run_that_is_restarted_has_its_top_words_again() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = recovery::spec(&corpus, 3);
    let storage = Arc::new(Memory::default());
    let mut world = recovery::world(&setup, &stored, &storage, Network::default(), 2);
    run(&mut world);
    let ids: Vec<NodeId> = world.living().collect();
    ids.into_iter().for_each(|id| world.restart(id));
    run(&mut world);
    let Some(Role::Master(master)) = world.program(MASTER) else { panic!("it is there") };
    let topics = master.topics().unwrap();
    assert_eq!(topics.epoch, 8);
    assert!(topics.words == expected_words(&corpus, &setup));
}
