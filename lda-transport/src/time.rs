//! Time of state machines: a number that their driver passes to them.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since an origin that the driver chooses, for example the start of a process or a
/// simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// A time that is never reached.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates at [`Time::NEVER`].
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    /// Saturates at [`Time::ZERO`].
    fn sub(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.0 as f64 * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate() {
        let second = Duration::from_secs(1);
        assert_eq!(Time::ZERO + second, Time(1_000_000_000));
        assert_eq!((Time(5) - second, Time::NEVER + second), (Time::ZERO, Time::NEVER));
        assert_eq!(Time(5) + Duration::MAX, Time::NEVER);
        assert_eq!(
            (Time(7).since(Time(3)), Time(3).since(Time(7))),
            (Duration::from_nanos(4), Duration::ZERO)
        );
        assert_eq!(Time(1_500_000_000).to_string(), "1.500000 s");
    }
}
