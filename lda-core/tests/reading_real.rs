//! Readers on real corpora, which `LDA_CORPORA` names.

use lda_core::Corpus;
use lda_core::corpus::{Format, ReadError, ReadOptions, write_uci};

#[path = "common/real.rs"]
mod real;

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn kos_matches_published_sizes() {
    let path = real::file("docword.kos.txt.gz");
    let (corpus, report) =
        Corpus::read_with_report(path, &ReadOptions::default()).expect("a published file");
    assert_eq!((corpus.num_documents(), corpus.num_words()), (3430, 6906));
    assert_eq!((corpus.num_pairs(), corpus.num_tokens()), (353_160, 467_714));
    assert_eq!(corpus.word_frequencies().iter().sum::<u64>(), 467_714);
    let repaired = report.unsorted_pairs
        + report.repeated_pairs
        + report.zero_counts
        + report.out_of_order_documents
        + report.empty_documents
        + report.unused_words;
    assert_eq!(repaired, 0, "{report:?}");
    assert_eq!(corpus.fingerprint(), 0xba15_c14b_de63_75bf);

    let vocabulary = real::file("vocab.kos.txt.gz");
    let corpus = corpus.with_vocabulary(vocabulary).expect("a word a line");
    assert_eq!(corpus.vocabulary().expect("just given").id("aarp"), Some(0));

    let mut written = Vec::new();
    write_uci(&corpus, &mut written).expect("memory takes it");
    let again = Format::Uci.read_from(&written[..], "written", &ReadOptions::default());
    assert_eq!(again.expect("just written").0.fingerprint(), corpus.fingerprint());
}

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn files_of_another_corpus_are_rejected() {
    let path = real::file("docword.kos.txt.gz");
    let corpus = Corpus::read(path).expect("a published file");
    let nips = real::file("vocab.nips.txt.gz");
    let error = corpus.clone().with_vocabulary(nips).expect_err("15,283 words for 6,906");
    assert!(matches!(error, ReadError::Length { found: 15_283, expected: 6906, .. }), "{error}");
    let times = real::file("times.nips.txt.gz");
    let error = corpus.with_dates(times).expect_err("1,740 dates for 3,430 documents");
    assert!(matches!(error, ReadError::Length { found: 1740, expected: 3430, .. }), "{error}");
}

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn dates_belong_to_documents() {
    let path = real::file("docword.nips.txt.gz");
    let times = real::file("times.nips.txt.gz");
    let corpus =
        Corpus::read(path).expect("a sound file").with_dates(times).expect("a date a line");
    let dates = corpus.dates().expect("just given");
    assert!(dates.is_sorted());
    assert_eq!((dates[0].year(), dates[dates.len() - 1].year()), (1987, 1999));
}
