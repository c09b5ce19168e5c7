//! Priors that change during a run: learnt from the counts, or by topic size.
//!
//! **α by topic size** (ZenLDA eq. 3) follows from C_k at the start of an epoch's first round, which every
//! node has, so nothing is sent.
//!
//! **Learnt priors** follow from all counts at the end of an epoch: workers send the master histograms of
//! C_d, servers those of C_w ([`WordHistogram`](crate::aggregate::WordHistogram)), and the master sends α
//! and β at the start of the next epoch. With a staleness, that epoch starts when the one before has ended
//! everywhere. Histograms are integers, so results do not depend on the division of the documents.
//!
//! Checkpoints have the priors of their epoch.

use lda_core::prior::Alpha;
use lda_core::train::{Learn, OptionsError, check_prior_updates};

/// α and β of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Priors {
    /// Document-topic prior.
    pub alpha: Alpha,
    /// Topic-word prior.
    pub beta: f64,
}

/// How priors follow from the counts during a run; default not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PriorUpdates {
    /// Smoothing, in tokens, of α by topic size.
    pub alpha_by_size: Option<f64>,
    /// Priors that are learnt.
    pub learn: Option<Learn>,
}

impl PriorUpdates {
    /// Checks the values, beside the first α.
    pub fn check(self, alpha: &Alpha) -> Result<(), OptionsError> {
        check_prior_updates(alpha, self.alpha_by_size, self.learn)
    }

    /// Returns true if priors never change.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// The priors to learn at the end of an epoch, if an update is due then.
    pub fn due_after(self, epoch: u32) -> Option<Learn> {
        self.learn.filter(|learn| epoch.checked_add(1).is_some_and(|next| learn.is_due(next)))
    }

    /// Returns true if β is learnt at the end of an epoch.
    pub fn learns_beta_after(self, epoch: u32) -> bool {
        self.due_after(epoch).is_some_and(|learn| learn.beta)
    }

    /// The first epoch from `epoch` to `last` at whose end priors are learnt; `last` if there is none. Later
    /// epochs do not start before it has ended.
    pub fn next_update(self, epoch: u32, last: u32) -> u32 {
        let Some(learn) = self.learn else { return last };
        // Updates are at most this many epochs apart.
        let most = learn.every.max(learn.burn_in.saturating_sub(epoch).saturating_add(1));
        let epochs = epoch..=last.min(epoch.saturating_add(most));
        epochs.into_iter().find(|&epoch| self.due_after(epoch).is_some()).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_due_before_the_epochs_of_one_process() {
        let learn = Learn { burn_in: 4, every: 3, ..Learn::default() };
        let updates = PriorUpdates { learn: Some(learn), ..PriorUpdates::default() };
        let due: Vec<u32> = (0..14).filter(|&epoch| updates.due_after(epoch).is_some()).collect();
        assert_eq!(due, [4, 7, 10, 13]);
        assert!(due.iter().all(|epoch| learn.is_due(epoch + 1)));
        let next = |epoch| updates.next_update(epoch, 12);
        assert_eq!([0, 4, 5, 7, 8, 11, 12].map(next), [4, 4, 7, 7, 10, 12, 12]);
        assert_eq!(PriorUpdates::default().next_update(3, 12), 12);
        assert_eq!(updates.due_after(u32::MAX), None);
    }
}
