//! Hot words, whose rows are split over several servers: the run has the bits of one server,
//! whatever fails.

use lda_dist::cluster::{Phase, Port};
use lda_dist::placement::{DocumentLengths, Placement, WordStats};
use lda_dist::plan::place;
use lda_dist::request::{self, Kind, RequestHeader, put_routes};
use lda_dist::route::Route;
use lda_dist::wire::RowCode;
use lda_transport::rpc::{
    Action, MessageBuf, Overloaded, ReplyHandle, RequestId, RequestKind as Asking,
};

use super::recovery::{Tally, spec as recovering};
use super::*;

/// So many topics that a row has at most four slices.
const TOPICS: u32 = 1100;

/// Half of all tokens belong to one word.
pub fn skewed() -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(8);
    let document = |_| {
        let length = 1 + rng.below(30);
        let mut word = |at| if at % 2 == 0 { 7 } else { rng.below(60).min(rng.below(60)) };
        (0..length).map(&mut word).collect::<Vec<_>>()
    };
    Corpus::from_tokens((0..50).map(document).collect::<Vec<_>>()).unwrap()
}

pub fn of_many_topics(setup: Setup) -> Setup {
    let words = setup.spec.words();
    setup.spec(ModelSpec::new(TOPICS, words, 0.1.into(), BETA, 3).unwrap())
}

pub fn placed(corpus: &Corpus, setup: &Setup) -> Placement {
    place(&setup.spec, &setup.options, &WordStats::of(corpus), DocumentLengths::of(corpus)).unwrap()
}

#[test]
fn rows_on_several_servers_give_the_bits_of_one() {
    let corpus = skewed();
    let (short, long) = (Hybrid::default(), Hybrid { short_length: 15, mh_steps: 2 });
    for (routing, rounds, staleness, hybrid) in [
        (Routing::Cheapest, 5, 0, short),
        (Routing::Pull, 1, 0, short),
        (Routing::Push, 7, 2, short),
        (Routing::Cheapest, 5, 1, long),
    ] {
        let run = |servers: u32| {
            let sync = SyncMode::rounds(staleness);
            let cut = Options { shards: 5, partitions: 7, rounds, sync, ..Options::default() };
            let options = Options { servers, routing, hybrid, ..cut };
            let setup = of_many_topics(setup(&corpus, 1, options));
            let placement = placed(&corpus, &setup);
            let of = placement.partition(7);
            assert!(placement.is_hot(of));
            assert_eq!(placement.slices(of).len(), servers.min(4) as usize);
            let mut end = expected(&corpus, &setup);
            end.reports.iter_mut().for_each(|report| report.bytes = Bytes::default());
            end.collected = end.rows.clone();
            end
        };
        let one = run(1);
        for servers in [2, 3, 5] {
            assert!(run(servers).is_like(&one), "{servers} servers, {routing:?}");
        }
    }
}

#[test]
fn hot_words_give_the_same_bits_over_any_network() {
    let corpus = skewed();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let long = Hybrid { short_length: 15, mh_steps: 2 };
    for (rounds, staleness, hybrid) in [(5, 0, Hybrid::default()), (7, 2, long)] {
        let sync = SyncMode::rounds(staleness);
        let cut = Options { shards: 5, partitions: 7, rounds, sync, ..Options::default() };
        let options = Options { servers: 3, hybrid, ..cut };
        let expected = expected(&corpus, &of_many_topics(setup(&corpus, 1, options)));
        for (workers, network) in [(1, Network::default()), (3, bad)] {
            let setup = of_many_topics(setup(&corpus, workers, options));
            let mut world = world(&setup, &stored, network, u64::from(workers));
            run(&mut world);
            let found = of_world(&mut world, &setup, &stored);
            assert!(found.is_like(&expected), "{workers} workers, {rounds} rounds");
        }
    }
}

#[test]
fn a_restarted_run_with_hot_words_has_the_same_bits() {
    let corpus = skewed();
    let setup = |workers| {
        let mut setup = of_many_topics(recovering(&corpus, workers));
        setup.options.servers = 3;
        setup
    };
    assert!(placed(&corpus, &setup(3)).num_slices() > placed(&corpus, &setup(3)).num_partitions());
    let expected = expected(&corpus, &setup(1));
    let mut tally = Tally::default();
    for seed in 0..12 {
        tally.add(&corpus, &setup(3), &expected, seed);
    }
    assert!(tally.attempts > 24 && tally.further > 0 && tally.whole > 4, "{tally:?}");
}

/// A port without a network.
struct NoPort;

impl Port for NoPort {
    fn ask(&mut self, peer: NodeId, _: Asking, draft: MessageBuf) -> Result<RequestId, Overloaded> {
        Err(Overloaded { peer, message: draft })
    }

    fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

    fn reject(&mut self, _: ReplyHandle, why: MessageBuf) {
        panic!("it is taken: {}", String::from_utf8_lossy(why.body()));
    }

    fn refuse(&mut self, peer: NodeId, why: String) {
        panic!("{peer}: {why}");
    }
}

/// A server with some of the topics cannot detect this; the master does.
#[test]
fn deltas_that_do_not_sum_to_zero_end_the_run() {
    let corpus = skewed();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let options = Options { shards: 5, partitions: 7, servers: 3, ..Options::default() };
    let setup = of_many_topics(setup(&corpus, 2, options));
    let placement = placed(&corpus, &setup);
    let slice = placement.slices(placement.partition(7)).last().unwrap();
    assert_ne!(slice, placement.partition(7));
    let server = setup.server(placement.server(slice));
    let mut world = world(&setup, &stored, Network::default(), 1);
    while world.program(server).unwrap().phase() != Phase::Sampling {
        world.run_for(Duration::from_micros(20));
    }
    let peer = setup.worker(0);
    let Some(Role::Worker(worker)) = world.program(peer) else { panic!("a worker") };
    let words = worker.shards()[0].tokens().words(placement.partition(7) as u16).len();
    world.with(server, |node, _| {
        let round = node.state().round;
        let mut body = Vec::new();
        request::begin(
            Kind::PushDeltas,
            &RequestHeader { shard: 0, slice: slice as u16, round },
            &mut body,
        );
        let (_, topics) = placement.slice(slice, TOPICS);
        let mut routes = vec![Route::Push; words];
        routes[0] = Route::Pull;
        put_routes(&routes, &mut body);
        RowCode::new(topics.end - topics.start).encode(&[(0, 1i32)], &mut body);
        let reply_to = ReplyHandle { peer, incarnation: 1, number: 1 };
        node.act(Action::Request { reply_to, kind: Asking::Push, body: body.into() }, &mut NoPort);
        assert!(node.work(&mut NoPort));
    });
    let mut failed = None;
    for _ in 0..1000 {
        world.run_for(Duration::from_millis(1));
        failed = failed.or_else(|| world.program(MASTER).and_then(Role::failed).cloned());
    }
    let failed = failed.expect("it gives up").to_string();
    assert!(failed.contains("add 1 tokens in epoch 1, round 0"), "{failed}");
}
