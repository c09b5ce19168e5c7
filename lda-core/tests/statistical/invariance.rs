//! One epoch of each sampler against the enumerated law of its successor.
//!
//! Assignments are drawn from the exact posterior of a tiny corpus, one epoch is run, and pairs of
//! (state before, state after) are counted: a chi-square over all transitions at once. With one
//! block an exact sampler must leave the posterior as it was; with 2 × 2 blocks, and for WarpLDA
//! always, the chain is the declared one and its enumerated next law is what must come out.
//!
//! Two topics would put every row in its dense form. So the same laws are also run with the two
//! topics hidden among 130 whose α is 0: no token can ever take those, the law is the same, and
//! rows are sparse.

use crate::common::{assert_law, draws};
use crate::corpora::locate;
use crate::driver::{PassParams, Place, Whole};
use crate::enumerate::{A, ALPHA, B, BETA, C, Chain, TOPICS, Toy, WarpRule};
use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::counts::TopicIndex;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::sampler::{
    AliasLda, Exact, FPlus, FPlusDoc, LightLda, Proposals, Sampler, SparseLda, Warp, Zen, ZenDoc,
    ZenHybrid,
};

/// Epochs that a law is judged by, with `LDA_LONG`; see [`draws`].
const REPEATS: u64 = 1_000_000;

/// The two enumerated topics among all topics.
#[derive(Clone, Copy, Debug)]
struct Topics {
    all: usize,
    live: [u32; TOPICS],
}

const TWO: Topics = Topics { all: 2, live: [0, 1] };
const HIDDEN: Topics = Topics { all: 130, live: [3, 129] };
/// For WarpLDA, whose word proposals spread over all topics: few enough that some still fit.
const FEW: Topics = Topics { all: 18, live: [3, 17] };

impl Topics {
    fn job(self, toy: Toy) -> PassParams {
        let mut alpha = vec![0.0; self.all];
        for (k, live) in self.live.into_iter().enumerate() {
            alpha[live as usize] = ALPHA[k];
        }
        PassParams::new(&alpha, BETA, toy.num_words)
    }

    /// The enumerated topic of an id.
    fn digit(self, topic: u32) -> usize {
        self.live.iter().position(|&live| live == topic).expect("a topic of weight 0 was drawn")
    }
}

fn corpus(toy: Toy) -> Corpus {
    let mut builder = CorpusBuilder::new().num_words(toy.num_words as u32);
    for d in 0..toy.num_documents() {
        let words = toy.tokens.iter().filter(|token| token.0 == d).map(|token| token.1 as u32);
        builder.push_tokens(words).expect("ids are in range");
    }
    builder.build().expect("there are tokens")
}

/// Waves of blocks of the tokens to `keep`, each in the order of its slots.
fn waves<T: TopicIndex>(
    whole: &Whole<T>,
    ranges: usize,
    keep: impl Fn(usize) -> bool,
) -> Vec<Vec<Vec<usize>>> {
    let block = |documents: usize, words: usize| {
        let mut tokens: Vec<usize> = (0..whole.places.len())
            .filter(|&i| {
                let place = whole.places[i];
                keep(i) && (place.document_range, place.word_range) == (documents, words)
            })
            .collect();
        tokens.sort_by_key(|&i| whole.places[i].slot);
        tokens
    };
    let wave = |step: usize| (0..ranges).map(|i| block(i, (i + step) % ranges)).collect();
    (0..ranges).map(wave).collect()
}

/// Runs an exact sampler and holds its transitions against the enumerated grid chain.
fn gibbs<T: TopicIndex, S: Sampler<T>>(sampler: S, toy: Toy, topics: Topics, ranges: usize) {
    let mut whole = Whole::<T>::one_set(&corpus(toy), topics.all, ranges, sampler.requires(), 0);
    let chain = toy.gibbs_chain(&waves(&whole, ranges, |_| true));
    let mut scratch = sampler.scratch(topics.all);
    transitions(toy, topics, &mut whole, &chain, |whole, job, _, _| {
        whole.epoch(&sampler, &mut scratch, job, 0);
    });
}

/// Draws states from the posterior, moves each by `epoch` and compares all transitions with `chain`
/// and the state after with the posterior's successor.
fn transitions<T: TopicIndex>(
    toy: Toy,
    topics: Topics,
    whole: &mut Whole<T>,
    chain: &Chain,
    mut epoch: impl FnMut(&mut Whole<T>, &PassParams, usize, &mut Xoshiro256PlusPlus),
) {
    let (posterior, _) = toy.posterior();
    let cumulative: Vec<f64> = posterior
        .iter()
        .scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        })
        .collect();
    let states = toy.num_states();
    let mut job = topics.job(toy);
    let mut rng = Xoshiro256PlusPlus::from_seed(17);
    let mut seen = vec![0; states * states];
    for repeat in 0..draws(REPEATS) {
        let from = locate(&cumulative, rng.next_f64());
        for j in 0..toy.tokens.len() {
            whole.set_topic(j, topics.live[toy.topic(from, j)]);
        }
        whole.recount();
        job.seed = repeat;
        epoch(whole, &job, from, &mut rng);
        let to = (0..toy.tokens.len())
            .fold(0, |to, j| toy.with_topic(to, j, topics.digit(whole.topic(j))));
        seen[from * states + to] += 1;
    }
    let expected: Vec<f64> = posterior
        .iter()
        .zip(&chain.0)
        .flat_map(|(p, law)| law.iter().map(move |q| p * q))
        .collect();
    assert_law(&seen, &expected);
    let after: Vec<u64> =
        (0..states).map(|to| (0..states).map(|from| seen[from * states + to]).sum()).collect();
    assert_law(&after, &chain.apply(&posterior));
}

/// A test for each exact sampler: every corpus, one block and 2 × 2.
macro_rules! exact_samplers {
    ($($name:ident: $sampler:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn one_block_two_topics() {
                for toy in [A, B, C] {
                    gibbs::<u16, _>($sampler, toy, TWO, 1);
                }
            }

            #[test]
            fn four_blocks_two_topics() {
                for toy in [A, B, C] {
                    gibbs::<u16, _>($sampler, toy, TWO, 2);
                }
            }

            #[test]
            fn one_block_hidden_among_130() {
                for toy in [A, B, C] {
                    gibbs::<u16, _>($sampler, toy, HIDDEN, 1);
                }
            }

            #[test]
            fn four_blocks_hidden_among_130_wide() {
                for toy in [A, B, C] {
                    gibbs::<u32, _>($sampler, toy, HIDDEN, 2);
                }
            }
        }
    )*};
}

exact_samplers! {
    exact: Exact;
    f_plus: FPlus;
    f_plus_doc: FPlusDoc;
    sparse: SparseLda;
}

/// Sets a token's pending proposals, each drawn from `law`; what is left of it goes to a topic that
/// can never be taken.
fn set_pending<T: TopicIndex>(
    whole: &mut Whole<T>,
    topics: Topics,
    token: usize,
    law: [f64; TOPICS],
    rng: &mut Xoshiro256PlusPlus,
) {
    let Place { set, slot, .. } = whole.places[token];
    let set = &mut whole.sets[set];
    for pending in &mut set.tokens[slot * set.stride + 1..(slot + 1) * set.stride] {
        let u = rng.next_f64();
        *pending = T::new(match u {
            _ if u < law[0] => topics.live[0],
            _ if u < law[0] + law[1] => topics.live[1],
            _ => {
                (0..topics.all as u32).find(|k| !topics.live.contains(k)).unwrap_or(topics.live[1])
            }
        });
    }
}

/// A token's first pending proposal; `TOPICS` stands for all topics that cannot be taken.
fn pending<T: TopicIndex>(whole: &Whole<T>, topics: Topics, token: usize) -> usize {
    let Place { set, slot, .. } = whole.places[token];
    let set = &whole.sets[set];
    let topic = set.tokens[slot * set.stride + 1].get();
    topics.live.iter().position(|&live| live == topic).unwrap_or(TOPICS)
}

/// WarpLDA's epoch, and the proposals that it leaves behind.
fn warp(sampler: Warp, toy: Toy, topics: Topics, ranges: usize, steps: usize) {
    let corpus = corpus(toy);
    let requires = Sampler::<u16>::requires(&sampler);
    let mut whole = Whole::<u16>::one_set(&corpus, topics.all, ranges, requires, steps);
    let rule = WarpRule { steps, count_own: sampler.count_own, topics: topics.all };
    let chain = toy.warp_chain(rule);
    let mut scratch = Sampler::<u16>::scratch(&sampler, topics.all);
    let (states, n) = (toy.num_states(), toy.tokens.len());
    // (state after, token, its first pending proposal), and after the word pass alone.
    let mut left = vec![0; states * n * (TOPICS + 1)];
    let mut left_by_words = left.clone();
    let tally = |left: &mut [u64], whole: &Whole<u16>| {
        let state =
            (0..n).fold(0, |state, j| toy.with_topic(state, j, topics.digit(whole.topic(j))));
        for j in 0..n {
            left[(state * n + j) * (TOPICS + 1) + pending(whole, topics, j)] += 1;
        }
    };
    transitions(toy, topics, &mut whole, &chain, |whole, job, from, rng| {
        for j in 0..n {
            set_pending(whole, topics, j, toy.document_proposal(from, j), rng);
        }
        let mut job = job.clone();
        job.mh_steps = steps;
        whole.one_pass(&sampler, &mut scratch, &job, 0, Warp::WORDS);
        tally(&mut left_by_words, whole);
        whole.one_pass(&sampler, &mut scratch, &job, 0, Warp::DOCUMENTS);
        tally(&mut left, whole);
    });
    for j in 0..n {
        for state in 0..states {
            let at = (state * n + j) * (TOPICS + 1);
            let q = toy.document_proposal(state, j);
            fits(&left[at..at + TOPICS + 1], &[q[0], q[1], 0.0]);
            let q = toy.word_proposal(state, j, topics.all);
            let dead = if topics.all > TOPICS { 1.0 - q[0] - q[1] } else { 0.0 };
            fits(&left_by_words[at..at + TOPICS + 1], &[q[0], q[1], dead]);
        }
    }
}

/// [`assert_law`], for states that may hardly have been seen.
fn fits(observed: &[u64], expected: &[f64]) {
    if observed.iter().sum::<u64>() >= 200 {
        assert_law(observed, expected);
    }
}

mod warplda {
    use super::*;

    const OUT: Warp = Warp { count_own: false };
    const IN: Warp = Warp { count_own: true };

    #[test]
    fn one_block() {
        warp(OUT, A, FEW, 1, 1);
        warp(OUT, B, TWO, 1, 1);
        warp(OUT, C, TWO, 1, 1);
    }

    #[test]
    fn one_block_counting_itself() {
        warp(IN, A, TWO, 1, 2);
        warp(IN, C, TWO, 1, 1);
    }

    #[test]
    fn four_blocks() {
        warp(OUT, A, TWO, 2, 1);
        warp(OUT, C, FEW, 2, 3);
    }
}

/// AliasLDA and LightLDA against their declared chains, tables and all.
mod stale {
    use super::*;
    use crate::enumerate::D;
    use crate::enumerate_mh::{Moves, StaleRule};

    /// `moves` are those of each pass.
    fn epochs<T: TopicIndex, S: Sampler<T>>(
        sampler: S,
        moves: &[Moves],
        toy: Toy,
        topics: Topics,
        ranges: usize,
        steps: usize,
    ) {
        let requires = sampler.requires();
        let mut whole = Whole::<T>::one_set(&corpus(toy), topics.all, ranges, requires, 0);
        let pass = |whole: &Whole<T>, moves, order| {
            let rule = StaleRule { moves, steps, topics: topics.all, without_own: true };
            rule.chain(toy, &waves(whole, ranges, |j| whole.places[j].order == order))
        };
        let orders = sampler.passes().iter().map(|pass| pass.shape.order().expect("a grid's"));
        let chain = orders
            .zip(moves)
            .map(|(order, &moves)| pass(&whole, moves, order))
            .reduce(|chain, next| chain.then(&next))
            .expect("there are passes");
        let mut scratch = sampler.scratch(topics.all);
        transitions(toy, topics, &mut whole, &chain, |whole, job, _, _| {
            let mut job = job.clone();
            job.mh_steps = steps;
            whole.epoch(&sampler, &mut scratch, &job, 0);
        });
    }

    #[test]
    fn alias() {
        epochs::<u16, _>(AliasLda, &[Moves::Alias], A, TWO, 1, 1);
        epochs::<u16, _>(AliasLda, &[Moves::Alias], B, TWO, 1, 2);
        epochs::<u16, _>(AliasLda, &[Moves::Alias], C, HIDDEN, 1, 1);
        epochs::<u32, _>(AliasLda, &[Moves::Alias], B, HIDDEN, 1, 3);
    }

    #[test]
    fn alias_in_four_blocks() {
        epochs::<u16, _>(AliasLda, &[Moves::Alias], B, HIDDEN, 2, 1);
        epochs::<u32, _>(AliasLda, &[Moves::Alias], C, TWO, 2, 2);
    }

    const WORDS: Moves = Moves::Zen { by_document: false };
    const DOCUMENTS: Moves = Moves::Zen { by_document: true };

    /// The two topics hidden among many, so that rows are sparse; else draws are exact.
    #[test]
    fn zen() {
        for toy in [A, B, C] {
            epochs::<u16, _>(Zen, &[WORDS], toy, HIDDEN, 1, 1);
            epochs::<u32, _>(ZenDoc, &[DOCUMENTS], toy, HIDDEN, 1, 1);
            epochs::<u16, _>(ZenHybrid, &[WORDS, DOCUMENTS], toy, HIDDEN, 1, 1);
        }
    }

    #[test]
    fn zen_in_four_blocks() {
        for toy in [B, C] {
            epochs::<u32, _>(Zen, &[WORDS], toy, HIDDEN, 2, 1);
            epochs::<u16, _>(ZenDoc, &[DOCUMENTS], toy, HIDDEN, 2, 1);
            epochs::<u32, _>(ZenHybrid, &[WORDS, DOCUMENTS], toy, HIDDEN, 2, 1);
        }
    }

    const BOTH: Moves = Moves::Light { document: true, word: true };

    #[test]
    fn light() {
        let light = LightLda::default();
        epochs::<u16, _>(light, &[BOTH], A, TWO, 1, 1);
        epochs::<u16, _>(light, &[BOTH], B, FEW, 1, 2);
        epochs::<u32, _>(light, &[BOTH], C, HIDDEN, 1, 1);
        epochs::<u16, _>(light, &[BOTH], C, TWO, 1, 3);
    }

    /// A word with more tokens than its first table serves.
    #[test]
    fn light_with_a_new_table() {
        epochs::<u16, _>(LightLda::default(), &[BOTH], D, TWO, 1, 1);
        epochs::<u32, _>(LightLda::default(), &[BOTH], D, HIDDEN, 1, 2);
    }

    #[test]
    fn light_in_four_blocks() {
        epochs::<u16, _>(LightLda::default(), &[BOTH], B, TWO, 2, 2);
        epochs::<u32, _>(LightLda::default(), &[BOTH], C, FEW, 2, 1);
    }

    #[test]
    fn light_with_one_proposal() {
        for toy in [A, B, C] {
            let moves = [Moves::Light { document: true, word: false }];
            epochs::<u16, _>(LightLda { proposals: Proposals::Document }, &moves, toy, FEW, 1, 1);
            let moves = [Moves::Light { document: false, word: true }];
            epochs::<u16, _>(LightLda { proposals: Proposals::Word }, &moves, toy, FEW, 1, 2);
        }
    }
}

/// LDA*'s pair: long documents by WarpLDA, then the short ones by F+LDA.
mod hybrid {
    use super::*;

    /// Document `long` is long, the other one short.
    fn hybrid(toy: Toy, topics: Topics, ranges: usize, steps: usize, long: usize) {
        const LONG: Warp = Warp { count_own: false };
        let corpus = corpus(toy);
        let short = Sampler::<u16>::requires(&FPlus);
        let sets =
            [(vec![1 - long as u32], short), (vec![long as u32], Sampler::<u16>::requires(&LONG))];
        let mut whole = Whole::<u16>::new(&corpus, topics.all, ranges, &sets, steps);
        let rule = WarpRule { steps, count_own: LONG.count_own, topics: topics.all };
        let moves = |j: usize| toy.tokens[j].0 == long;
        let waves = waves(&whole, ranges, |j| !moves(j));
        let chain = toy
            .warp_document_pass(rule, moves)
            .then(&toy.warp_word_pass(rule, moves))
            .then(&toy.gibbs_chain(&waves));
        let mut short_scratch = Sampler::<u16>::scratch(&FPlus, topics.all);
        let mut long_scratch = Sampler::<u16>::scratch(&LONG, topics.all);
        transitions(toy, topics, &mut whole, &chain, |whole, job, from, rng| {
            for j in (0..toy.tokens.len()).filter(|&j| moves(j)) {
                set_pending(whole, topics, j, toy.word_proposal(from, j, topics.all), rng);
            }
            let mut job = job.clone();
            job.mh_steps = steps;
            let short = (&FPlus, &mut short_scratch);
            whole.hybrid_epoch(short, (&LONG, &mut long_scratch), &job);
        });
    }

    #[test]
    fn one_block() {
        hybrid(A, TWO, 1, 1, 0);
        hybrid(B, TWO, 1, 2, 1);
        hybrid(C, FEW, 1, 1, 0);
    }

    #[test]
    fn four_blocks() {
        hybrid(C, TWO, 2, 1, 0);
        hybrid(C, FEW, 2, 2, 1);
    }
}
