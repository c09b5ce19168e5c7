#![no_main]

use lda_core::corpus::read::uci;
use lda_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check(uci::from_reader(bytes, "fuzz", &options()));
});
