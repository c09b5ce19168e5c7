//! Snapshots, from which a run can continue: the topics of all tokens after an epoch, and their ages if
//! converged ones are excluded. All counts follow from the topics, and all random numbers from the seed, the epoch and the
//! round. A run that restarts from a snapshot therefore ends with the same bits as one that never
//! failed.
//!
//! ```text
//! latest                 last two epochs of which all shards have a snapshot, as text:
//!                          lda-dist snapshot 2
//!                          epoch 40
//!                          before 20            (0 if there is none, not in version 1)
//!                          run 9d0c1c6f4a5d3b21
//! topics-00000040-00003  topics of shard 3 after epoch 40:
//!   byte 0    8  89 'L' 'D' 'A' 'z' 0d 0a 1a
//!        8    4  version: 1, 2 with priors, 3 with ages
//!       12    2  shard
//!       14    2  bytes per topic, 2 or 4
//!       16    8  run: a hash of job, documents and their shards
//!       24    4  epoch
//!       28    4  number of values of α: 0 without priors, 1 for a symmetric α, or K
//!       32    8  tokens
//!       40       β and the values of α, 8 bytes each, if there are priors
//!                topics, by word and then by document
//!                age of each token, 1 byte, if converged tokens have been excluded
//!       last  8  XXH64 of all preceding bytes
//! ```
//!
//! Beside them are snapshots within an epoch, if workers [change](crate::cluster::Setup::min_workers) then, and the options of the run, so that a change of them is reported. In an elastic run, the object
//! `attempt` has the number of the last attempt.
//!
//! Numbers are little-endian. If priors [change](crate::priors) during the run, each snapshot contains the
//! priors of its epoch. A run can continue with other partitions, rounds, servers and
//! workers; with another number of rounds its result differs. It falls back to the earlier of the two
//! epochs if a snapshot of the later one is missing or damaged.

mod mid_epoch;

use lda_core::container::checksum;
use lda_core::counts::TopicIndex;
use lda_core::prior::Alpha;
use lda_core::train::TokenAge;
use thiserror::Error;

use crate::priors::Priors;
use crate::shard::ShardState;
use crate::wire::take;

pub use mid_epoch::MidEpochId;

/// Name of the object with the [`Latest`] epochs.
pub const LATEST: &str = "latest";
const TITLE: &str = "lda-dist snapshot 2";
/// Title of a version without the epoch before.
const TITLE_1: &str = "lda-dist snapshot 1";
const MAGIC: [u8; 8] = *b"\x89LDAz\r\n\x1a";
const VERSION: u32 = 3;
/// Version of a snapshot without priors and ages.
const VERSION_1: u32 = 1;
/// Version of a snapshot with priors and without ages.
const VERSION_2: u32 = 2;
const HEAD: usize = 40;

/// Error of a snapshot that is damaged or does not belong to this run, shard or epoch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes are not a snapshot, or incomplete.
    #[error("it is damaged, or not a snapshot: remove it, and start from an earlier epoch")]
    Damaged,
    /// The format version is newer than this program.
    #[error(
        "it has format version {version} and this program reads up to {VERSION}: use a newer one"
    )]
    Newer {
        /// Format version of the snapshot.
        version: u32,
    },
    /// The snapshot belongs to another run.
    #[error(
        "it belongs to run {found:016x}, and this is run {run:016x}, with other topics, priors, seed, \
         documents or shards: use another directory, or the options of that run"
    )]
    Run {
        /// The snapshot's.
        found: u64,
        /// Hash of this run.
        run: u64,
    },
    /// The snapshot is of another shard or epoch.
    #[error(
        "it holds shard {shard} after epoch {epoch}, which is not what its name says: restore the file"
    )]
    Other {
        /// Shard of the snapshot.
        shard: u16,
        /// Epoch of the snapshot.
        epoch: u32,
    },
    /// Topics have another width.
    #[error(
        "its topics have {found} bytes each, and this run needs {expected}: use the number of topics of that run"
    )]
    Width {
        /// The snapshot's.
        found: u16,
        /// Bytes per topic of this run.
        expected: u16,
    },
}

/// Identity of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    /// Hash of the model, the documents and their shards.
    pub run: u64,
    /// Epoch after which it was taken.
    pub epoch: u32,
    /// Number of the shard.
    pub shard: u16,
}

impl SnapshotId {
    /// Name of the snapshot's object in the storage.
    pub fn name(&self) -> String {
        format!("topics-{:08}-{:05}", self.epoch, self.shard)
    }
}

/// Content of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<T> {
    /// State of the shard.
    pub state: ShardState<T>,
    /// Priors of the epoch, if they change during the run.
    pub priors: Option<Priors>,
}

/// Encodes the state of a shard, and the priors of the epoch if they change.
pub fn encode<T: TopicIndex>(
    of: &SnapshotId,
    state: &ShardState<T>,
    priors: Option<&Priors>,
) -> Vec<u8> {
    let ShardState { topics, ages } = state;
    let width = size_of::<T>();
    let alpha = priors.map_or(&[][..], |priors| priors.alpha.as_slice());
    let mut bytes = Vec::with_capacity(HEAD + size_of_val(&topics[..]) + ages.len() + 8);
    bytes.extend(MAGIC);
    let version = match priors {
        _ if !ages.is_empty() => VERSION,
        Some(_) => VERSION_2,
        None => VERSION_1,
    };
    bytes.extend(version.to_le_bytes());
    bytes.extend(of.shard.to_le_bytes());
    bytes.extend((width as u16).to_le_bytes());
    bytes.extend(of.run.to_le_bytes());
    bytes.extend(of.epoch.to_le_bytes());
    bytes.extend((alpha.len() as u32).to_le_bytes());
    bytes.extend((topics.len() as u64).to_le_bytes());
    let beta = priors.map(|priors| priors.beta);
    beta.iter().chain(alpha).for_each(|value| bytes.extend(value.to_le_bytes()));
    for topic in topics {
        bytes.extend_from_slice(&topic.get().to_le_bytes()[..width]);
    }
    bytes.extend(ages.iter().map(|age| age.to_byte()));
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Decodes a snapshot of a shard.
///
/// # Errors
/// [`SnapshotError`] if the bytes are damaged, or of another run, shard, epoch or width.
pub fn decode<T: TopicIndex>(of: &SnapshotId, bytes: &[u8]) -> Result<Snapshot<T>, SnapshotError> {
    let damaged = SnapshotError::Damaged;
    let (content, sum) = bytes.split_last_chunk().ok_or(damaged.clone())?;
    let (head, mut rest) = content.split_first_chunk::<HEAD>().ok_or(damaged.clone())?;
    if head[..8] != MAGIC || checksum(content) != u64::from_le_bytes(*sum) {
        return Err(damaged);
    }
    let number = |at: usize, len: usize| {
        let bytes = head[at..at + len].iter().rev();
        bytes.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let version = number(8, 4) as u32;
    if version > VERSION {
        return Err(SnapshotError::Newer { version });
    }
    let (found, run) = (number(16, 8), of.run);
    if found != run {
        return Err(SnapshotError::Run { found, run });
    }
    let (shard, epoch) = (number(12, 2) as u16, number(24, 4) as u32);
    if (shard, epoch) != (of.shard, of.epoch) {
        return Err(SnapshotError::Other { shard, epoch });
    }
    let (found, width) = (number(14, 2) as u16, size_of::<T>());
    if usize::from(found) != width {
        return Err(SnapshotError::Width { found, expected: width as u16 });
    }
    let priors = match (version, number(28, 4) as usize) {
        (VERSION_1, _) | (VERSION, 0) => None,
        (_, values) => Some(take_priors(values, &mut rest).ok_or(damaged.clone())?),
    };
    let len = usize::try_from(number(32, 8)).ok().and_then(|tokens| tokens.checked_mul(width));
    let (topics, ages) = len.and_then(|len| rest.split_at_checked(len)).ok_or(damaged.clone())?;
    if ages.is_empty() != (version < VERSION) {
        return Err(damaged);
    }
    let topic = |bytes: &[u8]| {
        T::new(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    };
    let topics = topics.chunks_exact(width).map(topic).collect();
    let ages = ages.iter().map(|&age| TokenAge::from_byte(age)).collect();
    Ok(Snapshot { state: ShardState { topics, ages }, priors })
}

/// Takes priors with so many values of α off the front; `None` if they are malformed.
fn take_priors(values: usize, from: &mut &[u8]) -> Option<Priors> {
    let mut next = || take(from).map(f64::from_le_bytes).filter(|it| it.is_finite() && *it > 0.0);
    let beta = next()?;
    // No more is allocated than there are bytes.
    let alpha = (0..values).map_while(|_| next()).collect::<Vec<f64>>();
    let alpha = match alpha[..] {
        [value] if values == 1 => Alpha::Symmetric(value),
        _ if values > 1 && alpha.len() == values => Alpha::PerTopic(alpha),
        _ => return None,
    };
    Some(Priors { alpha, beta })
}

/// The last two epochs of which all shards have a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latest {
    /// The last one; 0 if none, which stands for the initial topics.
    pub epoch: u32,
    /// The one before, for the case that a snapshot of the last one cannot be read; 0 if none.
    pub before: u32,
}

impl Latest {
    /// The first epoch whose snapshots are still needed; 0 if none are.
    pub fn first_needed(self) -> u32 {
        if self.before > 0 { self.before } else { self.epoch }
    }
}

/// Encodes the content of [`LATEST`].
pub fn encode_latest(run: u64, latest: Latest) -> String {
    let Latest { epoch, before } = latest;
    format!("{TITLE}\nepoch {epoch}\nbefore {before}\nrun {run:016x}\n")
}

/// Decodes the content of [`LATEST`].
///
/// # Errors
/// [`SnapshotError`] if the text is malformed or of another run.
pub fn decode_latest(run: u64, text: &[u8]) -> Result<Latest, SnapshotError> {
    let parse = || {
        let text = std::str::from_utf8(text).ok()?;
        let (epochs, found) = text.strip_suffix('\n')?.split_once("\nrun ")?;
        let found = u64::from_str_radix(found, 16).ok()?;
        let (epoch, before) = match epochs.strip_prefix(TITLE) {
            Some(epochs) => epochs.strip_prefix("\nepoch ")?.split_once("\nbefore ")?,
            None => (epochs.strip_prefix(TITLE_1)?.strip_prefix("\nepoch ")?, "0"),
        };
        let latest = Latest { epoch: epoch.parse().ok()?, before: before.parse().ok()? };
        (latest.before < latest.epoch).then_some((latest, found))
    };
    match parse() {
        None => Err(SnapshotError::Damaged),
        Some((latest, found)) if found == run => Ok(latest),
        Some((_, found)) => Err(SnapshotError::Run { found, run }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OF: SnapshotId = SnapshotId { run: 77, epoch: 40, shard: 3 };

    #[test]
    fn snapshots_of_something_else_are_refused() {
        let state = ShardState { topics: vec![1, 2, 3], ages: Vec::new() };
        let bytes = encode::<u16>(&OF, &state, None);
        assert_eq!(bytes.len(), 40 + 6 + 8);
        assert_eq!(OF.name(), "topics-00000040-00003");
        let refused = |of: SnapshotId| decode::<u16>(&of, &bytes).unwrap_err();
        assert_eq!(refused(SnapshotId { run: 8, ..OF }), SnapshotError::Run { found: 77, run: 8 });
        let other = SnapshotError::Other { shard: 3, epoch: 40 };
        assert_eq!(refused(SnapshotId { shard: 2, ..OF }), other);
        assert_eq!(refused(SnapshotId { epoch: 2, ..OF }), other);
        let width = SnapshotError::Width { found: 2, expected: 4 };
        assert_eq!(decode::<u32>(&OF, &bytes), Err(width));
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes[..bytes.len() - 8].to_vec();
            bytes[at] = byte;
            let sum = checksum(&bytes);
            bytes.extend(sum.to_le_bytes());
            decode::<u16>(&OF, &bytes).unwrap_err()
        };
        assert_eq!(with(8, 4), SnapshotError::Newer { version: 4 });
        // Priors are missing, or ages.
        assert_eq!(with(8, 2), SnapshotError::Damaged);
        assert_eq!(with(8, 3), SnapshotError::Damaged);
        assert_eq!(with(32, 4), SnapshotError::Damaged);
        assert_eq!(with(39, 0x80), SnapshotError::Damaged);
        for end in 0..bytes.len() {
            assert_eq!(decode::<u16>(&OF, &bytes[..end]), Err(SnapshotError::Damaged));
        }
    }

    #[test]
    fn the_latest_epochs_belong_to_a_run() {
        let latest = Latest { epoch: 40, before: 20 };
        let whole = encode_latest(9, latest);
        assert_eq!(decode_latest(9, whole.as_bytes()), Ok(latest));
        let other = SnapshotError::Run { found: 9, run: 8 };
        assert_eq!(decode_latest(8, whole.as_bytes()), Err(other));
        let impossible = encode_latest(9, Latest { epoch: 40, before: 40 });
        let short = "lda-dist snapshot 2\nepoch 40\nrun 9\n";
        for text in [&whole[1..], &whole[..whole.len() - 1], "", &impossible, short] {
            assert_eq!(decode_latest(9, text.as_bytes()), Err(SnapshotError::Damaged), "{text}");
        }
        let first_version = b"lda-dist snapshot 1\nepoch 40\nrun 9\n";
        assert_eq!(decode_latest(9, first_version), Ok(Latest { epoch: 40, before: 0 }));
        assert_eq!([latest, Latest { epoch: 40, before: 0 }].map(Latest::first_needed), [20, 40]);
    }

    proptest! {
        #[test]
        fn states_come_back(topics in prop::collection::vec(any::<u32>(), 0..40), has_ages: bool) {
            let age = |&topic: &u32| TokenAge::from_byte(topic as u8);
            let ages: Vec<TokenAge> = topics.iter().filter(|_| has_ages).map(age).collect();
            let narrow: Vec<u16> = topics.iter().map(|&topic| topic as u16).collect();
            let narrow = ShardState { topics: narrow, ages: ages.clone() };
            let wide = ShardState { topics, ages };
            let alpha = [Alpha::Symmetric(0.5), vec![0.25, 3.0].into()];
            let priors = alpha.map(|alpha| Some(Priors { alpha, beta: 0.125 }));
            for priors in priors.into_iter().chain([None]) {
                let bytes = encode(&OF, &wide, priors.as_ref());
                let expected = Snapshot { state: wide.clone(), priors: priors.clone() };
                prop_assert_eq!(decode::<u32>(&OF, &bytes), Ok(expected));
                let bytes = encode(&OF, &narrow, priors.as_ref());
                let expected = Snapshot { state: narrow.clone(), priors };
                prop_assert_eq!(decode::<u16>(&OF, &bytes), Ok(expected));
            }
        }

        #[test]
        fn a_changed_byte_is_detected(at in 0..54usize, by in 1..=255u8, has_priors: bool) {
            let priors = has_priors.then(|| Priors { alpha: 0.5.into(), beta: 0.125 });
            let state = ShardState { topics: vec![1, 2, 3], ages: Vec::new() };
            let mut bytes = encode::<u16>(&OF, &state, priors.as_ref());
            bytes[at] ^= by;
            prop_assert_eq!(decode::<u16>(&OF, &bytes), Err(SnapshotError::Damaged));
        }
    }
}
