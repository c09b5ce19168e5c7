//! The list of the blocks, as text.

use std::fmt::Write;
use std::ops::Range;

use crate::corpus::{Corpus, mix};

/// Title of a manifest.
pub(super) const TITLE: &str = "lda documents 3";

/// Entry of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Numbers of its documents in the whole corpus.
    pub documents: Range<u64>,
    /// Its tokens.
    pub tokens: u64,
    /// Its [pairs](Corpus::num_pairs) of word and count.
    pub pairs: u64,
    /// [Fingerprint](Corpus::fingerprint) of its documents.
    pub fingerprint: u64,
}

impl Part {
    /// The entry of documents of which the first has this number.
    pub fn of(documents: &Corpus, first: u64) -> Self {
        Self {
            documents: first..first + documents.num_documents() as u64,
            tokens: documents.num_tokens(),
            pairs: documents.num_pairs() as u64,
            fingerprint: documents.fingerprint(),
        }
    }

    /// Number of its documents.
    pub fn num_documents(&self) -> u64 {
        self.documents.end - self.documents.start
    }
}

/// The number of words, and the blocks in order: without gaps, and none without documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of words V.
    pub words: u32,
    /// The blocks.
    pub parts: Vec<Part>,
}

/// A manifest is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}; cut the documents again")]
#[non_exhaustive]
pub struct ManifestError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Description of the problem.
    pub why: String,
}

impl Manifest {
    /// Name of its file.
    pub const NAME: &str = "manifest";
    /// Name of the file of the vocabulary.
    pub const WORDS: &str = "words";

    /// Name of the file of a block.
    ///
    /// ```
    /// use lda_core::corpus::blocks::Manifest;
    /// assert_eq!(Manifest::part_name(7), "part-00007");
    /// ```
    pub fn part_name(block: usize) -> String {
        format!("part-{block:05}")
    }

    /// The manifest as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\nwords {}\n", self.words);
        text.push_str("# part, first document, documents, tokens, pairs, fingerprint\n");
        for (number, part) in self.parts.iter().enumerate() {
            let (first, documents) = (part.documents.start, part.num_documents());
            let Part { tokens, pairs, fingerprint, .. } = part;
            writeln!(text, "part {number} {first} {documents} {tokens} {pairs} {fingerprint:016x}")
                .expect("writing to a string does not fail");
        }
        text
    }

    /// Parses a manifest.
    ///
    /// # Errors
    /// [`ManifestError`] names the line and the problem.
    ///
    /// ```
    /// use lda_core::corpus::blocks::Manifest;
    ///
    /// let text = b"lda documents 3\nwords 6906\npart 0 0 429 58431 21345 9d0c1c6f4a5d3b21\n";
    /// let manifest = Manifest::parse(text)?;
    /// assert_eq!((manifest.words, manifest.parts[0].tokens), (6906, 58431));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let fail = |line: usize, why: String| ManifestError { line: line + 1, why };
        let text =
            std::str::from_utf8(text).map_err(|_| fail(0, "it is not UTF-8 text".to_owned()))?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        let title = lines.next().map(|(_, title)| title);
        if title != Some(TITLE) {
            return Err(fail(0, format!("{TITLE:?} is expected, as this version writes it")));
        }
        let (at, words) = lines.next().unwrap_or((1, ""));
        let words = words.strip_prefix("words ").and_then(|words| words.parse().ok());
        let words = words.ok_or_else(|| fail(at, "the number of words is expected".to_owned()))?;
        let (mut parts, mut next) = (Vec::new(), 0);
        for (at, line) in lines {
            let part = part_line(line, parts.len(), next)
                .ok_or_else(|| fail(at, format!("part {} is expected", parts.len())))?;
            next = part.documents.end;
            parts.push(part);
        }
        if parts.is_empty() || u16::try_from(parts.len()).is_err() {
            return Err(fail(1, format!("{} parts: there are 1 to 65,535", parts.len())));
        }
        Ok(Self { words, parts })
    }

    /// Hash of all documents.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(self.words, &self.parts)
    }
}

/// Hash of the documents of all blocks.
pub(crate) fn fingerprint(words: u32, parts: &[Part]) -> u64 {
    let all = |hash, part: &Part| mix(mix(hash, part.documents.end), part.fingerprint);
    parts.iter().fold(mix(0x6c64_615f_626c_6b73, words.into()), all)
}

/// Parses the line of a block; `None` if it is not that of this block with this first document.
fn part_line(line: &str, block: usize, first: u64) -> Option<Part> {
    let mut words = line.split(' ');
    let is_named = words.next() == Some("part")
        && words.next()?.parse() == Ok(block)
        && words.next()?.parse() == Ok(first);
    let documents: u64 = words.next()?.parse().ok()?;
    let (tokens, pairs) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let fingerprint = u64::from_str_radix(words.next()?, 16).ok()?;
    let end = first.checked_add(documents).filter(|_| documents > 0)?;
    let part = Part { documents: first..end, tokens, pairs, fingerprint };
    (is_named && words.next().is_none()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let part =
            |documents: Range<u64>| Part { tokens: 14, pairs: 9, fingerprint: 255, documents };
        Manifest { words: 7, parts: vec![part(0..7), part(7..9)] }
    }

    #[test]
    fn a_manifest_is_read_line_by_line() {
        let text = manifest().to_text();
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest()));
        let lines: Vec<&str> = text.lines().collect();
        let refused = |line: usize, with: &str| {
            let mut lines = lines.clone();
            lines[line] = with;
            Manifest::parse(lines.join("\n").as_bytes()).unwrap_err().to_string()
        };
        assert!(refused(0, "documents").starts_with("line 1: \"lda documents 3\" is expected"));
        assert!(refused(1, "words many").starts_with("line 2: the number of words"));
        for bad in
            ["", "part 1 0 7 14 9 ff", "part 0 1 7 14 9 ff", "part 0 0 0 14 9 ff", "part 0 0 7"]
        {
            assert!(refused(3, bad).starts_with("line 4: part 0 is expected"), "{bad}");
        }
        assert!(refused(4, "part 1 9 7 14 9 ff").starts_with("line 5: part 1"));
        assert!(refused(4, "part 1 7 2 14 9 ff more").starts_with("line 5: "));
        assert!(refused(4, "part 1 7 18446744073709551615 14 9 ff").starts_with("line 5: "));
        for text in [&b"\xff"[..], b"", b"lda documents 3\n", b"lda documents 3\nwords 3\n"] {
            assert!(Manifest::parse(text).is_err());
        }
    }

    #[test]
    fn the_fingerprint_sees_every_block() {
        let mut changed = [manifest(), manifest(), manifest()];
        changed[0].words = 8;
        changed[1].parts[1].fingerprint = 254;
        changed[2].parts[0].documents.end = 6;
        let all = changed.map(|manifest| manifest.fingerprint());
        assert!(all.iter().all(|&other| other != manifest().fingerprint()), "{all:?}");
    }
}
