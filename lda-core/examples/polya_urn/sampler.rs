//! Pólya-urn LDA, written against the public API alone.
//!
//! Terenin, Magnusson, Jonsson and Draper, "Pólya urn latent Dirichlet allocation: a doubly sparse
//! massively parallel sampler" (2019). φ is not integrated out; it is drawn once per epoch, and
//! documents are independent given φ:
//!
//! ```text
//! pass 1, each word w and topic k:   n*_wk ← Poisson(C_wk + β),   φ_wk = n*_wk / Σ_w n*_wk
//! pass 2, each token i:              z_i ← k with probability ∝ (C_dk¬i + α_k) φ_wk
//! ```
//!
//! * n*_wk is sparse: of the zeros of C_w, Poisson(β · zeros) many get a 1, placed uniformly.
//! * α_k φ_wk is constant while a word is visited: cumulative sums and a binary search per draw. The
//!   part C_dk φ_wk is a scan of the document's row.
//! * A token whose word has φ_wk = 0 in every topic keeps its topic. The paper does not cover this
//!   case, which is frequent for rare words.
//!
//! The Poisson draw replaces a Dirichlet draw, so the stationary law is **not** the posterior: with
//! five tokens of two words and K = 2 it is .273 away in total variation, where words of few tokens
//! often have no n* at all. `lda-core/tests/polya_urn.rs` computes this figure, and tests one epoch
//! against the enumerated law of the chain above.
//!
//! Cost: O(tokens + K) for pass 1, O(K_d + log K_w) per token for pass 2. The project's lab runs this
//! file as the sampler `polya-urn` beside those of the library.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use lda_core::sampler::{
    Block, Context, GridBlock, Order, Outcome, Pass, Purpose, Sampler, Shape, TopicIndex,
    WordBlock, Xoshiro256PlusPlus,
};

/// The sampler. It holds the draws of the current epoch, by word range.
#[derive(Debug, Default)]
pub struct PolyaUrn {
    urns: RwLock<BTreeMap<u16, Urn>>,
}

/// n* of a range of words.
#[derive(Debug)]
struct Urn {
    /// (topic, n*_wk) of each word, no zeros; a topic may be listed more than once.
    words: Vec<Vec<(u32, u32)>>,
    /// Sum over the range's words, by topic.
    totals: Vec<u64>,
}

/// Arrays of one thread.
#[derive(Debug)]
pub struct Scratch {
    /// Epoch of `norms`.
    epoch: u32,
    /// 1 / Σ_w n*_wk; 0 for an empty topic.
    norms: Vec<f64>,
    /// φ_wk of the visited word, zero elsewhere.
    phi: Vec<f64>,
    /// (topic, running sum) of α_k φ_wk.
    prior: Vec<(u32, f64)>,
    /// (topic, running sum) of C_dk φ_wk.
    counted: Vec<(u32, f64)>,
    /// Change of C_k by the block.
    delta: Vec<i32>,
}

impl<T: TopicIndex> Sampler<T> for PolyaUrn {
    type Scratch = Scratch;

    fn passes(&self) -> &'static [Pass] {
        &[
            Pass { name: "draw phi", shape: Shape::WordRanges },
            Pass { name: "draw topics", shape: Shape::Grid(Order::ByWord) },
        ]
    }

    fn scratch(&self, topics: usize) -> Scratch {
        let (norms, phi, delta) = (vec![0.0; topics], vec![0.0; topics], vec![0; topics]);
        Scratch { epoch: 0, norms, phi, prior: Vec::new(), counted: Vec::new(), delta }
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut Scratch,
        block: Block<'_, T>,
    ) -> Outcome {
        match block {
            Block::Words(block) => {
                let mut rng = cx.stream(pass as u32, block.key, Purpose::Draw).stream();
                let urn = Urn::draw(cx, &block, &mut rng);
                let mut urns = self.urns.write().unwrap_or_else(PoisonError::into_inner);
                urns.insert(block.key.words, urn);
                Outcome::default()
            }
            Block::Grid(block) => {
                let rng = cx.stream(pass as u32, block.key, Purpose::Draw).stream();
                let urns = self.urns.read().unwrap_or_else(PoisonError::into_inner);
                scratch.begin_epoch(cx, &urns);
                sample_grid(cx, scratch, &urns[&block.key.words], block, rng)
            }
            Block::Documents(_) => unreachable!("no pass has this shape"),
        }
    }
}

impl Urn {
    /// Draws n*_wk of every word of the block. Its rows hold C_w as of the end of the last epoch.
    fn draw<T: TopicIndex>(
        cx: &Context<'_>,
        block: &WordBlock<'_, T>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let rows = block.rows.as_deref().expect("the sampler requires word rows");
        let mut totals = vec![0; cx.topics];
        let mut draw_word = |word: usize| {
            let mut draws: Vec<(u32, u32)> = Vec::new();
            rows.for_each(word, |topic, count| draws.push((topic, count)));
            draws.sort_unstable();
            let listed: Vec<u32> = draws.iter().map(|draw| draw.0).collect();
            for (_, count) in &mut draws {
                *count = poisson(rng, f64::from(*count) + cx.beta);
            }
            // A sum of independent Poisson draws is Poisson; given it, each unit is uniform.
            let zeros = cx.topics - listed.len();
            for _ in 0..poisson(rng, cx.beta * zeros as f64) {
                let mut topic = rng.below(cx.topics as u32);
                while listed.binary_search(&topic).is_ok() {
                    topic = rng.below(cx.topics as u32);
                }
                draws.push((topic, 1));
            }
            draws.retain(|draw| draw.1 > 0);
            draws.iter().for_each(|&(topic, n)| totals[topic as usize] += u64::from(n));
            draws
        };
        let words = (0..block.num_words).map(&mut draw_word).collect();
        Self { words, totals }
    }
}

impl Scratch {
    fn begin_epoch(&mut self, cx: &Context<'_>, urns: &BTreeMap<u16, Urn>) {
        if self.epoch == cx.epoch {
            return;
        }
        self.epoch = cx.epoch;
        for (topic, norm) in self.norms.iter_mut().enumerate() {
            let total: u64 = urns.values().map(|urn| urn.totals[topic]).sum();
            *norm = if total == 0 { 0.0 } else { 1.0 / total as f64 };
        }
    }

    /// Draws the topic of a token of `document` whose topic is `old`; `None` if no topic has weight.
    fn draw<T: TopicIndex>(
        &mut self,
        block: &GridBlock<'_, T>,
        document: usize,
        old: u32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<u32> {
        let Self { phi, prior, counted, .. } = self;
        counted.clear();
        let mut sum = 0.0;
        block.documents.for_each(document, |topic, count| {
            let count = count - u32::from(topic == old);
            sum += f64::from(count) * phi[topic as usize];
            counted.push((topic, sum));
        });
        // Without an entry here the word has no n*, and `sum` is 0 too.
        let (last, smoothing) = *prior.last()?;
        let u = rng.next_f64() * (sum + smoothing);
        let (list, u) = if u < sum { (&*counted, u) } else { (&*prior, u - sum) };
        // Rounding can leave u at the end of the last entry.
        Some(list.get(list.partition_point(|entry| entry.1 <= u)).map_or(last, |entry| entry.0))
    }
}

fn sample_grid<T: TopicIndex>(
    cx: &Context<'_>,
    scratch: &mut Scratch,
    urn: &Urn,
    block: GridBlock<'_, T>,
    mut rng: Xoshiro256PlusPlus,
) -> Outcome {
    let mut block = block;
    let (mut changed, mut start) = (0, 0);
    for visit in block.visits {
        let (word, slots) = (visit.row as usize, start..visit.end as usize);
        start = slots.end;
        scratch.prior.clear();
        let mut sum = 0.0;
        for &(topic, n) in &urn.words[word] {
            let phi = f64::from(n) * scratch.norms[topic as usize];
            scratch.phi[topic as usize] += phi;
            sum += f64::from(cx.alpha[topic as usize]) * phi;
            scratch.prior.push((topic, sum));
        }
        for slot in slots {
            let (old, document) = (block.z[slot].get(), block.partner[slot] as usize);
            let new = scratch.draw(&block, document, old, &mut rng).unwrap_or(old);
            if new != old {
                for (rows, row) in [(&mut block.words, word), (&mut block.documents, document)] {
                    rows.decrement(row, old);
                    rows.increment(row, new);
                }
                scratch.delta[old as usize] -= 1;
                scratch.delta[new as usize] += 1;
                block.z[slot] = T::new(new);
                changed += 1;
            }
        }
        urn.words[word].iter().for_each(|&(topic, _)| scratch.phi[topic as usize] = 0.0);
    }
    let moved = |(topic, by): (usize, &mut i32)| (topic as u32, std::mem::take(by));
    let totals = scratch.delta.iter_mut().enumerate().map(moved).filter(|&(_, by)| by != 0);
    let totals = totals.collect();
    Outcome { totals, tokens: block.z.len() as u64, changed, ..Outcome::default() }
}

/// A Poisson draw by products of uniforms (Knuth), in parts of rate 16 at most: O(rate).
fn poisson(rng: &mut Xoshiro256PlusPlus, mut rate: f64) -> u32 {
    let mut count = 0;
    while rate > 0.0 {
        let (end, mut product) = ((-rate.min(16.0)).exp(), rng.next_f64());
        while product > end {
            count += 1;
            product *= rng.next_f64();
        }
        rate -= 16.0;
    }
    count
}
