#![no_main]

use lda_core::corpus::Format;
use lda_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|input: (u8, Option<u32>, &[u8])| {
    let (base, num_words, bytes) = input;
    let mut options = options();
    options.index_base = u32::from(base % 3);
    options.num_words = num_words;
    check(Format::Svmlight.read_from(bytes, "fuzz", &options));
});
