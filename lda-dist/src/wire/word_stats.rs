//! Encoding of word statistics, which the master sends to all nodes.

use super::WireError;
use super::row::number;
use crate::placement::WordStats;

/// Largest number of tokens of a job: 2^16 shards of 2^32 tokens.
const MAX_TOKENS: u64 = 1 << 48;
/// Largest number of bytes of an encoded number.
const MAX_BYTES: u32 = 9;

/// Appends, for each word, its number of tokens and, if that is not 0, the number by which its
/// tokens exceed its documents. Numbers have 7 bits per byte.
pub fn put_word_stats(words: &WordStats, to: &mut Vec<u8>) {
    for (&tokens, &documents) in words.tokens().iter().zip(words.documents()) {
        put(tokens, to);
        if tokens > 0 {
            put(tokens - documents, to);
        }
    }
}

/// Decodes the statistics of `words` words off the front of `from`.
///
/// # Errors
/// [`WireError::Truncated`] if bytes are missing, [`WireError::Number`] if a number is out of
/// range.
pub fn take_word_stats(words: u32, from: &mut &[u8]) -> Result<WordStats, WireError> {
    // A word takes at least a byte: reject before allocating.
    if from.len() < words as usize {
        return Err(WireError::Truncated);
    }
    let (mut all, mut sum) = ((Vec::new(), Vec::new()), 0u64);
    for _ in 0..words {
        let tokens = number(from, MAX_BYTES)?;
        let documents = match tokens {
            0 => 0,
            _ => tokens.checked_sub(number(from, MAX_BYTES)?).ok_or(WireError::Number)?,
        };
        sum = sum.checked_add(tokens).filter(|&sum| sum <= MAX_TOKENS).ok_or(WireError::Number)?;
        all.0.push(tokens);
        all.1.push(documents);
    }
    WordStats::new(all.0, all.1).map_err(|_| WireError::Number)
}

fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoded_statistics_come_back(word_stats in prop::collection::vec((0..1u64 << 42, 0..100u64), 0..20)) {
            let documents = |&(tokens, by): &(u64, u64)| tokens - tokens.saturating_sub(1) * by / 100;
            let all = word_stats.iter().map(documents).collect();
            let words = WordStats::new(word_stats.iter().map(|it| it.0).collect(), all).unwrap();
            let mut bytes = Vec::new();
            put_word_stats(&words, &mut bytes);
            let read = |mut from: &[u8]| take_word_stats(word_stats.len() as u32, &mut from);
            prop_assert_eq!(read(&bytes), Ok(words));
            for cut in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..cut]), Err(WireError::Truncated));
            }
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..60), words in 0..9u32) {
            let mut rest = &bytes[..];
            if let Ok(word_stats) = take_word_stats(words, &mut rest) {
                prop_assert_eq!(word_stats.num_words(), words as usize);
                prop_assert!(rest.len() + words as usize <= bytes.len());
            }
        }
    }

    #[test]
    fn contradictory_numbers_are_refused() {
        let read = |mut from: &[u8]| take_word_stats(1, &mut from).unwrap_err();
        assert_eq!(read(&[3, 3]), WireError::Number, "tokens without documents");
        assert_eq!(read(&[3, 4]), WireError::Number, "a negative number of documents");
        let mut long = vec![0xff; 9];
        long.push(0);
        assert_eq!(read(&long), WireError::Number);
        let mut many = Vec::new();
        put(MAX_TOKENS + 1, &mut many);
        many.push(0);
        assert_eq!(read(&many), WireError::Number);
        assert_eq!(take_word_stats(u32::MAX, &mut &[0; 9][..]), Err(WireError::Truncated));
    }
}
