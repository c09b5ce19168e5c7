//! One token's proposals from the tables of its word, without the token itself.
//!
//! The proposal distribution is
//!
//! ```text
//! q̃(k) = f_k (C̃_wk + β) / (C̃_k + Vβ)                 for all topics but the token's own o
//! q̃(o) = f_o (C̃_wo − 1 + β) / (C̃_o + Vβ) · R          R = (C_o + Vβ) / (C_o − 1 + Vβ)
//! ```
//!
//! and drawn by ZenLDA's remedies: a draw from the tables is accepted with probability 1/R if it is
//! another topic, 1 − 1/C̃_wo if it is o from the word's own table, 1 if it is o from the shared
//! one; otherwise it is repeated. R takes the token out of the denominator with the current C_o,
//! which differs from the table's by the few tokens that have moved since.

use super::shared::SharedTable;
use super::words::{Mass, WordTable};
use crate::counts::TopicIndex;
use crate::simd::Lanes;

/// q̃ of a token.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Stale<'a, L, T> {
    pub l: L,
    pub table: WordTable<'a, T>,
    pub shared: &'a SharedTable,
    /// The topic under which the table counts the token.
    pub old: u32,
    /// 1/R.
    pub keep: f32,
}

/// A drawn topic, with its mass in the word's table if it was drawn from there.
pub(in crate::sampler) type Proposal = (u32, Option<Mass>);

impl<L: Lanes, T: TopicIndex> Stale<'_, L, T> {
    /// Number of rejected draws after which [`locate_without`](Self::locate_without) is called,
    /// which never rejects.
    pub const TRIES: usize = 8;

    /// Sum of all masses, including the token's.
    #[inline(always)]
    pub fn total(&self) -> f64 {
        self.table.total() + self.shared.total()
    }

    /// The topic at `u` of the total, or `None` if the uniform `v` rejects it.
    #[inline(always)]
    pub fn locate(&self, u: f64, v: f32) -> Option<Proposal> {
        let word = self.table.total();
        let (topic, found) = if u < word {
            let (topic, mass) = self.table.locate(u);
            (topic, Some(mass))
        } else {
            (self.shared.locate(u - word) as u32, None)
        };
        let kept = match found {
            _ if topic != self.old => v < self.keep,
            Some(mass) => v * mass.weight >= mass.unit,
            None => true,
        };
        kept.then_some((topic, found))
    }

    /// Sum of q̃, by summation over the topics.
    #[cold]
    pub fn total_without(&self) -> f64 {
        let others = self.table.total_but(self.old) + self.shared.total_but(self.old as usize);
        others + f64::from(self.mass(self.old, None))
    }

    /// The topic at `u` of [`total_without`](Self::total_without), by a scan of the tables: for
    /// tokens that are most of their word or their topic.
    #[cold]
    pub fn locate_without(&self, u: f64) -> Proposal {
        let own = f64::from(self.mass(self.old, None));
        let word = self.table.total_but(self.old);
        let shared = || self.shared.locate_but(self.old as usize, u - own - word) as u32;
        match () {
            () if u < own => (self.old, None),
            () if u < own + word => match self.table.locate_but(self.old, u - own) {
                Some((topic, mass)) => (topic, Some(mass)),
                None => (shared(), None),
            },
            () => (shared(), None),
        }
    }

    /// q̃ of `topic`; `found` is its mass in the word's table, if known.
    #[inline(always)]
    pub fn mass(&self, topic: u32, found: Option<Mass>) -> f32 {
        let word = found.unwrap_or_else(|| self.table.mass(self.l, topic));
        let shared = self.shared.weight(topic as usize);
        if topic == self.old { (word.without() + shared) / self.keep } else { word.weight + shared }
    }
}
