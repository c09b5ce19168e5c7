//! MALLET state files: the topic of every token.
//!
//! ```text
//! #doc source pos typeindex type topic
//! #alpha : 0.5 0.25 …                    one per topic
//! #beta : 0.01
//! 0 file:/a.txt 0 17 tree 3
//! ```
//!
//! Words get ids in order of first occurrence, because MALLET's own numbers have gaps.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hashbrown::HashMap;

use super::lines::Lines;
use super::{InteropError, MAX_TOPICS};
use crate::corpus::Vocabulary;
use crate::model::{CountsBuilder, Provenance, TopicModel};
use crate::prior::{Alpha, check_beta};

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
    let mut vocabulary = Vocabulary::new();
    let mut counts: HashMap<(u32, u32), u32> = HashMap::new();
    let (mut tokens, mut documents) = (0u64, 0u64);
    let mut last = None;
    loop {
        let number = lines.number() + 1;
        let wrong = |reason: String| InteropError::Line { line: number, reason };
        let Some(line) = lines.next()? else { break };
        // Split from the right, because only the source may contain blanks.
        let mut fields = line.rsplitn(4, ' ');
        let (topic, word, index) = (fields.next(), fields.next(), fields.next());
        let (Some(topic), Some(word), Some(_), Some(before)) = (topic, word, index, fields.next())
        else {
            return Err(wrong("expected: doc source pos typeindex type topic".to_owned()));
        };
        let topic: u32 =
            topic.parse().ok().filter(|&topic| (topic as usize) < topics).ok_or_else(|| {
                wrong(format!("topic {topic:?} is not an integer below {topics}"))
            })?;
        let word = vocabulary.intern(word).map_err(|error| wrong(error.to_string()))?;
        let count = counts.entry((word, topic)).or_default();
        *count = count.checked_add(1).ok_or_else(|| wrong("too many tokens".to_owned()))?;
        tokens += 1;
        let document = before.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        documents += u64::from(document != last || tokens == 1);
        last = document;
    }
    if tokens == 0 {
        return Err(InteropError::Content("the state has no tokens".to_owned()));
    }
    check_beta(beta, vocabulary.len()).map_err(|error| InteropError::Content(error.to_string()))?;
    let counts = by_word(counts, topics, vocabulary.len() as u32);
    let provenance = Provenance {
        documents: Some(documents),
        tokens: Some(tokens),
        notes: vec![("program".to_owned(), "MALLET".to_owned())],
        ..Provenance::default()
    };
    Ok(TopicModel::of_counts(counts.finish(beta), alpha)
        .with_vocabulary(Some(vocabulary))
        .with_provenance(provenance))
}

/// The counts of (word, topic), in order.
fn by_word(counts: HashMap<(u32, u32), u32>, topics: usize, words: u32) -> CountsBuilder {
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
