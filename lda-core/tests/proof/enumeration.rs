//! The enumerated laws themselves, against figures worked out independently.

use crate::enumerate::{A, B, C, Toy, WarpRule, distance};

/// States in order of their digits; the tables give ten decimals.
fn assert_table(found: &[f64], table: &[f64]) {
    assert_eq!(found.len(), table.len());
    for (state, (found, expected)) in found.iter().zip(table).enumerate() {
        assert!((found - expected).abs() < 1e-9, "state {state:b}: {found} is not {expected}");
    }
}

/// States of C by rows z0 z1 z2 and columns z3 z4, which is their order.
const POSTERIORS: [(Toy, f64, &[f64]); 3] = [
    (
        A,
        -2.711_964_100_423,
        &[
            0.0220588235,
            0.0661764706,
            0.0955882353,
            0.0661764706,
            0.0220588235,
            0.2867647059,
            0.1102941176,
            0.3308823529,
        ],
    ),
    (
        B,
        -3.620_035_790_807,
        &[
            0.0123445067,
            0.0512771817,
            0.0102554363,
            0.2166460925,
            0.0102554363,
            0.0115373659,
            0.0064096477,
            0.0512771817,
            0.0102554363,
            0.0115373659,
            0.0064096477,
            0.0512771817,
            0.1203589403,
            0.0512771817,
            0.1196467572,
            0.2592346406,
        ],
    ),
    (
        C,
        -7.092_837_730_711,
        &[
            0.0056581702,
            0.0071089830,
            0.0071089830,
            0.0168370651,
            0.0184833559,
            0.0087552738,
            0.0087552738,
            0.0101022390,
            0.0042653898,
            0.0379395199,
            0.0020204478,
            0.0437763692,
            0.0145921231,
            0.0632325332,
            0.0033674130,
            0.0355449151,
            0.0042653898,
            0.0020204478,
            0.0379395199,
            0.0437763692,
            0.0145921231,
            0.0033674130,
            0.0632325332,
            0.0355449151,
            0.0033674130,
            0.0145921231,
            0.0145921231,
            0.1540279656,
            0.0235718911,
            0.0497628812,
            0.0497628812,
            0.1980359557,
        ],
    ),
];

#[test]
fn posteriors_and_evidence() {
    for (toy, evidence, table) in POSTERIORS {
        let (posterior, log_evidence) = toy.posterior();
        assert!((log_evidence - evidence).abs() < 1e-9, "{}: {log_evidence}", toy.name);
        assert_table(&posterior, table);
    }
}

#[test]
fn log_joint_of_a() {
    for (state, documents, words) in [
        (0b000, -3.4657359028, -3.0602707947),
        (0b101, -2.3671236141, -1.5939337259),
        (0b111, -0.7576857017, -3.0602707947),
    ] {
        let (d, w) = A.log_joint(state);
        assert!((d - documents).abs() < 1e-9 && (w - words).abs() < 1e-9, "{state:b}: {d} {w}");
    }
}

#[test]
fn gibbs_sweeps() {
    let sweep = A.gibbs_chain(&[vec![vec![0, 1, 2]]]);
    assert_table(
        &sweep.0[0b010],
        &[
            0.0217633929,
            0.0652901786,
            0.2229099026,
            0.1543222403,
            0.0063775510,
            0.0829081633,
            0.1116071429,
            0.3348214286,
        ],
    );
    // A sweep in any order keeps the posterior; totals frozen through a wave do not.
    for toy in [A, B, C] {
        let (posterior, _) = toy.posterior();
        let n = toy.tokens.len();
        for order in [(0..n).collect::<Vec<_>>(), (0..n).rev().collect()] {
            let sweep = toy.gibbs_chain(&[vec![order]]);
            assert!(2.0 * distance(&sweep.apply(&posterior), &posterior) < 1e-12, "{}", toy.name);
        }
    }
}

const fn rule(steps: usize, count_own: bool) -> WarpRule {
    WarpRule { steps, count_own, topics: 2 }
}

#[test]
fn warp_passes_and_epochs() {
    assert_table(
        &A.warp_word_pass(rule(1, true), |_| true).0[0b010],
        &[
            0.0413035111,
            0.0048961609,
            0.7342846417,
            0.0870428603,
            0.0063071141,
            0.0007476518,
            0.1121264723,
            0.0132915879,
        ],
    );
    assert_table(
        &A.warp_chain(rule(1, true)).0[0b010],
        &[
            0.0683534388,
            0.0181019405,
            0.5555525515,
            0.1056977275,
            0.0153453032,
            0.0152557655,
            0.1436329435,
            0.0780603295,
        ],
    );
    assert_table(
        &A.warp_chain(rule(2, true)).0[0b010],
        &[
            0.0602125388,
            0.0249618655,
            0.4413922604,
            0.1234547894,
            0.0224511567,
            0.0248818318,
            0.1840907599,
            0.1185547973,
        ],
    );
    assert_table(
        &A.warp_chain(rule(1, true)).stationary(),
        &[
            0.0243650906,
            0.0691649643,
            0.0837699875,
            0.0737213479,
            0.0319365238,
            0.2928831747,
            0.1121035845,
            0.3120553267,
        ],
    );
}

/// How far WarpLDA with one step settles from the posterior.
#[test]
fn warp_bias() {
    for (toy, counting, without) in [(A, 0.031, 0.026), (B, 0.084, 0.085), (C, 0.064, 0.059)] {
        let (posterior, _) = toy.posterior();
        for (count_own, bias) in [(true, counting), (false, without)] {
            let found = distance(&toy.warp_chain(rule(1, count_own)).stationary(), &posterior);
            assert!((found - bias).abs() < 6e-4, "{}, {count_own}: {found}", toy.name);
        }
    }
}
