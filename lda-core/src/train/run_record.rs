//! State that a run carries from one epoch to the next beside its tokens: options, progress and priors. It is
//! the part that a [snapshot](super::snapshot) and a run over [blocks](super::blocks) write alike.

use std::io::{Read, Seek, Write};
use std::sync::Arc;

use crate::container::pairs::{self, ABOUT, OPTION, Pairs};
use crate::container::{FileError, Number, Reader, Source, Writer, checksum};
use crate::corpus::{Corpus, Vocabulary};
use crate::prior::{Alpha, check_beta};
use crate::train::options::{LevelOff, Resolved, TrainOptions};
use crate::train::progress::Progress;
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::ResumeError;

/// Prefix of the names of limits.
const LIMIT: &str = "limit.";

/// State of a run without that of its tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunRecord {
    pub resolved: Resolved,
    /// Options with the limits of the run; the other options are not used.
    pub limits: TrainOptions,
    pub epoch: u32,
    pub seconds: f64,
    pub evaluations: Vec<f64>,
    pub perplexities: Vec<f64>,
    /// Times that the hybrid's next epoch runs WarpLDA's two passes.
    pub rounds: u16,
    /// α and β of the last epoch.
    pub priors: (Alpha, f64),
    pub corpus: CorpusId,
    /// Hash of the names of words, if they have names.
    pub vocabulary: Option<u64>,
    pub pseudo: Pseudo,
}

impl RunRecord {
    /// The state of a run that has come so far.
    pub fn new(
        progress: &Progress,
        (rounds, priors): (u16, (Alpha, f64)),
        (corpus, vocabulary): (CorpusId, Option<&Vocabulary>),
        pseudo: &Pseudo,
    ) -> Self {
        Self {
            resolved: progress.resolved.clone(),
            limits: TrainOptions::default().limits_of(&progress.options),
            epoch: progress.epoch,
            seconds: progress.seconds,
            evaluations: progress.evaluations.clone(),
            perplexities: progress.perplexities.clone(),
            rounds,
            priors,
            corpus,
            vocabulary: vocabulary.map(hash_of_words),
            pseudo: pseudo.clone(),
        }
    }

    /// Checks that documents and options are those of this run.
    pub fn check(
        &self,
        given: CorpusId,
        vocabulary: Option<&Vocabulary>,
        resolved: &Resolved,
    ) -> Result<(), ResumeError> {
        if given != self.corpus {
            let (snapshot, given) = (self.corpus.to_string(), given.to_string());
            return Err(ResumeError::Corpus { snapshot, given });
        }
        // A corpus without names, or a snapshot of an earlier version, has nothing to compare.
        if self.vocabulary.zip(vocabulary).is_some_and(|(of, given)| of != hash_of_words(given)) {
            return Err(ResumeError::Vocabulary);
        }
        if let Some((option, snapshot, asked)) = self.resolved.difference(resolved) {
            return Err(ResumeError::Option { option, snapshot, asked });
        }
        let (alpha, beta) = &self.priors;
        alpha
            .check(resolved.topics as usize)
            .and_then(|()| check_beta(*beta, given.words as usize))
            .map_err(|error| ResumeError::Snapshot { reason: error.to_string() })
    }

    /// Restores the progress of the run.
    pub fn restore(&self, progress: &mut Progress) {
        progress.seconds = self.seconds;
        progress.evaluations.clone_from(&self.evaluations);
        progress.perplexities.clone_from(&self.perplexities);
    }

    /// Number of sections that [`write`](Self::write) appends.
    pub fn num_sections(&self) -> usize {
        let optional = [!self.evaluations.is_empty(), !self.perplexities.is_empty()];
        let pseudo = if self.pseudo.is_some() { 3 } else { 0 };
        3 + pseudo + optional.into_iter().map(usize::from).sum::<usize>()
    }

    /// Appends the sections.
    pub fn write<W: Write + Seek>(&self, file: &mut Writer<W>) -> std::io::Result<()> {
        file.section(ABOUT, pairs::to_bytes(self.about().iter().map(|(n, v)| (&**n, &**v))))?;
        file.section("alpha", self.resolved.alpha.as_slice().iter().copied())?;
        file.section("alpha-now", self.priors.0.as_slice().iter().copied())?;
        if !self.evaluations.is_empty() {
            file.section("evaluations", self.evaluations.iter().copied())?;
        }
        if !self.perplexities.is_empty() {
            file.section("perplexities", self.perplexities.iter().copied())?;
        }
        if let Some(pseudo) = &self.pseudo {
            file.section("pseudo-offsets", pseudo.offsets.iter().copied())?;
            file.section("pseudo-topics", pseudo.entries.iter().map(|entry| entry.0))?;
            file.section("pseudo-counts", pseudo.entries.iter().map(|entry| entry.1))?;
        }
        Ok(())
    }

    fn about(&self) -> Vec<(String, String)> {
        let CorpusId { documents, words, tokens, fingerprint } = self.corpus;
        let options = self.resolved.to_pairs();
        let options = options.into_iter().map(|(name, value)| (format!("{OPTION}{name}"), value));
        let own = [
            ("epoch", self.epoch.to_string()),
            ("seconds", self.seconds.to_string()),
            ("rounds", self.rounds.to_string()),
            ("beta-now", self.priors.1.to_string()),
            ("documents", documents.to_string()),
            ("words", words.to_string()),
            ("tokens", tokens.to_string()),
            ("corpus", format!("{fingerprint:016x}")),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        let words = self.vocabulary.map(|hash| ("vocabulary".to_owned(), format!("{hash:016x}")));
        own.chain(words).chain(limit_pairs(&self.limits)).chain(options).collect()
    }

    /// Reads the sections.
    pub fn read<R: Read + Seek>(file: &mut Reader<R>) -> Result<Self, FileError> {
        let about = Pairs::parse(&file.numbers::<u8>(ABOUT)?)?;
        let alpha = file.alpha("alpha")?;
        let resolved = Resolved::from_pairs(&about.under(OPTION), alpha)?;
        let corpus = CorpusId {
            documents: about.read("documents")?,
            words: about.read("words")?,
            tokens: about.read("tokens")?,
            fingerprint: about.required("corpus", |hex| u64::from_str_radix(hex, 16).ok())?,
        };
        Ok(Self {
            epoch: about.read("epoch")?,
            seconds: about.required("seconds", |text| {
                text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
            })?,
            rounds: about
                .required("rounds", |text| text.parse().ok().filter(|&rounds| rounds > 0))?,
            evaluations: optional(file, "evaluations")?,
            perplexities: optional(file, "perplexities")?,
            priors: (file.alpha("alpha-now")?, about.read("beta-now")?),
            pseudo: read_pseudo(file, &resolved)?,
            vocabulary: about.parsed("vocabulary", |hex| u64::from_str_radix(hex, 16).ok())?,
            limits: read_limits(&about.under(LIMIT))?,
            resolved,
            corpus,
        })
    }
}

/// Hash of the names of words, in order.
pub(super) fn hash_of_words(vocabulary: &Vocabulary) -> u64 {
    let mut names = Vec::new();
    for name in vocabulary.iter() {
        names.extend_from_slice(&(name.len() as u32).to_le_bytes());
        names.extend_from_slice(name.as_bytes());
    }
    checksum(&names)
}

/// Identifies the corpus of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CorpusId {
    pub documents: u64,
    pub words: u64,
    pub tokens: u64,
    pub fingerprint: u64,
}

impl CorpusId {
    pub fn of(corpus: &Corpus) -> Self {
        Self {
            documents: corpus.num_documents() as u64,
            words: corpus.num_words() as u64,
            tokens: corpus.num_tokens(),
            fingerprint: corpus.fingerprint(),
        }
    }
}

impl std::fmt::Display for CorpusId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { documents, words, tokens, fingerprint } = self;
        write!(f, "{documents} documents, {words} words, {tokens} tokens, hash {fingerprint:016x}")
    }
}

/// The limits of a run as pairs.
fn limit_pairs(options: &TrainOptions) -> impl Iterator<Item = (String, String)> {
    let TrainOptions { epochs, seconds, level_off, evaluate_every, .. } = *options;
    let window = level_off.map(|rule| rule.window.to_string());
    let tolerance = level_off.map(|rule| rule.tolerance.to_string());
    let pairs = [
        ("epochs", epochs.map(|epochs| epochs.to_string())),
        ("seconds", seconds.map(|seconds| seconds.to_string())),
        ("level-off-window", window),
        ("level-off", tolerance),
        ("evaluate-every", Some(evaluate_every.to_string())),
    ];
    let named = |(name, value): (&str, Option<String>)| Some((format!("{LIMIT}{name}"), value?));
    pairs.into_iter().filter_map(named)
}

/// Reads the limits of a run; a snapshot of an earlier version has none.
fn read_limits(pairs: &Pairs) -> Result<TrainOptions, FileError> {
    let positive = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    let rule = LevelOff::default();
    let level_off = match pairs.parsed("level-off", positive)? {
        Some(tolerance) => {
            let window = pairs.read_if("level-off-window")?.unwrap_or(rule.window);
            Some(LevelOff { window, tolerance })
        }
        None => None,
    };
    let default = TrainOptions::default();
    Ok(TrainOptions {
        epochs: pairs.read_if("epochs")?,
        seconds: pairs.parsed("seconds", positive)?,
        level_off,
        evaluate_every: pairs.read_if("evaluate-every")?.unwrap_or(default.evaluate_every),
        ..default
    })
}

fn read_pseudo<R: Read + Seek>(
    file: &mut Reader<R>,
    resolved: &Resolved,
) -> Result<Pseudo, FileError> {
    if !file.has("pseudo-offsets") {
        return Ok(None);
    }
    let offsets = file.numbers::<u64>("pseudo-offsets")?;
    let topics = file.numbers::<u32>("pseudo-topics")?;
    let counts = file.numbers::<u32>("pseudo-counts")?;
    let malformed = |reason: &str| FileError::malformed("pseudo-offsets", reason.to_owned());
    let whole = offsets.is_sorted()
        && offsets.first() == Some(&0)
        && offsets.last() == Some(&(topics.len() as u64))
        && topics.len() == counts.len();
    let words = offsets.len().checked_sub(1).filter(|_| whole);
    let words = words.ok_or_else(|| malformed("they do not cut the entries into words"))?;
    let word = |at: usize| (offsets.partition_point(|&start| start <= at as u64) - 1) as u32;
    let entries = topics.iter().zip(&counts).enumerate();
    let entries = entries.map(|(at, (&topic, &count))| (word(at), topic, count));
    let pseudo = PseudoCounts::new(words, resolved.topics, entries)
        .map_err(|error| FileError::malformed("pseudo-counts", error.to_string()))?;
    if pseudo.entries.len() != topics.len() {
        return Err(malformed("a word has a topic twice, or a count of 0"));
    }
    Ok(Some(Arc::new(pseudo)))
}

/// The numbers of a section; none if it is not there.
pub(super) fn optional<R: Read + Seek, N: Number>(
    file: &mut Reader<R>,
    name: &str,
) -> Result<Vec<N>, FileError> {
    if file.has(name) { file.numbers(name) } else { Ok(Vec::new()) }
}
