use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TOPICS: u32 = 20;

fn round(number: u16) -> Round {
    Round { epoch: 1, number, attempt: 0 }
}

type Plain = BTreeMap<(u32, u32), i64>;

fn check(plain: &Plain, store: &RowStore, version: u64) -> Result<(), TestCaseError> {
    let mut row: Vec<(u32, u32)> = Vec::new();
    for word in 0..6 {
        store.code.decode(&mut store.encoded(version, word), &mut row).unwrap();
        let expected: Vec<(u32, u32)> = plain
            .range((word, 0)..(word + 1, 0))
            .filter(|(_, count)| **count > 0)
            .map(|(&(_, topic), &count)| (topic, count as u32))
            .collect();
        prop_assert_eq!(&row, &expected);
    }
    Ok(())
}

proptest! {
    #[test]
    fn rows_are_what_was_added_in_rounds_before(
        rounds in prop::collection::vec(
            prop::collection::vec((0..6u32, 0..TOPICS, 1..4i32), 0..40), 1..6),
        kept in 1..4usize,
    ) {
        let mut store = RowStore::new(TOPICS, 6);
        // A delta of a later round has no effect.
        store.add(round(9), 3, &[(1, 5)]).unwrap();
        let mut plain = vec![Plain::new()];
        let mut totals = vec![0; TOPICS as usize];
        for (number, changes) in rounds.iter().enumerate() {
            let mut now = plain[number].clone();
            for &(word, topic, by) in changes {
                // Every second round subtracts.
                let there = now.get(&(word, topic)).copied().unwrap_or(0);
                let by = if number % 2 == 1 { -(there.min(1) as i32) } else { by };
                if by != 0 {
                    *now.entry((word, topic)).or_default() += i64::from(by);
                    store.add(round(number as u16), word, &[(topic, by)]).unwrap();
                }
            }
            check(&plain[number], &store, store.version())?;
            store.end_round(round(number as u16), &mut totals).unwrap();
            plain.push(now);
            let first = plain.len().saturating_sub(kept);
            store.forget(first as u64);
            prop_assert!(store.replaced.len() < kept);
            prop_assert!(store.unused <= store.bytes.len() / 2);
            for (version, rows) in plain.iter().enumerate().skip(first) {
                check(rows, &store, version as u64)?;
            }
        }
        for topic in 0..TOPICS {
            let all: i64 = plain[rounds.len()]
                .iter()
                .filter(|((_, k), _)| *k == topic)
                .map(|(_, count)| *count)
                .sum();
            prop_assert_eq!(totals[topic as usize], all);
        }
    }
}

/// An addition, or the end of the oldest of three open rounds.
#[derive(Clone, Debug)]
enum Step {
    Add { ahead: u16, word: u32, topic: u32 },
    Remove { ahead: u16, word: u32, topic: u32 },
    End,
}

fn step() -> impl Strategy<Value = Step> {
    let at = (0..3u16, 0..6u32, 0..TOPICS);
    prop_oneof![
        4 => at.clone().prop_map(|(ahead, word, topic)| Step::Add { ahead, word, topic }),
        3 => at.prop_map(|(ahead, word, topic)| Step::Remove { ahead, word, topic }),
        1 => Just(Step::End),
    ]
}

proptest! {
    /// A read of the newest rows has every change once, however many rounds have ended since, and what
    /// was ended is not seen twice.
    #[test]
    fn newest_rows_have_every_change_once(steps in prop::collection::vec(step(), 0..80)) {
        let mut store = RowStore::new(TOPICS, 6);
        let (mut now, mut oldest) = (Plain::new(), 0);
        let mut buffers = RowBuffers::default();
        for step in steps {
            let (ahead, word, topic, by) = match step {
                Step::Add { ahead, word, topic } => (ahead, word, topic, 2),
                Step::Remove { ahead, word, topic } => {
                    let is_there = now.get(&(word, topic)).is_some_and(|count| *count > 0);
                    (ahead, word, topic, -i32::from(is_there))
                }
                Step::End => {
                    // Rounds end in order; a removal in a round may be of an addition in a later one.
                    if store.end_round(round(oldest), &mut [0; TOPICS as usize]).is_err() {
                        return Ok(());
                    }
                    oldest += 1;
                    (0, 0, 0, 0)
                }
            };
            if by != 0 {
                store.add(round(oldest + ahead), word, &[(topic, by)]).unwrap();
                *now.entry((word, topic)).or_default() += i64::from(by);
            }
            for word in 0..6 {
                // Rounds are added in their order, in which a removal may come first.
                let Ok(mut row) = store.read_at(ReadAt::Newest, word, &mut buffers) else {
                    return Ok(());
                };
                let mut found: Vec<(u32, u32)> = Vec::new();
                store.code.decode(&mut row, &mut found).unwrap();
                let of_word = now.range((word, 0)..(word + 1, 0)).filter(|(_, count)| **count > 0);
                let expected: Vec<(u32, u32)> =
                    of_word.map(|(&(_, topic), &count)| (topic, count as u32)).collect();
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}

#[test]
fn a_replaced_row_counts_from_the_end_of_its_round() {
    let mut store = RowStore::new(4, 3);
    let mut totals = [0; 4];
    (0..3).for_each(|word| store.add(round(0), word, &[(0, 5), (2, 1)]).unwrap());
    store.end_round(round(0), &mut totals).unwrap();
    let row = |store: &RowStore, at| {
        let mut buffers = RowBuffers::default();
        let mut found: Vec<(u32, u32)> = Vec::new();
        store.code.decode(&mut store.read_at(at, 1, &mut buffers).unwrap(), &mut found).unwrap();
        assert_eq!(store.decode_at(at, 1, &mut buffers).unwrap(), found);
        found
    };
    let (old, new) = (vec![(0, 5), (2, 1)], vec![(1, 6)]);
    let mut encoded = Vec::new();
    store.code.encode(&new, &mut encoded);
    let before = store.memory();
    store.replace(round(2), 1, &encoded).unwrap();
    assert!(store.memory() > before);
    let refused = Err(RowStoreError::Replaced { word: 1 });
    assert_eq!(store.replace(round(2), 1, &encoded), refused);
    assert_eq!(store.add(round(2), 1, &[(1, 1)]), refused);
    // Deltas of other words, and the end of another round, do not touch it.
    store.add(round(1), 0, &[(0, -5), (3, 5)]).unwrap();
    let refused = Err(RowStoreError::Replaced { word: 0 });
    assert_eq!(store.replace(round(1), 0, &encoded), refused);
    store.add(round(2), 2, &[(2, -1), (3, 1)]).unwrap();
    store.end_round(round(1), &mut totals).unwrap();
    store.compact();
    for (at, expected) in [(ReadAt::Version(2), &old), (ReadAt::Newest, &new)] {
        assert_eq!(&row(&store, at), expected, "{at:?}");
    }
    assert_eq!(totals, [10, 0, 3, 5]);
    store.end_round(round(2), &mut totals).unwrap();
    let versions = [(1, &old), (2, &old), (3, &new)];
    let versions = versions.map(|(version, row)| (ReadAt::Version(version), row));
    for (at, expected) in versions.into_iter().chain([(ReadAt::Newest, &new)]) {
        assert_eq!(&row(&store, at), expected, "{at:?}");
    }
    assert_eq!(totals, [10, 0, 2, 6], "by deltas alone");
    store.forget(3);
    assert_eq!(row(&store, ReadAt::Version(3)), new);
    let places: usize = store.rows.iter().map(|place| place.len as usize).sum();
    assert_eq!(store.bytes.len() - store.unused, places);
}

/// A worker pushes its changes at the end of an epoch, and the row in the next round, before the first one has
/// ended.
#[test]
fn a_row_replaces_changes_of_earlier_rounds_and_gets_those_of_later_ones() {
    let mut store = RowStore::new(3, 1);
    let mut totals = [0; 3];
    store.add(round(0), 0, &[(0, 9)]).unwrap();
    store.end_round(round(0), &mut totals).unwrap();
    let replace = |store: &mut RowStore, number, new: &[(u32, u32)]| {
        let mut encoded = Vec::new();
        store.code.encode(new, &mut encoded);
        store.replace(round(number), 0, &encoded).unwrap();
    };
    // Messages may arrive in any order.
    replace(&mut store, 3, &[(0, 6), (1, 2), (2, 1)]);
    store.add(round(4), 0, &[(0, -6), (2, 6)]).unwrap();
    store.add(round(1), 0, &[(0, -1), (1, 1)]).unwrap();
    replace(&mut store, 2, &[(0, 7), (1, 2)]);
    let mut row = Vec::new();
    let newest = [(1, 2), (2, 7)];
    let after = [&[(0, 8), (1, 1)][..], &[(0, 7), (1, 2)], &[(0, 6), (1, 2), (2, 1)], &newest];
    for (number, expected) in (1..).zip(after) {
        let mut buffers = RowBuffers::default();
        assert_eq!(store.decode_at(ReadAt::Newest, 0, &mut buffers).unwrap(), newest);
        store.end_round(round(number), &mut totals).unwrap();
        store.row(0, &mut row);
        assert_eq!(row, expected, "round {number}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut store = RowStore::new(4, 2);
    let mut totals = [0; 4];
    let refused = store.add(round(0), 2, &[(0, 1)]);
    assert_eq!(refused, Err(RowStoreError::Word { word: 2, words: 2 }));
    store.add(round(0), 1, &[(3, 2)]).unwrap();
    store.end_round(round(0), &mut totals).unwrap();
    store.add(round(1), 0, &[(0, 1)]).unwrap();
    store.add(round(1), 1, &[(3, -3)]).unwrap();
    let refused = store.end_round(round(1), &mut totals).unwrap_err();
    assert_eq!(refused, RowStoreError::Count { word: 1, topic: 3, tokens: -1 });
    assert_eq!(
        refused.to_string(),
        "a delta would make the count of topic 3 and word 1 -1, which is below 0 or above 2^32 - 1"
    );
    assert_eq!(totals, [0, 0, 0, 2]);
    let mut row = Vec::new();
    store.row(1, &mut row);
    assert_eq!(row, [(3, 2)]);
    // Another worker compensates for it.
    store.add(round(1), 1, &[(3, 3)]).unwrap();
    store.end_round(round(1), &mut totals).unwrap();
    assert_eq!(totals, [1, 0, 0, 2]);
}
