//! Word weights of topics, as written by a baseline: λ of variational Bayes, or expected counts
//! plus prior.
//!
//! ```text
//! weights K V
//! weight weight ...              one line per topic, one weight per word
//! ```
//!
//! Each topic is divided by its sum, so any scale will do. Memory: 20 bytes per weight.

use std::io::BufRead;

use lda_core::eval::Phi;

use super::lines::Lines;

/// Longest header, and longest weight with its blank.
const HEADER: usize = 64;
const WEIGHT: usize = 33;

/// Reads φ.
///
/// # Errors
/// The first malformed line, and what is wrong with it.
pub(super) fn read(reader: impl BufRead, topics: u32, words: usize) -> Result<Phi, String> {
    let mut lines = Lines::new(reader);
    let expected = format!("weights {topics} {words}");
    let header = lines.expect(HEADER, "the header")?;
    if header != expected {
        return Err(format!("line 1: the header is {header:?}, but this run needs {expected:?}"));
    }
    let mut rows = Vec::new();
    for k in 0..topics {
        let line = lines.expect(words.saturating_mul(WEIGHT) + HEADER, "the last topic")?;
        let row = topic(line, words);
        let number = lines.number();
        rows.push(row.map_err(|error| format!("line {number}, topic {k}: {error}"))?);
    }
    lines.end()?;
    Phi::from_rows(&rows).map_err(|error| error.to_string())
}

fn topic(line: &str, words: usize) -> Result<Vec<f64>, String> {
    let mut row = Vec::with_capacity(words);
    for text in line.split_ascii_whitespace() {
        if row.len() == words {
            return Err(format!("more weights than the {words} words of the corpus"));
        }
        let weight = text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
        let word = row.len();
        row.push(weight.ok_or_else(|| format!("word {word} has {text:?}: give a weight from 0"))?);
    }
    if row.len() < words {
        return Err(format!("{} weights; the corpus has {words} words", row.len()));
    }
    let sum: f64 = row.iter().sum();
    if !(sum.is_finite() && sum > 0.0) {
        return Err(format!("the weights sum to {sum}: give finite ones, not all 0"));
    }
    // Rounding could give a probability above 1.
    row.iter_mut().for_each(|weight| *weight = (*weight / sum).min(1.0));
    Ok(row)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Phi, String> {
        super::read(text.as_bytes(), 2, 3)
    }

    #[test]
    fn topics_are_divided_by_their_sums() {
        let phi = read("weights 2 3\n1 2 1\n0 0 1e-3\n").unwrap();
        let found = [0, 1].map(|k| [0, 1, 2].map(|word| phi.probability(k, word)));
        assert_eq!(found, [[0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]);
    }

    #[test]
    fn errors_name_their_line() {
        for (text, expected) in [
            ("", "line 1: the file ends before the header"),
            ("weights 2 4\n", "line 1: the header is"),
            ("weights 2 3\n1 1 1\n", "line 3: the file ends before the last topic"),
            ("weights 2 3\n1 1\n", "line 2, topic 0: 2 weights"),
            ("weights 2 3\n1 1 1 1\n", "line 2, topic 0: more weights"),
            ("weights 2 3\n1 -1 1\n", "word 1 has \"-1\""),
            ("weights 2 3\n1 nan 1\n", "word 1 has \"nan\""),
            ("weights 2 3\n1 inf 1\n", "word 1 has \"inf\""),
            ("weights 2 3\n0 0 0\n", "the weights sum to 0"),
            ("weights 2 3\n1e308 1e308 1e308\n", "the weights sum to inf"),
            ("weights 2 3\n1 1 1\n1 1 1\n1\n", "line 4: more lines"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = super::read(&bytes[..], 2, 3);
            let mut text = b"weights 2 3\n".to_vec();
            text.extend(bytes);
            let _ = super::read(&text[..], 2, 3);
        }

        #[test]
        fn numbers_make_topics_or_errors(rows in proptest::collection::vec(any::<[f64; 3]>(), 2)) {
            let rows = rows.iter().map(|[a, b, c]| format!("{a:e} {b:e} {c:e}\n"));
            if let Ok(phi) = read(&format!("weights 2 3\n{}", rows.collect::<String>())) {
                for k in 0..2 {
                    let sum: f64 = [0, 1, 2].map(|word| phi.probability(k, word)).iter().sum();
                    prop_assert!((sum - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}
