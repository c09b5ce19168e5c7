//! Servers that own word rows and sample what is pushed to them.
//!
//! A push request holds documents in order, and for each its row once and then its (word, topic)
//! pairs; the totals ride along. The server decodes it, sorts the pairs by word, samples, and
//! answers with new topics in the request's order. It keeps no document, no token and no layout.

use lda_core::Corpus;
use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::{Order, RowRun};
use lda_core::sampler::{Block, BlockKey, GridBlock, Sampler, WordTables};

use crate::driver::{PassParams, Place, Whole};

/// Message content: numbers only.
struct Request {
    /// Number and order of the pass.
    pass: (usize, Order),
    key: BlockKey,
    epoch: u32,
    wave: u64,
    totals: Vec<u32>,
    documents: Vec<PushedDocument>,
}

struct PushedDocument {
    /// (topic, tokens), ascending.
    row: Vec<(u32, u32)>,
    /// (word, topic).
    tokens: Vec<(u32, u32)>,
}

struct Reply {
    /// New topics, in the order of the request's tokens.
    topics: Vec<u32>,
    totals: Vec<(u32, i32)>,
}

/// Owner of one word range.
struct Server<T, C> {
    words: Rows<T>,
    tables: Option<WordTables<T>>,
    scratch: C,
}

impl<T: TopicIndex, C> Server<T, C> {
    fn answer<S: Sampler<T, Scratch = C>>(
        &mut self,
        sampler: &S,
        job: &PassParams,
        request: &Request,
    ) -> Reply {
        let density = sampler.requires().document_rows.expect("a grid sampler keeps document rows");
        // A row is complete, so its sum is the document's length, and says which form it takes.
        let lengths =
            request.documents.iter().map(|d| d.row.iter().map(|e| u64::from(e.1)).sum::<u64>());
        let mut documents = Rows::new(job.topics, lengths, density).expect("small");
        // (word, document, place in the request, topic)
        let mut tokens = Vec::new();
        for (d, document) in request.documents.iter().enumerate() {
            documents.write(d, document.row.iter().copied());
            for &(word, topic) in &document.tokens {
                tokens.push((word, d as u32, tokens.len(), topic));
            }
        }
        let (pass, order) = request.pass;
        match order {
            Order::ByWord => {
                documents.adapt();
                tokens.sort_unstable();
            }
            // They came that way.
            Order::ByDocument => {}
        }
        let axes = |token: &(u32, u32, usize, u32)| match order {
            Order::ByWord => (token.0, token.1),
            Order::ByDocument => (token.1, token.0),
        };
        let mut visits: Vec<RowRun> = Vec::new();
        for (i, token) in tokens.iter().enumerate() {
            let end = i as u32 + 1;
            let (row, _) = axes(token);
            match visits.last_mut() {
                Some(visit) if visit.row == row => visit.end = end,
                _ => visits.push(RowRun { row, end }),
            }
        }
        let partner: Vec<u32> = tokens.iter().map(|token| axes(token).1).collect();
        let mut z: Vec<T> = tokens.iter().map(|token| T::new(token.3)).collect();
        let mut job = job.clone();
        job.epoch = request.epoch;
        let cx = job.context(&request.totals, request.wave);
        let block = GridBlock {
            key: request.key,
            visits: &visits,
            partner: &partner,
            z: &mut z,
            words: &mut self.words,
            documents: &mut documents,
            tables: self.tables.as_mut(),
        };
        let outcome = sampler.sample(pass, &cx, &mut self.scratch, Block::Grid(block));
        let mut topics = vec![0; z.len()];
        for (token, topic) in tokens.iter().zip(z) {
            topics[token.2] = topic.get();
        }
        Reply { topics, totals: outcome.totals }
    }
}

/// A client's document: its tokens by word range and order, (word, topic), words ascending.
struct Document {
    tokens: Vec<[Vec<(u32, u32)>; 2]>,
}

impl Document {
    fn row(&self) -> Vec<(u32, u32)> {
        let mut topics: Vec<u32> =
            self.tokens.iter().flatten().flatten().map(|token| token.1).collect();
        topics.sort_unstable();
        topics.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
    }
}

/// Runs epochs over a corpus whose words are spread over as many servers as there are ranges;
/// clients hold documents and do not sample. Returns the assignments after each.
pub(crate) fn run<T: TopicIndex, S: Sampler<T>>(
    sampler: S,
    corpus: &Corpus,
    job: &PassParams,
    ranges: usize,
    epochs: u32,
) -> Vec<Vec<u32>> {
    // The corpus is cut and the first topics are drawn elsewhere; clients and servers get their parts.
    let mut start = Whole::<T>::one_set(corpus, job.topics, ranges, sampler.requires(), 0);
    start.initialise(corpus, job.seed);
    let slots = &start.sets[0].slots;
    let mut clients: Vec<Vec<Document>> = (0..ranges)
        .map(|range| {
            let empty = || Document { tokens: vec![Default::default(); ranges] };
            slots.lengths(range).iter().map(|_| empty()).collect()
        })
        .collect();
    // Where each token went: words ascend by local id, which is not the order of the corpus.
    let mut by_slot: Vec<usize> = (0..start.places.len()).collect();
    by_slot.sort_by_key(|&i| start.places[i].slot);
    let mut at = vec![0; by_slot.len()];
    for i in by_slot {
        let place = start.places[i];
        let document = &mut clients[place.document_range][place.document];
        let tokens = &mut document.tokens[place.word_range][place.order as usize];
        at[i] = tokens.len();
        tokens.push((place.word as u32, start.topic(i)));
    }
    let mut servers: Vec<Server<T, S::Scratch>> = start
        .word_rows
        .iter()
        .enumerate()
        .map(|(range, rows)| Server {
            words: rows.clone(),
            tables: start.tables.get(range).cloned(),
            scratch: sampler.scratch(job.topics),
        })
        .collect();
    let mut totals = start.totals.clone();
    let mut wave = 0;
    let passes = sampler.passes().iter().enumerate();
    let passes = passes.map(|(i, pass)| (i, pass.shape.order().expect("a pass over the grid")));
    let epoch = |epoch| {
        for (pass, step) in
            passes.clone().flat_map(|pass| (0..ranges).map(move |step| (pass, step)))
        {
            for server in servers.iter_mut().filter(|_| step == 0) {
                if pass.1 == Order::ByDocument {
                    server.words.adapt();
                }
                server.tables.iter_mut().for_each(WordTables::forget);
            }
            wave += 1;
            let before = totals.clone();
            for (range, documents) in clients.iter_mut().enumerate() {
                let word_range = (range + step) % ranges;
                let order = pass.1 as usize;
                let request = Request {
                    pass,
                    key: BlockKey { shard: 0, documents: range as u16, words: word_range as u16 },
                    epoch,
                    wave,
                    totals: before.clone(),
                    documents: documents
                        .iter()
                        .map(|d| PushedDocument {
                            row: d.row(),
                            tokens: d.tokens[word_range][order].clone(),
                        })
                        .collect(),
                };
                let reply = servers[word_range].answer(&sampler, job, &request);
                let tokens = documents.iter_mut().flat_map(|d| &mut d.tokens[word_range][order]);
                for (token, topic) in tokens.zip(reply.topics) {
                    token.1 = topic;
                }
                for (topic, by) in reply.totals {
                    let total = &mut totals[topic as usize];
                    *total = total.checked_add_signed(by).expect("totals stay at or above 0");
                }
            }
        }
        let topic = |(place, &at): (&Place, &usize)| {
            let document = &clients[place.document_range][place.document];
            document.tokens[place.word_range][place.order as usize][at].1
        };
        start.places.iter().zip(&at).map(topic).collect()
    };
    (1..=epochs).map(epoch).collect()
}
