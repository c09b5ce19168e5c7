//! Walker's columns over f32 weights (Walker 1977, in the O(n) form of Vose 1991).
//!
//! [`discrete`](crate::discrete) has the careful tables: integer thresholds, masses that add up to
//! the unit. A stale table is dropped after about as many draws as it has entries, so building
//! costs as much as drawing, and rounding by 2⁻²⁴ is the precision of the weights themselves.

use std::hint::select_unpredictable;

/// A column of height 1: the lower part is its own, the rest belongs to another entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::sampler) struct Column {
    /// Height of the own part.
    pub cut: f32,
    /// Owner of the rest.
    pub alias: u32,
}

/// Indices of weights, for [`build`].
#[derive(Clone, Debug, Default)]
pub(in crate::sampler) struct Order {
    /// Indices of weights of at most one column.
    short: Vec<u32>,
    /// Indices of weights above one column; the last one is repeated at the end.
    tall: Vec<u32>,
}

/// Cuts `weights`, whose sum is `sum`, into as many columns; calls `column(j, ..)` once for each.
///
/// Both kinds are taken in order, as in the careful tables: a tall weight fills short columns until
/// it is short itself. If rounding leaves no tall weight for a column, the column keeps all of
/// itself.
///
/// PERF: which kind comes next cannot be predicted, so nothing branches on it.
#[inline(always)]
pub(in crate::sampler) fn build(
    weights: &[f32],
    sum: f64,
    order: &mut Order,
    mut column: impl FnMut(usize, Column),
) {
    let scale = (weights.len() as f64 / sum) as f32;
    let Order { short, tall } = order;
    short.resize(short.len().max(weights.len() + 1), 0);
    tall.resize(tall.len().max(weights.len() + 1), 0);
    let (mut shorts, mut talls) = (0, 0);
    for (j, &weight) in weights.iter().enumerate() {
        let is_tall = weight * scale > 1.0;
        (short[shorts], tall[talls]) = (j as u32, j as u32);
        shorts += usize::from(!is_tall);
        talls += usize::from(is_tall);
    }
    // INVARIANT: read, but not used, after the last short weight.
    short[shorts] = 0;
    let height = |j: u32| weights[j as usize] * scale;
    let (mut at, mut from) = (0, 0);
    if talls > 0 {
        tall[talls] = tall[talls - 1];
        let mut rest = height(tall[0]);
        while from < talls {
            let gives = rest > 1.0 && at < shorts;
            let (taker, giver, other) = (short[at], tall[from], tall[from + 1]);
            let left = if from + 1 < talls { rest } else { 1.0 };
            let cut = select_unpredictable(gives, height(taker), left);
            let owner = select_unpredictable(gives, taker, giver);
            let alias = select_unpredictable(gives, giver, other);
            column(owner as usize, Column { cut, alias });
            rest = select_unpredictable(gives, rest, height(other)) - (1.0 - cut);
            at += usize::from(gives);
            from += usize::from(!gives);
        }
    }
    for &full in &short[at..shorts] {
        column(full as usize, Column { cut: 1.0, alias: full });
    }
}

/// The entry at `x`, in [0, len): its column, or the owner of the rest of that column.
#[inline(always)]
pub(in crate::sampler) fn locate(len: usize, x: f64, column: impl Fn(usize) -> Column) -> usize {
    // INVARIANT: rounding can bring x up to len, so the index is clamped.
    let j = (x as usize).min(len - 1);
    let Column { cut, alias } = column(j);
    select_unpredictable(((x - j as f64) as f32) < cut, j, alias as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Columns, added up again.
    fn masses(weights: &[f32]) -> Vec<f64> {
        let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let mut masses = vec![0.0; weights.len()];
        let mut seen = vec![0; weights.len()];
        build(weights, sum, &mut Order::default(), |j, Column { cut, alias }| {
            seen[j] += 1;
            let own = f64::from(cut.min(1.0));
            masses[j] += own;
            masses[alias as usize] += 1.0 - own;
        });
        assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
        masses.iter().map(|mass| mass * sum / weights.len() as f64).collect()
    }

    proptest! {
        #[test]
        fn columns_add_up_to_the_weights(
            weights in prop::collection::vec(
                prop_oneof![Just(1.0f32), 0.001f32..1.0, 1.0f32..1000.0], 1..300),
        ) {
            let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            for (mass, &weight) in masses(&weights).into_iter().zip(&weights) {
                let error = (mass - f64::from(weight)).abs();
                prop_assert!(error < 1e-4 * sum, "{mass} for {weight} of {sum}");
            }
        }
    }

    #[test]
    fn a_draw_inverts_the_columns() {
        let weights = [1.0, 3.0, 0.5, 3.5];
        let mut columns = [Column::default(); 4];
        build(&weights, 8.0, &mut Order::default(), |j, column| columns[j] = column);
        let mut seen = [0; 4];
        for i in 0..8000 {
            seen[locate(4, (f64::from(i) + 0.5) / 2000.0, |j| columns[j])] += 1;
        }
        assert_eq!(seen, [1000, 3000, 500, 3500]);
    }
}
