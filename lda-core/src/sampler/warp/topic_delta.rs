//! Change of C_k by the moves of a block.

use super::row::chunk_mut;
use crate::sampler::Outcome;
use crate::simd::{LANES, Lanes};

/// Moves between topics. They are listed sixteen at a time and added up per list, so that there is no
/// branch per lane.
#[derive(Debug)]
pub(super) struct TopicDelta {
    /// Topics left and entered.
    left: Vec<u32>,
    entered: Vec<u32>,
    listed: usize,
    /// Change of C_k by the block, without the listed moves.
    gained: Vec<i32>,
    /// Number of moves in total.
    all: u64,
}

/// Number of listed moves at which they are added up.
const LISTED: usize = 1024;

impl TopicDelta {
    pub fn new(topics: usize) -> Self {
        Self {
            left: vec![0; LISTED + LANES],
            entered: vec![0; LISTED + LANES],
            listed: 0,
            gained: vec![0; topics],
            all: 0,
        }
    }

    /// Lists the lanes whose bit of `moved` is set.
    #[inline(always)]
    pub fn list<L: Lanes>(&mut self, l: L, moved: u16, from: L::U, to: L::U) {
        l.compress(moved, from, chunk_mut(&mut self.left, self.listed));
        l.compress(moved, to, chunk_mut(&mut self.entered, self.listed));
        self.listed += moved.count_ones() as usize;
        if self.listed > LISTED {
            self.add_up();
        }
    }

    #[inline(always)]
    fn add_up(&mut self) {
        let gained = &mut self.gained[..];
        for (&left, &entered) in self.left[..self.listed].iter().zip(&self.entered) {
            gained[left as usize] -= 1;
            gained[entered as usize] += 1;
        }
        self.all += self.listed as u64;
        self.listed = 0;
    }

    /// Adds the changes of C_k and the number of moves to `outcome`, and resets them.
    pub fn take(&mut self, outcome: &mut Outcome) {
        self.add_up();
        for (k, gained) in self.gained.iter_mut().enumerate() {
            if *gained != 0 {
                outcome.totals.push((k as u32, std::mem::take(gained)));
            }
        }
        outcome.changed += std::mem::take(&mut self.all);
    }
}
