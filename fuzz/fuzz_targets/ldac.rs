#![no_main]

use lda_core::corpus::read::ldac;
use lda_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check(ldac::from_reader(bytes, "fuzz", &options()));
});
