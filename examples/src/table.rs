//! Table of topics, printed at the end of a run.

use std::io::{self, Write};

use lda_core::corpus::Vocabulary;
use lda_core::eval::TopWord;

/// Prints to standard output.
///
/// # Errors
/// Those of the system, except a closed pipe.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        // A reader such as `head` closes the pipe after the first lines, which is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Topics with tokens, largest first.
pub fn largest_first(totals: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..totals.len()).filter(|&topic| totals[topic] > 0).collect();
    order.sort_by_key(|&topic| (std::cmp::Reverse(totals[topic]), topic));
    order
}

/// Writes the `limit` largest topics: number, share of the tokens, words.
///
/// # Errors
/// Those of `out`.
///
/// # Panics
/// If `words` does not have one list per topic, or a word is not in the vocabulary.
pub fn write(
    out: &mut dyn Write,
    totals: &[u64],
    vocabulary: Option<&Vocabulary>,
    words: &[Vec<TopWord>],
    limit: usize,
) -> io::Result<()> {
    let tokens = totals.iter().sum::<u64>().max(1) as f64;
    let order = largest_first(totals);
    let used = order.len();
    writeln!(out, "topic   share  words")?;
    for &topic in order.iter().take(limit) {
        let share = 100.0 * totals[topic] as f64 / tokens;
        write!(out, "{topic:>5} {share:>6.2}%  ")?;
        for (place, word) in words[topic].iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(out, "{space}{}", name(vocabulary, word.word))?;
        }
        writeln!(out)?;
    }
    if used > limit {
        writeln!(out, "and {} smaller ones; --show-topics {used} lists them all", used - limit)?;
    }
    match totals.len() - used {
        0 => Ok(()),
        1 => writeln!(out, "1 topic has no tokens"),
        empty => writeln!(out, "{empty} topics have no tokens"),
    }
}

/// A word for display, with control characters replaced; its number without a vocabulary.
///
/// # Panics
/// If the word is not in the vocabulary.
pub fn name(vocabulary: Option<&Vocabulary>, word: u32) -> String {
    match vocabulary {
        // A vocabulary is untrusted input and must not send escape sequences to the terminal.
        Some(vocabulary) => {
            vocabulary.word(word).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
        }
        None => format!("#{word}"),
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::eval::{Ranking, top_words};
    use lda_core::train::Lda;

    use super::*;

    fn table(corpus: &Corpus, topics: u32, limit: usize) -> String {
        let model = Lda::topics(topics).epochs(3).train(corpus, ()).unwrap().model;
        let counts = model.counts().unwrap();
        let words = top_words(counts, counts.beta(), 2, Ranking::Probability).unwrap();
        let mut out = Vec::new();
        write(&mut out, counts.totals(), model.vocabulary(), &words, limit).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let corpus = Corpus::from_words([["\u{1b}[2J", "\u{1b}[2J"]]).unwrap();
        assert_eq!(table(&corpus, 1, 9), "topic   share  words\n    0 100.00%  ?[2J\n");
    }

    #[test]
    fn the_table_counts_topics_that_it_omits() {
        let corpus = Corpus::from_tokens([[0], [1], [2], [3], [4], [5], [6], [7]]).unwrap();
        let table = table(&corpus, 100, 1);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[1].contains('#'), "{table}");
        assert!(lines[2].contains("smaller ones; --show-topics"), "{table}");
        assert!(lines[3].ends_with("topics have no tokens"), "{table}");
    }
}
