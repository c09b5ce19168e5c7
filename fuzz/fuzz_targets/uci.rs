#![no_main]

use lda_core::corpus::Format;
use lda_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check(Format::Uci.read_from(bytes, "fuzz", &options()));
});
