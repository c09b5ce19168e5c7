//! A server: rows of C_w of some partitions, and the sampling of what is pushed to them.
//!
//! It knows which words of a partition each shard has, and so a worker names a word by its place among them, a bit a
//! word in most messages. A request is sampled by rows as of the round's start and its own changes alone, so that it
//! does not matter which came before; C_k is as of the round's start. What workers and requests have changed comes into
//! the rows when the round [ends](Server::end_round).

use hashbrown::HashMap;
use lda_core::counts::TopicIndex;
use lda_core::sampler::BlockKey;
use thiserror::Error;

use crate::bench::Bench;
use crate::job::{Job, Round};
use crate::route::Route;
use crate::shard::rows_of;
use crate::store::{Store, StoreError};
use crate::wire::{Document, PushCode, RowCode, WireError};

/// A request that cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Bytes that are no request.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes behind the last row or document.
    #[error("{bytes} bytes too many")]
    Rest {
        /// How many.
        bytes: usize,
    },
    /// A partition that lies elsewhere.
    #[error("partition {partition} is not on this server")]
    Partition {
        /// Which.
        partition: u16,
    },
    /// A shard that has not said which words it has.
    #[error("shard {shard} has not said which words of partition {partition} it has")]
    Shard {
        /// Which.
        shard: u16,
        /// Of which partition.
        partition: u16,
    },
    /// Words that are not the partition's, or do not ascend.
    #[error("shard {shard} has words that partition {partition} has not")]
    Words {
        /// Whose.
        shard: u16,
        /// Of which partition.
        partition: u16,
    },
    /// Tokens that the word's row has not.
    #[error("word {word} has not the tokens that are pushed of it")]
    Tokens {
        /// Its place among the shard's.
        word: u32,
    },
    /// A document that is longer than may be pushed.
    #[error("a document of {tokens} tokens, of {longest} at most")]
    Length {
        /// Its tokens.
        tokens: u64,
        /// Most that may be.
        longest: u32,
    },
    /// Tokens of a topic that has not so many in all.
    #[error("more tokens of topic {topic} than there are")]
    Topic {
        /// Which.
        topic: u32,
    },
    /// A word that has gained or lost tokens: they only change their topics.
    #[error("a word has gained {tokens} tokens")]
    Gained {
        /// How many.
        tokens: i64,
    },
    /// Not as many routes as the shard has words.
    #[error("{found} routes for {expected} words")]
    Routes {
        /// How many came.
        found: usize,
        /// How many words the shard has.
        expected: usize,
    },
    /// Counts that cannot be.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a server has.
#[derive(Debug)]
pub struct Server<T: TopicIndex> {
    /// C_k of the round's start.
    totals: Vec<u32>,
    partitions: HashMap<u16, Partition>,
    bench: Bench<T>,
}

#[derive(Debug)]
struct Partition {
    store: Store,
    /// By shard: its words, by their places in the partition.
    shards: HashMap<u16, Vec<u32>>,
    words: Vec<u32>,
}

impl<T: TopicIndex> Server<T> {
    /// With these partitions, each with its words, which ascend; all counts are 0.
    ///
    /// # Panics
    /// If topics have numbers too narrow for K.
    pub fn new(job: &Job, partitions: impl IntoIterator<Item = (u16, Vec<u32>)>) -> Self {
        assert!(u64::from(job.topics()) <= T::MAX_TOPICS, "numbers too narrow for the topics");
        let partition = |(number, words): (u16, Vec<u32>)| {
            let store = Store::new(job.topics(), words.len());
            (number, Partition { store, shards: HashMap::new(), words })
        };
        Self {
            totals: vec![0; job.topics() as usize],
            partitions: partitions.into_iter().map(partition).collect(),
            bench: Bench::new(job.topics()),
        }
    }

    fn partition(&mut self, partition: u16) -> Result<&mut Partition, RequestError> {
        self.partitions.get_mut(&partition).ok_or(RequestError::Partition { partition })
    }

    /// A shard says which words of a partition it has.
    ///
    /// # Errors
    /// [`RequestError`], and then nothing has changed.
    pub fn subscribe(
        &mut self,
        shard: u16,
        partition: u16,
        words: &[u32],
    ) -> Result<(), RequestError> {
        let of = self.partition(partition)?;
        let wrong = RequestError::Words { shard, partition };
        if !words.is_sorted_by(|a, b| a < b) {
            return Err(wrong);
        }
        let place = |word: &u32| of.words.binary_search(word).map(|place| place as u32);
        let places: Result<Vec<u32>, _> = words.iter().map(place).collect();
        of.shards.insert(shard, places.map_err(|_| wrong)?);
        Ok(())
    }

    /// Bytes of each row of the words that a shard has of a partition.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn sizes(&mut self, shard: u16, partition: u16) -> Result<Vec<u32>, RequestError> {
        let of = self.partition(partition)?;
        let words = of.shards.get(&shard).ok_or(RequestError::Shard { shard, partition })?;
        Ok(words.iter().map(|&word| of.store.encoded(word).len() as u32).collect())
    }

    /// Writes the rows of the words that a shard pulls, as of the round's start.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn pull(
        &mut self,
        shard: u16,
        partition: u16,
        routes: &[Route],
        rows: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let of = self.partition(partition)?;
        for word in of.pulled(shard, partition, routes)? {
            rows.extend_from_slice(of.store.encoded(word));
        }
        Ok(())
    }

    /// Takes what the pulled words of a shard have gained.
    ///
    /// # Errors
    /// [`RequestError`], and then nothing has changed.
    pub fn gained(
        &mut self,
        job: &Job,
        shard: u16,
        partition: u16,
        routes: &[Route],
        mut gained: &[u8],
    ) -> Result<(), RequestError> {
        let of = self.partition(partition)?;
        let code = RowCode::new(job.topics());
        let mut read = Vec::new();
        for word in of.pulled(shard, partition, routes)? {
            let mut row: Vec<(u32, i32)> = Vec::new();
            code.decode(&mut gained, &mut row)?;
            let tokens: i64 = row.iter().map(|entry| i64::from(entry.1)).sum();
            if tokens != 0 {
                return Err(RequestError::Gained { tokens });
            }
            read.push((word, row));
        }
        if !gained.is_empty() {
            return Err(RequestError::Rest { bytes: gained.len() });
        }
        for (word, row) in read {
            of.store.add(word, &row)?;
        }
        Ok(())
    }

    /// Samples what a shard has pushed, and writes the answer.
    ///
    /// # Errors
    /// [`RequestError`], and then nothing has changed.
    #[allow(clippy::too_many_arguments)]
    pub fn push(
        &mut self,
        job: &Job,
        round: Round,
        code: PushCode,
        shard: u16,
        partition: u16,
        mut request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let Self { totals, partitions, bench } = self;
        let of = partitions.get_mut(&partition).ok_or(RequestError::Partition { partition })?;
        let words = of.shards.get(&shard).ok_or(RequestError::Shard { shard, partition })?;
        let mut pushed = Vec::new();
        while !request.is_empty() {
            let mut document = Document::default();
            code.decode(&mut request, &mut document)?;
            // What a row takes here follows from its tokens.
            let tokens = document.row.iter().map(|entry| u64::from(entry.1)).sum();
            if tokens > u64::from(code.longest()) {
                return Err(RequestError::Length { tokens, longest: code.longest() });
            }
            pushed.push(document);
        }
        // (word, document, place in the answer, topic)
        let mut tokens: Vec<(u32, u32, u32, u32)> = Vec::new();
        for (document, Document { tokens: of_document, .. }) in (0..).zip(&pushed) {
            for &(word, topic) in of_document {
                tokens.push((word, document, tokens.len() as u32, topic));
            }
        }
        tokens.sort_unstable();
        let mut own = vec![0; totals.len()];
        for &(_, _, _, topic) in &tokens {
            own[topic as usize] += 1;
            if own[topic as usize] as u32 > totals[topic as usize] {
                return Err(RequestError::Topic { topic });
            }
        }
        own.fill(0);
        let (mut read, mut numbers, mut topics) = (Vec::new(), Vec::new(), Vec::new());
        bench.clear();
        for run in tokens.chunk_by(|a, b| a.0 == b.0) {
            let word = run[0].0;
            let place = words.get(word as usize).ok_or(RequestError::Tokens { word })?;
            let mut row = Vec::new();
            of.store.row(*place, &mut row);
            topics.clear();
            topics.extend(run.iter().map(|token| token.3));
            topics.sort_unstable();
            if !crate::shard::has(&row, &topics) {
                return Err(RequestError::Tokens { word });
            }
            for &(_, document, _, topic) in run {
                bench.push(read.len() as u32, document, T::new(topic));
            }
            read.push(row);
            numbers.push(*place);
        }
        let mut rows = rows_of(job, &read);
        let of_documents: Vec<Vec<(u32, u32)>> =
            pushed.iter().map(|document| document.row.clone()).collect();
        let mut documents = rows_of(job, &of_documents);
        documents.adapt();
        let key = BlockKey { shard, documents: 1, words: partition };
        bench.sample(job, round, key, totals, &mut own, &mut rows, &mut documents);
        let mut new = vec![0; tokens.len()];
        for (token, topic) in tokens.iter().zip(bench.topics()) {
            new[token.2 as usize] = topic.get();
        }
        code.encode_answer(&pushed, &new, answer);
        let mut refused = Ok(());
        bench.gains(|row, gains| {
            let added = of.store.add(numbers[row as usize], gains);
            refused = refused.and(added);
        });
        Ok(refused?)
    }

    /// Ends the round for all rows of this server. `changes` are what C_k gains by them, added to.
    ///
    /// # Errors
    /// [`RequestError::Store`]: somebody has sent what is not of this run. Other partitions may be in the next round
    /// then, and the rows have to be made anew from the shards' topics.
    ///
    /// # Panics
    /// If `changes` are not K.
    pub fn end_round(&mut self, changes: &mut [i64]) -> Result<(), RequestError> {
        for partition in self.partitions.values_mut() {
            partition.store.end_round(changes)?;
        }
        Ok(())
    }

    /// Begins a round with these C_k.
    ///
    /// # Panics
    /// If they are not K.
    pub fn begin_round(&mut self, totals: &[u32]) {
        self.totals.copy_from_slice(totals);
    }

    /// Adds what a shard has of a partition's words: (place among the shard's, row).
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn add(
        &mut self,
        shard: u16,
        partition: u16,
        word: u32,
        row: &[(u32, i32)],
    ) -> Result<(), RequestError> {
        let of = self.partition(partition)?;
        let words = of.shards.get(&shard).ok_or(RequestError::Shard { shard, partition })?;
        let place = *words.get(word as usize).ok_or(RequestError::Tokens { word })?;
        Ok(of.store.add(place, row)?)
    }

    /// Every row: `f(word, row)`, topics ascending, as of the round's start; words in order within a partition.
    pub fn for_each(&self, mut f: impl FnMut(u32, &[(u32, u32)])) {
        let mut row = Vec::new();
        for partition in self.partitions.values() {
            for (place, &word) in partition.words.iter().enumerate() {
                partition.store.row(place as u32, &mut row);
                f(word, &row);
            }
        }
    }

    /// A word's row, topics ascending, as of the round's start.
    ///
    /// # Panics
    /// If the word or its partition is not here.
    pub fn row(&self, partition: u16, word: u32, row: &mut Vec<(u32, u32)>) {
        let of = &self.partitions[&partition];
        let place = of.words.binary_search(&word).expect("a word of the partition");
        of.store.row(place as u32, row);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |partition: &Partition| {
            let shards: usize = partition.shards.values().map(|words| 4 * words.capacity()).sum();
            partition.store.memory() + shards + 4 * partition.words.capacity()
        };
        self.partitions.values().map(of).sum()
    }
}

impl Partition {
    /// Places of the words that a shard pulls.
    fn pulled(
        &self,
        shard: u16,
        partition: u16,
        routes: &[Route],
    ) -> Result<Vec<u32>, RequestError> {
        let words = self.shards.get(&shard).ok_or(RequestError::Shard { shard, partition })?;
        if routes.len() != words.len() {
            let (found, expected) = (routes.len(), words.len());
            return Err(RequestError::Routes { found, expected });
        }
        let pulled = words.iter().zip(routes).filter(|(_, route)| **route == Route::Pull);
        Ok(pulled.map(|(&word, _)| word).collect())
    }
}
