//! gzip and zstd, found by content; whole, in parts, cut off, damaged.
#![cfg(all(feature = "gzip", feature = "zstd"))]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lda_core::Corpus;
use lda_core::corpus::read;
use lda_core::corpus::{Format, ReadError, ReadOptions, ReadReport, write_uci};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn sample() -> (Corpus, Vec<u8>) {
    let documents = (0..300u32).map(|d| (0..d % 40).map(move |i| ((i * 97 + d) % 500, 1 + i % 3)));
    let corpus = Corpus::from_pairs(documents.map(Vec::from_iter)).expect("within all limits");
    let mut text = Vec::new();
    write_uci(&corpus, &mut text).expect("memory takes it");
    (corpus, text)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

fn parse(bytes: &[u8]) -> Result<(Corpus, ReadReport), ReadError> {
    Format::Uci.read_from(bytes, "packed", &ReadOptions::default())
}

#[test]
fn compressed_files_read_like_plain_ones() {
    let (_, text) = sample();
    let (plain, report) = parse(&text).expect("just written");
    assert_eq!(report.compression, read::Compression::None);
    for (packed, compression) in
        [(gzip(&text), read::Compression::Gzip), (zstd(&text), read::Compression::Zstd)]
    {
        let (corpus, report) = parse(&packed).expect("just packed");
        assert_eq!(corpus, plain);
        assert_eq!(report.compression, compression);
        assert_eq!(report.bytes, text.len() as u64);
        assert_eq!(report.packed_bytes, packed.len() as u64);
    }
}

#[test]
fn several_members_and_frames_are_read() {
    let (_, text) = sample();
    let plain = parse(&text).expect("just written").0;
    let (head, tail) = text.split_at(text.len() / 3);
    for pack in [gzip, zstd] {
        let packed = [pack(head), pack(b""), pack(tail)].concat();
        assert_eq!(parse(&packed).expect("parts of one file").0, plain);
    }
    let skippable = b"\x53\x2a\x4d\x18\x03\x00\x00\x00abc".to_vec();
    let packed = [skippable.clone(), zstd(head), skippable.clone(), zstd(tail), skippable];
    assert_eq!(parse(&packed.concat()).expect("parts of one file").0, plain);
}

#[test]
fn a_truncated_file_is_rejected() {
    let (_, text) = sample();
    for packed in [gzip(&text), zstd(&text)] {
        for len in (4..packed.len()).step_by(7).chain(packed.len() - 12..packed.len()) {
            match parse(&packed[..len]) {
                Err(ReadError::Truncated { .. }) => {}
                other => panic!("{len} of {} bytes: {other:?}", packed.len()),
            }
        }
    }
}

#[test]
fn damage_is_detected() {
    let (_, text) = sample();
    for packed in [gzip(&text), zstd(&text)] {
        for place in (packed.len() / 4..packed.len()).step_by(11) {
            let mut damaged = packed.clone();
            damaged[place] ^= 0x10;
            assert!(parse(&damaged).is_err(), "byte {place} of {}", packed.len());
        }
    }
    let trailing = [gzip(&text), b"this is no gzip member".to_vec()].concat();
    let error = parse(&trailing).expect_err("bytes after the last member");
    assert!(matches!(error, ReadError::Corrupt { .. }), "{error}");
}

#[test]
fn vocabularies_and_dates_may_be_compressed() {
    let words = read::read_vocabulary(&gzip(b"a\nb\n")[..], "vocab").expect("two words");
    assert_eq!(words.iter().collect::<Vec<_>>(), ["a", "b"]);
    let words = read::read_vocabulary(&zstd(b"a\nb\n")[..], "vocab").expect("two words");
    assert_eq!(words.len(), 2);
}
