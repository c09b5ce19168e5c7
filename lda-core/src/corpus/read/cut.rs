//! Pieces of a text that are words, by a [`WordRule`].

use std::borrow::Cow;
#[cfg(feature = "regex")]
use std::sync::Arc;

use super::ascii_words::for_each_unicode_word;
use super::{ReadError, TokenizerOptions, WordRule};

/// A rule, ready for use. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Cutter {
    Unicode,
    Whitespace,
    /// The matches of the pattern, or of its group.
    #[cfg(feature = "regex")]
    Pattern(Arc<regex::Regex>),
}

impl Cutter {
    /// # Errors
    /// [`ReadError::Pattern`] for an invalid pattern, [`ReadError::NotBuilt`] without the feature.
    pub(super) fn new(rule: &WordRule) -> Result<Self, ReadError> {
        match rule {
            WordRule::Unicode => Ok(Self::Unicode),
            WordRule::Whitespace => Ok(Self::Whitespace),
            WordRule::Pattern(pattern) => Self::pattern(pattern),
        }
    }

    #[cfg(feature = "regex")]
    fn pattern(pattern: &str) -> Result<Self, ReadError> {
        let refuse = |reason| ReadError::Pattern { pattern: pattern.to_owned(), reason };
        // Compiled patterns have a limit of size, and matching takes time linear in the text: a model
        // of a stranger cannot bring a pattern that costs more.
        let regex = regex::Regex::new(pattern).map_err(|error| refuse(error.to_string()))?;
        // The whole match counts as a group.
        if regex.captures_len() > 2 {
            return Err(refuse("it has several groups: make all but one (?:...)".to_owned()));
        }
        Ok(Self::Pattern(Arc::new(regex)))
    }

    #[cfg(not(feature = "regex"))]
    fn pattern(_: &str) -> Result<Self, ReadError> {
        let (path, feature) = ("words".into(), "regex");
        Err(ReadError::NotBuilt { path, what: "a pattern of words", feature })
    }

    /// Calls `visit` with each piece of the text that may be a word.
    pub(super) fn for_each(&self, text: &str, visit: impl FnMut(&str)) {
        match self {
            Self::Unicode => for_each_unicode_word(text, visit),
            Self::Whitespace => {
                let words = text.split_whitespace();
                words.filter(|word| word.contains(char::is_alphanumeric)).for_each(visit);
            }
            #[cfg(feature = "regex")]
            Self::Pattern(regex) if regex.captures_len() > 1 => {
                let groups = regex.captures_iter(text).filter_map(|captures| captures.get(1));
                groups.map(|word| word.as_str()).filter(|word| !word.is_empty()).for_each(visit);
            }
            #[cfg(feature = "regex")]
            Self::Pattern(regex) => {
                let words = regex.find_iter(text).map(|word| word.as_str());
                words.filter(|word| !word.is_empty()).for_each(visit);
            }
        }
    }
}

/// Checks that normalisation is compiled in, if the options ask for it.
pub(super) fn check_normalization(options: &TokenizerOptions) -> Result<(), ReadError> {
    if options.nfc && cfg!(not(feature = "normalization")) {
        let (path, feature) = ("nfc".into(), "normalization");
        return Err(ReadError::NotBuilt { path, what: "normalization", feature });
    }
    Ok(())
}

/// The text in Unicode's normal form C if `nfc`, else as it is.
pub(super) fn normalized(text: &str, nfc: bool) -> Cow<'_, str> {
    #[cfg(feature = "normalization")]
    if nfc && !unicode_normalization::is_nfc(text) {
        use unicode_normalization::UnicodeNormalization;
        return text.nfc().collect::<String>().into();
    }
    let _ = nfc;
    text.into()
}
