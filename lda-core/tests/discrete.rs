//! Alias tables: their probabilities, zero weights, and the distribution of their draws.

mod common;

use common::{assert_law, p_value};
use lda_core::discrete::{AliasScratch, AliasTable, DiscreteError, MAX_WEIGHT, SparseAlias};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Weights as topics have them: a few large, many small, some zero.
fn uneven(len: usize) -> Vec<f64> {
    (0..len)
        .map(|k| if k % 5 == 3 { 0.0 } else { 10.0 / (1.0 + ((k * 7919) % len) as f64) })
        .collect()
}

fn pairs(weights: &[f64]) -> impl Iterator<Item = (u32, f64)> + '_ {
    weights.iter().enumerate().map(|(k, &w)| (k as u32, w))
}

// ---- probabilities ------------------------------------------------------------------------------

#[test]
fn alias_probabilities_are_the_weights() {
    let mut scratch = AliasScratch::default();
    let mut table = AliasTable::new(&[1.0]).unwrap();
    for len in [1, 2, 3, 10, 1000, 65_537] {
        let weights = uneven(len);
        table.rebuild(&weights, &mut scratch).unwrap();
        let total: f64 = weights.iter().sum();
        assert!((table.total() - total).abs() <= 1e-13 * total);
        let slack = 1.0 / (1_u64 << 32) as f64;
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        for (p, w) in table.probabilities().into_iter().zip(&weights) {
            let bound = if *w == heaviest { slack } else { slack / len as f64 + 1e-14 * w / total };
            assert!((p - w / total).abs() <= bound, "{p} for {}", w / total);
            assert_eq!(p > 0.0, *w > 0.0);
        }
        assert!((table.weights().iter().sum::<f64>() - total).abs() <= 1e-12 * total);
    }
}

/// `locate` itself, not only the entries: a regular sweep of u gives each index its share, off by
/// at most one point for each end of each of its columns.
#[test]
fn sweep_of_u_measures_the_alias_distribution() {
    let weights = uneven(40);
    let table = AliasTable::new(&weights).unwrap();
    let sparse = SparseAlias::new(pairs(&weights)).unwrap();
    const POINTS: u64 = 1 << 20;
    let mut seen = [vec![0_u64; 40], vec![0_u64; 40]];
    for point in 0..POINTS {
        let u = point << 44;
        seen[0][table.locate(u)] += 1;
        seen[1][sparse.locate(u) as usize] += 1;
    }
    let total: f64 = weights.iter().sum();
    for seen in seen {
        for (k, count) in seen.into_iter().enumerate() {
            let exact = weights[k] / total * POINTS as f64;
            assert!((count as f64 - exact).abs() <= 80.0, "{k}: {count} for {exact}");
        }
    }
}

// ---- zero weights -----------------------------------------------------------------------------

fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => Just(0.0),
        2 => 0.0..1.0_f64,
        1 => Just(5e-324),
        1 => Just(1e-300),
        1 => Just(1e300),
        1 => Just(-0.0),
        1 => (0_u64..=MAX_WEIGHT.to_bits()).prop_map(f64::from_bits),
    ]
}

proptest! {
    #[test]
    fn zero_weights_are_never_drawn(weights in proptest::collection::vec(weight(), 1..300), seed: u64) {
        if weights.iter().all(|&w| w == 0.0) {
            prop_assert_eq!(AliasTable::new(&weights).err(), Some(DiscreteError::AllZero));
            prop_assert_eq!(SparseAlias::new(pairs(&weights)).err(), Some(DiscreteError::AllZero));
            return Ok(());
        }
        let table = AliasTable::new(&weights).unwrap();
        let sparse = SparseAlias::new(pairs(&weights)).unwrap();
        let mut rng = rng(seed);
        for u in [0, 1, u64::MAX, u64::MAX - 1, 1 << 32, (1 << 32) - 1] {
            prop_assert!(weights[table.locate(u)] > 0.0);
            prop_assert!(weights[sparse.locate(u) as usize] > 0.0);
        }
        for _ in 0..200 {
            prop_assert!(weights[table.sample(&mut rng)] > 0.0);
            prop_assert!(weights[sparse.sample(&mut rng) as usize] > 0.0);
        }
    }
}

#[test]
fn degenerate_distributions() {
    let mut rng = rng(5);
    for weights in [
        vec![5e-324],
        vec![MAX_WEIGHT],
        vec![0.0, 0.0, 1e-300, 0.0],
        vec![1e-300, 1e300],
        vec![MAX_WEIGHT; 100],
        vec![5e-324; 100],
    ] {
        let table = AliasTable::new(&weights).unwrap();
        assert!(table.total().is_finite());
        for _ in 0..1000 {
            assert!(weights[table.sample(&mut rng)] > 0.0);
        }
        if weights.len() == 100 {
            let mut seen = vec![0; 100];
            for _ in 0..20_000 {
                seen[table.sample(&mut rng)] += 1;
            }
            assert_law(&seen, &[1.0; 100]);
        }
    }
}

// ---- in distribution ----------------------------------------------------------------------------

fn observe(len: usize, draws: usize, mut draw: impl FnMut() -> usize) -> Vec<u64> {
    let mut seen = vec![0; len];
    (0..draws).for_each(|_| seen[draw()] += 1);
    seen
}

/// Each of these calls has a false-alarm rate of 1e-6 (`common::FALSE_ALARM`) over all seeds.
#[test]
fn draws_follow_the_weights() {
    const DRAWS: usize = 400_000;
    for len in [2, 100, 3000] {
        let weights = uneven(len);
        let rng = &mut rng(len as u64);
        let law = AliasTable::new(&weights).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng)), &weights);
        let law = SparseAlias::new(pairs(&weights)).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng) as usize), &weights);
    }
}

// ---- value stability: a change of these is value-breaking and belongs in the changelog ----------

#[test]
fn draws_at_a_seed_are_stable() {
    let weights = uneven(100);
    let dense = AliasTable::new(&weights).unwrap();
    let sparse = SparseAlias::new(pairs(&weights)).unwrap();
    fn ten<T>(mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> T) -> [T; 10] {
        let mut rng = rng(42);
        std::array::from_fn(|_| draw(&mut rng))
    }
    assert_eq!(ten(|rng| dense.sample(rng)), [81, 0, 95, 70, 79, 37, 12, 60, 0, 90]);
    assert_eq!(ten(|rng| sparse.sample(rng)), [81, 0, 95, 70, 85, 59, 12, 60, 0, 79]);
}

// ---- the helper itself --------------------------------------------------------------------------

#[test]
fn chi_square_test_has_its_size_and_power() {
    // A die: chi-square 7 with 5 degrees of freedom.
    let p = p_value(&[110, 90, 105, 95, 115, 85], &[1.0; 6]);
    assert!((p - 0.220_640_308).abs() < 1e-8, "{p}");
    // Merged: three cells of 10 expected draws become one of 30.
    assert!((p_value(&[40, 30, 11, 9, 10], &[40.0, 30.0, 10.0, 10.0, 10.0]) - 1.0).abs() < 1e-12);
    assert_eq!(p_value(&[3, 4], &[1.0, 1.0]), 1.0);

    // Uniform p-values under a right law: 2,000 of them, in 10 bins.
    let rng = &mut rng(9);
    let weights = uneven(20);
    let law = AliasTable::new(&weights).unwrap();
    let bins = observe(10, 2000, || {
        let seen = observe(20, 5000, || law.sample(rng));
        ((p_value(&seen, &weights) * 10.0) as usize).min(9)
    });
    assert_law(&bins, &[1.0; 10]);
}

#[test]
#[should_panic(expected = "not this law")]
fn wrong_distribution_is_detected() {
    let law = AliasTable::new(&[1.0, 1.0, 1.03]).unwrap();
    let rng = &mut rng(2);
    assert_law(&observe(3, 400_000, || law.sample(rng)), &[1.0; 3]);
}

#[test]
#[should_panic(expected = "cell 1 has probability 0")]
fn impossible_draw_is_detected() {
    assert_law(&[1_000_000, 1], &[1.0, 0.0]);
}
