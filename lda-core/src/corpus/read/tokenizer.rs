//! Tokenizer of plain text.

use hashbrown::HashSet;

use super::cut::{Cutter, check_normalization, normalized};
use super::phrases::{Item, Phrase, PhraseMatcher};
use super::stop_words::english;
use super::{DroppedWords, Input, ReadError, StopWords, TokenizerOptions};

/// Splits text into words and filters them, according to [`TokenizerOptions`].
///
/// The reader of [plain text](super::Format::Text) uses it for each line. A service that has a model and
/// receives single documents can apply the same rules without building a corpus. Cost: one lookup in
/// the stop words per word, and with phrases one or two more.
///
/// ```
/// use lda_core::corpus::read::{Tokenizer, TokenizerOptions};
///
/// let mut tokenizer = Tokenizer::new(&TokenizerOptions::default())?;
/// let (mut words, mut dropped) = (Vec::new(), 0);
/// tokenizer.for_each_word("The topics of 7 texts", |word| match word {
///     Some(word) => words.push(word.to_owned()),
///     None => dropped += 1,
/// });
/// assert_eq!((words, dropped), (vec!["topics".to_owned(), "texts".to_owned()], 3));
/// # Ok::<(), lda_core::corpus::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    options: TokenizerOptions,
    cutter: Cutter,
    stop_words: HashSet<Box<str>>,
    /// `None` without phrases.
    phrases: Option<PhraseMatcher>,
    word: String,
    pub(super) dropped: DroppedWords,
}

impl Tokenizer {
    /// Prepares the stop words and phrases.
    ///
    /// # Errors
    /// [`ReadError`] of the file of stop words, if there is one; for an invalid pattern of words; for a
    /// phrase of one word, or with a word that another rule drops; and for a rule that needs a feature which
    /// is not compiled in.
    pub fn new(options: &TokenizerOptions) -> Result<Self, ReadError> {
        let mut options = options.clone();
        let cutter = Cutter::new(&options.words)?;
        check_normalization(&options)?;
        let nfc = options.nfc;
        if let StopWords::File(path) = &options.stop_words {
            let (words, _) = super::words::vocabulary(Input::file(path)?, 0)?;
            options.stop_words =
                StopWords::List(words.iter().map(|word| stop_word(word, nfc)).collect());
        }
        let stop_words = match &options.stop_words {
            StopWords::English => english().map(Box::from).collect(),
            StopWords::List(words) => {
                words.iter().map(|word| stop_word(word, nfc).into()).collect()
            }
            StopWords::None | StopWords::File(_) => HashSet::new(),
        };
        let lowercase = options.lowercase;
        let phrase = |text: &String| Phrase::new(text, |word| normalised(word, lowercase, nfc));
        let phrases: Vec<Phrase> = options.phrases.iter().map(phrase).collect::<Result<_, _>>()?;
        let phrases = (!phrases.is_empty()).then(|| PhraseMatcher::new(&phrases));
        let (word, dropped) = (String::new(), DroppedWords::default());
        let mut tokenizer = Self { options, cutter, stop_words, phrases, word, dropped };
        tokenizer.check_phrases()?;
        Ok(tokenizer)
    }

    /// Refuses phrases that no text has, as the other rules drop one of their words.
    fn check_phrases(&mut self) -> Result<(), ReadError> {
        let phrases = std::mem::take(&mut self.options.phrases);
        let is_lost = |phrase: &&String| {
            phrase.split_whitespace().any(|word| self.admit(word) == Item::Dropped)
        };
        let lost = phrases.iter().find(is_lost).map(|phrase| format!("{phrase:?}"));
        self.options.phrases = phrases;
        self.dropped = DroppedWords::default();
        let remedy = "`numbers`, `min_length` or `max_length` drops a word of it; change that rule, or \
                      leave the phrase out";
        lost.map_or(Ok(()), |value| Err(ReadError::Option { name: "phrases", value, remedy }))
    }

    /// Adds phrases to the rules.
    pub(super) fn add_phrases(&mut self, phrases: &[Phrase]) {
        let matcher = self.phrases.get_or_insert_with(|| PhraseMatcher::new(&[]));
        for phrase in phrases {
            matcher.insert(phrase);
            self.options.phrases.push(phrase.to_string());
        }
    }

    /// The options, with the content of a file of stop words as a [list](StopWords::List).
    pub fn options(&self) -> &TokenizerOptions {
        &self.options
    }

    /// Number of words dropped so far, by reason.
    pub fn dropped(&self) -> &DroppedWords {
        &self.dropped
    }

    /// Calls `visit` with each word or phrase that is kept, in its normalised form, and with `None` for
    /// each word that is dropped.
    pub fn for_each_word(&mut self, text: &str, mut visit: impl FnMut(Option<&str>)) {
        self.for_each_word_of_part(text, &mut visit);
        self.end_text(&mut visit);
    }

    /// Does the same for a part of a text, which [`end_text`](Self::end_text) ends: words that may begin a
    /// phrase wait for the next part.
    pub(super) fn for_each_word_of_part(
        &mut self,
        part: &str,
        visit: &mut impl FnMut(Option<&str>),
    ) {
        let mut phrases = self.phrases.take();
        self.for_each_item(part, |item| match &mut phrases {
            Some(phrases) => phrases.push(item, visit),
            None => visit(match item {
                Item::Word(word) => Some(word),
                Item::StopWord(_) | Item::Dropped => None,
            }),
        });
        self.phrases = phrases;
    }

    /// Ends a text.
    pub(super) fn end_text(&mut self, visit: &mut impl FnMut(Option<&str>)) {
        if let Some(phrases) = &mut self.phrases {
            phrases.flush(visit);
            self.dropped.stop_words -= phrases.take_joined_stop_words();
        }
    }

    /// Calls `visit` with the next word of a text whose words were found before.
    pub(super) fn join(&mut self, item: Item<'_>, visit: &mut impl FnMut(Option<&str>)) {
        self.phrases.get_or_insert_with(|| PhraseMatcher::new(&[])).push(item, visit);
    }

    /// Forgets the words of a text that has not ended.
    pub(super) fn clear(&mut self, dropped: DroppedWords) {
        self.dropped = dropped;
        if let Some(phrases) = &mut self.phrases {
            phrases.clear();
        }
    }

    /// Calls `visit` with each word in its normalised form.
    pub(super) fn for_each_item(&mut self, text: &str, mut visit: impl FnMut(Item<'_>)) {
        self.for_each_piece(text, |tokenizer, piece| visit(tokenizer.admit(piece)));
    }

    /// Calls `visit` with each piece of the text that may be a word, before it is normalised.
    pub(super) fn for_each_piece(&mut self, text: &str, mut visit: impl FnMut(&mut Self, &str)) {
        let cutter = self.cutter.clone();
        cutter.for_each(&normalized(text, self.options.nfc), |word: &str| {
            if self.options.split_identifiers {
                split_identifier(word, |part| visit(self, part));
            } else {
                visit(self, word);
            }
        });
    }

    /// True if words are joined to phrases.
    pub(super) fn has_phrases(&self) -> bool {
        self.phrases.is_some()
    }

    /// The normalised form of a word, and whether it is dropped.
    fn admit(&mut self, word: &str) -> Item<'_> {
        match self.judge(word) {
            Ok(_) => Item::Word(&self.word),
            Err(reason) => {
                self.count(reason);
                match reason {
                    DropReason::StopWord => Item::StopWord(&self.word),
                    _ => Item::Dropped,
                }
            }
        }
    }

    /// Counts a word that is dropped.
    pub(super) fn count(&mut self, reason: DropReason) {
        let DroppedWords { numbers, short, long, stop_words, .. } = &mut self.dropped;
        *match reason {
            DropReason::StopWord => stop_words,
            DropReason::Number => numbers,
            DropReason::Short => short,
            DropReason::Long => long,
        } += 1;
    }

    /// The normalised form of a word, or why it is dropped; it is not counted.
    pub(super) fn judge(&mut self, word: &str) -> Result<&str, DropReason> {
        fold(&mut self.word, word, self.options.lowercase);
        let word = self.word.as_str();
        if self.stop_words.contains(word) {
            return Err(DropReason::StopWord);
        }
        let (mut length, mut letters) = (0, false);
        for character in word.chars() {
            length += 1;
            letters |= !character.is_numeric() && character.is_alphanumeric();
        }
        let TokenizerOptions { numbers, min_length, max_length, .. } = self.options;
        if !letters && !numbers {
            Err(DropReason::Number)
        } else if length < min_length {
            Err(DropReason::Short)
        } else if length > max_length {
            Err(DropReason::Long)
        } else {
            Ok(word)
        }
    }
}

/// The rule that drops a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    StopWord,
    Number,
    Short,
    Long,
}

/// Writes the word to `folded` with straight apostrophes, in lower case if `lowercase`.
fn fold(folded: &mut String, word: &str, lowercase: bool) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        if lowercase {
            folded.make_ascii_lowercase();
        }
        return;
    }
    let straight = word.replace('\u{2019}', "'");
    folded.push_str(&if lowercase { straight.to_lowercase() } else { straight });
}

fn stop_word(word: &str, nfc: bool) -> String {
    normalised(word.trim(), true, nfc)
}

/// The form in which a word is compared.
fn normalised(word: &str, lowercase: bool, nfc: bool) -> String {
    let mut folded = String::new();
    fold(&mut folded, &normalized(word, nfc), lowercase);
    folded
}

/// Calls `visit` with the parts of an identifier: runs of letters and digits, split before an
/// upper-case letter that follows a lower-case one or a digit, or that starts a capitalised word
/// after an acronym.
fn split_identifier(word: &str, mut visit: impl FnMut(&str)) {
    for run in word.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut start = 0;
        let mut before: Option<char> = None;
        let mut characters = run.char_indices().peekable();
        while let Some((i, c)) = characters.next() {
            let next_is_lower = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
            let after_other = before.is_some_and(|b| !b.is_uppercase());
            if c.is_uppercase() && i > 0 && (after_other || next_is_lower) {
                visit(&run[start..i]);
                start = i;
            }
            before = Some(c);
        }
        visit(&run[start..]);
    }
}
