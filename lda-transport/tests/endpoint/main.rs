//! Endpoints under a network that loses, doubles, delays and reorders frames, cuts links, and nodes that
//! end and start anew: every request ends as promised.

mod network;

use std::collections::{BTreeMap, BTreeSet};

use lda_transport::endpoint::{Kind, Outcome, Why};
use network::{Faults, Network, Seen};

/// What a request came to at the nodes, by its text.
#[derive(Default)]
struct Book {
    /// (text of a request, incarnation of who did it): how often.
    done: BTreeMap<(String, u64), u32>,
}

fn check(network: &Network) -> [usize; 4] {
    let mut book = Book::default();
    for seen in &network.history {
        if let Seen::Did { text, incarnation, .. } = seen {
            *book.done.entry((text.clone(), *incarnation)).or_default() += 1;
        }
    }
    let did = |text: &String| -> Vec<(u64, u32)> {
        let from = (text.clone(), 0);
        let these = book.done.range(from..).take_while(|((other, _), _)| other == text);
        these.map(|((_, incarnation), times)| (*incarnation, *times)).collect()
    };
    let mut ends = [0; 4];
    let mut ended = BTreeSet::new();
    let mut made = BTreeSet::new();
    for seen in &network.history {
        match seen {
            Seen::Made { text, .. } => assert!(made.insert(text.clone())),
            Seen::Ended { text, kind, outcome, rejected } => {
                assert!(made.contains(text) && ended.insert(text.clone()), "{text} ended twice");
                let did = did(text);
                if *kind != Kind::Pull {
                    assert!(
                        did.iter().all(|&(_, times)| times == 1),
                        "{text} was done twice: {did:?}"
                    );
                }
                match outcome {
                    Outcome::Done(body) => {
                        ends[0] += 1;
                        assert!(!rejected && !did.is_empty(), "{text} was not done");
                        assert_eq!(&body[..], format!("done {text}").as_bytes());
                    }
                    Outcome::Rejected(body) => {
                        ends[1] += 1;
                        assert!(*rejected && did.is_empty(), "{text} was done: {did:?}");
                        assert_eq!(&body[..], format!("no {text}").as_bytes());
                    }
                    Outcome::Unknown { why, sent } => {
                        assert!(*sent || did.is_empty() || *kind == Kind::Pull, "{text}: {did:?}");
                        ends[if *why == Why::NewIncarnation { 2 } else { 3 }] += 1;
                    }
                }
            }
            Seen::Did { .. } => {}
        }
    }
    for seen in &network.history[network.healed..] {
        if let Seen::Ended { text, outcome: Outcome::Unknown { why, .. }, .. } = seen {
            // Loss and delay go on, but half a minute is long.
            panic!("{text} of when all was healed: {why:?}");
        }
    }
    // The nodes that live have an end for everything; of the others nobody waits for one.
    assert_eq!(network.open(), 0);
    ends
}

#[test]
fn all_is_done_where_nothing_fails() {
    let mut network = Network::new(1, 4, Faults::default());
    network.run(2000);
    let [done, rejected, reborn, unknown] = check(&network);
    assert!(done > 1000 && rejected > 50, "{done} {rejected}");
    assert_eq!((reborn, unknown), (0, 0));
    assert_eq!(network.strays(), 0);
    assert_eq!(network.most_doing, 4, "the window is kept, and used");
}

#[test]
fn cuts_alone_cost_nothing_but_time() {
    for seed in 0..20 {
        let mut network = Network::new(seed, 4, Faults { cuts: 100, ..Faults::default() });
        network.patience = 100;
        network.run(200);
        let [done, rejected, reborn, unknown] = check(&network);
        assert!(done > 30 && rejected > 3, "{done} {rejected}");
        assert_eq!((reborn, unknown), (0, 0), "seed {seed}");
    }
}

#[test]
fn every_push_ends_as_promised_under_every_fault() {
    let mut sums = [0; 4];
    for seed in 0..300 {
        let mut network = Network::new(seed, 3 + seed as u32 % 3, Faults::of(seed));
        network.run(150);
        let ends = check(&network);
        (0..4).for_each(|i| sums[i] += ends[i]);
    }
    // Each kind of end has come.
    assert!(sums.iter().all(|&sum| sum > 100), "{sums:?}");
}

#[test]
fn a_seed_is_a_history() {
    let history = || {
        let mut network = Network::new(9, 4, Faults::of(7));
        network.run(200);
        format!("{:?}", network.history)
    };
    assert_eq!(history(), history());
}
