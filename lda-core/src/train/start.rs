//! Which topics tokens start with.

use serde::{Deserialize, Serialize};

use crate::random::{Permutation, Purpose, StreamKey, Xoshiro256PlusPlus};
use crate::train::assignments::Assignments;
use crate::train::seed_counts::{Pseudo, PseudoCounts};

/// Which topics tokens start with.
///
/// ZenLDA §5.1: from a sparse start the first epochs are quicker, since rows are short. It need not
/// end better: a word whose tokens all start in few topics takes epochs to get to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Any, all alike.
    #[default]
    Random,
    /// Of a subset that the word has drawn (SparseWord).
    SparseWord,
    /// Of a subset that the document has drawn (SparseDoc).
    SparseDocument,
}

impl Start {
    /// Every start.
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
/// Streams belong to the documents, and a subset to its word or document: a token's first topic is
/// the same whatever the sampler and the grid.
#[derive(Clone, Debug)]
pub(super) struct Starter {
    start: Start,
    /// Topics that words start with, where they have any.
    pseudo: Pseudo,
    seed: u64,
    topics: u32,
    /// Topics of a subset.
    subset: u32,
}

impl Starter {
    /// Of `topics` topics; a subset has `degree` of them.
    pub fn new(topics: u32, start: Start, degree: f64, seed: u64) -> Self {
        let subset = (f64::from(topics) * degree).ceil() as u32;
        Self { start, pseudo: None, seed, topics, subset: subset.clamp(1, topics) }
    }

    /// Words with pseudo-counts start as those say.
    pub fn with(self, pseudo: &Pseudo) -> Self {
        Self { pseudo: pseudo.clone(), ..self }
    }

    fn key(&self, pass: u32, block: u32) -> StreamKey {
        let purpose = Purpose::Initialise;
        StreamKey { seed: self.seed, epoch: 0, pass, block: u64::from(block), purpose }
    }

    /// The stream of a document.
    fn stream(&self, document: u32) -> Xoshiro256PlusPlus {
        self.key(0, document).stream()
    }

    /// What the tokens of `word` in `document` are drawn from.
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

/// The topics that a token may start with.
#[derive(Clone, Copy, Debug)]
enum Topics<'a> {
    /// Those that are counted of a word.
    Counted(&'a PseudoCounts, usize),
    /// So many, all there are.
    All(u32),
    /// The first so many of a permutation.
    Of(u32, Permutation),
}

impl Topics<'_> {
    /// One of them.
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self {
            Self::Counted(pseudo, word) => pseudo.draw(*word, rng).expect("the word has some"),
            Self::All(topics) => rng.below(*topics),
            Self::Of(subset, permutation) => permutation.get(rng.below(*subset)),
        }
    }
}

/// Where first topics come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum First<'a> {
    /// From chance.
    Drawn(&'a Starter),
    /// From a run on the same corpus.
    Taken(&'a Assignments),
}

impl<'a> First<'a> {
    /// Those of a document's tokens.
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
    /// Those of the next tokens, which are of `word`; to be asked for as many as there are.
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
