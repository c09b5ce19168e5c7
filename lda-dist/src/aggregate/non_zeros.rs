//! Number of non-zero counts.

use super::Aggregate;
use crate::wire::take;

/// Number of counts above 0 of all rows, encoded in 8 bytes. Memory, bytes and time grow with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeros(u64);

impl NonZeros {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "non-zeros";

    /// The number of non-zeros.
    pub fn count(self) -> u64 {
        self.0
    }
}

impl Aggregate for NonZeros {
    fn add_row(&mut self, _: u16, _: u32, row: &[(u32, u32)]) {
        self.0 += row.len() as u64;
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.0.to_le_bytes());
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        self.0 = self.0.checked_add(u64::from_le_bytes(take(from)?))?;
        Some(())
    }
}
