//! [`Zen`], [`ZenDoc`] and [`ZenHybrid`].

use crate::counts::{RowMut, TopicIndex};
use crate::layout::TokenOrder;
use crate::random::Xoshiro256PlusPlus;
use crate::sampler::gibbs::{
    Axis, ByDocument, ByWord, Part, Priors, SmoothingBucket, SweepScratch, TopicEntry, VisitedRow,
    sweep_block, sweep_sampler,
};
use crate::sampler::tables::{SharedTable, Stale, WordTables};
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Block, Context, Outcome, Pass, Requires, Sampler, Shape};
use crate::simd::{LANES, Lanes};

/// ZenLDA: one part of the conditional is fresh, two come from tables, and rejections ("remedies")
/// correct for the token, which the tables count.
///
/// Zhao et al., "ZenLDA: an efficient and scalable topic model training system on distributed
/// data-parallel platform" (2015). The conditional [(1)](crate::sampler) in three parts:
///
/// ```text
/// by word:      α_k β / (C̃_k+Vβ)  +  C̃_wk α_k / (C̃_k+Vβ)  +  C_dk (C_wk+β) / (C_k+Vβ)
/// by document:  α_k β / (C̃_k+Vβ)  +  C̃_dk β / (C̃_k+Vβ)    +  C_wk (C_dk+α_k) / (C_k+Vβ)
///               a table per wave     a table per visit         fresh, without the token
/// ```
///
/// The third part is scanned; a draw from a table costs O(1). The tables count the token itself.
/// There is no Metropolis-Hastings step; instead a draw is kept with a probability that corrects
/// for the token, and repeated otherwise:
///
/// | part | topic | kept with probability |
/// |---|---|---|
/// | tables | another than the token's o | (C_o − 1 + Vβ) / (C_o + Vβ) |
/// | the wave's table | o | 1 |
/// | the visit's table | o | 1 − 1/C̃_wo (by document: 1/C̃_do) |
/// | fresh | any | (C_o − 1 + Vβ) / (C_o + Vβ), by scaling the part and not by drawing |
///
/// By word the scan costs K_d, by document K_w. [`ZenHybrid`] resamples each token by the one of
/// its two rows that has more tokens, which is taken to be the cheaper way: one pass by word over
/// the tokens whose word has at least as many tokens as their document, then one by document over
/// the others. Both passes read and change the same rows.
///
/// Departures from the paper:
///
/// 1. Draws are repeated until one is kept. The paper repeats once, which can be grossly wrong, and
///    leaves out the first line of the table.
/// 2. Counts are current: they change with every token, and only the tables are fixed, one for a
///    visit and one for a wave. The paper freezes all of them for an epoch (TV .12 to .32 on tiny
///    corpora).
/// 3. A row that has a large share of all K topics is dense, and its tokens are drawn from all K
///    fresh weights in one scan, which is faster than tables and exact.
///
/// **Biased** by changes after a table was built: those of the visited row's earlier tokens, and
/// those of C_k since the start of the wave. On the three tiny corpora of the tests the stationary
/// law is .136, .163 and .185 away from the posterior in total variation by word, .065, .059 and
/// .080 by document, .129, .017 and .075 by degree. [`AliasLda`](super::AliasLda) is the variant
/// with Metropolis-Hastings steps.
///
/// The remedies would be exact if the tables had current counts, which they do not. Without
/// remedies the law would be *nearer* to the posterior by word on all three corpora (.132, .133,
/// .161) and by document on the first (.061), and slightly further away by document on the others
/// (.060, .081).
///
/// Cost per token: K_d/16 gathers of sixteen by word, K_w/16 by document, the smaller of the two by
/// degree. Memory: rows; scratch is six arrays over K per thread.
///
/// Compared with [`SparseLda`](super::SparseLda), which scans the same rows as ZenLDA by document
/// and walks the rest: million tokens per CPU second on kos are 14.5 against 14.5 at K = 1,000, and
/// 10.0 against 6.6 at 10,000, where the walk is a third of SparseLDA's time and a table pays off.
/// But an epoch of ZenLDA gains less there: it took 10.6 s to 99 % of the best likelihood,
/// SparseLDA 8.8.
#[derive(Clone, Copy, Debug, Default)]
pub struct Zen;

/// ZenLDA by document; see [`Zen`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ZenDoc;

/// ZenLDAHybrid: each token by the longer of its two rows; see [`Zen`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ZenHybrid;

/// Arrays over topics of one thread.
#[derive(Debug)]
pub struct ZenScratch<T>(SweepScratch<T, Tables<T>>);

sweep_sampler!(Zen, ZenScratch, Tables<T>, ByWord: "zen");
sweep_sampler!(ZenDoc, ZenScratch, Tables<T>, ByDocument: "zen-doc");
sweep_sampler!(
    ZenHybrid,
    ZenScratch,
    Tables<T>,
    TokenOrder::ByDegree,
    [ByWord: "zen-hybrid words", ByDocument: "zen-hybrid documents"]
);

/// The two parts that are not scanned.
#[derive(Debug)]
struct Tables<T> {
    /// visited prior · partner's prior / (C̃_k + Vβ).
    wave: SharedTable,
    /// visited count · partner's prior / (C̃_k + Vβ): tables of one row.
    visit: WordTables<T>,
}

impl<T: TopicIndex> SmoothingBucket<T> for Tables<T> {
    const WALKS_NONZEROS: bool = false;

    fn new(topics: usize) -> Self {
        Self { wave: SharedTable::new(topics), visit: WordTables::new(topics, [u64::MAX]) }
    }

    #[inline(always)]
    fn begin_block(&mut self, cx: &Context<'_>, _priors: &Priors<'_>) {
        let alpha = TopicPrior::new(cx.alpha, cx.alpha_symmetric);
        self.wave.begin_wave(cx, alpha, cx.beta);
    }

    #[inline(always)]
    fn enter(&mut self, live: &VisitedRow<T>, row: &RowMut<'_, T>, priors: &Priors<'_>) {
        self.visit.rebuild(0, row, |k| priors.partner.of(k) * live.inverse(k), 1);
    }

    #[inline(always)]
    fn choose<L: Lanes>(
        &mut self,
        l: L,
        live: &VisitedRow<T>,
        (scanned, _): (f64, f64),
        (old, out): (u32, TopicEntry),
        rng: &mut Xoshiro256PlusPlus,
    ) -> Part {
        let keep = live.inverse(old as usize) / out.inverse;
        let stale = Stale { l, table: self.visit.get(0), shared: &self.wave, old, keep };
        let fresh = scanned * f64::from(keep);
        for _ in 0..Stale::<L, T>::TRIES {
            let u = rng.next_f64() * (fresh + stale.total());
            if u < fresh {
                return Part::Scanned((u / f64::from(keep)).min(scanned.next_down()));
            }
            if let Some((topic, _)) = stale.locate(u - fresh, rng.next_f64() as f32) {
                return Part::Topic(topic);
            }
        }
        let u = rng.next_f64() * (scanned + stale.total_without());
        match u < scanned {
            true => Part::Scanned(u),
            false => Part::Topic(stale.locate_without(u - scanned).0),
        }
    }

    /// Nothing to add up: the tables do not change after they are built.
    #[inline(always)]
    fn rebuild<L: Lanes>(&mut self, _l: L, _leaves: &[[f32; LANES]], _weights: TopicPrior<'_>) {}

    #[inline(always)]
    fn total(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn change(&mut self, _topic: usize, _by: f64) {}

    fn locate<L: Lanes>(
        &self,
        _l: L,
        _leaves: &[[f32; LANES]],
        _live: &VisitedRow<T>,
        _priors: &Priors<'_>,
        _u: f64,
    ) -> usize {
        unreachable!("a draw from the tables has its topic")
    }
}
