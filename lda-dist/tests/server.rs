//! A server and what peers may send to it.

use lda_core::Corpus;
use lda_core::random::Xoshiro256PlusPlus;
use lda_dist::job::{Job, Round};
use lda_dist::placement::{Partitioner, Placement};
use lda_dist::route::Route;
use lda_dist::server::{RequestError, Server};
use lda_dist::shard::{AnswerError, Shard, ShardError};
use lda_dist::store::StoreError;
use lda_dist::wire::{PushCode, RowCode, WireError};
use proptest::prelude::*;

const TOPICS: u32 = 6;
const LONGEST: u32 = 100;
const ROUND: Round = Round { epoch: 1, number: 0 };

struct Both {
    job: Job,
    shard: Shard<u16>,
    server: Server<u16>,
    totals: Vec<u32>,
    words: usize,
}

/// One shard and one server, whose counts are the shard's.
fn both() -> Both {
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let documents: Vec<Vec<u32>> =
        (0..12).map(|_| (0..1 + rng.below(20)).map(|_| rng.below(8)).collect()).collect();
    let corpus = Corpus::from_tokens(documents).unwrap();
    let job = Job::new(TOPICS, 8, 0.3.into(), 0.1, 1).unwrap();
    let placement = Placement::new(Partitioner::Range, &[1; 8], 1, 1).unwrap();
    let shard = Shard::new(&job, &placement, 3, &corpus, 0..12, 0).unwrap();
    let mut server = Server::new(&job, [(0, (0..8).collect())]);
    server.subscribe(3, 0, shard.words(0)).unwrap();
    shard.counts(0, |word, row| server.add(3, 0, word, row).unwrap());
    let mut gained = vec![0; TOPICS as usize];
    server.end_round(&mut gained).unwrap();
    let totals: Vec<u32> = gained.iter().map(|&total| total as u32).collect();
    server.begin_round(&totals);
    let words = shard.words(0).len();
    Both { job, shard, server, totals, words }
}

impl Both {
    fn code(&self) -> PushCode {
        PushCode::new(TOPICS, self.words as u32, LONGEST)
    }

    fn rows(&self) -> Vec<(u32, Vec<(u32, u32)>)> {
        let mut rows = Vec::new();
        self.server.for_each(|word, row| rows.push((word, row.to_vec())));
        rows
    }

    /// All documents, with the tokens of every word.
    fn request(&self) -> Vec<u8> {
        let mut request = Vec::new();
        let plan = self.shard.request(0, vec![Route::Push; self.words]);
        plan.pushed.iter().for_each(|document| self.code().encode(document, &mut request));
        request
    }

    fn push(
        &mut self,
        shard: u16,
        partition: u16,
        request: &[u8],
    ) -> Result<Vec<u8>, RequestError> {
        let (mut answer, code) = (Vec::new(), self.code());
        let Self { job, server, .. } = self;
        server.push(job, ROUND, code, shard, partition, request, &mut answer)?;
        Ok(answer)
    }

    fn end_round(&mut self) -> Result<(), RequestError> {
        self.server.end_round(&mut vec![0; TOPICS as usize])
    }
}

proptest! {
    #[test]
    fn no_bytes_disturb_it(
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut request = both().request();
        for (at, bit) in &flips {
            let at = at.index(request.len());
            request[at] ^= 1 << bit;
        }
        request.truncate(cut.index(request.len() + 1));
        for bytes in [&request, &noise] {
            let mut both = both();
            let before = both.rows();
            let refused = both.push(3, 0, bytes).is_err();
            let routes = vec![Route::Pull; both.words];
            let gained = both.server.gained(&both.job, 3, 0, &routes, bytes);
            prop_assert_eq!(&both.rows(), &before);
            let ended = both.end_round();
            match ended {
                // What was refused has left nothing behind.
                Ok(()) if refused && gained.is_err() => prop_assert_eq!(&both.rows(), &before),
                // Whatever else was taken, a word has as many tokens as before.
                Ok(()) => {
                    let tokens = |rows: &[(u32, Vec<(u32, u32)>)]| -> Vec<u32> {
                        rows.iter().map(|(_, row)| row.iter().map(|entry| entry.1).sum()).collect()
                    };
                    prop_assert_eq!(tokens(&both.rows()), tokens(&before));
                }
                Err(error) => {
                    let count = matches!(error, RequestError::Store(StoreError::Count { .. }));
                    prop_assert!(count, "{}", error);
                    prop_assert_eq!(&both.rows(), &before);
                }
            }
        }
    }

    #[test]
    fn no_bytes_disturb_a_shard(
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut both = both();
        let request = both.request();
        let answer = both.push(3, 0, &request).unwrap();
        let plan = both.shard.request(0, vec![Route::Push; both.words]);
        let topics = |shard: &Shard<u16>| {
            let mut topics = Vec::new();
            shard.for_each(|_, _, topic| topics.push(topic));
            topics
        };
        let before = topics(&both.shard);
        let code = both.code();
        for bytes in [&answer[..cut.index(answer.len())], &noise] {
            if both.shard.answered(code, 0, &plan, bytes).is_err() {
                prop_assert_eq!(topics(&both.shard), before.clone());
            }
        }
    }
}

#[test]
fn what_it_has_not_is_refused() {
    let mut both = both();
    let request = both.request();
    let Both { job, server, words, .. } = &mut both;
    let routes = vec![Route::Pull; *words];
    let nowhere = RequestError::Partition { partition: 7 };
    let nobody = RequestError::Shard { shard: 4, partition: 0 };
    let mut rows = Vec::new();
    assert_eq!(server.sizes(3, 7), Err(nowhere));
    assert_eq!(server.sizes(4, 0), Err(nobody));
    assert_eq!(server.pull(4, 0, &routes, &mut rows), Err(nobody));
    assert_eq!(
        server.pull(3, 0, &routes[1..], &mut rows),
        Err(RequestError::Routes { found: *words - 1, expected: *words })
    );
    assert_eq!(server.gained(job, 3, 7, &routes, &[]), Err(nowhere));
    for wrong in [&[1, 1][..], &[2, 1], &[0, 8]] {
        let refused = RequestError::Words { shard: 4, partition: 0 };
        assert_eq!(server.subscribe(4, 0, wrong), Err(refused));
    }
    assert_eq!(server.add(3, 0, 99, &[]), Err(RequestError::Tokens { word: 99 }));
    let none = vec![0; *words];
    assert_eq!(
        server.gained(job, 3, 0, &routes, &none[1..]),
        Err(RequestError::Wire(WireError::Truncated))
    );
    assert_eq!(
        server.gained(job, 3, 0, &routes, &[&none[..], &[0]].concat()),
        Err(RequestError::Rest { bytes: 1 })
    );
    let mut one = Vec::new();
    RowCode::new(TOPICS).encode(&[(2, 1i32)], &mut one);
    assert_eq!(
        server.gained(job, 3, 0, &routes, &[&one[..], &none[1..]].concat()),
        Err(RequestError::Gained { tokens: 1 })
    );
    assert_eq!(both.push(4, 0, &request), Err(nobody));
    assert_eq!(both.push(3, 7, &request), Err(nowhere));
    // Of a document with more tokens than may be pushed.
    let code = both.code();
    let mut long = Vec::new();
    let row = vec![(0, LONGEST), (1, 1)];
    code.encode(&lda_dist::wire::Document { row, tokens: vec![(0, 0)] }, &mut long);
    let refused = RequestError::Length { tokens: 101, longest: LONGEST };
    assert_eq!(both.push(3, 0, &long), Err(refused));
    // Of tokens that the words have not.
    let (row, tokens) = (vec![(0, 60)], vec![(0, 0); 60]);
    let mut many = Vec::new();
    code.encode(&lda_dist::wire::Document { row, tokens }, &mut many);
    let refused = both.push(3, 0, &many).unwrap_err();
    assert!(
        matches!(refused, RequestError::Tokens { word: 0 } | RequestError::Topic { topic: 0 }),
        "{refused}"
    );
}

#[test]
fn what_is_refused_is_not_half_done() {
    let mut both = both();
    let before = both.rows();
    let from = before[0].1[0].0;
    let mut move_one = Vec::new();
    let mut moves = [(from, -1), ((from + 1) % TOPICS, 1)];
    moves.sort_unstable();
    RowCode::new(TOPICS).encode(&moves, &mut move_one);
    let routes = vec![Route::Pull; both.words];
    let refused = both.server.gained(&both.job, 3, 0, &routes, &move_one);
    assert_eq!(refused, Err(RequestError::Wire(WireError::Truncated)));
    both.end_round().unwrap();
    assert_eq!(both.rows(), before);
    let all = [&move_one[..], &vec![0; both.words - 1]].concat();
    both.server.gained(&both.job, 3, 0, &routes, &all).unwrap();
    both.end_round().unwrap();
    assert_ne!(both.rows(), before);
}

#[test]
fn totals_that_have_not_its_tokens_are_refused_by_a_shard() {
    let mut both = both();
    assert_eq!(both.shard.begin_round(&both.totals), Ok(()));
    let topic = both.totals.iter().position(|&total| total > 0).unwrap();
    both.totals[topic] -= 1;
    let refused = AnswerError::Total { topic: topic as u32 };
    assert_eq!(both.shard.begin_round(&both.totals), Err(refused));
}

#[test]
fn numbers_of_topics_are_wide_enough() {
    let job = Job::new(65_537, 2, 0.1.into(), 0.1, 0).unwrap();
    let corpus = Corpus::from_tokens([vec![0, 1]]).unwrap();
    let placement = Placement::new(Partitioner::Range, &[1; 2], 1, 1).unwrap();
    let refused = Shard::<u16>::new(&job, &placement, 0, &corpus, 0..1, 0).unwrap_err();
    assert_eq!(refused, ShardError::Topics { topics: 65_537, most: 65_536 });
    assert!(Shard::<u32>::new(&job, &placement, 0, &corpus, 0..1, 0).is_ok());
}
