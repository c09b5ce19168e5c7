//! Goodness of fit for tests that draw: one helper, one false-alarm rate.

#![allow(dead_code, reason = "every test binary compiles all of this and uses its part")]

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// How often a right sampler would fail one call of [`assert_law`], over all seeds. The seeds of
/// our tests are fixed, so a test that has passed passes always; the rate says how little a
/// change of seed or of draw order risks, and how bad a law must be to be caught.
pub(crate) const FALSE_ALARM: f64 = 1e-6;

/// Cells expected to hold fewer draws than this are merged: far out in the tail, where
/// [`FALSE_ALARM`] lies, the chi-square law is only near for full cells.
const SMALLEST_CELL: f64 = 25.0;

/// Number of draws of a test: `long` with `LDA_LONG` in the environment, else a fifth, which is
/// enough for every mutant of `.ci/mutants.toml` and takes a fifth of the time.
pub(crate) fn draws(long: u64) -> u64 {
    if is_long() { long } else { long / 5 }
}

/// Whether the long versions of the tests are asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("LDA_LONG").is_some()
}

/// Fails unless `observed` counts look drawn from the law `expected`, in any unit (weights,
/// probabilities or counts); says the p-value and the worst cell. A cell of expectation 0 must be
/// empty.
#[track_caller]
pub(crate) fn assert_law(observed: &[u64], expected: &[f64]) {
    let draws = observed.iter().sum::<u64>() as f64;
    let scale = draws / expected.iter().sum::<f64>();
    for (cell, (&seen, &weight)) in observed.iter().zip(expected).enumerate() {
        assert!(weight > 0.0 || seen == 0, "cell {cell} has probability 0 and was drawn {seen} x");
    }
    let p = p_value(observed, expected);
    let sigmas = |cell: usize| {
        let mean = expected[cell] * scale;
        (observed[cell] as f64 - mean) / mean.max(1.0).sqrt()
    };
    let worst = (0..observed.len()).max_by(|&a, &b| sigmas(a).abs().total_cmp(&sigmas(b).abs()));
    let worst = worst.expect("an observation has cells");
    assert!(
        p >= FALSE_ALARM,
        "not this law: p = {p:.3e} of {draws} draws; cell {worst} was drawn {} x instead of {:.1} x \
         ({:+.1} sigma)",
        observed[worst],
        expected[worst] * scale,
        sigmas(worst)
    );
}

/// Pearson's chi-square test: the probability of a fit as bad as this or worse.
#[track_caller]
pub(crate) fn p_value(observed: &[u64], expected: &[f64]) -> f64 {
    assert_eq!(observed.len(), expected.len(), "one expectation a cell");
    assert!(expected.iter().all(|w| (0.0..f64::INFINITY).contains(w)), "bad expectation");
    let draws = observed.iter().sum::<u64>() as f64;
    let scale = draws / expected.iter().sum::<f64>();
    assert!(draws > 0.0 && scale.is_finite(), "a law and draws from it are needed");

    let mut cells: Vec<(f64, f64)> =
        expected.iter().zip(observed).map(|(&w, &seen)| (w * scale, seen as f64)).collect();
    cells.sort_by(|a, b| b.0.total_cmp(&a.0));
    let full = cells.partition_point(|cell| cell.0 >= SMALLEST_CELL);
    let rest = cells.drain(full..).fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
    match cells.last_mut() {
        // The rest may still be small in sum; then it joins the smallest full cell.
        Some(last) if rest.0 < SMALLEST_CELL => *last = (last.0 + rest.0, last.1 + rest.1),
        _ => cells.push(rest),
    }
    let statistic: f64 = cells.iter().map(|(mean, seen)| (seen - mean).powi(2) / mean).sum();
    match cells.len() - 1 {
        0 => 1.0,
        freedom => ChiSquared::new(freedom as f64).expect("freedom is positive").sf(statistic),
    }
}
