//! Workers that own documents and fetch word rows.
//!
//! A worker knows its documents' tokens, their topics and their rows. Word rows live with a
//! *master*, as plain lists in ascending order. For a block the worker fetches the rows it needs as
//! snapshots, decodes them, samples, and sends back what changed: row after minus row before, read
//! off at the end of the block. So do the totals.

use std::collections::BTreeMap;

use lda_core::Corpus;
use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::{Order, RowRun};
use lda_core::sampler::{Block, BlockKey, GridBlock, Sampler, WordTables};

use crate::driver::{PassParams, Place, Whole, entries};

/// C_w rows as a master keeps them, and C_k.
struct Master<T> {
    /// Word range → word → topic → tokens.
    rows: Vec<Vec<BTreeMap<u32, u32>>>,
    totals: Vec<u32>,
    /// Word range → stale tables, where the sampler asks for them; they travel with the rows.
    tables: Vec<WordTables<T>>,
}

impl<T> Master<T> {
    /// A snapshot of the rows of a word range.
    fn fetch(&self, word_range: usize) -> Vec<Vec<(u32, u32)>> {
        let list = |row: &BTreeMap<u32, u32>| row.iter().map(|(&k, &n)| (k, n)).collect();
        self.rows[word_range].iter().map(list).collect()
    }

    fn add(&mut self, word_range: usize, delta: &[(u32, u32, i32)], totals: &[(u32, i32)]) {
        for &(word, topic, by) in delta {
            let row = &mut self.rows[word_range][word as usize];
            let count = row.entry(topic).or_default();
            *count = count.checked_add_signed(by).expect("counts stay at or above 0");
            if *count == 0 {
                row.remove(&topic);
            }
        }
        for &(topic, by) in totals {
            let total = &mut self.totals[topic as usize];
            *total = total.checked_add_signed(by).expect("totals stay at or above 0");
        }
    }
}

/// Tokens of one worker in one word range that lie in one order.
struct Share<T> {
    visits: Vec<RowRun>,
    partner: Vec<u32>,
    z: Vec<T>,
}

struct Worker<T, C> {
    range: u16,
    /// By word range, then by order.
    shares: Vec<[Share<T>; 2]>,
    documents: Rows<T>,
    scratch: C,
}

/// (word, topic, tokens gained) of rows that were `before`.
fn delta<T: TopicIndex>(before: &[Vec<(u32, u32)>], after: &Rows<T>) -> Vec<(u32, u32, i32)> {
    let mut delta = Vec::new();
    for (word, before) in before.iter().enumerate() {
        let mut row: BTreeMap<u32, i32> = BTreeMap::new();
        for &(topic, count) in before {
            *row.entry(topic).or_default() -= count as i32;
        }
        for (topic, count) in entries(after, word) {
            *row.entry(topic).or_default() += count as i32;
        }
        delta
            .extend(row.into_iter().filter(|&(_, by)| by != 0).map(|(k, by)| (word as u32, k, by)));
    }
    delta
}

/// Runs epochs over a corpus that is spread over as many workers as there are ranges; returns the
/// assignments after each.
pub(crate) fn run<T: TopicIndex, S: Sampler<T>>(
    sampler: S,
    corpus: &Corpus,
    job: &PassParams,
    ranges: usize,
    epochs: u32,
) -> Vec<Vec<u32>> {
    let density = sampler.requires().document_rows.expect("a grid sampler keeps document rows");
    // The corpus is cut and the first topics are drawn elsewhere; each worker gets its part.
    let mut start = Whole::<T>::one_set(corpus, job.topics, ranges, sampler.requires(), 0);
    start.initialise(corpus, job.seed);
    let slots = &start.sets[0].slots;
    let share = |range: usize, word_range: usize| {
        Order::ALL.map(|order| {
            let bounds = slots.block(range, word_range, order);
            Share {
                visits: slots.visits()[bounds.visits].to_vec(),
                partner: slots.partner()[bounds.slots.clone()].to_vec(),
                z: start.sets[0].tokens[bounds.slots].to_vec(),
            }
        })
    };
    let mut workers: Vec<Worker<T, S::Scratch>> = (0..ranges)
        .map(|range| {
            let lengths = slots.lengths(range).iter().map(|&n| u64::from(n));
            let mut documents = Rows::new(job.topics, lengths, density).expect("small");
            for row in 0..documents.len() {
                documents.write(row, entries(&start.sets[0].rows[range], row).into_iter());
            }
            Worker {
                range: range as u16,
                shares: (0..ranges).map(|word_range| share(range, word_range)).collect(),
                documents,
                scratch: sampler.scratch(job.topics),
            }
        })
        .collect();
    let list = |rows: &Rows<T>| -> Vec<BTreeMap<u32, u32>> {
        (0..rows.len()).map(|row| entries(rows, row).into_iter().collect()).collect()
    };
    let mut master = Master {
        rows: start.word_rows.iter().map(list).collect(),
        totals: start.totals.clone(),
        tables: start.tables.clone(),
    };
    let mut job = job.clone();
    let mut wave = 0;
    let passes = sampler.passes().iter().enumerate();
    let passes = passes.map(|(i, pass)| (i, pass.shape.order().expect("a pass over the grid")));
    let epoch = |epoch| {
        job.epoch = epoch;
        for ((pass, order), step) in
            passes.clone().flat_map(|pass| (0..ranges).map(move |step| (pass, step)))
        {
            if step == 0 {
                if order == Order::ByWord {
                    workers.iter_mut().for_each(|worker| worker.documents.adapt());
                }
                master.tables.iter_mut().for_each(WordTables::forget);
            }
            wave += 1;
            let totals = master.totals.clone();
            for worker in &mut workers {
                let word_range = (usize::from(worker.range) + step) % ranges;
                let snapshot = master.fetch(word_range);
                let tokens = snapshot.iter().map(|row| row.iter().map(|e| u64::from(e.1)).sum());
                let mut words = Rows::new(job.topics, tokens, Density::Auto).expect("small");
                for (row, list) in snapshot.iter().enumerate() {
                    words.write(row, list.iter().copied());
                }
                if order == Order::ByDocument {
                    words.adapt();
                }
                let mut tables = master.tables.get(word_range).cloned();
                let Share { visits, partner, z } = &mut worker.shares[word_range][order as usize];
                let key = BlockKey { shard: 0, documents: worker.range, words: word_range as u16 };
                let block = GridBlock {
                    key,
                    visits,
                    partner,
                    z,
                    words: &mut words,
                    documents: &mut worker.documents,
                    tables: tables.as_mut(),
                };
                let cx = job.context(&totals, wave);
                let outcome = sampler.sample(pass, &cx, &mut worker.scratch, Block::Grid(block));
                master.add(word_range, &delta(&snapshot, &words), &outcome.totals);
                if let Some(tables) = tables {
                    master.tables[word_range] = tables;
                }
            }
        }
        let topic = |place: &Place| {
            let &Place { document_range, word_range, order, .. } = place;
            let at = place.slot - slots.block(document_range, word_range, order).slots.start;
            workers[document_range].shares[word_range][order as usize].z[at].get()
        };
        start.places.iter().map(topic).collect()
    };
    (1..=epochs).map(epoch).collect()
}
