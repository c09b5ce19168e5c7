//! Consecutive epochs.

/// Consecutive epochs whose topics a worker has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EpochRange {
    /// The first epoch.
    pub first: u32,
    /// Number of epochs; 0 if there are none.
    pub count: u32,
}

impl EpochRange {
    /// One epoch.
    pub fn one(epoch: u32) -> Self {
        Self { first: epoch, count: 1 }
    }

    /// The last epoch; `None` without epochs.
    pub fn last(self) -> Option<u32> {
        let more = self.count.checked_sub(1)?;
        Some(self.first.saturating_add(more))
    }

    /// Returns whether the epoch is among them.
    pub fn contains(self, epoch: u32) -> bool {
        self.last().is_some_and(|last| (self.first..=last).contains(&epoch))
    }

    /// These epochs and the one after them, or only this one if it is another.
    pub fn with(self, epoch: u32) -> Self {
        match self.last() {
            Some(last) if last.checked_add(1) == Some(epoch) => {
                Self { first: self.first, count: self.count + 1 }
            }
            _ => Self::one(epoch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_extended_by_the_next_epoch_only() {
        let none = EpochRange::default();
        assert_eq!((none.last(), none.contains(0)), (None, false));
        let one = none.with(4);
        assert_eq!((one, one.with(4)), (EpochRange::one(4), one));
        let two = one.with(5);
        assert_eq!((two.first, two.last()), (4, Some(5)));
        assert_eq!([3, 4, 5, 6].map(|epoch| two.contains(epoch)), [false, true, true, false]);
        assert_eq!(two.with(8), EpochRange::one(8));
        // A peer may send any numbers.
        let far = EpochRange { first: u32::MAX, count: u32::MAX };
        assert_eq!((far.last(), far.with(0)), (Some(u32::MAX), EpochRange::one(0)));
    }
}
