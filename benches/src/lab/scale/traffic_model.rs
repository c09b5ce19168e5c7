//! Traffic between one shard and one partition in an epoch, for a drawn sample of such pairs.
//!
//! For each word of the partition, the model draws the number of documents of the shard that
//! contain it (Poisson, with as many occurrences per document as equally frequent words of the
//! measured corpus) and which documents they are. [`Sizes`] gives the cost of rows. From there on
//! the real code runs: [`route`] decides which words are pulled, and [`PushCode`] encodes the
//! pushed documents, with document rows drawn by length.
//!
//! A word whose tokens alone cost more pushed than its row costs pulled is pulled, and its
//! documents are not drawn. If the tokens of the remaining words are still too many, only documents
//! whose numbers are divisible by f are drawn and each counts f times; a word that occurs in none
//! of them is pulled as often as other words of similar frequency.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use lda_core::counts::{Density, Rows};
use lda_dist::config::{Options, Routing};
use lda_dist::request::{size_byte, size_of_byte};
use lda_dist::route::{self, Route};
use lda_dist::wire::{Document, PushCode, RowCode};

use super::rng::Rng;
use super::sizes::{Sizes, class};
use super::words::{Lengths, Repeats};

/// Bytes of a request before its body.
const HEAD: f64 = 15.0;
/// Lower bound of the bits of a pushed token.
const LEAST_BITS: u64 = 11;
/// Largest number of pushed tokens drawn for a pair.
const MOST: f64 = 1_500_000.0;
/// Largest number of documents of a shard that are held individually.
const SHELF: f64 = 200_000.0;
/// Shards whose documents are cached.
const SHELVES: u64 = 4;
/// Rows drawn per document length.
const VARIANTS: u32 = 4;

/// Traffic and work of one pair, or the mean over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    pub sizes: f64,
    pub routes: f64,
    pub rows: f64,
    pub gained: f64,
    pub pushed: f64,
    pub answers: f64,
    /// Words of the partition that the shard contains.
    pub words: f64,
    pub pulled_tokens: f64,
    /// Non-zeros of pulled rows.
    pub pulled_entries: f64,
    /// Non-zeros of the deltas of pulled rows.
    pub gained_entries: f64,
    pub pushed_tokens: f64,
    /// Pushed documents.
    pub documents: f64,
    /// Non-zeros of the rows of pushed documents.
    pub document_entries: f64,
    /// Non-zeros of the rows of pushed words.
    pub row_entries: f64,
    /// Bytes of the rows of pushed words, decoded.
    pub row_memory: f64,
}

/// For words of similar frequency: the number of (word, shard) pairs and how many are pulled, and
/// the same for their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pulled {
    pub words: f64,
    pub pulled: f64,
    pub tokens: f64,
    pub pulled_tokens: f64,
}

/// The (shard, partition) pairs of a division.
pub(super) struct Pairs<'a> {
    pub sizes: &'a Sizes<'a>,
    pub lengths: &'a Lengths,
    pub shards: u32,
    pub repeats: &'a Repeats,
    pub routing: Routing,
    /// Documents with more tokens are not pushed.
    pub max_pushed_len: u32,
    /// True if a shard pushes the whole row of each word of which it has as many tokens as the row has topics.
    pub pushes_rows: bool,
    pub seed: u64,
    shelves: RefCell<HashMap<(u32, u64), Rc<Shelf>>>,
}

/// Documents of a shard, if few enough to hold individually: their length classes, and the
/// cumulative share of the tokens.
struct Shelf {
    lengths: Vec<usize>,
    up_to: Vec<f64>,
}

/// A word that may be pushed.
struct Candidate {
    place: u32,
    tokens: u64,
    /// Occurrences of the word in a document that contains it.
    run: f64,
    /// Occurrences in the whole corpus.
    of_all: u64,
    row: u32,
}

/// A row of C_d and its encoded bytes.
type Row = (Vec<(u32, u32)>, u32);

impl Moved {
    /// Adds `times` × `more`.
    pub fn add(&mut self, more: &Self, times: f64) {
        let both = self.all_mut().into_iter().zip(more.clone().all_mut().map(|it| *it));
        both.for_each(|(to, more)| *to += times * more);
    }

    fn all_mut(&mut self) -> [&mut f64; 15] {
        let Self { sizes, routes, rows, gained, pushed, answers, words, .. } = self;
        let Self { pulled_tokens, pulled_entries, gained_entries, pushed_tokens, .. } = self;
        let Self { documents, document_entries, row_entries, row_memory, .. } = self;
        [
            sizes,
            routes,
            rows,
            gained,
            pushed,
            answers,
            words,
            pulled_tokens,
            pulled_entries,
            gained_entries,
            pushed_tokens,
            documents,
            document_entries,
            row_entries,
            row_memory,
        ]
    }

    /// Bytes to the server and from it.
    pub fn both_ways(&self) -> (f64, f64) {
        let Self { sizes, routes, rows, gained, pushed, answers, words, .. } = self;
        // A request for sizes has a head only; its reply has one byte per word.
        let back = words.min(*sizes);
        (sizes - back + routes + gained + pushed, back + rows + answers)
    }
}

impl<'a> Pairs<'a> {
    /// Creates the pairs of a division given by `options`.
    pub fn new(
        sizes: &'a Sizes<'a>,
        lengths: &'a Lengths,
        repeats: &'a Repeats,
        options: &Options,
        seed: u64,
    ) -> Self {
        let Options { shards, routing, max_pushed_len, .. } = *options;
        let shelves = RefCell::default();
        Self {
            sizes,
            lengths,
            shards: shards.into(),
            repeats,
            routing,
            max_pushed_len,
            pushes_rows: false,
            seed,
            shelves,
        }
    }

    /// Documents of a shard, or of the sampled part of them; `None` if there are too many.
    fn shelf(&self, fold: u32, number: u64) -> Option<Rc<Shelf>> {
        let count = self.lengths.documents() / f64::from(self.shards) / f64::from(fold);
        if count > SHELF {
            return None;
        }
        let which = number % SHELVES;
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.entry((fold, which)).or_insert_with(|| {
            let mut rng = Rng::new(self.seed, 1 << 61 | which);
            let lengths = self.lengths.some((count.round() as u32).max(1), &mut rng);
            let mut up_to: Vec<f64> = Vec::with_capacity(lengths.len());
            for &length in &lengths {
                let before = up_to.last().copied().unwrap_or(0.0);
                up_to.push(before + f64::from(self.lengths.each()[length].0));
            }
            Rc::new(Shelf { lengths, up_to })
        });
        Some(Rc::clone(shelf))
    }

    /// Draws pair `number` of a shard with words of these frequencies.
    pub fn draw(
        &self,
        words: impl Iterator<Item = u64>,
        number: u64,
        by: &mut Vec<Pulled>,
    ) -> Moved {
        let mut rng = Rng::new(self.seed, 1 << 60 | number);
        let mut moved = Moved::default();
        let mut candidates = Vec::new();
        let documents = self.lengths.documents();
        for of_all in words {
            let run = self.repeats.mean(of_all as f64 / documents);
            let pairs = rng.poisson(of_all as f64 / (f64::from(self.shards) * run));
            if pairs == 0 {
                continue;
            }
            let tokens = rng.runs(pairs, run);
            let row = size_of_byte(size_byte(self.sizes.row(of_all).bytes.round() as u32));
            let place = moved.words as u32;
            moved.words += 1.0;
            let most = u64::from(row) + u64::from(row).min(2 * tokens);
            let is_dear = match self.routing {
                Routing::Pull => true,
                Routing::Push => false,
                _ => tokens * LEAST_BITS / 8 >= most,
            };
            if is_dear {
                self.pull(of_all, tokens, &mut moved, by);
            } else {
                candidates.push(Candidate { place, tokens, run, of_all, row });
            }
        }
        if moved.words > 0.0 && self.routing == Routing::Cheapest {
            moved.sizes = HEAD + moved.words;
        }
        self.route(&candidates, number, &mut rng, &mut moved, by);
        if moved.pulled_tokens > 0.0 {
            let bits = (moved.words / 8.0).ceil();
            moved.routes = HEAD + bits;
            moved.gained += HEAD + bits;
        }
        moved
    }

    fn pull(&self, of_all: u64, tokens: u64, moved: &mut Moved, by: &mut Vec<Pulled>) {
        let row = self.sizes.row(of_all);
        let gained = self.sizes.gained(of_all, tokens);
        moved.rows += row.bytes;
        moved.pulled_entries += row.entries;
        if self.pushes_rows && row.entries <= tokens as f64 {
            moved.gained += row.bytes;
        } else {
            moved.gained += gained.bytes;
            moved.gained_entries += gained.entries;
        }
        moved.pulled_tokens += tokens as f64;
        note(by, of_all, tokens, true);
    }

    fn push(&self, of_all: u64, tokens: u64, moved: &mut Moved, by: &mut Vec<Pulled>) {
        moved.row_entries += self.sizes.row(of_all).entries;
        let topics = self.sizes.topics as usize;
        let held = Rows::<u16>::bytes(topics, std::iter::once(of_all), Density::Auto);
        moved.row_memory += held as f64;
        moved.pushed_tokens += tokens as f64;
        note(by, of_all, tokens, false);
    }

    /// Decides whether candidate words are pulled or pushed.
    fn route(
        &self,
        candidates: &[Candidate],
        pair: u64,
        rng: &mut Rng,
        moved: &mut Moved,
        by: &mut Vec<Pulled>,
    ) {
        let all: f64 = candidates.iter().map(|it| it.tokens as f64).sum();
        let fold = (all / MOST).ceil().max(1.0) as u32;
        let shelf = self.shelf(fold, pair);
        let mut rows: HashMap<(usize, u32), Row> = HashMap::new();
        let mut numbers: HashMap<(usize, u32), u32> = HashMap::new();
        // (length class, variant of the row) of each document.
        let mut documents: Vec<(usize, u32)> = Vec::new();
        let (mut starts, mut of_words, mut tokens, mut pulled) = (vec![0], vec![], vec![], vec![]);
        let mut seen: Vec<&Candidate> = Vec::new();
        let mut unseen: Vec<&Candidate> = Vec::new();
        for word in candidates {
            let mut left = if fold == 1 {
                word.tokens
            } else {
                rng.poisson(word.tokens as f64 / f64::from(fold))
            };
            if left == 0 {
                unseen.push(word);
                continue;
            }
            let mut here: Vec<(u32, u32)> = Vec::new();
            while left > 0 {
                let run = rng.run(word.run).min(left);
                left -= run;
                let (length, which) = match &shelf {
                    Some(shelf) => {
                        let at = rng.unit() * shelf.up_to.last().copied().unwrap_or(0.0);
                        let number = shelf.up_to.partition_point(|&up_to| up_to <= at);
                        (shelf.lengths[number], number as u32)
                    }
                    None => {
                        let length = self.lengths.of_token(rng);
                        let some = self.lengths.each()[length].1;
                        let here = some / f64::from(self.shards) / f64::from(fold);
                        (length, rng.below((here.round() as u32).max(1)))
                    }
                };
                let number = *numbers.entry((length, which)).or_insert_with(|| {
                    documents.push((length, rng.below(VARIANTS)));
                    documents.len() as u32 - 1
                });
                here.push((number, run as u32));
            }
            here.sort_unstable();
            for run in here.chunk_by(|a, b| a.0 == b.0) {
                of_words.push(run[0].0);
                tokens.push(run.iter().map(|it| it.1).sum());
            }
            starts.push(of_words.len());
            pulled.push(word.row + word.row.min(2 * word.tokens.min(1 << 30) as u32));
            seen.push(word);
        }
        let topics = self.sizes.topics;
        let code = RowCode::new(topics);
        for &(length, variant) in &documents {
            rows.entry((length, variant)).or_insert_with(|| {
                let tokens = self.lengths.each()[length].0;
                let row = self.sizes.state.documents.row(topics, tokens.into(), rng);
                let bytes = code.size(&row) as u32;
                (row, bytes)
            });
        }
        let of_document = |key: &(usize, u32)| {
            let length = self.lengths.each()[key.0].0;
            route::Document {
                row: rows[key].1 * fold,
                token_bits: route::token_bits(length) * fold,
                may_be_pushed: length <= self.max_pushed_len,
            }
        };
        if self.routing == Routing::Push {
            pulled.fill(u32::MAX / 2);
        }
        let on_worker: Vec<route::Document> = documents.iter().map(of_document).collect();
        let words = route::Words {
            starts: &starts,
            documents: &of_words,
            tokens: &tokens,
            pulled: &pulled,
        };
        let routes = route::route(&words, &on_worker);
        let mut of_class: HashMap<u32, (u32, u32)> = HashMap::new();
        // (document, index of the word, tokens).
        let mut pushed: Vec<(u32, u32, u32)> = Vec::new();
        for (at, (word, way)) in seen.iter().zip(&routes).enumerate() {
            let of_class = of_class.entry(class(word.of_all)).or_default();
            of_class.0 += 1;
            match way {
                Route::Pull => {
                    of_class.1 += 1;
                    self.pull(word.of_all, word.tokens, moved, by);
                }
                Route::Push => {
                    self.push(word.of_all, word.tokens, moved, by);
                    let places = starts[at]..starts[at + 1];
                    pushed.extend(places.map(|it| (of_words[it], word.place, tokens[it])));
                }
            }
        }
        for word in unseen {
            let (all, pulled) = of_class.get(&class(word.of_all)).copied().unwrap_or((1, 0));
            if rng.happens(f64::from(pulled) / f64::from(all)) {
                self.pull(word.of_all, word.tokens, moved, by);
            } else {
                self.push(word.of_all, word.tokens, moved, by);
            }
        }
        pushed.sort_unstable();
        let documents = pushed.chunk_by(|a, b| a.0 == b.0).map(|run| {
            let row = rows[&documents[run[0].0 as usize]].0.clone();
            let mut tokens = Vec::new();
            for &(_, word, count) in run {
                let mut topic = || row[rng.below(row.len() as u32) as usize].0;
                tokens.extend((0..count).map(|_| (word, topic())));
            }
            Document { row, tokens }
        });
        let documents: Vec<Document> = documents.collect();
        self.write(&documents, f64::from(fold), rng, moved);
    }

    /// Adds `times` × the bytes of these documents and of the answers to them.
    fn write(&self, documents: &[Document], times: f64, rng: &mut Rng, moved: &mut Moved) {
        if documents.is_empty() {
            return;
        }
        let (topics, state) = (self.sizes.topics, self.sizes.state);
        let code = PushCode::new(topics, moved.words as u32, u32::MAX);
        let (mut bytes, mut answer, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for document in documents {
            code.encode(document, &mut bytes);
            moved.documents += times;
            moved.document_entries += times * document.row.len() as f64;
            for &(_, before) in &document.tokens {
                let is_within = rng.happens(state.within);
                after.push(match rng.happens(state.changed) {
                    false => before,
                    true if is_within => {
                        document.row[rng.below(document.row.len() as u32) as usize].0
                    }
                    true => rng.below(topics),
                });
            }
        }
        code.encode_answer(documents, &after, &mut answer);
        moved.pushed += HEAD + times * bytes.len() as f64;
        moved.answers += times * answer.len() as f64;
    }
}

fn note(by: &mut Vec<Pulled>, of_all: u64, tokens: u64, is_pulled: bool) {
    let class = class(of_all) as usize;
    if by.len() <= class {
        by.resize(class + 1, Pulled::default());
    }
    let of = &mut by[class];
    let pulled = f64::from(u8::from(is_pulled));
    of.words += 1.0;
    of.pulled += pulled;
    of.tokens += tokens as f64;
    of.pulled_tokens += pulled * tokens as f64;
}
