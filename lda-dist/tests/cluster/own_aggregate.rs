//! Aggregates that a program registers: servers compute them, and the master merges them.

use lda_dist::aggregate::{Aggregate, Registry};

use super::*;

/// Number of distinct words of each topic.
#[derive(Debug, Default, PartialEq)]
struct WordsPerTopic(Vec<u32>);

impl Aggregate for WordsPerTopic {
    fn add_row(&mut self, _: u16, _: u32, row: &[(u32, u32)]) {
        row.iter().for_each(|&(topic, _)| self.0[topic as usize] += 1);
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.0.iter().for_each(|words| to.extend(words.to_le_bytes()));
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        for words in &mut self.0 {
            let (more, rest) = from.split_first_chunk()?;
            *words += u32::from_le_bytes(*more);
            *from = rest;
        }
        Some(())
    }
}

const NAME: &str = "words-per-topic";

fn registry() -> Registry {
    let new = |spec: &ModelSpec| WordsPerTopic(vec![0; spec.topics() as usize]);
    Registry::default().register(NAME, new).unwrap()
}

#[test]
fn its_value_is_that_of_the_final_counts() {
    // A hot word, whose row lies on several servers.
    let corpus = hot::skewed();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let cut = Options { shards: 5, partitions: 7, rounds: 5, ..Options::default() };
    let setup = hot::of_many_topics(setup(&corpus, 1, Options { servers: 3, ..cut }));
    let mut values = None;
    for workers in [1, 3] {
        let setup = setup.clone().workers(workers).aggregates(registry());
        let mut world = world(&setup, &stored, Network::default(), 1);
        run(&mut world);
        let results = world.with(MASTER, |node, _| {
            let Role::Master(master) = node else { panic!("node 0 is the master") };
            let reports: Vec<Report> = std::iter::from_fn(|| master.report()).collect();
            let counts = master.counts().unwrap();
            let mut expected = WordsPerTopic(vec![0; counts.num_topics()]);
            counts.visit_words(0..counts.num_words(), &mut |word, row| {
                expected.add_row(0, word as u32, row);
            });
            (reports, expected)
        });
        let (reports, expected) = results.unwrap();
        // Epochs 2 and 3 are evaluated.
        let found: Vec<_> =
            reports.iter().map(|report| report.aggregate::<WordsPerTopic>(NAME)).collect();
        assert_eq!((found.len(), found[0]), (3, None));
        assert_eq!(found[2], Some(&expected));
        assert!(found[1].is_some() && found[1] != found[2]);
        let all: Vec<_> = reports.into_iter().map(|report| report.aggregates).collect();
        assert_eq!(all, *values.get_or_insert(all.clone()));
    }
}

#[test]
fn nodes_with_another_registry_are_refused() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 2).unwrap();
    let options = Options { shards: 2, partitions: 2, ..Options::default() };
    let same = setup(&corpus, 1, options);
    let other = same.clone().aggregates(registry());
    assert_eq!(same.fingerprint(), same.clone().aggregates(Registry::default()).fingerprint());
    assert_ne!(same.fingerprint(), other.fingerprint());
    let mut world = world_of(&[same.clone(), same, other], &stored, Network::default(), 1);
    world.run_for(Duration::from_secs(5));
    assert!(!is_finished(&world));
    let failed = |id| world.program(NodeId(id)).and_then(Role::failed);
    let refused = failed(2).unwrap().to_string();
    assert!(refused.contains("aggregates [\"words-per-topic\"]"), "{refused}");
    assert_eq!(failed(0), None, "the right worker may still come");
}
