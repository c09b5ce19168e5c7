//! The container format, byte by byte, and its behaviour on damaged files.

use std::io::{Cursor, Seek, Write};

use proptest::prelude::*;

use super::pairs::{self, Pairs};
use super::*;
use crate::checksum::Xxh64;

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Xxh64::new();
    hash.update(bytes);
    hash.digest()
}

/// A file of three sections, one of them empty.
fn sample() -> Vec<u8> {
    let mut file = Writer::new(Cursor::new(Vec::new()), Kind::Model, 3).unwrap();
    file.section("words", [1u32, 2, 0xffff_fffe]).unwrap();
    file.section("nothing", std::iter::empty::<u16>()).unwrap();
    file.section("halves", [0.5f64, -1.5]).unwrap();
    file.finish().unwrap().into_inner()
}

fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, FileError> {
    Reader::open(Cursor::new(bytes), Kind::Model)
}

fn problem(bytes: &[u8]) -> FileProblem {
    let read = || {
        let mut file = open(bytes)?;
        file.numbers::<u32>("words")?;
        file.numbers::<u16>("nothing")?;
        file.numbers::<f64>("halves")
    };
    read().expect_err("damaged").problem
}

#[test]
fn bytes_match_the_documented_layout() {
    let bytes = sample();
    // Header and table take 64 + 3 · 48 = 208 bytes; sections begin at 256, 320 and 320.
    assert_eq!(bytes.len(), 320 + 16);
    assert_eq!(bytes[..8], *b"\x89LDA\r\n\x1a\n");
    assert_eq!(bytes[8..16], *b"model\0\0\0");
    assert_eq!(bytes[16..20], 1u32.to_le_bytes());
    assert_eq!(bytes[20..24], 3u32.to_le_bytes());
    assert_eq!(bytes[24..32], 336u64.to_le_bytes());
    assert_eq!(bytes[32..40], hash(&bytes[64..208]).to_le_bytes());
    assert_eq!(bytes[40..56], [0; 16]);
    assert_eq!(bytes[56..64], hash(&bytes[..56]).to_le_bytes());

    let entry = |i: usize| &bytes[64 + 48 * i..64 + 48 * (i + 1)];
    assert_eq!(entry(0)[..16], *b"words\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(entry(0)[16..24], [3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(entry(0)[24..32], 256u64.to_le_bytes());
    assert_eq!(entry(0)[32..40], 12u64.to_le_bytes());
    assert_eq!(entry(0)[40..], hash(&bytes[256..268]).to_le_bytes());
    assert_eq!(entry(1)[32..40], 0u64.to_le_bytes());
    assert_eq!(entry(2)[16], 6);
    assert_eq!(entry(2)[24..32], 320u64.to_le_bytes());

    assert_eq!(bytes[256..268], [1, 0, 0, 0, 2, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
    assert_eq!(bytes[268..320], [0; 52]);
    assert_eq!(bytes[320..328], 0.5f64.to_le_bytes());
}

#[test]
fn sections_round_trip() {
    let bytes = sample();
    let mut file = open(&bytes).unwrap();
    assert!(file.has("nothing") && !file.has("other"));
    assert!(file.has_of::<f64>("halves") && !file.has_of::<f32>("halves"));
    assert_eq!(file.numbers::<f64>("halves").unwrap(), [0.5, -1.5]);
    assert_eq!(*file.array::<u32>("words").unwrap(), [1, 2, 0xffff_fffe]);
    assert_eq!(*file.exactly::<u16>("nothing", 0).unwrap(), [0; 0]);
    let message = file.exactly::<u32>("words", 4).unwrap_err().to_string();
    assert!(message.contains("3 values, not 4"), "{message}");
    let message = file.numbers::<u64>("words").unwrap_err().to_string();
    assert!(message.contains("another type"), "{message}");
    let message = file.numbers::<u64>("other").unwrap_err().to_string();
    assert!(message.contains("\"other\" is missing"), "{message}");
}

#[test]
fn long_sections_are_read_in_blocks() {
    let values: Vec<u64> = (0..20_000).map(|i| i * i).collect();
    let mut file = Writer::new(Cursor::new(Vec::new()), Kind::Snapshot, 1).unwrap();
    file.section("squares", values.iter().copied()).unwrap();
    let bytes = file.finish().unwrap().into_inner();
    let mut file = Reader::open(Cursor::new(&bytes), Kind::Snapshot).unwrap();
    assert_eq!(file.numbers::<u64>("squares").unwrap(), values);
}

#[test]
fn a_file_may_follow_other_bytes() {
    let mut out = Cursor::new(Vec::new());
    out.write_all(b"before").unwrap();
    let mut file = Writer::new(&mut out, Kind::Model, 1).unwrap();
    file.section("a", [7u8]).unwrap();
    file.finish().unwrap();
    assert_eq!(out.stream_position().unwrap(), out.get_ref().len() as u64);
    let bytes = &out.get_ref()[6..];
    assert_eq!(open(bytes).unwrap().numbers::<u8>("a").unwrap(), [7]);
}

#[test]
fn every_damaged_bit_is_detected() {
    let bytes = sample();
    for at in 0..bytes.len() {
        // Padding between sections is not covered by a checksum.
        let free = (208..256).contains(&at) || (268..320).contains(&at);
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let read = open(&damaged).and_then(|mut file| {
                file.numbers::<u32>("words")?;
                file.numbers::<u16>("nothing")?;
                file.numbers::<f64>("halves")
            });
            assert_eq!(read.is_ok(), free, "bit {bit} of byte {at}");
        }
    }
    for len in 0..bytes.len() {
        assert!(open(&bytes[..len]).is_err(), "cut off after {len}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(problem(&longer), FileProblem::Length { expected: 336, found: 337 }));
}

#[test]
fn errors_name_the_problem() {
    let bytes = sample();
    let change = |at: usize, to: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let summed = |mut bytes: Vec<u8>| {
        let table = hash(&bytes[64..208]);
        bytes[32..40].copy_from_slice(&table.to_le_bytes());
        let header = hash(&bytes[..56]);
        bytes[56..64].copy_from_slice(&header.to_le_bytes());
        bytes
    };
    assert!(matches!(problem(b""), FileProblem::Foreign { .. }));
    let found = problem(b"\x89PNG\r\n\x1a\n and more").to_string();
    assert!(
        found.contains(r"begins with \x89PNG\r\n\x1a\n") || found.contains("x89PNG"),
        "{found}"
    );
    assert!(matches!(problem(&bytes[..63]), FileProblem::Length { expected: 64, found: 63 }));
    assert!(matches!(problem(&change(16, &[2])), FileProblem::Newer { version: 2, known: 1 }));
    assert!(
        matches!(problem(&change(40, &[1])), FileProblem::Damaged { part } if part == "header")
    );
    assert!(matches!(problem(&change(64, b"W")), FileProblem::Damaged { part } if part == "table"));
    assert!(
        matches!(problem(&change(320, &[1])), FileProblem::Damaged { part } if part == "halves")
    );
    let snapshot = Reader::open(Cursor::new(&bytes), Kind::Snapshot).unwrap_err().to_string();
    assert!(snapshot.contains("a model file: give a snapshot file"), "{snapshot}");

    // A crafted file with matching checksums cannot make a reader leave the file.
    for (at, to, what) in [
        (16, &[0u8][..], "versions count from 1"),
        (20, &[0, 1, 0, 0], "table extends beyond the file"),
        (20, &[0, 0, 0, 1], "above the limit"),
        (64 + 16, &[9], "unknown element type"),
        (64 + 24, &[64], "invalid start"),
        (64 + 24, &[1, 1], "invalid start"),
        (64 + 32, &[13], "invalid end"),
        (64 + 32, &[0, 2], "invalid end"),
        (64 + 32, &[0xff; 8], "too long"),
        (64 + 2 * 48 + 32, &[8], "end before the file does"),
        (64 + 2 * 48, b"words\0", "twice"),
    ] {
        let message = problem(&summed(change(at, to))).to_string();
        assert!(message.contains(what), "{what}: {message}");
    }
}

#[test]
fn pairs_are_checked() {
    let bytes = pairs::to_bytes([("a.b", "ä"), ("a.c", ""), ("d", "7")]);
    let parsed = Pairs::parse(&bytes).unwrap();
    assert_eq!(
        (parsed.get("a.b"), parsed.get("a.c"), parsed.get("e")),
        (Some("ä"), Some(""), None)
    );
    assert_eq!(parsed.under("a.").0.len(), 2);
    assert_eq!(parsed.required("d", |text| text.parse().ok()).ok(), Some(7));
    let message =
        |name| parsed.required::<u8>(name, |text| text.parse().ok()).unwrap_err().to_string();
    assert!(message("a.c").contains("a.c is \"\""));
    assert!(message("e").contains("e is missing"));
    for len in 0..bytes.len() {
        assert!(Pairs::parse(&bytes[..len]).is_err(), "{len}");
    }
    assert!(Pairs::parse(&[&bytes[..], &[0]].concat()).is_err());
    let not_utf8 = [&1u32.to_le_bytes()[..], &[1, 0, 0, 0, 0xff, 0, 0, 0, 0]].concat();
    assert!(Pairs::parse(&not_utf8).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn a_failed_replacement_leaves_only_the_old_file() {
    let directory = std::env::temp_dir().join(format!("lda-replace-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("file");
    replace(&path, |file| Ok(file.write_all(b"old")?)).unwrap();
    let failed = replace(&path, |file| {
        file.write_all(&[0; 1 << 20])?;
        Err(std::io::Error::other("no room").into())
    });
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("no room") && message.contains("file:"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");

    #[cfg(unix)]
    {
        let link = directory.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, |file| Ok(file.write_all(b"new")?)).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        std::fs::remove_file(&link).unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let missing = replace(&directory.join("no/file"), |_| Ok(())).unwrap_err().to_string();
    assert!(missing.contains("no/file"), "{missing}");
    std::fs::remove_dir_all(&directory).unwrap();
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_rejected_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), begin: bool) {
        if begin && bytes.len() >= 24 {
            bytes[..16].copy_from_slice(b"\x89LDA\r\n\x1a\nmodel\0\0\0");
            bytes[16..24].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
        }
        prop_assert!(open(&bytes).is_err());
        let _ = Pairs::parse(&bytes);
    }
}
