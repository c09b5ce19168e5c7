//! Properties of anything that a reader accepts.

use lda_core::corpus::{Corpus, Format, ReadError, ReadOptions, ReadReport, write_uci};

/// Options under which a claim of many empty documents ends early, so that inputs stay fast.
pub fn options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.max_empty_documents = 1 << 12;
    options
}

/// Checks a reader's result: the corpus is sound, the report agrees with it, and it survives
/// writing and reading; an error has something to say.
///
/// # Panics
/// If a property is violated.
pub fn check(result: Result<(Corpus, ReadReport), ReadError>) {
    let (corpus, report) = match result {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut tokens = 0;
    for document in corpus.documents() {
        assert_eq!(document.words.len(), document.counts.len());
        assert!(document.words.is_sorted_by(|a, b| a < b));
        assert!(document.words.last().is_none_or(|&word| (word as usize) < corpus.num_words()));
        assert!(document.counts.iter().all(|&count| count > 0));
        tokens += document.len();
    }
    assert!(tokens > 0);
    assert_eq!((corpus.num_tokens(), report.tokens), (tokens, tokens));
    assert_eq!(corpus.num_pairs() as u64, report.pairs);
    if let Some(vocabulary) = corpus.vocabulary() {
        assert_eq!(vocabulary.len(), corpus.num_words());
    }

    let mut written = Vec::new();
    write_uci(&corpus, &mut written).expect("memory takes it");
    let mut options = ReadOptions::default();
    options.max_empty_documents = u64::MAX;
    let (again, _) =
        Format::Uci.read_from(&written[..], "written", &options).expect("just written");
    assert_eq!(again.fingerprint(), corpus.fingerprint());
}

/// A file to try: half of all inputs as they are, the others as edits of one of `bases`: (where, what)
/// in 3 bytes each.
pub fn file(bases: &[Vec<u8>], bytes: &[u8]) -> Vec<u8> {
    let Some((&kind, rest)) = bytes.split_first() else { return Vec::new() };
    if kind % 2 == 0 {
        return with_checksums(rest);
    }
    let mut file = bases[usize::from(kind / 2) % bases.len()].clone();
    for edit in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[at] = edit[2];
    }
    with_checksums(&file)
}

/// The bytes of a file of ours with all checksums made right, as far as header and table can be read:
/// else a fuzzer would never get past them.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).map(|n| u64::from_le_bytes(n.try_into().expect("eight bytes")))
    };
    let sections = bytes.get(20..22).map_or(0, |n| usize::from(u16::from_le_bytes([n[0], n[1]])));
    let table = 64 + 48 * sections.min(256);
    if bytes.len() < table {
        return bytes;
    }
    for entry in (64..table).step_by(48) {
        let (start, len) = (number(&bytes, entry + 24), number(&bytes, entry + 32));
        let range = start.zip(len).and_then(|(start, len)| {
            let (start, len) = (usize::try_from(start).ok()?, usize::try_from(len).ok()?);
            bytes.get(start..start.checked_add(len)?)
        });
        if let Some(section) = range {
            let sum = xxh64(section).to_le_bytes();
            bytes[entry + 40..entry + 48].copy_from_slice(&sum);
        }
    }
    let len = bytes.len() as u64;
    bytes[24..32].copy_from_slice(&len.to_le_bytes());
    let sum = xxh64(&bytes[64..table]).to_le_bytes();
    bytes[32..40].copy_from_slice(&sum);
    let sum = xxh64(&bytes[..56]).to_le_bytes();
    bytes[56..64].copy_from_slice(&sum);
    bytes
}

/// XXH64 with seed 0, as `lda_core::container` documents it.
fn xxh64(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh64::xxh64(bytes, 0)
}
