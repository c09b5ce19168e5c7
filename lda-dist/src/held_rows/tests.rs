use lda_core::Corpus;

use super::*;
use crate::config::{Hybrid, Options, Routing};
use crate::placement::{Partitioner, Placement};
use crate::shard::ShardDocuments;
use crate::spec::ModelSpec;
use crate::wire::WireError;

const TOPICS: u32 = 6;

/// Two shards: the first has words 0 and 1, the second words 1 and 2.
struct World {
    spec: ModelSpec,
    options: Options,
    placement: Placement,
    shards: Vec<Shard<u16>>,
}

fn world() -> World {
    let corpus = Corpus::from_tokens([vec![0, 0, 1, 1, 1], vec![1, 1, 2, 2, 2]]).unwrap();
    let spec = ModelSpec::new(TOPICS, 3, 0.1.into(), 0.01, 4).unwrap();
    let placement = Placement::new(Partitioner::Range, &[1; 3], 1, 1).unwrap();
    let shard = |number: u16| {
        let range = usize::from(number)..usize::from(number) + 1;
        let documents = ShardDocuments { corpus: &corpus, range, first: number.into() };
        Shard::new(&spec, Hybrid::default(), &placement, number, documents).unwrap()
    };
    let shards = vec![shard(0), shard(1)];
    let options = Options { shards: 2, routing: Routing::Pull, ..Options::default() };
    World { spec, options, placement, shards }
}

impl World {
    fn cx(&self) -> TripContext<'_> {
        let Self { spec, options, placement, .. } = self;
        TripContext { spec, options, placement }
    }

    /// Counts of a word's tokens in both shards.
    fn row(&self, word: u32) -> Vec<(u32, u32)> {
        let mut counts = [0; TOPICS as usize];
        for (_, topics) in
            self.shards.iter().flat_map(|it| it.sampled_words(0)).filter(|it| it.0 == word)
        {
            topics.iter().for_each(|&topic| counts[usize::from(topic)] += 1);
        }
        (0..).zip(counts).filter(|entry| entry.1 > 0).collect()
    }

    /// The rows after replies of these encoded rows, to the requests of both shards.
    fn held(&self, replies: [Vec<u8>; 2]) -> Result<HeldRows<u16>, AnswerError> {
        let shards: Vec<&Shard<u16>> = self.shards.iter().collect();
        let mut request = RowsRequest::new(self.cx(), 0, &shards);
        let round = Round { epoch: 1, number: 0, attempt: 1 };
        assert_eq!(request.requests(self.cx(), round).len(), 2);
        // Word 1 is requested for the first shard only.
        let rows: Vec<&[u32]> = request.parts.iter().map(|part| &part.rows[..]).collect();
        assert_eq!(rows, [&[0, 1][..], &[2]]);
        for (position, reply) in replies.into_iter().enumerate().rev() {
            assert!(!request.is_complete());
            request.accept(position, reply.into());
        }
        assert!(request.is_complete());
        request.finish(self.cx(), &shards)
    }
}

impl HeldRows<u16> {
    /// The first part of [`sample`](Self::sample).
    fn sample_for_test(&mut self, cx: TripContext<'_>) {
        if !std::mem::replace(&mut self.is_ahead, true) {
            self.note_pushed(cx);
        }
    }
}

fn encode(rows: &[Vec<(u32, u32)>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    rows.iter().for_each(|row| RowCode::new(TOPICS).encode(row, &mut bytes));
    bytes
}

#[test]
fn rows_are_those_of_the_replies() {
    let world = world();
    let rows = [0, 1, 2].map(|word| world.row(word));
    let held = world.held([encode(&rows[..2]), encode(&rows[2..])]).unwrap();
    for (at, expected) in rows.iter().enumerate() {
        let mut row = Vec::new();
        held.rows.for_each(at, |topic, count| row.push((topic, count)));
        assert_eq!(&row, expected);
    }
    assert_eq!((held.words, held.is_ahead), (vec![0, 1, 2], false));
}

#[test]
fn rows_that_do_not_fit_the_shards_are_refused() {
    let world = world();
    let rows = [0, 1, 2].map(|word| world.row(word));
    let refused = |first: Vec<u8>, second: Vec<u8>| world.held([first, second]).unwrap_err();
    let (first, second) = (encode(&rows[..2]), encode(&rows[2..]));
    // Enough for each of the shards, but not for both.
    assert!(rows[1].len() > 1 && rows[1].iter().any(|entry| entry.1 > 1), "{:?}", rows[1]);
    for at in 0..rows[1].len() {
        let mut fewer = rows[1].clone();
        fewer[at].1 -= 1;
        fewer.retain(|entry| entry.1 > 0);
        let short = encode(&[rows[0].clone(), fewer]);
        assert_eq!(refused(short, second.clone()), AnswerError::Row { word: 1 });
    }
    let truncated = first[..first.len() - 1].to_vec();
    assert_eq!(refused(truncated, second.clone()), WireError::Truncated.into());
    let more = [second, vec![0]].concat();
    assert_eq!(refused(first, more), AnswerError::Rest { bytes: 1 });
}

/// Words 0 and 1 have more tokens here than topics; of word 2, most tokens are elsewhere.
#[test]
fn rows_with_few_tokens_here_are_pushed_as_deltas() {
    let world = world();
    let elsewhere = [(0, 10), (1, 10), (2, 10), (3, 10), (4, 10), (5, 10)];
    let with = |row: &[(u32, u32)]| {
        let mut counts = elsewhere.map(|entry| entry.1);
        row.iter().for_each(|&(topic, count)| counts[topic as usize] += count);
        (0..).zip(counts).collect::<Vec<(u32, u32)>>()
    };
    let rows = [world.row(0), world.row(1), with(&world.row(2))];
    let mut held = world.held([encode(&rows[..2]), encode(&rows[2..])]).unwrap();
    let round = Round { epoch: 1, number: 0, attempt: 1 };
    let code = RowCode::new(TOPICS);
    let mut before = rows.to_vec();
    // The second push follows without another pull.
    for to in [1, 4] {
        held.sample_for_test(world.cx());
        for (row, before) in before.iter().enumerate() {
            held.rows.decrement(row, before[0].0);
            held.rows.increment(row, to);
        }
        let requests = held.push(world.cx(), round);
        let mut now: Vec<Vec<(u32, u32)>> = Vec::new();
        for (row, before) in before.iter().enumerate() {
            let mut counts = [0i64; TOPICS as usize];
            before.iter().for_each(|entry| counts[entry.0 as usize] += i64::from(entry.1));
            counts[before[0].0 as usize] -= 1;
            counts[to as usize] += 1;
            let row_now = (0..).zip(counts).filter(|entry| entry.1 > 0);
            now.push(row_now.map(|(topic, count)| (topic, count as u32)).collect());
            let mut found = Vec::new();
            sorted_row(&held.rows, row as u32, &mut found);
            assert_eq!(found, now[row]);
        }
        let mut delta = Vec::new();
        difference(&before[2], &now[2], &mut delta);
        let mut whole = vec![0b11, 0b11];
        now[..2].iter().for_each(|row| code.encode(row, &mut whole));
        let mut changed = vec![0b10, 0];
        code.encode(&delta, &mut changed);
        let expected = [(0, whole), (1, changed)];
        for (request, (shard, body)) in requests.iter().zip(expected) {
            let expected = TripRequest::new(Kind::PushRows, shard, 0, round, body);
            assert_eq!(request.encode(), expected.encode(), "shard {shard}");
        }
        assert_eq!(requests.len(), 2);
        before = now;
    }
}

#[test]
fn deltas_are_the_differences_of_rows() {
    let mut delta = Vec::new();
    difference(&[(0, 3), (2, 1), (5, 4)], &[(0, 3), (1, 2), (5, 1), (7, 9)], &mut delta);
    assert_eq!(delta, [(1, 2), (2, -1), (5, -3), (7, 9)]);
    difference(&[(1, 1), (4, 2)], &[], &mut delta);
    assert_eq!(delta, [(1, -1), (4, -2)]);
}

#[test]
fn rows_stay_as_long_as_they_take_less_than_the_limit() {
    let World { spec, placement, .. } = world();
    let words = WordStats::new(vec![2, 5, 3], vec![1, 2, 1]).unwrap();
    let bytes = Rows::<u16>::bytes(6, [2, 5, 3].into_iter(), Density::Auto) as usize;
    for (routing, share, most, stay) in [
        (Routing::Pull, 1.0, bytes, true),
        (Routing::Pull, 1.0, bytes - 1, false),
        (Routing::Pull, 0.5, bytes / 2 + 1, true),
        (Routing::Cheapest, 1.0, bytes, false),
    ] {
        let options = Options { routing, ..Options::default() };
        let cx = TripContext { spec: &spec, options: &options, placement: &placement };
        assert_eq!(staying::<u16>(cx, &words, share, most), [stay], "{routing:?}, {most}");
    }
}
