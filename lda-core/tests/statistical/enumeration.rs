//! The enumerated laws themselves, against figures worked out independently.

use crate::enumerate::{A, B, BETA, C, Chain, Toy, WarpRule, distance};
use crate::enumerate_mh::{Moves, StaleRule};

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

const ZEN: Moves = Moves::Zen { by_document: false };
const ZEN_DOC: Moves = Moves::Zen { by_document: true };
const LIGHT: Moves = Moves::Light { document: true, word: true };

/// Tokens in order, each by a law of its own.
fn sweep(toy: Toy, law: impl Fn(usize, usize) -> [f64; 2]) -> Chain {
    let from = |state| {
        let mut paths = vec![(state, 1.0)];
        for j in 0..toy.tokens.len() {
            let moved = |&(state, p): &(usize, f64)| {
                let law = law(state, j);
                (0..2).map(move |k| (toy.with_topic(state, j, k), p * law[k]))
            };
            paths = paths.iter().flat_map(moved).collect();
        }
        let mut law = vec![0.0; toy.num_states()];
        paths.into_iter().for_each(|(state, p)| law[state] += p);
        law
    };
    Chain((0..toy.num_states()).map(from).collect())
}

fn stale_rule(moves: Moves, without_own: bool) -> StaleRule {
    StaleRule { moves, steps: 1, topics: 2, without_own }
}

/// A table of current counts without the token.
#[test]
fn light_epoch() {
    let rule = stale_rule(LIGHT, true);
    let epoch = sweep(A, |state, j| {
        let rest = A.counts(state, Some(j));
        let w = A.tokens[j].1;
        let q =
            std::array::from_fn(|k| (rest.words[w][k] + BETA) / (rest.totals[k] + A.beta_bar()));
        rule.law(A, state, j, q)
    });
    assert_table(
        &epoch.0[0b010],
        &[
            0.0449218750,
            0.0898437500,
            0.4379882812,
            0.1459960938,
            0.0052734375,
            0.0369140625,
            0.0796875000,
            0.1593750000,
        ],
    );
}

/// A table that knows nothing of the token keeps the posterior, whatever is in it.
#[test]
fn any_constant_table_keeps_the_posterior() {
    let word = Moves::Light { document: false, word: true };
    for (toy, moves) in
        [A, B, C].into_iter().flat_map(|t| [LIGHT, word, Moves::Alias].map(|m| (t, m)))
    {
        let (posterior, _) = toy.posterior();
        for table in [[0.7, 0.3], [0.05, 0.95]] {
            let epoch = sweep(toy, |state, j| stale_rule(moves, true).law(toy, state, j, table));
            let off = 2.0 * distance(&epoch.apply(&posterior), &posterior);
            assert!(off < 1e-12, "{}, {moves:?}: {off}", toy.name);
        }
    }
}

/// How far a table that is built in the epoch lets the samplers settle from the posterior; and how
/// far they would with the token's own share left in.
#[test]
fn stale_bias() {
    let biases = [
        (A, LIGHT, 0.0181, 0.0961),
        (B, LIGHT, 0.0161, 0.0708),
        (C, LIGHT, 0.0348, 0.1277),
        (A, Moves::Alias, 0.0182, 0.0837),
        (B, Moves::Alias, 0.0255, 0.0646),
        (C, Moves::Alias, 0.0299, 0.0784),
        (A, ZEN, 0.1364, 0.1323),
        (B, ZEN, 0.1627, 0.1332),
        (C, ZEN, 0.1851, 0.1607),
        (A, ZEN_DOC, 0.0652, 0.0613),
        (B, ZEN_DOC, 0.0589, 0.0599),
        (C, ZEN_DOC, 0.0799, 0.0805),
    ];
    for (toy, moves, without, with) in biases {
        let (posterior, _) = toy.posterior();
        for (without_own, bias) in [(true, without), (false, with)] {
            let rule = stale_rule(moves, without_own);
            let chain = rule.chain(toy, &[vec![rule.order(toy, (0..toy.tokens.len()).collect())]]);
            let found = distance(&chain.stationary(), &posterior);
            assert!((found - bias).abs() < 6e-5, "{}, {moves:?}, {without_own}: {found}", toy.name);
        }
    }
}

/// ZenLDAHybrid: a pass over the tokens whose word has at least as many tokens as their document, one
/// over the others.
#[test]
fn stale_bias_by_degree() {
    for (toy, bias) in [(A, 0.1286), (B, 0.0167), (C, 0.0754)] {
        let (posterior, _) = toy.posterior();
        let tokens = |axis: fn(&(usize, usize)) -> usize, j: usize| {
            toy.tokens.iter().filter(|token| axis(token) == axis(&toy.tokens[j])).count()
        };
        let by_word = |&j: &usize| tokens(|t| t.1, j) >= tokens(|t| t.0, j);
        let (words, documents): (Vec<usize>, _) = (0..toy.tokens.len()).partition(by_word);
        let pass = |moves, tokens| {
            let rule = stale_rule(moves, true);
            rule.chain(toy, &[vec![rule.order(toy, tokens)]])
        };
        let epoch = pass(ZEN, words).then(&pass(ZEN_DOC, documents));
        let found = distance(&epoch.stationary(), &posterior);
        assert!((found - bias).abs() < 6e-5, "{}: {found}", toy.name);
    }
}
