//! A server of rows: any requests are done or refused, what is refused changes nothing, and no word gains or loses a
//! token but by a shard that joins; and so where two rounds are on at once. One that has some of the topics alone
//! cannot tell what words gain, and takes no tokens that are pushed.
#![no_main]

use lda_dist::config::{Options, Routing};
use lda_dist::placement::Slice;
use lda_dist::request::{self, Kind, RequestHeader};
use lda_dist::server::{RequestError, Server};
use lda_dist::spec::{JOINING, ModelSpec, Round};
use lda_dist::sync::SyncMode;
use lda_dist::wire::RowCode;

const TOPICS: u32 = 12;
const WORDS: u32 = 6;
const LONGEST: u32 = 50;
const ROUNDS: u16 = 3;
const JOIN: Round = Round { epoch: 0, number: JOINING, attempt: 0 };

#[derive(arbitrary::Arbitrary, Debug)]
struct Step<'a> {
    kind: u8,
    shard: bool,
    /// For the second open round, if there are two.
    next: bool,
    ends: bool,
    body: &'a [u8],
}

fn rows(server: &Server<u16>) -> Vec<Vec<(u32, u32)>> {
    let mut rows = Vec::new();
    server.for_each(|_, row| rows.push(row.to_vec()));
    rows
}

fn tokens(rows: &[Vec<(u32, u32)>]) -> Vec<u64> {
    rows.iter().map(|row| row.iter().map(|entry| u64::from(entry.1)).sum()).collect()
}

libfuzzer_sys::fuzz_target!(|input: ([bool; 4], Vec<Step<'_>>)| {
    let ([overlap, reads_newest, is_whole, stays], steps) = input;
    let spec = ModelSpec::new(TOPICS, WORDS, 0.1.into(), 0.1, 1).expect("a job");
    let cut = Options { max_pushed_len: LONGEST, rounds: ROUNDS, ..Options::default() };
    let staleness = overlap.into();
    let sync = match reads_newest {
        true => SyncMode::bounded(staleness),
        false => SyncMode::rounds(staleness),
    };
    let routing = if stays { Routing::Pull } else { cut.routing };
    let options = Options { sync, routing, ..cut };
    let topics = if is_whole { 0..TOPICS } else { 3..9 };
    let here = topics.end - topics.start;
    let slice = Slice { number: 2, words: (0..WORDS).collect(), topics };
    let mut server = Server::<u16>::new(&spec, &options, JOIN, [slice]);
    let mut join = Vec::new();
    let mut header = RequestHeader { shard: 0, slice: 2, round: JOIN };
    request::begin(Kind::Join, &header, &mut join);
    let words: Vec<(u32, u32)> = (0..WORDS).map(|word| (word, 1)).collect();
    RowCode::new(WORDS).encode(&words, &mut join);
    for word in 0..WORDS {
        let first = word % (here - 4);
        RowCode::new(here).encode(&[(first, 3), (first + 1, 200), (first + 4, 1u32)], &mut join);
    }
    server.serve(&join, &mut Vec::new()).expect("a shard joins");
    let mut totals = vec![0i64; TOPICS as usize];
    let mut round = JOIN.next(ROUNDS);
    let in_all = |totals: &[i64]| totals.iter().map(|&total| total as u32).collect::<Vec<_>>();
    let mut joining = true;
    for Step { kind, shard, next, ends, body } in steps {
        let kinds =
            [Kind::Join, Kind::Sizes, Kind::Pull, Kind::Push, Kind::PushDeltas, Kind::PushRows];
        let kind = kinds[usize::from(kind) % kinds.len()];
        header.shard = shard.into();
        header.round = match (server.num_rounds(), next) {
            (0, _) => JOIN,
            (2, true) => round.next(ROUNDS),
            _ => round,
        };
        let mut asked = Vec::new();
        request::begin(kind, &header, &mut asked);
        asked.extend_from_slice(body);
        let before = rows(&server);
        let done = server.serve(&asked, &mut Vec::new());
        // Shards join before the first round.
        assert!(kind != Kind::Join || done.is_err() || joining);
        assert!(kind != Kind::Push || done.is_err() || is_whole);
        // Rows after the last round do not have it.
        assert_eq!(rows(&server), before);
        if ends {
            let ended = if joining { JOIN } else { round };
            match server.end_round(ended, &mut totals) {
                Ok(()) => {
                    assert!(joining || !is_whole || tokens(&rows(&server)) == tokens(&before));
                }
                Err(RequestError::RowStore(_)) => return,
                Err(other) => panic!("{other}"),
            }
            let of_topic = |topic: u32| -> i64 {
                let all = rows(&server).into_iter().flatten();
                all.filter(|entry| entry.0 == topic).map(|entry| i64::from(entry.1)).sum()
            };
            assert!((0..TOPICS).all(|topic| totals[topic as usize] == of_topic(topic)));
            if totals.iter().any(|&total| total > i64::from(u32::MAX)) {
                return;
            }
            if joining {
                server.begin_round(round, &in_all(&totals));
                if overlap {
                    server.begin_round(round.next(ROUNDS), &in_all(&totals));
                }
            } else {
                round = round.next(ROUNDS);
                let last = if overlap { round.next(ROUNDS) } else { round };
                server.begin_round(last, &in_all(&totals));
            }
            joining = false;
        }
    }
});
