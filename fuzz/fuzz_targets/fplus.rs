//! Operation sequences on the F+ tree against a plain vector of weights.
#![no_main]

use lda_core::discrete::{Cumulative, DiscreteError, FPlusTree, MAX_WEIGHT};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_fplus(data));

/// Bytes as a stream of operands; zeros when they run out, so that every prefix means something.
struct Operands<'a>(&'a [u8]);

impl Operands<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A whole number most of the time, so that sums are exact; else any bits at all.
    fn weight(&mut self) -> f64 {
        match self.byte() {
            kind @ 0..=200 => f64::from(kind / 8),
            201..=215 => 0.0,
            216..=225 => 5e-324,
            226..=235 => MAX_WEIGHT,
            236..=255 => f64::from_bits(self.word()),
        }
    }

    fn index(&mut self, len: usize) -> usize {
        let index = usize::from(self.byte()) << 8 | usize::from(self.byte());
        // Now and then beyond the end.
        index % (len + 1)
    }
}

fn legal(weight: f64) -> bool {
    (0.0..=MAX_WEIGHT).contains(&weight)
}

fn fuzz_fplus(data: &[u8]) {
    let mut operands = Operands(data);
    let len = 1 + operands.index(2000);
    let mut model = vec![0.0; len];
    let mut tree = FPlusTree::zeros(len).expect("a legal length");
    while !operands.0.is_empty() {
        match operands.byte() % 8 {
            0..=2 => {
                let (k, w) = (operands.index(model.len()), operands.weight());
                let outcome = tree.set(k, w);
                assert_eq!(outcome.is_ok(), k < model.len() && legal(w), "{k} {w}: {outcome:?}");
                if outcome.is_ok() {
                    model[k] = w;
                }
            }
            3 => {
                let changes: Vec<_> = (0..operands.byte() % 32)
                    .map(|_| (operands.index(model.len()), operands.weight()))
                    .collect();
                let outcome = tree.set_many(changes.iter().copied());
                let good = |&&(k, w): &&(usize, f64)| k < model.len() && legal(w);
                let made = changes.iter().take_while(good).count();
                assert_eq!(outcome.is_ok(), made == changes.len());
                changes[..made].iter().for_each(|&(k, w)| model[k] = w);
            }
            4 => {
                let len = operands.index(300);
                let weights: Vec<f64> = (0..len).map(|_| operands.weight()).collect();
                match tree.rebuild(&weights) {
                    Ok(()) => model = weights,
                    Err(DiscreteError::Empty) => assert_eq!(len, 0),
                    Err(_) => assert!(!weights.iter().copied().all(legal)),
                }
            }
            _ => {
                // A share of the total, or any float.
                let bits = operands.word();
                let u = match operands.byte() % 2 {
                    0 => (bits >> 11) as f64 / (1_u64 << 53) as f64 * tree.total(),
                    _ => f64::from_bits(bits),
                };
                check_point(&tree, &model, u);
            }
        }
        check_total(&tree, &model);
    }
    assert!(tree.weights().eq(model.iter().copied()));
    assert_eq!(tree, FPlusTree::new(&model).expect("legal weights"), "the tree has a history");
    for u in [0.0, tree.total() / 2.0, tree.total().next_down(), tree.total(), f64::NAN] {
        check_point(&tree, &model, u);
    }
}

/// Whether all sums of these weights are exact, in any order.
fn exact(model: &[f64]) -> bool {
    model.iter().all(|w| w.fract() == 0.0 && *w < 1e6)
}

fn check_total(tree: &FPlusTree, model: &[f64]) {
    let sum = model.iter().sum::<f64>();
    if exact(model) {
        assert_eq!(tree.total(), sum);
    } else {
        assert!((tree.total() - sum).abs() <= 1e-12 * sum);
    }
}

fn check_point(tree: &FPlusTree, model: &[f64], u: f64) {
    let found = tree.locate(u);
    match (found, Cumulative::new(model)) {
        (Some(k), Ok(reference)) => {
            assert!(model[k] > 0.0, "weight {k} is 0 and came out at {u}");
            if exact(model) {
                assert_eq!(k, reference.locate(u), "at {u}");
            }
        }
        (None, Err(DiscreteError::AllZero)) => {}
        (found, reference) => panic!("{found:?} against {reference:?} at {u}"),
    }
}
