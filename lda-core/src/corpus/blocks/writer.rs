//! Writing of blocks, one after the other.

use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, Part};
use super::{BlockDirectory, Statistics};
use crate::container::{FileError, replace};
use crate::corpus::{BuildError, Corpus, CorpusBuilder, Vocabulary};

/// Writes blocks to a directory. It keeps no documents, but 16 bytes per word.
#[derive(Debug)]
#[must_use = "without `finish` the directory cannot be opened"]
pub struct BlockWriter {
    path: PathBuf,
    manifest: Manifest,
    statistics: Statistics,
}

impl BlockWriter {
    /// Creates the directory if it is missing. Blocks that it has are overwritten.
    ///
    /// # Errors
    /// [`FileError`] of the directory.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::corpus::blocks::{BlockWriter, Blocks};
    ///
    /// let path = std::env::temp_dir().join(format!("lda-block-writer-{}", std::process::id()));
    /// let mut writer = BlockWriter::create(&path)?;
    /// writer.push(&Corpus::from_tokens([[0u32, 1], [1, 1]])?)?;
    /// writer.push(&Corpus::from_tokens([[4u32, 0, 2]])?)?;
    /// let blocks = writer.finish(5, None)?;
    /// assert_eq!(blocks.statistics().word_frequencies(), [2, 3, 1, 0, 1]);
    /// assert_eq!(blocks.read(0)?.num_words(), 5);
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref().to_owned();
        fs::create_dir_all(&path).map_err(|error| FileError::from(error).at(&path))?;
        // The blocks that are there are not those of the old manifest any more.
        let manifest = path.join(Manifest::NAME);
        match fs::remove_file(&manifest) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FileError::from(error).at(&manifest));
            }
            _ => {}
        }
        let manifest = Manifest { words: 0, parts: Vec::new() };
        Ok(Self { path, manifest, statistics: Statistics::new(0) })
    }

    /// Goes on with a directory, which cannot be opened until it is finished again.
    pub(super) fn reopen(blocks: BlockDirectory) -> Result<Self, FileError> {
        let path = blocks.path().to_owned();
        let BlockDirectory { manifest, statistics, .. } = blocks;
        Ok(Self { manifest, statistics, ..Self::create(path)? })
    }

    /// Frequencies of words and lengths of documents so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Pairs of a document and a word so far.
    pub fn num_pairs(&self) -> u64 {
        self.manifest.parts.iter().map(|part| part.pairs).sum()
    }

    /// Writes the next documents as a block. They may have fewer words than all blocks together; a block
    /// without documents is left out.
    ///
    /// # Errors
    /// [`FileError`] of its file; also after 65,535 blocks.
    pub fn push(&mut self, documents: &Corpus) -> Result<(), FileError> {
        if documents.num_documents() == 0 {
            return Ok(());
        }
        let block = self.manifest.parts.len();
        if block >= usize::from(u16::MAX) {
            let why = "there are 65,535 blocks already: make larger ones";
            return Err(FileError::malformed("block", why).at(&self.path));
        }
        let path = self.path.join(Manifest::part_name(block));
        if documents.vocabulary().is_some() {
            let mut without = documents.clone();
            without.take_vocabulary();
            without.save(&path)?;
        } else {
            documents.save(&path)?;
        }
        self.statistics.add(documents);
        let first = self.manifest.parts.last().map_or(0, |part| part.documents.end);
        self.manifest.parts.push(Part::of(documents, first));
        Ok(())
    }

    /// Leaves out the words for which `kept` is false, and gives the others new ids in the same order. It reads
    /// and writes all blocks.
    ///
    /// # Errors
    /// [`FileError`] of a block.
    pub fn retain_words(&mut self, kept: impl Fn(usize) -> bool) -> Result<(), FileError> {
        let parts = std::mem::take(&mut self.manifest.parts);
        let words = self.statistics.num_words();
        self.statistics = Statistics::new(0);
        for block in 0..parts.len() {
            let path = self.path.join(Manifest::part_name(block));
            let mut documents = Corpus::load(&path)?;
            documents.num_words = words as u32;
            documents.retain_words(|word| kept(word as usize));
            self.push(&documents)?;
        }
        Ok(())
    }

    /// Writes vocabulary, statistics and, last, the manifest. There are `words` words in all blocks.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem; also if there are no documents, or more words.
    pub fn finish(
        self,
        words: usize,
        vocabulary: Option<&Vocabulary>,
    ) -> Result<BlockDirectory, FileError> {
        let Self { path, mut manifest, mut statistics } = self;
        if statistics.num_words() > words || u32::try_from(words).is_err() {
            let why = format!("{} words, where {words} are stated", statistics.num_words());
            return Err(FileError::malformed("words", why).at(&path));
        }
        statistics.widen(words);
        manifest.words = words as u32;
        let words = without_documents(manifest.words, vocabulary);
        let words = words.map_err(|error| FileError::malformed("words", error.to_string()))?;
        words.save(path.join(Manifest::WORDS))?;
        let file = path.join(Statistics::NAME);
        replace(&file, |file| statistics.write_to(file).map_err(FileError::from))?;
        let name = path.join(Manifest::NAME);
        replace(&name, |file| Ok(std::io::Write::write_all(file, manifest.to_text().as_bytes())?))?;
        BlockDirectory::open(path)
    }
}

/// A corpus of so many words, and no documents.
pub(super) fn without_documents(
    words: u32,
    vocabulary: Option<&Vocabulary>,
) -> Result<Corpus, BuildError> {
    let (mut corpus, _) = CorpusBuilder::new().num_words(words).build_any()?;
    if let Some(vocabulary) = vocabulary {
        corpus.set_vocabulary(vocabulary.clone())?;
    }
    Ok(corpus)
}
