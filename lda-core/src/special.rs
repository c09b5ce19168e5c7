//! lnΓ and the rising factorial.

use std::f64::consts::TAU;

/// lnΓ(x) for x > 0: recurrence up to 12, then Stirling's series.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product, mut shift) = (x, 1.0, 0.0);
    while x < 12.0 {
        product *= x;
        if product < 1e-200 {
            shift += product.ln();
            product = 1.0;
        }
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0
            - square
                * (1.0 / 360.0
                    - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + series - product.ln() - shift
}

/// lnΓ(a + n) − lnΓ(a).
pub(crate) fn ln_rising(a: f64, n: u64) -> f64 {
    match n {
        0 => 0.0,
        1..=8 => (0..n).map(|i| a + i as f64).product::<f64>().ln(),
        _ => ln_gamma(a + n as f64) - ln_gamma(a),
    }
}
