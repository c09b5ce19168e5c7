//! The words' part of the log joint.

use std::collections::BTreeMap;

use lda_core::special::LnGammaRatio;

use super::Aggregate;
use crate::wire::take;

/// Σ ln Γ(C_wk + β) − ln Γ(β) over the rows of each slice. The parts are added up in the order of
/// slices, so that the bits of the sum do not depend on which server has which slice.
///
/// ```text
/// number of slices (2 bytes), and for each its number (2) and its part (8)
/// ```
#[derive(Clone, Debug)]
pub struct LogJoint {
    ratio: LnGammaRatio,
    parts: BTreeMap<u16, f64>,
}

impl LogJoint {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "log-joint";

    /// An empty sum for this β.
    pub fn new(beta: f64) -> Self {
        Self { ratio: LnGammaRatio::new(beta), parts: BTreeMap::new() }
    }

    /// Sum of all parts, in the order of slices.
    pub fn sum(&self) -> f64 {
        self.parts.values().sum()
    }
}

impl Aggregate for LogJoint {
    fn add_row(&mut self, slice: u16, _: u32, row: &[(u32, u32)]) {
        let of_row = row.iter().map(|entry| self.ratio.get(entry.1.into())).sum::<f64>();
        *self.parts.entry(slice).or_default() += of_row;
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend((self.parts.len() as u16).to_le_bytes());
        for (number, part) in &self.parts {
            to.extend(number.to_le_bytes());
            to.extend(part.to_le_bytes());
        }
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        for _ in 0..u16::from_le_bytes(take(from)?) {
            let number = u16::from_le_bytes(take(from)?);
            let part = f64::from_le_bytes(take(from)?);
            // Every slice is on one server: a second part is an error.
            if self.parts.insert(number, part).is_some() {
                return None;
            }
        }
        Some(())
    }
}
