//! Matching of the topics of two models.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::model::TopicModel;

/// One-to-one matching of the topics of two models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// (topic of the first model, topic of the second, overlap), ascending by topic of the first;
    /// one per topic of the smaller model. Overlap is Σ_w min(φ_kw, φ'_jw), which is 1 − L1
    /// distance / 2: 1 for equal topics, 0 for topics without a common word.
    pub pairs: Vec<(u32, u32, f64)>,
}

impl Alignment {
    /// Mean overlap of the pairs, a measure of the similarity of two runs. 1 for models without
    /// topics.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.pairs.iter().map(|pair| pair.2).sum();
        if self.pairs.is_empty() { 1.0 } else { sum / self.pairs.len() as f64 }
    }
}

/// Pairs the topics of two models such that the sum of overlaps is maximal (the assignment problem,
/// solved by shortest augmenting paths: Jonker and Volgenant 1987).
///
/// O(K K' V) for the overlaps, in the current rayon pool, and O(K³) at worst for the pairs. Memory:
/// 8 bytes per pair of topics, and a dense row per thread. `None` if the models differ in the
/// number of words.
///
/// ```
/// use lda_core::eval::align;
/// use lda_core::model::{TopicModel, Weights};
///
/// let model = |rows: [[f64; 3]; 2]| {
///     Weights::from_rows(&rows).map(|weights| TopicModel::from_weights(weights, 0.1.into()))
/// };
/// let first = model([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])?;
/// let second = model([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1]])?;
/// let found = align(&first, &second).expect("three words each");
/// assert_eq!(found.pairs.iter().map(|pair| (pair.0, pair.1)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
/// assert!((found.mean() - 0.9).abs() < 1e-6);
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
pub fn align(first: &TopicModel, second: &TopicModel) -> Option<Alignment> {
    if first.num_words() != second.num_words() {
        return None;
    }
    let swapped = first.num_topics() > second.num_topics();
    let (few, many) = if swapped { (second, first) } else { (first, second) };
    let overlaps = overlaps(few, many);
    let chosen = assign(few.num_topics(), many.num_topics(), |i, j| -overlaps[i][j]);
    let mut pairs: Vec<(u32, u32, f64)> = (0..)
        .zip(chosen)
        .map(|(i, j)| {
            let overlap = overlaps[i as usize][j];
            if swapped { (j as u32, i, overlap) } else { (i, j as u32, overlap) }
        })
        .collect();
    pairs.sort_by_key(|pair| pair.0);
    Some(Alignment { pairs })
}

/// Σ_w min(φ_kw, φ'_jw) of every pair of topics.
fn overlaps(first: &TopicModel, second: &TopicModel) -> Vec<Vec<f64>> {
    let (a, b) = (first.by_topic(), second.by_topic());
    (0..first.num_topics())
        .into_par_iter()
        .map_init(
            || vec![0.0; first.num_words()],
            |dense, k| {
                let floor = first.floor(k);
                dense.fill(floor);
                a[k].iter().for_each(|&(word, phi)| dense[word as usize] = phi);
                let overlap = |j: usize| {
                    let floor_j = second.floor(j);
                    // First all words as if the second topic had only its floor, then a correction
                    // for its entries.
                    let all: f64 = a[k].iter().map(|&(_, phi)| phi.min(floor_j)).sum::<f64>()
                        + (dense.len() - a[k].len()) as f64 * floor.min(floor_j);
                    let right = |&(word, phi): &(u32, f64)| {
                        let own = dense[word as usize];
                        own.min(phi) - own.min(floor_j)
                    };
                    all + b[j].iter().map(right).sum::<f64>()
                };
                (0..second.num_topics()).map(overlap).collect()
            },
        )
        .collect()
}

/// Assigns a distinct column to each row such that the sum of costs is minimal. There are at least
/// as many columns as rows.
fn assign(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    // Potentials keep reduced costs at or above 0; each row is added by a shortest path of them.
    // Column `columns` stands for the row that is being added.
    let (mut of_row, mut of_column) = (vec![0.0; rows], vec![0.0; columns + 1]);
    let mut row_of = vec![NONE; columns + 1];
    for row in 0..rows {
        row_of[columns] = row;
        let mut column = columns;
        let mut least = vec![f64::INFINITY; columns];
        let mut before = vec![NONE; columns];
        let mut used = vec![false; columns + 1];
        while row_of[column] != NONE {
            used[column] = true;
            let (from, mut next, mut step) = (row_of[column], NONE, f64::INFINITY);
            for j in (0..columns).filter(|&j| !used[j]) {
                let reduced = cost(from, j) - of_row[from] - of_column[j];
                if reduced < least[j] {
                    (least[j], before[j]) = (reduced, column);
                }
                if least[j] < step {
                    (step, next) = (least[j], j);
                }
            }
            for j in 0..=columns {
                if used[j] {
                    of_row[row_of[j]] += step;
                    of_column[j] -= step;
                } else if j < columns {
                    least[j] -= step;
                }
            }
            column = next;
        }
        while column != columns {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let mut chosen = vec![0; rows];
    for (column, &row) in row_of[..columns].iter().enumerate() {
        if row != NONE {
            chosen[row] = column;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Corpus;
    use crate::model::Weights;
    use crate::random::Xoshiro256PlusPlus;
    use crate::train::Lda;

    /// Minimal sum over all assignments, by enumeration.
    fn least(costs: &[Vec<f64>], row: usize, used: u32) -> f64 {
        if row == costs.len() {
            return 0.0;
        }
        let free = (0..costs[row].len()).filter(|j| used >> j & 1 == 0);
        free.map(|j| costs[row][j] + least(costs, row + 1, used | 1 << j))
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn no_assignment_costs_less(
            rows in 0usize..6,
            more in 0usize..3,
            costs in prop::collection::vec(-4i8..4, 48),
        ) {
            let columns = rows + more;
            let costs: Vec<Vec<f64>> = (0..rows)
                .map(|i| (0..columns).map(|j| f64::from(costs[i * 8 + j])).collect())
                .collect();
            let chosen = assign(rows, columns, |i, j| costs[i][j]);
            let mut distinct = chosen.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), rows);
            let sum: f64 = chosen.iter().enumerate().map(|(i, &j)| costs[i][j]).sum();
            prop_assert_eq!(sum, least(&costs, 0, 0));
        }
    }

    fn trained(seed: u64, topics: u32) -> TopicModel {
        let documents = (0..40u32).map(|d| (0..20).map(move |i| (d % 4) * 5 + i * (d + 1) % 5));
        let corpus = Corpus::from_tokens(documents).unwrap();
        Lda::topics(topics).alpha(0.1).seed(seed).epochs(60).train(&corpus, ()).unwrap().model
    }

    #[test]
    fn overlaps_are_sums_of_minima() {
        let rows = [[0.0, 0.5, 0.5], [0.2, 0.2, 0.6]];
        let real = TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into());
        for (a, b) in [(trained(1, 3), trained(2, 5)), (real.clone(), real)] {
            let found = overlaps(&a, &b);
            for (k, row) in found.iter().enumerate() {
                for (j, overlap) in row.iter().enumerate() {
                    let words = 0..a.num_words();
                    let expected: f64 = words.map(|w| a.phi(k, w).min(b.phi(j, w))).sum();
                    assert!((overlap - expected).abs() < 1e-12, "{overlap}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn topics_are_found_again() {
        let model = trained(1, 4);
        let same = align(&model, &model).unwrap();
        assert!(same.pairs.iter().all(|&(a, b, overlap)| a == b && (overlap - 1.0).abs() < 1e-9));
        // The same topics in another order, with noise.
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        let rows: Vec<Vec<f64>> =
            (0..7).map(|_| (0..30).map(|_| rng.next_f64().powi(4)).collect()).collect();
        let order = [3, 6, 0, 2, 5, 1, 4];
        let blurred = order.map(|k| rows[k].iter().map(|x| x + 0.02).collect::<Vec<_>>());
        let of = |rows: &[Vec<f64>]| {
            TopicModel::from_weights(Weights::from_rows(rows).unwrap(), 0.1.into())
        };
        let found = align(&of(&rows), &of(&blurred)).unwrap();
        assert!(found.pairs.iter().all(|&(a, b, _)| order[b as usize] == a as usize), "{found:?}");
        assert!(found.mean() > 0.9 && found.mean() < 1.0);
        // If the numbers of topics differ, every topic of the smaller model has a match.
        let (small, large) = (trained(3, 3), trained(4, 6));
        let one = align(&small, &large).unwrap();
        let two = align(&large, &small).unwrap();
        let mut turned: Vec<_> = two.pairs.iter().map(|&(a, b, overlap)| (b, a, overlap)).collect();
        turned.sort_by_key(|pair| pair.0);
        assert_eq!(turned, one.pairs);
        assert_eq!(one.pairs.len(), 3);
    }

    #[test]
    fn other_words_are_no_match() {
        let corpus = Corpus::from_tokens([[0, 1]]).unwrap();
        let small = Lda::topics(2).epochs(1).train(&corpus, ()).unwrap().model;
        assert_eq!(align(&small, &trained(1, 2)), None);
    }
}
