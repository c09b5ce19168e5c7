//! MALLET state files: the topic of every token.
//!
//! ```text
//! #doc source pos typeindex type topic
//! #alpha : 0.5 0.25 …                    one per topic
//! #beta : 0.01
//! 0 file:/a.txt 0 17 tree 3
//! ```
//!
//! Words get ids in order of first occurrence, because MALLET's own numbers have gaps. Type indices
//! and types are one to one, or the state is refused: a state in an encoding that lacks a letter has
//! the same text for several types, which must not become one word.
//!
//! Sources and types may contain blanks, so the five blanks of a line are not always its columns.
//! The columns are then found by the position, which counts up from 0 in each document, and by the
//! types that are known already; a line that stays ambiguous is refused.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hashbrown::HashMap;

use super::lines::Lines;
use super::{InteropError, MAX_TOPICS};
use crate::corpus::{Corpus, CorpusBuilder, Vocabulary};
use crate::model::{CountsBuilder, Provenance, TopicModel};
use crate::prior::{Alpha, check_beta};
use crate::train::Assignments;

/// Reads the state file at `path`.
///
/// # Errors
/// [`InteropError`] names the file, the line and the problem.
pub fn load_state(path: impl AsRef<Path>) -> Result<TopicModel, InteropError> {
    let path = path.as_ref();
    let open = || read_state(File::open(path)?);
    open().map_err(|error| error.at(path))
}

/// Reads a state file from a stream, which may be compressed.
///
/// ```
/// use lda_core::interop::mallet::read_state;
///
/// let state = "#doc source pos typeindex type topic\n#alpha : 0.5 0.25 \n#beta : 0.01\n\
///              0 NA 0 0 tree 1\n0 NA 1 1 leaf 1\n1 NA 0 0 tree 0\n";
/// let model = read_state(state.as_bytes())?;
/// assert_eq!((model.num_topics(), model.num_words()), (2, 2));
/// assert_eq!(model.counts().unwrap().totals(), [1, 2]);
/// assert_eq!(model.vocabulary().unwrap().word(1), "leaf");
/// # Ok::<(), lda_core::interop::InteropError>(())
/// ```
///
/// # Errors
/// [`InteropError`] names the line and the problem.
pub fn read_state(reader: impl Read) -> Result<TopicModel, InteropError> {
    read(reader, &mut |_, _, _| {})
}

/// A run of MALLET: everything that another sampler needs to continue it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MalletRun {
    /// Documents, in the order of their tokens.
    pub corpus: Corpus,
    /// Topic of every token.
    pub assignments: Assignments,
    /// Counts, priors and words.
    pub model: TopicModel,
}

/// Reads the state file at `path` with its documents and topics.
///
/// ```no_run
/// use lda_core::interop::mallet::load_run;
/// use lda_core::train::{Init, TrainOptions, Trainer};
///
/// let run = load_run("state.gz")?;
/// let options = TrainOptions::new(run.model.num_topics() as u32)
///     .alpha(run.model.alpha().clone())
///     .beta(run.model.counts().expect("a state has counts").beta());
/// let init = Init { topics: Some(&run.assignments), ..Init::default() };
/// let mut trainer = Trainer::with_init(&run.corpus, &options, init)?;
/// trainer.epoch();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`InteropError`] names the file, the line and the problem.
pub fn load_run(path: impl AsRef<Path>) -> Result<MalletRun, InteropError> {
    let path = path.as_ref();
    let open = || read_run(File::open(path)?);
    open().map_err(|error| error.at(path))
}

/// Reads a state from a stream, which may be compressed, with its documents and topics.
///
/// # Errors
/// [`InteropError`] names the line and the problem.
pub fn read_run(reader: impl Read) -> Result<MalletRun, InteropError> {
    // (word, topic) of all tokens, and the end of each document.
    let (mut tokens, mut ends): (Vec<(u32, u32)>, Vec<usize>) = (Vec::new(), Vec::new());
    let model = read(reader, &mut |document, word, topic| {
        tokens.push((word, topic));
        ends.resize(document as usize, 0);
        ends[document as usize - 1] = tokens.len();
    })?;
    let invalid = |error: &dyn std::fmt::Display| InteropError::Content(error.to_string());
    let documents = (0..ends.len())
        .map(|d| &tokens[d.checked_sub(1).map_or(0, |before| ends[before])..ends[d]]);
    let mut builder = CorpusBuilder::new().keep_order();
    for document in documents.clone() {
        let words = document.iter().map(|&(word, _)| word);
        builder.push_tokens(words).map_err(|error| invalid(&error))?;
    }
    let mut corpus = builder.build().map_err(|error| invalid(&error))?;
    let vocabulary = model.vocabulary().expect("a state has words").clone();
    corpus.set_vocabulary(vocabulary).map_err(|error| invalid(&error))?;
    let documents = documents.map(|document| document.iter().copied());
    let assignments = Assignments::from_documents(&corpus, documents);
    let assignments = assignments.map_err(|error| invalid(&error))?;
    Ok(MalletRun { corpus, assignments, model })
}

/// Reads a state; `visit` receives the number of documents so far, the word and the topic of each token.
fn read(
    reader: impl Read,
    visit: &mut dyn FnMut(u64, u32, u32),
) -> Result<TopicModel, InteropError> {
    let mut lines = Lines::new(reader)?;
    let first = lines.next()?.unwrap_or_default();
    if !first.starts_with("#doc ") {
        let reason = "it is not a MALLET state, which begins with #doc: give a file written by --output-state";
        return Err(lines.wrong(reason.to_owned()));
    }
    let alpha: Vec<f64> = header(&mut lines, "#alpha :")?;
    if alpha.len() > MAX_TOPICS as usize {
        return Err(lines.wrong(format!("{} topics, more than {MAX_TOPICS}", alpha.len())));
    }
    let alpha = Alpha::PerTopic(alpha);
    let topics = alpha.as_slice().len();
    alpha.check(topics).map_err(|error| lines.wrong(error.to_string()))?;
    let beta = match header(&mut lines, "#beta :")?[..] {
        [beta] => beta,
        _ => return Err(lines.wrong("expected one number after #beta :".to_owned())),
    };
    let (types, counts, provenance) = tokens(&mut lines, topics, visit)?;
    let words = types.vocabulary.len();
    check_beta(beta, words).map_err(|error| InteropError::Content(error.to_string()))?;
    let counts = by_word(counts, topics, words as u32);
    Ok(TopicModel::of_counts(counts.finish(beta), alpha)
        .with_vocabulary(Some(types.vocabulary))
        .with_provenance(provenance))
}

/// Counts of (word, topic).
type Counts = HashMap<(u32, u32), u32>;

/// Reads the lines of tokens.
fn tokens(
    lines: &mut Lines<'_>,
    topics: usize,
    visit: &mut dyn FnMut(u64, u32, u32),
) -> Result<(Types, Counts, Provenance), InteropError> {
    let (mut types, mut counts) = (Types::default(), Counts::new());
    let (mut tokens, mut documents) = (0u64, 0u64);
    let (mut document, mut position) = (None, 0);
    loop {
        let number = lines.number() + 1;
        let wrong = |reason: String| InteropError::Line { line: number, reason };
        let Some(line) = lines.next()? else { break };
        let starts = line.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        if starts != document || tokens == 0 {
            (document, position) = (starts, 0);
            documents += 1;
        }
        let token = Token::find(line, position, &types).map_err(wrong)?;
        position = token.position.saturating_add(1);
        let topic: u32 =
            token.topic.parse().ok().filter(|&topic| (topic as usize) < topics).ok_or_else(
                || wrong(format!("topic {:?} is not an integer below {topics}", token.topic)),
            )?;
        let word = types.word(token.index, token.text).map_err(wrong)?;
        let count = counts.entry((word, topic)).or_default();
        *count = count.checked_add(1).ok_or_else(|| wrong("too many tokens".to_owned()))?;
        tokens += 1;
        visit(documents, word, topic);
    }
    if tokens == 0 {
        return Err(InteropError::Content("the state has no tokens".to_owned()));
    }
    let provenance = Provenance {
        documents: Some(documents),
        tokens: Some(tokens),
        notes: vec![("program".to_owned(), "MALLET".to_owned())],
        ..Provenance::default()
    };
    Ok((types, counts, provenance))
}

/// The types of a state: their texts are the vocabulary.
#[derive(Default)]
struct Types {
    vocabulary: Vocabulary,
    /// Word of each type index.
    words: HashMap<u64, u32>,
    /// Type index of each word.
    indices: Vec<u64>,
}

impl Types {
    /// The word of a type, which is new or has the same text as before.
    fn word(&mut self, index: u64, text: &str) -> Result<u32, String> {
        if let Some(&word) = self.words.get(&index) {
            let before = self.vocabulary.word(word);
            return if before == text {
                Ok(word)
            } else {
                Err(format!("type {index} is {text:?}, but on an earlier line it is {before:?}"))
            };
        }
        if let Some(word) = self.vocabulary.id(text) {
            let other = self.indices[word as usize];
            return Err(format!(
                "types {other} and {index} are both {text:?}: write the state again in UTF-8 \
                 (java -Dfile.encoding=UTF-8)"
            ));
        }
        let word = self.vocabulary.intern(text).map_err(|error| error.to_string())?;
        self.words.insert(index, word);
        self.indices.push(index);
        Ok(word)
    }

    /// Whether a type may have this text.
    fn admits(&self, index: u64, text: &str) -> bool {
        match self.words.get(&index) {
            Some(&word) => self.vocabulary.word(word) == text,
            None => self.vocabulary.id(text).is_none(),
        }
    }
}

/// The columns of a line that are read.
#[derive(Clone, Copy)]
struct Token<'a> {
    position: u64,
    index: u64,
    text: &'a str,
    topic: &'a str,
}

impl<'a> Token<'a> {
    /// Finds the columns of a line; `position` is the one that follows from the lines before.
    fn find(line: &'a str, position: u64, types: &Types) -> Result<Self, String> {
        let mut found: Vec<Self> = Self::candidates(line).collect();
        // Each rule only chooses among several.
        let choose = |found: &mut Vec<Self>, rule: &dyn Fn(&Self) -> bool| {
            if found.len() > 1 && found.iter().any(rule) {
                found.retain(rule);
            }
        };
        choose(&mut found, &|token| token.position == position);
        choose(&mut found, &|token| types.admits(token.index, token.text));
        choose(&mut found, &|token| types.words.contains_key(&token.index));
        match found[..] {
            [token] => Ok(token),
            [] => Err("expected: doc source pos typeindex type topic".to_owned()),
            [one, other, ..] => Err(format!(
                "the type may be {:?} or {:?}: give its documents names without blanks",
                one.text, other.text
            )),
        }
    }

    /// All ways to read a line: two integers that follow each other are position and type index;
    /// a document number and a source come before them, a type and a topic after them.
    fn candidates(line: &'a str) -> impl Iterator<Item = Self> {
        let (columns, topic) = line.rsplit_once(' ').unwrap_or_default();
        let blanks = columns.match_indices(' ').map(|(at, _)| at).skip(1);
        blanks.filter_map(move |blank| {
            let mut rest = columns[blank + 1..].splitn(3, ' ');
            let position = rest.next()?.parse().ok()?;
            let index = rest.next()?.parse().ok()?;
            Some(Self { position, index, text: rest.next()?, topic })
        })
    }
}

/// The counts of (word, topic), in order.
fn by_word(counts: Counts, topics: usize, words: u32) -> CountsBuilder {
    let mut entries: Vec<_> = counts.into_iter().collect();
    entries.sort_unstable();
    let mut builder = CountsBuilder::new(topics);
    let mut entries = entries.into_iter().peekable();
    for word in 0..words {
        while let Some(((_, topic), count)) = entries.next_if(|entry| entry.0.0 == word) {
            builder.push(topic, count);
        }
        builder.end_word();
    }
    builder
}

/// Numbers after `name` in the next line.
fn header(lines: &mut Lines<'_>, name: &str) -> Result<Vec<f64>, InteropError> {
    let numbers = |text: &str| text.split_whitespace().map(|number| number.parse().ok()).collect();
    let found: Option<Option<Vec<f64>>> =
        lines.next()?.and_then(|line| line.strip_prefix(name)).map(numbers);
    found
        .flatten()
        .filter(|numbers| !numbers.is_empty())
        .ok_or_else(|| lines.wrong(format!("expected {name:?} and numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::WordCounts;
    use crate::train::{Init, TrainOptions, Trainer};

    const HEAD: &str = "#doc source pos typeindex type topic\n#alpha : 0.5 0.5\n#beta : 0.1\n";

    fn words(lines: &str) -> Result<Vec<String>, String> {
        let model = read_state(format!("{HEAD}{lines}").as_bytes());
        let model = model.map_err(|error| error.to_string())?;
        let vocabulary = model.vocabulary().unwrap();
        Ok(vocabulary.iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_run_continues_from_its_topics() {
        let lines = "0 NA 0 0 tree 1\n0 NA 1 7 leaf 1\n0 NA 2 0 tree 0\n\
                     1 NA 0 9 sea 0\n4 NA 0 7 leaf 1\n4 NA 1 0 tree 1\n";
        let run = read_run(format!("{HEAD}{lines}").as_bytes()).unwrap();
        assert_eq!((run.corpus.num_documents(), run.corpus.num_tokens()), (3, 6));
        assert_eq!(run.corpus.tokens(2).unwrap(), [1, 0]);
        let topics: Vec<_> = (0..3).map(|d| run.assignments.document(d).to_vec()).collect();
        assert_eq!(topics, [vec![1, 0, 1], vec![0], vec![1, 1]]);
        let options = TrainOptions::new(2).alpha(run.model.alpha().clone()).beta(0.1);
        let init = Init { topics: Some(&run.assignments), ..Init::default() };
        let mut trainer = Trainer::with_init(&run.corpus, &options, init).unwrap();
        // The counts are those of the state, and stay right.
        let words = |model: &TopicModel| {
            let mut rows = Vec::new();
            model
                .counts()
                .unwrap()
                .visit_words(0..3, &mut |word, row| rows.push((word, row.to_vec())));
            rows
        };
        assert_eq!(words(&trainer.model()), words(&run.model));
        trainer.epoch();
        trainer.check().unwrap();
    }

    #[test]
    fn types_and_sources_may_contain_blanks() {
        let lines = "0 NA 0 0 new york 0\n0 NA 1 1 old york 1\n0 NA 2 2 green tea 1\n\
                     1 NA 0 2 green tea 1\n1 NA 1 0 new york 0\n";
        assert_eq!(words(lines).unwrap(), ["new york", "old york", "green tea"]);
        // By the position, then by the types of earlier lines.
        let lines = "0 a 7 3.txt 0 12 tree 1\n0 a 7 3.txt 1 4 7 8 1\n1 b 0 9 0 12 tree 1\n";
        assert_eq!(words(lines).unwrap(), ["tree", "7 8"]);
        assert_eq!(words("0  0 5 1999 1\n0  1 6 2001 0\n").unwrap(), ["1999", "2001"]);
    }

    #[test]
    fn types_and_indices_are_one_to_one() {
        for (lines, said) in [
            ("0 NA 0 0 a 1\n0 NA 1 0 b 1\n", "line 5: type 0 is \"b\", but on an earlier line"),
            ("0 NA 0 3 caf? 1\n0 NA 1 4 caf? 1\n", "line 5: types 3 and 4 are both \"caf?\""),
            ("0 b 0 9 0 12 tree 1\n", "line 4: the type may be \"0 12 tree\" or \"tree\""),
        ] {
            let error = words(lines).unwrap_err();
            assert!(error.contains(said), "{lines}: {error}");
        }
    }
}
