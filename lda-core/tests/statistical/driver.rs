//! A host made by hand: a whole corpus, its rows and its assignments, lent block by block.
//!
//! It does what the crate's own driver does, through public types only and on one thread. Tests use
//! it where they must set the assignments, see every block, or put something between the host and
//! the sampler.

use lda_core::Corpus;
use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::{InverseIndex, Order, TokenLayout, WordRanges};
use lda_core::random::{Purpose, StreamKey};
use lda_core::sampler::{
    Block, BlockKey, Column, Context, DocumentBlock, GridBlock, OtherTokens, Outcome, Requires,
    Sampler, Shape, Warp, WordBlock, WordTables, padded,
};
use lda_core::simd::Isa;

/// Parameters that are constant during an epoch.
#[derive(Clone, Debug)]
pub(crate) struct PassParams {
    pub topics: usize,
    /// Padded.
    pub alpha: Vec<f32>,
    pub alpha_sum: f64,
    pub alpha_symmetric: bool,
    pub beta: f64,
    pub words: usize,
    pub seed: u64,
    pub epoch: u32,
    /// Proposals a token: stored, pending and to be drawn alike.
    pub mh_steps: usize,
    pub isa: Isa,
}

impl PassParams {
    pub(crate) fn new(alpha: &[f64], beta: f64, words: usize) -> Self {
        let mut padded_alpha: Vec<f32> = alpha.iter().map(|&a| a as f32).collect();
        padded_alpha.resize(padded(alpha.len()), 0.0);
        Self {
            topics: alpha.len(),
            alpha: padded_alpha,
            alpha_sum: alpha.iter().sum(),
            alpha_symmetric: alpha.iter().all(|a| *a == alpha[0]),
            beta,
            words,
            seed: 0,
            epoch: 1,
            mh_steps: 0,
            isa: Isa::detect(),
        }
    }

    pub(crate) fn context<'a>(&'a self, totals: &'a [u32], wave: u64) -> Context<'a> {
        Context {
            topics: self.topics,
            alpha: &self.alpha,
            alpha_sum: self.alpha_sum,
            alpha_symmetric: self.alpha_symmetric,
            beta: self.beta,
            beta_bar: self.beta * self.words as f64,
            totals,
            wave,
            seed: self.seed,
            epoch: self.epoch,
            round: 0,
            again: 0,
            mh_steps: self.mh_steps,
            isa: self.isa,
        }
    }
}

/// Documents that one sampler works on, and their tokens.
#[derive(Clone, Debug)]
pub(crate) struct Set<T> {
    pub slots: TokenLayout,
    /// 1 + M values a slot.
    pub tokens: Vec<T>,
    pub stride: usize,
    /// C_d by document range; empty where the sampler keeps none.
    pub rows: Vec<Rows<T>>,
    pub inverse: Option<InverseIndex>,
}

/// The rows that are sorted before each wave, as they would be after a trip through an
/// encoding. Those that are scanned choose their form again then, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    Neither,
    Words,
    Documents,
}

/// The rows that count one token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub set: usize,
    pub slot: usize,
    pub order: Order,
    pub document_range: usize,
    pub document: usize,
    pub word_range: usize,
    pub word: usize,
}

/// A whole corpus.
#[derive(Clone, Debug)]
pub(crate) struct Whole<T> {
    pub topics: usize,
    pub words: WordRanges,
    /// C_w by word range; empty where no sampler keeps them.
    pub word_rows: Vec<Rows<T>>,
    /// Stale tables by word range; empty where no sampler asks.
    pub tables: Vec<WordTables<T>>,
    /// C_k, padded.
    pub totals: Vec<u32>,
    pub sets: Vec<Set<T>>,
    /// Every token: documents in order, words ascending in each.
    pub places: Vec<Place>,
    /// Indices into `places`, sets one after the other, each by slot.
    by_slot: Vec<usize>,
    pub wave: u64,
    pub sorted: Sorted,
}

impl<T: TopicIndex> Whole<T> {
    /// Lays out `sets`: documents, and what their sampler requires. All topics are 0; nothing is
    /// counted yet.
    pub(crate) fn new(
        corpus: &Corpus,
        topics: usize,
        ranges: usize,
        sets: &[(Vec<u32>, Requires)],
        mh_steps: usize,
    ) -> Self {
        let words = WordRanges::new(&corpus.word_frequencies(), ranges);
        let word_rows = if sets.iter().any(|(_, requires)| requires.word_rows) {
            (0..ranges)
                .map(|range| {
                    let tokens = words.frequencies(range).iter().copied();
                    Rows::new(topics, tokens, Density::Auto).expect("small")
                })
                .collect()
        } else {
            Vec::new()
        };
        let tables = if sets.iter().any(|(_, requires)| requires.word_tables) {
            (0..ranges)
                .map(|range| WordTables::new(topics, words.frequencies(range).iter().copied()))
                .collect()
        } else {
            Vec::new()
        };
        let sets = sets
            .iter()
            .map(|(documents, requires)| {
                let slots = TokenLayout::new(corpus, documents, &words, requires.token_order);
                let stride = if requires.proposals { 1 + mh_steps } else { 1 };
                let rows = requires.document_rows.map_or(Vec::new(), |density| {
                    (0..ranges)
                        .map(|range| {
                            let tokens = slots.lengths(range).iter().map(|&n| u64::from(n));
                            Rows::new(topics, tokens, density).expect("small")
                        })
                        .collect()
                });
                let inverse = requires.proposals.then(|| InverseIndex::new(&slots));
                let tokens = vec![T::default(); slots.num_tokens() * stride];
                Set { slots, tokens, stride, rows, inverse }
            })
            .collect();
        let mut whole = Self {
            topics,
            words,
            word_rows,
            tables,
            totals: vec![0; padded(topics)],
            sets,
            places: Vec::new(),
            by_slot: Vec::new(),
            wave: 0,
            sorted: Sorted::Neither,
        };
        whole.places = whole.find_places(corpus);
        whole.by_slot = (0..whole.places.len()).collect();
        whole.by_slot.sort_by_key(|&i| (whole.places[i].set, whole.places[i].slot));
        whole
    }

    /// One set of all documents.
    pub(crate) fn one_set(
        corpus: &Corpus,
        topics: usize,
        ranges: usize,
        requires: Requires,
        mh_steps: usize,
    ) -> Self {
        let all = (0..corpus.num_documents() as u32).collect();
        Self::new(corpus, topics, ranges, &[(all, requires)], mh_steps)
    }

    fn find_places(&self, corpus: &Corpus) -> Vec<Place> {
        let mut by_document = vec![Vec::new(); corpus.num_documents()];
        for (s, set) in self.sets.iter().enumerate() {
            for range in 0..set.slots.num_ranges() {
                let base = set.slots.range_slots(range).start;
                let documents = set.slots.documents(range);
                set.slots.for_each_pair(corpus, &self.words, range, |local, word, slots| {
                    let (word_range, row) = self.words.locate(word);
                    let slots = base + slots.start as usize..base + slots.end as usize;
                    let lies = |order: &Order| {
                        set.slots.block(range, word_range, *order).slots.contains(&slots.start)
                    };
                    let order = Order::ALL.into_iter().find(lies).expect("a block has the slot");
                    by_document[documents[local] as usize].extend(slots.map(|slot| Place {
                        set: s,
                        slot,
                        order,
                        document_range: range,
                        document: local,
                        word_range,
                        word: row,
                    }));
                });
            }
        }
        by_document.concat()
    }

    /// Draws the first topics as the crate's driver does.
    pub(crate) fn initialise(&mut self, corpus: &Corpus, seed: u64) {
        let mut token = 0;
        for d in 0..corpus.num_documents() {
            let purpose = Purpose::Initialise;
            let key = StreamKey { seed, epoch: 0, pass: 0, block: d as u64, purpose };
            let mut rng = key.stream();
            for _ in 0..corpus.document(d).len() {
                self.set_topic(token, rng.below(self.topics as u32));
                token += 1;
            }
        }
        self.recount();
    }

    /// Sets the topic of token `i` of `places` and its pending proposals; counts are not touched.
    pub(crate) fn set_topic(&mut self, i: usize, topic: u32) {
        let Place { set, slot, .. } = self.places[i];
        let Set { tokens, stride, .. } = &mut self.sets[set];
        tokens[slot * *stride..(slot + 1) * *stride].fill(T::new(topic));
    }

    /// Topic of token `i` of `places`.
    pub(crate) fn topic(&self, i: usize) -> u32 {
        let Place { set, slot, .. } = self.places[i];
        self.sets[set].tokens[slot * self.sets[set].stride].get()
    }

    /// All topics, documents in order and words ascending in each.
    pub(crate) fn assignments(&self) -> Vec<u32> {
        (0..self.places.len()).map(|i| self.topic(i)).collect()
    }

    /// Recounts everything from the assignments: documents in the order of their tokens, words
    /// by slot, as the crate's driver does (the order of a sparse row's entries decides draws).
    pub(crate) fn recount(&mut self) {
        self.totals.fill(0);
        self.word_rows.iter_mut().for_each(Rows::clear_all);
        self.sets.iter_mut().flat_map(|set| &mut set.rows).for_each(Rows::clear_all);
        for i in 0..self.places.len() {
            let topic = self.topic(i);
            let place = self.places[i];
            self.totals[topic as usize] += 1;
            if let Some(rows) = self.sets[place.set].rows.get_mut(place.document_range) {
                rows.increment(place.document, topic);
            }
        }
        for &i in &self.by_slot {
            let Place { word_range, word, .. } = self.places[i];
            let topic = self.topic(i);
            if let Some(rows) = self.word_rows.get_mut(word_range) {
                rows.increment(word, topic);
            }
        }
    }

    /// One epoch of one sampler over set `set`.
    pub(crate) fn epoch<S: Sampler<T>>(
        &mut self,
        sampler: &S,
        scratch: &mut S::Scratch,
        job: &PassParams,
        set: usize,
    ) {
        for pass in 0..sampler.passes().len() {
            self.one_pass(sampler, scratch, job, set, pass);
        }
    }

    /// One pass of one sampler over set `set`.
    pub(crate) fn one_pass<S: Sampler<T>>(
        &mut self,
        sampler: &S,
        scratch: &mut S::Scratch,
        job: &PassParams,
        set: usize,
        pass: usize,
    ) {
        let shape = sampler.passes()[pass].shape;
        self.pass(shape, job, set, |cx, block| sampler.sample(pass, cx, scratch, block));
    }

    /// One epoch of the hybrid: WarpLDA over set 1 by documents and then by words, F+LDA over
    /// set 0, as the crate's driver orders them.
    pub(crate) fn hybrid_epoch<F: Sampler<T>, W: Sampler<T>>(
        &mut self,
        short: (&F, &mut F::Scratch),
        long: (&W, &mut W::Scratch),
        job: &PassParams,
    ) {
        self.one_pass(long.0, long.1, job, 1, Warp::DOCUMENTS);
        self.one_pass(long.0, long.1, job, 1, Warp::WORDS);
        self.epoch(short.0, short.1, job, 0);
    }

    /// One pass over set `set`: cuts it into blocks and hands each to `lend`.
    pub(crate) fn pass(
        &mut self,
        shape: Shape,
        job: &PassParams,
        set: usize,
        mut lend: impl FnMut(&Context<'_>, Block<'_, T>) -> Outcome,
    ) {
        let ranges = self.words.num_ranges();
        let order = shape.order();
        let waves = if order.is_some() { ranges } else { 1 };
        self.adapt(set, order);
        self.tables.iter_mut().for_each(WordTables::forget);
        for step in 0..waves {
            self.wave += 1;
            match self.sorted {
                Sorted::Neither => {}
                Sorted::Words => {
                    self.word_rows.iter_mut().for_each(sort_rows);
                    if order == Some(Order::ByDocument) {
                        self.adapt(set, order);
                    }
                }
                Sorted::Documents => {
                    self.sets[set].rows.iter_mut().for_each(sort_rows);
                    if order == Some(Order::ByWord) {
                        self.adapt(set, order);
                    }
                }
            }
            let totals = self.totals.clone();
            let cx = job.context(&totals, self.wave);
            for range in 0..ranges {
                let outcome = match shape {
                    Shape::Grid(order) => {
                        lend(&cx, self.grid_block(set, order, range, (range + step) % ranges))
                    }
                    Shape::WordRanges => lend(&cx, self.word_block(set, range)),
                    Shape::DocumentRanges => lend(&cx, self.document_block(set, range)),
                };
                for (topic, by) in outcome.totals {
                    let total = &mut self.totals[topic as usize];
                    *total = total.checked_add_signed(by).expect("a total stays at or above 0");
                }
            }
        }
    }

    /// Gives the rows that are scanned their form, as the crate's driver does.
    pub(crate) fn adapt(&mut self, set: usize, order: Option<Order>) {
        match order {
            Some(Order::ByWord) => self.sets[set].rows.iter_mut().for_each(Rows::adapt),
            Some(Order::ByDocument) => self.word_rows.iter_mut().for_each(Rows::adapt),
            None => {}
        }
    }

    fn grid_block(
        &mut self,
        set: usize,
        order: Order,
        range: usize,
        word_range: usize,
    ) -> Block<'_, T> {
        let Set { slots, tokens, rows, .. } = &mut self.sets[set];
        let bounds = slots.block(range, word_range, order);
        let key = BlockKey { shard: set as u16, documents: range as u16, words: word_range as u16 };
        Block::Grid(GridBlock {
            key,
            visits: &slots.visits()[bounds.visits],
            partner: &slots.partner()[bounds.slots.clone()],
            z: &mut tokens[bounds.slots],
            words: &mut self.word_rows[word_range],
            documents: &mut rows[range],
            tables: self.tables.get_mut(word_range),
        })
    }

    fn word_block(&mut self, set: usize, word_range: usize) -> Block<'_, T> {
        let ranges = self.words.num_ranges();
        let (before, rest) = self.sets.split_at_mut(set);
        let (this, after) = rest.split_first_mut().expect("the set exists");
        let Set { slots, tokens, stride, .. } = this;
        let mut tokens = tokens.as_mut_slice();
        let (mut columns, mut taken) = (Vec::new(), 0);
        for range in 0..ranges {
            let bounds = slots.block(range, word_range, Order::ByWord);
            let (start, end) = (bounds.slots.start * *stride, bounds.slots.end * *stride);
            tokens.split_off_mut(..start - taken).expect("blocks ascend");
            taken = end;
            columns.push(Column {
                visits: &slots.visits()[bounds.visits],
                tokens: tokens.split_off_mut(..end - start).expect("inside the tokens"),
            });
        }
        let others = before.iter().chain(after.iter()).flat_map(|other| {
            assert_eq!(other.stride, 1, "tokens of another sampler hold no proposals");
            (0..ranges).map(move |range| {
                let bounds = other.slots.block(range, word_range, Order::ByWord);
                let visits = &other.slots.visits()[bounds.visits];
                OtherTokens { visits, z: &other.tokens[bounds.slots] }
            })
        });
        let others = others.collect();
        Block::Words(WordBlock {
            key: BlockKey { shard: set as u16, documents: 0, words: word_range as u16 },
            num_words: self.words.words(word_range).len(),
            columns,
            others,
            rows: self.word_rows.get_mut(word_range),
            counted: false,
        })
    }

    fn document_block(&mut self, set: usize, range: usize) -> Block<'_, T> {
        let Set { slots, tokens, stride, inverse, .. } = &mut self.sets[set];
        let bounds = slots.range_slots(range);
        Block::Documents(DocumentBlock {
            key: BlockKey { shard: set as u16, documents: range as u16, words: 0 },
            lengths: slots.lengths(range),
            inverse: inverse.as_ref().expect("a sampler by document asks for it").range(range),
            tokens: &mut tokens[bounds.start * *stride..bounds.end * *stride],
            moving: None,
        })
    }
}

/// Entries of row `row`, in its own order.
pub(crate) fn entries<T: TopicIndex>(rows: &Rows<T>, row: usize) -> Vec<(u32, u32)> {
    let mut entries = Vec::new();
    rows.for_each(row, |topic, count| entries.push((topic, count)));
    entries
}

/// Puts the entries of every row in ascending order.
fn sort_rows<T: TopicIndex>(rows: &mut Rows<T>) {
    for row in 0..rows.len() {
        let mut list = entries(rows, row);
        list.sort_unstable();
        rows.write(row, list.into_iter());
    }
}
