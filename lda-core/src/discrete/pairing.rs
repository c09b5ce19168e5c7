//! Construction shared by the alias tables: splits n masses into n columns of equal height with at
//! most two owners each.
//!
//! Walker (1977), in the O(n) form of Vose (1991) without his work lists: two cursors sweep the
//! masses, one over the light (at most a column), the other over the heavy (more than a column), as
//! in Hübschle-Schneider and Sanders, Parallel Weighted Random Sampling (2019), §4.1.
//!
//! ```text
//! rest = mass of the first heavy item
//! while there is a heavy item:
//!     if rest > one:  fill the next light column from the heavy item; rest -= the amount taken
//!     else:           the heavy item's own column holds rest, filled up by the next heavy item
//! ```
//!
//! INVARIANT: the unfinished masses add up to the unfinished columns, because all numbers are
//! integers and the masses add up to n columns. So every column is full to the last unit. A light
//! column exists whenever rest > one (heavy items alone would exceed their columns), and each mass
//! that remains after the last heavy item is exactly one column. Columns are filled up from heavy
//! items only, so a mass of 0 owns nothing.

use super::{DiscreteError, check};

/// Units of a column, 2^32.
pub(super) const ONE: u64 = 1 << 32;

/// Reusable memory for building alias tables. It never affects a result.
///
/// It grows to 20 bytes per weight of the largest table built with it.
#[derive(Clone, Debug, Default)]
pub struct AliasScratch {
    pub(super) masses: Vec<u64>,
    pub(super) weights: Vec<f64>,
    pub(super) topics: Vec<u32>,
}

/// Calls `column(k, own, other)` once for each column k, in no particular order: the lower `own`
/// units belong to k, the rest to `other`. A column with k as its only owner has `own == one` and
/// `other == k`. `one` is the height of a column.
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

/// Converts weights to masses that add up to exactly [`ONE`] per weight; returns the sum of the
/// weights.
///
/// Each mass is its weight's share rounded to a whole unit, and at least one unit for a positive
/// weight, so that the support does not change. The heaviest mass absorbs the sum of all rounding
/// errors: it is at least [`ONE`] minus rounding, and the errors, at most a unit per weight, sum to
/// less than 2^27 + 2^14 units.
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
    // Multiplying by a power of two is exact. Without it units / total is infinite for subnormal
    // totals; with it the quotient is at most 2^59 / 2^(127 - 1074) < 2^1007.
    let lift = if total < 1e-200 { (1_u128 << 127) as f64 } else { 1.0 };
    let units = ONE * weights.len() as u64;
    let scale = units as f64 / (total * lift);
    masses.clear();
    masses.extend(weights.iter().map(|&w| {
        let mass = (w * lift * scale + 0.5) as u64;
        mass.max(u64::from(w > 0.0))
    }));
    let sum_of_masses: u64 = masses.iter().sum();
    // Wrapping: the correction may be negative, the result is in 1..=units.
    let settled = masses[heaviest].wrapping_add(units).wrapping_sub(sum_of_masses);
    debug_assert!((1..=units).contains(&settled));
    masses[heaviest] = settled;
    Ok(total)
}

/// Pairwise summation: relative error at most (16 + log2 n) 2^-53. The order of additions depends
/// only on the length.
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

    /// Adds up the masses of the columns that `pair` makes.
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

    /// Visits all ways to distribute `left` units over the remaining of n masses.
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
    fn all_small_cases_are_paired_exactly() {
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
                        // Scaled up, so that no subnormal is rounded here.
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
    fn equal_subnormals_have_equal_masses() {
        let mut masses = Vec::new();
        assert_eq!(quantise(&[5e-324; 3], &mut masses), Ok(1.5e-323));
        assert_eq!(masses, [ONE; 3]);
    }
}
