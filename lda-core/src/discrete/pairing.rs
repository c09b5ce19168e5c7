//! The step all alias tables share: cut n masses into n columns of equal height, two owners each.
//!
//! Walker (1977), in the O(n) form of Vose (1991), without his work lists: two cursors sweep the
//! masses, one over the light (at most a column), one over the heavy (more than a column), as in
//! Hübschle-Schneider and Sanders, Parallel Weighted Random Sampling (2019), §4.1.
//!
//! ```text
//! rest = mass of the first heavy one
//! while there is a heavy one:
//!     if rest > one:  the next light column is topped up by the heavy one; rest -= what it gave
//!     else:           the heavy one's own column holds rest, topped up by the next heavy one
//! ```
//!
//! Everything is an integer and the masses add up to n columns, so the columns come out full to
//! the last unit: the unfinished masses always add up to the unfinished columns. Hence a light
//! column is there whenever rest > one (heavy ones alone would be more than their columns), and
//! whatever is left after the last heavy one is exactly one column each. Who tops up is heavy, so
//! a mass of 0 owns nothing.

use super::{DiscreteError, check};

/// Columns of the tables of real weights are 2^32 units high.
pub(super) const ONE: u64 = 1 << 32;

/// Memory for building alias tables; one serves any number of tables and never affects a result.
///
/// It grows to 20 bytes a weight of the largest table built with it.
#[derive(Clone, Debug, Default)]
pub struct AliasScratch {
    pub(super) masses: Vec<u64>,
    pub(super) weights: Vec<f64>,
    pub(super) topics: Vec<u32>,
}

/// Calls `column(k, own, other)` once for each column k, in no particular order: the lower `own`
/// units belong to k, the rest to `other`. A column that k owns alone has `own == one` and
/// `other == k`.
///
/// The masses must add up to `one` times their number.
pub(super) fn pair(masses: &[u64], one: u64, mut column: impl FnMut(usize, u64, usize)) {
    debug_assert_eq!(
        masses.iter().map(|&m| u128::from(m)).sum::<u128>(),
        u128::from(one) * masses.len() as u128
    );
    let next = |from: usize, heavy: bool| {
        let found = masses[from..].iter().position(|&mass| (mass > one) == heavy);
        found.map(|offset| from + offset)
    };
    let mut put = |k: usize, own: u64, other: usize| {
        column(k, own, if own == one { k } else { other });
    };
    let mut light = next(0, false);
    let mut heavy = next(0, true);
    let mut rest = heavy.map_or(0, |h| masses[h]);
    while let Some(giver) = heavy {
        match light {
            Some(taker) if rest > one => {
                put(taker, masses[taker], giver);
                rest -= one - masses[taker];
                light = next(taker + 1, false);
            }
            _ => {
                heavy = next(giver + 1, true);
                put(giver, rest, heavy.unwrap_or(giver));
                rest = heavy.map_or(0, |h| masses[h] - (one - rest));
            }
        }
    }
    while let Some(full) = light {
        put(full, masses[full], full);
        light = next(full + 1, false);
    }
}

/// Turns weights into masses that add up to exactly [`ONE`] a weight; returns their sum.
///
/// Each mass is its weight's share rounded to a whole unit, but at least one unit where the weight
/// is positive, so that the support stays what it was. What rounding left over or took too much is
/// settled with the heaviest, whose mass is at least [`ONE`] minus rounding: the sum of all
/// roundings, at most a unit a weight, is below 2^27 + 2^14 units, far less than that.
pub(super) fn quantise(weights: &[f64], masses: &mut Vec<u64>) -> Result<f64, DiscreteError> {
    check(weights)?;
    let (heaviest, largest) = weights
        .iter()
        .enumerate()
        .fold((0, 0.0), |best, (k, &w)| if w > best.1 { (k, w) } else { best });
    if largest == 0.0 {
        return Err(DiscreteError::AllZero);
    }
    let total = sum(weights);
    // Multiplying by a power of two is exact. Without it, units / total is infinite for subnormals;
    // with it, at most 2^59 / 2^(127 - 1074) < 2^1007.
    let lift = if total < 1e-200 { (1_u128 << 127) as f64 } else { 1.0 };
    let units = ONE * weights.len() as u64;
    let scale = units as f64 / (total * lift);
    masses.clear();
    masses.extend(weights.iter().map(|&w| {
        let mass = (w * lift * scale + 0.5) as u64;
        mass.max(u64::from(w > 0.0))
    }));
    let sum_of_masses: u64 = masses.iter().sum();
    let settled = masses[heaviest].wrapping_add(units).wrapping_sub(sum_of_masses);
    debug_assert!((1..=units).contains(&settled));
    masses[heaviest] = settled;
    Ok(total)
}

/// Pairwise summation: relative error at most (16 + log2 n) 2^-53.
fn sum(weights: &[f64]) -> f64 {
    if weights.len() <= 128 {
        let mut lanes = [0.0; 8];
        let (rows, tail) = weights.as_chunks::<8>();
        for row in rows {
            for (lane, w) in lanes.iter_mut().zip(row) {
                *lane += w;
            }
        }
        return lanes.iter().sum::<f64>() + tail.iter().sum::<f64>();
    }
    let (left, right) = weights.split_at(weights.len() / 2);
    sum(left) + sum(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds the columns up again.
    fn unpair(masses: &[u64], one: u64) -> Vec<u64> {
        let mut back = vec![0; masses.len()];
        let mut seen = vec![0; masses.len()];
        pair(masses, one, |k, own, other| {
            assert!(own <= one);
            assert_eq!(own == one, other == k);
            assert!(masses[other] > 0);
            seen[k] += 1;
            back[k] += own;
            back[other] += one - own;
        });
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        back
    }

    /// All ways to spread n columns of height `one` over n masses.
    fn all_masses(n: usize, left: u64, masses: &mut Vec<u64>, visit: &mut impl FnMut(&[u64])) {
        if masses.len() + 1 == n {
            masses.push(left);
            visit(masses);
            masses.pop();
            return;
        }
        for mass in 0..=left {
            masses.push(mass);
            all_masses(n, left - mass, masses, visit);
            masses.pop();
        }
    }

    #[test]
    fn all_small_cases_come_back_exactly() {
        let mut cases = 0;
        for n in 1..=5 {
            for one in 1..=4 {
                all_masses(n, n as u64 * one, &mut Vec::new(), &mut |masses| {
                    assert_eq!(unpair(masses, one), masses);
                    cases += 1;
                });
            }
        }
        assert!(cases > 15_000, "{cases}");
    }

    proptest! {
        #[test]
        fn quantised_weights_fill_their_columns(
            weights in proptest::collection::vec(
                prop_oneof![Just(0.0), 0.0..1.0, 0.0..=1e300, 0.0..1e-310, Just(5e-324)],
                1..200,
            )
        ) {
            let mut masses = Vec::new();
            match quantise(&weights, &mut masses) {
                Err(error) => {
                    prop_assert_eq!(error, DiscreteError::AllZero);
                    prop_assert!(weights.iter().all(|&w| w == 0.0));
                }
                Ok(total) => {
                    for (w, &mass) in weights.iter().zip(&masses) {
                        prop_assert_eq!(*w > 0.0, mass > 0);
                        // Through the total's exponent, so that no subnormal rounds here.
                        let share = (w * 1e10) / (total * 1e10) * weights.len() as f64;
                        let got = mass as f64 / ONE as f64;
                        let slack = weights.len() as f64 / ONE as f64 + 1e-13 * share;
                        prop_assert!(total > 1e297 || (got - share).abs() <= slack, "{got} {share}");
                    }
                    prop_assert_eq!(unpair(&masses, ONE), masses);
                }
            }
        }

        #[test]
        fn pairwise_sums_are_close(weights in proptest::collection::vec(0.0..1.0_f64, 0..2000)) {
            let exact = weights.iter().map(|&w| (w * (1_u64 << 60) as f64) as u128).sum::<u128>();
            let exact = exact as f64 / (1_u64 << 60) as f64;
            prop_assert!((sum(&weights) - exact).abs() <= 1e-14 * exact.max(1.0));
        }
    }

    #[test]
    fn equal_subnormals_share_equally() {
        let mut masses = Vec::new();
        assert_eq!(quantise(&[5e-324; 3], &mut masses), Ok(1.5e-323));
        assert_eq!(masses, [ONE; 3]);
    }
}
