//! One epoch of each sampler against the enumerated law of its successor.
//!
//! Assignments are drawn from the exact posterior of a tiny corpus, one epoch is run, and pairs of
//! (state before, state after) are counted: a chi-square over all transitions at once. With one
//! block an exact sampler must leave the posterior as it was; with 2 × 2 blocks, and for WarpLDA
//! always, the chain is the declared one and its enumerated next law is what must come out.
//!
//! Two topics would put every row in its dense form. So the same laws are also run with the two
//! topics hidden among forty whose α is 0: no token can ever take those, the law is the same, and
//! rows are sparse.

mod common;

use common::assert_law;
use common::corpora::locate;
use common::enumerate::{A, ALPHA, B, BETA, C, Chain, TOPICS, Toy};
use common::host::{Job, Whole};
use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::counts::TopicIndex;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::sampler::{Exact, FPlus, Sampler};

/// Epochs a law is judged by.
const REPEATS: u64 = 1_000_000;

/// Which of how many topics the two enumerated ones are.
#[derive(Clone, Copy, Debug)]
struct Topics {
    all: usize,
    live: [u32; TOPICS],
}

const TWO: Topics = Topics { all: 2, live: [0, 1] };
const HIDDEN: Topics = Topics { all: 40, live: [3, 37] };

impl Topics {
    fn job(self, toy: Toy) -> Job {
        let mut alpha = vec![0.0; self.all];
        for (k, live) in self.live.into_iter().enumerate() {
            alpha[live as usize] = ALPHA[k];
        }
        Job::new(&alpha, BETA, toy.num_words)
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

/// Waves of blocks of tokens, each in the order of its slots.
fn waves<T: TopicIndex>(whole: &Whole<T>, ranges: usize) -> Vec<Vec<Vec<usize>>> {
    let block = |documents: usize, words: usize| {
        let mut tokens: Vec<usize> = (0..whole.places.len())
            .filter(|&i| {
                let place = whole.places[i];
                (place.document_range, place.word_range) == (documents, words)
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
    let chain = toy.gibbs_chain(&waves(&whole, ranges));
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
    mut epoch: impl FnMut(&mut Whole<T>, &Job, usize, &mut Xoshiro256PlusPlus),
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
    for repeat in 0..REPEATS {
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
            fn one_block_hidden_among_forty() {
                for toy in [A, B, C] {
                    gibbs::<u16, _>($sampler, toy, HIDDEN, 1);
                }
            }

            #[test]
            fn four_blocks_hidden_among_forty_wide() {
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
}
