//! Traffic of an epoch by kind and by server, and its size in a plain encoding.

use std::time::Duration;

use lda_dist::in_process::{Event, Exchange};
use lda_dist::request::Kind;
use lda_dist::stats::Bytes;
use serde::{Deserialize, Serialize};

/// Bytes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kinds {
    /// Row lengths, which decide the routes.
    pub sizes: u64,
    /// Routes: which words are pulled.
    pub routes: u64,
    /// Pulled rows.
    pub rows: u64,
    /// Deltas of pulled rows.
    pub gained: u64,
    /// Pushed documents and their tokens.
    pub pushed: u64,
    /// New topics of pushed tokens.
    pub answers: u64,
    /// Totals C_k.
    pub totals: u64,
}

impl Kinds {
    /// Sum over all kinds.
    pub fn total(&self) -> u64 {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = self;
        sizes + routes + rows + gained + pushed + answers + totals
    }

    /// Bytes of the kinds that a plain encoding has too: rows, deltas, documents, topics.
    pub fn content(&self) -> u64 {
        self.rows + self.gained + self.pushed + self.answers
    }
}

impl From<Bytes> for Kinds {
    fn from(bytes: Bytes) -> Self {
        let Bytes { sizes, routes, rows, gained, pushed, answers, totals } = bytes;
        Self { sizes, routes, rows, gained, pushed, answers, totals }
    }
}

/// Traffic of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EpochTraffic {
    /// Number of the epoch, from 1.
    pub epoch: u32,
    /// Bytes that move.
    pub bytes: Kinds,
    /// Bytes of the same content as rows of 32-bit numbers: topic and count per entry, word and
    /// topic per pushed token, an offset per row, a topic per answered token.
    pub plain: Kinds,
    /// Tokens that servers sample.
    pub pushed_tokens: u64,
    /// Bytes to and from the heaviest server over the mean.
    pub heaviest_bytes: f64,
    /// CPU seconds of the busiest server over the mean; the smallest value over the repeats for
    /// each server.
    pub heaviest_seconds: f64,
    /// CPU seconds of all servers, in the first repeat.
    pub server_seconds: f64,
    /// Seconds of the whole epoch on one thread.
    pub seconds: f64,
    /// log p(W, Z) per token, after the last epoch.
    pub log_joint_per_token: Option<f64>,
}

/// Counts the traffic of an epoch.
pub(super) struct Tally {
    /// Returns the CPU time of this thread.
    clock: fn() -> Duration,
    begun: Duration,
    bytes: Vec<u64>,
    seconds: Vec<f64>,
    plain: Kinds,
    pushed_tokens: u64,
}

impl Tally {
    pub fn new(servers: u32, clock: fn() -> Duration) -> Self {
        Self {
            clock,
            begun: Duration::ZERO,
            bytes: vec![0; servers as usize],
            seconds: vec![0.0; servers as usize],
            plain: Kinds::default(),
            pushed_tokens: 0,
        }
    }

    pub fn see(&mut self, happening: Event<'_>) {
        match happening {
            Event::Begins { .. } => self.begun = (self.clock)(),
            Event::Ends { server } => {
                let took = (self.clock)().saturating_sub(self.begun);
                self.seconds[server as usize] += took.as_secs_f64();
            }
            Event::Exchange(exchange) => {
                self.bytes[exchange.server as usize] += exchange.request + exchange.reply;
                self.add_plain(&exchange);
            }
            _ => {}
        }
    }

    /// Adds the size of an exchange as rows of 32-bit numbers.
    fn add_plain(&mut self, exchange: &Exchange<'_>) {
        let rows = rows_bytes(exchange.rows, exchange.entries);
        match exchange.kind {
            Kind::Pull => self.plain.rows += rows,
            Kind::PushDeltas | Kind::PushRows => self.plain.gained += rows,
            Kind::Push => {
                for document in exchange.documents {
                    let tokens = document.tokens.len() as u64;
                    self.plain.pushed += rows_bytes(2, document.row.len() as u64 + tokens);
                    self.plain.answers += 4 * tokens;
                    self.pushed_tokens += tokens;
                }
            }
            Kind::Join | Kind::Sizes => {}
        }
    }

    /// Returns the epoch and the CPU seconds of each server, and starts the next epoch.
    pub fn end(&mut self, epoch: u32, bytes: Bytes, seconds: f64) -> Watched {
        let ended = EpochTraffic {
            epoch,
            bytes: bytes.into(),
            plain: std::mem::take(&mut self.plain),
            pushed_tokens: std::mem::take(&mut self.pushed_tokens),
            heaviest_bytes: heaviest(self.bytes.iter().map(|&bytes| bytes as f64)),
            heaviest_seconds: heaviest(self.seconds.iter().copied()),
            server_seconds: self.seconds.iter().sum(),
            seconds,
            log_joint_per_token: None,
        };
        self.bytes.fill(0);
        let of_servers = self.seconds.clone();
        self.seconds.fill(0.0);
        (ended, of_servers)
    }
}

/// An epoch and the CPU seconds of each server.
pub(super) type Watched = (EpochTraffic, Vec<f64>);

/// Takes a server's CPU seconds of another repeat if they are smaller. Returns false and changes
/// nothing if the traffic of the repeats differs.
pub(super) fn take_least(kept: &mut [Watched], other: &[Watched]) -> bool {
    let moved = |epoch: &EpochTraffic| (epoch.bytes, epoch.plain);
    let is_same = |((one, _), (other, _)): (&Watched, &Watched)| moved(one) == moved(other);
    if kept.len() != other.len() || !kept.iter().zip(other).all(is_same) {
        return false;
    }
    for ((epoch, least), (_, seconds)) in kept.iter_mut().zip(other) {
        least.iter_mut().zip(seconds).for_each(|(least, seconds)| *least = least.min(*seconds));
        epoch.heaviest_seconds = heaviest(least.iter().copied());
    }
    true
}

/// Size of rows of 32-bit numbers with one offset per row.
fn rows_bytes(rows: u64, entries: u64) -> u64 {
    8 * entries + 4 * rows
}

/// Largest value over the mean.
fn heaviest(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let mean = values.clone().sum::<f64>() / values.len() as f64;
    values.fold(0.0, f64::max) / mean
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lda_dist::wire::Document;

    use super::*;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn work(tally: &mut Tally, server: u32, milliseconds: u64) {
        tally.see(Event::Begins { server });
        NOW.set(NOW.get() + Duration::from_millis(milliseconds));
        tally.see(Event::Ends { server });
    }

    #[test]
    fn the_minimum_of_repeats_counts() {
        let watched = |rows, seconds: &[f64]| {
            let bytes = Kinds { rows, ..Kinds::default() };
            let epoch = EpochTraffic { bytes, heaviest_seconds: 9.0, ..EpochTraffic::default() };
            (epoch, seconds.to_vec())
        };
        let mut kept = [watched(7, &[3.0, 1.0, 2.0])];
        assert!(take_least(&mut kept, &[watched(7, &[1.0, 5.0, 4.0])]));
        assert_eq!(kept[0].1, [1.0, 1.0, 2.0]);
        assert_eq!(kept[0].0.heaviest_seconds, 1.5);
        // Other traffic means another run.
        assert!(!take_least(&mut kept, &[watched(8, &[0.5, 0.5, 0.5])]));
        assert!(!take_least(&mut kept, &[]));
        assert_eq!(kept[0].1, [1.0, 1.0, 2.0]);
    }

    #[test]
    fn a_plain_encoding_has_8_bytes_per_entry() {
        let document = Document { row: vec![(1, 2), (2, 2), (8, 1)], tokens: vec![(0, 1), (4, 8)] };
        let mut tally = Tally::new(2, || NOW.get());
        let none = Exchange {
            server: 1,
            kind: Kind::Pull,
            request: 10,
            reply: 30,
            rows: 0,
            entries: 0,
            documents: &[],
        };
        tally.see(Event::Exchange(Exchange { rows: 2, entries: 3, ..none }));
        tally.see(Event::Exchange(Exchange {
            kind: Kind::PushDeltas,
            rows: 2,
            entries: 2,
            ..none
        }));
        let documents = std::slice::from_ref(&document);
        tally.see(Event::Exchange(Exchange { kind: Kind::Push, documents, server: 0, ..none }));
        [(1, 10), (1, 5), (0, 10), (1, 5), (0, 30)]
            .into_iter()
            .for_each(|(server, milliseconds)| work(&mut tally, server, milliseconds));
        let bytes = Bytes { rows: 5, totals: 2, ..Bytes::default() };
        let (epoch, of_servers) = tally.end(4, bytes, 1.0);
        let rounded = of_servers.iter().map(|seconds| (seconds * 1e3).round());
        assert!(rounded.eq([40.0, 20.0]));
        let expected = Kinds {
            rows: 20 + 12,
            gained: 20 + 4,
            pushed: 28 + 20,
            answers: 8,
            ..Kinds::default()
        };
        assert_eq!(epoch.plain, expected);
        assert_eq!((epoch.bytes.total(), epoch.bytes.content(), epoch.pushed_tokens), (7, 5, 2));
        // 80 bytes and 40; 20 ms and 40.
        assert!((epoch.heaviest_bytes - 80.0 / 60.0).abs() < 1e-12);
        assert!((epoch.heaviest_seconds - 40.0 / 30.0).abs() < 1e-9);
        // The next epoch starts at zero.
        let (next, _) = tally.end(5, Bytes::default(), 1.0);
        assert_eq!(
            (next.plain, next.pushed_tokens, next.server_seconds),
            (Kinds::default(), 0, 0.0)
        );
    }
}
