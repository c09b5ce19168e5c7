//! A server and the requests that peers may send to it.

use std::ops::Range;

use lda_core::Corpus;
use lda_core::random::Xoshiro256PlusPlus;
use lda_dist::aggregate::TopicTotals;
use lda_dist::config::{Hybrid, Options, Routing};
use lda_dist::placement::{Partitioner, Placement, Slice};
use lda_dist::request::{self, HeadError, Kind, RequestHeader, put_routes, size_of_byte};
use lda_dist::route::Route;
use lda_dist::row_store::RowStoreError;
use lda_dist::server::{RequestError, Server};
use lda_dist::shard::{AnswerError, Shard, ShardDocuments, ShardError};
use lda_dist::spec::{JOINING, ModelSpec, Round};
use lda_dist::sync::SyncMode;
use lda_dist::wire::{Document, PushCode, RowCode, WireError};
use proptest::prelude::*;

const TOPICS: u32 = 6;
const LONGEST: u32 = 100;
const JOIN: Round = Round { epoch: 0, number: JOINING, attempt: 0 };
const ROUND: Round = Round { epoch: 1, number: 0, attempt: 0 };
/// Tokens of the shard and its words.
const ABOUT: RequestHeader = RequestHeader { shard: 3, slice: 0, round: ROUND };

fn options() -> Options {
    Options { max_pushed_len: LONGEST, ..Options::default() }
}

/// A slice of all words, with some of the topics.
fn slice(topics: Range<u32>) -> Slice {
    Slice { number: 0, words: (0..8).collect(), topics }
}

/// Options with which rows stay at workers, that is, the shard alone changes them.
fn that_stay() -> Options {
    Options { shards: 1, routing: Routing::Pull, ..options() }
}

const KINDS: [Kind; 6] =
    [Kind::Push, Kind::PushDeltas, Kind::Pull, Kind::Sizes, Kind::Join, Kind::PushRows];

type Rows = Vec<(u32, Vec<(u32, u32)>)>;

struct Both {
    spec: ModelSpec,
    placement: Placement,
    shard: Shard<u16>,
    server: Server<u16>,
    totals: Vec<u32>,
    words: usize,
}

/// One shard, and one server whose counts are the shard's.
fn both() -> Both {
    both_of(&options())
}

fn both_of(options: &Options) -> Both {
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let documents: Vec<Vec<u32>> =
        (0..12).map(|_| (0..1 + rng.below(20)).map(|_| rng.below(8)).collect()).collect();
    let corpus = Corpus::from_tokens(documents).unwrap();
    let spec = ModelSpec::new(TOPICS, 8, 0.3.into(), 0.1, 1).unwrap();
    let placement = Placement::new(Partitioner::Range, &[1; 8], 1, 1).unwrap();
    let documents = ShardDocuments { corpus: &corpus, range: 0..12, first: 0 };
    let shard = Shard::new(&spec, Hybrid::default(), &placement, 3, documents).unwrap();
    let mut server = Server::new(&spec, options, JOIN, [slice(0..TOPICS)]);
    let mut join = Vec::new();
    shard.join(&spec, &placement, 0, JOIN, &mut join);
    assert_eq!(ask(&mut server, &join), Ok(Vec::new()));
    let mut gained = vec![0; TOPICS as usize];
    server.end_round(JOIN, &mut gained).unwrap();
    let totals: Vec<u32> = gained.iter().map(|&total| total as u32).collect();
    server.begin_round(ROUND, &totals);
    let words = shard.tokens().words(0).len();
    Both { spec, placement, shard, server, totals, words }
}

fn ask(server: &mut Server<u16>, request: &[u8]) -> Result<Vec<u8>, RequestError> {
    let mut reply = Vec::new();
    server.serve(request, &mut reply).map(|()| reply)
}

fn request(kind: Kind, header: &RequestHeader, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    request::begin(kind, header, &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

impl Both {
    fn code(&self) -> PushCode {
        PushCode::new(TOPICS, self.words as u32, LONGEST)
    }

    fn rows(&self) -> Rows {
        let mut rows = Vec::new();
        self.server.for_each(|word, row| rows.push((word, row.to_vec())));
        rows
    }

    /// All documents, with the tokens of every word.
    fn documents(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let plan = self.shard.request(0, vec![Route::Push; self.words]);
        plan.pushed.iter().for_each(|document| self.code().encode(document, &mut bytes));
        bytes
    }

    fn ask(&mut self, kind: Kind, body: &[u8]) -> Result<Vec<u8>, RequestError> {
        ask(&mut self.server, &request(kind, &ABOUT, body))
    }

    /// A request that pulls all words, followed by `rest`.
    fn all_pulled(&self, rest: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        put_routes(&vec![Route::Pull; self.words], &mut body);
        body.extend_from_slice(rest);
        body
    }

    /// A request to push every second row as a whole, with `moved` tokens of its first topic in another one, and
    /// a delta that does the same for the others.
    fn rows_moved(&self, moved: u32) -> Vec<u8> {
        let (code, mut body) = (RowCode::new(TOPICS), Vec::new());
        body.push((0..self.words).step_by(2).map(|bit| 1 << bit).sum());
        let rows = self.rows().into_iter().filter(|row| !row.1.is_empty());
        for (at, (_, mut row)) in rows.enumerate() {
            let (from, to) = (row[0].0, row[1].0);
            (row[0].1, row[1].1) = (row[0].1 - moved, row[1].1 + moved);
            let delta = [(from, -(moved as i32)), (to, moved as i32)];
            if at % 2 == 0 {
                row.retain(|entry| entry.1 > 0);
                code.encode(&row, &mut body);
            } else {
                code.encode(if moved == 0 { &[] } else { &delta[..] }, &mut body);
            }
        }
        self.all_pulled(&body)
    }

    fn end_round(&mut self) -> Result<(), RequestError> {
        self.server.end_round(ROUND, &mut vec![0; TOPICS as usize])?;
        self.server.begin_round(ROUND, &self.totals);
        Ok(())
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_leave_a_server_consistent(
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        kind in 0..KINDS.len(),
    ) {
        let both = || both_of(&if kind == 5 { that_stay() } else { options() });
        let first = both();
        let kind = KINDS[kind];
        let mut join = Vec::new();
        first.shard.join(&first.spec, &first.placement, 0, JOIN, &mut join);
        let body = match kind {
            Kind::Push => first.documents(),
            Kind::PushDeltas => first.all_pulled(&vec![0; first.words]),
            Kind::PushRows => first.rows_moved(0),
            Kind::Pull => first.all_pulled(&[]),
            Kind::Sizes => Vec::new(),
            Kind::Join => join.split_off(5),
        };
        // Another shard joins; the other requests are of a shard that has joined.
        let shard = if kind == Kind::Join { 4 } else { 3 };
        let mut spoilt = request(kind, &RequestHeader { shard, ..ABOUT }, &body);
        for (at, bit) in &flips {
            let at = at.index(spoilt.len());
            spoilt[at] ^= 1 << bit;
        }
        spoilt.truncate(cut.index(spoilt.len() + 1));
        for bytes in [spoilt, noise.clone(), request(kind, &ABOUT, &noise)] {
            let mut both = both();
            let before = both.rows();
            let refused = ask(&mut both.server, &bytes).is_err();
            prop_assert_eq!(&both.rows(), &before);
            match both.end_round() {
                // A refused request has changed nothing.
                Ok(()) if refused => prop_assert_eq!(&both.rows(), &before),
                // Whatever was accepted, a word has as many tokens as before, plus those of shards
                // that joined.
                Ok(()) => {
                    let tokens = |rows: &Rows| -> Vec<u32> {
                        rows.iter().map(|(_, row)| row.iter().map(|entry| entry.1).sum()).collect()
                    };
                    let joined = bytes[0] == 0;
                    prop_assert!(joined || tokens(&both.rows()) == tokens(&before));
                }
                Err(error) => {
                    prop_assert!(kind != Kind::PushRows || bytes[0] == 4, "rows are checked at once");
                    let count = matches!(error, RequestError::RowStore(RowStoreError::Count { .. }));
                    prop_assert!(count, "{}", error);
                    prop_assert_eq!(&both.rows(), &before);
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_leave_a_shard_consistent(
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut both = both();
        let documents = both.documents();
        let answer = both.ask(Kind::Push, &documents).unwrap();
        let plan = both.shard.request(0, vec![Route::Push; both.words]);
        let topics = |shard: &Shard<u16>| {
            let mut topics = Vec::new();
            shard.tokens().for_each(|_, _, topic| topics.push(topic));
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
fn sizes_and_rows_are_those_of_the_counts() {
    let mut both = both();
    let sizes = both.ask(Kind::Sizes, &[]).unwrap();
    let body = both.all_pulled(&[]);
    let rows = both.ask(Kind::Pull, &body).unwrap();
    let (mut rest, code) = (&rows[..], RowCode::new(TOPICS));
    assert_eq!(sizes.len(), both.words);
    for ((_, expected), size) in both.rows().iter().filter(|row| !row.1.is_empty()).zip(sizes) {
        let (before, mut row) = (rest.len(), Vec::<(u32, u32)>::new());
        code.decode(&mut rest, &mut row).unwrap();
        assert_eq!(&row, expected);
        assert_eq!(size_of_byte(size) as usize, before - rest.len());
    }
    assert!(rest.is_empty());
}

#[test]
fn requests_for_absent_words_and_tokens_are_refused() {
    let mut both = both();
    let (documents, words) = (both.documents(), both.words);
    let nowhere = Err(RequestError::Slice { slice: 7 });
    let nobody = Err(RequestError::Shard { shard: 4, slice: 0 });
    for kind in [Kind::Sizes, Kind::Pull, Kind::Push, Kind::PushDeltas] {
        let elsewhere = request(kind, &RequestHeader { slice: 7, ..ABOUT }, &documents);
        assert_eq!(ask(&mut both.server, &elsewhere), nowhere);
        let other = request(kind, &RequestHeader { shard: 4, ..ABOUT }, &documents);
        assert_eq!(ask(&mut both.server, &other), nobody);
        let found = Round { epoch: 1, number: 1, attempt: 0 };
        let early = request(kind, &RequestHeader { round: found, ..ABOUT }, &documents);
        let refused = RequestError::Round { found, now: ROUND };
        assert_eq!(ask(&mut both.server, &early), Err(refused));
    }
    assert_eq!(
        ask(&mut both.server, &[1, 3, 0]),
        Err(RequestError::Head(HeadError::Truncated { bytes: 3 }))
    );
    assert_eq!(both.ask(Kind::Sizes, &[1, 2]), Err(RequestError::Rest { bytes: 2 }));
    assert_eq!(both.ask(Kind::Pull, &[]), Err(RequestError::Head(HeadError::Bits { words })));
    let body = both.all_pulled(&vec![0; words - 1]);
    assert_eq!(both.ask(Kind::PushDeltas, &body), Err(RequestError::Wire(WireError::Truncated)));
    let body = both.all_pulled(&vec![0; words + 1]);
    assert_eq!(both.ask(Kind::PushDeltas, &body), Err(RequestError::Rest { bytes: 1 }));
    let mut one = Vec::new();
    RowCode::new(TOPICS).encode(&[(2, 1i32)], &mut one);
    let body = both.all_pulled(&[&one[..], &vec![0; words - 1]].concat());
    assert_eq!(both.ask(Kind::PushDeltas, &body), Err(RequestError::TokenCount { tokens: 1 }));
    // A document with more tokens than may be pushed.
    let code = both.code();
    let mut long = Vec::new();
    let row = vec![(0, LONGEST), (1, 1)];
    code.encode(&Document { row, tokens: vec![(0, 0)] }, &mut long);
    let refused = RequestError::Length { tokens: 101, longest: LONGEST };
    assert_eq!(both.ask(Kind::Push, &long), Err(refused));
    // Tokens that the words do not have.
    let (row, tokens) = (vec![(0, 60)], vec![(0, 0); 60]);
    let mut many = Vec::new();
    code.encode(&Document { row, tokens }, &mut many);
    let refused = both.ask(Kind::Push, &many).unwrap_err();
    assert!(
        matches!(refused, RequestError::Tokens { word: 0 } | RequestError::Topic { topic: 0 }),
        "{refused}"
    );
}

#[test]
fn many_requests_have_the_replies_that_each_has_alone() {
    let mut alone = both();
    let pull = alone.all_pulled(&[]);
    let documents = alone.documents();
    let requests = [
        request(Kind::Sizes, &ABOUT, &[]),
        request(Kind::Pull, &ABOUT, &pull),
        request(Kind::Pull, &RequestHeader { slice: 7, ..ABOUT }, &pull),
        request(Kind::Push, &ABOUT, &documents),
        Vec::new(),
        request(Kind::Pull, &RequestHeader { round: JOIN, ..ABOUT }, &pull),
        request(Kind::Pull, &ABOUT, &pull),
    ];
    let expected: Vec<_> = requests.iter().map(|request| ask(&mut alone.server, request)).collect();
    assert_eq!(expected.iter().filter(|reply| reply.is_ok()).count(), 4);
    let mut server = both().server.threads(4);
    let bytes: Vec<&[u8]> = requests.iter().map(|request| &request[..]).collect();
    assert_eq!(server.serve_all(&bytes), expected);
    assert_eq!(server.serve_all(&[]), []);
}

#[test]
fn a_shard_joins_once_and_with_words_of_the_partition() {
    let mut both = both();
    let mut join = Vec::new();
    both.shard.join(&both.spec, &both.placement, 0, JOIN, &mut join);
    // A round is open already, and no round that ends would count the shard.
    let late = RequestError::Round { found: JOIN, now: ROUND };
    assert_eq!(ask(&mut both.server, &join), Err(late));
    let mut server = Server::<u16>::new(&both.spec, &options(), JOIN, [slice(0..TOPICS)]);
    assert_eq!(ask(&mut server, &join), Ok(Vec::new()));
    let joined = RequestError::Joined { shard: 3, slice: 0 };
    assert_eq!(ask(&mut server, &join), Err(joined));
    join[1] = 9;
    let cut = ask(&mut server, &join[..join.len() - 1]).unwrap_err();
    assert_eq!(cut, WireError::Truncated.into());
    assert_eq!(ask(&mut server, &join), Ok(Vec::new()));
    let mut twice = Vec::new();
    RowCode::new(8).encode(&[(0, 1), (5, 2u32)], &mut twice);
    let twice = request(Kind::Join, &RequestHeader { shard: 5, round: JOIN, ..ABOUT }, &twice);
    let words = RequestError::Words { shard: 5, slice: 0 };
    assert_eq!(ask(&mut server, &twice), Err(words));
    // Only the epoch from which the run continues is accepted.
    let other = Round::joining(4, 0);
    let mut elsewhere = Vec::new();
    both.shard.join(&both.spec, &both.placement, 0, other, &mut elsewhere);
    let refused = RequestError::Round { found: other, now: JOIN };
    assert_eq!(ask(&mut server, &elsewhere), Err(refused));
    // Before the first round all other requests are too early.
    let early = ask(&mut server, &request(Kind::Sizes, &ABOUT, &[]));
    assert_eq!(early, Err(RequestError::NotYet));
}

#[test]
fn rounds_that_overlap_do_not_see_each_other() {
    let mut both = both();
    let next = ROUND.next(1);
    both.server.begin_round(next, &both.totals);
    let before = both.rows();
    let pull = both.all_pulled(&[]);
    let rows = both.ask(Kind::Pull, &pull).unwrap();
    let from = before[0].1[0].0;
    let mut moves = [(from, -1), ((from + 1) % TOPICS, 1)];
    moves.sort_unstable();
    let mut moved = Vec::new();
    RowCode::new(TOPICS).encode(&moves, &mut moved);
    let gained = both.all_pulled(&[&moved[..], &vec![0; both.words - 1]].concat());
    both.ask(Kind::PushDeltas, &gained).unwrap();
    let mut changes = vec![0; TOPICS as usize];
    both.server.end_round(ROUND, &mut changes).unwrap();
    let expected: Vec<i64> = (0..TOPICS)
        .map(|k| moves.iter().find(|it| it.0 == k).map_or(0, |it| it.1.into()))
        .collect();
    assert_eq!(changes, expected);
    assert_ne!(both.rows(), before);
    // The next round has the earlier rows, and the one after it the current ones.
    let third = next.next(1);
    both.server.begin_round(third, &both.totals);
    let of = |round| request(Kind::Pull, &RequestHeader { round, ..ABOUT }, &pull);
    assert_eq!(ask(&mut both.server, &of(next)), Ok(rows.clone()));
    assert_ne!(ask(&mut both.server, &of(third)), Ok(rows));
    let over = RequestError::Round { found: ROUND, now: next };
    assert_eq!(ask(&mut both.server, &of(ROUND)), Err(over));
}

#[test]
fn rows_that_are_pushed_replace_those_of_the_server() {
    let mut both = both_of(&that_stay());
    let before = both.rows();
    let body = both.rows_moved(1);
    assert_eq!(both.ask(Kind::PushRows, &body), Ok(Vec::new()));
    assert_eq!(both.rows(), before, "the round has not ended");
    let twice = RequestError::RowStore(RowStoreError::Replaced { word: 0 });
    assert_eq!(both.ask(Kind::PushRows, &body), Err(twice));
    let mut changes = vec![0; TOPICS as usize];
    both.server.end_round(ROUND, &mut changes).unwrap();
    let mut expected = before.clone();
    let mut by_deltas = vec![0; TOPICS as usize];
    let mut totals = vec![0; TOPICS as usize];
    for (at, (_, row)) in expected.iter_mut().filter(|row| !row.1.is_empty()).enumerate() {
        by_deltas[row[0].0 as usize] -= (at % 2) as i64;
        by_deltas[row[1].0 as usize] += (at % 2) as i64;
        (row[0].1, row[1].1) = (row[0].1 - 1, row[1].1 + 1);
        row.retain(|entry| entry.1 > 0);
        row.iter().for_each(|&(topic, count)| totals[topic as usize] += u64::from(count));
    }
    assert_eq!((both.rows(), changes), (expected, by_deltas));
    let mut found = TopicTotals::new(TOPICS);
    both.server.aggregate(&mut found);
    assert_eq!(found.counts(), totals);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_change_nothing() {
    let mut stay = both_of(&that_stay());
    let before = stay.rows();
    let body = stay.rows_moved(0);
    let routes = stay.words.div_ceil(8);
    // The first row, and the second row's delta, with one token more.
    let (mut row, code) =
        (before.iter().find(|row| !row.1.is_empty()).unwrap().1.clone(), RowCode::new(TOPICS));
    let at = 2 * routes;
    let (old, mut more) = (code.size(&row), Vec::new());
    row[0].1 += 1;
    code.encode(&row, &mut more);
    let more = [&body[..at], &more, &body[at + old..]].concat();
    let mut gains = body[..at + old].to_vec();
    code.encode(&[(0, 1i32)], &mut gains);
    gains.extend(&body[at + old + 1..]);
    let refused = Err(RequestError::TokenCount { tokens: 1 });
    assert_eq!(stay.ask(Kind::PushRows, &more), refused);
    assert_eq!(stay.ask(Kind::PushRows, &gains), refused);
    let short = &body[..body.len() - 1];
    assert_eq!(stay.ask(Kind::PushRows, short), Err(WireError::Truncated.into()));
    let long = [&body[..], &[0]].concat();
    assert_eq!(stay.ask(Kind::PushRows, &long), Err(RequestError::Rest { bytes: 1 }));
    let bits = HeadError::Bits { words: stay.words };
    assert_eq!(stay.ask(Kind::PushRows, &body[..routes]), Err(bits.into()));
    stay.end_round().unwrap();
    assert_eq!(stay.rows(), before);
    // Other shards may change the rows in the same round, or other servers have a part of them.
    let only_deltas = Err(RequestError::OnlyDeltas { slice: 0 });
    assert_eq!(both().ask(Kind::PushRows, &body), only_deltas);
    let mut part = Server::<u16>::new(&stay.spec, &that_stay(), JOIN, [slice(0..TOPICS - 1)]);
    let join = request(Kind::Join, &RequestHeader { round: JOIN, ..ABOUT }, &{
        let mut words = Vec::new();
        RowCode::new(8).encode::<u32>(&[], &mut words);
        words
    });
    ask(&mut part, &join).unwrap();
    part.end_round(JOIN, &mut vec![0; TOPICS as usize]).unwrap();
    part.begin_round(ROUND, &stay.totals);
    assert_eq!(ask(&mut part, &request(Kind::PushRows, &ABOUT, &[])), only_deltas);
}

/// A delta that moves a token of the first row's first topic to the next topic, and the request with it.
fn move_one(both: &Both, header: &RequestHeader) -> Vec<u8> {
    let from = both.rows()[0].1[0].0;
    let mut moves = [(from, -1), ((from + 1) % TOPICS, 1)];
    moves.sort_unstable();
    let mut delta = Vec::new();
    RowCode::new(TOPICS).encode(&moves, &mut delta);
    delta.extend(vec![0; both.words - 1]);
    request(Kind::PushDeltas, header, &both.all_pulled(&delta))
}

#[test]
fn newest_rows_contain_changes_of_open_rounds() {
    let mut both = both();
    both.server = {
        let options = Options { sync: SyncMode::bounded(1), rounds: 3, ..options() };
        let mut server = Server::new(&both.spec, &options, JOIN, [slice(0..TOPICS)]);
        let mut join = Vec::new();
        both.shard.join(&both.spec, &both.placement, 0, JOIN, &mut join);
        ask(&mut server, &join).unwrap();
        server.end_round(JOIN, &mut vec![0; TOPICS as usize]).unwrap();
        server
    };
    let next = RequestHeader { round: ROUND.next(3), ..ABOUT };
    both.server.begin_round(ROUND, &both.totals);
    both.server.begin_round(next.round, &both.totals);
    let pull = both.all_pulled(&[]);
    let pulled = |both: &mut Both| {
        [ABOUT, next].map(|it| ask(&mut both.server, &request(Kind::Pull, &it, &pull)).unwrap())
    };
    let [first, same] = pulled(&mut both);
    assert_eq!(first, same);
    let (before, delta) = (both.rows(), move_one(&both, &next));
    assert_eq!(ask(&mut both.server, &delta), Ok(Vec::new()));
    // Requests of both rounds read the change, of a round that has not ended.
    let [changed, same] = pulled(&mut both);
    assert!(changed == same && changed != first);
    assert_eq!(both.rows(), before);
    both.server.end_round(ROUND, &mut vec![0; TOPICS as usize]).unwrap();
    both.server.begin_round(next.round.next(3), &both.totals);
    let again = ask(&mut both.server, &request(Kind::Pull, &next, &pull)).unwrap();
    assert_eq!(again, changed, "the change counts once");
    both.server.end_round(next.round, &mut vec![0; TOPICS as usize]).unwrap();
    let third = RequestHeader { round: next.round.next(3), ..ABOUT };
    assert_eq!(ask(&mut both.server, &request(Kind::Pull, &third, &pull)).unwrap(), changed);
}

#[test]
fn newest_totals_are_those_of_the_last_round() {
    let both = both();
    let documents = both.documents();
    let push = |sync, later: &[u32]| {
        let options = Options { sync, rounds: 2, ..options() };
        let mut server = Server::<u16>::new(&both.spec, &options, JOIN, [slice(0..TOPICS)]);
        let mut join = Vec::new();
        both.shard.join(&both.spec, &both.placement, 0, JOIN, &mut join);
        ask(&mut server, &join).unwrap();
        server.end_round(JOIN, &mut vec![0; TOPICS as usize]).unwrap();
        server.begin_round(ROUND, &both.totals);
        server.begin_round(ROUND.next(2), later);
        ask(&mut server, &request(Kind::Push, &ABOUT, &documents)).unwrap()
    };
    let more: Vec<u32> = (0..).zip(&both.totals).map(|(k, total)| total + 900 * k).collect();
    let [exact, bounded] = [SyncMode::rounds(1), SyncMode::bounded(1)];
    assert_eq!(push(exact, &more), push(exact, &both.totals));
    assert_ne!(push(bounded, &more), push(bounded, &both.totals));
    assert_eq!(push(bounded, &both.totals), push(exact, &both.totals));
}

#[test]
fn a_delta_that_does_not_fit_is_an_error_of_who_reads_the_newest_rows() {
    let mut both = both();
    let options = Options { sync: SyncMode::bounded(0), ..options() };
    let mut server = Server::new(&both.spec, &options, JOIN, [slice(0..TOPICS)]);
    let mut join = Vec::new();
    both.shard.join(&both.spec, &both.placement, 0, JOIN, &mut join);
    ask(&mut server, &join).unwrap();
    server.end_round(JOIN, &mut vec![0; TOPICS as usize]).unwrap();
    server.begin_round(ROUND, &both.totals);
    both.server = server;
    let (delta, pull) = (move_one(&both, &ABOUT), both.all_pulled(&[]));
    let has = both.rows()[0].1[0].1;
    (0..=has).for_each(|_| assert_eq!(ask(&mut both.server, &delta), Ok(Vec::new())));
    let refused = both.ask(Kind::Pull, &pull).unwrap_err();
    let RequestError::RowStore(RowStoreError::Count { tokens: -1, .. }) = refused else {
        panic!("{refused}");
    };
}

#[test]
fn totals_may_lack_pushed_tokens_only_with_staleness() {
    let both = both();
    let documents = both.documents();
    let push = |staleness| {
        let options = Options { sync: SyncMode::rounds(staleness), rounds: 2, ..options() };
        let mut server = Server::<u16>::new(&both.spec, &options, JOIN, [slice(0..TOPICS)]);
        let mut join = Vec::new();
        both.shard.join(&both.spec, &both.placement, 0, JOIN, &mut join);
        ask(&mut server, &join).unwrap();
        server.end_round(JOIN, &mut vec![0; TOPICS as usize]).unwrap();
        server.begin_round(ROUND, &[1; TOPICS as usize]);
        ask(&mut server, &request(Kind::Push, &ABOUT, &documents))
    };
    assert!(matches!(push(0), Err(RequestError::Topic { .. })));
    assert!(!push(1).unwrap().is_empty());
}

#[test]
fn a_refused_request_changes_nothing() {
    let mut both = both();
    let before = both.rows();
    let from = before[0].1[0].0;
    let mut move_one = Vec::new();
    let mut moves = [(from, -1), ((from + 1) % TOPICS, 1)];
    moves.sort_unstable();
    RowCode::new(TOPICS).encode(&moves, &mut move_one);
    let body = both.all_pulled(&move_one);
    assert_eq!(both.ask(Kind::PushDeltas, &body), Err(RequestError::Wire(WireError::Truncated)));
    both.end_round().unwrap();
    assert_eq!(both.rows(), before);
    let body = both.all_pulled(&[&move_one[..], &vec![0; both.words - 1]].concat());
    both.ask(Kind::PushDeltas, &body).unwrap();
    both.end_round().unwrap();
    assert_ne!(both.rows(), before);
}

#[test]
fn memory_includes_the_largest_push() {
    let mut both = both();
    let plan = both.shard.request(0, vec![Route::Push; both.words]);
    let code = both.code();
    let mut push = |more: u32| {
        let mut body = Vec::new();
        for Document { row, tokens } in &plan.pushed {
            let of = |topic| row.iter().find(|entry| entry.0 == topic).map_or(0, |entry| entry.1);
            let all = (0..TOPICS).map(|topic| (topic, of(topic) + more));
            let row = all.filter(|entry| entry.1 > 0).collect();
            code.encode(&Document { row, tokens: tokens.clone() }, &mut body);
        }
        both.ask(Kind::Push, &body).unwrap();
        both.server.memory()
    };
    // The same tokens with rows of more topics; the largest push still counts.
    let (short, long) = (push(0), push(1));
    let entries: usize = plan.pushed.iter().map(|document| document.row.len()).sum();
    assert!(long >= short + 8 * (plan.pushed.len() * TOPICS as usize - entries));
    assert!(push(0) >= long);
}

#[test]
fn memory_includes_all_documents_of_a_push() {
    let at_once = |at_a_time: usize| {
        let mut both = both();
        let plan = both.shard.request(0, vec![Route::Push; both.words]);
        let code = both.code();
        for some in plan.pushed.chunks(at_a_time) {
            let mut body = Vec::new();
            some.iter().for_each(|document| code.encode(document, &mut body));
            both.ask(Kind::Push, &body).unwrap();
        }
        (both.server.memory(), plan.pushed)
    };
    let ((all, documents), (each, _)) = (at_once(usize::MAX), at_once(1));
    let tokens: usize = documents.iter().map(|document| document.tokens.len()).sum();
    assert!(all >= each + 8 * tokens, "{all} {each}");
}

#[test]
fn a_shard_refuses_totals_without_its_tokens() {
    let mut both = both();
    assert_eq!(both.shard.begin_round(&both.totals, 0), Ok(()));
    let topic = both.totals.iter().position(|&total| total > 0).unwrap();
    both.totals[topic] -= 1;
    let refused = AnswerError::Total { topic: topic as u32 };
    assert_eq!(both.shard.begin_round(&both.totals, 0), Err(refused));
}

#[test]
fn topic_ids_beyond_16_bits_are_encoded() {
    let spec = ModelSpec::new(65_537, 2, 0.1.into(), 0.1, 0).unwrap();
    let corpus = Corpus::from_tokens([vec![0, 1]]).unwrap();
    let placement = Placement::new(Partitioner::Range, &[1; 2], 1, 1).unwrap();
    let documents = ShardDocuments { corpus: &corpus, range: 0..1, first: 0 };
    let refused =
        Shard::<u16>::new(&spec, Hybrid::default(), &placement, 0, documents.clone()).unwrap_err();
    assert_eq!(refused, ShardError::Topics { topics: 65_537, most: 65_536 });
    assert!(Shard::<u32>::new(&spec, Hybrid::default(), &placement, 0, documents).is_ok());
}

/// Each server of a split word has some of the topics.
#[test]
fn a_slice_has_only_its_topics() {
    let Both { spec, .. } = both();
    let topics = 2..TOPICS;
    let mut server = Server::<u16>::new(&spec, &options(), JOIN, [slice(topics)]);
    let code = RowCode::new(TOPICS - 2);
    let mut join = Vec::new();
    RowCode::new(8).encode(&[(1, 1), (5, 1u32)], &mut join);
    for row in [&[(0, 3), (3, 1u32)][..], &[]] {
        code.encode(row, &mut join);
    }
    ask(&mut server, &request(Kind::Join, &RequestHeader { round: JOIN, ..ABOUT }, &join)).unwrap();
    let mut changes = vec![0; TOPICS as usize];
    server.end_round(JOIN, &mut changes).unwrap();
    assert_eq!(changes, [0, 0, 3, 0, 0, 1]);
    server.begin_round(ROUND, &[0, 0, 3, 0, 0, 1]);
    let mut routes = Vec::new();
    put_routes(&[Route::Pull, Route::Pull], &mut routes);
    let rows = ask(&mut server, &request(Kind::Pull, &ABOUT, &routes)).unwrap();
    let mut expected = Vec::new();
    code.encode(&[(0, 3), (3, 1u32)], &mut expected);
    code.encode::<u32>(&[], &mut expected);
    assert_eq!(rows, expected);
    // The deltas of the other topics, which balance those here, go to other servers.
    let mut gained = routes.clone();
    code.encode(&[(0, -2), (1, 1i32)], &mut gained);
    code.encode(&[(3, 2i32)], &mut gained);
    ask(&mut server, &request(Kind::PushDeltas, &ABOUT, &gained)).unwrap();
    let refused = ask(&mut server, &request(Kind::Push, &ABOUT, &[]));
    assert_eq!(refused, Err(RequestError::PartialRows { slice: 0 }));
    let mut all = routes.clone();
    RowCode::new(TOPICS).encode(&[(0, -1), (5, 1i32)], &mut all);
    assert!(ask(&mut server, &request(Kind::PushDeltas, &ABOUT, &all)).is_err());
    let mut changes = vec![0; TOPICS as usize];
    server.end_round(ROUND, &mut changes).unwrap();
    assert_eq!(changes, [0, 0, -2, 1, 0, 2]);
    let mut seen = Vec::new();
    server.for_each(|word, row| seen.push((word, row.to_vec())));
    seen.retain(|(_, row)| !row.is_empty());
    assert_eq!(seen, [(1, vec![(2, 1), (3, 1), (5, 1)]), (5, vec![(5, 2)])]);
    let mut row = Vec::new();
    server.row(0, 5, &mut row);
    assert_eq!(row, [(5, 2)]);
}
