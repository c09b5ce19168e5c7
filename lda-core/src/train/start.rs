//! Initial topics of tokens.

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
/// depend on the sampler or the grid.
#[derive(Clone, Debug)]
pub(super) struct Starter {
    start: Start,
    /// Pseudo-counts; a word that has some starts in their topics.
    pseudo: Pseudo,
    seed: u64,
    topics: u32,
    /// Size of a subset.
    subset: u32,
}

impl Starter {
    /// A starter for `topics` topics; a subset has the share `degree` of them.
    pub fn new(topics: u32, start: Start, degree: f64, seed: u64) -> Self {
        let subset = (f64::from(topics) * degree).ceil() as u32;
        Self { start, pseudo: None, seed, topics, subset: subset.clamp(1, topics) }
    }

    /// Sets the pseudo-counts.
    pub fn with(self, pseudo: &Pseudo) -> Self {
        Self { pseudo: pseudo.clone(), ..self }
    }

    fn key(&self, pass: u32, block: u32) -> StreamKey {
        let purpose = Purpose::Initialise;
        StreamKey { seed: self.seed, epoch: 0, pass, block: u64::from(block), purpose }
    }

    /// Stream of a document.
    fn stream(&self, document: u32) -> Xoshiro256PlusPlus {
        self.key(0, document).stream()
    }

    /// Candidate topics of the tokens of `word` in `document`.
    fn topics(&self, document: u32, word: u32) -> Topics<'_> {
        if let Some(pseudo) = &self.pseudo
            && !pseudo.word(word as usize).is_empty()
        {
            return Topics::Counted(pseudo, word as usize);
        }
        let subset = match self.start {
            Start::Random => return Topics::All(self.topics),
            Start::SparseWord => self.key(1, word),
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
    /// Random draws.
    Drawn(&'a Starter),
    /// Assignments of a run on the same corpus.
    Taken(&'a Assignments),
}

impl<'a> First<'a> {
    /// First topics of a document's tokens.
    pub fn of_document(self, document: u32) -> OfDocument<'a> {
        match self {
            Self::Drawn(starter) => {
                OfDocument::Drawn { starter, document, rng: starter.stream(document) }
            }
            Self::Taken(from) => OfDocument::Taken(from.document(document as usize).iter()),
        }
    }
}

/// First topics of a document's tokens, in order.
pub(super) enum OfDocument<'a> {
    Drawn { starter: &'a Starter, document: u32, rng: Xoshiro256PlusPlus },
    Taken(std::slice::Iter<'a, u32>),
}

impl OfDocument<'_> {
    /// First topics of the next tokens, which are tokens of `word`; take exactly as many as it has.
    pub fn of_word(&mut self, word: u32) -> impl Iterator<Item = u32> {
        let subset = match self {
            Self::Drawn { starter, document, .. } => Some(starter.topics(*document, word)),
            Self::Taken(_) => None,
        };
        std::iter::from_fn(move || match self {
            Self::Drawn { rng, .. } => subset.map(|topics| topics.draw(rng)),
            Self::Taken(topics) => topics.next().copied(),
        })
    }
}
