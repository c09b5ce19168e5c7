//! Encoding of pushed tokens, which are sampled on the server of their words (LDA*, section 4.1),
//! and of the reply.
//!
//! A request has documents, each with its row of C_d followed by the tokens that the server is to
//! sample, by word. The topic of a token is one of the row's, and is encoded as its position in the
//! row: ⌈log₂ K_d⌉ bits instead of ⌈log₂ K⌉, and none for a document with one topic. The answer has
//! the tokens in the same order; a token that keeps its topic, as most do, takes one bit.
//!
//! ```text
//! document  its row in `RowCode`, then in bits, padded to a byte:
//!           code₂ of the number of its words − 1, and for each word, ascending:
//!           code₆ of w − w' − 1, w' being the previous word, or −1
//!           code₀ of the number of tokens − 1, and for each token:
//!           the position of its topic in the row, in ⌈log₂ K_d⌉ bits
//! answer    in bits, padded to a byte, for each token of all documents:
//!           1 if its topic is unchanged, or 0 and
//!           1 and the position of the new one in the row, in ⌈log₂ K_d⌉ bits, or
//!           0 and the new topic, in ⌈log₂ K⌉ bits
//! ```
//!
//! Decoding checks that the row of a document counts its tokens, so that removing them leaves no
//! negative count, and that the document has no more tokens than the limit: tokens that take no
//! bits could otherwise be any number.

use super::bits::{Reader, Writer};
use super::row::{get, put};
use super::{RowCode, WireError};

/// Order of the code of the number of words.
const OF_WORDS: u32 = 2;
/// Order of the code of gaps between words.
const OF_GAPS: u32 = 6;
/// Order of the code of the number of tokens per word.
const OF_TOKENS: u32 = 0;

/// Number of bits of an index below `things`.
fn bits_to_tell(things: u64) -> u32 {
    things.next_power_of_two().trailing_zeros()
}

/// The part of a document that is pushed to one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Row of C_d: topics ascend, counts are above 0. It counts the tokens below.
    pub row: Vec<(u32, u32)>,
    /// (word, topic) of each token, words ascending. Words are positions in their partition.
    pub tokens: Vec<(u32, u32)>,
}

impl Document {
    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + 8 * (self.row.capacity() + self.tokens.capacity())
    }
}

/// Encoder and decoder of pushed tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushCode {
    rows: RowCode,
    words: u32,
    longest: u32,
}

impl PushCode {
    /// A code for K topics, a partition of `words` words, and at most `longest` tokens per
    /// document.
    ///
    /// # Panics
    /// If K is 0.
    pub fn new(topics: u32, words: u32, longest: u32) -> Self {
        Self { rows: RowCode::new(topics), words, longest }
    }

    /// Largest number of tokens per document.
    pub fn longest(self) -> u32 {
        self.longest
    }

    /// Appends an encoded document to `to`.
    ///
    /// # Panics
    /// If the row is invalid or does not count the tokens, if words do not ascend or are not below
    /// their number, or if there are no tokens or too many.
    pub fn encode(self, document: &Document, to: &mut Vec<u8>) {
        let Document { row, tokens } = document;
        let fit = !tokens.is_empty() && tokens.len() <= self.longest as usize;
        assert!(fit, "a document of {} tokens", tokens.len());
        assert!(tokens.is_sorted_by_key(|token| token.0), "words do not ascend");
        self.rows.encode(row, to);
        let bits = bits_to_tell(row.len() as u64);
        let mut writer = Writer::new(to);
        let words = tokens.chunk_by(|a, b| a.0 == b.0);
        put(&mut writer, words.clone().count() as u32 - 1, OF_WORDS);
        let mut next = 0;
        for run in words {
            let word = run[0].0;
            assert!(word < self.words, "word {word} of {}", self.words);
            put(&mut writer, word - next, OF_GAPS);
            next = word + 1;
            put(&mut writer, run.len() as u32 - 1, OF_TOKENS);
            for &(_, topic) in run {
                writer.put(position(row, topic).expect("the row counts the token"), bits);
            }
        }
        writer.finish();
    }

    /// Decodes a document off the front of `from`.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are malformed; `document` is then empty and `from` unchanged.
    pub fn decode(self, from: &mut &[u8], document: &mut Document) -> Result<(), WireError> {
        document.tokens.clear();
        let mut rest = *from;
        let read = self.rows.decode(&mut rest, &mut document.row);
        let read = read.and_then(|()| self.read_tokens(&mut rest, document));
        match read {
            Ok(()) => *from = rest,
            Err(_) => {
                document.row.clear();
                document.tokens.clear();
            }
        }
        read
    }

    fn read_tokens(self, from: &mut &[u8], document: &mut Document) -> Result<(), WireError> {
        let Document { row, tokens } = document;
        let bits = bits_to_tell(row.len() as u64);
        let reader = Reader(from);
        let mut at = 0;
        let mut next = 0u64;
        // Counts of the row less the tokens so far: none may fall below 0.
        let mut left: Vec<u32> = row.iter().map(|entry| entry.1).collect();
        for _ in 0..=get(reader, &mut at, OF_WORDS)? {
            let word = next + u64::from(get(reader, &mut at, OF_GAPS)?);
            if word >= u64::from(self.words) {
                return Err(WireError::Word { word, words: self.words });
            }
            next = word + 1;
            for _ in 0..=get(reader, &mut at, OF_TOKENS)? {
                let position = reader.window(at) & ((1 << bits) - 1);
                at += u64::from(bits);
                if tokens.len() == self.longest as usize {
                    return Err(WireError::Length { longest: self.longest });
                }
                let count = left.get_mut(position as usize).ok_or(WireError::NotInRow)?;
                *count = count.checked_sub(1).ok_or(WireError::NotInRow)?;
                tokens.push((word as u32, row[position as usize].0));
            }
            if at > reader.len() {
                return Err(WireError::Truncated);
            }
        }
        *from = from.get(at.div_ceil(8) as usize..).ok_or(WireError::Truncated)?;
        Ok(())
    }

    /// Appends the answer to a request: the new topics of its tokens.
    ///
    /// # Panics
    /// If there are not as many topics as tokens, or if one is not below K.
    pub fn encode_answer<'a>(
        self,
        documents: impl IntoIterator<Item = &'a Document>,
        topics: &[u32],
        to: &mut Vec<u8>,
    ) {
        let (of_all, mut topics) = (bits_to_tell(self.rows.topics().into()), topics.iter());
        let mut writer = Writer::new(to);
        for Document { row, tokens } in documents {
            let bits = bits_to_tell(row.len() as u64);
            for &(_, before) in tokens {
                let &topic = topics.next().expect("a topic per token");
                assert!(topic < self.rows.topics(), "topic {topic}");
                if topic == before {
                    writer.put(1, 1);
                } else if let Some(position) = position(row, topic) {
                    writer.put(0b10, 2);
                    writer.put(position, bits);
                } else {
                    writer.put(0, 2);
                    writer.put(topic.into(), of_all);
                }
            }
        }
        assert!(topics.next().is_none(), "more topics than tokens");
        writer.finish();
    }

    /// Decodes the answer to a request with these documents: the new topics of their tokens.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are malformed; `topics` is then empty.
    pub fn decode_answer<'a>(
        self,
        documents: impl IntoIterator<Item = &'a Document>,
        from: &[u8],
        topics: &mut Vec<u32>,
    ) -> Result<(), WireError> {
        topics.clear();
        let read = self.read_answer(documents, from, topics);
        if read.is_err() {
            topics.clear();
        }
        read
    }

    fn read_answer<'a>(
        self,
        documents: impl IntoIterator<Item = &'a Document>,
        from: &[u8],
        topics: &mut Vec<u32>,
    ) -> Result<(), WireError> {
        let of_all = bits_to_tell(self.rows.topics().into());
        let reader = Reader(from);
        let mut at = 0;
        for Document { row, tokens } in documents {
            let bits = bits_to_tell(row.len() as u64);
            for &(_, before) in tokens {
                let window = reader.window(at);
                if window & 1 == 1 {
                    topics.push(before);
                    at += 1;
                } else if window & 2 == 2 {
                    let position = window >> 2 & ((1 << bits) - 1);
                    topics.push(row.get(position as usize).ok_or(WireError::NotInRow)?.0);
                    at += 2 + u64::from(bits);
                } else {
                    let (topic, topics_all) =
                        (window >> 2 & ((1 << of_all) - 1), self.rows.topics());
                    if topic >= u64::from(topics_all) {
                        return Err(WireError::Topic { topic, topics: topics_all });
                    }
                    topics.push(topic as u32);
                    at += 2 + u64::from(of_all);
                }
            }
        }
        if at.div_ceil(8) != from.len() as u64 {
            return Err(WireError::Truncated);
        }
        Ok(())
    }
}

/// Position of a topic in a row.
fn position(row: &[(u32, u32)], topic: u32) -> Option<u64> {
    row.binary_search_by_key(&topic, |entry| entry.0).ok().map(|at| at as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const TOPICS: u32 = 300;
    const WORDS: u32 = 1000;

    fn document() -> impl Strategy<Value = Document> {
        let tokens = prop::collection::vec((0..WORDS, 0..TOPICS), 1..40);
        let more = prop::collection::vec(0..TOPICS, 0..20);
        (tokens, more, 1..TOPICS).prop_map(|(mut tokens, more, spread)| {
            tokens.sort_unstable();
            tokens.iter_mut().for_each(|token| token.1 %= spread);
            let mut row = BTreeMap::new();
            for topic in tokens.iter().map(|token| token.1).chain(more) {
                *row.entry(topic).or_default() += 1;
            }
            Document { row: row.into_iter().collect(), tokens }
        })
    }

    fn code() -> PushCode {
        PushCode::new(TOPICS, WORDS, 40)
    }

    fn written(documents: &[Document]) -> Vec<u8> {
        let mut bytes = Vec::new();
        documents.iter().for_each(|document| code().encode(document, &mut bytes));
        bytes
    }

    proptest! {
        #[test]
        fn documents_and_answers_come_back(
            documents in prop::collection::vec(document(), 0..6),
            drawn in prop::collection::vec((0..3u8, 0..TOPICS), 240),
        ) {
            let bytes = written(&documents);
            let mut rest = &bytes[..];
            let mut read = Document::default();
            for document in &documents {
                code().decode(&mut rest, &mut read).unwrap();
                prop_assert_eq!(&read, document);
            }
            prop_assert!(rest.is_empty());

            let tokens = documents.iter().flat_map(|it| it.tokens.iter().map(move |token| (it, token)));
            let new: Vec<u32> = tokens
                .zip(drawn)
                .map(|((document, token), (kind, topic))| match kind {
                    0 => token.1,
                    1 => document.row[topic as usize % document.row.len()].0,
                    _ => topic,
                })
                .collect();
            let mut answer = Vec::new();
            code().encode_answer(&documents, &new, &mut answer);
            let mut topics = vec![7];
            prop_assert_eq!(code().decode_answer(&documents, &answer, &mut topics), Ok(()));
            prop_assert_eq!(&topics, &new);
            if !answer.is_empty() {
                answer.pop();
                prop_assert!(code().decode_answer(&documents, &answer, &mut topics).is_err());
                prop_assert!(topics.is_empty());
            }
        }

        #[test]
        fn a_truncated_document_is_refused(document in document()) {
            let bytes = written(&[document]);
            for len in 0..bytes.len() {
                let mut read = Document::default();
                prop_assert!(code().decode(&mut &bytes[..len], &mut read).is_err());
                prop_assert_eq!(read, Document::default());
            }
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let code = PushCode::new(20, 50, 100);
            let (mut rest, mut read) = (&bytes[..], Document::default());
            while code.decode(&mut rest, &mut read).is_ok() {
                // Panics unless the decoded document is valid.
                code.encode(&read, &mut Vec::new());
            }
            let document = Document { row: vec![(3, 2), (9, 1)], tokens: vec![(0, 3), (1, 9)] };
            let mut topics = Vec::new();
            if code.decode_answer([&document], &bytes, &mut topics).is_ok() {
                prop_assert!(topics.len() == 2 && topics.iter().all(|&topic| topic < 20));
            }
        }
    }

    #[test]
    fn tokens_that_the_row_does_not_count_are_refused() {
        let honest = Document { row: vec![(3, 2), (9, 1)], tokens: vec![(0, 3), (1, 3), (2, 9)] };
        let bytes = written(std::slice::from_ref(&honest));
        let mut read = Document::default();
        code().decode(&mut &bytes[..], &mut read).unwrap();
        assert_eq!(read, honest);
        // The same tokens after a row that counts one fewer.
        let mut forged = Vec::new();
        RowCode::new(TOPICS).encode(&[(3, 1u32), (9, 1)], &mut forged);
        forged.extend(&bytes[RowCode::new(TOPICS).size(&honest.row)..]);
        assert_eq!(code().decode(&mut &forged[..], &mut read), Err(WireError::NotInRow));
        // A word that is out of range.
        let few = PushCode::new(TOPICS, 2, 40);
        let expected = WireError::Word { word: 2, words: 2 };
        assert_eq!(few.decode(&mut &bytes[..], &mut read), Err(expected));
        let short = PushCode::new(TOPICS, WORDS, 2);
        let expected = WireError::Length { longest: 2 };
        assert_eq!(short.decode(&mut &bytes[..], &mut read), Err(expected));
    }

    #[test]
    fn tokens_of_a_document_with_one_topic_take_no_bits() {
        let document = Document { row: vec![(3, 9)], tokens: vec![(0, 3); 8] };
        // After the row: 3 bits for one word, 7 for its number and 7 for eight tokens, 3 bytes.
        let bytes = written(std::slice::from_ref(&document));
        assert_eq!(bytes.len(), RowCode::new(TOPICS).size(&document.row) + 3);
        let mut answer = Vec::new();
        code().encode_answer([&document], &[3; 8], &mut answer);
        assert_eq!(answer, [0xff]);
    }
}
