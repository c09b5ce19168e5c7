//! Counts of the windows that contain a word or a pair of words.
//!
//! The windows of a word in a document form a few runs: an occurrence at position p is in the
//! windows that begin at p − w + 1 to p. Runs are counted instead of single windows; a pair of
//! words occurs together in the overlaps of their runs.

use std::collections::HashMap;

use rayon::prelude::*;

use super::super::cancelled::Cancelled;
use super::Counting;
use crate::corpus::Corpus;

/// Documents per unit of work.
const DOCUMENTS_PER_CHUNK: usize = 64;

/// Kind of window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Windows {
    /// A whole document.
    Documents,
    /// This number of consecutive tokens.
    Sliding { size: usize, counting: Counting },
}

/// Position of a word in a topic's list.
#[derive(Clone, Copy, Debug)]
struct Place {
    topic: u32,
    at: u32,
}

/// Index of the listed words and of the positions of their counts.
#[derive(Debug)]
struct Lists {
    /// Word → contiguous number of each listed word.
    numbers: HashMap<u32, u32>,
    /// Number → word.
    words: Vec<u32>,
    /// Number → its positions in lists.
    places: Vec<Vec<Place>>,
    /// Topic → number of each of its words.
    topics: Vec<Vec<u32>>,
    /// Topic → index of its first pair; one more entry at the end.
    pairs: Vec<usize>,
}

/// Numbers of windows that contain words, and pairs of words of one topic.
#[derive(Debug)]
pub(super) struct Counts {
    lists: Lists,
    /// Number of all windows.
    pub windows: u64,
    tally: Tally,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    windows: u64,
    /// Windows of each word, by number of the word.
    occurrences: Vec<u64>,
    /// Windows of each pair, by topic; pair (i, j) with j < i is at i(i − 1)/2 + j.
    together: Vec<u64>,
}

/// A run of windows: start of the first window, and start of the window after the last.
type Run = (usize, usize);

/// Scratch memory of one thread.
#[derive(Default)]
struct Scratch {
    /// (number, position) of each listed token.
    tokens: Vec<(u32, usize)>,
    /// Numbers in the document and their runs.
    present: Vec<(u32, Vec<Run>)>,
    /// Topics with a word in the document: the word's position in the list and in `present`.
    topics: Vec<(u32, u32, u32)>,
}

impl Lists {
    fn new<W: AsRef<[u32]>>(topics: &[W]) -> Self {
        let mut lists = Self {
            numbers: HashMap::new(),
            words: Vec::new(),
            places: Vec::new(),
            topics: Vec::with_capacity(topics.len()),
            pairs: vec![0],
        };
        for (topic, words) in (0..).zip(topics) {
            let words = words.as_ref();
            let number = |(at, &word): (usize, &u32)| {
                let next = lists.words.len() as u32;
                let number = *lists.numbers.entry(word).or_insert(next);
                if number == next {
                    lists.words.push(word);
                    lists.places.push(Vec::new());
                }
                lists.places[number as usize].push(Place { topic, at: at as u32 });
                number
            };
            let numbers = words.iter().enumerate().map(number).collect();
            lists.topics.push(numbers);
            let pairs = words.len() * words.len().saturating_sub(1) / 2;
            lists.pairs.push(lists.pairs.last().expect("it begins with 0") + pairs);
        }
        lists
    }

    /// Counts of no windows.
    fn no_windows(&self) -> Tally {
        Tally {
            windows: 0,
            occurrences: vec![0; self.words.len()],
            together: vec![0; *self.pairs.last().expect("it begins with 0")],
        }
    }

    fn pair(&self, topic: usize, i: usize, j: usize) -> usize {
        let (low, high) = if i < j { (i, j) } else { (j, i) };
        self.pairs[topic] + high * (high - 1) / 2 + low
    }
}

impl Counts {
    /// Those of no documents.
    pub fn new<W: AsRef<[u32]>>(topics: &[W]) -> Self {
        let lists = Lists::new(topics);
        Self { windows: 0, tally: lists.no_windows(), lists }
    }

    /// Adds the windows of all documents, or of some if `cancelled`.
    pub fn add(&mut self, corpus: &Corpus, windows: Windows, cancelled: &Cancelled<'_>) {
        let lists = &self.lists;
        let empty = || lists.no_windows();
        let documents = corpus.num_documents();
        let tally = (0..documents.div_ceil(DOCUMENTS_PER_CHUNK))
            .into_par_iter()
            .fold(
                || (Scratch::default(), empty()),
                |(mut scratch, mut tally), chunk| {
                    let start = chunk * DOCUMENTS_PER_CHUNK;
                    let range = start..documents.min(start + DOCUMENTS_PER_CHUNK);
                    for d in range.take_while(|_| !cancelled.now()) {
                        tally.windows += scratch.runs(corpus, d, lists, windows);
                        scratch.count(lists, &mut tally);
                    }
                    (scratch, tally)
                },
            )
            .map(|(_, tally)| tally)
            .reduce(empty, Tally::add);
        self.tally = std::mem::take(&mut self.tally).add(tally);
        self.windows = self.tally.windows;
    }

    /// Number of lists.
    pub fn num_topics(&self) -> usize {
        self.lists.topics.len()
    }

    /// Number of words of a topic.
    pub fn len(&self, topic: usize) -> usize {
        self.lists.topics[topic].len()
    }

    /// Number of windows with the word at position `i` of a topic.
    pub fn occurrences(&self, topic: usize, i: usize) -> u64 {
        self.tally.occurrences[self.lists.topics[topic][i] as usize]
    }

    /// Number of windows with the words at the different positions `i` and `j` of a topic.
    pub fn together(&self, topic: usize, i: usize, j: usize) -> u64 {
        self.tally.together[self.lists.pair(topic, i, j)]
    }

    /// Listed words without a window, ascending.
    pub fn absent(&self) -> Vec<u32> {
        let words = self.lists.words.iter().zip(&self.tally.occurrences);
        let mut absent: Vec<u32> =
            words.filter(|(_, windows)| **windows == 0).map(|(&word, _)| word).collect();
        absent.sort_unstable();
        absent
    }
}

impl Tally {
    fn add(mut self, other: Self) -> Self {
        self.windows += other.windows;
        self.occurrences.iter_mut().zip(other.occurrences).for_each(|(sum, n)| *sum += n);
        self.together.iter_mut().zip(other.together).for_each(|(sum, n)| *sum += n);
        self
    }
}

impl Scratch {
    /// Finds the runs of a document's listed words; returns the number of its windows.
    fn runs(&mut self, corpus: &Corpus, d: usize, lists: &Lists, windows: Windows) -> u64 {
        let Self { tokens, present, .. } = self;
        present.clear();
        let (size, counting) = match windows {
            Windows::Sliding { size, counting } => (size, counting),
            Windows::Documents => {
                let words = corpus.document(d).words;
                let numbers = words.iter().filter_map(|word| lists.numbers.get(word));
                present.extend(numbers.map(|&number| (number, vec![(0, 1)])));
                return 1;
            }
        };
        let order = corpus.tokens(d).unwrap_or_default();
        tokens.clear();
        for (place, word) in order.iter().enumerate() {
            tokens.extend(lists.numbers.get(word).map(|&number| (number, place)));
        }
        tokens.sort_unstable();
        let last = order.len().saturating_sub(size);
        for run in tokens.chunk_by(|a, b| a.0 == b.0) {
            let places = run.iter().map(|&(_, place)| place);
            let runs = match counting {
                Counting::Exact => exact(places, size, last),
                Counting::AsGensim => as_gensim(places, size, last),
            };
            present.push((run[0].0, runs));
        }
        last as u64 + 1
    }

    /// Adds a document's windows to the counts.
    fn count(&mut self, lists: &Lists, tally: &mut Tally) {
        let Self { present, topics, .. } = self;
        topics.clear();
        for (at, (number, runs)) in (0..).zip(present.iter()) {
            tally.occurrences[*number as usize] += length(runs);
            let places = lists.places[*number as usize].iter();
            topics.extend(places.map(|place| (place.topic, place.at, at)));
        }
        topics.sort_unstable();
        for words in topics.chunk_by(|a, b| a.0 == b.0) {
            for (n, &(topic, i, first)) in words.iter().enumerate() {
                for &(_, j, second) in &words[..n] {
                    let (first, second) = (&present[first as usize].1, &present[second as usize].1);
                    let pair = lists.pair(topic as usize, i as usize, j as usize);
                    tally.together[pair] += overlap(first, second);
                }
            }
        }
    }
}

/// Runs of windows that contain a word with occurrences at ascending `places`; the last window
/// begins at `last`.
fn exact(places: impl Iterator<Item = usize>, size: usize, last: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for place in places {
        let (start, end) = (place.saturating_sub(size - 1), place.min(last) + 1);
        match runs.last_mut() {
            Some(run) if start <= run.1 => run.1 = end,
            _ => runs.push((start, end)),
        }
    }
    runs
}

/// Runs of windows in which gensim counts the word: from its entry until any of its occurrences
/// leaves.
fn as_gensim(places: impl Iterator<Item = usize> + Clone, size: usize, last: usize) -> Vec<Run> {
    // The first window is evaluated as a whole. For each later window, the token before it leaves
    // and then its last token enters.
    let mut comes = places.clone().filter_map(|place| match place < size {
        true => None,
        false => Some(place + 1 - size),
    });
    let mut next = comes.next();
    let mut runs: Vec<Run> = Vec::new();
    let mut since = places.clone().next().filter(|&place| place < size).map(|_| 0);
    for leaves in places.map(|place| place + 1).filter(|&window| window <= last) {
        while let Some(window) = next.filter(|&window| window < leaves) {
            since.get_or_insert(window);
            next = comes.next();
        }
        runs.extend(since.take().map(|start| (start, leaves)));
    }
    for window in next.into_iter().chain(comes) {
        since.get_or_insert(window);
    }
    runs.extend(since.map(|start| (start, last + 1)));
    runs.retain(|run| run.0 < run.1);
    runs
}

fn length(runs: &[Run]) -> u64 {
    runs.iter().map(|run| (run.1 - run.0) as u64).sum()
}

/// Number of windows in both lists of runs.
fn overlap(mut a: &[Run], mut b: &[Run]) -> u64 {
    let mut windows = 0;
    while let (Some((first, a_rest)), Some((second, b_rest))) = (a.split_first(), b.split_first()) {
        let (start, end) = (first.0.max(second.0), first.1.min(second.1));
        windows += end.saturating_sub(start) as u64;
        if first.1 < second.1 {
            a = a_rest;
        } else {
            b = b_rest;
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference: windows that contain `word`, one by one.
    fn windows_with(tokens: &[u32], word: u32, size: usize, counting: Counting) -> Vec<usize> {
        let last = tokens.len().saturating_sub(size);
        let window = |start: usize| &tokens[start..tokens.len().min(start + size)];
        let mut is_in = window(0).contains(&word);
        let mut found = Vec::new();
        for start in 0..=last {
            match counting {
                Counting::Exact => is_in = window(start).contains(&word),
                Counting::AsGensim if start > 0 => {
                    is_in &= tokens[start - 1] != word;
                    is_in |= tokens[start + size - 1] == word;
                }
                Counting::AsGensim => {}
            }
            if is_in {
                found.push(start);
            }
        }
        found
    }

    fn all(runs: &[Run]) -> Vec<usize> {
        runs.iter().flat_map(|run| run.0..run.1).collect()
    }

    proptest! {
        #[test]
        fn runs_are_windows(
            tokens in prop::collection::vec(0u32..4, 0..40),
            size in 1usize..12,
        ) {
            let last = tokens.len().saturating_sub(size);
            let mut of = Vec::new();
            for counting in [Counting::Exact, Counting::AsGensim] {
                for word in 0..4 {
                    let places = || (0..tokens.len()).filter(|&place| tokens[place] == word);
                    let runs = match counting {
                        Counting::Exact => exact(places(), size, last),
                        Counting::AsGensim => as_gensim(places().collect::<Vec<_>>().into_iter(), size, last),
                    };
                    let expected = windows_with(&tokens, word, size, counting);
                    prop_assert_eq!(all(&runs), expected.clone());
                    prop_assert_eq!(length(&runs), expected.len() as u64);
                    of.push((runs, expected));
                }
            }
            for (a, in_a) in &of {
                for (b, in_b) in &of {
                    let both = in_a.iter().filter(|window| in_b.contains(window)).count();
                    prop_assert_eq!(overlap(a, b), both as u64);
                }
            }
        }
    }
}
