//! The log joint likelihood of words and assignments, log p(W, Z | α, β).
//!
//! ```text
//! Σ_d [ lnΓ(ᾱ) − lnΓ(ᾱ + L_d) + Σ_k ( lnΓ(α_k + C_dk) − lnΓ(α_k) ) ]     document part
//! Σ_k [ lnΓ(β̄) − lnΓ(β̄ + C_k) + Σ_w ( lnΓ(β + C_wk) − lnΓ(β) ) ]         word part
//! ```
//!
//! LDA* (Yu et al., VLDB 2017), section 6.1, whose Γ(α)/Γ(α + L_d) means ᾱ = Σ_k α_k. A Gibbs
//! sampler climbs it, and samplers are compared by it: its per-token value rises from the random
//! start and levels off when the chain has converged. Both parts are worth watching, since a
//! proposal may improve one and worsen the other. The value is a joint of words *and* assignments:
//! it is not the probability of held-out text (see perplexity), and values for different K or
//! priors are not comparable.
//!
//! Cost: one table look-up per non-zero with a small count, two lnΓ otherwise, in parallel over
//! rows in the current rayon pool. Zeros cost nothing, since lnΓ(α + 0) − lnΓ(α) = 0. The value has
//! the same bits for any number of threads.

use serde::{Deserialize, Serialize};

use super::sum::{Sum, sum_chunks};
use crate::counts::{DocumentCounts, WordCounts};
use crate::prior::{Alpha, PriorError, check_beta};
use crate::special::ln_rising;

/// Rows per unit of work. Fixed, since the chunks decide the order of additions.
const DOCUMENTS_PER_CHUNK: usize = 1024;
const WORDS_PER_CHUNK: usize = 256;
const TOPICS_PER_CHUNK: usize = 4096;

/// Counts up to this are looked up if all rows share one prior value.
const SHARED_TABLE: usize = 512;
/// Counts up to this are looked up if each topic has its own α_k; 8 bytes per entry and topic.
const PER_TOPIC_TABLE: usize = 4;

/// log p(W, Z | α, β) in its two parts, totals over the corpus in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogJoint {
    /// log p(Z | α): high if documents use few topics.
    pub documents: f64,
    /// log p(W | Z, β): high if topics use few words.
    pub words: f64,
}

impl LogJoint {
    /// Sum of both parts.
    pub fn total(&self) -> f64 {
        self.documents + self.words
    }

    /// The total per token, for plots.
    pub fn per_token(&self, num_tokens: u64) -> f64 {
        self.total() / num_tokens as f64
    }
}

/// The log joint likelihood of a state of the counts.
///
/// # Errors
/// [`PriorError`], if a prior is not finite and positive, or α does not have one value per topic.
///
/// ```
/// use std::ops::Range;
/// use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};
/// use lda_core::eval::log_joint;
/// use lda_core::prior::Alpha;
///
/// /// One document, one word, three tokens, all in topic 1 of 2.
/// struct Tiny;
/// impl DocumentCounts for Tiny {
///     fn num_topics(&self) -> usize { 2 }
///     fn num_documents(&self) -> usize { 1 }
///     fn visit_documents(&self, _: Range<usize>, visit: &mut VisitRow<'_>) {
///         visit(0, &[(1, 3)]);
///     }
/// }
/// impl WordCounts for Tiny {
///     fn num_topics(&self) -> usize { 2 }
///     fn num_words(&self) -> usize { 1 }
///     fn topic_total(&self, topic: usize) -> u64 { [0, 3][topic] }
///     fn visit_words(&self, _: Range<usize>, visit: &mut VisitRow<'_>) {
///         visit(0, &[(1, 3)]);
///     }
/// }
///
/// let joint = log_joint(&Tiny, &Alpha::Symmetric(0.5), 0.01)?;
/// // With one word the words are certain; p(Z) = (0.5 · 1.5 · 2.5) / (1 · 2 · 3).
/// assert!(joint.words.abs() < 1e-12);
/// assert!((joint.documents - 0.3125f64.ln()).abs() < 1e-12);
/// # Ok::<(), lda_core::prior::PriorError>(())
/// ```
pub fn log_joint<C>(counts: &C, alpha: &Alpha, beta: f64) -> Result<LogJoint, PriorError>
where
    C: DocumentCounts + WordCounts + ?Sized,
{
    Ok(LogJoint { documents: document_part(counts, alpha)?, words: word_part(counts, beta)? })
}

/// The document part alone, log p(Z | α).
///
/// # Errors
/// [`PriorError`], if α is invalid for the number of topics.
pub fn document_part<C>(counts: &C, alpha: &Alpha) -> Result<f64, PriorError>
where
    C: DocumentCounts + ?Sized,
{
    let num_topics = counts.num_topics();
    alpha.check(num_topics)?;
    let alpha_sum = alpha.sum(num_topics);
    let rising = match alpha {
        Alpha::Symmetric(alpha) => Rising::shared(*alpha),
        Alpha::PerTopic(alphas) => Rising::per_topic(alphas),
    };
    Ok(sum_chunks(counts.num_documents(), DOCUMENTS_PER_CHUNK, &|documents, sum| {
        counts.visit_documents(documents, &mut |_, row| {
            let mut length = 0u64;
            for &(topic, count) in row {
                length += u64::from(count);
                sum.add(rising.ln(topic, count));
            }
            sum.add(-ln_rising(alpha_sum, length));
        });
    }))
}

/// The word part alone, log p(W | Z, β).
///
/// # Errors
/// [`PriorError`], if β is not finite and positive.
pub fn word_part<C>(counts: &C, beta: f64) -> Result<f64, PriorError>
where
    C: WordCounts + ?Sized,
{
    let num_words = counts.num_words();
    check_beta(beta, num_words)?;
    let beta_sum = beta * num_words as f64;
    let rising = Rising::shared(beta);
    let rows = sum_chunks(num_words, WORDS_PER_CHUNK, &|words, sum| {
        counts.visit_words(words, &mut |_, row| {
            for &(topic, count) in row {
                sum.add(rising.ln(topic, count));
            }
        });
    });
    let totals = sum_chunks(counts.num_topics(), TOPICS_PER_CHUNK, &|topics, sum| {
        for topic in topics {
            sum.add(ln_rising(beta_sum, counts.topic_total(topic)));
        }
    });
    let mut part = Sum::default();
    part.add(rows);
    part.add(-totals);
    Ok(part.value())
}

/// lnΓ(a_k + n) − lnΓ(a_k) with a table for small n: most counts of C_d are 1, most of C_w are
/// small.
enum Rising {
    /// One a for all topics; index n of the table.
    Shared { base: f64, table: Vec<f64> },
    /// One a per topic; index n − 1 of topic k's table.
    PerTopic { bases: Vec<f64>, table: Vec<[f64; PER_TOPIC_TABLE]> },
}

impl Rising {
    fn shared(base: f64) -> Self {
        let table = (0..=SHARED_TABLE as u64).map(|count| ln_rising(base, count)).collect();
        Self::Shared { base, table }
    }

    fn per_topic(bases: &[f64]) -> Self {
        let row = |&base: &f64| std::array::from_fn(|count| ln_rising(base, count as u64 + 1));
        Self::PerTopic { bases: bases.to_vec(), table: bases.iter().map(row).collect() }
    }

    #[inline]
    fn ln(&self, topic: u32, count: u32) -> f64 {
        match self {
            Self::Shared { base, table } => match table.get(count as usize) {
                Some(&known) => known,
                None => ln_rising(*base, u64::from(count)),
            },
            Self::PerTopic { bases, table } => {
                match table[topic as usize].get((count as usize).wrapping_sub(1)) {
                    Some(&known) => known,
                    None => ln_rising(bases[topic as usize], u64::from(count)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::counts::VisitRow;

    /// Counts of tokens (document, word, topic), stored densely: the simplest view.
    struct Dense {
        num_topics: usize,
        documents: Vec<Vec<u32>>,
        words: Vec<Vec<u32>>,
    }

    impl Dense {
        fn new(num_topics: usize, num_words: usize, tokens: &[(usize, usize, usize)]) -> Self {
            let num_documents = tokens.iter().map(|token| token.0 + 1).max().unwrap_or(0);
            let mut counts = Self {
                num_topics,
                documents: vec![vec![0; num_topics]; num_documents],
                words: vec![vec![0; num_topics]; num_words],
            };
            for &(document, word, topic) in tokens {
                counts.documents[document][topic] += 1;
                counts.words[word][topic] += 1;
            }
            counts
        }
    }

    fn visit(rows: &[Vec<u32>], range: Range<usize>, visit: &mut VisitRow<'_>) {
        for id in range {
            let row: Vec<_> = (0u32..).zip(rows[id].iter().copied()).filter(|e| e.1 > 0).collect();
            visit(id, &row);
        }
    }

    impl DocumentCounts for Dense {
        fn num_topics(&self) -> usize {
            self.num_topics
        }
        fn num_documents(&self) -> usize {
            self.documents.len()
        }
        fn visit_documents(&self, range: Range<usize>, f: &mut VisitRow<'_>) {
            visit(&self.documents, range, f);
        }
    }

    impl WordCounts for Dense {
        fn num_topics(&self) -> usize {
            self.num_topics
        }
        fn num_words(&self) -> usize {
            self.words.len()
        }
        fn topic_total(&self, topic: usize) -> u64 {
            self.words.iter().map(|row| u64::from(row[topic])).sum()
        }
        fn visit_words(&self, range: Range<usize>, f: &mut VisitRow<'_>) {
            visit(&self.words, range, f);
        }
    }

    const BETA: f64 = 0.3;

    fn alpha() -> Alpha {
        Alpha::PerTopic(vec![0.5, 1.5])
    }

    /// The joint of a corpus of (document, word) tokens, digit j of `z` being the topic of token j.
    fn joint(num_words: usize, tokens: &[(usize, usize)], z: usize) -> LogJoint {
        let topic = |j: usize| z >> (tokens.len() - 1 - j) & 1;
        let assigned: Vec<_> =
            tokens.iter().enumerate().map(|(j, &(d, w))| (d, w, topic(j))).collect();
        log_joint(&Dense::new(2, num_words, &assigned), &alpha(), BETA).unwrap()
    }

    const A: [(usize, usize); 3] = [(0, 0), (0, 1), (1, 0)];
    const B: [(usize, usize); 4] = [(0, 0), (0, 0), (0, 1), (1, 1)];
    const C: [(usize, usize); 5] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)];

    #[test]
    fn both_parts_are_those_enumerated() {
        for (z, documents, words) in [
            (0b000, -3.4657359028, -3.0602707947),
            (0b101, -2.3671236141, -1.5939337259),
            (0b111, -0.7576857017, -3.0602707947),
        ] {
            let found = joint(2, &A, z);
            assert!((found.documents - documents).abs() < 1e-9, "{z:03b}: {found:?}");
            assert!((found.words - words).abs() < 1e-9, "{z:03b}: {found:?}");
        }
    }

    /// Over all assignments the joint sums to the evidence, and normalised it is the posterior.
    fn assert_enumerates(
        num_words: usize,
        tokens: &[(usize, usize)],
        evidence: f64,
        posterior: &[f64],
    ) {
        let joints: Vec<f64> =
            (0..1 << tokens.len()).map(|z| joint(num_words, tokens, z).total()).collect();
        let sum: f64 = joints.iter().map(|joint| joint.exp()).sum();
        assert!((sum.ln() - evidence).abs() < 1e-9, "log p(W) is {}", sum.ln());
        assert_eq!(joints.len(), posterior.len());
        for (z, (&joint, &expected)) in joints.iter().zip(posterior).enumerate() {
            let found = (joint - evidence).exp();
            assert!((found - expected).abs() < 1e-9, "state {z:b}: {found}, not {expected}");
        }
    }

    #[test]
    fn corpus_a_is_enumerated() {
        #[rustfmt::skip]
        let posterior = [
            0.0220588235, 0.0661764706, 0.0955882353, 0.0661764706,
            0.0220588235, 0.2867647059, 0.1102941176, 0.3308823529,
        ];
        assert_enumerates(2, &A, -2.711964100423, &posterior);
    }

    #[test]
    fn corpus_b_is_enumerated() {
        #[rustfmt::skip]
        let posterior = [
            0.0123445067, 0.0512771817, 0.0102554363, 0.2166460925,
            0.0102554363, 0.0115373659, 0.0064096477, 0.0512771817,
            0.0102554363, 0.0115373659, 0.0064096477, 0.0512771817,
            0.1203589403, 0.0512771817, 0.1196467572, 0.2592346406,
        ];
        assert_enumerates(2, &B, -3.620035790807, &posterior);
    }

    #[test]
    fn corpus_c_is_enumerated() {
        #[rustfmt::skip]
        let posterior = [
            0.0056581702, 0.0071089830, 0.0071089830, 0.0168370651,
            0.0184833559, 0.0087552738, 0.0087552738, 0.0101022390,
            0.0042653898, 0.0379395199, 0.0020204478, 0.0437763692,
            0.0145921231, 0.0632325332, 0.0033674130, 0.0355449151,
            0.0042653898, 0.0020204478, 0.0379395199, 0.0437763692,
            0.0145921231, 0.0033674130, 0.0632325332, 0.0355449151,
            0.0033674130, 0.0145921231, 0.0145921231, 0.1540279656,
            0.0235718911, 0.0497628812, 0.0497628812, 0.1980359557,
        ];
        assert_enumerates(3, &C, -7.092837730711, &posterior);
    }

    /// Many rows, counts on both sides of the tables' ends, several chunks.
    fn large() -> Dense {
        let mut tokens = Vec::new();
        for document in 0..3_000 {
            for token in 0..document % 7 {
                tokens.push((document, (document * 31 + token) % 600, (document + token) % 5));
            }
        }
        tokens.extend((0..700).map(|_| (2_999, 599, 4)));
        Dense::new(5, 600, &tokens)
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let counts = large();
        let in_pool = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| log_joint(&counts, &Alpha::Symmetric(0.1), 0.01).unwrap())
        };
        let one = in_pool(1);
        for threads in [2, 3, 7] {
            let other = in_pool(threads);
            assert_eq!(one.documents.to_bits(), other.documents.to_bits());
            assert_eq!(one.words.to_bits(), other.words.to_bits());
        }
    }

    #[test]
    fn equal_alphas_per_topic_are_a_symmetric_alpha() {
        let counts = large();
        let symmetric = log_joint(&counts, &Alpha::Symmetric(0.1), 0.01).unwrap();
        let per_topic = log_joint(&counts, &Alpha::PerTopic(vec![0.1; 5]), 0.01).unwrap();
        let relative = (symmetric.documents - per_topic.documents) / symmetric.documents;
        assert!(relative.abs() < 1e-12, "{relative}");
    }

    /// p(z_1 … z_n) of one document, token by token: (C_k + α) / (i + ᾱ).
    #[test]
    fn a_document_is_a_polya_urn() {
        let tokens: Vec<_> = (0..2_000).map(|i| (0, 0, (i * i) % 3)).collect();
        let mut urn = 0.0;
        let mut seen = [0.0; 3];
        for (i, &(_, _, topic)) in tokens.iter().enumerate() {
            urn += ((seen[topic] + 0.2) / (i as f64 + 0.6)).ln();
            seen[topic] += 1.0;
        }
        let counts = Dense::new(3, 1, &tokens);
        for alpha in [Alpha::Symmetric(0.2), Alpha::PerTopic(vec![0.2; 3])] {
            let part = document_part(&counts, &alpha).unwrap();
            assert!((part - urn).abs() < 1e-9, "{part} {urn}");
        }
    }

    #[test]
    fn bad_priors_are_refused() {
        let counts = Dense::new(2, 2, &[(0, 0, 0)]);
        assert!(log_joint(&counts, &Alpha::Symmetric(0.0), 0.1).is_err());
        assert!(log_joint(&counts, &Alpha::PerTopic(vec![0.1]), 0.1).is_err());
        assert!(log_joint(&counts, &Alpha::Symmetric(0.1), f64::NAN).is_err());
    }

    #[test]
    fn no_documents_and_no_tokens_are_likelihood_one() {
        let joint = log_joint(&Dense::new(3, 4, &[]), &Alpha::Symmetric(0.1), 0.1).unwrap();
        assert_eq!(joint.total(), 0.0);
    }
}
