//! Search for the phrases of a corpus.

use hashbrown::HashMap;

use super::{Item, Phrase};
use crate::corpus::read::{PhraseOptions, PhraseScore};
use crate::corpus::{Vocabulary, VocabularyFull};

/// Code of a dropped word, which no phrase contains.
const DROPPED: u32 = u32::MAX;
/// Code of the end of a document.
const END: u32 = u32::MAX - 1;
/// No stop word, where there may be one.
const NONE: u32 = u32::MAX;

/// Two neighbours, and the stop words between them.
type Pair = (u32, u32, [u32; 2]);

/// Collects texts, and finds their phrases.
///
/// Pairs of neighbours that occur together more often than by chance are joined; then pairs of which one is
/// such a pair, until phrases have [`PhraseOptions::max_words`] or there are
/// no more. A pair may have up to two stop words between its words, as in *bank of america*.
///
/// Memory: 8 bytes per word of the texts, stop words included, and 28 to 56 bytes per pair of neighbours
/// whose words both occur [`min_count`](PhraseOptions::min_count) times. Time: O(words) per pass.
#[derive(Debug)]
pub(in crate::corpus::read) struct PhraseFinder {
    options: PhraseOptions,
    words: Vocabulary,
    /// Kind of each word.
    kinds: Vec<Kind>,
    /// Words of all documents, each of which has [`END`] after it.
    codes: Vec<u32>,
    /// Position behind the last [`END`].
    document: usize,
}

impl PhraseFinder {
    pub(in crate::corpus::read) fn new(options: PhraseOptions) -> Self {
        let (words, kinds) = (Vocabulary::new(), Vec::new());
        Self { options, words, kinds, codes: Vec::new(), document: 0 }
    }

    /// Adds a word to the document.
    pub(in crate::corpus::read) fn push(&mut self, item: Item<'_>) -> Result<(), VocabularyFull> {
        let (word, kind) = match item {
            // A pattern may cut words with spaces, which a phrase cannot contain.
            Item::Word(word) if word.contains(char::is_whitespace) => (word, Kind::Break),
            Item::Word(word) => (word, Kind::Unit),
            Item::StopWord(word) => (word, Kind::StopWord),
            Item::Dropped => {
                self.codes.push(DROPPED);
                return Ok(());
            }
        };
        let id = self.words.intern(word)?;
        if id >= END {
            return Err(VocabularyFull);
        }
        if id as usize == self.kinds.len() {
            self.kinds.push(kind);
        }
        self.codes.push(id);
        Ok(())
    }

    pub(in crate::corpus::read) fn end_document(&mut self) {
        self.codes.push(END);
        self.document = self.codes.len();
    }

    /// Forgets the words since the last end of a document.
    pub(in crate::corpus::read) fn clear_document(&mut self) {
        self.codes.truncate(self.document);
    }

    /// The documents, in the order in which they were added.
    pub(in crate::corpus::read) fn documents(
        &self,
    ) -> impl Iterator<Item = impl Iterator<Item = Item<'_>>> {
        let documents = self.codes[..self.document].split_inclusive(|&code| code == END);
        documents.map(|document| document[..document.len() - 1].iter().map(|&code| self.item(code)))
    }

    fn item(&self, code: u32) -> Item<'_> {
        match code {
            DROPPED => Item::Dropped,
            id if self.kinds[id as usize] == Kind::StopWord => Item::StopWord(self.words.word(id)),
            id => Item::Word(self.words.word(id)),
        }
    }

    /// The phrases of the documents, sorted.
    pub(in crate::corpus::read) fn find(&self) -> Vec<Phrase> {
        let mut units = Units {
            options: &self.options,
            words: &self.words,
            kinds: &self.kinds,
            codes: self.codes.clone(),
            phrases: Vec::new(),
            first_new: 0,
        };
        while units.join() {}
        let used = units.phrases.into_iter().filter(|phrase| phrase.is_used);
        let mut phrases: Vec<Phrase> = used.map(|phrase| Phrase(phrase.text)).collect();
        phrases.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        phrases
    }
}

/// Documents during the search. A unit is a word, or a phrase that was found before.
struct Units<'a> {
    options: &'a PhraseOptions,
    words: &'a Vocabulary,
    kinds: &'a [Kind],
    /// Units of all documents; numbers from the number of words are those of phrases.
    codes: Vec<u32>,
    phrases: Vec<FoundPhrase>,
    /// First unit that the pass before has added. Pairs of others were scored before.
    first_new: u32,
}

struct FoundPhrase {
    text: String,
    /// Number of words without its stop words.
    num_words: u32,
    /// False if other pairs took all of its words.
    is_used: bool,
}

impl Units<'_> {
    /// Joins the pairs that score; returns whether there were any.
    fn join(&mut self) -> bool {
        let counts = self.counts();
        let total: u64 = counts.iter().sum();
        let score = self.options.score;
        let mut found: Vec<Pair> = self
            .pair_counts(&counts)
            .into_iter()
            .filter(|&((left, right, _), count)| {
                let [left, right] = [left, right].map(|unit| counts[unit as usize]);
                count >= self.options.min_count.into()
                    && score.of(count, left, right, total) >= self.options.threshold
            })
            .map(|(pair, _)| pair)
            .collect();
        // The order of a hash table is not reproducible.
        found.sort_unstable();
        let mut joined = HashMap::with_capacity(found.len());
        self.first_new = counts.len() as u32;
        for pair in found {
            let Ok(unit) = u32::try_from(self.words.len() + self.phrases.len()) else { break };
            if unit >= END {
                break;
            }
            self.phrases.push(self.phrase(pair));
            joined.insert(pair, unit);
        }
        self.replace(&joined);
        !joined.is_empty()
    }

    /// Number of occurrences of each unit; 0 for stop words and words that no phrase contains.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.words.len() + self.phrases.len()];
        for &code in self.codes.iter().filter(|&&code| self.kind(code) == Kind::Unit) {
            counts[code as usize] += 1;
        }
        counts
    }

    /// Number of occurrences of each pair of units that may become a phrase.
    fn pair_counts(&self, counts: &[u64]) -> HashMap<Pair, u64> {
        let may_join = |left: u32, right: u32| {
            let is_frequent = |unit: u32| counts[unit as usize] >= self.options.min_count.into();
            left.max(right) >= self.first_new
                && is_frequent(left)
                && is_frequent(right)
                && self.num_words(left) + self.num_words(right) <= self.options.max_words
        };
        let mut pairs = HashMap::new();
        let mut before = Before::default();
        for &code in &self.codes {
            match self.kind(code) {
                Kind::Break => before = Before::default(),
                Kind::StopWord => before.push_stop_word(code),
                Kind::Unit => {
                    if let Some(left) = before.unit.filter(|&left| may_join(left, code)) {
                        *pairs.entry((left, code, before.stop_words)).or_insert(0) += 1;
                    }
                    before = Before::unit(code);
                }
            }
        }
        pairs
    }

    /// Replaces pairs by the units that they became, from left to right.
    fn replace(&mut self, joined: &HashMap<Pair, u32>) {
        // In place: a pair has more codes than the unit that replaces it.
        let mut len = 0;
        let mut before = Before::default();
        for at in 0..self.codes.len() {
            let code = self.codes[at];
            match self.kind(code) {
                Kind::Break => before = Before::default(),
                Kind::StopWord => before.push_stop_word(code),
                Kind::Unit => {
                    let left =
                        before.unit.and_then(|left| joined.get(&(left, code, before.stop_words)));
                    if let Some(&unit) = left {
                        let stop_words = before.stop_words.iter().filter(|&&word| word != NONE);
                        len -= 1 + stop_words.count();
                        self.codes[len] = unit;
                        len += 1;
                        self.phrases[unit as usize - self.words.len()].is_used = true;
                        // It takes part in no other pair of this pass.
                        before = Before::default();
                        continue;
                    }
                    before = Before::unit(code);
                }
            }
            self.codes[len] = code;
            len += 1;
        }
        self.codes.truncate(len);
    }

    fn kind(&self, code: u32) -> Kind {
        match code {
            DROPPED | END => Kind::Break,
            code => self.kinds.get(code as usize).copied().unwrap_or(Kind::Unit),
        }
    }

    /// Number of words of a unit without its stop words.
    fn num_words(&self, unit: u32) -> u32 {
        let phrase = (unit as usize).checked_sub(self.words.len());
        phrase.map_or(1, |phrase| self.phrases[phrase].num_words)
    }

    fn text(&self, unit: u32) -> &str {
        match (unit as usize).checked_sub(self.words.len()) {
            Some(phrase) => &self.phrases[phrase].text,
            None => self.words.word(unit),
        }
    }

    fn phrase(&self, (left, right, stop_words): Pair) -> FoundPhrase {
        let between = stop_words.into_iter().filter(|&word| word != NONE);
        let parts: Vec<&str> =
            [left].into_iter().chain(between).chain([right]).map(|unit| self.text(unit)).collect();
        let num_words = self.num_words(left) + self.num_words(right);
        FoundPhrase { text: parts.join(" "), num_words, is_used: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A word or a phrase.
    Unit,
    StopWord,
    /// No phrase spans it.
    Break,
}

/// The unit before a position, and the stop words since then.
#[derive(Clone, Copy)]
struct Before {
    unit: Option<u32>,
    stop_words: [u32; 2],
}

impl Default for Before {
    fn default() -> Self {
        Self { unit: None, stop_words: [NONE; 2] }
    }
}

impl Before {
    fn unit(unit: u32) -> Self {
        Self { unit: Some(unit), ..Self::default() }
    }

    fn push_stop_word(&mut self, word: u32) {
        match self.stop_words {
            [NONE, _] => self.stop_words[0] = word,
            [_, NONE] => self.stop_words[1] = word,
            _ => *self = Self::default(),
        }
    }
}

impl PhraseScore {
    /// Score of two words that occur `left` and `right` times, and `both` times together, of `total`.
    fn of(self, both: u64, left: u64, right: u64, total: u64) -> f64 {
        let [both, left, right, total] = [both, left, right, total].map(|count| count as f64);
        match self {
            Self::Npmi => {
                let pmi = (both * total / (left * right)).ln();
                // All words are this pair.
                if both >= total { 1.0 } else { pmi / (total / both).ln() }
            }
            Self::LogLikelihood => {
                if both * total <= left * right {
                    return 0.0;
                }
                // Observed and expected counts of the four cells of the table, and their sums.
                let (rest_left, rest_right) = (left - both, right - both);
                let neither = total - left - right + both;
                let cell = |observed: f64, row: f64, column: f64| {
                    if observed > 0.0 && row > 0.0 && column > 0.0 {
                        observed * (observed * total / (row * column)).ln()
                    } else {
                        0.0
                    }
                };
                2.0 * (cell(both, left, right)
                    + cell(rest_left, left, total - right)
                    + cell(rest_right, total - left, right)
                    + cell(neither, total - left, total - right))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> PhraseOptions {
        PhraseOptions { min_count: 2, ..PhraseOptions::default() }
    }

    /// Phrases of lines in which `of` and `the` are stop words and `7` is dropped.
    fn find(options: PhraseOptions, lines: &[&str]) -> Vec<String> {
        let mut finder = PhraseFinder::new(options);
        for line in lines {
            for word in line.split(' ') {
                let item = match word {
                    "of" | "the" => Item::StopWord(word),
                    "7" => Item::Dropped,
                    word => Item::Word(word),
                };
                finder.push(item).unwrap();
            }
            finder.end_document();
        }
        finder.find().iter().map(Phrase::to_string).collect()
    }

    #[test]
    fn words_that_occur_together_are_phrases() {
        let lines = ["x new york y", "y new york x", "x y", "y x x y"];
        assert_eq!(find(options(), &lines), ["new york"]);
        // Each word of a pair must be frequent enough, and the pair.
        let frequent = PhraseOptions { min_count: 3, ..options() };
        assert_eq!(find(frequent, &lines), [""; 0]);
        // Neighbours in other documents, or with a dropped word between them, are none.
        assert_eq!(find(options(), &["a", "b", "a", "b", "a 7 b", "a 7 b"]), [""; 0]);
        assert_eq!(find(options(), &["x a", "b y", "y a", "b x", "x y", "y x"]), [""; 0]);
    }

    #[test]
    fn phrases_contain_stop_words_but_no_phrase_begins_with_one() {
        let lines = ["the bank of america x", "of bank of america y", "x y", "y x the y x of"];
        assert_eq!(find(options(), &lines), ["bank of america"]);
        let lines = ["a of the b", "a of the b", "c of of of d", "c of of of d", "x y", "y x"];
        assert_eq!(find(options(), &lines), ["a of the b"]);
    }

    #[test]
    fn pairs_grow_up_to_the_largest_length() {
        let lines = ["a b c d x", "y a b c d", "x y", "y x", "x x y y", "y y x x"];
        let of = |max_words| find(PhraseOptions { max_words, ..options() }, &lines);
        assert_eq!(of(2), ["a b", "c d"]);
        assert_eq!(of(3), ["a b", "c d"]);
        assert_eq!(of(4), ["a b", "a b c d", "c d"]);
        let lines = ["a b c x", "y a b c", "x y", "y x", "x x y y", "y y x x"];
        assert_eq!(find(options(), &lines), ["a b", "a b c"]);
    }

    #[test]
    fn an_unfinished_document_is_forgotten() {
        let mut finder = PhraseFinder::new(options());
        finder.push(Item::Word("a")).unwrap();
        finder.end_document();
        finder.push(Item::Word("b")).unwrap();
        finder.clear_document();
        finder.push(Item::StopWord("c")).unwrap();
        finder.push(Item::Dropped).unwrap();
        finder.end_document();
        let documents: Vec<Vec<Item<'_>>> = finder.documents().map(Iterator::collect).collect();
        assert_eq!(documents, [vec![Item::Word("a")], vec![Item::StopWord("c"), Item::Dropped]]);
    }

    #[test]
    fn scores_have_their_closed_forms() {
        let npmi = |both, left, right, total| PhraseScore::Npmi.of(both, left, right, total);
        // Independent: p(ab) = p(a) p(b). Always together. Twice as often as by chance, at p(ab) = 1/8.
        assert!(npmi(25, 50, 50, 100).abs() < 1e-12);
        assert!((npmi(10, 10, 10, 100) - 1.0).abs() < 1e-12);
        assert!((npmi(100, 200, 200, 800) - 2f64.ln() / 8f64.ln()).abs() < 1e-12);
        assert!(npmi(1, 50, 50, 100) < 0.0);
        assert_eq!(npmi(5, 5, 5, 5), 1.0);
        let ratio =
            |both, left, right, total| PhraseScore::LogLikelihood.of(both, left, right, total);
        assert_eq!(ratio(25, 50, 50, 100), 0.0);
        assert_eq!(ratio(1, 50, 50, 100), 0.0);
        // Always together: 2 (a ln (N/a) + (N-a) ln (N/(N-a))).
        let exact = 2.0 * (10.0 * 10f64.ln() + 90.0 * (100.0f64 / 90.0).ln());
        assert!((ratio(10, 10, 10, 100) - exact).abs() < 1e-9);
        // Cells 20, 10, 5, 65 against their expectations 7.5, 22.5, 17.5, 52.5.
        let cells = [(20.0, 7.5), (10.0, 22.5), (5.0, 17.5), (65.0, 52.5)];
        let exact: f64 = cells.iter().map(|(o, e): &(f64, f64)| 2.0 * o * (o / e).ln()).sum();
        assert!((ratio(20, 30, 25, 100) - exact).abs() < 1e-9);
        // A word beside itself, where the table is not one.
        assert!(ratio(2, 3, 3, 3).is_finite());
    }

    #[test]
    fn a_likelihood_ratio_asks_for_evidence() {
        let lines = ["a b x", "a b y", "x y x y", "y x"];
        let of = |threshold| {
            let score = PhraseScore::LogLikelihood;
            find(PhraseOptions { score, threshold, ..options() }, &lines)
        };
        assert_eq!(of(10.0), ["a b"]);
        assert_eq!(of(15.0), [""; 0]);
    }
}
