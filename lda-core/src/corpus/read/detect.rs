//! Which format is it?
//!
//! An extension that belongs to one format decides, then the content of the first lines:
//!
//! - `%%MatrixMarket` starts a MatrixMarket file;
//! - lines of `index:number` pairs, after at most one other word, are SVMlight or LDA-C; LDA-C
//!   if that word is, on every line, the number of pairs. An SVMlight file can look the same (all
//!   labels 1, documents of one word each): name the format then;
//! - three lines of one number each start a UCI file;
//! - anything else that is UTF-8 is text.

use std::path::Path;

use super::Format;

/// Lines that are looked at.
const LINES: usize = 100;

/// The format of a file that starts with `sample`, all of it if `whole`; `None` where it is none
/// of ours.
pub(super) fn detect(sample: &[u8], whole: bool, path: &Path) -> Option<Format> {
    by_name(path).or_else(|| by_content(sample, whole))
}

fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let plain = [".gz", ".zst", ".zstd"].iter().find_map(|packed| name.strip_suffix(packed));
    let name = plain.unwrap_or(&name);
    if name.starts_with("docword.") {
        return Some(Format::Uci);
    }
    match name.rsplit_once('.')?.1 {
        "mtx" | "mm" => Some(Format::MatrixMarket),
        "svm" | "svmlight" | "libsvm" => Some(Format::Svmlight),
        "ldac" | "lda-c" => Some(Format::Ldac),
        _ => None,
    }
}

fn by_content(sample: &[u8], whole: bool) -> Option<Format> {
    const BANNER: &[u8] = b"%%MatrixMarket";
    if sample.get(..BANNER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BANNER)) {
        return Some(Format::MatrixMarket);
    }
    let mut lines: Vec<&[u8]> = sample.split(|&byte| byte == b'\n').take(LINES + 1).collect();
    // The last line may go on behind the sample.
    if lines.len() > LINES || !whole && lines.len() > 1 {
        lines.pop();
    }
    lines.retain(|line| !line.trim_ascii().is_empty());
    // Pairs first: an LDA-C file may start with three empty documents, a line `0` each.
    if let Some(format) = by_pairs(&lines) {
        return Some(format);
    }
    if lines.len() >= 3 && lines[..3].iter().all(|line| is_number(line.trim_ascii())) {
        return Some(Format::Uci);
    }
    is_text(sample, whole).then_some(Format::Text)
}

fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn by_pairs(lines: &[&[u8]]) -> Option<Format> {
    let (mut any, mut counted) = (false, true);
    for line in lines {
        let mut parts = line.split(|&byte| byte == b'#');
        let content = parts.next().unwrap_or_default().trim_ascii();
        let commented = parts.next().is_some();
        if content.is_empty() {
            counted &= !commented;
            continue;
        }
        let mut words = content.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let mut pairs = u64::from(is_pair(first));
        for word in words {
            if !is_pair(word) && !word.starts_with(b"qid:") {
                return None;
            }
            pairs += 1;
        }
        any |= pairs > 0;
        counted &= !commented && pairs.to_string().as_bytes() == first;
    }
    any.then_some(if counted { Format::Ldac } else { Format::Svmlight })
}

/// `index:number`, where the number is only glanced at: what is wrong in it the reader says.
fn is_pair(word: &[u8]) -> bool {
    let Some(colon) = word.iter().position(|&byte| byte == b':') else { return false };
    let (index, value) = (&word[..colon], &word[colon + 1..]);
    let numeric = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    is_number(index) && value.first().is_some_and(numeric) && value.iter().all(numeric)
}

fn is_text(sample: &[u8], whole: bool) -> bool {
    if sample.contains(&0) {
        return false;
    }
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        // A character cut off by the end of the sample.
        Err(error) => error.error_len().is_none() && !whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str) -> Option<Format> {
        detect(content.as_bytes(), true, Path::new("file.txt"))
    }

    #[test]
    fn content_tells() {
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
        assert_eq!(detect(b"ab\xff", true, Path::new("x")), None);
        assert_eq!(detect(b"ab\xc3", false, Path::new("x")), Some(Text));
        assert_eq!(detect(b"ab\xc3", true, Path::new("x")), None);
    }

    #[test]
    fn a_line_cut_off_by_the_sample_is_not_judged() {
        assert_eq!(detect(b"2 0:1 5:2\n3 1:1", false, Path::new("x")), Some(Format::Ldac));
        assert_eq!(detect(b"2 0:1 5:2\n3 1:1", true, Path::new("x")), Some(Format::Svmlight));
    }

    #[test]
    fn names_tell_more() {
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
