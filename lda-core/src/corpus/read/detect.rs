//! Detection of the format of a file.
//!
//! A file name that belongs to one format decides; otherwise the first lines do:
//!
//! - `%%MatrixMarket` starts a MatrixMarket file;
//! - lines of `index:number` pairs, after at most one other word, are SVMlight or LDA-C; LDA-C
//!   if that word is, on every line, the number of pairs. An SVMlight file can look the same (all
//!   labels 1, documents of one word each): set the format explicitly in that case;
//! - three lines of one number each start a UCI file;
//! - anything else that is UTF-8 is text.

use std::path::Path;

use super::Format;
use super::format::FORMATS;

/// Maximum number of lines in a sample.
const LINES: usize = 100;

/// The beginning of a file.
pub(super) struct Sample<'a> {
    /// First bytes.
    pub bytes: &'a [u8],
    /// First lines that are not blank, without a last one that may be incomplete.
    pub lines: Vec<&'a [u8]>,
    /// Whether `bytes` is all of the file.
    whole: bool,
}

impl<'a> Sample<'a> {
    pub(super) fn new(bytes: &'a [u8], whole: bool) -> Self {
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').take(LINES + 1).collect();
        // The last line may continue beyond the sample.
        if lines.len() > LINES || !whole && lines.len() > 1 {
            lines.pop();
        }
        lines.retain(|line| !line.trim_ascii().is_empty());
        Self { bytes, lines, whole }
    }

    /// Whether the sample is all of the file.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the bytes are UTF-8 without NUL.
    pub(super) fn is_text(&self) -> bool {
        if self.bytes.contains(&0) {
            return false;
        }
        match std::str::from_utf8(self.bytes) {
            Ok(_) => true,
            // A character may be cut off by the end of the sample.
            Err(error) => error.error_len().is_none() && !self.whole,
        }
    }
}

/// Whether `text` is an integer in digits, with or without a minus sign.
pub(super) fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// The format of a file at `path` that starts with `sample`; `None` if it is unknown.
pub(super) fn detect(sample: &Sample<'_>, path: &Path) -> Option<Format> {
    by_name(path).or_else(|| by_content(sample))
}

fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let plain = [".gz", ".zst", ".zstd"].iter().find_map(|packed| name.strip_suffix(packed));
    let name = plain.unwrap_or(&name);
    let prefixed = FORMATS.into_iter().find(|row| row.prefixes.iter().any(|p| name.starts_with(p)));
    if let Some(row) = prefixed {
        return Some(row.format);
    }
    let extension = name.rsplit_once('.')?.1;
    let row = FORMATS.into_iter().find(|row| row.extensions.contains(&extension));
    row.map(|row| row.format)
}

fn by_content(sample: &Sample<'_>) -> Option<Format> {
    FORMATS.into_iter().find(|row| (row.sniff)(sample)).map(|row| row.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect_bytes(bytes: &[u8], whole: bool) -> Option<Format> {
        detect(&Sample::new(bytes, whole), Path::new("x"))
    }

    fn of(content: &str) -> Option<Format> {
        detect(&Sample::new(content.as_bytes(), true), Path::new("file.txt"))
    }

    #[test]
    fn content_determines_the_format() {
        use Format::{Ldac, MatrixMarket, Svmlight, Text, Uci};
        for (content, format) in [
            ("3\n4\n1\n1 1 1\n", Uci),
            ("\r\n3 \r\n4\r\n-1\r\n", Uci),
            ("%%matrixmarket matrix coordinate real general\n", MatrixMarket),
            ("2 0:1 5:2\n0\n1 3:1\n", Ldac),
            ("0\n0\n0\n1 3:1\n", Ldac),
            ("1\n-1\n0\n1 3:1\n", Svmlight),
            ("1 1:2 3:1\n-1 2:1\n", Svmlight),
            ("+1 1:2\n+1 2:1\n", Svmlight),
            ("2 1:2 3:1 # two\n", Svmlight),
            ("0 qid:1 1:2.5\n", Svmlight),
            ("1:2 3:1\n", Svmlight),
            ("# a comment\n1 1:2\n", Svmlight),
            ("1 1:-2\n", Ldac),
            ("It is 12:30 now.\n", Text),
            ("3\n4\nwords\n", Text),
            ("3 1:2 x\n", Text),
            ("", Text),
        ] {
            assert_eq!(of(content), Some(format), "{content:?}");
        }
        assert_eq!(of("a\0b"), None);
        assert_eq!(detect_bytes(b"ab\xff", true), None);
        assert_eq!(detect_bytes(b"ab\xc3", false), Some(Text));
        assert_eq!(detect_bytes(b"ab\xc3", true), None);
    }

    #[test]
    fn a_line_cut_off_by_the_sample_is_ignored() {
        assert_eq!(detect_bytes(b"2 0:1 5:2\n3 1:1", false), Some(Format::Ldac));
        assert_eq!(detect_bytes(b"2 0:1 5:2\n3 1:1", true), Some(Format::Svmlight));
    }

    #[test]
    fn file_names_determine_the_format() {
        for (name, format) in [
            ("a/docword.kos.txt.gz", Some(Format::Uci)),
            ("a.MTX", Some(Format::MatrixMarket)),
            ("a.svm.zst", Some(Format::Svmlight)),
            ("a.ldac", Some(Format::Ldac)),
            ("a.txt", None),
            ("svm", None),
        ] {
            assert_eq!(by_name(Path::new(name)), format, "{name}");
        }
    }
}
