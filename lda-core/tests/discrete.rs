//! The draw structures together: against the cumulative reference, against a naive model, and in
//! distribution.

mod common;

use common::{assert_law, p_value};
use lda_core::discrete::{
    AliasScratch, AliasTable, Cumulative, DiscreteError, FPlusTree, IntegerAlias, MAX_WEIGHT,
    SparseAlias,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};

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

// ---- against the reference ----------------------------------------------------------------------

/// Integer weights add up exactly in any order, so tree and reference must agree at every point:
/// each edge, the float before it and the middle of every unit.
#[test]
fn the_tree_is_the_reference_for_integer_weights() {
    for len in [1, 2, 15, 16, 17, 255, 256, 257, 1000, 4096, 4097] {
        let weights: Vec<f64> = (0..len).map(|k| ((k * 31 + 5) % 7) as f64).collect();
        let (tree, reference) =
            (FPlusTree::new(&weights).unwrap(), Cumulative::new(&weights).unwrap());
        assert_eq!(tree.total(), reference.total());
        for unit in 0..reference.total() as u64 {
            let edge = unit as f64;
            for u in [edge, edge + 0.5, (edge + 1.0).next_down()] {
                assert_eq!(tree.locate(u), Some(reference.locate(u)), "{len} weights, u = {u}");
            }
        }
    }
}

/// The least u at which `locate` answers k or later, found by bisection over all floats.
fn edge(tree: &FPlusTree, k: usize) -> f64 {
    let (mut low, mut high) = (0_u64, tree.total().to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        if tree.locate(f64::from_bits(middle)).unwrap() >= k {
            high = middle
        } else {
            low = middle + 1
        }
    }
    f64::from_bits(low)
}

/// Every leaf's share of the line, by its exact edges: the law of a draw without a single draw.
#[test]
fn every_edge_of_the_tree_lies_where_the_weights_put_it() {
    for len in [1, 10, 16, 300, 5000] {
        let weights = uneven(len);
        let tree = FPlusTree::new(&weights).unwrap();
        // The exact prefix sums, in integers of 2^-96.
        let unit = 2.0_f64.powi(-96);
        let mut sum = 0_u128;
        for (k, w) in weights.iter().enumerate() {
            let exact = sum as f64 * unit;
            let found = edge(&tree, k);
            assert!((found - exact).abs() <= 1e-15 * tree.total(), "{k}: {found} for {exact}");
            sum += (w / unit) as u128;
        }
        assert!((tree.total() - sum as f64 * unit).abs() <= 1e-15 * tree.total());
    }
}

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
fn sweeping_u_sees_the_alias_law() {
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

#[test]
fn the_integer_table_is_exact_for_real_counts() {
    let counts: Vec<(u32, u32)> = (0..60).map(|k| (k * 3, (k * k * 13) % 97)).collect();
    let table = IntegerAlias::new(counts.iter().copied()).unwrap();
    let mut cells = vec![0_u64; 180];
    for cell in 0..table.cells() {
        cells[table.locate(cell) as usize] += 1;
    }
    for (topic, count) in counts {
        assert_eq!(cells[topic as usize], u64::from(count) * table.len() as u64);
    }
}

// ---- zero never comes out -----------------------------------------------------------------------

/// Points at which a mistake would show: ends, beyond the ends, around every edge.
fn awkward(total: f64, sums: &[f64]) -> Vec<f64> {
    let mut points = vec![0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
    points.extend([total, total.next_down(), total.next_up(), total * 2.0]);
    points.extend(sums.iter().flat_map(|&s| [s, s.next_down(), s.next_up()]));
    points
}

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
    fn zero_weights_never_come_out(weights in proptest::collection::vec(weight(), 1..300), seed: u64) {
        let mut tree = FPlusTree::new(&weights).unwrap();
        let Ok(reference) = Cumulative::new(&weights) else {
            prop_assert_eq!(tree.total(), 0.0);
            prop_assert_eq!(tree.locate(0.0), None);
            prop_assert_eq!(AliasTable::new(&weights).err(), Some(DiscreteError::AllZero));
            prop_assert_eq!(SparseAlias::new(pairs(&weights)).err(), Some(DiscreteError::AllZero));
            return Ok(());
        };
        for u in awkward(reference.total(), reference.sums()) {
            prop_assert!(weights[reference.locate(u)] > 0.0);
            prop_assert!(weights[tree.locate(u).unwrap()] > 0.0);
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
            prop_assert!(weights[reference.sample(&mut rng)] > 0.0);
            prop_assert!(weights[tree.sample(&mut rng).unwrap()] > 0.0);
        }
        // Down to one leaf, then none.
        let last = weights.iter().rposition(|&w| w > 0.0).unwrap();
        for k in (0..weights.len()).filter(|&k| k != last) {
            tree.set(k, 0.0).unwrap();
        }
        prop_assert_eq!(tree.total(), weights[last]);
        for u in awkward(weights[last], &[]) {
            prop_assert_eq!(tree.locate(u), Some(last));
        }
        tree.set(last, 0.0).unwrap();
        prop_assert_eq!((tree.total(), tree.locate(0.0)), (0.0, None));
    }
}

#[test]
fn degenerate_laws() {
    let mut rng = rng(5);
    for weights in [
        vec![5e-324],
        vec![MAX_WEIGHT],
        vec![0.0, 0.0, 1e-300, 0.0],
        vec![1e-300, 1e300],
        vec![MAX_WEIGHT; 100],
        vec![5e-324; 100],
    ] {
        let tree = FPlusTree::new(&weights).unwrap();
        let reference = Cumulative::new(&weights).unwrap();
        let table = AliasTable::new(&weights).unwrap();
        assert!(tree.total().is_finite() && table.total().is_finite());
        for _ in 0..1000 {
            assert!(weights[tree.sample(&mut rng).unwrap()] > 0.0);
            assert!(weights[reference.sample(&mut rng)] > 0.0);
            assert!(weights[table.sample(&mut rng)] > 0.0);
        }
        if weights.len() == 100 {
            let mut seen = [vec![0; 100], vec![0; 100], vec![0; 100]];
            for _ in 0..20_000 {
                seen[0][tree.sample(&mut rng).unwrap()] += 1;
                seen[1][reference.sample(&mut rng)] += 1;
                seen[2][table.sample(&mut rng)] += 1;
            }
            seen.iter().for_each(|seen| assert_law(seen, &[1.0; 100]));
        }
    }
    let one = IntegerAlias::new([(7, 1)]).unwrap();
    assert_eq!(one.sample(&mut rng), 7);
}

#[test]
fn a_tree_of_sixteen_million_leaves() {
    let len = (1 << 24) + 1;
    let mut tree = FPlusTree::zeros(len).unwrap();
    assert_eq!(tree.sample(&mut rng(1)), None);
    let spots = [0, 15, 16, 1 << 20, (1 << 24) - 1, 1 << 24];
    tree.set_many(spots.map(|k| (k, 1.0))).unwrap();
    for (n, &k) in spots.iter().enumerate() {
        assert_eq!(tree.locate(n as f64), Some(k));
        assert_eq!(tree.locate((n as f64 + 1.0).next_down()), Some(k));
    }
    assert_eq!(tree.total(), spots.len() as f64);
}

// ---- the tree against a model -------------------------------------------------------------------

#[derive(Clone, Debug)]
enum Operation {
    Set(usize, f64),
    SetMany(Vec<(usize, f64)>),
    Rebuild(Vec<f64>),
    Locate(f64),
}

fn operation() -> impl Strategy<Value = Operation> {
    // Multiples of 1/8 up to 2^20: sums are exact, so the model may add in its own order.
    let exact = prop_oneof![1 => Just(0.0), 2 => (0_u32..1 << 23).prop_map(|n| f64::from(n) / 8.0)];
    let change = (0_usize..400, exact.clone());
    prop_oneof![
        8 => change.clone().prop_map(|(k, w)| Operation::Set(k, w)),
        2 => proptest::collection::vec(change, 0..40).prop_map(Operation::SetMany),
        1 => proptest::collection::vec(exact, 1..400).prop_map(Operation::Rebuild),
        8 => (0.0..1.0_f64).prop_map(Operation::Locate),
    ]
}

proptest! {
    #[test]
    fn the_tree_follows_the_model(operations in proptest::collection::vec(operation(), 1..80)) {
        let mut model = vec![0.0; 17];
        let mut tree = FPlusTree::zeros(17).unwrap();
        for operation in operations {
            match operation {
                Operation::Set(k, w) => {
                    let k = k % model.len();
                    model[k] = w;
                    tree.set(k, w).unwrap();
                }
                Operation::SetMany(changes) => {
                    let len = model.len();
                    let changes = changes.into_iter().map(|(k, w)| (k % len, w));
                    changes.clone().for_each(|(k, w)| model[k] = w);
                    tree.set_many(changes).unwrap();
                }
                Operation::Rebuild(weights) => {
                    tree.rebuild(&weights).unwrap();
                    model = weights;
                }
                Operation::Locate(u) => {
                    let u = u * tree.total();
                    let expected = Cumulative::new(&model).ok().map(|law| law.locate(u));
                    prop_assert_eq!(tree.locate(u), expected);
                }
            }
            prop_assert_eq!(tree.len(), model.len());
            prop_assert_eq!(tree.total(), model.iter().sum::<f64>());
            prop_assert!(tree.weights().eq(model.iter().copied()));
        }
    }

    /// However it got there, the tree is the tree of its leaves, to the bit: nothing drifts.
    #[test]
    fn the_tree_has_no_history(
        changes in proptest::collection::vec((0_usize..300, weight()), 1..200),
        batches in 1_usize..9,
    ) {
        let mut single = FPlusTree::zeros(300).unwrap();
        let mut batched = single.clone();
        for &(k, w) in &changes {
            single.set(k, w).unwrap();
        }
        for batch in changes.chunks(batches) {
            batched.set_many(batch.iter().copied()).unwrap();
        }
        let leaves: Vec<f64> = single.weights().collect();
        prop_assert_eq!(&single, &FPlusTree::new(&leaves).unwrap());
        prop_assert_eq!(&single, &batched);
    }
}

#[test]
fn refused_changes_leave_the_tree_whole() {
    let mut tree = FPlusTree::new(&[1.0; 20]).unwrap();
    let before = tree.clone();
    assert_eq!(tree.set(20, 1.0), Err(DiscreteError::OutOfRange { index: 20, len: 20 }));
    assert_eq!(tree.set(3, -1.0), Err(DiscreteError::Negative { index: 3, weight: -1.0 }));
    assert!(tree.set(3, f64::NAN).is_err());
    assert!(tree.set(3, 1.1e300).is_err());
    assert_eq!(tree.rebuild(&[]), Err(DiscreteError::Empty));
    assert!(tree.rebuild(&[1.0, f64::INFINITY]).is_err());
    assert_eq!(tree, before);
    assert!(tree.set_many([(0, 5.0), (19, 2.0), (20, 1.0), (1, 9.0)]).is_err());
    assert_eq!((tree.get(0), tree.get(19), tree.get(1), tree.total()), (5.0, 2.0, 1.0, 25.0));
    assert_eq!(FPlusTree::zeros(0).err(), Some(DiscreteError::Empty));
    assert_eq!(FPlusTree::zeros(usize::MAX).err(), Some(DiscreteError::TooMany));
    let message = tree.set(20, 1.0).unwrap_err().to_string();
    assert_eq!(message, "there is no position 20: the weights are 0 to 19");
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
        let law = Cumulative::new(&weights).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng)), &weights);
        let law = AliasTable::new(&weights).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng)), &weights);
        let law = SparseAlias::new(pairs(&weights)).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng) as usize), &weights);
        let law = FPlusTree::new(&weights).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng).unwrap()), &weights);

        let counts: Vec<f64> = weights.iter().map(|w| (w * 100.0).round()).collect();
        let law = IntegerAlias::new(pairs(&counts).map(|(k, w)| (k, w as u32))).unwrap();
        assert_law(&observe(len, DRAWS, || law.sample(rng) as usize), &counts);
    }
}

/// Draws while the weights move, as in a sampler: each draw comes from the weights of its moment.
#[test]
fn a_changing_tree_draws_from_its_present_weights() {
    let rng = &mut rng(11);
    let mut tree = FPlusTree::zeros(50).unwrap();
    let (mut seen, mut expected) = (vec![0; 50], vec![0.0; 50]);
    for _ in 0..200_000 {
        let k = (rng.next_u64() % 50) as usize;
        tree.set(k, (rng.next_u64() % 4) as f64 * 0.01).unwrap();
        if let Some(drawn) = tree.sample(rng) {
            seen[drawn] += 1;
            let total = tree.total();
            expected.iter_mut().zip(tree.weights()).for_each(|(e, w)| *e += w / total);
        }
    }
    assert_law(&seen, &expected);
}

// ---- value stability: a change of these is value-breaking and belongs in the changelog ----------

#[test]
fn draws_at_a_seed_are_stable() {
    let weights = uneven(100);
    let counts = pairs(&weights).map(|(k, w)| (k, (w * 10.0) as u32));
    let law = Cumulative::new(&weights).unwrap();
    let dense = AliasTable::new(&weights).unwrap();
    let sparse = SparseAlias::new(pairs(&weights)).unwrap();
    let integer = IntegerAlias::new(counts).unwrap();
    let tree = FPlusTree::new(&weights).unwrap();
    fn ten<T>(mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> T) -> [T; 10] {
        let mut rng = rng(42);
        std::array::from_fn(|_| draw(&mut rng))
    }
    assert_eq!(ten(|rng| law.sample(rng)), [79, 14, 96, 74, 79, 54, 0, 59, 0, 91]);
    assert_eq!(ten(|rng| tree.sample(rng).unwrap()), [79, 14, 96, 74, 79, 54, 0, 59, 0, 91]);
    assert_eq!(ten(|rng| dense.sample(rng)), [81, 0, 95, 70, 79, 37, 12, 60, 0, 90]);
    assert_eq!(ten(|rng| sparse.sample(rng)), [81, 0, 95, 70, 85, 59, 12, 60, 0, 79]);
    assert_eq!(ten(|rng| integer.sample(rng)), [81, 0, 95, 70, 79, 59, 12, 37, 0, 90]);
}

// ---- the helper itself --------------------------------------------------------------------------

#[test]
fn the_chi_square_helper_has_the_right_size_and_power() {
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
fn a_wrong_law_is_caught() {
    let law = Cumulative::new(&[1.0, 1.0, 1.03]).unwrap();
    let rng = &mut rng(2);
    assert_law(&observe(3, 400_000, || law.sample(rng)), &[1.0; 3]);
}

#[test]
#[should_panic(expected = "cell 1 has probability 0")]
fn an_impossible_draw_is_caught() {
    assert_law(&[1_000_000, 1], &[1.0, 0.0]);
}
