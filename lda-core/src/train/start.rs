//! Initial topics of tokens.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::random::{Permutation, Purpose, StreamKey, Xoshiro256PlusPlus};
use crate::train::assignments::Assignments;
use crate::train::seed_counts::{Pseudo, PseudoCounts};

/// Rule for the first topics of tokens.
///
/// After a sparse start the first epochs are faster, since rows are short (ZenLDA §5.1). The whole
/// run need not be faster: a word whose tokens all start in few topics needs many epochs to reach
/// others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Uniform over all topics.
    #[default]
    Random,
    /// Uniform over a subset drawn for the word (SparseWord).
    SparseWord,
    /// Uniform over a subset drawn for the document (SparseDoc).
    SparseDocument,
}

impl Start {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::Random, Self::SparseWord, Self::SparseDocument];

    /// Name as it stands in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::SparseWord => "sparse-word",
            Self::SparseDocument => "sparse-document",
        }
    }
}

/// Draws first topics.
///
/// Streams are keyed by document, and subsets by word or document: a token's first topic does not
/// depend on the sampler, the grid, or the machine that draws it.
///
/// ```
/// use lda_core::train::{FirstTopics, Start};
///
/// // A word starts in two of twenty topics.
/// let first = FirstTopics::new(20, Start::SparseWord, 0.1, 7);
/// let of_word = |document| first.of_document(document).of_word(3).take(50).collect::<Vec<_>>();
/// let mut topics = [of_word(0), of_word(1)].concat();
/// topics.sort_unstable();
/// topics.dedup();
/// assert_eq!(topics.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct FirstTopics {
    start: Start,
    /// Pseudo-counts; a word that has some starts in their topics.
    pseudo: Pseudo,
    seed: u64,
    topics: u32,
    /// Size of a subset.
    subset: u32,
}

impl FirstTopics {
    /// First topics of K; with a sparse start, a subset has the share `degree` of them.
    pub fn new(topics: u32, start: Start, degree: f64, seed: u64) -> Self {
        let subset = (f64::from(topics) * degree).ceil() as u32;
        Self { start, pseudo: None, seed, topics, subset: subset.clamp(1, topics) }
    }

    /// Tokens of words that have pseudo-counts start in their topics, with probabilities proportional to the
    /// counts. Default: no word has any.
    pub fn pseudo_counts(self, counts: Option<Arc<PseudoCounts>>) -> Self {
        Self { pseudo: counts, ..self }
    }

    /// First topics of a document's tokens.
    pub fn of_document(&self, document: u64) -> DocumentTopics<'_> {
        let rng = self.key(0, document).stream();
        DocumentTopics(OfDocument::Drawn { first: self, document, rng })
    }

    fn key(&self, pass: u32, block: u64) -> StreamKey {
        let purpose = Purpose::Initialise;
        StreamKey { seed: self.seed, epoch: 0, pass, block, purpose }
    }

    /// Candidate topics of the tokens of `word` in `document`.
    fn topics(&self, document: u64, word: u32) -> Topics<'_> {
        if let Some(pseudo) = &self.pseudo
            && !pseudo.word(word as usize).is_empty()
        {
            return Topics::Counted(pseudo, word as usize);
        }
        let subset = match self.start {
            Start::Random => return Topics::All(self.topics),
            Start::SparseWord => self.key(1, word.into()),
            Start::SparseDocument => self.key(2, document),
        };
        Topics::Of(self.subset, Permutation::new(self.topics, &subset))
    }
}

/// Candidate first topics of a token.
#[derive(Clone, Copy, Debug)]
enum Topics<'a> {
    /// Proportional to the pseudo-counts of a word.
    Counted(&'a PseudoCounts, usize),
    /// All topics; their number.
    All(u32),
    /// The first topics of a permutation; their number.
    Of(u32, Permutation),
}

impl Topics<'_> {
    /// Draws one.
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self {
            Self::Counted(pseudo, word) => pseudo.draw(*word, rng).expect("the word has some"),
            Self::All(topics) => rng.below(*topics),
            Self::Of(subset, permutation) => permutation.get(rng.below(*subset)),
        }
    }
}

/// Source of first topics.
#[derive(Clone, Copy, Debug)]
pub(super) enum First<'a> {
    /// Random draws, for documents from this number on.
    Drawn(&'a FirstTopics, u64),
    /// Assignments of a run on the same corpus.
    Taken(&'a Assignments),
}

impl<'a> First<'a> {
    /// First topics of a document's tokens.
    pub fn of_document(self, document: u32) -> DocumentTopics<'a> {
        match self {
            Self::Drawn(drawn, first) => drawn.of_document(first + u64::from(document)),
            Self::Taken(from) => {
                DocumentTopics(OfDocument::Taken(from.document(document as usize).iter()))
            }
        }
    }
}

/// First topics of a document's tokens, in order.
#[derive(Debug)]
pub struct DocumentTopics<'a>(OfDocument<'a>);

#[derive(Debug)]
enum OfDocument<'a> {
    Drawn { first: &'a FirstTopics, document: u64, rng: Xoshiro256PlusPlus },
    Taken(std::slice::Iter<'a, u32>),
}

impl DocumentTopics<'_> {
    /// First topics of the next tokens, which are tokens of `word`; take exactly as many as it has.
    pub fn of_word(&mut self, word: u32) -> impl Iterator<Item = u32> {
        let subset = match &self.0 {
            OfDocument::Drawn { first, document, .. } => Some(first.topics(*document, word)),
            OfDocument::Taken(_) => None,
        };
        std::iter::from_fn(move || match &mut self.0 {
            OfDocument::Drawn { rng, .. } => subset.map(|topics| topics.draw(rng)),
            OfDocument::Taken(topics) => topics.next().copied(),
        })
    }
}
