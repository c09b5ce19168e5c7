//! Joining of phrases in a stream of words.

use hashbrown::HashMap;

use super::{Item, Phrase};

/// Joins the words of phrases, the longest first, from left to right.
///
/// A trie over the words of the phrases, with a buffer of the words that may begin one. Cost: one lookup
/// per word, and one more per word that may be part of a phrase.
#[derive(Clone, Debug, Default)]
pub(in crate::corpus::read) struct PhraseMatcher {
    /// Numbers of the words of phrases.
    ids: HashMap<Box<str>, u32>,
    /// Node after a node and a word. Node 0 is the root.
    next: HashMap<(u32, u32), u32>,
    /// Per node: the phrase that ends there, as a word.
    joined: Vec<Option<Box<str>>>,
    /// Words that were not emitted yet.
    pending: Vec<Pending>,
    /// Number of pending words that lead to `node`.
    matched: usize,
    node: u32,
    /// Number of words and node of the longest phrase that the pending words begin with.
    longest: Option<(usize, u32)>,
    /// Number of stop words that became part of a phrase.
    joined_stop_words: u64,
}

#[derive(Clone, Debug)]
struct Pending {
    word: Box<str>,
    is_stop_word: bool,
    id: u32,
}

impl PhraseMatcher {
    /// A matcher of phrases, whose words are in their normalised form.
    pub(in crate::corpus::read) fn new(phrases: &[Phrase]) -> Self {
        let mut matcher = Self { joined: vec![None], ..Self::default() };
        phrases.iter().for_each(|phrase| matcher.insert(phrase));
        matcher
    }

    /// Adds a phrase.
    pub(in crate::corpus::read) fn insert(&mut self, phrase: &Phrase) {
        let mut node = 0;
        for word in phrase.words() {
            let new_id = self.ids.len() as u32;
            let id = *self.ids.entry(word.into()).or_insert(new_id);
            let new_node = self.joined.len() as u32;
            node = *self.next.entry((node, id)).or_insert(new_node);
            if node == new_node {
                self.joined.push(None);
            }
        }
        self.joined[node as usize] = Some(phrase.joined().into());
    }

    /// Adds the next word. `visit` receives the words, phrases and dropped words that are settled.
    pub(in crate::corpus::read) fn push(
        &mut self,
        item: Item<'_>,
        visit: &mut impl FnMut(Option<&str>),
    ) {
        let (word, is_stop_word) = match item {
            Item::Word(word) => (word, false),
            Item::StopWord(word) => (word, true),
            Item::Dropped => {
                self.flush(visit);
                return visit(None);
            }
        };
        let id = self.ids.get(word).copied();
        let begins = |id| self.next.contains_key(&(0, id));
        match id {
            Some(id) if !self.pending.is_empty() || begins(id) => {
                self.pending.push(Pending { word: word.into(), is_stop_word, id });
                self.advance(visit);
            }
            _ => {
                self.flush(visit);
                visit((!is_stop_word).then_some(word));
            }
        }
    }

    /// Ends a text: settles the words that are pending.
    pub(in crate::corpus::read) fn flush(&mut self, visit: &mut impl FnMut(Option<&str>)) {
        while !self.pending.is_empty() {
            self.settle(visit);
            self.advance(visit);
        }
    }

    /// Forgets the words that are pending.
    pub(in crate::corpus::read) fn clear(&mut self) {
        self.pending.clear();
        self.joined_stop_words = 0;
        (self.matched, self.node, self.longest) = (0, 0, None);
    }

    /// Returns the number of stop words that became part of a phrase since the last call.
    pub(in crate::corpus::read) fn take_joined_stop_words(&mut self) -> u64 {
        std::mem::take(&mut self.joined_stop_words)
    }

    /// Follows the pending words into the trie as far as they may begin a phrase.
    fn advance(&mut self, visit: &mut impl FnMut(Option<&str>)) {
        while let Some(pending) = self.pending.get(self.matched) {
            match self.next.get(&(self.node, pending.id)) {
                Some(&node) => {
                    self.node = node;
                    self.matched += 1;
                    if self.joined[node as usize].is_some() {
                        self.longest = Some((self.matched, node));
                    }
                }
                None => self.settle(visit),
            }
        }
    }

    /// Emits the longest phrase that the pending words begin with, or else the first of them, and starts
    /// again behind it.
    fn settle(&mut self, visit: &mut impl FnMut(Option<&str>)) {
        let len = match self.longest {
            Some((len, node)) => {
                visit(self.joined[node as usize].as_deref());
                let stop_words = self.pending[..len].iter().filter(|word| word.is_stop_word);
                self.joined_stop_words += stop_words.count() as u64;
                len
            }
            None => {
                let first = &self.pending[0];
                visit((!first.is_stop_word).then_some(&*first.word));
                1
            }
        };
        self.pending.drain(..len);
        (self.matched, self.node, self.longest) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(phrases: &[&str]) -> PhraseMatcher {
        let phrases: Vec<Phrase> = phrases
            .iter()
            .map(|phrase| Phrase::new(phrase, |word| word.to_owned()).unwrap())
            .collect();
        PhraseMatcher::new(&phrases)
    }

    /// Words of a text in which `of` and `the` are stop words and `7` is dropped.
    fn items(text: &str) -> Vec<Item<'_>> {
        let item = |word| match word {
            "of" | "the" => Item::StopWord(word),
            "7" => Item::Dropped,
            word => Item::Word(word),
        };
        text.split(' ').map(item).collect()
    }

    fn joined(matcher: &mut PhraseMatcher, text: &str) -> String {
        let mut found: Vec<String> = Vec::new();
        let mut visit = |word: Option<&str>| found.push(word.unwrap_or("-").to_owned());
        items(text).into_iter().for_each(|item| matcher.push(item, &mut visit));
        matcher.flush(&mut visit);
        found.join(" ")
    }

    #[test]
    fn longest_phrases_are_joined_from_left_to_right() {
        let mut matcher = matcher(&["a b", "b c", "a b c d", "bank of america", "d d"]);
        for (text, expected) in [
            ("x a b y", "x a_b y"),
            ("a b c", "a_b c"),
            ("a b c d", "a_b_c_d"),
            // What was read ahead for a longer phrase is looked at again.
            ("a b b c", "a_b b_c"),
            ("a b c bank of america", "a_b c bank_of_america"),
            ("bank of the america", "bank - - america"),
            ("bank of bank of america", "bank - bank_of_america"),
            ("d d d", "d_d d"),
            ("a 7 b", "a - b"),
            ("of a", "- a"),
            ("a", "a"),
        ] {
            assert_eq!(joined(&mut matcher, text), expected);
        }
        assert_eq!(matcher.take_joined_stop_words(), 2);
        assert_eq!(matcher.take_joined_stop_words(), 0);
    }

    #[test]
    fn a_cleared_matcher_starts_afresh() {
        let mut matcher = matcher(&["a b", "a of b"]);
        matcher.push(Item::Word("a"), &mut |_| unreachable!());
        matcher.clear();
        assert_eq!(joined(&mut matcher, "b a b"), "b a_b");
        joined(&mut matcher, "a of b");
        matcher.clear();
        assert_eq!(matcher.take_joined_stop_words(), 0);
    }

    /// The rule itself, by comparing words at every position.
    fn by_definition(phrases: &[&str], text: &str) -> String {
        let words: Vec<&str> = text.split(' ').collect();
        let (mut at, mut found) = (0, Vec::new());
        while at < words.len() {
            let fits = |phrase: &&&str| {
                let phrase: Vec<&str> = phrase.split(' ').collect();
                words[at..].starts_with(&phrase)
            };
            let len = |phrase: &str| phrase.split(' ').count();
            match phrases.iter().filter(fits).max_by_key(|phrase| len(phrase)) {
                Some(phrase) => {
                    found.push(phrase.replace(' ', "_"));
                    at += len(phrase);
                }
                None => {
                    let is_dropped = ["of", "the", "7"].contains(&words[at]);
                    found.push(if is_dropped { "-" } else { words[at] }.to_owned());
                    at += 1;
                }
            }
        }
        found.join(" ")
    }

    proptest::proptest! {
        #[test]
        fn matches_its_definition(
            phrases in proptest::collection::vec("[abc]( (of )?[abc]){1,3}", 1..6),
            text in "([abc]|of|the|7)( ([abc]|of|the|7)){0,30}",
        ) {
            let phrases: Vec<&str> = phrases.iter().map(String::as_str).collect();
            proptest::prop_assert_eq!(
                joined(&mut matcher(&phrases), &text),
                by_definition(&phrases, &text)
            );
        }
    }
}
