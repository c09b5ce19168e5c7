#![no_main]

use lda_core::corpus::Corpus;
use lda_fuzz::{check, options};

/// First bytes by which a compression is recognised, so that most inputs reach a decoder.
const MAGIC: [&[u8]; 4] =
    [b"", b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"];

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (magic, bytes) = input;
    let file = [MAGIC[usize::from(magic) % MAGIC.len()], bytes].concat();
    // The format is recognised from the unpacked bytes.
    check(Corpus::read_from(&file[..], "fuzz", &options()));
});
