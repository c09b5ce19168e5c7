#![no_main]

use lda_core::corpus::read::read_vocabulary;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(vocabulary) = read_vocabulary(bytes, "fuzz") else { return };
    for (id, word) in vocabulary.iter().enumerate() {
        let first = vocabulary.id(word).expect("a word of the vocabulary");
        assert!(first as usize <= id);
        assert_eq!(vocabulary.word(first), word);
    }
});
