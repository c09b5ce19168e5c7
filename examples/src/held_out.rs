//! Split of a corpus into training documents and held-out documents.

use lda_core::Corpus;
use lda_core::corpus::{BuildError, CorpusBuilder};

/// Splits a corpus into training and held-out documents. Both sides have all documents, those of the
/// other side without tokens, so that document numbers stay the same in every output.
///
/// Only the seed and the number of a document decide whether it is held out. Named words that no
/// training document has leave both sides: a model cannot know them, and its number of words must not
/// count them. Token order is kept where there is one.
///
/// # Errors
/// [`BuildError::NoTokens`] if all tokens are on one side.
pub fn split(corpus: &Corpus, share: f64, seed: u64) -> Result<(Corpus, Corpus), BuildError> {
    let mut sides = [builder(corpus), builder(corpus)];
    for (d, document) in corpus.documents().enumerate() {
        let held = usize::from(is_held_out(d as u64, share, seed));
        match corpus.tokens(d) {
            Some(tokens) => sides[held].push_tokens(tokens.iter().copied())?,
            None => sides[held].push_pairs(document.iter())?,
        }
        sides[1 - held].push_tokens(std::iter::empty::<u32>())?;
    }
    for date in corpus.dates().into_iter().flatten() {
        sides.iter_mut().for_each(|side| side.push_date(*date));
    }
    let [train, held] = sides;
    let (mut train, mut held) = (train.build()?, held.build()?);
    if corpus.vocabulary().is_some() {
        let frequencies = train.word_frequencies();
        let is_known = |word: u32| frequencies[word as usize] > 0;
        train.retain_words(is_known);
        held.retain_words(is_known);
        if held.num_tokens() == 0 {
            return Err(BuildError::NoTokens);
        }
    }
    Ok((train, held))
}

/// Number of documents with tokens.
pub fn num_documents(corpus: &Corpus) -> usize {
    corpus.documents().filter(|document| !document.is_empty()).count()
}

fn builder(corpus: &Corpus) -> CorpusBuilder {
    let builder = match corpus.vocabulary() {
        Some(vocabulary) => CorpusBuilder::new().vocabulary(vocabulary.clone()),
        None => CorpusBuilder::new().num_words(corpus.num_words() as u32),
    };
    if corpus.has_token_order() { builder.keep_order() } else { builder }
}

/// True if the document with this number is held out.
pub fn is_held_out(document: u64, share: f64, seed: u64) -> bool {
    // SplitMix64's finaliser (Steele et al. 2014): neighbouring documents are independent.
    let mut hash = seed ^ (document + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ((hash >> 11) as f64) < share * (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_is_on_one_side() {
        let corpus = Corpus::from_tokens((0..1000).map(|d| [d % 7, d % 5, 0])).unwrap();
        let (train, held) = split(&corpus, 0.2, 3).unwrap();
        assert_eq!(train.num_documents(), 1000);
        assert_eq!(train.num_tokens() + held.num_tokens(), corpus.num_tokens());
        assert_eq!(held.num_words(), corpus.num_words());
        for d in 0..1000 {
            let side = if train.document(d).is_empty() { &held } else { &train };
            assert_eq!(side.document(d), corpus.document(d));
        }
        // 200 expected, standard deviation 12.6.
        assert!((140..260).contains(&num_documents(&held)), "{}", num_documents(&held));
        assert_ne!(split(&corpus, 0.2, 4).unwrap().1, held);
    }

    #[test]
    fn the_order_of_tokens_is_kept() {
        let mut builder = CorpusBuilder::new().keep_order();
        builder.extend_tokens((0..100).map(|d| [5, d % 3, 4, d % 3])).unwrap();
        let corpus = builder.build().unwrap();
        let (train, held) = split(&corpus, 0.2, 3).unwrap();
        for d in 0..100 {
            let side = if train.document(d).is_empty() { &held } else { &train };
            assert_eq!(side.tokens(d), corpus.tokens(d));
        }
    }

    #[test]
    fn words_of_held_out_documents_alone_leave_both_sides() {
        let texts = (0..100).map(|d| [format!("own{d}"), "shared".into()]);
        let corpus = Corpus::from_words(texts).unwrap();
        let (train, held) = split(&corpus, 0.2, 3).unwrap();
        assert_eq!(train.num_words(), num_documents(&train) + 1);
        assert_eq!(held.vocabulary(), train.vocabulary());
        assert_eq!(held.num_tokens() as usize, num_documents(&held));
        // Nothing that is left can be evaluated.
        let corpus = Corpus::from_words((0..100).map(|d| [format!("own{d}")])).unwrap();
        assert!(matches!(split(&corpus, 0.2, 3), Err(BuildError::NoTokens)));
    }

    #[test]
    fn a_side_without_tokens_is_refused() {
        let corpus = Corpus::from_tokens([[0]]).unwrap();
        assert!(matches!(split(&corpus, 0.5, 0), Err(BuildError::NoTokens)));
    }
}
