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

use thiserror::Error;

use crate::container::{FileError, Kind, Number, Reader, Writer, replace};
use crate::counts::TopicIndex;
use crate::train::options::{OptionsError, Resolved, TrainOptions};
use crate::train::resume_state::{Lists, ResumeState};
use crate::train::run_record::{RunRecord, optional};
use crate::train::seed_counts::PseudoCounts;
use crate::train::token_state::TokenState;

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
    pub(super) run: RunRecord,
    pub(super) carried: Width,
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
        self.run.epoch
    }

    /// Seconds of sampling so far.
    pub fn seconds(&self) -> f64 {
        self.run.seconds
    }

    /// The options of the run, as resolved.
    pub fn resolved(&self) -> &Resolved {
        &self.run.resolved
    }

    /// Pseudo-counts that the run started with.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.run.pseudo.as_deref()
    }

    /// Options to [resume](crate::train::Trainer::resume) the run with: those that affect draws and
    /// those that decide when to stop are the run's, the others are the defaults of
    /// [`TrainOptions::default`].
    pub fn options(&self) -> TrainOptions {
        TrainOptions::from(&self.run.resolved).limits_of(&self.run.limits)
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
        let ResumeState { tokens, documents, words } = carried;
        let TokenState { topics, proposals, ages } = tokens;
        let parts =
            [proposals, &documents.topics, &words.topics].map(|part| usize::from(!part.is_empty()));
        let lens = [&documents.lens, &words.lens].map(|part| usize::from(!part.is_empty()));
        let own = 1 + parts.iter().sum::<usize>() + lens.iter().sum::<usize>();
        let sections = self.run.num_sections() + own + usize::from(!ages.is_empty());
        let mut file = Writer::new(out, Kind::Snapshot, sections)?;
        self.run.write(&mut file)?;
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
        file.finish()?.flush()
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
        let run = RunRecord::read(&mut file)?;
        let carried = if run.resolved.narrow {
            Width::Narrow(read_carried(&mut file, &run)?)
        } else {
            Width::Wide(read_carried(&mut file, &run)?)
        };
        Ok(Self { run, carried })
    }
}

fn read_carried<R, T>(file: &mut Reader<R>, run: &RunRecord) -> Result<ResumeState<T>, FileError>
where
    R: Read + Seek,
    T: Number + TopicIndex,
{
    let RunRecord { resolved, corpus, .. } = run;
    let topics = file.numbers::<T>("topics")?;
    if topics.len() as u64 != corpus.tokens {
        let reason = format!("it has {} values for {} tokens", topics.len(), corpus.tokens);
        return Err(FileError::malformed("topics", reason));
    }
    let proposals = optional(file, "proposals")?;
    let carried = ResumeState {
        tokens: TokenState { topics, proposals, ages: optional(file, "ages")? },
        documents: Lists {
            lens: optional(file, "doc-lens")?,
            topics: optional(file, "doc-topics")?,
        },
        words: Lists { lens: optional(file, "word-lens")?, topics: optional(file, "word-topics")? },
    };
    for (name, topics) in [
        ("topics", &carried.tokens.topics),
        ("proposals", &carried.tokens.proposals),
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
        let TokenState { topics, proposals, ages } = &self.tokens;
        let topics = [topics, proposals, &self.documents.topics, &self.words.topics];
        let lens = [&self.documents.lens, &self.words.lens];
        topics.iter().map(|part| part.capacity() * size_of::<T>()).sum::<usize>()
            + lens.iter().map(|part| part.capacity() * 4).sum::<usize>()
            + ages.capacity()
    }
}
