//! ln Γ, ψ and the ln Γ ratio that log likelihoods are made of, in f64.
//!
//! Each function states its error as absolute plus relative, because all three cross zero, where a
//! relative error alone says nothing. The bounds are tested against 30-digit values. Logarithms
//! are the platform's, so values may differ in the last bits between machines: nothing that is
//! drawn depends on them.

/// Above this argument the Stirling series are used; 7 terms leave 3e-17 (ln Γ) and 5e-17 (ψ).
const LARGE: f64 = 10.0;

const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

/// ln Γ(2 + z) = Σ_k c_k z^k: c_1 = 1 − γ, c_k = (−1)^k (ζ(k) − 1) / k. At |z| ≤ ½ the 26 terms
/// leave 2e-17.
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
        // Not (x - 1/2) ln x - x: that is infinite sooner and rounds twice.
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

/// What Stirling's formula leaves: ln Γ(x) − ((x − ½) ln x − x + ½ ln 2π), x ≥ 10.
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

/// ln Γ(a + n) − ln Γ(a) = Σ_{j<n} ln(a + j), for a > 0: the logarithm of the rising factorial.
///
/// Error at most 1e-14 relatively plus 1e-14 absolutely for a in [1e-12, 1e12] and any n. The
/// difference of two [`ln_gamma`] would lose all digits where n is small against a.
///
/// Method: up to 24 factors are multiplied; beyond, Stirling's formula is subtracted by hand,
/// (a − ½) ln(1 + n/a) + n (ln(a + n) − 1), once factors have lifted a to 10. NaN for a < 0 and
/// NaN; negative infinity at a = 0 unless n = 0, since Γ(0) is infinite.
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
    let mut product = 1.0;
    for j in 0..n {
        let factor = a + j as f64;
        // Kept finite and normal; one logarithm does for all but absurd a.
        if product > 1e200 || factor > 1e100 {
            sum += f64::ln(product);
            product = 1.0;
        }
        product *= factor;
    }
    sum + product.ln()
}

/// [`ln_rising`] at one a for many n: small n are looked up.
///
/// A log likelihood asks it for every count in the matrix, and nearly all counts are small. 8 bytes
/// an entry; the default of [`CACHED`](Self::CACHED) entries is 32 KiB and fills in 50 µs.
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
    /// Entries of the table that [`new`](Self::new) makes.
    pub const CACHED: usize = 4096;

    /// The ratio at `a`, with [`CACHED`](Self::CACHED) small n looked up.
    pub fn new(a: f64) -> Self {
        Self::with_cache(a, Self::CACHED)
    }

    /// The ratio at `a`, with n below `cached` looked up. Where there are many different `a`, as
    /// with an asymmetric prior, short tables keep them in the cache.
    pub fn with_cache(a: f64, cached: usize) -> Self {
        Self { a, cached: (0..cached as u64).map(|n| ln_rising(a, n)).collect() }
    }

    /// The a of this ratio.
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

    /// x, ln Γ(x), ψ(x), by arithmetic of 40 digits.
    const GOLDEN: [(f64, f64, f64); 35] = [
        (1e-300, 690.775527898213705, -9.99999999999999975e+299),
        (1e-08, 18.4206807381802089, -1.00000000577215646e+8),
        (0.001, 6.90717888538385366, -1000.57557193181028),
        (0.01, 4.5994798780420217, -100.560885457868672),
        (0.1, 2.2527126517342059, -10.4237549404110762),
        (0.3, 1.09579799481807556, -3.50252422220013312),
        (0.49999, 0.572384578271703236, -1.96355937488488504),
        (0.5, 0.572364942924700087, -1.96351002602142348),
        (0.75, 0.203280951431295371, -1.08586087978647217),
        (0.999999, 5.77216487385565238e-7, -0.577217309836801814),
        (1.0000001, -5.7721558299185071e-8, -0.5772155004081381),
        (1.25, -0.0982718364218131615, -0.227453533376265408),
        (1.4616321449683622, -0.121486290535849608, -9.24126552172942752e-17),
        (1.5, -0.120782237635245222, 0.0364899739785765206),
        (1.75, -0.084401121020485556, 0.247472453546861164),
        (1.9999999, -4.22784303098612982e-8, 0.422784270605058396),
        (2.0000001, 4.22784366653249792e-8, 0.422784399591871698),
        (2.3, 0.154189454959630475, 0.600039880363969479),
        (2.5, 0.28468287047291916, 0.703156640645243187),
        (2.50001, 0.284689902063843507, 0.703161544210994056),
        (3.0, 0.693147180559945309, 0.922784335098467139),
        (3.7, 1.42807232666538813, 1.16715353936151144),
        (5.5, 3.95781396761871629, 1.61109314858175112),
        (7.25, 7.05218545073853944, 1.91045352688373603),
        (9.99, 12.7793152143501934, 2.25070037283120112),
        (10.0, 12.8018274800814696, 2.25175258906672111),
        (10.5, 13.9406252194037636, 2.30300103429768638),
        (25.0, 54.7847293981123192, 3.19874251285197401),
        (100.1, 359.594271788856785, 4.60116636471753336),
        (1234.5, 7550.5509010778949, 7.11801623182799784),
        (100000.0, 1051287.70897365689, 11.5129204649618951),
        (12345678.9, 1.89244641318502316e+8, 16.3288166326739715),
        (1000000000000.0, 2.66310211159156516e+13, 27.6310211159280482),
        (1e+100, 2.29258509299404572e+102, 230.258509299404568),
        (1e+300, 6.89775527898213741e+302, 690.775527898213705),
    ];

    /// a, n, ln Γ(a + n) − ln Γ(a), by arithmetic of 40 digits.
    const GOLDEN_RATIOS: [(f64, u64, f64); 132] = [
        (1e-12, 1, -27.6310211159285482),
        (1e-12, 2, -27.6310211159275482),
        (1e-12, 3, -26.9378739353671029),
        (1e-12, 24, 23.9756544518395596),
        (1e-12, 25, 27.1537082821875469),
        (1e-12, 30, 43.6260178512434224),
        (1e-12, 100, 331.503184253652028),
        (1e-12, 4095, 29934.3817515651221),
        (1e-12, 4096, 29942.6992735614092),
        (1e-12, 70000, 710905.246265551971),
        (1e-12, 1000000000, 1.97232657998726957e+10),
        (1e-12, 1000000000000000, 3.35387763949106413e+16),
        (0.01, 1, -4.60517018598809135),
        (0.01, 2, -4.59521985513492326),
        (0.01, 3, -3.89708513306393888),
        (0.01, 24, 47.0387685752213283),
        (0.01, 25, 50.2172389854544901),
        (0.01, 30, 66.691405165014432),
        (0.01, 100, 354.580727612552258),
        (0.01, 4095, 29957.4964668141231),
        (0.01, 4096, 29965.8139912524098),
        (0.01, 70000, 710928.389369224342),
        (0.01, 1000000000, 1.97232658231114696e+10),
        (0.01, 1000000000000000, 3.35387763949106647e+16),
        (0.05, 1, -2.99573227355399094),
        (0.05, 2, -2.94694210938455893),
        (0.05, 3, -2.22910231623424212),
        (0.05, 24, 48.7957033048225127),
        (0.05, 25, 51.9758383013742829),
        (0.05, 30, 68.4574240176636487),
        (0.05, 100, 356.395346821765159),
        (0.05, 4095, 29959.4597637798361),
        (0.05, 4096, 29967.7772979860609),
        (0.05, 70000, 710930.466219653601),
        (0.05, 1000000000, 1.97232658255710009e+10),
        (0.05, 1000000000000000, 3.35387763949106677e+16),
        (0.5, 1, -0.693147180559945309),
        (0.5, 2, -0.287682072451780927),
        (0.5, 3, 0.628608659422374138),
        (0.5, 24, 52.6181295832445654),
        (0.5, 25, 55.8168027007952467),
        (0.5, 30, 72.3811062412447082),
        (0.5, 100, 360.863175524852921),
        (0.5, 4095, 29965.5991382112302),
        (0.5, 4096, 29973.9167823001858),
        (0.5, 70000, 710937.883045199765),
        (0.5, 1000000000, 1.97232658372929847e+10),
        (0.5, 1000000000000000, 3.35387763949106856e+16),
        (1.0, 1, 0.0),
        (1.0, 2, 0.693147180559945309),
        (1.0, 3, 1.791759469228055),
        (1.0, 24, 54.7847293981123192),
        (1.0, 25, 58.0036052229805199),
        (1.0, 30, 74.6582363488301644),
        (1.0, 100, 363.73937555556349),
        (1.0, 4095, 29970.3302946773289),
        (1.0, 4096, 29978.6480608440482),
        (1.0, 70000, 710944.033537188919),
        (1.0, 1000000000, 1.97232658482269826e+10),
        (1.0, 1000000000000000, 3.35387763949107034e+16),
        (1.7, 1, 0.53062825106217037),
        (1.7, 2, 1.52388002407245374),
        (1.7, 3, 2.83221284372263249),
        (1.7, 24, 57.1295616051018201),
        (1.7, 25, 60.3760525970029942),
        (1.7, 30, 77.1544553987698717),
        (1.7, 100, 367.064728700562131),
        (1.7, 4095, 29976.2485130570912),
        (1.7, 4096, 29984.5664501076465),
        (1.7, 70000, 710951.938728751),
        (1.7, 1000000000, 1.97232658628290764e+10),
        (1.7, 1000000000000000, 3.35387763949107277e+16),
        (9.5, 1, 2.25129179860649515),
        (9.5, 2, 4.60266705576997284),
        (9.5, 3, 7.04501409113917722),
        (9.5, 24, 71.613092082152785),
        (9.5, 25, 75.1246375209838057),
        (9.5, 30, 93.1074409763610394),
        (9.5, 100, 391.586142014263911),
        (9.5, 4095, 30029.3497505945957),
        (9.5, 4096, 30037.669589806384),
        (9.5, 70000, 711027.172909957886),
        (9.5, 1000000000, 1.97232660126854088e+10),
        (9.5, 1000000000000000, 3.35387763949109853e+16),
        (50.0, 1, 3.91202300542814606),
        (50.0, 2, 7.84384863815247183),
        (50.0, 3, 11.7950923567338992),
        (50.0, 24, 98.7031050566378282),
        (50.0, 25, 103.007170149841998),
        (50.0, 30, 124.725353704674937),
        (50.0, 100, 455.443726608982542),
        (50.0, 4095, 30233.6210757327624),
        (50.0, 4096, 30241.9507338003318),
        (50.0, 70000, 711346.141564649576),
        (50.0, 1000000000, 1.97232667191012659e+10),
        (50.0, 1000000000000000, 3.35387763949122513e+16),
        (716.0, 1, 6.57368016696064562),
        (716.0, 2, 13.148756007560266),
        (716.0, 3, 19.7252255766084902),
        (716.0, 24, 158.149649458514646),
        (716.0, 25, 164.756299644712862),
        (716.0, 30, 197.80977081110674),
        (716.0, 100, 663.981732749735733),
        (716.0, 4095, 31988.1268341689668),
        (716.0, 4096, 31996.6054944106662),
        (716.0, 70000, 714936.009763969548),
        (716.0, 1000000000, 1.97232766769750976e+10),
        (716.0, 1000000000000000, 3.35387763949314103e+16),
        (330000.0, 1, 12.706847933442663),
        (330000.0, 2, 25.4136988971837649),
        (330000.0, 3, 38.1205528912141231),
        (330000.0, 24, 304.965186746407905),
        (330000.0, 25, 317.672107404478796),
        (330000.0, 30, 381.206756145820671),
        (330000.0, 100, 1270.69979183691777),
        (330000.0, 4095, 52059.8392868396132),
        (330000.0, 4096, 52072.5584675022669),
        (330000.0, 70000, 896428.016213978319),
        (330000.0, 1000000000, 1.97262413052902047e+10),
        (330000.0, 1000000000000000, 3.35387764024452107e+16),
        (1000000000000.0, 1, 27.6310211159285482),
        (1000000000000.0, 2, 55.2620422318580964),
        (1000000000000.0, 3, 82.8930633477886446),
        (1000000000000.0, 24, 663.144506782561157),
        (1000000000000.0, 25, 690.775527898513705),
        (1000000000000.0, 30, 828.930633478291446),
        (1000000000000.0, 100, 2763.10211159780482),
        (1000000000000.0, 4095, 113149.03147810987),
        (1000000000000.0, 4096, 113176.662499229893),
        (1000000000000.0, 70000, 1934171.48056496332),
        (1000000000000.0, 1000000000, 2.76315209493446652e+10),
        (1000000000000.0, 1000000000000000, 3.35466846500230806e+16),
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
            assert_close(ln_rising(a, n), expected, 1e-14, 1e-14, &what);
            assert_eq!(LnGammaRatio::new(a).get(n).to_bits(), ln_rising(a, n).to_bits(), "{what}");
        }
    }

    /// A wide grid, against another library. Its own error is what the tolerances allow for.
    #[test]
    fn the_grid_agrees_with_statrs() {
        let mut x = 1e-8;
        while x < 1e12 {
            assert_close(ln_gamma(x), peer::ln_gamma(x), 2e-14, 2e-14, &format!("ln_gamma({x:e})"));
            assert_close(digamma(x), peer::digamma(x), 1e-12, 1e-12, &format!("digamma({x:e})"));
            x *= 1.0037;
        }
    }

    /// One step of the recurrence at every switch between methods.
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
        // Absurdly large, but neither infinite nor NaN.
        assert!(ln_rising(1e150, 20).is_finite() && ln_rising(1e300, u64::MAX).is_finite());
        assert_eq!(LnGammaRatio::with_cache(0.1, 0).get(3).to_bits(), ln_rising(0.1, 3).to_bits());
        assert_eq!(LnGammaRatio::new(0.1).a(), 0.1);
    }
}
