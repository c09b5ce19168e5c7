//! Links, and the fate of a frame on a link.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::time::Time;
use crate::transport::{NodeId, SendError};

/// Properties of a link in one direction. Probabilities are from 0 to 1.
///
/// The default keeps the contract of a [`Transport`](crate::Transport). Every probability except
/// [`full`](Self::full) breaks it, as a transport over datagrams would.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Shortest time from the sender to the receiver.
    pub latency: Duration,
    /// Longest random addition to it. Frames still arrive in order.
    pub jitter: Duration,
    /// Bytes per second; 0 counts as 1. Frames leave one after the other.
    pub bandwidth: u64,
    /// Maximum bytes that wait to leave; a single frame may be longer. Beyond that, sends fail as
    /// [`Full`](SendError::Full), and the link is writable when half of the bytes have left.
    pub queue_bytes: usize,
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Probability that a frame is lost silently.
    pub loss: f64,
    /// Probability that a frame arrives twice, the second time by a [detour](Self::detour).
    pub duplication: f64,
    /// Probability that a frame takes a detour, so that later ones overtake it.
    pub reordering: f64,
    /// Longest additional time of a detour; one in eight is ten times as long.
    pub detour: Duration,
    /// Probability that a frame is not lost with its link and arrives late over the next one.
    pub late_delivery: f64,
    /// Probability that a frame is not taken although there is space, as in a transport whose peers
    /// share it.
    pub full: f64,
    /// Longest time until a node receives `Down` after a cut or a crash. Frames that it sends until
    /// then are taken and lost.
    pub detection_delay: Duration,
}

impl Default for Network {
    /// 100 µs, 1 GB/s and a queue of 1 MiB; no faults; failures caused by a test are reported at
    /// once.
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(100),
            jitter: Duration::ZERO,
            bandwidth: 1_000_000_000,
            queue_bytes: 1 << 20,
            max_frame_len: 1 << 30,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            detour: Duration::from_millis(1),
            late_delivery: 0.0,
            full: 0.0,
            detection_delay: Duration::ZERO,
        }
    }
}

/// A frame in flight.
#[derive(Debug)]
pub(super) struct FrameInFlight {
    pub from: NodeId,
    pub to: NodeId,
    pub frame: Frame,
    /// Epoch of the link and generations of sender and receiver when it was sent.
    pub epoch: u64,
    pub generations: [u64; 2],
    pub fate: FrameFate,
}

/// Random decisions on a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameFate {
    /// Number of the frame in this direction.
    pub number: u64,
    pub lost: bool,
    /// Whether the direction was silenced when the frame was sent.
    pub silenced: bool,
    /// Whether it survives the loss of its link.
    pub late: bool,
    /// Whether it is the second copy.
    pub copy: bool,
}

/// Fate and arrival of a frame, and of its second copy.
pub(super) type FrameFates = ((FrameFate, Time), Option<(FrameFate, Time)>);

/// Both directions between two nodes. Index 0 is that from the smaller number.
#[derive(Debug)]
pub(super) struct Link {
    pub cut: bool,
    /// Number of cuts, so that the end of one does not end another.
    pub serial: u64,
    pub up: bool,
    /// Changes whenever the link comes up or goes down.
    pub epoch: u64,
    /// Generations of both ends when it came up.
    pub generations: [u64; 2],
    /// Both directions, by the index of the sender.
    pub directions: [Direction; 2],
}

impl Link {
    pub fn new(network: Network) -> Self {
        let directions = [Direction::new(network), Direction::new(network)];
        Self { cut: false, serial: 0, up: false, epoch: 0, generations: [0; 2], directions }
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Direction {
    pub network: Network,
    pub silent: bool,
    /// Number of silences.
    pub serial: u64,
    /// Epoch in which the sender has received `Up`, which may have ended; `None` after `Down`.
    pub known_epoch: Option<u64>,
    /// Number of the newest frame that has arrived.
    pub newest: u64,
    sent: u64,
    /// Times at which the last frame has left and arrived.
    leaves: Time,
    arrives: Time,
    /// Frames that have not left: time of leaving, and bytes.
    queue: VecDeque<(Time, usize)>,
    queued: usize,
}

impl Direction {
    fn new(network: Network) -> Self {
        Self {
            network,
            silent: false,
            serial: 0,
            known_epoch: None,
            newest: 0,
            sent: 0,
            leaves: Time::ZERO,
            arrives: Time::ZERO,
            queue: VecDeque::new(),
            queued: 0,
        }
    }

    /// Returns the number of the next frame.
    pub fn next(&self) -> u64 {
        self.sent + 1
    }

    /// Resets the state for a new connection.
    pub fn renew(&mut self) {
        self.queue.clear();
        (self.queued, self.leaves, self.arrives) = (0, Time::ZERO, Time::ZERO);
    }

    /// Takes a frame and draws its fate, by `network` if given.
    pub fn take(
        &mut self,
        len: usize,
        now: Time,
        network: Option<Network>,
        rng: &mut SplitMix64,
    ) -> Result<FrameFates, SendError> {
        let network = network.unwrap_or(self.network);
        if len > network.max_frame_len {
            return Err(SendError::TooLong { len, longest: network.max_frame_len });
        }
        while let Some(&(_, len)) = self.queue.front().filter(|first| first.0 <= now) {
            self.queue.pop_front();
            self.queued -= len;
        }
        let over = self.queued > 0 && self.queued + len > network.queue_bytes;
        if over || rng.chance(network.full) {
            return Err(SendError::Full);
        }
        let nanos = (len as u128 * 1_000_000_000).div_ceil(u128::from(network.bandwidth.max(1)));
        let leaves =
            self.leaves.max(now) + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.leaves = leaves;
        self.queue.push_back((leaves, len));
        self.queued += len;
        self.sent += 1;
        let mut arrives = leaves + network.latency + rng.up_to(network.jitter);
        let detour = |rng: &mut SplitMix64| {
            let times = if rng.below(8) == 0 { 10 } else { 1 };
            rng.up_to(network.detour.saturating_mul(times))
        };
        if rng.chance(network.reordering) {
            arrives = arrives + detour(rng);
        } else {
            arrives = arrives.max(self.arrives);
            self.arrives = arrives;
        }
        let second = rng.chance(network.duplication).then(|| arrives + detour(rng));
        let mut fate = |copy| FrameFate {
            number: self.sent,
            lost: rng.chance(network.loss),
            silenced: self.silent,
            late: rng.chance(network.late_delivery),
            copy,
        };
        Ok(((fate(false), arrives), second.map(|arrives| (fate(true), arrives))))
    }

    /// Returns the time at which half of the queue has left, which is later than now.
    pub fn writable_at(&self, now: Time) -> Time {
        let mut left = self.queued;
        let half = self.network.queue_bytes / 2;
        for (leaves, len) in &self.queue {
            if left <= half {
                break;
            }
            left -= len;
            if left <= half {
                return *leaves;
            }
        }
        now + self.network.latency.max(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn slow() -> Network {
        let latency = Duration::from_secs(1);
        Network { latency, bandwidth: 10, queue_bytes: 100, ..Network::default() }
    }

    #[test]
    fn frames_leave_one_after_the_other() {
        let (mut direction, mut rng) = (Direction::new(slow()), SplitMix64::new(0));
        let mut arrives =
            |len, now| direction.take(len, Time(now * SECOND), None, &mut rng).unwrap().0.1;
        assert_eq!(arrives(50, 0), Time(6 * SECOND));
        assert_eq!(arrives(30, 2), Time(9 * SECOND));
        assert_eq!(arrives(10, 20), Time(22 * SECOND));
    }

    #[test]
    fn a_full_queue_is_writable_when_half_has_left() {
        let (mut direction, mut rng) = (Direction::new(slow()), SplitMix64::new(0));
        let mut take = |len, now| {
            let taken = direction.take(len, Time(now * SECOND), None, &mut rng).map(|_| ());
            (taken, direction.writable_at(Time(now * SECOND)))
        };
        assert_eq!(take(300, 0).0, Ok(()), "a single frame may be longer");
        assert_eq!(take(1, 1), (Err(SendError::Full), Time(30 * SECOND)));
        for _ in 0..5 {
            assert_eq!(take(20, 30).0, Ok(()));
        }
        assert_eq!(take(20, 30), (Err(SendError::Full), Time(36 * SECOND)));
        assert_eq!(take(20, 32).0, Ok(()), "the first has left");
        let too_long = SendError::TooLong { len: 2 << 30, longest: 1 << 30 };
        assert_eq!(take(2 << 30, 99).0, Err(too_long));
    }

    #[test]
    fn only_detours_change_the_order() {
        let network = Network { jitter: Duration::from_secs(9), ..slow() };
        for (reordering, expected) in [(0.0, false), (0.5, true)] {
            let network = Network { reordering, detour: Duration::from_secs(9), ..network };
            let (mut direction, mut rng) = (Direction::new(network), SplitMix64::new(0));
            let mut arrives =
                |now| direction.take(1, Time(now * SECOND), None, &mut rng).unwrap().0.1;
            let times: Vec<Time> = (0..100).map(&mut arrives).collect();
            assert_eq!(times.windows(2).any(|two| two[0] > two[1]), expected);
        }
    }
}
