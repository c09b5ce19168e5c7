//! Snapshots within an epoch, with which shards move to other workers between two rounds. They are needed until
//! the epoch ends, and a run that is started again does not read them.
//!
//! ```text
//! rounds-00000040-00012-00003  shard 3 after 12 rounds of the epoch after epoch 40:
//!   byte 0    8  89 'L' 'D' 'A' 'y' 0d 0a 1a
//!        8    4  version: 1
//!       12    4  rounds
//!       16    8  bytes of the topics
//!       24    8  documents
//!       32       topics, as in a snapshot after an epoch
//!                encoded size of each document's row of C_d at the epoch's start, 4 bytes
//!                form of each row, 1 byte: 0 for counts of all topics, 1 for a list in the order of topics, 2
//!                for a list in another order
//!                topics of the rows of form 2, in their order, 2 or 4 bytes
//!       last  8  XXH64 of all preceding bytes
//! ```

use lda_core::container::checksum;
use lda_core::counts::TopicIndex;

use super::{Snapshot, SnapshotError, SnapshotId, decode, encode};
use crate::priors::Priors;
use crate::shard::{MidEpochState, RowForm};

const MAGIC: [u8; 8] = *b"\x89LDAy\r\n\x1a";
const VERSION: u32 = 1;
const HEAD: usize = 32;

/// Identity of a snapshot within an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidEpochId {
    /// Run, shard, and the epoch before.
    pub of: SnapshotId,
    /// Rounds of the next epoch after which it was taken.
    pub rounds: u16,
}

impl MidEpochId {
    /// Name of the snapshot's object in the storage.
    pub fn name(&self) -> String {
        let SnapshotId { epoch, shard, .. } = self.of;
        format!("rounds-{epoch:08}-{:05}-{shard:05}", self.rounds)
    }

    /// Encodes the state of a shard, and the priors of the epoch if they change.
    pub fn encode<T: TopicIndex>(
        &self,
        state: &MidEpochState<T>,
        priors: Option<&Priors>,
    ) -> Vec<u8> {
        let MidEpochState { state, sizes, forms, listed } = state;
        let topics = encode(&self.of, state, priors);
        let mut bytes = Vec::with_capacity(
            HEAD + topics.len() + 5 * sizes.len() + size_of_val(&listed[..]) + 8,
        );
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::from(self.rounds).to_le_bytes());
        bytes.extend((topics.len() as u64).to_le_bytes());
        bytes.extend((sizes.len() as u64).to_le_bytes());
        bytes.extend(topics);
        sizes.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
        bytes.extend(forms.iter().map(|&form| form as u8));
        for topic in listed {
            bytes.extend_from_slice(&topic.get().to_le_bytes()[..size_of::<T>()]);
        }
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Decodes the state of a shard, and the priors of the epoch if they change.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are damaged, or of another run, shard, round or width.
    pub fn decode<T: TopicIndex>(
        &self,
        bytes: &[u8],
    ) -> Result<(MidEpochState<T>, Option<Priors>), SnapshotError> {
        let damaged = || SnapshotError::Damaged;
        let (content, sum) = bytes.split_last_chunk().ok_or_else(damaged)?;
        let (head, rest) = content.split_first_chunk::<HEAD>().ok_or_else(damaged)?;
        if head[..8] != MAGIC || checksum(content) != u64::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let number = |range: std::ops::Range<usize>| {
            head[range].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let version = number(8..12) as u32;
        if version > VERSION {
            return Err(SnapshotError::Newer { version });
        }
        if number(12..16) != u64::from(self.rounds) {
            return Err(damaged());
        }
        let [topics, documents] = [16..24, 24..32].map(|range| usize::try_from(number(range)).ok());
        let mut rest = rest;
        let topics = take(&mut rest, topics).ok_or_else(damaged)?;
        let Snapshot { state, priors } = decode::<T>(&self.of, topics)?;
        let sizes = documents.and_then(|documents| documents.checked_mul(4));
        let sizes = take(&mut rest, sizes).ok_or_else(damaged)?;
        let sizes = sizes.as_chunks().0.iter().map(|size| u32::from_le_bytes(*size)).collect();
        let forms = take(&mut rest, documents).ok_or_else(damaged)?;
        let forms =
            forms.iter().map(|&byte| form(byte)).collect::<Option<_>>().ok_or_else(damaged)?;
        if !rest.len().is_multiple_of(size_of::<T>()) {
            return Err(damaged());
        }
        let topic = |bytes: &[u8]| {
            T::new(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
        };
        let listed = rest.chunks_exact(size_of::<T>()).map(topic).collect();
        Ok((MidEpochState { state, sizes, forms, listed }, priors))
    }
}

/// Takes so many bytes off the front.
fn take<'a>(from: &mut &'a [u8], length: Option<usize>) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length?)?;
    *from = rest;
    Some(taken)
}

/// The form that a byte stands for.
fn form(byte: u8) -> Option<RowForm> {
    Some(match byte {
        0 => RowForm::Dense,
        1 => RowForm::Sorted,
        2 => RowForm::Listed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shard::ShardState;

    const OF: SnapshotId = SnapshotId { run: 77, epoch: 40, shard: 3 };
    const ID: MidEpochId = MidEpochId { of: OF, rounds: 12 };

    fn state() -> MidEpochState<u16> {
        MidEpochState {
            state: ShardState { topics: vec![1, 2, 3], ages: Vec::new() },
            sizes: vec![9, 70_000],
            forms: vec![RowForm::Dense, RowForm::Listed],
            listed: vec![3, 2],
        }
    }

    #[test]
    fn another_round_or_shard_is_refused() {
        let bytes = ID.encode(&state(), None);
        assert_eq!(ID.name(), "rounds-00000040-00012-00003");
        assert_eq!(ID.decode::<u16>(&bytes), Ok((state(), None)));
        let refused = |id: MidEpochId| id.decode::<u16>(&bytes).unwrap_err();
        assert_eq!(refused(MidEpochId { rounds: 13, ..ID }), SnapshotError::Damaged);
        let other = SnapshotError::Other { shard: 3, epoch: 40 };
        assert_eq!(refused(MidEpochId { of: SnapshotId { shard: 2, ..OF }, ..ID }), other);
        let run = SnapshotError::Run { found: 77, run: 8 };
        assert_eq!(refused(MidEpochId { of: SnapshotId { run: 8, ..OF }, ..ID }), run);
        let width = SnapshotError::Width { found: 2, expected: 4 };
        assert_eq!(ID.decode::<u32>(&bytes), Err(width));
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes[..bytes.len() - 8].to_vec();
            bytes[at] = byte;
            let sum = checksum(&bytes);
            bytes.extend(sum.to_le_bytes());
            ID.decode::<u16>(&bytes).unwrap_err()
        };
        assert_eq!(with(8, 2), SnapshotError::Newer { version: 2 });
        let forms = bytes.len() - 8 - 4 - 2;
        for (at, byte) in [(16, 9), (23, 0x80), (24, 3), (31, 0x80), (forms, 3)] {
            assert_eq!(with(at, byte), SnapshotError::Damaged, "{at}");
        }
        for end in 0..bytes.len() {
            assert_eq!(ID.decode::<u16>(&bytes[..end]), Err(SnapshotError::Damaged));
        }
    }

    proptest! {
        #[test]
        fn states_come_back(
            topics in prop::collection::vec(any::<u32>(), 0..40),
            rows in prop::collection::vec((any::<u32>(), 0..3u8), 0..9),
            listed in prop::collection::vec(any::<u32>(), 0..9),
            has_priors: bool,
        ) {
            let state = MidEpochState {
                state: ShardState { topics, ages: Vec::new() },
                sizes: rows.iter().map(|row| row.0).collect(),
                forms: rows.iter().filter_map(|row| form(row.1)).collect(),
                listed,
            };
            let priors = has_priors.then(|| Priors { alpha: 0.5.into(), beta: 0.125 });
            let bytes = ID.encode(&state, priors.as_ref());
            prop_assert_eq!(ID.decode::<u32>(&bytes), Ok((state, priors)));
        }

        #[test]
        fn a_changed_byte_is_detected(at in any::<prop::sample::Index>(), by in 1..=255u8) {
            let mut bytes = ID.encode(&state(), None);
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            prop_assert!(ID.decode::<u16>(&bytes).is_err());
        }
    }
}
