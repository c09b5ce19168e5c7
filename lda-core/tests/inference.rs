//! RT-LDA on a trained model: it finds the topics that generated a document, answers the same from
//! every thread, and allocates nothing once scratch has grown.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Reverse;

use lda_benches::synthetic::{Lengths, Spec, Synthetic};
use lda_core::corpus::Document;
use lda_core::infer::{Inferred, RtLda, RtScratch};
use lda_core::model::TopicModel;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::{EpochReport, Flow, Lda, Trained};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator with the arguments it came with; what is not
// defined here ends up in these two.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about `at` and `layout` is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TOPICS: usize = 8;

/// A corpus and its topics, trained from five seeds, of which the likeliest state is kept: a third of
/// all runs end with two of the topics in one, whatever the sampler.
fn trained() -> (Synthetic, TopicModel) {
    let lengths = vec![Lengths { weight: 1.0, mean: 60.0, sigma: 0.3 }];
    let spec =
        Spec { num_documents: 600, num_words: 500, num_topics: TOPICS, lengths, ..Spec::default() };
    let synthetic = spec.generate(5).expect("the parameters are legal");
    let report = |_: &EpochReport| Flow::Continue;
    let runs = (1..=5).map(|seed| {
        let lda = Lda::topics(TOPICS as u32).alpha(0.1).seed(seed).epochs(60);
        lda.train(&synthetic.corpus, report).expect("the options are legal")
    });
    let log_joint = |run: &Trained| run.last.log_joint.expect("the last epoch is evaluated");
    let best = runs.max_by(|a, b| log_joint(a).total_cmp(&log_joint(b)));
    (synthetic, best.expect("there are runs").model)
}

/// The trained topic that shares most mass with a true one.
fn match_of(truth: &[(u32, f64)], model: &TopicModel) -> u32 {
    let shared = |topic: usize| -> f64 {
        truth.iter().map(|&(word, p)| p.min(model.phi(topic, word as usize))).sum()
    };
    let best = (0..TOPICS).max_by(|&a, &b| shared(a).total_cmp(&shared(b)));
    best.expect("there are topics") as u32
}

/// A word of a topic.
fn draw(topic: &[(u32, f64)], rng: &mut Xoshiro256PlusPlus) -> u32 {
    let mut left = rng.next_f64();
    for &(word, p) in topic {
        left -= p;
        if left < 0.0 {
            return word;
        }
    }
    topic.last().expect("a topic has words").0
}

/// Topics by falling share.
fn ranked(answer: Inferred<'_>) -> Vec<u32> {
    let mut counts = answer.counts().to_vec();
    counts.sort_by_key(|&(_, count)| Reverse(count));
    counts.into_iter().map(|(topic, _)| topic).collect()
}

fn words(document: Document<'_>) -> impl Iterator<Item = u32> {
    document.iter().flat_map(|(word, count)| std::iter::repeat_n(word, count as usize))
}

#[test]
fn finds_the_generating_topics() {
    let (synthetic, model) = trained();
    let matches: Vec<u32> = synthetic.topics.iter().map(|truth| match_of(truth, &model)).collect();
    let mut distinct = matches.clone();
    distinct.sort_unstable();
    assert!(distinct.into_iter().eq(0..TOPICS as u32), "training merged topics: {matches:?}");

    let rt = RtLda::new(&model).expect("a trained model is fit");
    let (mut rng, mut scratch) = (Xoshiro256PlusPlus::from_seed(2), RtScratch::default());
    let mut swapped = 0;
    for first in 0..TOPICS {
        let query: Vec<u32> = (0..20).map(|_| draw(&synthetic.topics[first], &mut rng)).collect();
        let answer = rt.infer(query, &mut scratch);
        assert!(answer.theta(matches[first]) > 0.7, "{first}: {:?}", answer.counts());

        for second in first + 1..TOPICS {
            // Two thirds of one, one third of the other, mixed.
            let word = |i: usize| draw(&synthetic.topics[[first, second][i % 3 / 2]], &mut rng);
            let mixture: Vec<u32> = (0..90).map(word).collect();
            let mut found = ranked(rt.infer(mixture, &mut scratch));
            let mut expected = [matches[first], matches[second]];
            swapped += usize::from(found[..2] != expected);
            found[..2].sort_unstable();
            expected.sort_unstable();
            assert_eq!(found[..2], expected, "{first}, {second}");
        }
    }
    // A local optimum may give words that both topics share to the smaller one: 1 of 28 pairs here.
    assert!(swapped <= 2, "{swapped} mixtures led by the smaller topic");
}

#[test]
fn answers_are_the_same_in_any_thread_and_order() {
    let (synthetic, model) = trained();
    let rt = RtLda::new(&model).expect("a trained model is fit");
    let said = |d: usize, scratch: &mut RtScratch| {
        rt.infer(words(synthetic.corpus.document(d)), scratch).tokens().to_vec()
    };
    let documents = synthetic.corpus.num_documents();
    let alone: Vec<_> = (0..documents).map(|d| said(d, &mut RtScratch::default())).collect();
    std::thread::scope(|scope| {
        for stride in [1, 7, 11] {
            let (said, alone) = (&said, &alone);
            scope.spawn(move || {
                let mut scratch = RtScratch::default();
                for i in 0..documents {
                    let d = i * stride % documents;
                    assert_eq!(said(d, &mut scratch), alone[d]);
                }
            });
        }
    });
}

#[test]
fn allocates_nothing_once_scratch_has_grown() {
    let (synthetic, model) = trained();
    let rt = RtLda::new(&model).expect("a trained model is fit");
    let mut scratch = RtScratch::default();
    let all = || synthetic.corpus.documents().map(words);
    for words in all() {
        rt.infer(words, &mut scratch);
    }
    let before = ALLOCATIONS.get();
    let tokens: u64 = all().map(|words| rt.infer(words, &mut scratch).num_tokens()).sum();
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(tokens, synthetic.corpus.num_tokens());
}
