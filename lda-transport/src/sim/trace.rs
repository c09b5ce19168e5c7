//! Trace of a simulation: a fingerprint, and lines of text.

use std::collections::VecDeque;
use std::fmt;

use crate::rpc::{Action, Outcome};
use crate::split_mix::mixed;
use crate::time::Time;
use crate::transport::{DisconnectReason, NodeId};

/// Trace of a [`World`](super::World): a fingerprint of all events, and the last lines of text. The
/// fingerprint costs a few nanoseconds per event and a line some hundred, so lines are only kept if
/// [`Options::keep`](super::Options::keep) is set.
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    len: u64,
    keep: usize,
    lines: VecDeque<Line>,
}

/// An event of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time of the event.
    pub time: Time,
    /// Node at which it happened.
    pub node: NodeId,
    /// Description.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.time, self.node, self.text)
    }
}

impl Trace {
    pub(super) fn new(keep: usize) -> Self {
        Self { hash: 0, len: 0, keep, lines: VecDeque::new() }
    }

    /// Returns the fingerprint: equal for equal histories, and with high probability only for
    /// these.
    pub fn fingerprint(&self) -> u64 {
        mixed(self.hash ^ mixed(self.len))
    }

    /// Returns the number of events.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the last lines, up to the number to keep.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    pub(super) fn add<const N: usize>(
        &mut self,
        time: Time,
        node: NodeId,
        words: [u64; N],
        text: impl FnOnce() -> String,
    ) {
        self.word(time.0);
        self.word(u64::from(node.0));
        words.into_iter().for_each(|word| self.word(word));
        self.len += 1;
        if self.keep > 0 {
            if self.lines.len() == self.keep {
                self.lines.pop_front();
            }
            self.lines.push_back(Line { time, node, text: text() });
        }
    }

    pub(super) fn note(&mut self, time: Time, node: NodeId, text: &dyn fmt::Display) {
        let mut words = TextHash(0);
        // Writing to a hash does not fail.
        let _ = fmt::Write::write_fmt(&mut words, format_args!("{text}"));
        self.add(time, node, [1, words.0], || text.to_string());
    }

    /// Adds an action that an endpoint passes to its program.
    pub(super) fn action(&mut self, time: Time, node: NodeId, action: &Action) {
        let words = match action {
            Action::Joined { peer, role, incarnation, restarted } => {
                let role = u64::from(*role) << 1 | u64::from(*restarted);
                [2, u64::from(peer.0), role, *incarnation, 0]
            }
            Action::Left { peer, reason } => {
                [3, u64::from(peer.0), u64::from(*reason == DisconnectReason::Silent), 0, 0]
            }
            Action::Refused { peer, reason } => {
                [4, u64::from(peer.0), of_bytes(reason.to_string().as_bytes()), 0, 0]
            }
            Action::Request { reply_to, kind, body } => {
                let peer = u64::from(reply_to.peer.0) << 2 | *kind as u64;
                [5, peer, reply_to.incarnation, reply_to.number, of_bytes(body)]
            }
            Action::Completed { request, outcome } => {
                let (end, body) = match outcome {
                    Outcome::Done(body) => (0, of_bytes(body)),
                    Outcome::Rejected(body) => (1, of_bytes(body)),
                    Outcome::Unknown { reason, sent } => (2 + u64::from(*sent), *reason as u64),
                };
                [6, u64::from(request.peer.0), request.number, end, body]
            }
            Action::Ready { peer } => [7, u64::from(peer.0), 0, 0, 0],
            #[cfg(feature = "collectives")]
            Action::CollectiveDone { operation, result } => {
                let bytes = match result {
                    Ok(got) => got.iter().fold(0, |hash, frame| stirred(hash, of_bytes(frame))),
                    Err(error) => of_bytes(error.to_string().as_bytes()),
                };
                [8, operation.group, operation.number, u64::from(result.is_ok()), bytes]
            }
        };
        self.add(time, node, words, || format!("{action:?}"));
    }

    fn word(&mut self, word: u64) {
        self.hash = stirred(self.hash, word);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Hash of a text that is written to it.
struct TextHash(u64);

impl fmt::Write for TextHash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = stirred(self.0, of_bytes(text.as_bytes()));
        Ok(())
    }
}

const fn stirred(hash: u64, word: u64) -> u64 {
    let hash = (hash.rotate_left(25) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

/// Returns a fingerprint of bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let mut hash = bytes.len() as u64;
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes"));
        hash = stirred(hash, word);
    }
    chunks.remainder().iter().fold(hash, |hash, &byte| stirred(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(words: [u64; 2], note: &str) -> Trace {
        let mut trace = Trace::new(2);
        trace.note(Time(1), NodeId(1), &"first");
        trace.add(Time(2), NodeId(3), words, || "words".to_owned());
        trace.note(Time(3_000_000_000), NodeId(4), &note);
        trace
    }

    #[test]
    fn fingerprints_depend_on_everything() {
        let same = trace([1, 2], "note");
        assert_eq!(same.fingerprint(), trace([1, 2], "note").fingerprint());
        for other in [trace([2, 1], "note"), trace([1, 2], "nota"), Trace::new(0)] {
            assert_ne!(same.fingerprint(), other.fingerprint());
        }
        assert_ne!(of_bytes(&[0; 8]), of_bytes(&[0; 16]));
    }

    #[test]
    fn the_last_lines_are_kept() {
        let trace = trace([1, 2], "note");
        assert_eq!((trace.len(), trace.is_empty(), trace.lines().count()), (3, false, 2));
        let text = "0.000000 s node 3: words\n3.000000 s node 4: note\n";
        assert_eq!(trace.to_string(), text);
    }
}
