//! Tokens that are pushed: sampled by the rows of their words, and answered.

use std::borrow::Cow;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::sampler::BlockKey;

use super::SliceState;
use super::error::RequestError;
use crate::config::Options;
use crate::partition_sampler::{NotInRow, PartitionSampler, SampleContext, tokens_of};
use crate::request::RequestHeader;
use crate::spec::ModelSpec;
use crate::wire::{Document, Lists, PushCode};

/// Samples what a shard has pushed by rows of a version, which may be kept at a place, and these C_k, and writes the
/// answer; gives back the bytes that its documents took here.
#[allow(clippy::too_many_arguments)]
pub(super) fn push<T: TopicIndex>(
    spec: &ModelSpec,
    options: &Options,
    code: PushCode,
    header: &RequestHeader,
    totals: &[u32],
    (version, kept): (u64, Option<usize>),
    sampler: &mut PartitionSampler<T>,
    of: &mut SliceState<T>,
    mut body: &[u8],
    answer: &mut Vec<u8>,
) -> Result<usize, RequestError> {
    let mut totals = Cow::Borrowed(totals);
    let words = &of.shards[&header.shard];
    let (mut pushed, mut rows) = (Vec::new(), Lists::default());
    while !body.is_empty() {
        let mut document = Document::default();
        code.decode(&mut body, &mut document)?;
        // What a row takes here follows from its tokens.
        let tokens = document.row.iter().map(|entry| u64::from(entry.1)).sum();
        if tokens > u64::from(code.longest()) {
            return Err(RequestError::Length { tokens, longest: code.longest() });
        }
        rows.push(&document.row);
        pushed.push(document);
    }
    let tokens = by_word(&pushed, words.len());
    let mut own = vec![0; totals.len()];
    for &(_, _, _, topic) in &tokens {
        own[topic as usize] += 1;
        if own[topic as usize] as u32 > totals[topic as usize] {
            if !options.sync().may_lack_own_updates() {
                return Err(RequestError::Topic { topic });
            }
            // They have it since a round that is on: there are as many at least.
            totals.to_mut()[topic as usize] = own[topic as usize] as u32;
        }
    }
    own.fill(0);
    let mut places = Vec::new();
    sampler.clear();
    for run in tokens.chunk_by(|a, b| a.0 == b.0) {
        let word = run[0].0;
        let place = *words.get(word as usize).ok_or(RequestError::Tokens { word })?;
        let of_run = run.iter().map(|&(_, document, _, topic)| (document, T::new(topic)));
        let laid = match kept {
            Some(kept) => {
                let rows = of.row_cache.with(kept, &of.store, place);
                sampler.add_word_from_rows(rows, place as usize, of_run)
            }
            None => sampler.add_word(&mut of.store.encoded(version, place), of_run)?,
        };
        laid.map_err(|NotInRow| RequestError::Tokens { word })?;
        places.push(place);
    }
    let mut documents = Rows::new(spec.topics() as usize, tokens_of(&rows), Density::Auto)
        .expect("rows that came in one message");
    for (at, row) in rows.iter().enumerate() {
        documents.write(at, row.iter().copied());
    }
    documents.adapt();
    let key = BlockKey { shard: header.shard, documents: 2, words: header.slice };
    let (round, documents) = (header.round, &mut documents);
    sampler.sample(
        &[u32::MAX],
        options.passes,
        &mut SampleContext { spec, round, key, totals: &totals, own: &mut own, documents },
    );
    let mut new = vec![0; tokens.len()];
    for (token, topic) in tokens.iter().zip(sampler.topics()) {
        new[token.2 as usize] = topic.get();
    }
    code.encode_answer(&pushed, &new, answer);
    let mut added = Ok(());
    sampler.for_each_delta(|row, gains| {
        added = added.and(of.store.add(header.round, places[row as usize], gains));
    });
    added?;
    let read: usize = pushed.iter().map(Document::memory).sum();
    let in_rows = rows.memory() + documents.memory() as usize;
    let of_tokens = size_of_val(&tokens[..]) + size_of_val(&new[..]);
    Ok(read + in_rows + of_tokens + size_of_val(&own[..]))
}

/// (word, document, place in the answer, topic) of all tokens, by word; documents of a word stay in order. Words are
/// below so many, counted and not compared.
fn by_word(pushed: &[Document], words: usize) -> Vec<(u32, u32, u32, u32)> {
    let all = || {
        (0..).zip(pushed).flat_map(|(at, document)| document.tokens.iter().map(move |it| (at, *it)))
    };
    let mut next = vec![0; words + 1];
    all().for_each(|(_, (word, _))| next[word as usize + 1] += 1);
    (1..next.len()).for_each(|word| next[word] += next[word - 1]);
    let mut tokens = vec![(0, 0, 0, 0); next[words]];
    for (place, (document, (word, topic))) in (0..).zip(all()) {
        let at = &mut next[word as usize];
        tokens[*at] = (word, document, place, topic);
        *at += 1;
    }
    tokens
}
