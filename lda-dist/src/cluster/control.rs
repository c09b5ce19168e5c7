//! What the master and the others tell each other.
//!
//! ```text
//! byte 0   16 words, to the master: shard (2 bytes), documents (8), how often each word occurs, as a row of V, and
//!          in how many of them, as another
//!          17 done, to the master: round, the last epoch of which all shards of this worker are kept (4); after
//!          an epoch's last round, what it took: 8 bytes for each of [`Bytes`] but the last, nanoseconds waited for
//!          servers and for the master, 8 each, bytes held (8), and if the model is evaluation, else 0, non-zeros of
//!          C_d (8) and the number of shards (2), and for each its number (2) and its part of the log joint (8)
//!          18 start, to all: attempt (4), epoch to go on from (4), documents (8), how often each word occurs and in
//!          how many of them
//!          19 begin, to all: round; the last epoch that all have kept (4); what C_k has gained, as a row of K
//!          with signs
//!          20 end, to servers: round, 1 if the model is evaluation or 0, words of each topic that are wanted (4); the
//!          reply is what their rows have gained, as such a row, bytes held (8), and what was found of all rows
//!          ([`aggregate`](crate::aggregate))
//!          21 finish, to all: that was the last round; the last attempt, none up to which begins any more (4); the last
//!          epoch that all have kept (4); 1 if there is more to do, when the run is begun again, or 0
//!          22 failed, to the master: why, as text
//!          23 rows, to a server, after the last round: attempt (4), slice (2); the reply is its rows, one
//!          behind the other, words in order
//!          24 here, to the master: the last attempt that this node has heard of (4)
//!          25 stop, to the master: this node has to end
//!          26 keep, to workers, after an epoch's last round: attempt (4), epoch (4); the reply is the last epoch that
//!          this worker has kept (4)
//!          27 again, to the master: this worker cannot go on with this attempt (4)
//! round    epoch (4), number (2), attempt (4)
//! ```
//!
//! Numbers have their lower bytes first. The first byte tells these from what workers ask of servers
//! ([`request`](crate::request)).

use std::time::Duration;

use super::Waited;
use crate::aggregate::AggregateRequest;
use crate::placement::{DocumentLengths, WordStats};
use crate::spec::Round;
use crate::stats::Bytes;
use crate::wire::{RowCode, put_word_stats, take, take_word_stats};

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Control {
    /// Uses are (word, tokens, documents that have it), words ascending.
    Words {
        shard: u16,
        lengths: DocumentLengths,
        word_stats: Vec<(u32, u32, u32)>,
    },
    RoundDone {
        round: Round,
        kept: u32,
        epoch_stats: Option<WorkerEpochStats>,
    },
    Start {
        attempt: u32,
        epoch: u32,
        lengths: DocumentLengths,
        words: WordStats,
    },
    Begin {
        round: Round,
        kept: u32,
        gained: Vec<(u32, i32)>,
    },
    End {
        round: Round,
        wanted: AggregateRequest,
    },
    Finish {
        attempt: u32,
        kept: u32,
        stopped: bool,
    },
    Failed(String),
    Rows {
        attempt: u32,
        slice: u16,
    },
    Ready {
        attempt: u32,
    },
    Stop,
    Keep {
        attempt: u32,
        epoch: u32,
    },
    RestartRequest {
        attempt: u32,
    },
}

/// What an epoch took of a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WorkerEpochStats {
    pub bytes: Bytes,
    pub waited: Waited,
    /// Bytes held.
    pub memory: u64,
    /// Of C_d, and of shards the parts of the log joint; 0 and none unless the model is evaluation.
    pub non_zeros: u64,
    pub parts: Parts,
}

/// Shards, and the part of the log joint of each.
pub(super) type Parts = Vec<(u16, f64)>;

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
/// Of a reason.
const LONGEST: usize = 4096;

impl Control {
    pub fn encode(&self, topics: u32, words: u32) -> Vec<u8> {
        let mut to = Vec::new();
        let put_round = |round: &Round, to: &mut Vec<u8>| {
            to.extend(round.epoch.to_le_bytes());
            to.extend(round.number.to_le_bytes());
            to.extend(round.attempt.to_le_bytes());
        };
        match self {
            Self::Words { shard, lengths, word_stats } => {
                to.push(WORDS);
                to.extend(shard.to_le_bytes());
                put_lengths(lengths, &mut to);
                let tokens: Vec<(u32, u32)> = word_stats.iter().map(|it| (it.0, it.1)).collect();
                let of_documents: Vec<(u32, u32)> =
                    word_stats.iter().map(|it| (it.0, it.2)).collect();
                RowCode::new(words).encode(&tokens, &mut to);
                RowCode::new(words).encode(&of_documents, &mut to);
            }
            Self::RoundDone { round, kept, epoch_stats } => {
                to.push(ROUND_DONE);
                put_round(round, &mut to);
                to.extend(kept.to_le_bytes());
                if let Some(WorkerEpochStats { bytes, waited, memory, non_zeros, parts }) =
                    epoch_stats
                {
                    let Bytes { sizes, routes, rows, gained, pushed, answers, .. } = *bytes;
                    let nanoseconds =
                        |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                    let (servers, master) =
                        (nanoseconds(waited.servers), nanoseconds(waited.master));
                    for number in [sizes, routes, rows, gained, pushed, answers, servers, master] {
                        to.extend(number.to_le_bytes());
                    }
                    to.extend(memory.to_le_bytes());
                    to.extend(non_zeros.to_le_bytes());
                    put_parts(parts, &mut to);
                }
            }
            Self::Start { attempt, epoch, lengths, words } => {
                to.push(START);
                to.extend(attempt.to_le_bytes());
                to.extend(epoch.to_le_bytes());
                put_lengths(lengths, &mut to);
                put_word_stats(words, &mut to);
            }
            Self::Begin { round, kept, gained } => {
                to.push(BEGIN);
                put_round(round, &mut to);
                to.extend(kept.to_le_bytes());
                RowCode::new(topics).encode(gained, &mut to);
            }
            Self::End { round, wanted: AggregateRequest { evaluation, top_words } } => {
                to.push(END);
                put_round(round, &mut to);
                to.push((*evaluation).into());
                to.extend(top_words.to_le_bytes());
            }
            Self::Finish { attempt, kept, stopped } => {
                to.push(FINISH);
                to.extend(attempt.to_le_bytes());
                to.extend(kept.to_le_bytes());
                to.push((*stopped).into());
            }
            Self::Failed(why) => {
                to.push(FAILED);
                to.extend(&why.as_bytes()[..why.len().min(LONGEST)]);
            }
            Self::Rows { attempt, slice } => {
                to.push(ROWS);
                to.extend(attempt.to_le_bytes());
                to.extend(slice.to_le_bytes());
            }
            Self::Ready { attempt } => {
                to.push(READY);
                to.extend(attempt.to_le_bytes());
            }
            Self::Stop => to.push(STOP),
            Self::Keep { attempt, epoch } => {
                to.push(KEEP);
                to.extend(attempt.to_le_bytes());
                to.extend(epoch.to_le_bytes());
            }
            Self::RestartRequest { attempt } => {
                to.push(RESTART_REQUEST);
                to.extend(attempt.to_le_bytes());
            }
        }
        to
    }

    /// None where the bytes are no such message.
    pub fn decode(topics: u32, words: u32, bytes: &[u8]) -> Option<Self> {
        let (&kind, mut rest) = bytes.split_first()?;
        let control = match kind {
            WORDS => {
                let shard = u16::from_le_bytes(take(&mut rest)?);
                let lengths = take_lengths(&mut rest)?;
                let (mut tokens, mut of_documents) = (Vec::<(u32, u32)>::new(), Vec::new());
                RowCode::new(words).decode(&mut rest, &mut tokens).ok()?;
                RowCode::new(words).decode(&mut rest, &mut of_documents).ok()?;
                let fit = |(of, in_documents): (&(u32, u32), &(u32, u32))| {
                    let (word, n) = *of;
                    (word == in_documents.0 && in_documents.1 <= n).then_some((
                        word,
                        n,
                        in_documents.1,
                    ))
                };
                let word_stats: Option<Vec<_>> =
                    tokens.iter().zip(&of_documents).map(fit).collect();
                let word_stats = word_stats.filter(|_| tokens.len() == of_documents.len())?;
                Self::Words { shard, lengths, word_stats }
            }
            ROUND_DONE => {
                let round = take_round(&mut rest)?;
                let kept = u32::from_le_bytes(take(&mut rest)?);
                let epoch_stats =
                    if rest.is_empty() { None } else { Some(take_worker_stats(&mut rest)?) };
                Self::RoundDone { round, kept, epoch_stats }
            }
            START => {
                let attempt = u32::from_le_bytes(take(&mut rest)?);
                let epoch = u32::from_le_bytes(take(&mut rest)?);
                let lengths = take_lengths(&mut rest)?;
                let words = take_word_stats(words, &mut rest).ok()?;
                Self::Start { attempt, epoch, lengths, words }
            }
            BEGIN => {
                let round = take_round(&mut rest)?;
                let kept = u32::from_le_bytes(take(&mut rest)?);
                let mut gained = Vec::new();
                RowCode::new(topics).decode(&mut rest, &mut gained).ok()?;
                Self::Begin { round, kept, gained }
            }
            END => {
                let round = take_round(&mut rest)?;
                let [evaluation @ (0 | 1)] = take(&mut rest)? else { return None };
                let top_words = u32::from_le_bytes(take(&mut rest)?);
                Self::End {
                    round,
                    wanted: AggregateRequest { evaluation: evaluation == 1, top_words },
                }
            }
            FINISH => {
                let attempt = u32::from_le_bytes(take(&mut rest)?);
                let kept = u32::from_le_bytes(take(&mut rest)?);
                let [stopped @ (0 | 1)] = take(&mut rest)? else { return None };
                Self::Finish { attempt, kept, stopped: stopped == 1 }
            }
            FAILED if rest.len() <= LONGEST => {
                let why = String::from_utf8_lossy(std::mem::take(&mut rest));
                Self::Failed(why.into_owned())
            }
            ROWS => {
                let attempt = u32::from_le_bytes(take(&mut rest)?);
                Self::Rows { attempt, slice: u16::from_le_bytes(take(&mut rest)?) }
            }
            READY => Self::Ready { attempt: u32::from_le_bytes(take(&mut rest)?) },
            STOP => Self::Stop,
            KEEP => {
                let attempt = u32::from_le_bytes(take(&mut rest)?);
                Self::Keep { attempt, epoch: u32::from_le_bytes(take(&mut rest)?) }
            }
            RESTART_REQUEST => {
                Self::RestartRequest { attempt: u32::from_le_bytes(take(&mut rest)?) }
            }
            _ => return None,
        };
        rest.is_empty().then_some(control)
    }
}

/// Writes parts.
fn put_parts(parts: &[(u16, f64)], to: &mut Vec<u8>) {
    to.extend((parts.len() as u16).to_le_bytes());
    for (number, part) in parts {
        to.extend(number.to_le_bytes());
        to.extend(part.to_le_bytes());
    }
}

/// Reads parts.
fn take_parts(rest: &mut &[u8]) -> Option<Parts> {
    let number = u16::from_le_bytes(take(rest)?);
    let part = |_| Some((u16::from_le_bytes(take(rest)?), f64::from_le_bytes(take(rest)?)));
    (0..number).map(part).collect()
}

fn take_worker_stats(rest: &mut &[u8]) -> Option<WorkerEpochStats> {
    let mut numbers = [0; 10];
    for number in &mut numbers {
        *number = u64::from_le_bytes(take(rest)?);
    }
    let [sizes, routes, rows, gained, pushed, answers, servers, master, memory, non_zeros] =
        numbers;
    let bytes = Bytes { sizes, routes, rows, gained, pushed, answers, totals: 0 };
    let [servers, master] = [servers, master].map(Duration::from_nanos);
    let waited = Waited { servers, master };
    Some(WorkerEpochStats { bytes, waited, memory, non_zeros, parts: take_parts(rest)? })
}

fn put_lengths(lengths: &DocumentLengths, to: &mut Vec<u8>) {
    to.extend(lengths.documents.to_le_bytes());
    to.extend(lengths.squares.to_le_bytes());
}

fn take_lengths(rest: &mut &[u8]) -> Option<DocumentLengths> {
    let documents = u64::from_le_bytes(take(rest)?);
    Some(DocumentLengths { documents, squares: u64::from_le_bytes(take(rest)?) })
}

fn take_round(rest: &mut &[u8]) -> Option<Round> {
    let epoch = u32::from_le_bytes(take(rest)?);
    let number = u16::from_le_bytes(take(rest)?);
    Some(Round { epoch, number, attempt: u32::from_le_bytes(take(rest)?) })
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
        let epoch_stats = (any::<[u64; 10]>(), parts).prop_map(|(numbers, parts)| {
            let [sizes, routes, rows, gained, pushed, answers, servers, master, memory, non_zeros] =
                numbers;
            let bytes = Bytes { sizes, routes, rows, gained, pushed, answers, totals: 0 };
            let [servers, master] = [servers, master].map(Duration::from_nanos);
            WorkerEpochStats { bytes, waited: Waited { servers, master }, memory, non_zeros, parts }
        });
        prop::option::of(epoch_stats)
    }

    fn lengths() -> impl Strategy<Value = DocumentLengths> {
        any::<[u64; 2]>().prop_map(|[documents, squares]| DocumentLengths { documents, squares })
    }

    fn control() -> impl Strategy<Value = Control> {
        let word_stats = prop::collection::btree_map(0..WORDS, (1..u32::MAX, 0..9u32), 0..5);
        let of = |(word, (tokens, less)): (u32, (u32, u32))| {
            (word, tokens, tokens - less.min(tokens - 1))
        };
        let gained = prop::collection::btree_map(0..TOPICS, prop_oneof![-99..0i32, 1..99i32], 0..9);
        let round = || any::<(u32, u16, u32)>().prop_map(round_of);
        prop_oneof![
            (any::<u16>(), lengths(), word_stats).prop_map(move |(shard, lengths, word_stats)| {
                Control::Words {
                    shard,
                    lengths,
                    word_stats: word_stats.into_iter().map(of).collect(),
                }
            }),
            (round(), any::<u32>(), epoch_stats()).prop_map(|(round, kept, epoch_stats)| {
                Control::RoundDone { round, kept, epoch_stats }
            }),
            (any::<[u32; 2]>(), lengths(), prop::array::uniform5(0..1u64 << 45)).prop_map(
                |([attempt, epoch], lengths, tokens)| {
                    let of_words = tokens.iter().map(|tokens| tokens.div_ceil(3)).collect();
                    let words = WordStats::new(tokens.to_vec(), of_words).unwrap();
                    Control::Start { attempt, epoch, lengths, words }
                }
            ),
            (round(), any::<u32>(), gained).prop_map(|(round, kept, gained)| {
                Control::Begin { round, kept, gained: gained.into_iter().collect() }
            }),
            (round(), any::<(bool, u32)>()).prop_map(|(round, (evaluation, top_words))| {
                Control::End { round, wanted: AggregateRequest { evaluation, top_words } }
            }),
            any::<([u32; 2], bool)>().prop_map(|([attempt, kept], stopped)| Control::Finish {
                attempt,
                kept,
                stopped
            }),
            ".{0,20}".prop_map(Control::Failed),
            any::<(u32, u16)>().prop_map(|(attempt, slice)| Control::Rows { attempt, slice }),
            any::<u32>().prop_map(|attempt| Control::Ready { attempt }),
            Just(Control::Stop),
            any::<[u32; 2]>().prop_map(|[attempt, epoch]| Control::Keep { attempt, epoch }),
            any::<u32>().prop_map(|attempt| Control::RestartRequest { attempt }),
        ]
    }

    #[test]
    fn uses_that_do_not_fit_are_no_message() {
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
        fn what_is_written_is_read(control in control()) {
            let bytes = control.encode(TOPICS, WORDS);
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes), Some(control));
            if bytes[0] == FAILED {
                return Ok(());
            }
            // Of a message that says what an epoch took, what is before is one too.
            let whole = if bytes[0] == ROUND_DONE { 15 } else { bytes.len() };
            for cut in (0..bytes.len()).filter(|&cut| cut != whole) {
                prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes[..cut]), None);
            }
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(control) = Control::decode(TOPICS, WORDS, &bytes) {
                let again = control.encode(TOPICS, WORDS);
                // Parts may be no numbers.
                let read = Control::decode(TOPICS, WORDS, &again).unwrap();
                prop_assert_eq!(read.encode(TOPICS, WORDS), again);
            }
        }
    }
}
