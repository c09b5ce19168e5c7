//! Tokenization options, which all subcommands that read text share.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Arg;
use clap::builder::{PossibleValuesParser, ValueParser};
use lda_core::corpus::ReadError;
use lda_core::corpus::read::{
    PhraseOptions, PhraseScore, StopWords, TextOptions, TokenizerOptions, WordRule, read_vocabulary,
};

use crate::parsers::share;

/// Words of a text: the tokenization of `lda serve`, and part of [`TextArgs`].
#[derive(Clone, Debug, clap::Args)]
pub struct WordArgs {
    /// Stop words to leave out: `english`, `none`, or a file with one word per line [default: english]
    #[arg(long, value_name = "LIST")]
    pub stop_words: Option<PathBuf>,
    /// Boundaries of words: those of Unicode (`unicode`), or white space alone (`whitespace`, for text
    /// that is cut into words already, such as segmented Chinese, Japanese and Thai) [default: unicode]
    #[arg(long, value_name = "RULE", value_parser = word_rule())]
    pub words: Option<String>,
    /// Words are the matches of a regular expression, or of its group, such as `[\p{L}_]+`
    #[arg(long, value_name = "REGEX", conflicts_with = "words")]
    pub word_pattern: Option<String>,
    /// Convert texts to Unicode's normal form C: letters with accents may be one character or two
    #[arg(long)]
    pub nfc: bool,
    /// Minimum length of a word, in characters [default: 2; with --words whitespace and --word-pattern:
    /// 1]
    #[arg(long, value_name = "N")]
    pub min_length: Option<u32>,
    /// Maximum length of a word, in characters [default: 64]
    #[arg(long, value_name = "N")]
    pub max_length: Option<u32>,
    /// Split words at underscores and at changes of case, for source code: `readHTTPHeader` becomes
    /// read, http, header
    #[arg(long)]
    pub split_identifiers: bool,
    /// Do not convert words to lower case
    #[arg(long)]
    pub keep_case: bool,
    /// Keep words that are numbers
    #[arg(long)]
    pub numbers: bool,
}

impl WordArgs {
    /// Options of the tokenizer: those of `model`, or the defaults without one, with the options that
    /// are given in their places.
    pub fn options(&self, model: Option<&TokenizerOptions>) -> TokenizerOptions {
        let mut options = model.cloned().unwrap_or_default();
        if let Some(list) = &self.stop_words {
            options.stop_words = stop_words(list);
        }
        match self.words.as_deref() {
            Some("whitespace") if options.words != WordRule::Whitespace => {
                (options.words, options.min_length) = (WordRule::Whitespace, 1);
            }
            Some("unicode") => options.words = WordRule::Unicode,
            _ => {}
        }
        if let Some(pattern) = self.word_pattern.clone().map(WordRule::Pattern)
            && options.words != pattern
        {
            (options.words, options.min_length) = (pattern, 1);
        }
        options.nfc |= self.nfc;
        options.min_length = self.min_length.unwrap_or(options.min_length);
        options.max_length = self.max_length.unwrap_or(options.max_length);
        options.split_identifiers |= self.split_identifiers;
        options.lowercase &= !self.keep_case;
        options.numbers |= self.numbers;
        options
    }

    /// A line for people if texts for a model are not, or may not be, cut into words as those that it
    /// was trained on: `model` are its rules.
    pub fn warning(&self, model: Option<&TokenizerOptions>) -> Option<String> {
        let given = self.given();
        let names: Vec<&str> =
            given.iter().filter(|option| option.1).map(|option| option.0).collect();
        match model {
            None if names.is_empty() => Some(
                "warning: the model does not record how its texts were cut into words; give the \
                 options of its training if they were not the defaults"
                    .to_owned(),
            ),
            Some(rules) if self.options(model) != *rules => Some(format!(
                "warning: the texts are cut into words by other rules than those that the model was \
                 trained on ({}): some of its words will not be found",
                names.join(", ")
            )),
            _ => None,
        }
    }

    /// The options by name, and whether each is given.
    fn given(&self) -> [(&'static str, bool); 9] {
        [
            ("--stop-words", self.stop_words.is_some()),
            ("--words", self.words.is_some()),
            ("--word-pattern", self.word_pattern.is_some()),
            ("--nfc", self.nfc),
            ("--min-length", self.min_length.is_some()),
            ("--max-length", self.max_length.is_some()),
            ("--split-identifiers", self.split_identifiers),
            ("--keep-case", self.keep_case),
            ("--numbers", self.numbers),
        ]
    }
}

/// Tokenization of documents. Commands adapt the options with [`of_training`] or [`of_model`].
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Words of plain text")]
pub struct TextArgs {
    /// Words of a text.
    #[command(flatten)]
    pub words: WordArgs,
    /// Minimum number of documents that contain a word [default: 1]
    #[arg(long, value_name = "N")]
    pub min_document_frequency: Option<u32>,
    /// Maximum share of the documents that contain a word [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share(true))]
    pub max_document_frequency: Option<f64>,
    /// Extensions of the files to read in a directory, such as `md,txt` [default: all files]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "path")]
    pub extensions: Vec<String>,
    /// Fail at the first file of a directory that is no text, instead of skipping it
    #[arg(long, requires = "path")]
    pub strict: bool,
    /// Search for phrases.
    #[command(flatten)]
    pub phrases: PhraseArgs,
}

/// Search for phrases in the texts of a training.
#[derive(Debug, clap::Args)]
pub struct PhraseArgs {
    /// Join words that occur together, such as new_york; the model keeps them for other texts. SCORE
    /// measures their association: `npmi` or `log-likelihood` [default: npmi]
    #[arg(long, value_name = "SCORE", requires = "path", num_args = 0..=1, require_equals = true,
        default_missing_value = "npmi", value_parser = score())]
    pub phrases: Option<String>,
    /// Minimum score of a phrase [default: 0.5, of 1 at most; log-likelihood: 100]
    #[arg(long, value_name = "SCORE", requires = "phrases")]
    pub phrase_threshold: Option<f64>,
    /// Minimum number of occurrences of a phrase [default: 10]
    #[arg(long, value_name = "N", requires = "phrases")]
    pub phrase_min_count: Option<u32>,
    /// Maximum number of words of a phrase, without its stop words [default: 3]
    #[arg(long, value_name = "N", requires = "phrases")]
    pub phrase_words: Option<u32>,
}

impl PhraseArgs {
    /// Minimum log-likelihood ratio.
    const LOG_LIKELIHOOD: f64 = 100.0;

    /// Options of the search; `None` without `--phrases`.
    fn options(&self) -> Option<PhraseOptions> {
        let score = self.phrases.as_deref()?;
        let mut options = PhraseOptions::default();
        if score == "log-likelihood" {
            (options.score, options.threshold) = (PhraseScore::LogLikelihood, Self::LOG_LIKELIHOOD);
        }
        options.threshold = self.phrase_threshold.unwrap_or(options.threshold);
        options.min_count = self.phrase_min_count.unwrap_or(options.min_count);
        options.max_words = self.phrase_words.unwrap_or(options.max_words);
        Some(options)
    }
}

impl TextArgs {
    /// Options of the reader of plain text; `model` are the rules of the model that the texts are
    /// for.
    pub fn options(&self, model: Option<&TokenizerOptions>) -> TextOptions {
        let mut options = TextOptions::default();
        options.tokenizer = self.words.options(model);
        options.min_document_frequency =
            self.min_document_frequency.unwrap_or(options.min_document_frequency);
        options.max_document_frequency =
            self.max_document_frequency.unwrap_or(options.max_document_frequency);
        options.extensions.clone_from(&self.extensions);
        options.strict = self.strict;
        options.phrases = self.phrases.options();
        options
    }

    /// The options by name, and whether each is given.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let others = [
            ("--min-document-frequency", self.min_document_frequency.is_some()),
            ("--max-document-frequency", self.max_document_frequency.is_some()),
            ("--extensions", !self.extensions.is_empty()),
            ("--strict", self.strict),
            ("--phrases", self.phrases.phrases.is_some()),
        ];
        self.words.given().into_iter().chain(others)
    }
}

/// An option of a command that trains: without a path it reads the Rust sources, which have defaults
/// and a tokenizer of their own.
pub fn of_training(arg: Arg) -> Arg {
    let of_sources = match arg.get_id().as_str() {
        "words" | "word_pattern" | "nfc" | "split_identifiers" | "keep_case" | "numbers" => {
            return arg.requires("path");
        }
        "min_length" => "3",
        "max_length" => "32",
        "min_document_frequency" => "5",
        "max_document_frequency" => "0.25",
        _ => return arg,
    };
    with_default(arg, |default| format!("{default}; Rust sources: {of_sources}"))
}

/// An option of a command that has a model: by default, texts are cut into words as in its training.
pub fn of_model(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "words" | "stop_words" | "min_length" | "max_length" => {
            with_default(arg, |_| "as in training".to_owned())
        }
        // The model has them. Only snapshots are read with the options of their training.
        "phrases" | "phrase_threshold" | "phrase_min_count" | "phrase_words" => arg.hide(true),
        _ => arg,
    }
}

/// The option with another default in its help.
fn with_default(arg: Arg, change: impl Fn(&str) -> String) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (text, default) = help.rsplit_once(" [default: ").expect("the help states a default");
    let default = change(default.trim_end_matches(']'));
    arg.help(format!("{text} [default: {default}]"))
}

fn score() -> ValueParser {
    PossibleValuesParser::new(["npmi", "log-likelihood"]).into()
}

fn word_rule() -> ValueParser {
    PossibleValuesParser::new(["unicode", "whitespace"]).into()
}

/// The stop words that the value of `--stop-words` names.
pub fn stop_words(list: &Path) -> StopWords {
    match list.to_str() {
        Some("english") => StopWords::English,
        Some("none") => StopWords::None,
        _ => StopWords::File(list.to_owned()),
    }
}

/// Reads words from a file, one per line, and converts them to lower case.
///
/// # Errors
/// [`ReadError`] of the file.
pub fn read_words(path: &Path) -> Result<Vec<String>, ReadError> {
    let file =
        File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let words = read_vocabulary(file, path)?;
    Ok(words.iter().map(|word| word.trim().to_lowercase()).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(mut_args(of_training))]
    struct Line {
        path: Option<PathBuf>,
        #[command(flatten)]
        text: TextArgs,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(["program"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn defaults_are_those_of_the_reader() {
        assert_eq!(parse("").unwrap().text.options(None), TextOptions::default());
    }

    #[test]
    fn every_option_arrives() {
        let line = "in --stop-words none --min-length 3 --max-length 9 --split-identifiers \
            --keep-case --numbers --min-document-frequency 4 --max-document-frequency 0.5 \
            --extensions md,txt --words whitespace --nfc --strict --phrases --phrase-words 4 \
            --phrase-min-count 7 --phrase-threshold 0.7";
        let Line { path, text } = parse(line).unwrap();
        assert_eq!(path, Some(PathBuf::from("in")));
        assert!(text.given().all(|(name, given)| given != (name == "--word-pattern")));
        let mut expected = TextOptions::default();
        let words = &mut expected.tokenizer;
        words.stop_words = StopWords::None;
        (words.min_length, words.max_length) = (3, 9);
        (words.split_identifiers, words.lowercase, words.numbers) = (true, false, true);
        (words.words, words.nfc) = (WordRule::Whitespace, true);
        (expected.min_document_frequency, expected.max_document_frequency) = (4, 0.5);
        expected.extensions = vec!["md".to_owned(), "txt".to_owned()];
        expected.strict = true;
        let mut phrases = PhraseOptions::default();
        (phrases.threshold, phrases.min_count, phrases.max_words) = (0.7, 7, 4);
        expected.phrases = Some(phrases);
        assert_eq!(text.options(None), expected);
        let phrases = parse("in --phrases=log-likelihood").unwrap().text.options(None).phrases;
        let phrases = phrases.unwrap();
        assert_eq!((phrases.score, phrases.threshold), (PhraseScore::LogLikelihood, 100.0));
        // Text that is cut already has words of one character.
        for (line, rule) in [
            ("in --words whitespace", WordRule::Whitespace),
            (r"in --word-pattern \w+", WordRule::Pattern(r"\w+".to_owned())),
        ] {
            let rules = parse(line).unwrap().text.options(None).tokenizer;
            assert_eq!((rules.words, rules.min_length), (rule, 1));
        }
        assert!(parse(r"in --words unicode --word-pattern \w+").is_err());
    }

    #[test]
    fn rules_of_a_model_are_the_defaults() {
        let words = |line: &str| parse(line).unwrap().text.words;
        let model =
            words("in --keep-case --numbers --min-length 4 --stop-words none").options(None);
        assert_eq!(words("in").options(Some(&model)), model);
        assert_eq!(words("in").warning(Some(&model)), None);
        assert_eq!(words("in --keep-case --min-length 4").warning(Some(&model)), None);
        let other = words("in --min-length 3");
        assert_eq!(other.options(Some(&model)).min_length, 3);
        assert!(other.options(Some(&model)).numbers);
        assert!(other.warning(Some(&model)).unwrap().contains("(--min-length)"));
        // A model without rules: only who gives options has thought of them.
        assert!(words("in").warning(None).unwrap().contains("does not record"));
        assert_eq!(other.warning(None), None);
        // The rule of white space sets the length only where it is new.
        let mut model = TokenizerOptions::default();
        (model.words, model.min_length) = (WordRule::Whitespace, 5);
        assert_eq!(words("in --words whitespace").options(Some(&model)), model);
        assert_eq!(words("in --words unicode").options(Some(&model)).words, WordRule::Unicode);
    }

    #[test]
    fn options_of_a_path_need_a_path() {
        for option in [
            "--split-identifiers",
            "--keep-case",
            "--numbers",
            "--extensions md",
            "--words unicode",
            "--word-pattern a",
            "--nfc",
            "--strict",
            "--phrases",
        ] {
            assert!(parse(option).is_err() && parse(&format!("in {option}")).is_ok(), "{option}");
        }
        assert!(parse("--min-length 3").is_ok());
    }
}
