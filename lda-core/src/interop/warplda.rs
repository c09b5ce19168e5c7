//! WarpLDA model files (thu-ml/warplda): topic counts of every word.
//!
//! ```text
//! V K α β                        α of each topic
//! n<tab>topic:count topic:count …       one line per word, n pairs
//! ```

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::lines::Lines;
use super::{InteropError, MAX_TOPICS};
use crate::model::{CountsBuilder, Provenance, TopicModel};
use crate::prior::{Alpha, check_beta};

/// Reads the model file at `path`. The names of words are in another file; attach them with
/// [`TopicModel::with_vocabulary`].
///
/// # Errors
/// [`InteropError`] names the file, the line and the problem.
pub fn load_model(path: impl AsRef<Path>) -> Result<TopicModel, InteropError> {
    let path = path.as_ref();
    let open = || read_model(File::open(path)?);
    open().map_err(|error| error.at(path))
}

/// Reads a model file from a stream, which may be compressed.
///
/// ```
/// use lda_core::interop::warplda::read_model;
///
/// let model = read_model("3 2 0.5 0.01\n2\t1:4 0:1 \n0\t\n1\t0:2 \n".as_bytes())?;
/// assert_eq!(model.counts().unwrap().totals(), [3, 4]);
/// assert!(model.phi(1, 0) > 0.9);
/// # Ok::<(), lda_core::interop::InteropError>(())
/// ```
///
/// # Errors
/// [`InteropError`] names the line and the problem.
pub fn read_model(reader: impl Read) -> Result<TopicModel, InteropError> {
    let mut lines = Lines::new(reader)?;
    let Head { words, topics, alpha, beta } = Head::read(&mut lines)?;
    let mut builder = CountsBuilder::new(topics as usize);
    let mut entries: Vec<(u32, u32)> = Vec::new();
    let mut tokens = 0u64;
    for word in 0..words {
        let number = lines.number() + 1;
        let wrong = |reason: String| InteropError::Line { line: number, reason };
        let Some(line) = lines.next()? else {
            return Err(InteropError::Content(format!("it ends after {word} of {words} words")));
        };
        let mut fields = line.split_whitespace();
        let stated = fields.next().and_then(|field| field.parse::<usize>().ok());
        entries.clear();
        for field in fields {
            let pair = field.split_once(':').and_then(|(topic, count)| {
                Some((topic.parse().ok()?, count.parse().ok().filter(|&count: &u32| count > 0)?))
            });
            let pair = pair.filter(|&(topic, _)| topic < topics);
            entries.push(pair.ok_or_else(|| {
                wrong(format!("{field:?} is not topic:count with a topic from 0 to {}", topics - 1))
            })?);
        }
        if stated != Some(entries.len()) {
            return Err(wrong(format!(
                "it has {} pairs, but states another number",
                entries.len()
            )));
        }
        entries.sort_unstable();
        if let Some(twice) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong(format!("topic {} occurs twice", twice[0].0)));
        }
        for &(topic, count) in &entries {
            builder.push(topic, count);
            tokens += u64::from(count);
        }
        builder.end_word();
    }
    if lines.next()?.is_some_and(|line| !line.trim().is_empty()) {
        return Err(lines.wrong(format!("lines follow the last of {words} words")));
    }
    let provenance = Provenance {
        tokens: Some(tokens),
        notes: vec![("program".to_owned(), "WarpLDA".to_owned())],
        ..Provenance::default()
    };
    Ok(TopicModel::of_counts(builder.finish(beta), alpha).with_provenance(provenance))
}

/// The first line: V, K, α and β.
struct Head {
    words: u32,
    topics: u32,
    alpha: Alpha,
    beta: f64,
}

impl Head {
    fn read(lines: &mut Lines<'_>) -> Result<Self, InteropError> {
        let fields: Vec<f64> = lines
            .next()?
            .unwrap_or_default()
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let [words, topics, alpha, beta] = fields[..] else {
            let reason = "expected numbers of words and topics, alpha and beta: give the file that \
                          --dumpmodel wrote";
            return Err(lines.wrong(reason.to_owned()));
        };
        let whole = |number: f64, most: u32| {
            Some(number as u32).filter(|&n| f64::from(n) == number && (1..=most).contains(&n))
        };
        let (Some(words), Some(topics)) = (whole(words, u32::MAX), whole(topics, MAX_TOPICS))
        else {
            let reason =
                format!("{words} words and {topics} topics: expected 1 to {MAX_TOPICS} topics");
            return Err(lines.wrong(reason));
        };
        let alpha = Alpha::Symmetric(alpha);
        alpha.check(topics as usize).map_err(|error| lines.wrong(error.to_string()))?;
        check_beta(beta, words as usize).map_err(|error| lines.wrong(error.to_string()))?;
        Ok(Self { words, topics, alpha, beta })
    }
}
