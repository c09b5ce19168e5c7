//! Convergence of several chains: split R̂.

/// Split R̂ of a value, one series per chain: the square root of the ratio of the variance of all
/// values to the variance within half-chains. Near 1 the chains have mixed as far as this value
/// shows; above 1.01 they have not. The value may be the log joint or any other that does not
/// depend on the numbering of topics.
///
/// Gelman et al., "Bayesian Data Analysis" (3rd ed. 2013), section 11.4. Series are truncated to
/// the shortest. `None` if there is no chain, a chain has fewer than 4 values, or a value is not
/// finite.
///
/// ```
/// use lda_core::eval::r_hat;
///
/// let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let settled = [2.0, 1.0, 2.5, 1.5, 2.0, 1.0, 2.5, 1.5];
/// assert!(r_hat(&[rising]).unwrap() > 1.5);
/// assert!(r_hat(&[settled, settled]).unwrap() < 1.1);
/// ```
pub fn r_hat<C: AsRef<[f64]>>(chains: &[C]) -> Option<f64> {
    let length = chains.iter().map(|chain| chain.as_ref().len()).min()?;
    let half = length / 2;
    if half < 2 || chains.iter().any(|chain| chain.as_ref().iter().any(|x| !x.is_finite())) {
        return None;
    }
    let halves: Vec<&[f64]> = chains
        .iter()
        .flat_map(|chain| [&chain.as_ref()[..half], &chain.as_ref()[length - half..length]])
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let variance = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    };
    let within = mean(&halves.iter().map(|half| variance(half)).collect::<Vec<_>>());
    let between = variance(&halves.iter().map(|half| mean(half)).collect::<Vec<_>>());
    let n = half as f64;
    if within == 0.0 {
        return Some(if between == 0.0 { 1.0 } else { f64::INFINITY });
    }
    Some((((n - 1.0) / n * within + between) / within).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;

    #[test]
    fn by_hand() {
        // Halves (1, 3), (2, 4): means 2 and 3, variances 2 and 2; between .5, R̂² = (.5·2 + .5) /
        // 2.
        assert!((r_hat(&[[1.0, 3.0, 2.0, 4.0]]).unwrap() - 0.75f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn chains_that_agree_have_one() {
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        let mut chain = |shift: f64| (0..1000).map(|_| rng.next_f64() + shift).collect::<Vec<_>>();
        assert!((r_hat(&[chain(0.0), chain(0.0), chain(0.0)]).unwrap() - 1.0).abs() < 0.01);
        assert!(r_hat(&[chain(0.0), chain(1.0)]).unwrap() > 1.5);
    }

    #[test]
    fn too_little_is_no_answer() {
        let none: [[f64; 4]; 0] = [];
        assert_eq!(r_hat(&none), None);
        assert_eq!(r_hat(&[[1.0, 2.0, 3.0]]), None);
        assert_eq!(r_hat(&[[1.0, f64::NAN, 2.0, 3.0]]), None);
        assert_eq!(r_hat(&[[1.0; 4]]), Some(1.0));
        assert_eq!(r_hat(&[[1.0; 4], [2.0; 4]]), Some(f64::INFINITY));
    }
}
