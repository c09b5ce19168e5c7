//! Measures for the choice of the number of topics, of one model each.
//!
//! | measure | better | source |
//! |---|---|---|
//! | [`cao_juan`] | lower | mean cosine of two topics: Cao, Xia, Li, Zhang and Tang 2009 (the measure that *ldatuning* names CaoJuan2009) |
//! | [`deveaud`] | higher | mean divergence of two topics: Deveaud, SanJuan and Bellot 2014, section 3.2 |
//! | [`arun`] | lower | divergence of the singular values of φ from the shares of topics: Arun, Suresh, Veni Madhavan and Narasimha Murthy 2010, equation 4 |
//!
//! None of them looks at what a reader sees, and on large collections the first two are often best at an end
//! of the range. Read them together with held-out perplexity and coherence.
//!
//! The programs of *ldatuning* differ: its Deveaud2014 is half of the one here, and its Arun2010 neither
//! sorts nor normalises the two vectors, as the paper does.

use rayon::prelude::*;

use super::eigenvalues::symmetric_eigenvalues;
use crate::corpus::Corpus;
use crate::model::TopicModel;
use crate::train::Assignments;

/// Largest number of topics for [`arun`], whose cost grows with its third power.
pub const MAX_ARUN_TOPICS: usize = 2000;

/// Mean cosine of the angle between two topics' φ, over all pairs; 1 for equal topics. `None` below two
/// topics. One pass over the entries of the model.
///
/// ```
/// use lda_core::eval::num_topics::cao_juan;
/// use lda_core::model::{TopicModel, Weights};
///
/// let rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
/// assert!(cao_juan(&model).is_some_and(|mean| mean.abs() < 1e-12));
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
pub fn cao_juan(model: &TopicModel) -> Option<f64> {
    let (topics, words) = (model.num_topics(), model.num_words());
    if topics < 2 {
        return None;
    }
    let floors: Vec<f64> = (0..topics).map(|topic| model.floor(topic)).collect();
    let mut squares: Vec<f64> = floors.iter().map(|floor| floor * floor * words as f64).collect();
    for word in 0..words {
        model.for_each_phi(word, |topic, phi| {
            let floor = floors[topic as usize];
            squares[topic as usize] += phi * phi - floor * floor;
        });
    }
    let norms: Vec<f64> = squares.iter().map(|square| square.sqrt()).collect();
    // Σ_{k ≠ j} cos(k, j) = |Σ_k φ_k / |φ_k||² − K.
    let base: f64 = floors.iter().zip(&norms).map(|(floor, norm)| floor / norm).sum();
    let mut sum = 0.0;
    for word in 0..words {
        let mut of_word = base;
        model.for_each_phi(word, |topic, phi| {
            of_word += (phi - floors[topic as usize]) / norms[topic as usize];
        });
        sum += of_word * of_word;
    }
    let topics = topics as f64;
    Some((sum - topics) / (topics * (topics - 1.0)))
}

/// Mean over all pairs of topics of ½ KL(p ‖ q) + ½ KL(q ‖ p), in nats, which the paper calls the
/// Jensen–Shannon divergence. Infinite if a word has probability 0 in a topic and not in another. `None`
/// below two topics. One pass over the entries of the model.
///
/// ```
/// use lda_core::eval::num_topics::deveaud;
/// use lda_core::model::{TopicModel, Weights};
///
/// let rows = [[0.5, 0.5], [0.25, 0.75]];
/// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
/// let expected = 0.5 * (0.25 * 2f64.ln() - 0.25 * (0.5f64 / 0.75).ln());
/// assert!(deveaud(&model).is_some_and(|mean| (mean - expected).abs() < 1e-6));
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
pub fn deveaud(model: &TopicModel) -> Option<f64> {
    let topics = model.num_topics();
    if topics < 2 {
        return None;
    }
    let x_ln_x = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
    let floors: Vec<f64> = (0..topics).map(|topic| model.floor(topic)).collect();
    // ln 0 is counted apart: −∞ − −∞ is no number.
    let ln = |x: f64| if x > 0.0 { x.ln() } else { 0.0 };
    let all = |of: &dyn Fn(f64) -> f64| floors.iter().map(|&floor| of(floor)).sum::<f64>();
    let zeros = floors.iter().filter(|&&floor| floor <= 0.0).count();
    let base = [all(&|p| p), all(&ln), all(&x_ln_x)];
    // ½ Σ_{k, j} (p_k − p_j)(ln p_k − ln p_j) = K Σ_k p_k ln p_k − Σ_k p_k Σ_k ln p_k.
    let mut sum = 0.0;
    for word in 0..model.num_words() {
        let ([mut p, mut logs, mut both], mut zeros) = (base, zeros);
        model.for_each_phi(word, |topic, phi| {
            let floor = floors[topic as usize];
            p += phi - floor;
            logs += ln(phi) - ln(floor);
            both += x_ln_x(phi) - x_ln_x(floor);
            zeros -= usize::from(floor <= 0.0 && phi > 0.0);
        });
        if zeros > 0 && zeros < topics {
            return Some(f64::INFINITY);
        }
        sum += topics as f64 * both - p * logs;
    }
    let topics = topics as f64;
    // Rounding may take equal topics below 0.
    Some((sum / (topics * (topics - 1.0))).max(0.0))
}

/// Symmetric divergence KL(a ‖ b) + KL(b ‖ a), in nats, of the singular values of φ (a K × V matrix) from
/// the shares of topics in the corpus, Σ_d N_d θ_d, both normalised and sorted. θ_dk is
/// (C_dk + α_k) / (N_d + Σ α). `None` below two topics and above [`MAX_ARUN_TOPICS`]. O(K) passes over
/// the entries of the model, in the current rayon pool, and O(K³).
///
/// ```
/// use lda_core::eval::num_topics::arun;
/// use lda_core::{Corpus, Lda};
///
/// let corpus = Corpus::from_tokens((0..40).map(|d| [d % 2, d % 2, 2 + d % 2]))?;
/// let trained = Lda::topics(2).alpha(0.1).epochs(50).train(&corpus, ())?;
/// let found = arun(&trained.model, &corpus, &trained.assignments);
/// // Two topics of the same size, without a common word.
/// assert!(found.is_some_and(|divergence| divergence < 0.01));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If `assignments` are not those of the corpus, or a topic is not below K.
pub fn arun(model: &TopicModel, corpus: &Corpus, assignments: &Assignments) -> Option<f64> {
    let topics = model.num_topics();
    if !(2..=MAX_ARUN_TOPICS).contains(&topics) {
        return None;
    }
    let mut values: Vec<f64> = symmetric_eigenvalues(&mut products(model), topics);
    // Rounding may take the smallest ones below 0.
    let largest = values.last().copied().unwrap_or(0.0);
    values.iter_mut().for_each(|value| *value = value.max(largest * f64::EPSILON).sqrt());
    let mut shares = shares(model, corpus, assignments);
    shares.sort_unstable_by(f64::total_cmp);
    let (a, b) = (normalized(values), normalized(shares));
    let terms = a.iter().zip(&b).map(|(a, b)| (a - b) * (a / b).ln());
    Some(terms.sum())
}

/// φ φᵀ.
fn products(model: &TopicModel) -> Vec<f64> {
    let topics = model.by_topic();
    let row = |dense: &mut Vec<f64>, k: usize| -> Vec<f64> {
        dense.fill(model.floor(k));
        topics[k].iter().for_each(|&(word, phi)| dense[word as usize] = phi);
        let all: f64 = dense.iter().sum();
        let with = |j: usize| {
            let floor = model.floor(j);
            let more = topics[j].iter().map(|&(word, phi)| (phi - floor) * dense[word as usize]);
            floor * all + more.sum::<f64>()
        };
        (0..topics.len()).map(with).collect()
    };
    let dense = || vec![0.0; model.num_words()];
    let rows: Vec<Vec<f64>> = (0..topics.len()).into_par_iter().map_init(dense, row).collect();
    rows.concat()
}

/// Σ_d N_d θ_d.
fn shares(model: &TopicModel, corpus: &Corpus, assignments: &Assignments) -> Vec<f64> {
    let (topics, alpha) = (model.num_topics(), model.alpha());
    let alpha_sum = alpha.sum(topics);
    let mut shares = vec![0.0; topics];
    let mut of_prior = 0.0;
    for d in 0..corpus.num_documents() {
        let length = corpus.doc_length(d) as f64;
        let weight = length / (length + alpha_sum);
        of_prior += weight;
        assignments.document(d).iter().for_each(|&topic| shares[topic as usize] += weight);
    }
    let prior = (0..topics).map(|topic| of_prior * alpha.get(topic));
    shares.iter_mut().zip(prior).for_each(|(share, more)| *share += more);
    shares
}

fn normalized(mut values: Vec<f64>) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Weights;
    use crate::train::{TrainOptions, Trainer};

    /// A trained model, whose φ has floors and entries, with its corpus and topics.
    fn trained(topics: u32) -> (TopicModel, Corpus, Assignments) {
        let documents = (0..60).map(|d| (0..20).map(move |i| (d * 7 + i * i) % 31));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let mut trainer = Trainer::new(&corpus, &TrainOptions::new(topics).epochs(20)).unwrap();
        trainer.run((), || false);
        let (model, assignments) = (trainer.model(), trainer.assignments());
        drop(trainer);
        (model, corpus, assignments)
    }

    /// All pairs of topics, with the dense φ of each.
    fn mean_of_pairs(model: &TopicModel, of: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        let row = |topic| (0..model.num_words()).map(|w| model.phi(topic, w)).collect();
        let rows: Vec<Vec<f64>> = (0..model.num_topics()).map(row).collect();
        let pairs = (0..rows.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let values: Vec<f64> = pairs.map(|(i, j)| of(&rows[i], &rows[j])).collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn dot(p: &[f64], q: &[f64]) -> f64 {
        p.iter().zip(q).map(|(p, q)| p * q).sum()
    }

    #[test]
    fn they_are_the_means_over_all_pairs() {
        for topics in [2, 3, 12] {
            let (model, ..) = trained(topics);
            let cosine = mean_of_pairs(&model, |p, q| dot(p, q) / (dot(p, p) * dot(q, q)).sqrt());
            let found = cao_juan(&model).unwrap();
            assert!((found - cosine).abs() < 1e-9, "{found}, {cosine}");
            let divergence = mean_of_pairs(&model, |p, q| {
                p.iter().zip(q).map(|(p, q)| 0.5 * (p - q) * (p / q).ln()).sum()
            });
            let found = deveaud(&model).unwrap();
            assert!((found / divergence - 1.0).abs() < 1e-9, "{found}, {divergence}");
        }
    }

    #[test]
    fn equal_topics_and_topics_with_zeros() {
        let model = |rows: &[[f64; 3]]| {
            TopicModel::from_weights(Weights::from_rows(rows).unwrap(), 0.1.into())
        };
        let equal = model(&[[0.2, 0.3, 0.5]; 4]);
        assert!((cao_juan(&equal).unwrap() - 1.0).abs() < 1e-6);
        assert!(deveaud(&equal).unwrap() < 1e-6);
        // A word that no topic has does not matter.
        let without = model(&[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]);
        let expected = 0.125 * 3f64.ln();
        assert!((deveaud(&without).unwrap() - expected).abs() < 1e-6);
        let apart = model(&[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]);
        assert_eq!(deveaud(&apart), Some(f64::INFINITY));
        let one = model(&[[0.2, 0.3, 0.5]]);
        assert_eq!((cao_juan(&one), deveaud(&one)), (None, None));
    }

    /// For two topics the singular values have a closed form.
    #[test]
    fn arun_of_two_topics() {
        let (model, corpus, assignments) = trained(2);
        let row = |topic| (0..model.num_words()).map(|w| model.phi(topic, w)).collect();
        let [p, q]: [Vec<f64>; 2] = [row(0), row(1)];
        let (a, b, c) = (dot(&p, &p), dot(&p, &q), dot(&q, &q));
        let root = ((a - c) * (a - c) + 4.0 * b * b).sqrt();
        let singular =
            normalized(vec![((a + c - root) / 2.0).sqrt(), ((a + c + root) / 2.0).sqrt()]);
        let mut shares = [0.0; 2];
        for d in 0..corpus.num_documents() {
            let length = corpus.doc_length(d) as f64;
            for (topic, share) in shares.iter_mut().enumerate() {
                let own = assignments.document(d).iter().filter(|&&of| of as usize == topic);
                let theta = (own.count() as f64 + model.alpha().get(topic))
                    / (length + model.alpha().sum(2));
                *share += length * theta;
            }
        }
        shares.sort_unstable_by(f64::total_cmp);
        let shares = normalized(shares.to_vec());
        let kl = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * (a / b).ln()).sum::<f64>();
        let expected = kl(&singular, &shares) + kl(&shares, &singular);
        let found = arun(&model, &corpus, &assignments).unwrap();
        assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
    }

    #[test]
    fn arun_is_finite_for_many_topics_and_the_same_on_all_threads() {
        // More topics than words: some singular values are 0.
        let (model, corpus, assignments) = trained(40);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| arun(&model, &corpus, &assignments)).unwrap()
        };
        let found = on(1);
        assert!(found.is_finite() && found > 0.0, "{found}");
        assert_eq!(found, on(3));
    }
}
