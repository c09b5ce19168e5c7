#![no_main]

use arbitrary::Arbitrary;
use lda_core::corpus::Format;
use lda_core::corpus::read::{PhraseOptions, PhraseScore, StopWords, Tokenizer};
use lda_fuzz::{check, options};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    keep_order: bool,
    split_identifiers: bool,
    lowercase: bool,
    numbers: bool,
    english: bool,
    encoding: u8,
    min_length: u8,
    min_document_frequency: u8,
    max_document_frequency: u8,
    phrases: u8,
    bytes: &'a [u8],
}

libfuzzer_sys::fuzz_target!(|input: Input<'_>| {
    let mut options = options();
    options.keep_order = input.keep_order;
    let encodings = ["windows-1252", "shift_jis", "gb18030", "iso-2022-jp", "utf-16le"];
    options.encoding = encodings.get(usize::from(input.encoding)).map(|name| name.to_string());
    let words = &mut options.text.tokenizer;
    words.split_identifiers = input.split_identifiers;
    words.lowercase = input.lowercase;
    words.numbers = input.numbers;
    words.stop_words = if input.english { StopWords::English } else { StopWords::None };
    words.min_length = u32::from(input.min_length % 4);
    options.text.min_document_frequency = u32::from(input.min_document_frequency % 4);
    options.text.max_document_frequency =
        1.0 - f64::from(input.max_document_frequency % 100) / 100.0;
    if input.phrases > 0 {
        let mut phrases = PhraseOptions::default();
        phrases.min_count = u32::from(input.phrases % 4) + 1;
        phrases.max_words = u32::from(input.phrases % 3) + 2;
        if input.phrases % 2 == 0 {
            (phrases.score, phrases.threshold) = (PhraseScore::LogLikelihood, 1.0);
        }
        options.text.phrases = Some(phrases);
    }
    let result = Format::Text.read_from(input.bytes, "fuzz", &options);
    if let (true, Ok((corpus, _))) = (input.keep_order, &result) {
        for d in 0..corpus.num_documents() {
            let mut tokens = corpus.tokens(d).expect("the order was kept").to_vec();
            tokens.sort_unstable();
            let document = corpus.document(d).iter();
            let expected = document.flat_map(|(word, n)| std::iter::repeat_n(word, n as usize));
            assert!(expected.eq(tokens));
        }
    }
    if let Ok((corpus, _)) = &result {
        let words = corpus.vocabulary().and_then(|words| words.tokenizer());
        Tokenizer::new(words.expect("texts have rules")).expect("rules that were used are valid");
    }
    check(result);
});
