//! A file of documents is refused, or it is a corpus that is sound and comes back when it is written again.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;

/// One with all that there may be, and one with nothing but documents.
static BASES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut whole = CorpusBuilder::new().keep_order();
    for (document, date) in [(["b", "a", "b"], "2001"), (["c", "c", "a"], "2002-02-03")] {
        whole.push_words(document).expect("it is legal");
        whole.push_date(date.parse().expect("a date"));
    }
    let bare = Corpus::from_pairs([vec![(0, 300), (4, 1)], vec![]]).expect("it is legal");
    [whole.build().expect("it is legal"), bare].iter().map(written).collect()
});

fn written(corpus: &Corpus) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    corpus.write_to(&mut out).expect("memory takes it");
    out.into_inner()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let corpus = match Corpus::load_from(Cursor::new(lda_fuzz::file(&BASES, bytes))) {
        Ok(corpus) => corpus,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut tokens = 0;
    for (d, document) in corpus.documents().enumerate() {
        assert!(document.words.is_sorted_by(|a, b| a < b));
        assert!(document.words.last().is_none_or(|&word| (word as usize) < corpus.num_words()));
        assert!(document.counts.iter().all(|&count| count > 0));
        assert!(corpus.tokens(d).is_none_or(|order| order.len() as u64 == document.len()));
        tokens += document.len();
    }
    assert_eq!(corpus.num_tokens(), tokens);
    assert!(corpus.dates().is_none_or(|dates| dates.len() == corpus.num_documents()));
    assert!(corpus.vocabulary().is_none_or(|words| words.len() == corpus.num_words()));
    assert!(Corpus::load_from(Cursor::new(written(&corpus))).expect("just written") == corpus);
});
