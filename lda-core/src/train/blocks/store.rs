//! Files of a run over blocks: the topics of each block after an epoch, and the record of the last epoch that
//! is complete.
//!
//! ```text
//! run                          options, progress and priors of the run after its last epoch, and the list rows
//!                              of C_w. It is replaced after the topics of all blocks are written
//! layout-00002                 order of the tokens of block 2 ([`layout_file`](super::layout_file))
//! topics-0000000007-00002      of the tokens of block 2 after epoch 7, in the order of their layout: section `tokens-0`
//!                              has the topic of each, followed by its pending proposals, and `ages-0` how settled
//!                              it is, if converged tokens are excluded; `tokens-1` and `ages-1` are of the hybrid's
//!                              long documents
//! ```
//!
//! The layout follows from the options and the documents. [`LAYOUT`] is a part of the files, and changes with it.
//!
//! The topics of the epoch before stay until the record is replaced, so that a run which is killed at any time
//! goes on from a complete epoch.

use std::fs::{self, File};
use std::io::{BufReader, Seek, Write};
use std::path::{Path, PathBuf};

use crate::container::pairs::{self, ABOUT, Pairs};
use crate::container::{FileError, FileProblem, Kind, Number, Reader, Source, Writer, replace};
use crate::corpus::blocks::Part;
use crate::counts::TopicIndex;
use crate::train::exclusion::TokenAge;
use crate::train::resume_state::Lists;
use crate::train::run_record::{RunRecord, optional};
use crate::train::state::TokenSet;

const RUN: &str = "run";
const PREFIX: &str = "topics-";
/// Version of the order of tokens ([`TokenLayout`](crate::layout::TokenLayout)).
pub(super) const LAYOUT: u32 = 1;

/// Directory of a run.
#[derive(Debug)]
pub(super) struct TopicStore {
    directory: PathBuf,
}

impl TopicStore {
    /// A directory for a new run, which is created if it is missing.
    ///
    /// # Errors
    /// [`FileError`], also if it has a run.
    pub fn create(directory: &Path) -> Result<Self, FileError> {
        let named = |error: std::io::Error| FileError::from(error).at(directory);
        fs::create_dir_all(directory).map_err(named)?;
        if directory.join(RUN).try_exists().map_err(named)? {
            return Err(FileError::from(FileProblem::Occupied).at(directory));
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// True if the directory has the record of a run, whether or not it can be read.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(RUN).exists()
    }

    /// The directory of a run that goes on.
    pub fn open(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    fn topics(&self, epoch: u32, block: usize) -> PathBuf {
        self.directory.join(format!("{PREFIX}{epoch:010}-{block:05}"))
    }

    /// File of the layout of a block.
    pub fn layout(&self, block: usize) -> PathBuf {
        self.directory.join(format!("layout-{block:05}"))
    }

    /// Writes the state of a block's tokens after an epoch.
    pub fn write<T: Number + TopicIndex>(
        &self,
        (epoch, block): (u32, usize),
        part: &Part,
        sets: &[TokenSet<T>],
    ) -> Result<(), FileError> {
        replace(&self.topics(epoch, block), |file| {
            Ok(write_tokens(file, (epoch, block), part, sets)?)
        })
    }

    /// Reads the state of a block's tokens after an epoch of a run with `topics` topics into `sets`, which have
    /// its layout.
    pub fn read<T: Number + TopicIndex>(
        &self,
        (epoch, block): (u32, usize),
        part: &Part,
        topics: u32,
        sets: &mut [TokenSet<T>],
    ) -> Result<(), FileError> {
        let path = self.topics(epoch, block);
        let mut read = || {
            let mut file = Reader::open(BufReader::new(File::open(&path)?), Kind::Topics)?;
            let about = Pairs::parse(&file.numbers::<u8>(ABOUT)?)?;
            let found = (about.read::<u32>("epoch")?, about.read::<usize>("block")?);
            let hash = about.required("documents", |hex| u64::from_str_radix(hex, 16).ok())?;
            if found != (epoch, block) || hash != part.fingerprint {
                let why =
                    "it has the topics of another block: resume with the documents of the run";
                return Err(FileError::malformed(ABOUT, why));
            }
            if about.read::<u32>("layout")? != LAYOUT {
                let why = "its tokens are in the order of another version: begin a new run";
                return Err(FileError::malformed(ABOUT, why));
            }
            for (number, set) in sets.iter_mut().enumerate() {
                let name = format!("tokens-{number}");
                set.tokens = file.exactly(&name, set.tokens.len() as u64)?.into_vec();
                check(&name, &set.tokens, topics)?;
                if let Some(ages) = &mut set.ages {
                    let found = file.exactly::<u8>(&format!("ages-{number}"), ages.len() as u64)?;
                    *ages = found.iter().map(|&byte| TokenAge::from_byte(byte)).collect();
                }
            }
            Ok(())
        };
        read().map_err(|error: FileError| error.at(&path))
    }

    /// Records that an epoch is complete, and removes the topics of the others.
    pub fn keep<T: Number + TopicIndex>(
        &self,
        run: &RunRecord,
        words: &Lists<T>,
    ) -> Result<(), FileError> {
        replace(&self.directory.join(RUN), |file| Ok(write_run(file, run, words)?))?;
        self.remove_other_epochs(run.epoch)
    }

    /// The record of the last complete epoch.
    pub fn record<T: Number + TopicIndex>(&self) -> Result<(RunRecord, Lists<T>), FileError> {
        let path = self.directory.join(RUN);
        let read = || {
            let mut file = Reader::open(BufReader::new(File::open(&path)?), Kind::Run)?;
            let run = RunRecord::read(&mut file)?;
            let lens = optional(&mut file, "word-lens")?;
            let topics: Vec<T> = optional(&mut file, "word-topics")?;
            check("word-topics", &topics, run.resolved.topics)?;
            Ok((run, Lists { lens, topics }))
        };
        read().map_err(|error: FileError| error.at(&path))
    }

    /// Returns true if topics of the run have 16 bits.
    pub fn is_narrow(&self) -> Result<bool, FileError> {
        let path = self.directory.join(RUN);
        let read = || {
            let mut file = Reader::open(BufReader::new(File::open(&path)?), Kind::Run)?;
            Ok(RunRecord::read(&mut file)?.resolved.narrow)
        };
        read().map_err(|error: FileError| error.at(&path))
    }

    /// Removes the topics of all other epochs, and partial files of killed processes.
    pub fn remove_other_epochs(&self, epoch: u32) -> Result<(), FileError> {
        let kept = format!("{PREFIX}{epoch:010}-");
        let named = |error: std::io::Error| FileError::from(error).at(&self.directory);
        for entry in fs::read_dir(&self.directory).map_err(named)? {
            let name = entry.map_err(named)?.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_partial = name.starts_with('.') && name.ends_with(".partial");
            if is_partial || name.starts_with(PREFIX) && !name.starts_with(&kept) {
                let path = self.directory.join(name);
                fs::remove_file(&path).map_err(|error| FileError::from(error).at(&path))?;
            }
        }
        Ok(())
    }

    /// Removes all files of the run.
    pub fn remove(&self) -> Result<(), FileError> {
        let path = self.directory.join(RUN);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FileError::from(error).at(&path));
            }
            _ => {}
        }
        for block in (0..).map(|block| self.layout(block)).take_while(|path| path.exists()) {
            fs::remove_file(&block).map_err(|error| FileError::from(error).at(&block))?;
        }
        // No run has this many epochs.
        self.remove_other_epochs(u32::MAX)
    }
}

fn write_tokens<W: Write + Seek, T: Number + TopicIndex>(
    out: W,
    (epoch, block): (u32, usize),
    part: &Part,
    sets: &[TokenSet<T>],
) -> std::io::Result<()> {
    let of_ages = sets.iter().filter(|set| set.ages.is_some()).count();
    let mut file = Writer::new(out, Kind::Topics, 1 + sets.len() + of_ages)?;
    let about = [
        ("epoch", epoch.to_string()),
        ("block", block.to_string()),
        ("documents", format!("{:016x}", part.fingerprint)),
        ("layout", LAYOUT.to_string()),
    ];
    file.section(ABOUT, pairs::to_bytes(about.iter().map(|(name, value)| (*name, &**value))))?;
    for (number, set) in sets.iter().enumerate() {
        file.section(&format!("tokens-{number}"), set.tokens.iter().copied())?;
        if let Some(ages) = &set.ages {
            file.section(&format!("ages-{number}"), ages.iter().map(|age| age.to_byte()))?;
        }
    }
    file.finish()?.flush()
}

fn write_run<W: Write + Seek, T: Number + TopicIndex>(
    out: W,
    run: &RunRecord,
    words: &Lists<T>,
) -> std::io::Result<()> {
    let Lists { lens, topics } = words;
    let sections = usize::from(!lens.is_empty()) + usize::from(!topics.is_empty());
    let mut file = Writer::new(out, Kind::Run, run.num_sections() + sections)?;
    run.write(&mut file)?;
    if !lens.is_empty() {
        file.section("word-lens", lens.iter().copied())?;
    }
    if !topics.is_empty() {
        file.section("word-topics", topics.iter().copied())?;
    }
    file.finish()?.flush()
}

/// Checks that topics are below K.
fn check<T: TopicIndex>(name: &str, topics: &[T], limit: u32) -> Result<(), FileError> {
    match topics.iter().find(|topic| topic.get() >= limit) {
        Some(topic) => {
            let reason = format!("topic {} of a run with {limit}", topic.get());
            Err(FileError::malformed(name, reason))
        }
        None => Ok(()),
    }
}
