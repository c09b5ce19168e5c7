//! Blocks in a directory.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::{BlockWriter, Blocks, Part, Statistics};
use crate::container::FileError;
use crate::corpus::{Corpus, Vocabulary};

/// Documents in the blocks of a directory.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::corpus::blocks::{BlockDirectory, Blocks};
///
/// let path = std::env::temp_dir().join(format!("lda-blocks-{}", std::process::id()));
/// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"], ["leaf", "sea"]])?;
/// BlockDirectory::cut(&corpus, 3, &path)?;
///
/// let blocks = BlockDirectory::open(&path)?;
/// assert_eq!(blocks.parts().len(), 2);
/// assert_eq!(blocks.read(1)?.num_documents(), 1);
/// assert_eq!(blocks.vocabulary().unwrap().word(3), "wave");
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockDirectory {
    path: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) statistics: Statistics,
    vocabulary: Option<Vocabulary>,
}

impl BlockDirectory {
    /// Opens a directory that a [`BlockWriter`] has finished.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let name = path.join(Manifest::NAME);
        let text = fs::read(&name).map_err(|error| FileError::from(error).at(&name))?;
        let manifest = Manifest::parse(&text)
            .map_err(|error| FileError::malformed("the list", error.to_string()).at(&name))?;
        let words = Corpus::load(path.join(Manifest::WORDS))?.take_vocabulary();
        let statistics = read_statistics(path, &manifest)?;
        Ok(Self { path: path.to_owned(), manifest, statistics, vocabulary: words })
    }

    /// Cuts a corpus into blocks of about `tokens` tokens, which are written to the directory.
    ///
    /// # Errors
    /// As [`BlockWriter::create`] and [`BlockWriter::push`].
    pub fn cut(corpus: &Corpus, tokens: u64, path: impl AsRef<Path>) -> Result<Self, FileError> {
        let mut writer = BlockWriter::create(path)?;
        let (mut first, mut sum) = (0, 0);
        for d in 0..corpus.num_documents() {
            sum += corpus.doc_length(d);
            if sum >= tokens {
                writer.push(&corpus.select(first..d + 1))?;
                (first, sum) = (d + 1, 0);
            }
        }
        if first < corpus.num_documents() {
            writer.push(&corpus.select(first..corpus.num_documents()))?;
        }
        writer.finish(corpus.num_words(), corpus.vocabulary())
    }

    /// Leaves out the words without tokens, as [`Corpus::compact`] does. If there are any, all blocks are written
    /// again.
    ///
    /// # Errors
    /// [`FileError`] of a block. The directory cannot be opened then.
    pub fn compact(self) -> Result<Self, FileError> {
        let is_used: Vec<bool> =
            self.statistics.word_frequencies().iter().map(|&tokens| tokens > 0).collect();
        if !is_used.contains(&false) {
            return Ok(self);
        }
        let mut words = self.words()?;
        let mut writer = BlockWriter::reopen(self)?;
        writer.retain_words(|word| is_used[word])?;
        words.retain_words(|word| is_used[word as usize]);
        writer.finish(words.num_words(), words.vocabulary())
    }

    /// True if the directory has blocks: a manifest.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let read = || {
            let mut start = vec![0; super::manifest::TITLE.len()];
            File::open(path.as_ref().join(Manifest::NAME))?.read_exact(&mut start)?;
            Ok::<_, std::io::Error>(start == super::manifest::TITLE.as_bytes())
        };
        read().unwrap_or(false)
    }

    /// A corpus of the same words, without documents.
    ///
    /// # Errors
    /// [`FileError`] of its file.
    pub fn words(&self) -> Result<Corpus, FileError> {
        Corpus::load(self.path.join(Manifest::WORDS))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of words V.
    pub fn num_words(&self) -> u32 {
        self.manifest.words
    }

    /// Hash of all documents.
    pub fn fingerprint(&self) -> u64 {
        self.manifest.fingerprint()
    }

    /// Path of a block.
    fn part(&self, block: usize) -> PathBuf {
        self.path.join(Manifest::part_name(block))
    }
}

/// Reads the statistics, which must be those of the documents that the manifest lists.
fn read_statistics(path: &Path, manifest: &Manifest) -> Result<Statistics, FileError> {
    let name = path.join(Statistics::NAME);
    let read = || {
        let read = Statistics::read_from(BufReader::new(File::open(&name)?))?;
        let documents = manifest.parts.last().map_or(0, |part| part.documents.end);
        let tokens = manifest.parts.iter().map(|part| part.tokens).sum::<u64>();
        let found = (read.num_words(), read.num_documents(), read.num_tokens());
        if found != (manifest.words as usize, documents, tokens) {
            let why = "they are of other documents than those that the manifest lists";
            return Err(FileError::malformed("statistics", why));
        }
        Ok(read)
    };
    read().map_err(|error: FileError| error.at(&name))
}

impl Blocks for BlockDirectory {
    fn parts(&self) -> &[Part] {
        &self.manifest.parts
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn vocabulary(&self) -> Option<&Vocabulary> {
        self.vocabulary.as_ref()
    }

    /// # Panics
    /// If there is no such block.
    fn read(&self, block: usize) -> Result<Corpus, FileError> {
        let (part, path) = (&self.manifest.parts[block], self.part(block));
        let mut documents = Corpus::load(&path)?;
        let words = self.manifest.words;
        if documents.num_words > words || documents.fingerprint() != part.fingerprint {
            let why = "it has other documents than those that the manifest lists: cut them again";
            return Err(FileError::malformed("block", why).at(&path));
        }
        // Blocks are written before the last words are known.
        documents.num_words = words;
        Ok(documents)
    }
}
