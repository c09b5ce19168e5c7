//! The conformance suite of samplers: those of the library and of the example pass it, and it finds
//! samplers that break the contract, each in one way.

#[path = "../../examples/polya_urn/sampler.rs"]
mod polya_urn;

use std::sync::atomic::{AtomicU64, Ordering};

use lda_core::sampler::conformance::{self, Claims, Outcome, Report};
use lda_core::sampler::{
    Block, Context, FPlus, GridBlock, LightLda, Order, Pass, Purpose, Sampler, Shape, TopicIndex,
    Warp, Xoshiro256PlusPlus,
};
use lda_core::sampler::{Outcome as BlockOutcome, Requires};
use polya_urn::PolyaUrn;

fn assert_passes(name: &str, report: &Report) {
    assert!(report.passed(), "{name}:\n{report}");
}

/// One of each claim; [`invariance`](crate::invariance) has the laws of all.
#[test]
fn samplers_of_the_library_conform() {
    assert_passes("f-plus", &conformance::run(|| FPlus, &Claims::exact().draws(10_000)));
    let near = Claims::within(0.03).steps(2).draws(10_000);
    assert_passes("light", &conformance::run(LightLda::default, &near));
    let biased = Claims::within(0.2).steps(2).draws(10_000);
    assert_passes("warp", &conformance::run(Warp::default, &biased));
}

#[test]
fn the_sampler_of_the_example_conforms() {
    let claims = Claims::within(0.35).curve(0.05).draws(10_000);
    assert_passes("polya-urn", &conformance::run(PolyaUrn::default, &claims));
}

/// A mistake of [`Gibbs`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Leaves the token in its own counts.
    CountsItself,
    /// Divides by the totals without Vβ.
    OmitsBetaBar,
    /// Takes α of the first topic for all.
    OneAlpha,
    /// Does not report the changes of C_k.
    HidesTotals,
    /// Does not change the document rows.
    SkipsRows,
    /// Resamples nothing.
    Idle,
    /// Resamples only every other token.
    SkipsTokens,
    /// Draws from a generator of its own.
    OwnRandom,
    /// Draws the same numbers in every block.
    SameStream,
    /// Carries the random numbers of a thread from block to block.
    ScratchLeaks,
    /// Keeps its random numbers from epoch to epoch.
    HiddenState,
    /// Reports more changed tokens than there are.
    Boasts,
}

/// Plain collapsed Gibbs sampling.
#[derive(Debug)]
struct Gibbs {
    mistake: Mistake,
    blocks: AtomicU64,
}

static DRAWS: AtomicU64 = AtomicU64::new(0);

impl<T: TopicIndex> Sampler<T> for Gibbs {
    type Scratch = Option<Xoshiro256PlusPlus>;

    fn requires(&self) -> Requires {
        Requires { max_topics: 1000, ..Requires::default() }
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass { name: "gibbs", shape: Shape::Grid(Order::ByWord) }]
    }

    fn scratch(&self, _topics: usize) -> Self::Scratch {
        None
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut Self::Scratch,
        block: Block<'_, T>,
    ) -> BlockOutcome {
        let Block::Grid(block) = block else { unreachable!("no pass has another shape") };
        let key = cx.stream(pass as u32, block.key, Purpose::Draw);
        let rng = match self.mistake {
            Mistake::OwnRandom => {
                Xoshiro256PlusPlus::from_seed(DRAWS.fetch_add(1, Ordering::Relaxed))
            }
            Mistake::SameStream => Xoshiro256PlusPlus::from_seed(cx.seed),
            Mistake::ScratchLeaks => scratch.take().unwrap_or_else(|| key.stream()),
            Mistake::HiddenState => {
                let number = self.blocks.fetch_add(1, Ordering::Relaxed) / 64;
                Xoshiro256PlusPlus::from_seed(key.stream().next_u64() ^ number)
            }
            _ => key.stream(),
        };
        let (outcome, rng) = self.sample_grid(cx, block, rng);
        *scratch = Some(rng);
        outcome
    }
}

impl Gibbs {
    fn sample_grid<T: TopicIndex>(
        &self,
        cx: &Context<'_>,
        block: GridBlock<'_, T>,
        mut rng: Xoshiro256PlusPlus,
    ) -> (BlockOutcome, Xoshiro256PlusPlus) {
        let mut totals: Vec<i64> = cx.totals.iter().map(|&total| i64::from(total)).collect();
        let mut weights = vec![0.0; cx.topics];
        let (mut changed, mut start) = (0, 0);
        for visit in block.visits {
            let (word, slots) = (visit.row as usize, start..visit.end as usize);
            start = slots.end;
            for slot in slots {
                let (old, document) = (block.z[slot].get(), block.partner[slot] as usize);
                let skips = self.mistake == Mistake::SkipsTokens && slot % 2 == 1;
                if self.mistake == Mistake::Idle || skips {
                    continue;
                }
                let own = |k: usize| {
                    f64::from(u8::from(k == old as usize && self.mistake != Mistake::CountsItself))
                };
                weights.fill(0.0);
                block
                    .documents
                    .for_each(document, |k, count| weights[k as usize] = f64::from(count));
                let mut word_row = vec![0.0; cx.topics];
                block.words.for_each(word, |k, count| word_row[k as usize] = f64::from(count));
                for (k, weight) in weights.iter_mut().enumerate() {
                    let alpha = cx.alpha[if self.mistake == Mistake::OneAlpha { 0 } else { k }];
                    let omits = self.mistake == Mistake::OmitsBetaBar;
                    let beta_bar = if omits { 1e-3 } else { cx.beta_bar };
                    *weight = (*weight - own(k) + f64::from(alpha))
                        * (word_row[k] - own(k) + cx.beta)
                        / (totals[k] as f64 - own(k) + beta_bar);
                }
                let mut left = rng.next_f64() * weights.iter().sum::<f64>();
                let new = weights.iter().position(|weight| {
                    left -= weight;
                    left < 0.0
                });
                let new = new.unwrap_or(cx.topics - 1) as u32;
                if new != old {
                    block.words.decrement(word, old);
                    block.words.increment(word, new);
                    if self.mistake != Mistake::SkipsRows {
                        block.documents.decrement(document, old);
                        block.documents.increment(document, new);
                    }
                    totals[old as usize] -= 1;
                    totals[new as usize] += 1;
                    block.z[slot] = T::new(new);
                    changed += 1;
                }
            }
        }
        let delta = totals.iter().zip(cx.totals).map(|(after, &before)| after - i64::from(before));
        let delta = (0..).zip(delta).filter(|change| change.1 != 0);
        let hides = self.mistake == Mistake::HidesTotals;
        let delta = delta.filter(|_| !hides).map(|(k, by)| (k, by as i32)).collect();
        let tokens = block.z.len() as u64;
        if self.mistake == Mistake::Boasts {
            changed = tokens + 1;
        }
        (BlockOutcome { totals: delta, tokens, changed, ..BlockOutcome::default() }, rng)
    }
}

#[test]
fn every_mistake_is_found() {
    let epoch = "an epoch leaves the posterior as it is";
    let chain = "a chain has the law that is claimed";
    let counts = "counts equal a recount";
    let machines = "threads and instruction sets change no bit";
    let snapshots = "a run continues from a snapshot";
    let curve = "training arrives where the exact sampler does";
    for (mistake, found_by) in [
        (Mistake::None, None),
        (Mistake::CountsItself, Some(epoch)),
        (Mistake::OmitsBetaBar, Some(epoch)),
        (Mistake::OneAlpha, Some(epoch)),
        (Mistake::HidesTotals, Some(counts)),
        (Mistake::SkipsRows, Some(counts)),
        (Mistake::Idle, Some(chain)),
        (Mistake::SkipsTokens, Some(curve)),
        (Mistake::OwnRandom, Some(machines)),
        (Mistake::SameStream, Some(curve)),
        (Mistake::ScratchLeaks, Some(machines)),
        (Mistake::HiddenState, Some(snapshots)),
        (Mistake::Boasts, Some(counts)),
    ] {
        let make = || Gibbs { mistake, blocks: AtomicU64::new(0) };
        // The laws of the first ones are near the posterior.
        let is_near = found_by == Some(epoch);
        let claims = Claims::exact().draws(if is_near { 100_000 } else { 4_000 });
        let report = conformance::run(make, &claims);
        match found_by {
            None => assert_passes("without a mistake", &report),
            Some(name) => {
                let check = report.checks.iter().find(|check| check.0 == name).unwrap();
                let found = matches!(check.1, Outcome::Failed(_));
                assert!(found, "{mistake:?} is not found by {name:?}:\n{report}");
            }
        }
    }
}

/// A distance that is claimed is compared with the law's, and the law of an epoch is left out.
#[test]
fn a_claimed_distance_is_tested() {
    let make = || Gibbs { mistake: Mistake::OneAlpha, blocks: AtomicU64::new(0) };
    let first_two = |claims: &Claims| {
        let report = conformance::run(make, claims);
        (report.checks[0].1.clone(), report.checks[1].1.clone())
    };
    let near = Claims::within(0.5).draws(4_000);
    assert_eq!(first_two(&near), (Outcome::Skipped, Outcome::Passed));
    let (_, refused) = first_two(&Claims::within(0.05).draws(40_000));
    let expected = |why: &str| why.contains("where 0.05 is claimed");
    assert!(matches!(&refused, Outcome::Failed(why) if expected(why)), "{refused:?}");
}
