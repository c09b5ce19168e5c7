//! The draws of the exact samplers at real sizes, against equation (1) in f64.
//!
//! *One token, many times*: a state is frozen, one token of it is resampled over and over on every
//! instruction set, and the draws are held against its conditional. *One epoch, every token*: an
//! epoch is replayed token by token, and how often a draw kept its topic, took one of its document,
//! one of its word, or another is held against what the conditionals at that moment said; a
//! stale count or leaf anywhere shows as a sum of surprises.

use crate::common::{assert_law, is_long};
use crate::corpora::{made, real, required};
use crate::driver::{PassParams, Whole, entries};
use crate::paranoid::Paranoid;
use lda_core::Corpus;
use lda_core::counts::{Density, Form, RowMut, Rows, TopicIndex, dense16_add};
use lda_core::layout::{Order, RowRun};
use lda_core::sampler::{
    Block, BlockKey, Exact, FPlus, FPlusDoc, GridBlock, Sampler, SparseLda, padded,
};
use lda_core::simd::{Isa, LANES};
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

const BETA: f64 = 0.01;

/// Zipf-like words, some documents long.
fn synthetic() -> Corpus {
    made(300, 500, 20, 120.0)
}

/// A generated corpus, and a real one if `LDA_CORPORA_REQUIRED` asks for it.
fn corpora() -> Vec<Corpus> {
    let mut corpora = vec![synthetic()];
    corpora.extend(required().then(|| real("kos")));
    corpora
}

fn alpha(topics: usize, symmetric: bool) -> Vec<f64> {
    let base = 5.0 / topics as f64;
    (0..topics).map(|k| if symmetric { base } else { base * (1 + k % 7) as f64 / 4.0 }).collect()
}

/// Counts of a state that a few epochs have settled: C_k, and the rows of chosen documents and
/// words.
struct State {
    assignments: Vec<Vec<u32>>,
    totals: Vec<u32>,
}

impl State {
    fn settled(corpus: &Corpus, topics: usize, epochs: u32) -> Self {
        let options = TrainOptions::new(topics as u32)
            .alpha(5.0 / topics as f64)
            .beta(BETA)
            .sampler(SamplerKind::FPlus)
            .seed(9);
        let mut trainer = Trainer::new(corpus, &options).expect("the options are legal");
        for _ in 0..epochs {
            trainer.epoch();
        }
        let assignments = trainer.assignments();
        let mut totals = vec![0; padded(topics)];
        for &topic in assignments.as_slice() {
            totals[topic as usize] += 1;
        }
        let documents = 0..corpus.num_documents();
        let assignments = documents.map(|d| assignments.document(d).to_vec()).collect();
        Self { assignments, totals }
    }

    fn document_row(&self, d: usize) -> Vec<(u32, u32)> {
        tally(self.assignments[d].clone())
    }

    fn word_row(&self, corpus: &Corpus, word: u32) -> Vec<(u32, u32)> {
        let mut topics = Vec::new();
        for (d, z) in self.assignments.iter().enumerate() {
            let mut at = 0;
            for (w, count) in corpus.document(d).iter() {
                if w == word {
                    topics.extend_from_slice(&z[at..at + count as usize]);
                }
                at += count as usize;
            }
        }
        tally(topics)
    }
}

fn tally(mut topics: Vec<u32>) -> Vec<(u32, u32)> {
    topics.sort_unstable();
    topics.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

/// One token with all that its conditional needs.
struct Frozen<'a> {
    job: PassParams,
    totals: &'a [u32],
    document: Vec<(u32, u32)>,
    word: Vec<(u32, u32)>,
    topic: u32,
}

impl Frozen<'_> {
    /// Equation (1), unnormalised.
    fn conditional(&self) -> Vec<f64> {
        let (mut document, mut word) = (vec![0.0; self.job.topics], vec![0.0; self.job.topics]);
        self.document.iter().for_each(|&(k, n)| document[k as usize] = f64::from(n));
        self.word.iter().for_each(|&(k, n)| word[k as usize] = f64::from(n));
        let own = self.topic as usize;
        document[own] -= 1.0;
        word[own] -= 1.0;
        let beta_bar = self.job.beta * self.job.words as f64;
        (0..self.job.topics)
            .map(|k| {
                let total = f64::from(self.totals[k]) - f64::from(u8::from(k == own));
                (document[k] + f64::from(self.job.alpha[k])) * (word[k] + self.job.beta)
                    / (total + beta_bar)
            })
            .collect()
    }

    /// Draws the token `repeats` times from the same state.
    fn draws<T: TopicIndex, S: Sampler<T>>(
        &self,
        sampler: &S,
        dense: bool,
        isa: Isa,
        repeats: u64,
    ) -> Vec<u32> {
        let topics = self.job.topics;
        let kept = sampler.requires().document_rows.expect("a grid sampler keeps document rows");
        let make = |row: &[(u32, u32)], density| {
            let tokens = row.iter().map(|&(_, n)| u64::from(n)).sum();
            Rows::<T>::new(topics, [tokens].into_iter(), density).expect("small")
        };
        // The axis that is scanned takes both forms.
        let visited = sampler.passes()[0].shape.order().expect("a pass over the grid");
        let scanned = |kept, order| match dense && order == visited {
            true => Density::Dense,
            false => kept,
        };
        let mut documents = make(&self.document, scanned(kept, Order::ByWord));
        let mut words = make(&self.word, scanned(Density::Auto, Order::ByDocument));
        documents.write(0, self.document.iter().copied());
        words.write(0, self.word.iter().copied());
        match visited {
            Order::ByWord => documents.adapt(),
            Order::ByDocument => words.adapt(),
        }
        let mut scratch = sampler.scratch(topics);
        let mut job = self.job.clone();
        job.isa = isa;
        let draw = |repeat| {
            job.seed = repeat;
            let mut z = [T::new(self.topic)];
            let block = GridBlock {
                key: BlockKey::default(),
                visits: &[RowRun { row: 0, end: 1 }],
                partner: &[0],
                z: &mut z,
                words: &mut words,
                documents: &mut documents,
                tables: None,
            };
            // Always the same wave: only totals that moved are set back.
            sampler.sample(0, &job.context(self.totals, 1), &mut scratch, Block::Grid(block));
            let new = z[0].get();
            if new != self.topic {
                for rows in [&mut documents, &mut words] {
                    shift(rows, new, self.topic);
                }
            }
            new
        };
        (0..repeats).map(draw).collect()
    }
}

/// Moves a token of row 0 back.
fn shift<T: TopicIndex>(rows: &mut Rows<T>, from: u32, to: u32) {
    match rows.row_mut(0) {
        RowMut::Sparse(mut row) => {
            let at = (1..=row.len()).find(|&i| row.entry(i).0 == from);
            row.decrement_at(at.expect("the topic just drawn is counted"));
        }
        RowMut::Dense16(lines) => dense16_add(lines, from as usize, 1u32.wrapping_neg()),
        RowMut::Dense32(lines) => lines[from as usize / LANES].0[from as usize % LANES] -= 1,
    }
    rows.increment(0, to);
}

/// Tokens worth a look: of the shortest and the longest document, the rarest and the commonest word
/// in each.
fn places(corpus: &Corpus) -> [(usize, usize); 2] {
    let frequency = corpus.word_frequencies();
    let by_length = |d: &usize| (corpus.doc_length(*d), *d);
    let documents = || (0..corpus.num_documents()).filter(|&d| corpus.doc_length(d) >= 10);
    let shortest = documents().min_by_key(by_length).expect("there are documents");
    let longest = documents().max_by_key(by_length).expect("there are documents");
    let pairs = |d: usize| 0..corpus.document(d).words.len();
    let tokens = |d: usize, i: &usize| frequency[corpus.document(d).words[*i] as usize];
    [
        (shortest, pairs(shortest).max_by_key(|i| tokens(shortest, i)).expect("it has words")),
        (longest, pairs(longest).min_by_key(|i| tokens(longest, i)).expect("it has words")),
    ]
}

/// Draws one token of several states on the widest instruction set, and holds the others against
/// it draw by draw: `repeats` times, and with `LDA_LONG` in the environment a million times each at
/// any K; of the largest K one state per corpus and prior then has to do.
fn one_token<T: TopicIndex, S: Sampler<T>>(sampler: S, topics: usize, repeats: u64, twins: u64) {
    let long = is_long();
    let repeats = if long { repeats.max(1_000_000) } else { repeats };
    let one = long && topics > 1000;
    for corpus in corpora() {
        let state = State::settled(&corpus, topics, 4);
        for symmetric in [true, false] {
            let mut job = PassParams::new(&alpha(topics, symmetric), BETA, corpus.num_words());
            job.epoch = 1;
            for (d, pair) in places(&corpus).into_iter().take(if one { 1 } else { 2 }) {
                let document = corpus.document(d);
                let at: u32 = document.counts[..pair].iter().sum();
                let frozen = Frozen {
                    job: job.clone(),
                    totals: &state.totals,
                    document: state.document_row(d),
                    word: state.word_row(&corpus, document.words[pair]),
                    topic: state.assignments[d][at as usize],
                };
                let conditional = frozen.conditional();
                for &dense in if one { &[false][..] } else { &[false, true] } {
                    let draws = frozen.draws(&sampler, dense, Isa::detect(), repeats);
                    let mut seen = vec![0; topics];
                    draws.iter().for_each(|&k| seen[k as usize] += 1);
                    assert_law(&seen, &conditional);
                    for isa in Isa::available() {
                        let twin = frozen.draws(&sampler, dense, isa, twins);
                        assert!(twin == draws[..twins as usize], "{isa} draws otherwise");
                    }
                }
            }
        }
    }
}

macro_rules! one_token_of {
    ($($name:ident: $sampler:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn one_token_of_17_topics() {
                one_token::<u16, _>($sampler, 17, 200_000, 20_000);
            }

            #[test]
            fn one_token_of_100_topics() {
                one_token::<u16, _>($sampler, 100, 200_000, 20_000);
            }

            #[test]
            fn one_token_of_1000_topics() {
                one_token::<u16, _>($sampler, 1000, 100_000, 10_000);
            }

            #[test]
            fn one_token_of_65537_topics() {
                one_token::<u32, _>($sampler, 65_537, 5_000, 100);
            }

            #[test]
            fn every_token_of_an_epoch() {
                every_token::<u16, _>($sampler, 17, Start::Random);
                every_token::<u16, _>($sampler, 100, Start::Random);
                every_token::<u16, _>($sampler, 1000, Start::Random);
                every_token::<u32, _>($sampler, 300, Start::Random);
            }
        }
    )*};
}

one_token_of! {
    exact: Exact;
    f_plus: FPlus;
    f_plus_doc: FPlusDoc;
    sparse: SparseLda;
}

/// 200,000 draws at 65,537 topics, or a million with `LDA_LONG` in the environment, where setting up a
/// block for one token is too expensive: each block has two thousand copies of a token, each with its
/// own document and word. They interact through the totals only, which are so large that it does not
/// matter.
#[test]
fn over_65537_topics_in_blocks() {
    in_blocks(FPlus);
    in_blocks(FPlusDoc);
    in_blocks(SparseLda);
}

fn in_blocks<S: Sampler<u32>>(sampler: S) {
    const TOPICS: usize = 65_537;
    const TWINS: usize = 2000;
    let mut totals: Vec<u32> =
        (0..TOPICS).map(|k| 10_000_000 + k as u32 * 7919 % 30_000_011).collect();
    totals.resize(padded(TOPICS), 0);
    let document: Vec<(u32, u32)> =
        (0..40).map(|i| (i * 1637 + 5, 1 + i % 4)).chain([(65_536, 2)]).collect();
    let word: Vec<(u32, u32)> =
        (0..300).map(|i| (i * 218 + 5, 1 + i % 9)).chain([(65_536, 7)]).collect();
    for symmetric in [true, false] {
        // Most of the mass in the prior part, so that the tree is what draws.
        let mut job = PassParams::new(&alpha(TOPICS, symmetric), 2.0, 500);
        job.alpha.iter_mut().for_each(|a| *a *= 10.0);
        let topic = 65_536;
        let (document, word) = (document.clone(), word.clone());
        let mut frozen = Frozen { job, totals: &totals, document, word, topic };
        let rows = |row: &[(u32, u32)]| {
            let tokens: u32 = row.iter().map(|&(_, n)| n).sum();
            Rows::<u32>::new(TOPICS, [u64::from(tokens); TWINS].into_iter(), Density::Auto)
                .expect("small")
        };
        let (mut documents, mut words) = (rows(&frozen.document), rows(&frozen.word));
        let visits: Vec<RowRun> =
            (0..TWINS as u32).map(|i| RowRun { row: i, end: i + 1 }).collect();
        let partner: Vec<u32> = (0..TWINS as u32).collect();
        let mut scratch = sampler.scratch(TOPICS);
        let mut seen = vec![0; TOPICS];
        for repeat in 0..if is_long() { 500 } else { 100 } {
            for i in 0..TWINS {
                documents.write(i, frozen.document.iter().copied());
                words.write(i, frozen.word.iter().copied());
            }
            let mut z = vec![topic; TWINS];
            let (visits, partner, z) = (&visits, &partner, &mut z);
            let key = BlockKey::default();
            let (words, documents) = (&mut words, &mut documents);
            let block = GridBlock { key, visits, partner, z, words, documents, tables: None };
            frozen.job.seed = repeat;
            let cx = frozen.job.context(&totals, 1);
            sampler.sample(0, &cx, &mut scratch, Block::Grid(block));
            z.iter().for_each(|&k| seen[k as usize] += 1);
        }
        assert_law(&seen, &frozen.conditional());
    }
}

/// Classes of topics a draw can fall into.
const CLASSES: usize = 8;

/// First topics of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    Random,
    /// All the same, under a prior that spreads them at once.
    One,
}

/// Long documents that begin with one topic have lists for rows, which outgrow their memory.
#[test]
fn f_plus_where_lists_become_dense() {
    assert!(every_token::<u16, _>(FPlus, 300, Start::One) > 0);
    assert!(every_token::<u32, _>(FPlus, 300, Start::One) > 0);
    assert!(every_token::<u16, _>(FPlusDoc, 300, Start::One) > 0);
    assert!(every_token::<u32, _>(SparseLda, 300, Start::One) > 0);
}

/// Replays epochs and holds the classes of all draws against their conditionals. Returns how many
/// rows of the axis that is scanned were lists and became dense.
fn every_token<T: TopicIndex, S: Sampler<T>>(sampler: S, topics: usize, start: Start) -> usize {
    let corpus = synthetic();
    let sampler = Paranoid(sampler);
    let (alpha, beta) = match start {
        Start::Random => (alpha(topics, false), BETA),
        Start::One => (vec![5.0; topics], 5.0),
    };
    let mut outgrown = 0;
    let mut job = PassParams::new(&alpha, beta, corpus.num_words());
    job.seed = topics as u64;
    let order = sampler.passes()[0].shape.order();
    let mut whole = Whole::<T>::one_set(&corpus, topics, 1, sampler.requires(), 0);
    whole.initialise(&corpus, 1);
    if start == Start::One {
        (0..whole.places.len()).for_each(|i| whole.set_topic(i, 1));
        whole.recount();
    }
    let mut scratch = sampler.scratch(topics);
    let mut by_slot: Vec<usize> = (0..whole.places.len()).collect();
    by_slot.sort_by_key(|&i| whole.places[i].slot);
    let (mut surprise, mut variance) = ([0.0; CLASSES], [0.0; CLASSES]);
    let beta_bar = beta * corpus.num_words() as f64;
    for epoch in 1..=if start == Start::One { 1 } else { 3 } {
        whole.adapt(0, order);
        let mut before = whole.clone();
        job.epoch = epoch;
        whole.epoch(&sampler, &mut scratch, &job, 0);
        fn scanned<T>(whole: &Whole<T>, order: Option<Order>) -> &Rows<T> {
            match order {
                Some(Order::ByDocument) => &whole.word_rows[0],
                _ => &whole.sets[0].rows[0],
            }
        }
        let form = |whole: &Whole<T>, row| scanned(whole, order).form_of(row);
        outgrown += (0..scanned(&whole, order).len())
            .filter(|&row| form(&before, row) == Form::Sparse && form(&whole, row) != Form::Sparse)
            .count();
        let lists = |rows: &Rows<T>| -> Vec<Vec<u32>> {
            let dense = |row| {
                let mut counts = vec![0; topics];
                entries(rows, row).iter().for_each(|&(k, n)| counts[k as usize] = n);
                counts
            };
            (0..rows.len()).map(dense).collect()
        };
        let (mut documents, mut words) =
            (lists(&before.sets[0].rows[0]), lists(&before.word_rows[0]));
        for &i in &by_slot {
            let place = whole.places[i];
            let (old, new) = (before.topic(i) as usize, whole.topic(i) as usize);
            let (document, word) = (&mut documents[place.document], &mut words[place.word]);
            document[old] -= 1;
            word[old] -= 1;
            before.totals[old] -= 1;
            let class = |k: usize| {
                usize::from(k == old)
                    + 2 * usize::from(document[k] > 0)
                    + 4 * usize::from(word[k] > 0)
            };
            let mut law = [0.0; CLASSES];
            for k in 0..topics {
                law[class(k)] += (f64::from(document[k]) + f64::from(job.alpha[k]))
                    * (f64::from(word[k]) + beta)
                    / (f64::from(before.totals[k]) + beta_bar);
            }
            let sum: f64 = law.iter().sum();
            for (c, weight) in law.into_iter().enumerate() {
                let p = weight / sum;
                surprise[c] += f64::from(u8::from(c == class(new))) - p;
                variance[c] += p * (1.0 - p);
            }
            document[new] += 1;
            word[new] += 1;
            before.totals[new] += 1;
        }
    }
    // Sums of differences from conditional means are near normal where enough is summed. Beyond 5.4
    // sigma lies 7e-8 of it, and there are eight classes.
    let judged: Vec<usize> = (0..CLASSES).filter(|&c| variance[c] > 100.0).collect();
    assert!(judged.len() >= 3, "variances {variance:?}");
    for c in judged {
        let sigmas = surprise[c] / f64::sqrt(variance[c]);
        assert!(sigmas.abs() < 5.4, "K = {topics}, class {c:03b}: {sigmas:+.2} sigma");
    }
    outgrown
}
