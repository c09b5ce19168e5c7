//! A server of rows: any requests are done or refused, what is refused changes nothing, and no word gains or loses a
//! token but by a shard that joins.
#![no_main]

use lda_dist::job::{Job, Round};
use lda_dist::request::{self, About, Kind};
use lda_dist::server::{RequestError, Server};
use lda_dist::wire::RowCode;

const TOPICS: u32 = 12;
const WORDS: u32 = 6;
const LONGEST: u32 = 50;

#[derive(arbitrary::Arbitrary, Debug)]
struct Step<'a> {
    kind: u8,
    shard: bool,
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

libfuzzer_sys::fuzz_target!(|steps: Vec<Step<'_>>| {
    let job = Job::new(TOPICS, WORDS, 0.1.into(), 0.1, 1).expect("a job");
    let mut server = Server::<u16>::new(&job, LONGEST, 0, [(2, (0..WORDS).collect())]);
    let mut join = Vec::new();
    let round = Round { epoch: 1, number: 0, attempt: 0 };
    let mut about = About { shard: 0, partition: 2, round };
    request::begin(Kind::Join, &about, &mut join);
    let words: Vec<(u32, u32)> = (0..WORDS).map(|word| (word, 1)).collect();
    RowCode::new(WORDS).encode(&words, &mut join);
    for word in 0..WORDS {
        RowCode::new(TOPICS).encode(&[(word, 3), (word + 1, 200), (word + 4, 1u32)], &mut join);
    }
    server.serve(&join, &mut Vec::new()).expect("a shard joins");
    let mut totals = vec![0i64; TOPICS as usize];
    server.end_round(&mut totals).expect("what has joined");
    let in_all = |totals: &[i64]| totals.iter().map(|&total| total as u32).collect::<Vec<_>>();
    server.begin_round(about.round, &in_all(&totals));
    let mut joined = false;
    for Step { kind, shard, ends, body } in steps {
        let kinds = [Kind::Join, Kind::Sizes, Kind::Pull, Kind::Push, Kind::Gained];
        let kind = kinds[usize::from(kind) % kinds.len()];
        about.shard = shard.into();
        let mut asked = Vec::new();
        request::begin(kind, &about, &mut asked);
        asked.extend_from_slice(body);
        let before = rows(&server);
        let done = server.serve(&asked, &mut Vec::new());
        joined |= kind == Kind::Join && done.is_ok();
        // Nothing is seen of it before the round ends.
        assert_eq!(rows(&server), before);
        if ends {
            match server.end_round(&mut totals) {
                Ok(()) => assert!(joined || tokens(&rows(&server)) == tokens(&before)),
                Err(RequestError::Store(_)) => return,
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
            about.round.number = about.round.number.wrapping_add(1);
            server.begin_round(about.round, &in_all(&totals));
            joined = false;
        }
    }
});
