//! Messages between the master and the other nodes.
//!
//! ```text
//! byte 0   16 words, to the master: shard (2 bytes), documents (8), sum of squared lengths (8),
//!          tokens of each word as a row of V entries, and documents of each word as another
//!          17 done, to the master: round, last epoch of which all shards of this worker are
//!          written (4), 1 if it writes one now, else 0; the delta of C_k of its shards as a row of K
//!          signed entries, empty unless rows may stay at workers ([`held_rows`](crate::held_rows));
//!          priors of the epoch, after a joining if priors change; histograms of C_d, at the end of an
//!          epoch from which α is learnt, each after a 1, or a 0 if it is not there; after an epoch's last round the epoch's statistics: 8 bytes for each field of [`Bytes`] but the last, nanoseconds waited for servers and for the master (8 each),
//!          bytes held (8), and if the epoch is evaluated, else 0, non-zeros of C_d (8) and number
//!          of shards (2), and for each its number (2) and its part of the log joint (8)
//!          18 start, to all: attempt (4), epoch to go on from (4), rounds of the next epoch to go on from, 0 unless
//!          workers changed after them (2), last epoch of which all snapshots are
//!          written (4), and epoch to fall back to if these cannot be read, 0 if none (4), number of
//!          shards (2) and the worker of each (4), documents (8), sum of squared lengths (8), tokens and
//!          documents of each word
//!          19 begin, to all: round, first epoch whose snapshots are still needed (4), 1 if workers
//!          write the topics after this round, else 0, 1 if they push all changes of rows in it, else
//!          0, delta of C_k as a row of K signed entries, 1 and priors if this is the first round of an
//!          epoch and priors are learnt, or to servers the first after a joining within an epoch and priors
//!          change, else 0
//!          20 end, to servers: round, 1 if the epoch is evaluated, else 0, top words per topic
//!          (4), 1 if β is learnt from the rows, else 0; the reply is the delta of C_k of the server's rows as such a row, bytes held (8),
//!          and aggregates of all rows ([`aggregate`](crate::aggregate))
//!          21 finish, to all, after the last round: last attempt, after which none starts (4),
//!          last epoch that all workers have written (4), first epoch whose snapshots are still
//!          needed (4), 1 if the run was stopped and can be continued, else 0
//!          22 failed, to the master: reason as text
//!          23 rows, to a server, after the last round: attempt (4), slice (2); the reply is the
//!          slice's rows, concatenated in the order of words
//!          24 ready, to the master: last attempt that this node knows (4), first epoch whose topics it
//!          has in memory (4), and number of these epochs (4)
//!          25 stop, to the master: this node has to stop
//!          26 keep, to workers: the round after which they write their topics; the reply is the last
//!          epoch that this worker has written (4), or, within an epoch, 1 if all its shards are written,
//!          else 0, the last epoch that it has written (4), and the epoch's statistics so far, as after an
//!          epoch's last round
//!          27 restart, to the master: this worker cannot continue this attempt (4)
//!          28 unreadable, to the master: this worker does not have the topics from which this
//!          attempt (4) starts; reason as text
//!          29 count, to a worker: request for the words of a shard (2) whose worker is not there
//! round    epoch (4), number (2), attempt (4)
//! priors   β (8), number of values of α (4): 1 for a symmetric α, or K; these values (8 each)
//! ```
//!
//! Numbers are little-endian. The first byte distinguishes these messages from requests of workers
//! to servers ([`request`](crate::request)).

use std::time::Duration;

use lda_core::prior::Alpha;
use lda_core::prior::learn::CountHistograms;

use super::Waited;
use super::assignment::Assigned;
use super::epoch_range::EpochRange;
use crate::aggregate::AggregateRequest;
use crate::placement::{DocumentLengths, WordStats};
use crate::priors::Priors;
use crate::snapshot::Latest;
use crate::spec::Round;
use crate::stats::Bytes;
use crate::wire::{RowCode, add_histograms, put_histograms, put_word_stats, take, take_word_stats};

pub(super) const WORDS: u8 = 16;
pub(super) const ROUND_DONE: u8 = 17;
pub(super) const START: u8 = 18;
pub(super) const BEGIN: u8 = 19;
pub(super) const END: u8 = 20;
pub(super) const FINISH: u8 = 21;
pub(super) const FAILED: u8 = 22;
pub(super) const ROWS: u8 = 23;
pub(super) const READY: u8 = 24;
pub(super) const STOP: u8 = 25;
pub(super) const KEEP: u8 = 26;
pub(super) const RESTART_REQUEST: u8 = 27;
pub(super) const UNREADABLE: u8 = 28;
pub(super) const COUNT: u8 = 29;

/// Longest reason of a failure, in bytes.
const MAX_REASON_LEN: usize = 4096;

/// K and V, on which the encoding of rows depends.
#[derive(Clone, Copy)]
struct Dimensions {
    topics: u32,
    words: u32,
}

/// A field of a message.
trait Field: Sized {
    /// Appends the encoded field.
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>);

    /// Decodes the field from the front of `from`; `None` if it is malformed.
    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self>;
}

/// Defines the messages with their encoding: the first byte, then the fields in this order.
macro_rules! messages {
    (
        $(#[$meta:meta])* $name:ident;
        $($(#[$doc:meta])* $byte:ident => $message:ident { $($field:ident: $type:ty),* $(,)? })*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum $name {
            $($(#[$doc])* $message { $($field: $type),* },)*
        }

        impl $name {
            /// Encodes the message in a run with K topics and V words.
            pub fn encode(&self, topics: u32, words: u32) -> Vec<u8> {
                let dimensions = Dimensions { topics, words };
                let mut to = Vec::new();
                match self {
                    $(Self::$message { $($field),* } => {
                        to.push($byte);
                        $($field.put(dimensions, &mut to);)*
                    })*
                }
                let _ = dimensions;
                to
            }

            /// Decodes a message; `None` if the bytes are not exactly one.
            pub fn decode(topics: u32, words: u32, bytes: &[u8]) -> Option<Self> {
                let dimensions = Dimensions { topics, words };
                let (&byte, mut rest) = bytes.split_first()?;
                let message = match byte {
                    $($byte => Self::$message { $($field: Field::take(dimensions, &mut rest)?),* },)*
                    _ => return None,
                };
                rest.is_empty().then_some(message)
            }
        }
    };
}

messages! {
    /// Message between the master and another node.
    Control;
    /// To the master: (word, tokens, documents) of a shard, words ascending.
    WORDS => Words { shard: u16, lengths: DocumentLengths, word_stats: Vec<(u32, u32, u32)> }
    /// To the master: this worker has finished a round.
    ROUND_DONE => RoundDone {
        round: Round, kept: u32, writing: bool, delta: Vec<(u32, i32)>,
        priors: Option<Priors>, documents: Option<Box<CountHistograms>>,
        epoch_stats: Option<WorkerEpochStats>,
    }
    /// To all: an attempt starts.
    START => Start {
        attempt: u32, epoch: u32, rounds: u16, checkpoint: Latest, assigned: Assigned,
        lengths: DocumentLengths, words: WordStats,
    }
    /// To all: a round starts; `delta` is that of C_k since the round before.
    BEGIN => Begin {
        round: Round, needed: u32, write: bool, push: bool, delta: Vec<(u32, i32)>,
        priors: Option<Priors>,
    }
    /// To servers: a round ends.
    END => End { round: Round, wanted: AggregateRequest }
    /// To all: the run, or the part of this node in it, is over.
    FINISH => Finish { attempt: u32, kept: u32, needed: u32, stopped: bool }
    /// To the master: this node has failed.
    FAILED => Failed { why: String }
    /// To servers: request for the rows of a slice.
    ROWS => Rows { attempt: u32, slice: u16 }
    /// To the master: this node is ready, and has the topics of these epochs in memory.
    READY => Ready { attempt: u32, in_memory: EpochRange }
    /// To the master: this node has to stop.
    STOP => Stop {}
    /// To workers: request to write the topics after a round.
    KEEP => Keep { round: Round }
    /// To the master: this worker cannot continue the attempt.
    RESTART_REQUEST => RestartRequest { attempt: u32 }
    /// To the master: this worker does not have the topics from which the attempt starts.
    UNREADABLE => Unreadable { attempt: u32, why: String }
    /// To a worker: request for the words of a shard.
    COUNT => Count { shard: u16 }
}

/// Statistics of a worker's epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WorkerEpochStats {
    pub bytes: Bytes,
    pub waited: Waited,
    /// Bytes held.
    pub memory: u64,
    /// Tokens that were sampled.
    pub sampled: u64,
    /// Non-zeros of C_d; 0 unless the epoch is evaluated.
    pub non_zeros: u64,
    /// Part of the log joint of each shard; empty unless the epoch is evaluated.
    pub parts: Vec<(u16, f64)>,
}

/// Reply to [`Control::Keep`] within an epoch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptRound {
    /// True if this worker has written the states of all its shards.
    pub is_written: bool,
    /// The last epoch of which all shards are written.
    pub kept: u32,
    /// Statistics of the epoch so far.
    pub epoch_stats: WorkerEpochStats,
}

impl KeptRound {
    /// Encodes the reply.
    pub fn encode(&self, topics: u32, words: u32) -> Vec<u8> {
        let mut to = Vec::new();
        self.put(Dimensions { topics, words }, &mut to);
        to
    }

    /// Decodes a reply; `None` if the bytes are not exactly one.
    pub fn decode(topics: u32, words: u32, mut bytes: &[u8]) -> Option<Self> {
        let reply = Self::take(Dimensions { topics, words }, &mut bytes)?;
        bytes.is_empty().then_some(reply)
    }
}

/// Implements [`Field`] for numbers: little-endian.
macro_rules! number_fields {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn put(&self, _: Dimensions, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn take(_: Dimensions, from: &mut &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(take(from)?))
            }
        })*
    };
}

number_fields!(u16, u32, u64, f64);

/// Implements [`Field`] for structs and tuples: their fields in this order. A field after
/// `;` is not sent.
macro_rules! struct_fields {
    ($($type:ty { $($field:tt),* $(; $unsent:ident: $value:expr)? })*) => {
        $(impl Field for $type {
            fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
                $(self.$field.put(dimensions, to);)*
            }

            fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
                Some(Self {
                    $($field: Field::take(dimensions, from)?,)*
                    $($unsent: $value,)?
                })
            }
        })*
    };
}

struct_fields! {
    Round { epoch, number, attempt }
    Latest { epoch, before }
    EpochRange { first, count }
    DocumentLengths { documents, squares }
    AggregateRequest { evaluation, top_words, word_histogram, totals }
    Waited { servers, master }
    Bytes { sizes, routes, rows, gained, pushed, answers; totals: 0 }
    WorkerEpochStats { bytes, waited, memory, sampled, non_zeros, parts }
    KeptRound { is_written, kept, epoch_stats }
}

/// One byte, 0 or 1.
impl Field for bool {
    fn put(&self, _: Dimensions, to: &mut Vec<u8>) {
        to.push((*self).into());
    }

    fn take(_: Dimensions, from: &mut &[u8]) -> Option<Self> {
        match take(from)? {
            [byte @ (0 | 1)] => Some(byte == 1),
            _ => None,
        }
    }
}

/// β, number of values of α (4 bytes), and each.
impl Field for Priors {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        let alpha = self.alpha.as_slice();
        self.beta.put(dimensions, to);
        (alpha.len() as u32).put(dimensions, to);
        alpha.iter().for_each(|value| value.put(dimensions, to));
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let (beta, values): (f64, u32) =
            (Field::take(dimensions, from)?, Field::take(dimensions, from)?);
        let alpha = match values {
            1 => Alpha::Symmetric(Field::take(dimensions, from)?),
            _ if values == dimensions.topics => {
                let each = (0..values).map(|_| Field::take(dimensions, from));
                Alpha::PerTopic(each.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Self { alpha, beta })
    }
}

impl Field for Box<CountHistograms> {
    fn put(&self, _: Dimensions, to: &mut Vec<u8>) {
        put_histograms(self, to);
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let mut histograms = Self::new(CountHistograms::per_topic(dimensions.topics as usize));
        add_histograms(dimensions.topics, from, &mut histograms).map(|_| histograms)
    }
}

/// Implements [`Field`] for values that may be missing: one byte, 0 or 1, and the value after a 1.
macro_rules! option_fields {
    ($($type:ty),*) => {
        $(impl Field for Option<$type> {
            fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
                self.is_some().put(dimensions, to);
                if let Some(value) = self {
                    value.put(dimensions, to);
                }
            }

            fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
                let is_there: bool = Field::take(dimensions, from)?;
                if is_there { Field::take(dimensions, from).map(Some) } else { Some(None) }
            }
        })*
    };
}

option_fields!(Priors, Box<CountHistograms>);

/// Nanoseconds, 8 bytes.
impl Field for Duration {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(dimensions, to);
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        Field::take(dimensions, from).map(Self::from_nanos)
    }
}

/// The rest of the message, as UTF-8; at most [`MAX_REASON_LEN`] bytes.
impl Field for String {
    fn put(&self, _: Dimensions, to: &mut Vec<u8>) {
        to.extend(&self.as_bytes()[..self.len().min(MAX_REASON_LEN)]);
    }

    fn take(_: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let bytes = std::mem::take(from);
        (bytes.len() <= MAX_REASON_LEN).then(|| Self::from_utf8_lossy(bytes).into_owned())
    }
}

/// At the end of a message, nothing if it is `None`.
impl Field for Option<WorkerEpochStats> {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        if let Some(stats) = self {
            stats.put(dimensions, to);
        }
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        if from.is_empty() { Some(None) } else { Field::take(dimensions, from).map(Some) }
    }
}

/// Their number (2 bytes), and each.
impl Field for Vec<(u16, f64)> {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        (self.len() as u16).put(dimensions, to);
        for (number, part) in self {
            number.put(dimensions, to);
            part.put(dimensions, to);
        }
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let len: u16 = Field::take(dimensions, from)?;
        let each = |_| Some((Field::take(dimensions, from)?, Field::take(dimensions, from)?));
        (0..len).map(each).collect()
    }
}

/// Their number (2 bytes), and the worker of each shard.
impl Field for Assigned {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        (self.0.len() as u16).put(dimensions, to);
        self.0.iter().for_each(|worker| worker.put(dimensions, to));
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let shards: u16 = Field::take(dimensions, from)?;
        (0..shards).map(|_| Field::take(dimensions, from)).collect::<Option<_>>().map(Self)
    }
}

/// (word, tokens, documents), words ascending: as a row of tokens and a row of documents.
impl Field for Vec<(u32, u32, u32)> {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        let code = RowCode::new(dimensions.words);
        let tokens: Vec<(u32, u32)> = self.iter().map(|it| (it.0, it.1)).collect();
        let documents: Vec<(u32, u32)> = self.iter().map(|it| (it.0, it.2)).collect();
        code.encode(&tokens, to);
        code.encode(&documents, to);
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let code = RowCode::new(dimensions.words);
        let (mut tokens, mut documents) = (Vec::<(u32, u32)>::new(), Vec::<(u32, u32)>::new());
        code.decode(from, &mut tokens).ok()?;
        code.decode(from, &mut documents).ok()?;
        if tokens.len() != documents.len() {
            return None;
        }
        let both = tokens.iter().zip(&documents);
        both.map(|(&(word, n), in_documents)| {
            (word == in_documents.0 && in_documents.1 <= n).then_some((word, n, in_documents.1))
        })
        .collect()
    }
}

/// A row of K signed entries.
impl Field for Vec<(u32, i32)> {
    fn put(&self, dimensions: Dimensions, to: &mut Vec<u8>) {
        RowCode::new(dimensions.topics).encode(self, to);
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        let mut row = Vec::new();
        RowCode::new(dimensions.topics).decode(from, &mut row).ok()?;
        Some(row)
    }
}

impl Field for WordStats {
    fn put(&self, _: Dimensions, to: &mut Vec<u8>) {
        put_word_stats(self, to);
    }

    fn take(dimensions: Dimensions, from: &mut &[u8]) -> Option<Self> {
        take_word_stats(dimensions.words, from).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOPICS: u32 = 9;
    const WORDS: u32 = 5;

    fn round_of((epoch, number, attempt): (u32, u16, u32)) -> Round {
        Round { epoch, number, attempt }
    }

    fn epoch_stats() -> impl Strategy<Value = Option<WorkerEpochStats>> {
        let parts = prop::collection::vec((any::<u16>(), -1e9..0.0f64), 0..4);
        let epoch_stats =
            (any::<[u64; 9]>(), any::<[u64; 2]>(), parts).prop_map(|(numbers, more, parts)| {
                let [sizes, routes, rows, gained, pushed, answers, servers, master, memory] =
                    numbers;
                let [sampled, non_zeros] = more;
                let bytes = Bytes { sizes, routes, rows, gained, pushed, answers, totals: 0 };
                let [servers, master] = [servers, master].map(Duration::from_nanos);
                let waited = Waited { servers, master };
                WorkerEpochStats { bytes, waited, memory, sampled, non_zeros, parts }
            });
        prop::option::of(epoch_stats)
    }

    fn lengths() -> impl Strategy<Value = DocumentLengths> {
        any::<[u64; 2]>().prop_map(|[documents, squares]| DocumentLengths { documents, squares })
    }

    fn priors() -> impl Strategy<Value = Option<Priors>> {
        let alpha = prop_oneof![
            (0.01..9.0f64).prop_map(Alpha::Symmetric),
            prop::collection::vec(0.01..9.0f64, TOPICS as usize).prop_map(Alpha::PerTopic),
        ];
        prop::option::of((alpha, 0.01..9.0f64).prop_map(|(alpha, beta)| Priors { alpha, beta }))
    }

    fn histograms() -> impl Strategy<Value = Option<Box<CountHistograms>>> {
        let row = prop::collection::btree_map(0..TOPICS, 1..99u32, 0..4);
        let rows = prop::collection::vec(row, 0..9).prop_map(|rows| {
            let mut histograms = CountHistograms::per_topic(TOPICS as usize);
            rows.into_iter().for_each(|row| {
                histograms.add_row(&row.into_iter().collect::<Vec<_>>());
            });
            histograms.merge();
            Box::new(histograms)
        });
        prop::option::of(rows)
    }

    fn control() -> impl Strategy<Value = Control> {
        let word_stats = prop::collection::btree_map(0..WORDS, (1..u32::MAX, 0..9u32), 0..5);
        let of = |(word, (tokens, less)): (u32, (u32, u32))| {
            (word, tokens, tokens - less.min(tokens - 1))
        };
        let delta = prop::collection::btree_map(0..TOPICS, prop_oneof![-99..0i32, 1..99i32], 0..9);
        let round = || any::<(u32, u16, u32)>().prop_map(round_of);
        prop_oneof![
            (any::<u16>(), lengths(), word_stats).prop_map(move |(shard, lengths, word_stats)| {
                Control::Words {
                    shard,
                    lengths,
                    word_stats: word_stats.into_iter().map(of).collect(),
                }
            }),
            (round(), any::<(u32, bool)>(), delta.clone(), priors(), histograms(), epoch_stats())
                .prop_map(|(round, (kept, writing), delta, priors, documents, epoch_stats)| {
                    let delta = delta.into_iter().collect();
                    Control::RoundDone {
                        round,
                        kept,
                        writing,
                        delta,
                        priors,
                        documents,
                        epoch_stats,
                    }
                }),
            (any::<[u32; 4]>(), lengths(), any::<Vec<u32>>(), prop::array::uniform5(0..1u64 << 45))
                .prop_map(|([attempt, epoch, latest, before], lengths, workers, tokens)| {
                    let rounds = (attempt % 7) as u16;
                    let assigned = Assigned(workers);
                    let of_words = tokens.iter().map(|tokens| tokens.div_ceil(3)).collect();
                    let words = WordStats::new(tokens.to_vec(), of_words).unwrap();
                    let checkpoint = Latest { epoch: latest, before };
                    Control::Start { attempt, epoch, rounds, checkpoint, assigned, lengths, words }
                }),
            (round(), any::<(u32, bool, bool)>(), delta, priors()).prop_map(
                |(round, (needed, write, push), delta, priors)| {
                    let delta = delta.into_iter().collect();
                    Control::Begin { round, needed, write, push, delta, priors }
                }
            ),
            (round(), any::<(bool, u32, bool, bool)>()).prop_map(
                |(round, (evaluation, top_words, word_histogram, totals))| {
                    let wanted = AggregateRequest { evaluation, top_words, word_histogram, totals };
                    Control::End { round, wanted }
                }
            ),
            any::<([u32; 3], bool)>().prop_map(|([attempt, kept, needed], stopped)| {
                Control::Finish { attempt, kept, needed, stopped }
            }),
            ".{0,20}".prop_map(|why| Control::Failed { why }),
            (any::<u32>(), ".{0,20}")
                .prop_map(|(attempt, why)| Control::Unreadable { attempt, why }),
            any::<(u32, u16)>().prop_map(|(attempt, slice)| Control::Rows { attempt, slice }),
            any::<u16>().prop_map(|shard| Control::Count { shard }),
            any::<[u32; 3]>().prop_map(|[attempt, first, count]| {
                let in_memory = EpochRange { first, count };
                Control::Ready { attempt, in_memory }
            }),
            Just(Control::Stop {}),
            round().prop_map(|round| Control::Keep { round }),
            any::<u32>().prop_map(|attempt| Control::RestartRequest { attempt }),
        ]
    }

    #[test]
    fn word_counts_that_do_not_fit_are_rejected() {
        let read = |tokens: &[(u32, u32)], documents: &[(u32, u32)]| {
            let mut bytes =
                vec![super::WORDS, 3, 0, 9, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0];
            RowCode::new(WORDS).encode(tokens, &mut bytes);
            RowCode::new(WORDS).encode(documents, &mut bytes);
            Control::decode(TOPICS, WORDS, &bytes)
        };
        let word_stats = vec![(0, 4, 2), (3, 1, 1)];
        let words = Control::Words {
            shard: 3,
            lengths: DocumentLengths { documents: 9, squares: 20 },
            word_stats,
        };
        assert_eq!(read(&[(0, 4), (3, 1)], &[(0, 2), (3, 1)]), Some(words));
        assert_eq!(read(&[(0, 4), (3, 1)], &[(0, 2), (4, 1)]), None, "of other words");
        assert_eq!(read(&[(0, 4), (3, 1)], &[(0, 2)]), None, "of fewer words");
        assert_eq!(read(&[(0, 4), (3, 1)], &[(0, 2), (3, 2)]), None, "more than tokens");
    }

    proptest! {
        #[test]
        fn replies_within_an_epoch_come_back(
            is_written: bool, kept: u32, epoch_stats in epoch_stats(),
        ) {
            let epoch_stats = epoch_stats.unwrap_or_default();
            let reply = KeptRound { is_written, kept, epoch_stats };
            let bytes = reply.encode(TOPICS, WORDS);
            prop_assert_eq!(KeptRound::decode(TOPICS, WORDS, &bytes), Some(reply));
            for cut in 0..bytes.len() {
                prop_assert_eq!(KeptRound::decode(TOPICS, WORDS, &bytes[..cut]), None);
            }
            prop_assert_eq!(KeptRound::decode(TOPICS, WORDS, &[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn decoding_inverts_encoding(control in control()) {
            let bytes = control.encode(TOPICS, WORDS);
            // Without its epoch statistics a report of a round is valid as well.
            let mut shorter = control.clone();
            if let Control::RoundDone { epoch_stats, .. } = &mut shorter {
                *epoch_stats = None;
            }
            let whole = shorter.encode(TOPICS, WORDS).len();
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes), Some(control));
            if [FAILED, UNREADABLE].contains(&bytes[0]) {
                return Ok(());
            }
            for cut in (0..bytes.len()).filter(|&cut| cut != whole) {
                prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes[..cut]), None);
            }
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn any_bytes_decode_or_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(control) = Control::decode(TOPICS, WORDS, &bytes) {
                let again = control.encode(TOPICS, WORDS);
                // Parts may be NaN, so the messages themselves may be unequal.
                let read = Control::decode(TOPICS, WORDS, &again).unwrap();
                prop_assert_eq!(read.encode(TOPICS, WORDS), again);
            }
        }
    }
}
