//! Rows of document-topic counts: our [`Rows`] against the structure of LDA* (§3.2.3).
//!
//! LDA* keeps a short document's counts in an open-addressing table, with a *traversal index* (the
//! occupied slots without holes, so that a scan costs K_d and not the capacity) and a *position
//! array* (a slot's place in the traversal index, so that erasing is one swap). Slots are named by
//! 8 bits where the table has at most 256, else 16. Ours is a list searched sixteen entries at a
//! time, dense where that takes no more memory.
//!
//! Two kinds of work, at K = 1,000 and three tokens per topic:
//! * `swap`: a token changes its topic (find and take from the old one, find or add the new one);
//! * `scan`: Σ C_dk · b_k over the row, as a draw of F+LDA needs it.
//!
//! A sampler scans once for every swap, and its scan meets the old topic's entry, and most often the
//! new one's, on its way: there our `swap` costs less than here, where it searches for both.
//!
//! In two places: `hot` (few rows, in the cache) and `cold` (32 MiB of rows, visited at random).
//! `cargo bench -p lda-benches --bench rows` ends with a table of ratios; with `-- --test` everything
//! runs once. The table's own code is checked against a `HashMap` first.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use lda_core::counts::{Density, Form, RowMut, Rows, dense16_add};
use lda_core::simd::{Isa, LANES, Lanes, SimdKernel};
use rand::{Rng, RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

const TOPICS: usize = 1_000;
/// Number of topics of a row.
const SIZES: [usize; 5] = [4, 15, 40, 120, 400];

/// Index of a slot in a table.
trait SlotIndex: Copy + Default {
    fn new(slot: usize) -> Self;
    fn get(self) -> usize;
}

impl SlotIndex for u8 {
    fn new(slot: usize) -> Self {
        slot as u8
    }
    fn get(self) -> usize {
        usize::from(self)
    }
}

impl SlotIndex for u16 {
    fn new(slot: usize) -> Self {
        slot as u16
    }
    fn get(self) -> usize {
        usize::from(self)
    }
}

/// A slot; free if the count is 0.
#[derive(Clone, Copy, Default)]
struct Slot {
    topic: u16,
    count: u16,
}

/// Position of a row: `start..start + 2^bits` in all three arrays.
#[derive(Clone, Copy)]
struct Place {
    start: u32,
    bits: u32,
    len: u32,
}

/// The structure of LDA*, many rows in one arena.
struct Tables<I> {
    slots: Vec<Slot>,
    traversal: Vec<I>,
    position: Vec<I>,
    places: Vec<Place>,
}

/// Number of slots of a row of up to `tokens` tokens, at most half of which are occupied.
fn capacity(tokens: usize) -> usize {
    (2 * tokens.min(TOPICS)).next_power_of_two()
}

impl<I: SlotIndex> Tables<I> {
    fn new(rows: usize, tokens: usize) -> Self {
        let capacity = capacity(tokens);
        let place =
            |row| Place { start: (row * capacity) as u32, bits: capacity.trailing_zeros(), len: 0 };
        Self {
            slots: vec![Slot::default(); rows * capacity],
            traversal: vec![I::default(); rows * capacity],
            position: vec![I::default(); rows * capacity],
            places: (0..rows).map(place).collect(),
        }
    }

    fn row(&mut self, row: usize) -> Table<'_, I> {
        let place = &mut self.places[row];
        let range = place.start as usize..place.start as usize + (1 << place.bits);
        Table {
            slots: &mut self.slots[range.clone()],
            traversal: &mut self.traversal[range.clone()],
            position: &mut self.position[range],
            bits: place.bits,
            len: &mut place.len,
        }
    }
}

/// One row of [`Tables`].
struct Table<'a, I> {
    slots: &'a mut [Slot],
    traversal: &'a mut [I],
    position: &'a mut [I],
    bits: u32,
    len: &'a mut u32,
}

impl<I: SlotIndex> Table<'_, I> {
    fn home(&self, topic: u16) -> usize {
        // Fibonacci hashing, which separates neighbours.
        (u32::from(topic).wrapping_mul(0x9e37_79b9) >> (32 - self.bits)) as usize
    }

    /// The topic's slot, or the free one for it.
    fn probe(&self, topic: u16) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.home(topic);
        while self.slots[slot].count != 0 && self.slots[slot].topic != topic {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn increment(&mut self, topic: u16) {
        let slot = self.probe(topic);
        if self.slots[slot].count == 0 {
            self.slots[slot].topic = topic;
            self.traversal[*self.len as usize] = I::new(slot);
            self.position[slot] = I::new(*self.len as usize);
            *self.len += 1;
        }
        self.slots[slot].count += 1;
    }

    fn decrement(&mut self, topic: u16) {
        let slot = self.probe(topic);
        self.slots[slot].count -= 1;
        if self.slots[slot].count == 0 {
            self.erase(slot);
        }
    }

    /// Frees a slot: a swap removes it from the traversal index, then later entries move up, so
    /// that no probe meets a hole before its topic.
    fn erase(&mut self, slot: usize) {
        *self.len -= 1;
        let place = self.position[slot];
        let last = self.traversal[*self.len as usize];
        self.traversal[place.get()] = last;
        self.position[last.get()] = place;
        let mask = self.slots.len() - 1;
        let (mut hole, mut next) = (slot, slot);
        loop {
            next = (next + 1) & mask;
            if self.slots[next].count == 0 {
                break;
            }
            let home = self.home(self.slots[next].topic);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[next];
                self.position[hole] = self.position[next];
                self.traversal[self.position[hole].get()] = I::new(hole);
                hole = next;
            }
        }
        self.slots[hole].count = 0;
    }

    fn entries(&self) -> impl Iterator<Item = Slot> + '_ {
        self.traversal[..*self.len as usize].iter().map(|slot| self.slots[slot.get()])
    }

    fn scan(&self, weights: &[f32]) -> f32 {
        self.entries().map(|slot| f32::from(slot.count) * weights[usize::from(slot.topic)]).sum()
    }
}

/// A token of a row changes its topic.
#[derive(Clone, Copy)]
struct Swap {
    row: u32,
    old: u16,
    new: u16,
}

/// Rows of `size` topics, and changes that end in the initial state, so that they can be repeated.
struct Work {
    /// Topics of the tokens of each row.
    tokens: Vec<Vec<u16>>,
    swaps: Vec<Swap>,
}

impl Work {
    fn new(size: usize, rows: usize, swaps: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(size as u64);
        let topic = |rng: &mut Xoshiro256PlusPlus| rng.random_range(0..TOPICS as u16);
        let own: Vec<Vec<u16>> =
            (0..rows).map(|_| (0..size).map(|_| topic(&mut rng)).collect()).collect();
        let tokens: Vec<Vec<u16>> =
            own.iter().map(|own| own.iter().flat_map(|&t| [t; 3]).collect()).collect();
        let mut now = tokens.clone();
        let mut forth: Vec<Swap> = (0..swaps / 2)
            .map(|_| {
                let row = rng.random_range(0..rows);
                let i = rng.random_range(0..now[row].len());
                // Most changes are among the row's own topics; some topics appear and disappear.
                let own = own[row][rng.random_range(0..size)];
                let new = if rng.next_u32() % 8 == 0 { topic(&mut rng) } else { own };
                let old = std::mem::replace(&mut now[row][i], new);
                Swap { row: row as u32, old, new }
            })
            .collect();
        let back =
            forth.iter().rev().map(|&Swap { row, old, new }| Swap { row, old: new, new: old });
        let back: Vec<Swap> = back.collect();
        forth.extend(back);
        Self { tokens, swaps: forth }
    }

    fn ours(&self) -> Rows<u16> {
        let lengths = self.tokens.iter().map(|tokens| tokens.len() as u64);
        let mut rows = Rows::new(TOPICS, lengths, Density::Auto).expect("32 MiB fit");
        for (row, tokens) in self.tokens.iter().enumerate() {
            for &topic in tokens {
                rows.increment(row, u32::from(topic));
            }
        }
        rows
    }

    fn theirs<I: SlotIndex>(&self) -> Tables<I> {
        let mut tables = Tables::new(self.tokens.len(), self.tokens[0].len());
        for (row, tokens) in self.tokens.iter().enumerate() {
            for &topic in tokens {
                tables.row(row).increment(topic);
            }
        }
        tables
    }
}

/// All swaps on our rows, compiled for an instruction set.
struct OurSwaps<'a>(&'a mut Rows<u16>, &'a [Swap]);

impl SimdKernel for OurSwaps<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for &Swap { row, old, new } in self.1 {
            match self.0.row_mut(row as usize) {
                RowMut::Sparse(mut row) => {
                    let at = find(l, &row, old).expect("a counted topic has an entry");
                    row.decrement_at(at);
                    match find(l, &row, new) {
                        Some(at) => row.set(at, u32::from(new), row.entry(at).1 + 1),
                        None => row.append(u32::from(new)),
                    }
                }
                RowMut::Dense16(lines) => {
                    dense16_add(lines, usize::from(old), 1u32.wrapping_neg());
                    dense16_add(lines, usize::from(new), 1);
                }
                RowMut::Dense32(_) => unreachable!("rows of under 65,536 tokens"),
            }
        }
    }
}

#[inline(always)]
fn find<L: Lanes>(l: L, row: &lda_core::counts::SparseMut<'_, u16>, topic: u16) -> Option<usize> {
    let (topic, zero) = (l.splat_u(u32::from(topic)), l.splat_f(0.0));
    // A plain loop: a closure would not be compiled with the wide instructions.
    for c in 0..row.chunks() {
        let (topics, counts) = row.chunk(l, c);
        let hit = l.eq_u(topics, topic) & l.gt_f(l.to_f(counts), zero);
        if hit != 0 {
            return Some(c * LANES + hit.trailing_zeros() as usize);
        }
    }
    None
}

/// Scans the given rows, in our structure.
struct OurScans<'a>(&'a mut Rows<u16>, &'a [Swap], &'a [f32]);

impl SimdKernel for OurScans<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> f32 {
        let Self(rows, visits, weights) = self;
        let mut total = 0.0;
        for visit in visits {
            let mut sums = l.splat_f(0.0);
            match rows.row_mut(visit.row as usize) {
                RowMut::Sparse(row) => {
                    for c in 0..row.chunks() {
                        let (topics, counts) = row.chunk(l, c);
                        let terms = l.mul_f(l.to_f(counts), l.gather_f(weights, topics));
                        sums = l.add_f(sums, terms);
                    }
                }
                RowMut::Dense16(lines) => {
                    for (c, line) in lines.iter().enumerate() {
                        let (low, high) = line.0.split_at(LANES / 2);
                        for (half, counts) in [low, high].into_iter().enumerate() {
                            let counts = counts.try_into().expect("half a line");
                            let weights = &weights[(2 * c + half) * LANES..][..LANES];
                            let weights = weights.try_into().expect("sixteen");
                            let counts = l.to_f(l.load_u16(counts));
                            sums = l.add_f(sums, l.mul_f(counts, l.load_f(weights)));
                        }
                    }
                }
                RowMut::Dense32(_) => unreachable!("rows of under 65,536 tokens"),
            }
            let mut lanes = [0.0; LANES];
            l.store_f(&mut lanes, l.prefix(sums));
            total += lanes[LANES - 1];
        }
        total
    }
}

fn their_swaps<I: SlotIndex>(tables: &mut Tables<I>, swaps: &[Swap]) {
    for &Swap { row, old, new } in swaps {
        let mut row = tables.row(row as usize);
        row.decrement(old);
        row.increment(new);
    }
}

fn their_scans<I: SlotIndex>(tables: &mut Tables<I>, visits: &[Swap], weights: &[f32]) -> f32 {
    visits.iter().map(|visit| tables.row(visit.row as usize).scan(weights)).sum()
}

/// The four measurements, with the slot width that LDA* would use.
struct Contest {
    size: usize,
    work: Work,
    weights: Vec<f32>,
    isa: Isa,
    ours: Rows<u16>,
    theirs: Either,
}

enum Either {
    Narrow(Tables<u8>),
    Wide(Tables<u16>),
}

impl Contest {
    fn new(size: usize, cold: bool) -> Self {
        let bytes = Rows::<u16>::bytes(TOPICS, [3 * size as u64].into_iter(), Density::Auto);
        let (rows, swaps) =
            if cold { ((32 << 20) / bytes as usize, 1 << 16) } else { (16, 1 << 12) };
        let work = Work::new(size, rows, swaps);
        let theirs = if capacity(3 * size) <= 256 {
            Either::Narrow(work.theirs())
        } else {
            Either::Wide(work.theirs())
        };
        let weights = (0..TOPICS.next_multiple_of(2 * LANES)).map(|k| 1.0 / (k + 1) as f32);
        let ours = work.ours();
        Self { size, work, weights: weights.collect(), isa: Isa::detect(), ours, theirs }
    }

    fn our_swaps(&mut self) {
        self.isa.run(OurSwaps(&mut self.ours, black_box(&self.work.swaps)));
    }

    fn our_scans(&mut self) -> f32 {
        self.isa.run(OurScans(&mut self.ours, black_box(&self.work.swaps), &self.weights))
    }

    fn their_swaps(&mut self) {
        match &mut self.theirs {
            Either::Narrow(tables) => their_swaps(tables, black_box(&self.work.swaps)),
            Either::Wide(tables) => their_swaps(tables, black_box(&self.work.swaps)),
        }
    }

    fn their_scans(&mut self) -> f32 {
        let (swaps, weights) = (black_box(&self.work.swaps), &self.weights);
        match &mut self.theirs {
            Either::Narrow(tables) => their_scans(tables, swaps, weights),
            Either::Wide(tables) => their_scans(tables, swaps, weights),
        }
    }

    /// Both structures hold the same counts before and after.
    fn check(&mut self) {
        for _ in 0..2 {
            let (ours, theirs) = (self.our_scans(), self.their_scans());
            assert!((ours - theirs).abs() < 1e-3 * ours, "{} topics: {ours} {theirs}", self.size);
            self.our_swaps();
            self.their_swaps();
        }
    }

    /// Nanoseconds per operation: ours and LDA*'s, swaps and scans; interleaved, the best of nine.
    fn nanoseconds(&mut self) -> [f64; 4] {
        let mut best = [f64::INFINITY; 4];
        let operations = self.work.swaps.len() as f64;
        for _ in 0..9 {
            for (i, best) in best.iter_mut().enumerate() {
                let start = Instant::now();
                match i {
                    0 => self.our_swaps(),
                    1 => self.their_swaps(),
                    2 => drop(black_box(self.our_scans())),
                    _ => drop(black_box(self.their_scans())),
                }
                *best = best.min(start.elapsed().as_secs_f64() * 1e9 / operations);
            }
        }
        best
    }
}

fn place(cold: bool) -> &'static str {
    if cold { "cold" } else { "hot" }
}

fn rows(c: &mut Criterion) {
    for cold in [false, true] {
        for size in SIZES {
            let mut contest = Contest::new(size, cold);
            contest.check();
            let operations = contest.work.swaps.len() as u64;
            let mut group = c.benchmark_group(format!("rows/{}", place(cold)));
            group.throughput(Throughput::Elements(operations));
            group.sample_size(10).measurement_time(Duration::from_millis(500));
            group.warm_up_time(Duration::from_millis(200));
            let id = |what| BenchmarkId::new(what, size);
            group.bench_function(id("swap/ours"), |b| b.iter(|| contest.our_swaps()));
            group.bench_function(id("swap/table"), |b| b.iter(|| contest.their_swaps()));
            group.bench_function(id("scan/ours"), |b| b.iter(|| contest.our_scans()));
            group.bench_function(id("scan/table"), |b| b.iter(|| contest.their_scans()));
            group.finish();
        }
    }
}

/// Ratios of interleaved runs, which criterion does not compute.
#[allow(clippy::print_stdout)]
fn ratios() {
    println!("nanoseconds an operation, best of nine; ratio: table of LDA* / ours");
    println!(
        "| rows | K_d | our form | slots | swap ours | table | ratio | scan ours | table | ratio |"
    );
    println!("|---|--:|---|---|--:|--:|--:|--:|--:|--:|");
    for cold in [false, true] {
        for size in SIZES {
            let mut contest = Contest::new(size, cold);
            let form = match contest.ours.form_of(0) {
                Form::Sparse => "list",
                Form::Dense16 | Form::Dense32 => "dense",
            };
            let slots = match contest.theirs {
                Either::Narrow(_) => "u8",
                Either::Wide(_) => "u16",
            };
            let [a, b, c, d] = contest.nanoseconds();
            println!(
                "| {} | {size} | {form} | {slots} | {a:.1} | {b:.1} | {:.2} | {c:.1} | {d:.1} | {:.2} |",
                place(cold),
                b / a,
                d / c
            );
        }
    }
}

/// Compares the table with a `HashMap` under random changes that fill and empty it.
fn check_table<I: SlotIndex>(tokens: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut tables = Tables::<I>::new(3, tokens);
    let mut model: HashMap<u16, u16> = HashMap::new();
    let mut held: Vec<u16> = Vec::new();
    for step in 0..20_000 {
        let mut row = tables.row(1);
        let fill = step / 2_000 % 2 == 0;
        if held.len() < tokens && (held.is_empty() || rng.random_bool(if fill { 0.7 } else { 0.3 }))
        {
            let topic = rng.random_range(0..TOPICS as u16);
            held.push(topic);
            *model.entry(topic).or_default() += 1;
            row.increment(topic);
        } else {
            let topic = held.swap_remove(rng.random_range(0..held.len()));
            let count = model.get_mut(&topic).expect("the model holds it");
            *count -= 1;
            if *count == 0 {
                model.remove(&topic);
            }
            row.decrement(topic);
        }
        let entries: HashMap<u16, u16> = row.entries().map(|s| (s.topic, s.count)).collect();
        assert_eq!((entries.len(), &entries), (*row.len as usize, &model), "step {step}");
    }
    assert_eq!((*tables.row(0).len, *tables.row(2).len), (0, 0));
}

fn main() {
    check_table::<u8>(128);
    check_table::<u16>(128);
    check_table::<u16>(700);
    let mut criterion = Criterion::default().configure_from_args();
    rows(&mut criterion);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench")
        && !std::env::args().any(|argument| argument == "--test")
    {
        ratios();
    }
}
