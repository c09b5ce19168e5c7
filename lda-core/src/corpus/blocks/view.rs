//! Blocks without some of their documents or words, or with more words.

use std::fmt;
use std::sync::Arc;

use super::manifest::Part;
use super::{Blocks, Statistics};
use crate::container::FileError;
use crate::corpus::{Corpus, Vocabulary, VocabularyFull};

/// A view of blocks: the training documents or the held-out documents of them, or all with more words.
///
/// Nothing is written. A block is read from the blocks behind the view, and then changed.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::corpus::blocks::{BlockDirectory, BlockView, Blocks};
///
/// let path = std::env::temp_dir().join(format!("lda-block-view-{}", std::process::id()));
/// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "leaf"], ["tree", "tree"]])?;
/// let blocks = BlockDirectory::cut(&corpus, 3, &path)?;
///
/// let (train, held_out) = BlockView::split(&blocks, |document| document == 1)?;
/// // No training document has the sea.
/// assert_eq!((train.statistics().num_tokens(), train.statistics().num_words()), (4, 2));
/// assert_eq!((held_out.statistics().num_tokens(), held_out.statistics().num_words()), (1, 2));
/// assert_eq!(held_out.statistics().num_documents(), 3);
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BlockView<B> {
    blocks: B,
    documents: Documents,
    /// For each word of the blocks, true if the view has it; `None` if it has all.
    kept_words: Option<Arc<[bool]>>,
    parts: Vec<Part>,
    statistics: Statistics,
    vocabulary: Option<Vocabulary>,
}

/// Documents that keep their tokens.
#[derive(Clone)]
enum Documents {
    All,
    /// Those for which the function returns this value.
    Side(Arc<dyn Fn(u64) -> bool + Send + Sync>, bool),
}

impl<B> fmt::Debug for BlockView<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, tokens) = (self.parts.len(), self.statistics.num_tokens());
        f.debug_struct("BlockView").field("blocks", &blocks).field("tokens", &tokens).finish()
    }
}

impl<B: Blocks> BlockView<B> {
    /// All documents and words.
    pub fn new(blocks: B) -> Self {
        let (parts, statistics) = (blocks.parts().to_vec(), blocks.statistics().clone());
        let vocabulary = blocks.vocabulary().cloned();
        let documents = Documents::All;
        Self { blocks, documents, kept_words: None, parts, statistics, vocabulary }
    }

    /// Training documents, and held-out documents: those whose number `is_held_out`. Both views have all
    /// documents, those of the other view without tokens, so that numbers of documents stay.
    ///
    /// Named words that no training document has leave both views: a model cannot know them, and its number of
    /// words must not count them. All blocks are read once, and twice if words leave.
    ///
    /// # Errors
    /// [`FileError`] of a block.
    pub fn split(
        blocks: B,
        is_held_out: impl Fn(u64) -> bool + Send + Sync + 'static,
    ) -> Result<(Self, Self), FileError>
    where
        B: Clone,
    {
        let is_held_out: Arc<dyn Fn(u64) -> bool + Send + Sync> = Arc::new(is_held_out);
        let side = |held: bool| {
            let documents = Documents::Side(Arc::clone(&is_held_out), held);
            Self { documents, ..Self::new(blocks.clone()) }
        };
        let (mut train, mut held) = (side(false), side(true));
        measure([&mut train, &mut held])?;
        if train.vocabulary.is_some() {
            let used = train.statistics.word_frequencies().iter().map(|&tokens| tokens > 0);
            let used: Arc<[bool]> = used.collect();
            if used.contains(&false) {
                train.keep_words(&used);
                held.keep_words(&used);
                measure([&mut train, &mut held])?;
            }
        }
        Ok((train, held))
    }

    /// Keeps these words of the blocks only. The view must be measured afterwards.
    fn keep_words(&mut self, kept: &Arc<[bool]>) {
        let kept = Arc::clone(kept);
        let vocabulary = self.vocabulary.as_ref();
        self.vocabulary =
            vocabulary.map(|vocabulary| vocabulary.retain(|word| kept[word as usize]));
        self.statistics = Statistics::new(kept.iter().filter(|&&kept| kept).count());
        self.kept_words = Some(kept);
    }

    /// Appends the words of `vocabulary` that the view does not have, and returns their number. No document has
    /// them. A view without a vocabulary is unchanged, and 0 is returned.
    ///
    /// Needed when training continues from a model on new documents ([`Corpus::add_words`]).
    ///
    /// # Errors
    /// [`VocabularyFull`]; the view is then unchanged.
    pub fn add_words(&mut self, vocabulary: &Vocabulary) -> Result<usize, VocabularyFull> {
        let Some(own) = &self.vocabulary else { return Ok(0) };
        let all = own.extended(vocabulary)?;
        let added = all.len() - own.len();
        self.statistics.widen(all.len());
        self.vocabulary = Some(all);
        Ok(added)
    }

    /// Hash of the documents that the view shows.
    pub fn fingerprint(&self) -> u64 {
        super::fingerprint(self.statistics.num_words() as u32, &self.parts)
    }

    /// A corpus of the same words, without documents.
    pub fn words(&self) -> Corpus {
        super::writer::without_documents(
            self.statistics.num_words() as u32,
            self.vocabulary.as_ref(),
        )
        .expect("the words were checked")
    }

    /// The documents of a block as the view shows them.
    fn show(&self, block: usize, mut documents: Corpus) -> Corpus {
        if let Documents::Side(is_held_out, held) = &self.documents {
            let first = self.parts[block].documents.start;
            documents = documents.select_tokens_of(|d| is_held_out(first + d as u64) == *held);
        }
        if let Some(kept) = &self.kept_words {
            documents.retain_words(|word| kept[word as usize]);
        }
        documents.num_words = self.statistics.num_words() as u32;
        documents
    }
}

/// Finds parts and statistics of views of the same blocks, of which each is read once.
fn measure<B: Blocks>(views: [&mut BlockView<B>; 2]) -> Result<(), FileError> {
    let mut found = views.each_ref().map(|view| Statistics::new(view.statistics.num_words()));
    let mut parts = views.each_ref().map(|_| Vec::new());
    for block in 0..views[0].parts.len() {
        let documents = views[0].blocks.read(block)?;
        for ((view, found), parts) in views.iter().zip(&mut found).zip(&mut parts) {
            let shown = view.show(block, documents.clone());
            found.add(&shown);
            parts.push(Part::of(&shown, view.parts[block].documents.start));
        }
    }
    for ((view, found), parts) in views.into_iter().zip(found).zip(parts) {
        (view.statistics, view.parts) = (found, parts);
    }
    Ok(())
}

impl<B: Blocks> Blocks for BlockView<B> {
    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn vocabulary(&self) -> Option<&Vocabulary> {
        self.vocabulary.as_ref()
    }

    fn read(&self, block: usize) -> Result<Corpus, FileError> {
        Ok(self.show(block, self.blocks.read(block)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::blocks::BlockDirectory;

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("lda-view-{name}-{}", std::process::id()))
    }

    /// 60 documents, each with a word of its own, with names; some are empty.
    fn corpus() -> Corpus {
        let mut builder = crate::corpus::CorpusBuilder::new();
        for d in 0..60u32 {
            let own = format!("own{d}");
            let shared = (0..d % 5).map(|i| format!("shared{}", (d + i) % 7));
            let words: Vec<String> =
                if d % 9 == 0 { vec![] } else { shared.chain([own]).collect() };
            builder.push_words(words.iter().map(String::as_str)).unwrap();
            builder.push_name(&format!("document {d}"));
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_split_of_blocks_is_that_of_their_corpus() {
        let (corpus, path) = (corpus(), scratch("split"));
        let blocks = BlockDirectory::cut(&corpus, 30, &path).unwrap();
        assert!(blocks.parts().len() > 3);
        let is_held = |d: u64| d % 4 == 1;
        let (train, held) = BlockView::split(&blocks, is_held).unwrap();
        let mut whole = corpus.select_tokens_of(|d| !is_held(d as u64));
        let mut held_whole = corpus.select_tokens_of(|d| is_held(d as u64));
        let used = whole.word_frequencies();
        held_whole.retain_words(|word| used[word as usize] > 0);
        whole.compact();
        for (view, whole) in [(&train, &whole), (&held, &held_whole)] {
            assert_eq!(view.vocabulary(), whole.vocabulary());
            assert_eq!(view.words().num_words(), whole.num_words());
            assert_eq!(view.statistics().word_frequencies(), whole.word_frequencies());
            let mut d = 0;
            for (block, part) in view.parts().iter().enumerate() {
                let read = view.read(block).unwrap();
                assert_eq!(*part, Part::of(&read, d as u64));
                for of_block in 0..read.num_documents() {
                    assert_eq!(read.document(of_block), whole.document(d), "{d}");
                    assert_eq!(read.document_name(of_block), whole.document_name(d));
                    d += 1;
                }
            }
            assert_eq!(d, whole.num_documents());
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn words_are_appended_without_tokens() {
        let (corpus, path) = (corpus(), scratch("words"));
        let blocks = BlockDirectory::cut(&corpus, 30, &path).unwrap();
        let mut view = BlockView::new(&blocks);
        let mut more = Vocabulary::new();
        for word in ["own3", "new", "shared1"] {
            more.intern(word).unwrap();
        }
        assert_eq!(view.add_words(&more), Ok(1));
        let words = blocks.num_words() as usize;
        assert_eq!(view.vocabulary().unwrap().id("new"), Some(words as u32));
        assert_eq!(view.statistics().word_frequencies()[words], 0);
        assert_eq!(view.read(1).unwrap().num_words(), words + 1);
        assert_eq!(view.read(1).unwrap().document(2), blocks.read(1).unwrap().document(2));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
