//! Compares every path with the scalar one, bit for bit.

use proptest::prelude::*;

use super::*;

/// Runs all operations on one input and returns the bits of their results.
struct Everything<'a> {
    a: [f32; LANES],
    b: [f32; LANES],
    x: [u32; LANES],
    y: [u32; LANES],
    mask: u16,
    table: &'a [f32],
}

impl SimdKernel for Everything<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Vec<u32> {
        let mut out = Vec::new();
        let (a, b) = (l.load_f(&self.a), l.load_f(&self.b));
        let (x, y) = (l.load_u(&self.x), l.load_u(&self.y));
        let table_u: Vec<u32> = self.table.iter().map(|f| f.to_bits()).collect();
        let mut target = table_u.clone();
        l.scatter_u(&mut target, x, y);
        out.extend(&target);
        for f in [
            l.splat_f(self.a[3]),
            l.add_f(a, b),
            l.sub_f(a, b),
            l.mul_f(a, b),
            l.div_f(a, b),
            l.to_f(x),
            l.select_f(self.mask, a, b),
            l.gather_f(self.table, x),
            l.prefix(a),
            l.load_f64(&self.a.map(|a| f64::from(a) * 1.000_000_1)),
        ] {
            let mut buffer = [0.0; LANES];
            l.store_f(&mut buffer, f);
            out.extend(buffer.map(f32::to_bits));
        }
        let halves = self.x.map(|x| x as u16);
        let packed: [u32; 8] =
            std::array::from_fn(|i| u32::from(halves[2 * i]) | u32::from(halves[2 * i + 1]) << 16);
        for u in [
            l.splat_u(self.x[5]),
            l.add_u(x, y),
            l.sub_u(x, y),
            l.and_u(x, y),
            l.or_u(x, y),
            l.xor_u(x, y),
            l.shl_u::<7>(x),
            l.shr_u::<11>(x),
            l.min_u(x, y),
            l.truncate(l.mul_f(a, l.splat_f(1000.0))),
            l.select_u(self.mask, x, y),
            l.gather_u(&table_u, x),
            l.load_u16(&packed),
            l.load_halves(&halves),
        ] {
            let mut buffer = [0; LANES];
            l.store_u(&mut buffer, u);
            out.extend(buffer);
        }
        let pairs: Vec<[u16; 2]> = table_u.iter().map(|&x| [x as u16, (x >> 16) as u16]).collect();
        let mut target = pairs.clone();
        l.scatter_pairs(&mut target, x, y);
        let sixteen: [[u16; 2]; LANES] = std::array::from_fn(|i| [halves[i], i as u16]);
        let mut copied = [[0; 2]; LANES];
        l.store_pairs(&mut copied, x);
        target.extend(copied);
        out.extend(target.into_iter().flatten().map(u32::from));
        let twos: Vec<[u32; 2]> = table_u.iter().map(|&x| [x, !x]).collect();
        let (first, second) = l.gather_both(&twos, x);
        for u in
            [l.mul_high(x, y), l.load_pairs(&sixteen), l.gather_pairs(&pairs, x), first, second]
        {
            let mut buffer = [0; LANES];
            l.store_u(&mut buffer, u);
            out.extend(buffer);
        }
        for (lane, &by) in halves.iter().enumerate() {
            let mut changed = packed;
            l.add_u16_at(&mut changed, lane, by);
            out.extend(changed);
        }
        let mut front = [0; LANES];
        l.compress(self.mask, x, &mut front);
        out.extend(&front[..self.mask.count_ones() as usize]);
        let mut stored = [0u16; LANES];
        l.store_halves(&mut stored, x);
        out.extend(stored.map(u32::from));
        out.push(u32::from(l.gt_f(a, b)));
        out.push(u32::from(l.eq_u(x, y)));
        l.prefetch(self.table, 0);
        out
    }
}

proptest! {
    #[test]
    fn paths_agree_bit_for_bit(
        a in prop::array::uniform16(0.0f32..1e4),
        b in prop::array::uniform16(1e-6f32..1e4),
        x in prop::array::uniform16(prop_oneof![0u32..40, any::<u32>()]),
        y in prop::array::uniform16(prop_oneof![0u32..40, any::<u32>()]),
        mask in any::<u16>(),
        table in prop::collection::vec(0.0f32..1.0, 1..40),
    ) {
        let run = |isa: Isa| isa.run(Everything { a, b, x, y, mask, table: &table });
        let expected = run(Isa::Scalar);
        for isa in Isa::available() {
            prop_assert_eq!(&run(isa), &expected, "{}", isa);
        }
    }
}

#[test]
fn prefix_adds_every_lane_below() {
    let x: [f32; LANES] = std::array::from_fn(|i| (1 << i) as f32);
    let prefix = Scalar.prefix(x);
    for (i, sum) in prefix.into_iter().enumerate() {
        assert_eq!(sum, ((2u32 << i) - 1) as f32);
    }
}
