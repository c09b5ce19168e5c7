#![no_main]

use lda_core::corpus::Format;
use lda_fuzz::{check, options};

/// The fuzzer need not find the first line by itself each time.
const BANNERS: [&str; 4] = [
    "",
    "%%MatrixMarket matrix coordinate integer general\n",
    "%%MatrixMarket matrix coordinate real general\n",
    "%%MatrixMarket matrix coordinate pattern general\n",
];

libfuzzer_sys::fuzz_target!(|input: (bool, u8, &[u8])| {
    let (transpose, banner, bytes) = input;
    let mut options = options();
    options.transpose = transpose;
    let file = [BANNERS[usize::from(banner) % BANNERS.len()].as_bytes(), bytes].concat();
    check(Format::MatrixMarket.read_from(&file[..], "fuzz", &options));
});
