//! Streaming XXH64, the checksum of zstd frames and of this library's files.
//!
//! Y. Collet, "xxHash fast digest algorithm", specification 0.1.1, with seed 0. Sixty lines
//! here save a dependency. It detects damage, not tampering: collisions are easy to construct.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// Bytes per round.
const STRIPE: usize = 32;

pub(crate) struct Xxh64 {
    lanes: [u64; 4],
    /// Bytes of an incomplete stripe.
    rest: [u8; STRIPE],
    rest_len: usize,
    total: u64,
}

impl Xxh64 {
    pub(crate) fn new() -> Self {
        let lanes = [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()];
        Self { lanes, rest: [0; STRIPE], rest_len: 0, total: 0 }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.rest_len > 0 {
            let taken = bytes.len().min(STRIPE - self.rest_len);
            self.rest[self.rest_len..self.rest_len + taken].copy_from_slice(&bytes[..taken]);
            self.rest_len += taken;
            bytes = &bytes[taken..];
            if self.rest_len < STRIPE {
                return;
            }
            stripe(&mut self.lanes, &self.rest);
        }
        let (stripes, rest) = bytes.as_chunks::<STRIPE>();
        for bytes in stripes {
            stripe(&mut self.lanes, bytes);
        }
        self.rest[..rest.len()].copy_from_slice(rest);
        self.rest_len = rest.len();
    }

    pub(crate) fn digest(&self) -> u64 {
        let [a, b, c, d] = self.lanes;
        let mut hash = if self.total < STRIPE as u64 {
            P5
        } else {
            let sum = a.rotate_left(1).wrapping_add(b.rotate_left(7));
            let sum = sum.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
            self.lanes
                .iter()
                .fold(sum, |hash, &lane| (hash ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4))
        };
        hash = hash.wrapping_add(self.total);
        let (eights, rest) = self.rest[..self.rest_len].as_chunks::<8>();
        for &bytes in eights {
            hash ^= round(0, u64::from_le_bytes(bytes));
            hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        }
        let (fours, rest) = rest.as_chunks::<4>();
        for &bytes in fours {
            hash ^= u64::from(u32::from_le_bytes(bytes)).wrapping_mul(P1);
            hash = hash.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        }
        for &byte in rest {
            hash ^= u64::from(byte).wrapping_mul(P5);
            hash = hash.rotate_left(11).wrapping_mul(P1);
        }
        hash = (hash ^ hash >> 33).wrapping_mul(P2);
        hash = (hash ^ hash >> 29).wrapping_mul(P3);
        hash ^ hash >> 32
    }
}

fn stripe(lanes: &mut [u64; 4], bytes: &[u8; STRIPE]) {
    for (lane, &word) in lanes.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *lane = round(*lane, u64::from_le_bytes(word));
    }
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], at_once: usize) -> u64 {
        let mut hash = Xxh64::new();
        bytes.chunks(at_once).for_each(|part| hash.update(part));
        hash.digest()
    }

    #[test]
    fn published_values() {
        assert_eq!(of(b"", 1), 0xef46_db37_51d8_e999);
        assert_eq!(of(b"a", 1), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(of(b"abc", 1), 0x44bc_2cf5_ad77_0999);
    }

    #[test]
    fn chunking_does_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in [0, 31, 32, 33, 63, 64, 255] {
            let whole = of(&bytes[..len], 256);
            for at_once in [1, 7, 32, 40] {
                assert_eq!(of(&bytes[..len], at_once), whole, "{len} by {at_once}");
            }
        }
    }
}
