//! One token's proposals from the tables of its word.

use super::shared::SharedTable;
use super::words::{Mass, WordTable};
use crate::counts::TopicIndex;
use crate::random::Xoshiro256PlusPlus;
use crate::simd::Lanes;

/// q̃ of a token, its own share taken out.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Stale<'a, L, T> {
    pub l: L,
    pub table: WordTable<'a, T>,
    pub shared: &'a SharedTable,
    /// The topic under which the table counts the token.
    pub old: u32,
}

/// A topic drawn; with its mass in the word's table if that is where it came from.
pub(in crate::sampler) type Proposal = (u32, Option<Mass>);

impl<L: Lanes, T: TopicIndex> Stale<'_, L, T> {
    /// Draws that may be thrown back before [`draw`](Self::draw) has to be asked, which never does.
    pub const TRIES: usize = 8;

    /// Sum of all masses, the token's share among them.
    #[inline(always)]
    pub fn total(&self) -> f64 {
        self.table.total() + self.shared.total()
    }

    /// The topic at `u` of the total, or `None` where that is the token's own share.
    #[inline(always)]
    pub fn locate(&self, u: f64, rng: &mut Xoshiro256PlusPlus) -> Option<Proposal> {
        let word = self.table.total();
        if u >= word {
            return Some((self.shared.locate(u - word) as u32, None));
        }
        let (topic, mass) = self.table.locate(u);
        let thrown = topic == self.old && rng.next_f64() as f32 * mass.weight < mass.unit;
        (!thrown).then_some((topic, Some(mass)))
    }

    /// Sum of all masses without the token's share, by adding them up.
    #[cold]
    pub fn total_without(&self) -> f64 {
        self.table.total_without(self.l, self.old) + self.shared.total()
    }

    /// The topic at `u` of [`total_without`](Self::total_without), by walking the table: for tokens
    /// that are most of their own table.
    #[cold]
    pub fn locate_without(&self, u: f64) -> Proposal {
        let word = self.table.total_without(self.l, self.old);
        match self.table.locate_without(self.old, u) {
            Some((topic, mass)) if u < word => (topic, Some(mass)),
            _ => (self.shared.locate((u - word).max(0.0)) as u32, None),
        }
    }

    /// Mass of `topic`, the token's share taken out; `found` is what its word's table has, if known.
    #[inline(always)]
    pub fn mass(&self, topic: u32, found: Option<Mass>) -> f32 {
        let word = found.unwrap_or_else(|| self.table.mass(self.l, topic));
        let word = if topic == self.old { word.without() } else { word.weight };
        word + self.shared.weight(topic as usize)
    }
}
