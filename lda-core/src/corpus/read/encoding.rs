//! Encodings and line ends: what a parser reads is UTF-8 whose lines end with a line feed.
//!
//! UTF-16 is recognised by its byte order mark. A carriage return ends a line, alone or before a
//! line feed, as in R and Python: otherwise a file with the line ends of old Macs would be one line.
//! Files that begin like an archive or like a page description are refused by name, because parts of
//! them may look like text.
//!
//! PERF: a block without carriage returns is searched, not copied.

use std::io::{self, Cursor, Read};

use thiserror::Error;

/// Bytes of UTF-16 per read.
const BLOCK: usize = 1 << 15;

/// Error: a stream with the byte order mark of UTF-16 has units that are not UTF-16.
#[derive(Clone, Copy, Debug, Error)]
#[error("invalid UTF-16")]
pub(super) struct InvalidUtf16;

/// Kinds of files whose content is not read, by their first bytes.
const KINDS: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "an xz file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
];

/// The kind of a file whose content is not read; `None` if it may be read.
pub(super) fn unread_kind(start: &[u8]) -> Option<&'static str> {
    // The level, then the first six bytes of pi: `BZh` alone may be a word.
    let is_bzip2 = matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..]);
    let kind = KINDS.iter().find(|(magic, _)| start.starts_with(magic)).map(|kind| kind.1);
    kind.or(is_bzip2.then_some("a bzip2 file"))
}

/// The text of `reader`, in UTF-8 and with line feeds as line ends.
pub(super) fn as_text<'a>(mut reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut mark = Vec::with_capacity(2);
    reader.by_ref().take(2).read_to_end(&mut mark)?;
    let is_big_endian = mark == b"\xfe\xff";
    let is_utf16 = is_big_endian || mark == b"\xff\xfe";
    let whole = Cursor::new(if is_utf16 { Vec::new() } else { mark }).chain(reader);
    Ok(if is_utf16 {
        Box::new(LineEnds { inner: Utf16::new(whole, is_big_endian), after_return: false })
    } else {
        Box::new(LineEnds { inner: whole, after_return: false })
    })
}

/// Reader that replaces `\r\n` and `\r` by `\n`.
struct LineEnds<R> {
    inner: R,
    /// Whether the last byte was a carriage return: a line feed after it belongs to it.
    after_return: bool,
}

impl<R: Read> Read for LineEnds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.inner.read(buffer)?;
            let bytes = &mut buffer[..read];
            if read == 0 || !self.after_return && !bytes.contains(&b'\r') {
                return Ok(read);
            }
            let mut end = 0;
            for at in 0..bytes.len() {
                let byte = bytes[at];
                let belongs = byte == b'\n' && self.after_return;
                self.after_return = byte == b'\r';
                if !belongs {
                    bytes[end] = if byte == b'\r' { b'\n' } else { byte };
                    end += 1;
                }
            }
            // 0 bytes would mean the end.
            if end > 0 {
                return Ok(end);
            }
        }
    }
}

/// Reader of UTF-16 as UTF-8.
struct Utf16<R> {
    inner: R,
    is_big_endian: bool,
    /// Bytes that are not yet decoded: half a unit, or the first unit of two.
    rest: Vec<u8>,
    text: Cursor<String>,
}

impl<R: Read> Utf16<R> {
    fn new(inner: R, is_big_endian: bool) -> Self {
        Self { inner, is_big_endian, rest: Vec::new(), text: Cursor::new(String::new()) }
    }

    /// Decodes the next block; returns whether there is one.
    fn decode(&mut self) -> io::Result<bool> {
        let start = self.rest.len();
        self.inner.by_ref().take(BLOCK as u64).read_to_end(&mut self.rest)?;
        let is_last = self.rest.len() == start;
        let unit = |pair: &[u8]| match (self.is_big_endian, [pair[0], pair[1]]) {
            (true, bytes) => u16::from_be_bytes(bytes),
            (false, bytes) => u16::from_le_bytes(bytes),
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        if !is_last && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        self.rest.drain(..2 * units.len());
        if is_last && !self.rest.is_empty() {
            return Err(invalid());
        }
        let text: Result<String, _> = char::decode_utf16(units).collect();
        self.text = Cursor::new(text.map_err(|_| invalid())?);
        Ok(!is_last)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.text.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.decode()? {
                return Ok(read);
            }
        }
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, InvalidUtf16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns one byte at a time.
    struct Single<'a>(&'a [u8]);

    impl Read for Single<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }

    fn text_of(bytes: &[u8]) -> io::Result<String> {
        let mut texts = [String::new(), String::new()];
        as_text(Box::new(bytes))?.read_to_string(&mut texts[0])?;
        as_text(Box::new(Single(bytes)))?.read_to_string(&mut texts[1])?;
        assert_eq!(texts[0], texts[1]);
        let [text, _] = texts;
        Ok(text)
    }

    fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn any_line_end_is_a_line_feed() {
        for (text, expected) in [
            ("a\nb\n", "a\nb\n"),
            ("a\rb\r", "a\nb\n"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\r\rb\n\r\n", "a\n\nb\n\n"),
            ("\r", "\n"),
            ("", ""),
        ] {
            assert_eq!(text_of(text.as_bytes()).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn utf16_with_a_mark_is_read() {
        let text = "caf\u{e9} \u{4eca}\u{5929} \u{1f980}\nend".repeat(9000);
        for bytes in [utf16("\u{feff}", u16::to_le_bytes), utf16("\u{feff}", u16::to_be_bytes)] {
            let unit = if bytes[0] == 0xff { u16::to_le_bytes } else { u16::to_be_bytes };
            assert_eq!(text_of(&[&bytes[..], &utf16(&text, unit)].concat()).unwrap(), text);
            // Half a unit, half a character, and a second half alone.
            for wrong in [&b"a"[..], &utf16("\u{1f980}", unit)[..2], &utf16("\u{1f980}", unit)[2..]]
            {
                let error = text_of(&[&bytes[..], wrong].concat()).unwrap_err();
                assert!(error.get_ref().is_some_and(|inner| inner.is::<InvalidUtf16>()), "{error}");
            }
        }
    }

    #[test]
    fn files_that_are_not_read_are_named() {
        assert_eq!(unread_kind(b"BZh91AY&SY"), Some("a bzip2 file"));
        assert_eq!(unread_kind(b"PK\x03\x04\x0a"), Some("a zip archive"));
        for text in [&b"BZh is a word"[..], b"PK", b"%%MatrixMarket", b""] {
            assert_eq!(unread_kind(text), None);
        }
    }
}
