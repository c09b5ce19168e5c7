//! Counts of messages by kind, fate and state of the receiver.

use std::fmt;

use crate::rpc::MessageKind;

/// Fate of a frame. If several apply, the first in this order except [`Arrived`](Self::Arrived).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// It arrived normally.
    Arrived,
    /// The queue was full, and it was not taken.
    Full,
    /// It was lost.
    Lost,
    /// It was lost to a silence of its direction.
    Silenced,
    /// It arrived over a later connection than the one it was sent on.
    Late,
    /// It arrived as the second copy of a frame.
    Doubled,
    /// It arrived after one that was sent later.
    Overtaken,
    /// Its receiver crashed before it arrived.
    ReceiverCrashed,
    /// Its sender crashed before it arrived.
    SenderCrashed,
    /// The link was cut before it arrived.
    Cut,
}

impl Fate {
    /// All values, in order.
    pub const ALL: [Self; 10] = [
        Self::Arrived,
        Self::Full,
        Self::Lost,
        Self::Silenced,
        Self::Late,
        Self::Doubled,
        Self::Overtaken,
        Self::ReceiverCrashed,
        Self::SenderCrashed,
        Self::Cut,
    ];

    /// Whether the endpoint of the receiver got the frame.
    pub fn arrives(self) -> bool {
        matches!(self, Self::Arrived | Self::Doubled | Self::Overtaken | Self::Late)
    }
}

/// State of the receiver's session with the sender just before a frame arrived, or would have
/// arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The receiver had crashed and not started again.
    Gone,
    /// The receiver was not connected to the sender.
    Away,
    /// They were connected, and the sender had not joined.
    Greeting,
    /// The sender had joined.
    Joined,
    /// One of the two had refused the other.
    Refused,
}

impl State {
    /// All values, in order.
    pub const ALL: [Self; 5] =
        [Self::Gone, Self::Away, Self::Greeting, Self::Joined, Self::Refused];
}

const CELLS: usize = MessageKind::ALL.len() * Fate::ALL.len() * State::ALL.len();

/// Number of frames by kind, fate and state of the receiver. A copy counts as a frame. A frame that
/// is not taken counts each time.
///
/// ```
/// use lda_transport::sim::Coverage;
///
/// let mut all = Coverage::default();
/// all.merge(&Coverage::default());
/// assert!(all.cells().all(|(_, _, _, count)| count == 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage(Vec<u64>);

impl Default for Coverage {
    fn default() -> Self {
        Self(vec![0; CELLS])
    }
}

impl Coverage {
    fn place(message: MessageKind, fate: Fate, state: State) -> usize {
        (fate as usize * State::ALL.len() + state as usize) * MessageKind::ALL.len()
            + message as usize
    }

    pub(super) fn add(&mut self, message: MessageKind, fate: Fate, state: State) {
        self.0[Self::place(message, fate, state)] += 1;
    }

    /// Returns the number of frames in a cell.
    pub fn count(&self, message: MessageKind, fate: Fate, state: State) -> u64 {
        self.0[Self::place(message, fate, state)]
    }

    /// Returns all cells.
    pub fn cells(&self) -> impl Iterator<Item = (MessageKind, Fate, State, u64)> {
        let all = move |fate| State::ALL.into_iter().map(move |state| (fate, state));
        Fate::ALL.into_iter().flat_map(all).flat_map(move |(fate, state)| {
            let cell = move |message| (message, fate, state, self.count(message, fate, state));
            MessageKind::ALL.into_iter().map(cell)
        })
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += more);
    }
}

impl fmt::Display for Coverage {
    /// Writes a table with a row per fate and state and a column per kind of message. Rows of zeros
    /// are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<16}{:<9}", "fate", "state")?;
        for message in MessageKind::ALL {
            write!(f, "{:>10}", format!("{message:?}"))?;
        }
        writeln!(f)?;
        for fate in Fate::ALL {
            for state in State::ALL {
                let counts = MessageKind::ALL.map(|message| self.count(message, fate, state));
                if counts != [0; MessageKind::ALL.len()] {
                    write!(f, "{:<16}{:<9}", format!("{fate:?}"), format!("{state:?}"))?;
                    counts.iter().try_for_each(|count| write!(f, "{count:>10}"))?;
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_distinct() {
        let mut coverage = Coverage::default();
        let cells: Vec<_> = coverage.cells().collect();
        assert_eq!(cells.len(), CELLS);
        for (message, fate, state, _) in cells {
            coverage.add(message, fate, state);
        }
        let mut twice = coverage.clone();
        twice.merge(&coverage);
        assert!(twice.cells().all(|cell| cell.3 == 2));
        assert_eq!(twice.to_string().lines().count(), 1 + Fate::ALL.len() * State::ALL.len());
        assert_eq!(Coverage::default().to_string().lines().count(), 1);
    }
}
