//! Special functions in f64: ln Γ, ψ, and the ln Γ ratio in log likelihoods.
//!
//! Each function states its error as absolute plus relative, because all three cross zero, where a
//! relative error alone is meaningless. The bounds are tested against 30-digit values. Logarithms
//! are the platform's, so values may differ in the last bits between machines; no random draw
//! depends on them.

/// Above this argument the Stirling series are used; the error of 7 terms is 3e-17 (ln Γ) and 5e-17
/// (ψ).
const LARGE: f64 = 10.0;

const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

/// ln Γ(2 + z) = Σ_k c_k z^k: c_1 = 1 − γ, c_k = (−1)^k (ζ(k) − 1) / k. At |z| ≤ ½ the error of
/// 26 terms is 2e-17.
#[expect(clippy::excessive_precision, reason = "the digits as computed, rounded by the compiler")]
const AROUND_TWO: [f64; 26] = [
    0.422_784_335_098_467_139,
    0.322_467_033_424_113_218,
    -0.067_352_301_053_198_095_1,
    0.020_580_808_427_784_547_9,
    -0.007_385_551_028_673_985_27,
    0.002_890_510_330_741_523_29,
    -0.001_192_753_911_703_260_98,
    5.096_695_247_430_424_22e-4,
    -2.231_547_584_535_793_80e-4,
    9.945_751_278_180_853_37e-5,
    -4.492_623_673_813_314_17e-5,
    2.050_721_277_567_069_16e-5,
    -9.439_488_275_268_395_90e-6,
    4.374_866_789_907_487_80e-6,
    -2.039_215_753_801_366_24e-6,
    9.551_412_130_407_419_83e-7,
    -4.492_469_198_764_566_04e-7,
    2.120_718_480_555_466_59e-7,
    -1.004_322_482_396_809_96e-7,
    4.769_810_169_363_980_57e-8,
    -2.271_109_460_894_316_49e-8,
    1.083_865_921_489_695_41e-8,
    -5.183_475_041_970_046_66e-9,
    2.483_674_543_802_478_32e-9,
    -1.192_140_140_586_091_21e-9,
    5.731_367_241_678_862_01e-10,
];

/// ln Γ(x) for x > 0.
///
/// Error at most 1e-15 relatively plus 1e-15 absolutely; near 1 and 2, where it is zero, the
/// relative error alone is below 2e-15. Γ(0) is infinite; NaN below 0, where it is not needed.
///
/// Method: a power series around 2 up to x = 2.5, down to it by Γ(x+1) = xΓ(x) up to 10, Stirling's
/// series above.
///
/// ```
/// use lda_core::special::ln_gamma;
///
/// assert!((ln_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-14);
/// assert_eq!(ln_gamma(0.0), f64::INFINITY);
/// ```
pub fn ln_gamma(x: f64) -> f64 {
    if x >= LARGE {
        if x == f64::INFINITY {
            return x;
        }
        // Not (x - 1/2) ln x - x, which overflows for smaller x and rounds twice.
        return (x - 0.5) * (x.ln() - 1.0) + (HALF_LN_TAU - 0.5) + stirling(x);
    }
    if x > 2.5 {
        let mut z = x;
        let mut product = 1.0;
        while z > 2.5 {
            z -= 1.0;
            product *= z;
        }
        return around_two(z - 2.0) + product.ln();
    }
    if x >= 1.5 {
        around_two(x - 2.0)
    } else if x >= 0.5 {
        around_two(x - 1.0) - (x - 1.0).ln_1p()
    } else if x >= 0.0 {
        around_two(x) - x.ln_1p() - x.ln()
    } else {
        f64::NAN
    }
}

/// ln Γ(2 + z), |z| ≤ ½.
fn around_two(z: f64) -> f64 {
    z * AROUND_TWO.iter().rev().fold(0.0, |sum, c| sum * z + c)
}

/// Remainder of Stirling's formula: ln Γ(x) − ((x − ½) ln x − x + ½ ln 2π), x ≥ 10.
fn stirling(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    let terms = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    terms.iter().rev().fold(0.0, |sum, c| sum * y + c) / x
}

/// ψ(x) = d/dx ln Γ(x) for x > 0.
///
/// Error at most 1e-15 relatively plus 2e-15 absolutely (its root is at 1.4616…). Negative infinity
/// at 0; NaN below, where it is not needed.
///
/// Method: ψ(x) = ψ(x+1) − 1/x up to 10, the asymptotic series above.
///
/// ```
/// use lda_core::special::digamma;
///
/// assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
/// ```
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    let mut x = x;
    let mut below = 0.0;
    while x < LARGE {
        below += 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let terms = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32_760.0,
        1.0 / 12.0,
    ];
    let series = terms.iter().rev().fold(0.0, |sum, c| sum * y + c) * y;
    x.ln() - 0.5 / x - series - below
}

/// exp(ψ(x) − shift) for x > 0 in single precision, without branches or calls, so that the compiler
/// vectorises a loop over many x; two divisions each.
///
/// Error at most (8 + 1/x) · 3e-7 relatively, for results up to 1; 0 below 1e-37.
///
/// Method: ψ(x) = ψ(x+4) − Σ_{i<4} 1/(x+i). The exp of the first term is a series of odd powers of
/// y = x + 3½ (y + 1/(24 y) − …; the error of 4 terms is 3e-8). The sum is one fraction in
/// u = x² + 3x, since the terms i and 3 − i combine.
#[inline(always)]
pub(crate) fn exp_digamma(x: f32, shift: f32) -> f32 {
    let y = x + 3.5;
    let z = 1.0 / (y * y);
    let terms = -5_509_121.0 / 1_393_459_200.0;
    let terms = terms * z + 10_313.0 / 2_903_040.0;
    let terms = terms * z - 37.0 / 5760.0;
    let terms = terms * z + 1.0 / 24.0;
    let lifted = y + y * z * terms;
    // Above this bound the sum is negligible and its parts would overflow.
    let x = x.min(1e9);
    let u = x * x + 3.0 * x;
    let sum = (2.0 * x + 3.0) * (2.0 * u + 2.0) / (u * (u + 2.0));
    lifted * exp_below(-sum - shift)
}

/// exp(z) for z ≤ 0, to 3e-7 relatively; 0 below −87.
///
/// Method: z = k ln 2 + r with |r| ≤ ½ ln 2; Taylor series in r, and k added to the exponent bits.
#[inline(always)]
fn exp_below(z: f32) -> f32 {
    // 1½ · 2^23: the sum with a number has the nearest integer in its last mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the first ends in zero bits, so that k times it is exact.
    const HIGH: f32 = 0.693_145_75;
    const LOW: f32 = 1.428_606_8e-6;
    let within = z.max(-87.0);
    let rounded = within * std::f32::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    let r = (within - k * HIGH) - k * LOW;
    let mut series = 0.0;
    for factorial in [5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        series = series * r + 1.0 / factorial;
    }
    let exp = f32::from_bits(series.to_bits().wrapping_add(rounded.to_bits() << 23));
    if z < -87.0 { 0.0 } else { exp }
}

/// ln Γ(a + n) − ln Γ(a) = Σ_{j<n} ln(a + j), for a > 0: the logarithm of the rising factorial.
///
/// Error at most 2e-15 relatively plus 2e-15 absolutely for a in [1e-12, 1e12] and n up to 1e15.
/// The difference of two [`ln_gamma`] would lose all digits if n is small against a.
///
/// Method: up to 24 factors are multiplied; above that the difference of Stirling's formulas is
/// simplified to (a − ½) ln(1 + n/a) + n (ln(a + n) − 1), after factors have lifted a to 10. NaN
/// for a < 0 and NaN; negative infinity at a = 0 unless n = 0, since Γ(0) is infinite.
///
/// ```
/// use lda_core::special::ln_rising;
///
/// assert!((ln_rising(0.5, 3) - (0.5_f64 * 1.5 * 2.5).ln()).abs() < 1e-15);
/// assert_eq!(ln_rising(0.5, 0), 0.0);
/// ```
pub fn ln_rising(a: f64, n: u64) -> f64 {
    if a.is_nan() || a < 0.0 {
        return f64::NAN;
    }
    if n <= 24 {
        return ln_product(a, n);
    }
    let lift = if a < LARGE { (LARGE - a).ceil() as u64 } else { 0 };
    let (x, steps) = (a + lift as f64, (n - lift) as f64);
    let rest = (x - 0.5) * (steps / x).ln_1p() + steps * ((x + steps).ln() - 1.0);
    ln_product(a, lift) + rest + (stirling(x + steps) - stirling(x))
}

/// ln Π_{j<n} (a + j), for small n.
fn ln_product(a: f64, n: u64) -> f64 {
    let mut sum = 0.0;
    let mut product = 1.0_f64;
    for j in 0..n {
        let factor = a + j as f64;
        // The product is kept finite and normal; one logarithm suffices except for extreme a.
        if product > 1e200 || factor > 1e100 {
            sum += product.ln();
            product = 1.0;
        }
        product *= factor;
    }
    sum + product.ln()
}

/// [`ln_rising`] for one a and many n, with a table for small n.
///
/// A log likelihood evaluates it for every count of a matrix, and nearly all counts are small. 8
/// bytes per entry; the default of [`CACHED`](Self::CACHED) entries takes 32 KiB and 0.2 ms to fill
/// (50 ns per entry; a look-up takes 1 ns).
///
/// ```
/// use lda_core::special::{LnGammaRatio, ln_rising};
///
/// let ratio = LnGammaRatio::new(0.01);
/// for n in [0, 1, 7, 5_000_000] {
///     assert!((ratio.get(n) - ln_rising(0.01, n)).abs() <= 1e-14 * ratio.get(n).abs() + 1e-14);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LnGammaRatio {
    a: f64,
    cached: Vec<f64>,
}

impl LnGammaRatio {
    /// Table entries of [`new`](Self::new).
    pub const CACHED: usize = 4096;

    /// Ratio at `a` with a table of [`CACHED`](Self::CACHED) entries.
    pub fn new(a: f64) -> Self {
        Self::with_cache(a, Self::CACHED)
    }

    /// Ratio at `a` with a table for n below `cached`. With many different `a`, as in an asymmetric
    /// prior, short tables stay in the CPU cache.
    pub fn with_cache(a: f64, cached: usize) -> Self {
        Self { a, cached: (0..cached as u64).map(|n| ln_rising(a, n)).collect() }
    }

    /// The parameter a.
    pub fn a(&self) -> f64 {
        self.a
    }

    /// ln Γ(a + n) − ln Γ(a); the same bits as [`ln_rising`].
    #[inline]
    pub fn get(&self, n: u64) -> f64 {
        let cached = usize::try_from(n).ok().and_then(|n| self.cached.get(n));
        cached.copied().unwrap_or_else(|| ln_rising(self.a, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::function::gamma as peer;

    /// x, ln Γ(x), ψ(x), computed with 40 digits.
    const GOLDEN: [(f64, f64, f64); 35] = [
        (1e-300, 690.775_527_898_213_7, -9.999_999_999_999_999e299),
        (1e-08, 18.420_680_738_180_21, -100_000_000.577_215_64),
        (0.001, 6.907_178_885_383_853, -1_000.575_571_931_810_3),
        (0.01, 4.599_479_878_042_022, -100.560_885_457_868_68),
        (0.1, 2.252_712_651_734_206, -10.423_754_940_411_076),
        (0.3, 1.095_797_994_818_075_6, -3.502_524_222_200_133),
        (0.499_99, 0.572_384_578_271_703_2, -1.963_559_374_884_885),
        (0.5, 0.572_364_942_924_700_1, -1.963_510_026_021_423_5),
        (0.75, 0.203_280_951_431_295_38, -1.085_860_879_786_472_2),
        (0.999_999, 5.772_164_873_855_652e-07, -0.577_217_309_836_801_9),
        (1.000_000_1, -5.772_155_829_918_507e-08, -0.577_215_500_408_138_1),
        (1.25, -0.098_271_836_421_813_16, -0.227_453_533_376_265_42),
        (1.461_632_144_968_362_2, -0.121_486_290_535_849_61, -9.241_265_521_729_427e-17),
        (1.5, -0.120_782_237_635_245_22, 0.036_489_973_978_576_52),
        (1.75, -0.084_401_121_020_485_55, 0.247_472_453_546_861_18),
        (1.999_999_9, -4.227_843_030_986_129_6e-08, 0.422_784_270_605_058_4),
        (2.000_000_1, 4.227_843_666_532_498e-08, 0.422_784_399_591_871_7),
        (2.3, 0.154_189_454_959_630_46, 0.600_039_880_363_969_5),
        (2.5, 0.284_682_870_472_919_2, 0.703_156_640_645_243_2),
        (2.500_01, 0.284_689_902_063_843_5, 0.703_161_544_210_994_1),
        (3.2, 0.885_404_827_154_909_1, 0.998_838_891_286_599_6),
        (3.7, 1.428_072_326_665_388, 1.167_153_539_361_511_3),
        (5.5, 3.957_813_967_618_716_5, 1.611_093_148_581_751_2),
        (7.25, 7.052_185_450_738_539_5, 1.910_453_526_883_736),
        (9.99, 12.779_315_214_350_193, 2.250_700_372_831_201),
        (10.0, 12.801_827_480_081_469, 2.251_752_589_066_721),
        (10.5, 13.940_625_219_403_763, 2.303_001_034_297_686_5),
        (25.0, 54.784_729_398_112_32, 3.198_742_512_851_974),
        (100.1, 359.594_271_788_856_76, 4.601_166_364_717_534),
        (1_234.5, 7_550.550_901_077_895, 7.118_016_231_827_998),
        (100_000.0, 1_051_287.708_973_656_9, 11.512_920_464_961_896),
        (12_345_678.9, 189_244_641.318_502_3, 16.328_816_632_673_97),
        (1_000_000_000_000.0, 26_631_021_115_915.652, 27.631_021_115_928_05),
        (1e100, 2.292_585_092_994_045_6e102, 230.258_509_299_404_58),
        (1e300, 6.897_755_278_982_137e302, 690.775_527_898_213_7),
    ];

    /// a, n, ln Γ(a + n) − ln Γ(a), computed with 40 digits.
    const GOLDEN_RATIOS: [(f64, u64, f64); 64] = [
        (1e-12, 1, -27.631_021_115_928_547),
        (1e-12, 3, -26.937_873_935_367_104),
        (1e-12, 24, 23.975_654_451_839_56),
        (1e-12, 25, 27.153_708_282_187_548),
        (1e-12, 100, 331.503_184_253_652),
        (1e-12, 4096, 29_942.699_273_561_408),
        (1e-12, 1_000_000_000, 19_723_265_799.872_696),
        (1e-12, 1_000_000_000_000_000, 3.353_877_639_491_064e16),
        (0.01, 1, -4.605_170_185_988_091),
        (0.01, 3, -3.897_085_133_063_938_7),
        (0.01, 24, 47.038_768_575_221_326),
        (0.01, 25, 50.217_238_985_454_49),
        (0.01, 100, 354.580_727_612_552_27),
        (0.01, 4096, 29_965.813_991_252_41),
        (0.01, 1_000_000_000, 19_723_265_823.111_47),
        (0.01, 1_000_000_000_000_000, 3.353_877_639_491_066_4e16),
        (0.6, 1, -0.510_825_623_765_990_7),
        (0.6, 3, 0.914_689_450_507_181_2),
        (0.6, 24, 53.110_281_297_320_57),
        (0.6, 25, 56.313_027_740_258_88),
        (0.6, 100, 361.497_874_027_892),
        (0.6, 4096, 29_974.922_691_222_655),
        (0.6, 1_000_000_000, 19_723_265_839.539_444),
        (0.6, 1_000_000_000_000_000, 3.353_877_639_491_069e16),
        (1.7, 1, 0.530_628_251_062_170_4),
        (1.7, 3, 2.832_212_843_722_632_4),
        (1.7, 24, 57.129_561_605_101_82),
        (1.7, 25, 60.376_052_597_002_996),
        (1.7, 100, 367.064_728_700_562_1),
        (1.7, 4096, 29_984.566_450_107_646),
        (1.7, 1_000_000_000, 19_723_265_862.829_075),
        (1.7, 1_000_000_000_000_000, 3.353_877_639_491_073e16),
        (9.5, 1, 2.251_291_798_606_495_3),
        (9.5, 3, 7.045_014_091_139_177),
        (9.5, 24, 71.613_092_082_152_79),
        (9.5, 25, 75.124_637_520_983_81),
        (9.5, 100, 391.586_142_014_263_9),
        (9.5, 4096, 30_037.669_589_806_384),
        (9.5, 1_000_000_000, 19_723_266_012.685_41),
        (9.5, 1_000_000_000_000_000, 3.353_877_639_491_098_4e16),
        (716.0, 1, 6.573_680_166_960_646),
        (716.0, 3, 19.725_225_576_608_49),
        (716.0, 24, 158.149_649_458_514_66),
        (716.0, 25, 164.756_299_644_712_87),
        (716.0, 100, 663.981_732_749_735_8),
        (716.0, 4096, 31_996.605_494_410_665),
        (716.0, 1_000_000_000, 19_723_276_676.975_098),
        (716.0, 1_000_000_000_000_000, 3.353_877_639_493_141_2e16),
        (330_000.0, 1, 12.706_847_933_442_663),
        (330_000.0, 3, 38.120_552_891_214_125),
        (330_000.0, 24, 304.965_186_746_407_9),
        (330_000.0, 25, 317.672_107_404_478_8),
        (330_000.0, 100, 1_270.699_791_836_917_7),
        (330_000.0, 4096, 52_072.558_467_502_27),
        (330_000.0, 1_000_000_000, 19_726_241_305.290_203),
        (330_000.0, 1_000_000_000_000_000, 3.353_877_640_244_521_2e16),
        (1_000_000_000_000.0, 1, 27.631_021_115_928_547),
        (1_000_000_000_000.0, 3, 82.893_063_347_788_64),
        (1_000_000_000_000.0, 24, 663.144_506_782_561_2),
        (1_000_000_000_000.0, 25, 690.775_527_898_513_7),
        (1_000_000_000_000.0, 100, 2_763.102_111_597_804_7),
        (1_000_000_000_000.0, 4096, 113_176.662_499_229_89),
        (1_000_000_000_000.0, 1_000_000_000, 27_631_520_949.344_666),
        (1_000_000_000_000.0, 1_000_000_000_000_000, 3.354_668_465_002_308e16),
    ];

    fn assert_close(got: f64, expected: f64, relative: f64, absolute: f64, what: &str) {
        let error = (got - expected).abs();
        assert!(
            error <= relative * expected.abs() + absolute,
            "{what}: {got:e}, not {expected:e}: off by {error:e}"
        );
    }

    #[test]
    fn golden_values() {
        for (x, ln_g, psi) in GOLDEN {
            assert_close(ln_gamma(x), ln_g, 1e-15, 1e-15, &format!("ln_gamma({x:e})"));
            assert_close(digamma(x), psi, 1e-15, 2e-15, &format!("digamma({x:e})"));
        }
    }

    #[test]
    fn ln_gamma_is_relatively_right_near_its_zeros() {
        for (x, ln_g, _) in GOLDEN.into_iter().filter(|(x, ..)| (0.5..=2.5).contains(x)) {
            assert_close(ln_gamma(x), ln_g, 2e-15, 0.0, &format!("ln_gamma({x:e})"));
        }
        assert_eq!((ln_gamma(1.0), ln_gamma(2.0)), (0.0, 0.0));
    }

    #[test]
    fn golden_ratios() {
        for (a, n, expected) in GOLDEN_RATIOS {
            let what = format!("ln_rising({a:e}, {n})");
            assert_close(ln_rising(a, n), expected, 2e-15, 2e-15, &what);
            assert_eq!(LnGammaRatio::new(a).get(n).to_bits(), ln_rising(a, n).to_bits(), "{what}");
        }
    }

    /// A wide grid against another library. The tolerances include that library's error.
    #[test]
    fn the_grid_agrees_with_statrs() {
        let mut x = 1e-8;
        while x < 1e12 {
            assert_close(ln_gamma(x), peer::ln_gamma(x), 2e-14, 2e-14, &format!("ln_gamma({x:e})"));
            assert_close(digamma(x), peer::digamma(x), 1e-12, 1e-12, &format!("digamma({x:e})"));
            x *= 1.0037;
        }
    }

    /// Tests one step of the recurrence at every switch between methods.
    #[test]
    fn methods_meet() {
        for edge in [0.5, 1.5, 2.5, LARGE, LARGE - 1.0] {
            for x in [f64::next_down(edge), edge, f64::next_up(edge)] {
                let step = ln_gamma(x) + x.ln();
                assert_close(ln_gamma(x + 1.0), step, 2e-15, 2e-15, &format!("ln_gamma at {x}"));
                let step = digamma(x) + 1.0 / x;
                assert_close(digamma(x + 1.0), step, 2e-15, 3e-15, &format!("digamma at {x}"));
            }
        }
        for a in [1e-9, 0.3, 4.0, 9.999, 10.0, 77.7] {
            for n in 20..30 {
                let step = ln_rising(a, n) + (a + n as f64).ln();
                assert_close(ln_rising(a, n + 1), step, 1e-14, 1e-14, &format!("{a}, {n}"));
            }
        }
    }

    #[test]
    fn outside_the_domain() {
        assert!(ln_gamma(-0.5).is_nan() && ln_gamma(f64::NAN).is_nan());
        assert!(digamma(-0.5).is_nan() && digamma(f64::NAN).is_nan());
        assert!(ln_rising(-0.5, 3).is_nan() && ln_rising(f64::NAN, 0).is_nan());
        assert_eq!(ln_gamma(0.0), f64::INFINITY);
        assert_eq!(ln_gamma(f64::INFINITY), f64::INFINITY);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert_eq!(digamma(f64::INFINITY), f64::INFINITY);
        assert_eq!((ln_rising(0.0, 0), ln_rising(0.0, 5)), (0.0, f64::NEG_INFINITY));
        assert_eq!(ln_rising(0.0, 500), f64::NEG_INFINITY);
        // Extremely large, but neither infinite nor NaN.
        assert!(ln_rising(1e150, 20).is_finite() && ln_rising(1e300, u64::MAX).is_finite());
        assert_eq!(LnGammaRatio::with_cache(0.1, 0).get(3).to_bits(), ln_rising(0.1, 3).to_bits());
        assert_eq!(LnGammaRatio::new(0.1).a(), 0.1);
    }

    #[test]
    fn exp_of_digamma_is_that() {
        let near = |x: f32, shift: f32| {
            let expected = (digamma(f64::from(x)) - f64::from(shift)).exp();
            let found = f64::from(exp_digamma(x, shift));
            let error = (found / expected - 1.0).abs();
            assert!(error <= (8.0 + 1.0 / f64::from(x)) * 3e-7, "{x}: {found}, not {expected}");
        };
        let mut x = 2e-2;
        while x < 1e9f32 {
            near(x, digamma(f64::from(x) * 1.01) as f32);
            // Far below the largest.
            near(0.083 + x % 500.0, digamma(f64::from(x.clamp(1.0, 600.0))) as f32);
            x *= 1.001;
        }
        for x in [1e-38, 1e-12, 1e-4] {
            assert_eq!(exp_digamma(x, 0.0), 0.0, "{x}");
        }
        for huge in [1e12f32, 1e20, 1e30] {
            assert!((exp_digamma(huge, huge.ln()) - 1.0).abs() < 1e-5);
        }
        assert_eq!(exp_below(0.0), 1.0);
        for z in [-1e-9f32, -0.3, -0.35, -1.0, -20.5, -86.9] {
            assert!((f64::from(exp_below(z)) / f64::from(z).exp() - 1.0).abs() < 3e-7, "{z}");
        }
        assert_eq!([exp_below(-88.0), exp_below(f32::NEG_INFINITY)], [0.0, 0.0]);
    }
}
