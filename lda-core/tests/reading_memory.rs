//! Peak heap memory while reading, against the finished corpus.
//!
//! The allocator counts a reallocation as if the new block were there before the old one is
//! freed, which is the worst it can be.
#![cfg(all(feature = "gzip", feature = "zstd", feature = "text"))]
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use lda_core::Corpus;
use lda_core::corpus::{ReadError, ReadOptions, write_uci};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` came from `System` with this layout, as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` came from `System` with this layout, as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak heap use of `work`, above what was in use before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (result, PEAK.load(Ordering::Relaxed) - before)
}

struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> Self {
        let path =
            std::env::temp_dir().join(format!("lda-core-memory-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("the temporary directory is writable");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// 4,000 documents of about 150 words, 20,000 words in all.
fn corpus() -> Corpus {
    let mut state = 1u64;
    let mut next = move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) as u32) % below
    };
    let documents: Vec<Vec<(u32, u32)>> = (0..4000)
        .map(|_| {
            let length = 50 + next(200);
            (0..length).map(|_| (next(20_000), 1 + next(3))).collect()
        })
        .collect();
    Corpus::from_pairs(documents).expect("within all limits")
}

fn pairs(corpus: &Corpus) -> Vec<(usize, u32, u32)> {
    let row = |(d, row): (usize, lda_core::corpus::Document<'_>)| {
        row.iter().map(|(word, count)| (d + 1, word + 1, count)).collect::<Vec<_>>()
    };
    corpus.documents().enumerate().flat_map(row).collect()
}

fn uci(corpus: &Corpus, pairs: &[(usize, u32, u32)]) -> Vec<u8> {
    let mut text = Vec::new();
    let (documents, words) = (corpus.num_documents(), corpus.num_words());
    write!(text, "{documents}\n{words}\n{}\n", pairs.len()).expect("memory takes it");
    for (document, word, count) in pairs {
        writeln!(text, "{document} {word} {count}").expect("memory takes it");
    }
    text
}

fn matrix_market(corpus: &Corpus, pairs: &[(usize, u32, u32)]) -> Vec<u8> {
    let text = String::from_utf8(uci(corpus, pairs)).expect("ASCII");
    let mut lines = text.lines();
    let sizes: Vec<&str> = lines.by_ref().take(3).collect();
    let head = "%%MatrixMarket matrix coordinate integer general\n";
    let entries: Vec<&str> = lines.collect();
    format!("{head}{}\n{}\n", sizes.join(" "), entries.join("\n")).into_bytes()
}

fn rows(corpus: &Corpus, base: u32, reverse: bool) -> Vec<u8> {
    let mut text = String::new();
    for row in corpus.documents() {
        let mut pairs: Vec<_> = row.iter().collect();
        if reverse {
            pairs.reverse();
        }
        write!(text, "{}", pairs.len()).expect("memory takes it");
        for (word, count) in pairs {
            write!(text, " {}:{count}", word + base).expect("memory takes it");
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn words(corpus: &Corpus) -> Vec<u8> {
    let mut text = String::new();
    for row in corpus.documents() {
        for (word, count) in row.iter() {
            text.push_str(&format!("w{word}x ").repeat(count as usize));
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// One test, since the counters are one for the process.
#[test]
fn peak_memory_stays_within_bounds() {
    let corpus = corpus();
    let sorted = pairs(&corpus);
    let mut by_word = sorted.clone();
    by_word.sort_by_key(|pair| pair.1);
    let plain = uci(&corpus, &sorted);
    let zstd =
        ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    let cases = [
        ("uci.txt", plain.clone(), 1.3),
        ("uci-unsorted.txt", uci(&corpus, &by_word), 2.2),
        ("sorted.mtx", matrix_market(&corpus, &sorted), 1.3),
        ("by-word.mtx", matrix_market(&corpus, &by_word), 2.2),
        ("sorted.svm", rows(&corpus, 1, false), 2.2),
        ("reversed.svm", rows(&corpus, 1, true), 2.2),
        ("sorted.ldac", rows(&corpus, 0, false), 2.2),
        ("uci.txt.gz", gzip(&plain), 1.3),
        ("sorted.ldac.gz", gzip(&rows(&corpus, 0, false)), 2.2),
        ("uci.txt.zst", zstd, 1.3),
        ("words.txt", words(&corpus), 2.2),
    ];
    for (name, content, bound) in cases {
        let file = File::new(name, &content);
        drop(content);
        let (read, peak) = peak(|| Corpus::read(&file.0).expect(name));
        assert_eq!(read.num_tokens(), corpus.num_tokens(), "{name}");
        assert!(read.memory() <= 8 * read.num_pairs() * 11 / 10 + 1_000_000, "{name}");
        let ratio = peak as f64 / read.memory() as f64;
        assert!(ratio <= bound, "{name}: {peak} bytes are {ratio:.2} times the corpus");
    }

    // A few bytes claim the most that a header can.
    let most = u32::MAX - 1;
    for text in [
        format!("{most}\n{most}\n{}\n1 1 1\n", u64::MAX),
        format!("1\n{most}\n1\n1 {most} 1\n"),
        format!("%%MatrixMarket matrix coordinate real general\n{most} {most} {most}\n1 1 1\n"),
        format!("1 {most}:1\n"),
    ] {
        let file = File::new("hostile", text.as_bytes());
        let (_, peak) = peak(|| -> Result<Corpus, ReadError> {
            Ok(Corpus::read_with_report(&file.0, &ReadOptions::default())?.0)
        });
        assert!(peak < 1 << 20, "{text:?}: {peak} bytes");
    }
    // Empty documents are legal, so many of them may be claimed, but not any number.
    let file = File::new("empty", format!("{most}\n1\n1\n{most} 1 1\n").as_bytes());
    let (result, peak) = peak(|| Corpus::read(&file.0));
    assert!(matches!(result, Err(ReadError::EmptyDocuments { .. })), "{result:?}");
    assert!(peak < 256 << 20, "{peak} bytes");
    let mut written = Vec::new();
    write_uci(&corpus, &mut written).expect("memory takes it");
    assert_eq!(written, plain);
}
