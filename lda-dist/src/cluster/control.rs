//! What the master and the others tell each other.
//!
//! ```text
//! byte 0   16 words, to the master: shard (2 bytes), documents (8), how often each word occurs, as a row of V
//!          17 done, to the master: epoch (4), round (2)
//!          18 plan, to all: documents (8), how often each word occurs, 8 bytes each
//!          19 begin, to all: epoch, round; what C_k has gained, as a row of K with signs
//!          20 end, to servers: epoch, round; the reply is what their rows have gained, as such a row
//!          21 finish, to all: that was the last round
//! ```
//!
//! Numbers have their lower bytes first. The first byte tells these from what workers ask of servers
//! ([`request`](crate::request)).

use crate::job::Round;
use crate::wire::RowCode;

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Words { shard: u16, documents: u64, frequencies: Vec<(u32, u32)> },
    Done(Round),
    Plan { documents: u64, frequencies: Vec<u64> },
    Begin { round: Round, gained: Vec<(u32, i32)> },
    End(Round),
    Finish,
}

const WORDS: u8 = 16;
const DONE: u8 = 17;
const PLAN: u8 = 18;
const BEGIN: u8 = 19;
const END: u8 = 20;
const FINISH: u8 = 21;

impl Control {
    pub fn encode(&self, topics: u32, words: u32) -> Vec<u8> {
        let mut to = Vec::new();
        let put_round = |round: &Round, to: &mut Vec<u8>| {
            to.extend(round.epoch.to_le_bytes());
            to.extend(round.number.to_le_bytes());
        };
        match self {
            Self::Words { shard, documents, frequencies } => {
                to.push(WORDS);
                to.extend(shard.to_le_bytes());
                to.extend(documents.to_le_bytes());
                RowCode::new(words).encode(frequencies, &mut to);
            }
            Self::Done(round) => {
                to.push(DONE);
                put_round(round, &mut to);
            }
            Self::Plan { documents, frequencies } => {
                to.push(PLAN);
                to.extend(documents.to_le_bytes());
                to.extend(frequencies.iter().flat_map(|tokens| tokens.to_le_bytes()));
            }
            Self::Begin { round, gained } => {
                to.push(BEGIN);
                put_round(round, &mut to);
                RowCode::new(topics).encode(gained, &mut to);
            }
            Self::End(round) => {
                to.push(END);
                put_round(round, &mut to);
            }
            Self::Finish => to.push(FINISH),
        }
        to
    }

    /// None where the bytes are no such message.
    pub fn decode(topics: u32, words: u32, bytes: &[u8]) -> Option<Self> {
        let (&kind, mut rest) = bytes.split_first()?;
        let control = match kind {
            WORDS => {
                let shard = u16::from_le_bytes(take(&mut rest)?);
                let documents = u64::from_le_bytes(take(&mut rest)?);
                let mut frequencies = Vec::new();
                RowCode::new(words).decode(&mut rest, &mut frequencies).ok()?;
                Self::Words { shard, documents, frequencies }
            }
            DONE => Self::Done(take_round(&mut rest)?),
            PLAN => {
                let documents = u64::from_le_bytes(take(&mut rest)?);
                let (each, odd) = rest.as_chunks();
                if !odd.is_empty() || each.len() != words as usize {
                    return None;
                }
                rest = &[];
                let frequencies = each.iter().map(|tokens| u64::from_le_bytes(*tokens)).collect();
                Self::Plan { documents, frequencies }
            }
            BEGIN => {
                let round = take_round(&mut rest)?;
                let mut gained = Vec::new();
                RowCode::new(topics).decode(&mut rest, &mut gained).ok()?;
                Self::Begin { round, gained }
            }
            END => Self::End(take_round(&mut rest)?),
            FINISH => Self::Finish,
            _ => return None,
        };
        rest.is_empty().then_some(control)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn take_round(rest: &mut &[u8]) -> Option<Round> {
    let epoch = u32::from_le_bytes(take(rest)?);
    Some(Round { epoch, number: u16::from_le_bytes(take(rest)?) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOPICS: u32 = 9;
    const WORDS: u32 = 5;

    fn round_of((epoch, number): (u32, u16)) -> Round {
        Round { epoch, number }
    }

    fn control() -> impl Strategy<Value = Control> {
        let row = || prop::collection::btree_map(0..WORDS, 1..u32::MAX, 0..5);
        let gained = prop::collection::btree_map(0..TOPICS, prop_oneof![-99..0i32, 1..99i32], 0..9);
        let round = || any::<(u32, u16)>().prop_map(round_of);
        prop_oneof![
            (any::<u16>(), any::<u64>(), row()).prop_map(|(shard, documents, row)| {
                Control::Words { shard, documents, frequencies: row.into_iter().collect() }
            }),
            round().prop_map(Control::Done),
            (any::<u64>(), any::<[u64; WORDS as usize]>()).prop_map(|(documents, frequencies)| {
                Control::Plan { documents, frequencies: frequencies.to_vec() }
            }),
            (round(), gained).prop_map(|(round, gained)| {
                Control::Begin { round, gained: gained.into_iter().collect() }
            }),
            round().prop_map(Control::End),
            Just(Control::Finish),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(control in control()) {
            let bytes = control.encode(TOPICS, WORDS);
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes), Some(control));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Control::decode(TOPICS, WORDS, &bytes[..cut]), None);
            }
            prop_assert_eq!(Control::decode(TOPICS, WORDS, &[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(control) = Control::decode(TOPICS, WORDS, &bytes) {
                let again = control.encode(TOPICS, WORDS);
                prop_assert_eq!(Control::decode(TOPICS, WORDS, &again), Some(control));
            }
        }
    }
}
