//! Links, and what befalls a frame on one.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::time::Time;
use crate::transport::{NodeId, SendError};

/// What a link is like, in one direction. Shares of frames are from 0 to 1.
///
/// As it is by default it keeps the contract of a [`Transport`](crate::Transport). Every share but
/// [`full`](Self::full) breaks it, as a transport over datagrams would.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// How long a frame takes when it has left its sender, at least.
    pub latency: Duration,
    /// How much longer at most. Frames still arrive in order.
    pub jitter: Duration,
    /// Bytes a second; 0 is as 1. A frame leaves after the one before it.
    pub bandwidth: u64,
    /// Bytes that may wait to leave, at most; one frame alone may be longer. Then the sender feels
    /// [`Full`](SendError::Full), and hears of room when half of them have left.
    pub queue_bytes: usize,
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Frames that are lost, without a word.
    pub loss: f64,
    /// Frames that arrive twice, the second one by a [detour](Self::detour).
    pub duplication: f64,
    /// Frames that go by a detour, so that later ones overtake them.
    pub reordering: f64,
    /// How much longer a detour takes, at most; one in eight is ten times as long.
    pub detour: Duration,
    /// Frames that are not lost when their link is, and arrive late, if there is one again.
    pub late_delivery: f64,
    /// Frames that are not taken though there is room, as of a transport whose room is others' too.
    pub full: f64,
    /// How long it takes, at most, until a node hears that a link is cut or a peer has crashed. What it sends
    /// until then is taken, and lost.
    pub detection_delay: Duration,
}

impl Default for Network {
    /// 100 µs, 1 GB/s and 1 MiB of queue; nothing goes wrong, and what does by hand is heard of at once.
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

/// A frame on its way.
#[derive(Debug)]
pub(super) struct FrameInFlight {
    pub from: NodeId,
    pub to: NodeId,
    pub frame: Frame,
    /// The link's epoch and the lives of both ends, as its sender knows them.
    pub epoch: u64,
    pub generations: [u64; 2],
    pub course: FrameFate,
}

/// What was drawn for a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameFate {
    /// Of all frames on this way.
    pub number: u64,
    pub lost: bool,
    /// Whether the way was silent when it was sent.
    pub silenced: bool,
    pub ghost: bool,
    pub copy: bool,
}

/// Course and arrival of a frame, and of its second copy.
pub(super) type FrameFates = ((FrameFate, Time), Option<(FrameFate, Time)>);

/// Both directions between two nodes. Places 0 and 1 are the smaller and the larger number.
#[derive(Debug)]
pub(super) struct Link {
    pub cut: bool,
    /// Changes with each cut, so that the end of one does not mend another.
    pub serial: u64,
    pub up: bool,
    /// Changes when it comes up, and when it goes down.
    pub epoch: u64,
    /// Of both ends, when it came up.
    pub generations: [u64; 2],
    /// By the sender's place.
    pub ways: [Way; 2],
}

impl Link {
    pub fn new(network: Network) -> Self {
        let ways = [Way::new(network), Way::new(network)];
        Self { cut: false, serial: 0, up: false, epoch: 0, generations: [0; 2], ways }
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct Way {
    pub network: Network,
    pub silent: bool,
    /// As that of the link, of silences.
    pub serial: u64,
    /// Of which epoch the sender knows the link to be up, which may have ended.
    pub told: Option<u64>,
    /// The newest frame that has arrived.
    pub newest: u64,
    sent: u64,
    /// When the last frame will have left, and arrived.
    leaves: Time,
    arrives: Time,
    /// What has not left: until when, and its bytes.
    queue: VecDeque<(Time, usize)>,
    queued: usize,
}

impl Way {
    fn new(network: Network) -> Self {
        Self {
            network,
            silent: false,
            serial: 0,
            told: None,
            newest: 0,
            sent: 0,
            leaves: Time::ZERO,
            arrives: Time::ZERO,
            queue: VecDeque::new(),
            queued: 0,
        }
    }

    /// Which of all frames the next one is.
    pub fn next(&self) -> u64 {
        self.sent + 1
    }

    /// Forgets what was underway; it is a new link.
    pub fn renew(&mut self) {
        self.queue.clear();
        (self.queued, self.leaves, self.arrives) = (0, Time::ZERO, Time::ZERO);
    }

    /// Takes a frame, or does not; where a network is given, that is what befalls this one.
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
        let mut course = |copy| FrameFate {
            number: self.sent,
            lost: rng.chance(network.loss),
            silenced: self.silent,
            ghost: rng.chance(network.late_delivery),
            copy,
        };
        Ok(((course(false), arrives), second.map(|arrives| (course(true), arrives))))
    }

    /// When half of the queue's bytes have left. Not at once: there is no room now.
    pub fn room(&self, now: Time) -> Time {
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
        let (mut way, mut rng) = (Way::new(slow()), SplitMix64::new(0));
        let mut arrives = |len, now| way.take(len, Time(now * SECOND), None, &mut rng).unwrap().0.1;
        assert_eq!(arrives(50, 0), Time(6 * SECOND));
        assert_eq!(arrives(30, 2), Time(9 * SECOND));
        assert_eq!(arrives(10, 20), Time(22 * SECOND));
    }

    #[test]
    fn a_queue_is_full_until_half_of_it_has_left() {
        let (mut way, mut rng) = (Way::new(slow()), SplitMix64::new(0));
        let mut take = |len, now| {
            let taken = way.take(len, Time(now * SECOND), None, &mut rng).map(|_| ());
            (taken, way.room(Time(now * SECOND)))
        };
        assert_eq!(take(300, 0).0, Ok(()), "one alone may be longer");
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
            let (mut way, mut rng) = (Way::new(network), SplitMix64::new(0));
            let mut arrives = |now| way.take(1, Time(now * SECOND), None, &mut rng).unwrap().0.1;
            let times: Vec<Time> = (0..100).map(&mut arrives).collect();
            assert_eq!(times.windows(2).any(|two| two[0] > two[1]), expected);
        }
    }
}
