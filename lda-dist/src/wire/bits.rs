//! Bit stream: numbers of any width in bytes, lowest bit first.

/// Number of valid bits of a window at any position: 64 less up to 7 bits of the first byte.
pub(super) const WINDOW: u32 = 57;

/// Appends bits to bytes.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    to: &'a mut Vec<u8>,
    /// Bits that are not yet in `to`.
    pending: u64,
    /// Number of bits in `pending`. INVARIANT: below 64.
    len: u32,
}

impl<'a> Writer<'a> {
    /// A writer that appends whole bytes to `to`.
    pub fn new(to: &'a mut Vec<u8>) -> Self {
        Self { to, pending: 0, len: 0 }
    }

    /// Appends the lowest `bits` bits of a number that has no higher bits set.
    #[inline(always)]
    pub fn put(&mut self, number: u64, bits: u32) {
        debug_assert!(bits <= 64 && (bits == 64 || number >> bits == 0), "{number} in {bits} bits");
        self.pending |= number << self.len;
        let len = self.len + bits;
        if len < 64 {
            self.len = len;
            return;
        }
        self.to.extend_from_slice(&self.pending.to_le_bytes());
        // The bits that did not fit. A shift by 64 overflows and means that all of them fitted.
        self.pending = number.checked_shr(64 - self.len).unwrap_or(0);
        self.len = len - 64;
    }

    /// Appends a number in unary: that many zeros and a one.
    #[inline(always)]
    pub fn unary(&mut self, mut zeros: u64) {
        while zeros >= 63 {
            self.put(0, 63);
            zeros -= 63;
        }
        self.put(1 << zeros, zeros as u32 + 1);
    }

    /// Pads the last byte with zeros and writes it.
    pub fn finish(self) {
        let bytes = self.len.div_ceil(8) as usize;
        self.to.extend_from_slice(&self.pending.to_le_bytes()[..bytes]);
    }
}

/// Reads bits at any position. Beyond the end all bits are 0, so that callers check the length once
/// after a row and not per number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    /// Number of bits.
    pub fn len(self) -> u64 {
        self.0.len() as u64 * 8
    }

    /// The bits from position `at` on, of which at least [`WINDOW`] are valid.
    #[inline(always)]
    pub fn window(self, at: u64) -> u64 {
        let byte = usize::try_from(at / 8).unwrap_or(usize::MAX);
        let word = match self.0.get(byte..).and_then(|rest| rest.first_chunk()) {
            Some(eight) => u64::from_le_bytes(*eight),
            None => self.last(byte),
        };
        word >> (at % 8)
    }

    /// The last, incomplete word.
    #[cold]
    fn last(self, byte: usize) -> u64 {
        let rest = self.0.get(byte..).unwrap_or_default();
        rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lowest(number: u64, bits: u32) -> u64 {
        number & 1u64.checked_shl(bits).map_or(u64::MAX, |bound| bound - 1)
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((any::<u64>(), 0..=64u32), 0..50)) {
            let mut bytes = vec![7];
            let mut writer = Writer::new(&mut bytes);
            for &(number, bits) in &numbers {
                writer.put(lowest(number, bits), bits);
            }
            writer.finish();
            let total: u32 = numbers.iter().map(|number| number.1).sum();
            prop_assert_eq!(bytes.len(), 1 + total.div_ceil(8) as usize);
            let (reader, mut at) = (Reader(&bytes), 8);
            for (number, bits) in numbers {
                let (low, high) = (bits.min(32), bits.saturating_sub(32));
                let read = lowest(reader.window(at), low)
                    | lowest(reader.window(at + u64::from(low)), high) << (low % 64);
                prop_assert_eq!(read, lowest(number, bits));
                at += u64::from(bits);
            }
        }
    }

    #[test]
    fn unary_numbers_end_with_a_single_one() {
        for zeros in [0, 1, 62, 63, 64, 126, 127, 200] {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            writer.unary(zeros);
            writer.finish();
            let ones: Vec<u64> = (0..bytes.len() as u64 * 8)
                .filter(|&at| Reader(&bytes).window(at) & 1 == 1)
                .collect();
            assert_eq!(ones, [zeros]);
        }
    }

    #[test]
    fn bits_beyond_the_end_are_zero() {
        let reader = Reader(&[0xff; 9]);
        assert_eq!(reader.len(), 72);
        assert_eq!(reader.window(0), u64::MAX);
        assert_eq!(reader.window(68), 0xf);
        assert_eq!((reader.window(72), reader.window(u64::MAX)), (0, 0));
        assert_eq!(reader.window(15).trailing_ones(), WINDOW);
    }
}
