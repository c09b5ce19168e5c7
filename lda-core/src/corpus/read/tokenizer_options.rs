//! Rules by which a text is cut into words, and their form in files.
//!
//! A model answers texts correctly only if they are cut as those that it was trained on. So the rules
//! are part of the [vocabulary](crate::corpus::Vocabulary::tokenizer), which takes them from the reader
//! of text to the file of the model.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::container::FileError;
use crate::container::pairs::{ABOUT, Pairs};

/// Prefix of the names of rules in a file.
const PREFIX: &str = "tokenizer.";

/// Words of a text: its tokenization.
///
/// Text is split into [words](WordRule), and pieces without a letter or digit are dropped, unless a
/// pattern asks for them. Then, in this order: identifiers are split; letters are converted to lower case;
/// stop words, numbers, and words that are too short or too long are dropped; phrases are joined.
///
/// ```
/// use lda_core::corpus::read::{Tokenizer, TokenizerOptions};
///
/// let mut options = TokenizerOptions::default();
/// options.numbers = true;
/// let mut words = Vec::new();
/// Tokenizer::new(&options)?.for_each_word("The year 1969", |word| words.extend(word.map(str::to_owned)));
/// assert_eq!(words, ["year", "1969"]);
/// # Ok::<(), lda_core::corpus::ReadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenizerOptions {
    /// Split words at underscores, other punctuation and changes of case, for source code:
    /// `readHTTPHeader` becomes read, http, header. Default false.
    pub split_identifiers: bool,
    /// Convert letters to lower case. Default true.
    pub lowercase: bool,
    /// Keep words without letters. Default false.
    pub numbers: bool,
    /// Boundaries of words. Default: those of Unicode.
    pub words: WordRule,
    /// Convert the text to the normal form C of Unicode first, so that a letter with an accent is the same
    /// whether it is one character or two. Default false. Needs feature `normalization`.
    pub nfc: bool,
    /// Minimum length of a word in characters. Default 2.
    pub min_length: u32,
    /// Maximum length of a word in characters. Default 64.
    pub max_length: u32,
    /// Words to drop. Default: an English list.
    pub stop_words: StopWords,
    /// Phrases: two or more words with spaces between them, such as `new york`, that become one word of the
    /// vocabulary, `new_york`, where they follow each other; the longest one, from left to right. They may
    /// contain stop words, but no other words that are dropped. Default: none, unless the texts are
    /// [searched](super::TextOptions::phrases) for them.
    pub phrases: Vec<String>,
}

impl Default for TokenizerOptions {
    fn default() -> Self {
        Self {
            split_identifiers: false,
            lowercase: true,
            numbers: false,
            words: WordRule::default(),
            nfc: false,
            min_length: 2,
            max_length: 64,
            stop_words: StopWords::English,
            phrases: Vec::new(),
        }
    }
}

/// Boundaries of the words of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WordRule {
    /// At the word boundaries of Unicode (UAX #29). Languages that write no spaces, such as Chinese,
    /// Japanese and Thai, are cut into single characters or short pieces.
    #[default]
    Unicode,
    /// At white space alone: for text that is cut into words already.
    Whitespace,
    /// The matches of a regular expression, in the syntax of the crate `regex`, or the matches of its
    /// group, if it has one: as scikit-learn's `token_pattern` and MALLET's `--token-regex`. A match lies
    /// within a line. Needs feature `regex`.
    Pattern(String),
}

/// Stop words: frequent words that carry no topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopWords {
    /// English articles, pronouns, prepositions, auxiliaries and similar words.
    #[default]
    English,
    /// No stop words.
    None,
    /// A list, compared after conversion to lower case.
    List(Vec<String>),
    /// A file with one word per line, which may be compressed; compared after conversion to lower
    /// case.
    File(PathBuf),
}

impl TokenizerOptions {
    /// (name, value) pairs for a file. A list of stop words is stored with line ends between them.
    pub(crate) fn to_pairs(&self) -> Vec<(String, String)> {
        let Self { split_identifiers, lowercase, numbers, words, min_length, max_length, .. } =
            self;
        let (words, pattern) = match words {
            WordRule::Unicode => ("unicode", None),
            WordRule::Whitespace => ("whitespace", None),
            WordRule::Pattern(pattern) => ("pattern", Some(pattern.clone())),
        };
        let (stop_words, list) = match &self.stop_words {
            StopWords::English => ("english", None),
            StopWords::None => ("none", None),
            StopWords::List(list) => ("list", Some(list.join("\n"))),
            StopWords::File(path) => ("file", Some(path.display().to_string())),
        };
        let rules = [
            ("split-identifiers", split_identifiers.to_string()),
            ("lowercase", lowercase.to_string()),
            ("numbers", numbers.to_string()),
            ("words", words.to_owned()),
            ("min-length", min_length.to_string()),
            ("max-length", max_length.to_string()),
            ("stop-words", stop_words.to_owned()),
        ];
        let list = list.map(|list| ("stop-list", list));
        let pattern = pattern.map(|pattern| ("pattern", pattern));
        let nfc = self.nfc.then(|| ("nfc", true.to_string()));
        let phrases = &self.phrases;
        let phrases = (!phrases.is_empty()).then(|| ("phrases", phrases.join("\n")));
        rules
            .into_iter()
            .chain(list)
            .chain(pattern)
            .chain(nfc)
            .chain(phrases)
            .map(|(name, value)| (format!("{PREFIX}{name}"), value))
            .collect()
    }

    /// The rules in a file; `None` if it has none.
    ///
    /// # Errors
    /// [`FileError`] for a rule that this version does not know: to ignore it would cut texts wrongly.
    pub(crate) fn from_pairs(pairs: &Pairs) -> Result<Option<Self>, FileError> {
        let rules = pairs.under(PREFIX);
        if rules.0.is_empty() {
            return Ok(None);
        }
        let list = rules.get("stop-list").unwrap_or_default();
        let pattern = rules.get("pattern");
        let mut options = Self::default();
        for (name, value) in &rules.0 {
            let is_known = match name.as_str() {
                "split-identifiers" => set(&mut options.split_identifiers, value.parse().ok()),
                "lowercase" => set(&mut options.lowercase, value.parse().ok()),
                "numbers" => set(&mut options.numbers, value.parse().ok()),
                "words" => set(&mut options.words, word_rule(value, pattern)),
                "nfc" => set(&mut options.nfc, value.parse().ok()),
                "min-length" => set(&mut options.min_length, value.parse().ok()),
                "max-length" => set(&mut options.max_length, value.parse().ok()),
                "stop-words" => set(&mut options.stop_words, stop_words(value, list)),
                "phrases" => {
                    set(&mut options.phrases, Some(value.lines().map(str::to_owned).collect()))
                }
                "stop-list" | "pattern" => true,
                _ => false,
            };
            if !is_known {
                let reason = format!(
                    "the rule {PREFIX}{name} = {value:?} is of a newer version of this library"
                );
                return Err(FileError::malformed(ABOUT, reason));
            }
        }
        Ok(Some(options))
    }
}

fn set<T>(field: &mut T, value: Option<T>) -> bool {
    value.is_some_and(|value| {
        *field = value;
        true
    })
}

fn word_rule(text: &str, pattern: Option<&str>) -> Option<WordRule> {
    match text {
        "unicode" => Some(WordRule::Unicode),
        "whitespace" => Some(WordRule::Whitespace),
        "pattern" => pattern.map(|pattern| WordRule::Pattern(pattern.to_owned())),
        _ => None,
    }
}

fn stop_words(text: &str, list: &str) -> Option<StopWords> {
    match text {
        "english" => Some(StopWords::English),
        "none" => Some(StopWords::None),
        "list" => Some(StopWords::List(list.lines().map(str::to_owned).collect())),
        "file" => Some(StopWords::File(list.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other() -> TokenizerOptions {
        TokenizerOptions {
            split_identifiers: true,
            lowercase: false,
            numbers: true,
            words: WordRule::Whitespace,
            nfc: true,
            min_length: 3,
            max_length: 9,
            stop_words: StopWords::List(vec!["ab".into(), "c d".into()]),
            phrases: vec!["new york".into(), "bank of america".into()],
        }
    }

    #[test]
    fn rules_survive_a_file() {
        let mut stop_words = vec![StopWords::English, StopWords::None, StopWords::List(Vec::new())];
        stop_words.push(StopWords::File("stop.txt".into()));
        let mut all = vec![TokenizerOptions::default(), other()];
        all.extend(
            stop_words.into_iter().map(|stop_words| TokenizerOptions { stop_words, ..other() }),
        );
        all.push(TokenizerOptions { words: WordRule::Pattern("\\w\n+".into()), ..other() });
        for options in all {
            let pairs = Pairs(options.to_pairs());
            assert_eq!(TokenizerOptions::from_pairs(&pairs).unwrap(), Some(options));
        }
        assert_eq!(TokenizerOptions::from_pairs(&Pairs::default()).unwrap(), None);
    }

    #[test]
    fn unknown_rules_are_refused() {
        for (name, value) in
            [("stemmer", "porter"), ("words", "regex"), ("words", "pattern"), ("min-length", "-1")]
        {
            let mut pairs = TokenizerOptions::default().to_pairs();
            pairs.retain(|(known, _)| *known != format!("{PREFIX}{name}"));
            pairs.push((format!("{PREFIX}{name}"), value.to_owned()));
            let error = TokenizerOptions::from_pairs(&Pairs(pairs)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("newer version"), "{error}");
        }
    }
}
