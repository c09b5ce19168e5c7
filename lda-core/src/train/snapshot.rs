//! Snapshots: the state of a run between two epochs, from which it can resume.
//!
//! A snapshot holds the state that a run carries from one epoch to the next: the topic of every
//! token and WarpLDA's pending proposals; which count rows are lists, and the order of their
//! entries, which decides the result of a draw; how settled tokens are, if converged ones are
//! excluded; the keys of random streams (seed, epoch); the number of steps that the hybrid has
//! adapted; and the evaluations that decide when to stop. Counts are not stored, since they follow
//! from the topics. A resumed run gives the same bits as one that was never interrupted, at any
//! thread count, on any machine.
//!
//! # The file
//! The sections of a [snapshot file](crate::container), in this order; those marked * are left out
//! if they are empty.
//!
//! | section | element | what |
//! |---|---|---|
//! | `about` | u8 | pairs: `option.NAME` for every resolved option; `epoch`, `seconds`, `rounds` (the hybrid's passes in the next epoch), `beta-now` (β of the last epoch); `limit.epochs`*, `limit.seconds`*, `limit.level-off-window`*, `limit.level-off`* and `limit.evaluate-every`; `vocabulary`* (hash of the names of words, hexadecimal); `documents`, `words`, `tokens`, `corpus` (fingerprint, hexadecimal) |
//! | `alpha` | f64 | α, one or K |
//! | `alpha-now` | f64 | α of the last epoch, one or K: differs from `alpha` if it is learnt or follows topic sizes |
//! | `evaluations`* | f64 | log joint per token at each evaluation since the warm-up |
//! | `perplexities`* | f64 | perplexity of held-out documents at each |
//! | `topics` | u16, u32 | topic of each token, documents in order, words ascending; u32 above 65,536 topics |
//! | `proposals`* | as topics | M pending proposals of each token that carries any |
//! | `ages`* | u8 | how settled each token is |
//! | `doc-lens`* | u32 | per document: 0 if its counts are dense, else the number of topics that they list plus one |
//! | `doc-topics`* | as topics | topics of those lists, in their order |
//! | `word-lens`*, `word-topics`* | | the same by word |
//! | `pseudo-offsets`* | u64 | V + 1: pseudo-counts of word w are entries `pseudo-offsets[w]` to `pseudo-offsets[w + 1]` of |
//! | `pseudo-topics`*, `pseudo-counts`* | u32 | topic of each entry, ascending in a word, and its count, none 0 |
//!
//! 2 bytes per token, and 2 for each non-zero of the counts that a sampler keeps as lists.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::container::pairs::{self, ABOUT, OPTION, Pairs};
use crate::container::{FileError, Kind, Number, Reader, Source, Writer, checksum, replace};
use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::prior::Alpha;
use crate::train::options::{LevelOff, OptionsError, Resolved, TrainOptions};
use crate::train::resume_state::{Lists, ResumeState};
use crate::train::seed_counts::{Pseudo, PseudoCounts};

/// Prefix of the names of limits.
const LIMIT: &str = "limit.";

/// The state of a run between two epochs. The [module](self) lists its contents.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::train::{TrainOptions, Snapshot, Trainer};
///
/// let corpus = Corpus::from_words([vec!["tree", "leaf", "tree"], vec!["sea", "wave", "sea"]])?;
/// let options = TrainOptions::new(3).seed(7);
/// let mut trainer = Trainer::new(&corpus, &options)?;
/// for _ in 0..5 {
///     trainer.epoch();
/// }
/// let mut bytes = std::io::Cursor::new(Vec::new());
/// trainer.snapshot().write_to(&mut bytes)?;
/// trainer.epoch();
///
/// bytes.set_position(0);
/// let snapshot = Snapshot::read_from(bytes)?;
/// let mut again = Trainer::resume(&corpus, &snapshot, &snapshot.options())?;
/// again.epoch();
/// assert_eq!(again.epochs(), 6);
/// assert_eq!(again.assignments(), trainer.assignments());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub(super) resolved: Resolved,
    /// Options with the limits of the run; the other options are not used.
    pub(super) limits: TrainOptions,
    pub(super) epoch: u32,
    pub(super) seconds: f64,
    pub(super) evaluations: Vec<f64>,
    pub(super) perplexities: Vec<f64>,
    pub(super) rounds: u16,
    pub(super) alpha_now: Alpha,
    pub(super) beta_now: f64,
    pub(super) corpus: CorpusId,
    /// Hash of the names of words, if they have names.
    pub(super) vocabulary: Option<u64>,
    pub(super) pseudo: Pseudo,
    pub(super) carried: Width,
}

/// Hash of the names of words, in order; `None` if they have none.
pub(super) fn hash_of_words(corpus: &Corpus) -> Option<u64> {
    let mut names = Vec::new();
    for name in corpus.vocabulary()?.iter() {
        names.extend_from_slice(&(name.len() as u32).to_le_bytes());
        names.extend_from_slice(name.as_bytes());
    }
    Some(checksum(&names))
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

/// Resume state, by the width of a topic.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Width {
    Narrow(ResumeState<u16>),
    Wide(ResumeState<u32>),
}

/// Why a run cannot be resumed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The snapshot belongs to another corpus.
    #[error(
        "the snapshot is of another corpus ({snapshot}) than the one given ({given}): give the corpus of the \
         run"
    )]
    Corpus {
        /// The corpus of the snapshot.
        snapshot: String,
        /// The corpus given.
        given: String,
    },
    /// The documents are the same but for the names of words.
    #[error(
        "the words of the documents have other names than those of the run: give its documents and \
         vocabulary, or the topics would have wrong words"
    )]
    Vocabulary,
    /// An option that affects draws was changed.
    #[error(
        "the run has {option} {snapshot}, and {asked} was asked for: leave {option} out, or begin a \
         new run"
    )]
    Option {
        /// Its name.
        option: &'static str,
        /// Its value in the snapshot.
        snapshot: String,
        /// Its value in the options.
        asked: String,
    },
    /// The options are invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The snapshot contradicts itself.
    #[error("the snapshot is inconsistent: {reason}; resume from an earlier one")]
    Snapshot {
        /// The inconsistency.
        reason: String,
    },
}

impl Snapshot {
    /// Epochs sampled so far.
    pub fn epochs(&self) -> u32 {
        self.epoch
    }

    /// Seconds of sampling so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The options of the run, as resolved.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Pseudo-counts that the run started with.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.pseudo.as_deref()
    }

    /// Options to [resume](crate::train::Trainer::resume) the run with: those that affect draws and
    /// those that decide when to stop are the run's, the others are the defaults of
    /// [`TrainOptions::default`].
    pub fn options(&self) -> TrainOptions {
        TrainOptions::from(&self.resolved).limits_of(&self.limits)
    }

    /// Heap memory in bytes; pseudo-counts are shared with the run and not included.
    pub fn memory(&self) -> usize {
        match &self.carried {
            Width::Narrow(carried) => carried.memory(),
            Width::Wide(carried) => carried.memory(),
        }
    }

    /// Writes the snapshot to `path`, which it [replaces](replace) atomically.
    ///
    /// # Errors
    /// [`FileError`] of the system.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        replace(path.as_ref(), |file| self.write_to(file).map_err(FileError::from))
    }

    /// Writes the snapshot from the current position on. The file is valid only when it is
    /// complete.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to<W: Write + Seek>(&self, out: W) -> std::io::Result<()> {
        match &self.carried {
            Width::Narrow(carried) => self.write(out, carried),
            Width::Wide(carried) => self.write(out, carried),
        }
    }

    fn write<W, T>(&self, out: W, carried: &ResumeState<T>) -> std::io::Result<()>
    where
        W: Write + Seek,
        T: Number + TopicIndex,
    {
        let ResumeState { topics, proposals, ages, documents, words } = carried;
        let parts =
            [proposals, &documents.topics, &words.topics].map(|part| usize::from(!part.is_empty()));
        let lens = [&documents.lens, &words.lens].map(|part| usize::from(!part.is_empty()));
        let ages_too = usize::from(!ages.is_empty())
            + usize::from(!self.evaluations.is_empty())
            + usize::from(!self.perplexities.is_empty());
        let pseudo = self.pseudo.as_ref().map_or(0, |_| 3);
        let sections =
            4 + pseudo + parts.iter().sum::<usize>() + lens.iter().sum::<usize>() + ages_too;
        let mut file = Writer::new(out, Kind::Snapshot, sections)?;
        file.section(ABOUT, pairs::to_bytes(self.about().iter().map(|(n, v)| (&**n, &**v))))?;
        file.section("alpha", self.resolved.alpha.as_slice().iter().copied())?;
        file.section("alpha-now", self.alpha_now.as_slice().iter().copied())?;
        if !self.evaluations.is_empty() {
            file.section("evaluations", self.evaluations.iter().copied())?;
        }
        if !self.perplexities.is_empty() {
            file.section("perplexities", self.perplexities.iter().copied())?;
        }
        file.section("topics", topics.iter().copied())?;
        if !proposals.is_empty() {
            file.section("proposals", proposals.iter().copied())?;
        }
        if !ages.is_empty() {
            file.section("ages", ages.iter().copied())?;
        }
        for (lists, lens, topics) in
            [(documents, "doc-lens", "doc-topics"), (words, "word-lens", "word-topics")]
        {
            if !lists.lens.is_empty() {
                file.section(lens, lists.lens.iter().copied())?;
            }
            if !lists.topics.is_empty() {
                file.section(topics, lists.topics.iter().copied())?;
            }
        }
        if let Some(pseudo) = &self.pseudo {
            file.section("pseudo-offsets", pseudo.offsets.iter().copied())?;
            file.section("pseudo-topics", pseudo.entries.iter().map(|entry| entry.0))?;
            file.section("pseudo-counts", pseudo.entries.iter().map(|entry| entry.1))?;
        }
        file.finish()?.flush()
    }

    fn about(&self) -> Vec<(String, String)> {
        let CorpusId { documents, words, tokens, fingerprint } = self.corpus;
        let options = self.resolved.to_pairs();
        let options = options.into_iter().map(|(name, value)| (format!("{OPTION}{name}"), value));
        let own = [
            ("epoch", self.epoch.to_string()),
            ("seconds", self.seconds.to_string()),
            ("rounds", self.rounds.to_string()),
            ("beta-now", self.beta_now.to_string()),
            ("documents", documents.to_string()),
            ("words", words.to_string()),
            ("tokens", tokens.to_string()),
            ("corpus", format!("{fingerprint:016x}")),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        let words = self.vocabulary.map(|hash| ("vocabulary".to_owned(), format!("{hash:016x}")));
        own.chain(words).chain(limit_pairs(&self.limits)).chain(options).collect()
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let open = || Self::read_from(BufReader::new(File::open(path)?));
        open().map_err(|error: FileError| error.at(path))
    }

    /// Reads a snapshot, which must be all of `from`. Memory is bounded by the length of `from`.
    ///
    /// # Errors
    /// [`FileError`] describes the problem.
    pub fn read_from<R: Read + Seek>(from: R) -> Result<Self, FileError> {
        let mut file = Reader::open(from, Kind::Snapshot)?;
        let about = Pairs::parse(&file.numbers::<u8>(ABOUT)?)?;
        let alpha = file.alpha("alpha")?;
        let resolved = Resolved::from_pairs(&about.under(OPTION), alpha)?;
        let corpus = CorpusId {
            documents: about.read("documents")?,
            words: about.read("words")?,
            tokens: about.read("tokens")?,
            fingerprint: about.required("corpus", |hex| u64::from_str_radix(hex, 16).ok())?,
        };
        let carried = if resolved.narrow {
            Width::Narrow(read_carried(&mut file, &resolved, corpus)?)
        } else {
            Width::Wide(read_carried(&mut file, &resolved, corpus)?)
        };
        Ok(Self {
            epoch: about.read("epoch")?,
            seconds: about.required("seconds", |text| {
                text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
            })?,
            rounds: about
                .required("rounds", |text| text.parse().ok().filter(|&rounds| rounds > 0))?,
            evaluations: optional(&mut file, "evaluations")?,
            perplexities: optional(&mut file, "perplexities")?,
            alpha_now: file.alpha("alpha-now")?,
            beta_now: about.read("beta-now")?,
            pseudo: read_pseudo(&mut file, &resolved)?,
            vocabulary: about.parsed("vocabulary", |hex| u64::from_str_radix(hex, 16).ok())?,
            limits: read_limits(&about.under(LIMIT))?,
            resolved,
            corpus,
            carried,
        })
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

fn optional<R: Read + Seek, N: Number>(
    file: &mut Reader<R>,
    name: &str,
) -> Result<Vec<N>, FileError> {
    if file.has(name) { file.numbers(name) } else { Ok(Vec::new()) }
}

fn read_carried<R, T>(
    file: &mut Reader<R>,
    resolved: &Resolved,
    corpus: CorpusId,
) -> Result<ResumeState<T>, FileError>
where
    R: Read + Seek,
    T: Number + TopicIndex,
{
    let topics = file.numbers::<T>("topics")?;
    if topics.len() as u64 != corpus.tokens {
        let reason = format!("it has {} values for {} tokens", topics.len(), corpus.tokens);
        return Err(FileError::malformed("topics", reason));
    }
    let carried = ResumeState {
        proposals: optional(file, "proposals")?,
        ages: optional(file, "ages")?,
        documents: Lists {
            lens: optional(file, "doc-lens")?,
            topics: optional(file, "doc-topics")?,
        },
        words: Lists { lens: optional(file, "word-lens")?, topics: optional(file, "word-topics")? },
        topics,
    };
    for (name, topics) in [
        ("topics", &carried.topics),
        ("proposals", &carried.proposals),
        ("doc-topics", &carried.documents.topics),
        ("word-topics", &carried.words.topics),
    ] {
        if let Some(topic) = topics.iter().find(|topic| topic.get() >= resolved.topics) {
            let reason = format!("topic {} of a run with {}", topic.get(), resolved.topics);
            return Err(FileError::malformed(name, reason));
        }
    }
    Ok(carried)
}

impl<T: TopicIndex> ResumeState<T> {
    fn memory(&self) -> usize {
        let topics = [&self.topics, &self.proposals, &self.documents.topics, &self.words.topics];
        let lens = [&self.documents.lens, &self.words.lens];
        topics.iter().map(|part| part.capacity() * size_of::<T>()).sum::<usize>()
            + lens.iter().map(|part| part.capacity() * 4).sum::<usize>()
            + self.ages.capacity()
    }
}
