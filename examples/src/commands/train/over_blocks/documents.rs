//! The documents of a run over blocks: which are trained on, and which are held out.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use lda_core::corpus::blocks::{BlockDirectory, BlockView, Blocks};
use lda_core::model::TopicModel;
use lda_core::train::blocks::BlockTrainer;
use lda_examples::held_out::is_held_out;
use lda_examples::output::TemporaryDirectory;
use lda_examples::reading;

use super::View;
use crate::commands::train::args::Args;
use crate::commands::train::error::TrainError;
use crate::commands::train::init;
use crate::commands::train::progress::Progress;

/// Bytes in memory per byte of a file of documents, at most: text has about 6 bytes per token, of which half are
/// stop words, and lists of pairs 10 bytes per pair; a token takes 6 to 14, and a pair 16.
const MEMORY_OF_BYTE: u64 = 4;
/// Bytes of documents per byte of a compressed file.
const EXPANSION: u64 = 8;

/// Training documents, and held-out documents.
#[derive(Debug)]
pub struct Documents {
    pub train: View,
    pub held: Option<View>,
    directory: Arc<BlockDirectory>,
    /// The directory, if the blocks are this run's own.
    _scratch: Option<TemporaryDirectory>,
}

impl Documents {
    /// The blocks of a directory.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        Ok(Self::new(BlockDirectory::open(path)?, None))
    }

    /// Cuts the documents at `path` into blocks in a directory that is removed in the end.
    pub fn cut(
        args: &Args,
        path: &Path,
        model: Option<&TopicModel>,
        progress: &Progress,
    ) -> Result<Self, TrainError> {
        let scratch = args.machine.scratch.clone().unwrap_or_else(env::temp_dir);
        let scratch = scratch.join(format!("lda-blocks-{}", std::process::id()));
        progress.busy(&format!("reading {} into {}", path.display(), scratch.display()));
        let scratch = TemporaryDirectory::new(scratch);
        let mut note = |text: &str| progress.note(text);
        let tokens = args.machine.block_tokens;
        let blocks = reading::cut(path, (&args.reading, model), tokens, scratch.path(), &mut note)?;
        Ok(Self::new(blocks, Some(scratch)))
    }

    fn new(blocks: BlockDirectory, scratch: Option<TemporaryDirectory>) -> Self {
        let directory = Arc::new(blocks);
        let train = BlockView::new(Arc::clone(&directory));
        Self { train, held: None, directory, _scratch: scratch }
    }

    /// The directory of the blocks.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the share of `--held-out` out of training, if there is one: the documents that would be held out in
    /// memory too.
    pub fn hold_out(&mut self, args: &Args, seed: u64) -> Result<(), TrainError> {
        let Some(share) = args.hold_out.held_out else { return Ok(()) };
        let statistics = self.directory.statistics();
        let documents = (statistics.num_documents() - statistics.num_empty()) as usize;
        let is_held_out = move |document| is_held_out(document, share, seed);
        let (train, held) = BlockView::split(Arc::clone(&self.directory), is_held_out)?;
        if train.statistics().num_tokens() == 0 || held.statistics().num_tokens() == 0 {
            return Err(TrainError::HeldOut { share, documents });
        }
        (self.train, self.held) = (train, Some(held));
        Ok(())
    }

    /// Adds the words of the model of `--from`.
    pub fn add_words(&mut self, model: &TopicModel, progress: &Progress) -> Result<(), TrainError> {
        let rules = self.train.vocabulary().and_then(|words| words.tokenizer());
        if rules != reading::rules(model) && rules.is_some() {
            progress.note(
                "warning: the texts of the blocks were cut into words by other rules than those of the model: \
                 words that both have may differ",
            );
        }
        let words = self.train.statistics().num_words();
        let Self { train, held, .. } = self;
        init::widen(
            model,
            words,
            |vocabulary| {
                // Both have the same words before and after.
                held.as_mut().map_or(Ok(0), |held| held.add_words(vocabulary))?;
                train.add_words(vocabulary)
            },
            progress,
        )
    }
}

/// True if the documents at `path` are read into blocks: they may not fit into `--memory-limit`, or the run that is
/// resumed is one over blocks.
pub fn needs_blocks(args: &Args, path: &Path) -> bool {
    if let Some(run) = &args.checkpoints.resume {
        return BlockTrainer::<&View>::is_at(run);
    }
    let limit = args.machine.memory_limit;
    limit.is_some_and(|limit| can_cut(args, 0, limit) && in_memory(path) > limit)
}

/// True if documents of so many words may be read into blocks: not with options that need them all in memory, nor
/// for a run that is resumed with documents in memory.
pub fn can_cut(args: &Args, words: usize, limit: u64) -> bool {
    /// Memory of a word without tokens while documents are read and trained on.
    const BYTES_PER_WORD: u64 = 64;
    let needs_all = args.reading.dates.is_some() || args.reading.text.phrases.phrases.is_some();
    let resumes =
        args.checkpoints.resume.as_ref().is_some_and(|run| !BlockTrainer::<&View>::is_at(run));
    !needs_all && !resumes && words as u64 * BYTES_PER_WORD <= limit
}

/// Bytes of memory that the documents of files may take, with their training.
fn in_memory(path: &Path) -> u64 {
    let Ok(found) = fs::metadata(path) else { return 0 };
    if found.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        // Links may lead back.
        let owned = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        return owned.map(|entry| in_memory(&entry.path())).fold(0, u64::saturating_add);
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let expansion = if matches!(extension, Some("gz" | "zst")) { EXPANSION } else { 1 };
    found.len().saturating_mul(expansion * MEMORY_OF_BYTE)
}
