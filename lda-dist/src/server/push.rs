//! Sampling of pushed tokens on a server.

use std::borrow::Cow;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::sampler::BlockKey;

use super::SliceState;
use super::error::RequestError;
use crate::config::Options;
use crate::partition_sampler::{
    NotInRow, PartitionSampler, RoundContext, SampleContext, tokens_of,
};
use crate::request::RequestHeader;
use crate::row_store::{ReadAt, RowBuffers};
use crate::wire::{Document, Lists, PushCode};

/// Source of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSource {
    /// The changes that they contain.
    pub at: ReadAt,
    /// Place of these rows in the row cache, if they are cached.
    pub cached: Option<usize>,
}

/// A token of a push, by word.
struct PushedToken {
    /// Index among the shard's words.
    word: u32,
    /// Index of the document in the request.
    document: u32,
    /// Position in the answer.
    position: u32,
    topic: u32,
}

/// A request whose tokens are sampled.
pub(super) struct Push<'a> {
    pub options: &'a Options,
    pub header: &'a RequestHeader,
    pub round: RoundContext<'a>,
    pub rows: RowSource,
}

impl Push<'_> {
    /// Samples the tokens of the request, writes the answer, and adds the deltas to the slice.
    /// Returns the bytes that the request took here.
    pub fn run<T: TopicIndex>(
        &self,
        slice: &mut SliceState<T>,
        sampler: &mut PartitionSampler<T>,
        body: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<usize, RequestError> {
        let words = slice.shards[&self.header.shard].len();
        let longest = self.options.max_pushed_len;
        let code = PushCode::new(self.round.spec.topics(), words as u32, longest);
        let (pushed, rows) = read(code, body)?;
        let tokens = by_word(&pushed, words);
        let mut own = vec![0; self.round.totals.len()];
        let totals = self.totals(&tokens, &mut own)?;
        own.fill(0);
        let places = self.add_words(slice, sampler, &tokens)?;
        let topics = self.round.spec.topics() as usize;
        let mut documents = Rows::new(topics, tokens_of(&rows), Density::Auto)
            .expect("rows that came in one message fit");
        for (index, row) in rows.iter().enumerate() {
            documents.write(index, row.iter().copied());
        }
        documents.adapt();
        let RequestHeader { shard, slice: number, round } = *self.header;
        let key = BlockKey { shard, documents: 2, words: number };
        let RoundContext { spec, passes, .. } = self.round;
        let (own_now, rows_now) = (&mut own, &mut documents);
        let mut context =
            SampleContext { spec, round, key, totals: &totals, own: own_now, documents: rows_now };
        sampler.sample(&[u32::MAX], passes, &mut context);
        let mut new = vec![0; tokens.len()];
        for (token, topic) in tokens.iter().zip(sampler.topics()) {
            new[token.position as usize] = topic.get();
        }
        code.encode_answer(&pushed, &new, answer);
        let mut added = Ok(());
        let SliceState { store, row_cache, .. } = slice;
        sampler.for_each_delta(|row, delta| {
            let word = places[row as usize];
            added = added.and(store.add(round, word, delta));
            row_cache.change(word, delta);
        });
        added?;
        let read: usize = pushed.iter().map(Document::memory).sum();
        let in_rows = rows.memory() + documents.memory() as usize;
        let of_tokens = size_of_val(&tokens[..]) + size_of_val(&new[..]);
        Ok(read + in_rows + of_tokens + size_of_val(&own[..]))
    }

    /// C_k, with at least the pushed tokens. `counts` is scratch, all zeros.
    fn totals(
        &self,
        tokens: &[PushedToken],
        counts: &mut [i32],
    ) -> Result<Cow<'_, [u32]>, RequestError> {
        let mut totals = Cow::Borrowed(self.round.totals);
        for &PushedToken { topic, .. } in tokens {
            let index = topic as usize;
            counts[index] += 1;
            let own = counts[index] as u32;
            if own > totals[index] {
                if !self.options.sync.may_lack_own_updates() {
                    return Err(RequestError::Topic { topic });
                }
                // The shard has moved these tokens in a round that is still open.
                totals.to_mut()[index] = own;
            }
        }
        Ok(totals)
    }

    /// Passes the words' rows and the tokens to the sampler; returns the words' places in the
    /// partition.
    fn add_words<T: TopicIndex>(
        &self,
        slice: &mut SliceState<T>,
        sampler: &mut PartitionSampler<T>,
        tokens: &[PushedToken],
    ) -> Result<Vec<u32>, RequestError> {
        let SliceState { store, shards, row_cache, .. } = slice;
        let words = &shards[&self.header.shard];
        let (mut places, mut buffers) = (Vec::new(), RowBuffers::default());
        let RowSource { at, cached } = self.rows;
        sampler.clear();
        for run in tokens.chunk_by(|a, b| a.word == b.word) {
            let word = run[0].word;
            let place = *words.get(word as usize).ok_or(RequestError::Tokens { word })?;
            let of_run = run.iter().map(|token| (token.document, T::new(token.topic)));
            let added = match cached {
                Some(cached) => {
                    let rows = row_cache.rows(cached, store, place)?;
                    sampler.add_word_from_rows(rows, place as usize, of_run)
                }
                None => sampler.add_word(&mut store.read_at(at, place, &mut buffers)?, of_run)?,
            };
            added.map_err(|NotInRow| RequestError::Tokens { word })?;
            places.push(place);
        }
        Ok(places)
    }
}

/// Decodes the documents of a request, and their rows of C_d.
fn read(code: PushCode, mut body: &[u8]) -> Result<(Vec<Document>, Lists<u32>), RequestError> {
    let (mut pushed, mut rows) = (Vec::new(), Lists::default());
    while !body.is_empty() {
        let mut document = Document::default();
        code.decode(&mut body, &mut document)?;
        // The memory of a row here follows from its tokens.
        let tokens = document.row.iter().map(|entry| u64::from(entry.1)).sum();
        if tokens > u64::from(code.longest()) {
            return Err(RequestError::Length { tokens, longest: code.longest() });
        }
        rows.push(&document.row);
        pushed.push(document);
    }
    Ok((pushed, rows))
}

/// All tokens by word; documents of a word stay in order. A counting sort: words are below
/// `words`.
fn by_word(pushed: &[Document], words: usize) -> Vec<PushedToken> {
    let all = || {
        (0..).zip(pushed).flat_map(|(at, document)| document.tokens.iter().map(move |it| (at, *it)))
    };
    let mut next = vec![0; words + 1];
    all().for_each(|(_, (word, _))| next[word as usize + 1] += 1);
    (1..next.len()).for_each(|word| next[word] += next[word - 1]);
    let none = || PushedToken { word: 0, document: 0, position: 0, topic: 0 };
    let mut tokens: Vec<PushedToken> = std::iter::repeat_with(none).take(next[words]).collect();
    for (position, (document, (word, topic))) in (0..).zip(all()) {
        let at = &mut next[word as usize];
        tokens[*at] = PushedToken { word, document, position, topic };
        *at += 1;
    }
    tokens
}
