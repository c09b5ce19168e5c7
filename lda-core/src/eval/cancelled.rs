//! Cancellation of an evaluation, as all of its threads see it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Remembers the first time that the work must not go on, so that a result with a part left out is never
/// taken for a whole one.
pub(crate) struct Cancelled<'a> {
    go_on: &'a (dyn Fn() -> bool + Sync),
    was_true: AtomicBool,
}

impl<'a> Cancelled<'a> {
    pub fn new(go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { go_on, was_true: AtomicBool::new(false) }
    }

    /// Asks. True from the first time on.
    pub fn now(&self) -> bool {
        if !self.was() && !(self.go_on)() {
            self.was_true.store(true, Ordering::Relaxed);
        }
        self.was()
    }

    /// Whether [`now`](Self::now) was true for any thread that has ended.
    pub fn was(&self) -> bool {
        self.was_true.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_remembered() {
        let asked = AtomicBool::new(false);
        // No once, then yes.
        let go_on = || asked.swap(true, Ordering::Relaxed);
        let cancelled = Cancelled::new(&go_on);
        assert!(!cancelled.was());
        assert!(cancelled.now() && cancelled.now() && cancelled.was());
    }
}
