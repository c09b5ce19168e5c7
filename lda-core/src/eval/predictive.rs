//! Likelihood of the training words given point estimates of θ and φ.
//!
//! ```text
//! Σ_d Σ_{w in d} n_dw ln Σ_k θ_dk φ_kw        θ_dk = (C_dk + α_k) / (L_d + ᾱ)
//!                                             φ_kw = (C_wk + β) / (C_k + β̄)
//! ```
//!
//! ZenLDA (Zhao et al., 2015) plots it as "log likelihood". Unlike the [log
//! joint](super::likelihood) it is the likelihood of the words alone: assignments enter only
//! through the counts, so states with equal counts have equal values. Unlike
//! [perplexity](super::perplexity::held_out_perplexity) it uses the words from which θ and φ were
//! estimated, which favours many topics. It compares samplers for the same corpus, K and priors,
//! not models.
//!
//! The sum over topics is split in two,
//!
//! ```text
//! Σ_k (C_dk + α_k) φ_kw = Σ_{k in d} C_dk φ_kw  +  Σ_k α_k φ_kw
//!                         the K_d topics of d      per word: Σ_k α_k β / (C_k + β̄), computed once,
//!                                                  plus the word's K_w topics
//! ```
//!
//! and words are processed one at a time with φ_w in a dense array by topic, so that a term of the
//! first sum is one look-up in K values that stay in the cache. Cost: O(K_d) per distinct
//! (document, word) pair and O(K_w) per word, in parallel over words in the current rayon pool.
//! Memory during the call: 8 bytes per pair and per non-zero of C_d, and 8 bytes per topic and
//! thread. The value has the same bits for any number of threads and any order of entries in the
//! view's rows.

use super::sum::{Sum, map_chunks, map_chunks_with};
use crate::corpus::Corpus;
use crate::counts::{DocumentCounts, WordCounts};
use crate::prior::{Alpha, PriorError, check_beta};

/// Rows per unit of work. Fixed, since the chunks decide the order of additions.
const DOCUMENTS_PER_CHUNK: usize = 1024;
const WORDS_PER_CHUNK: usize = 256;

/// Log likelihood of all tokens of `corpus` given θ and φ of its counts, in nats.
///
/// # Errors
/// [`PriorError`], if a prior is not finite and positive, or α does not have one value per topic.
///
/// # Panics
/// If counts and corpus differ in the number of documents or words.
///
/// ```
/// use std::ops::Range;
/// use lda_core::corpus::CorpusBuilder;
/// use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};
/// use lda_core::eval::log_predictive;
/// use lda_core::prior::Alpha;
///
/// /// One document "a a b", the first word in topic 0 and the second in topic 1.
/// struct Tiny;
/// impl DocumentCounts for Tiny {
///     fn num_topics(&self) -> usize { 2 }
///     fn num_documents(&self) -> usize { 1 }
///     fn visit_documents(&self, _: Range<usize>, visit: &mut VisitRow<'_>) {
///         visit(0, &[(0, 2), (1, 1)]);
///     }
/// }
/// impl WordCounts for Tiny {
///     fn num_topics(&self) -> usize { 2 }
///     fn num_words(&self) -> usize { 2 }
///     fn topic_total(&self, topic: usize) -> u64 { [2, 1][topic] }
///     fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
///         for word in words {
///             visit(word, &[[(0, 2)], [(1, 1)]][word]);
///         }
///     }
/// }
///
/// let mut builder = CorpusBuilder::new();
/// builder.push_tokens([0, 0, 1])?;
/// let found = log_predictive(&Tiny, &builder.build()?, &Alpha::Symmetric(0.5), 1.0)?;
/// // θ = (2.5, 1.5) / 4; φ of word 0 is 3/4 in topic 0 and 1/3 in topic 1.
/// let a: f64 = (2.5 * 3.0 / 4.0 + 1.5 * 1.0 / 3.0) / 4.0;
/// assert!((found - (2.0 * a.ln() + (1.0 - a).ln())).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn log_predictive<C>(
    counts: &C,
    corpus: &Corpus,
    alpha: &Alpha,
    beta: f64,
) -> Result<f64, PriorError>
where
    C: DocumentCounts + WordCounts + ?Sized,
{
    let num_topics = WordCounts::num_topics(counts);
    let (num_documents, num_words) = (counts.num_documents(), counts.num_words());
    assert_eq!(num_documents, corpus.num_documents(), "documents of the counts and of the corpus");
    assert_eq!(num_words, corpus.num_words(), "words of the counts and of the corpus");
    alpha.check(num_topics)?;
    check_beta(beta, num_words)?;
    let beta_sum = beta * num_words as f64;
    let scales: Vec<f64> =
        (0..num_topics).map(|k| 1.0 / (counts.topic_total(k) as f64 + beta_sum)).collect();
    let floors: Vec<f64> = scales.iter().map(|scale| beta * scale).collect();
    let mut floor = Sum::default();
    floors.iter().enumerate().for_each(|(k, floor_k)| floor.add(alpha.get(k) * floor_k));
    let floor = floor.value();

    let rows = DocumentRows::new(counts);
    let pairs = PairsByWord::new(corpus);
    let words = map_chunks_with(
        num_words,
        WORDS_PER_CHUNK,
        &|| (floors.clone(), Vec::new()),
        &|(phi, row), words| {
            let mut sum = Sum::default();
            counts.visit_words(words, &mut |word, visited| {
                row.clear();
                row.extend_from_slice(visited);
                row.sort_unstable();
                let mut prior = floor;
                for &(k, count) in row.iter() {
                    let excess = f64::from(count) * scales[k as usize];
                    prior += alpha.get(k as usize) * excess;
                    phi[k as usize] = floors[k as usize] + excess;
                }
                for &(document, tokens) in pairs.of(word) {
                    let known = rows.of(document).iter();
                    let known: f64 = known.map(|&(k, n)| f64::from(n) * phi[k as usize]).sum();
                    sum.add(f64::from(tokens) * (known + prior).ln());
                }
                for &(k, _) in row.iter() {
                    phi[k as usize] = floors[k as usize];
                }
            });
            sum.value()
        },
    );
    let mut total = Sum::default();
    words.into_iter().for_each(|part| total.add(part));
    add_denominators(&mut total, corpus, alpha.sum(num_topics));
    Ok(total.value())
}

/// Adds the denominators of θ, each the same for all tokens of a document.
fn add_denominators(total: &mut Sum, corpus: &Corpus, alpha_sum: f64) {
    for document in corpus.documents() {
        let length = document.len() as f64;
        total.add(-length * (length + alpha_sum).ln());
    }
}

/// All rows of C_d, ascending by topic, so that sums over a row have the same bits for any order in
/// the view.
struct DocumentRows {
    /// Row d is `entries[offsets[d]..offsets[d + 1]]`.
    offsets: Vec<usize>,
    entries: Vec<(u32, u32)>,
}

impl DocumentRows {
    fn new<C: DocumentCounts + ?Sized>(counts: &C) -> Self {
        let num_documents = counts.num_documents();
        let chunks = map_chunks(num_documents, DOCUMENTS_PER_CHUNK, &|documents| {
            let first = documents.start;
            let mut lengths = vec![0; documents.len()];
            let mut entries: Vec<(u32, u32)> = Vec::new();
            counts.visit_documents(documents, &mut |document, row| {
                lengths[document - first] = row.len();
                let start = entries.len();
                entries.extend_from_slice(row);
                entries[start..].sort_unstable();
            });
            (lengths, entries)
        });
        let mut offsets = Vec::with_capacity(num_documents + 1);
        offsets.push(0);
        let mut entries = Vec::with_capacity(chunks.iter().map(|(_, part)| part.len()).sum());
        let mut end = 0;
        for (lengths, part) in chunks {
            for length in lengths {
                end += length;
                offsets.push(end);
            }
            entries.extend_from_slice(&part);
        }
        Self { offsets, entries }
    }

    #[inline]
    fn of(&self, document: u32) -> &[(u32, u32)] {
        let d = document as usize;
        &self.entries[self.offsets[d]..self.offsets[d + 1]]
    }
}

/// The distinct (document, word) pairs of a corpus, by word.
struct PairsByWord {
    /// Word w's pairs are `pairs[offsets[w]..offsets[w + 1]]`.
    offsets: Vec<usize>,
    /// Document and tokens, documents ascending.
    pairs: Vec<(u32, u32)>,
}

impl PairsByWord {
    fn new(corpus: &Corpus) -> Self {
        let mut offsets = Vec::with_capacity(corpus.num_words() + 1);
        let mut end = 0;
        offsets.push(0);
        for frequency in corpus.document_frequencies() {
            end += frequency as usize;
            offsets.push(end);
        }
        let mut next = offsets.clone();
        let mut pairs = vec![(0, 0); end];
        for (document, pairs_of_document) in (0u32..).zip(corpus.documents()) {
            for (word, tokens) in pairs_of_document.iter() {
                pairs[next[word as usize]] = (document, tokens);
                next[word as usize] += 1;
            }
        }
        Self { offsets, pairs }
    }

    fn of(&self, word: usize) -> &[(u32, u32)] {
        &self.pairs[self.offsets[word]..self.offsets[word + 1]]
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::corpus::CorpusBuilder;
    use crate::counts::VisitRow;

    /// A corpus, its dense counts, and whether rows are visited in reverse order of entries.
    struct Dense {
        corpus: Corpus,
        documents: Vec<Vec<u32>>,
        words: Vec<Vec<u32>>,
        backwards: bool,
    }

    impl Dense {
        /// Documents of 0 to 12 tokens, some words of them never used, topics by a rule.
        fn new(num_documents: u32, num_words: u32, num_topics: u32) -> Self {
            let mut builder = CorpusBuilder::new().num_words(num_words);
            let mut documents = vec![vec![0; num_topics as usize]; num_documents as usize];
            let mut words = vec![vec![0; num_topics as usize]; num_words as usize];
            for d in 0..num_documents {
                let tokens: Vec<u32> =
                    (0..d % 13).map(|i| (d * 7 + i * i * 3) % (num_words - 2)).collect();
                for (i, &word) in (0..).zip(&tokens) {
                    let topic = ((d / 3 + word * 5 + i % 2) % num_topics) as usize;
                    documents[d as usize][topic] += 1;
                    words[word as usize][topic] += 1;
                }
                builder.push_tokens(tokens).unwrap();
            }
            Self { corpus: builder.build().unwrap(), documents, words, backwards: false }
        }

        fn visit(&self, rows: &[Vec<u32>], range: Range<usize>, visit: &mut VisitRow<'_>) {
            for id in range {
                let counts = (0u32..).zip(rows[id].iter().copied());
                let mut row: Vec<_> = counts.filter(|entry| entry.1 > 0).collect();
                if self.backwards {
                    row.reverse();
                }
                if !row.is_empty() {
                    visit(id, &row);
                }
            }
        }

        /// Reference: sums over all topics for every pair.
        fn plain(&self, alpha: &Alpha, beta: f64) -> f64 {
            let (topics, words) = (self.words[0].len(), self.words.len());
            let mut sum = 0.0;
            for (d, document) in self.corpus.documents().enumerate() {
                let length = document.len() as f64 + alpha.sum(topics);
                for (word, tokens) in document.iter() {
                    let p = |k: usize| {
                        let theta = (f64::from(self.documents[d][k]) + alpha.get(k)) / length;
                        let total = self.topic_total(k) as f64 + beta * words as f64;
                        theta * (f64::from(self.words[word as usize][k]) + beta) / total
                    };
                    sum += f64::from(tokens) * (0..topics).map(p).sum::<f64>().ln();
                }
            }
            sum
        }
    }

    impl DocumentCounts for Dense {
        fn num_topics(&self) -> usize {
            self.words[0].len()
        }
        fn num_documents(&self) -> usize {
            self.documents.len()
        }
        fn visit_documents(&self, range: Range<usize>, f: &mut VisitRow<'_>) {
            self.visit(&self.documents, range, f);
        }
    }

    impl WordCounts for Dense {
        fn num_topics(&self) -> usize {
            self.words[0].len()
        }
        fn num_words(&self) -> usize {
            self.words.len()
        }
        fn topic_total(&self, topic: usize) -> u64 {
            self.words.iter().map(|row| u64::from(row[topic])).sum()
        }
        fn visit_words(&self, range: Range<usize>, f: &mut VisitRow<'_>) {
            self.visit(&self.words, range, f);
        }
    }

    #[test]
    fn it_is_the_plain_sum() {
        for counts in [Dense::new(60, 40, 7), Dense::new(9, 3, 1), Dense::new(2, 5, 4)] {
            let topics = DocumentCounts::num_topics(&counts);
            let own = (0..topics).map(|k| 0.1 + 0.3 * k as f64).collect();
            for alpha in [Alpha::Symmetric(0.4), Alpha::PerTopic(own)] {
                let found = log_predictive(&counts, &counts.corpus, &alpha, 0.05).unwrap();
                let plain = counts.plain(&alpha, 0.05);
                assert!((found - plain).abs() <= 1e-10 * plain.abs(), "{found}, not {plain}");
            }
        }
    }

    #[test]
    fn threads_and_the_order_of_rows_do_not_change_a_bit() {
        // Several chunks of documents and of words.
        let mut counts = Dense::new(3_000, 700, 11);
        let alpha = Alpha::Symmetric(0.1);
        let in_pool = |counts: &Dense, threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| log_predictive(counts, &counts.corpus, &alpha, 0.01).unwrap()).to_bits()
        };
        let one = in_pool(&counts, 1);
        assert!([2, 3, 7].into_iter().all(|threads| in_pool(&counts, threads) == one));
        counts.backwards = true;
        assert_eq!(in_pool(&counts, 2), one);
        let (found, plain) = (f64::from_bits(one), counts.plain(&alpha, 0.01));
        assert!((found - plain).abs() <= 1e-10 * plain.abs(), "{found}, not {plain}");
    }

    #[test]
    fn bad_priors_are_refused() {
        let counts = Dense::new(9, 5, 2);
        let with = |alpha: &Alpha, beta| log_predictive(&counts, &counts.corpus, alpha, beta);
        assert!(with(&Alpha::Symmetric(0.0), 0.1).is_err());
        assert!(with(&Alpha::PerTopic(vec![0.1]), 0.1).is_err());
        assert!(with(&Alpha::Symmetric(0.1), 0.0).is_err());
    }

    #[test]
    #[should_panic(expected = "documents of the counts and of the corpus")]
    fn another_corpus_is_refused() {
        let _ = log_predictive(
            &Dense::new(9, 5, 2),
            &Dense::new(8, 5, 2).corpus,
            &Alpha::Symmetric(0.1),
            0.1,
        );
    }
}
