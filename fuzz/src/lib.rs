//! What must hold of anything a reader lets through.

use lda_core::corpus::read::uci;
use lda_core::corpus::{Corpus, ReadError, ReadOptions, ReadReport, write_uci};

/// Options under which a claim of many empty documents ends early, so that inputs stay fast.
pub fn options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.max_empty_documents = 1 << 12;
    options
}

/// Checks a reader's result: the corpus is sound, the report agrees with it, and it survives
/// writing and reading; an error has something to say.
///
/// # Panics
/// Where that is not so.
pub fn check(result: Result<(Corpus, ReadReport), ReadError>) {
    let (corpus, report) = match result {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut tokens = 0;
    for document in corpus.documents() {
        assert_eq!(document.words.len(), document.counts.len());
        assert!(document.words.is_sorted_by(|a, b| a < b));
        assert!(document.words.last().is_none_or(|&word| (word as usize) < corpus.num_words()));
        assert!(document.counts.iter().all(|&count| count > 0));
        tokens += document.len();
    }
    assert!(tokens > 0);
    assert_eq!((corpus.num_tokens(), report.tokens), (tokens, tokens));
    assert_eq!(corpus.num_pairs() as u64, report.pairs);
    if let Some(vocabulary) = corpus.vocabulary() {
        assert_eq!(vocabulary.len(), corpus.num_words());
    }

    let mut written = Vec::new();
    write_uci(&corpus, &mut written).expect("memory takes it");
    let mut options = ReadOptions::default();
    options.max_empty_documents = u64::MAX;
    let (again, _) = uci::from_reader(&written[..], "written", &options).expect("just written");
    assert_eq!(again.fingerprint(), corpus.fingerprint());
}
