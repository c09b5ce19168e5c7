//! Texts in an encoding that the caller names, as UTF-8.
//!
//! The decoders are those of the Encoding Standard, by `encoding_rs`. A byte order mark wins over the
//! name. Bytes that the encoding does not have are an error: replaced by U+FFFD, they would make one
//! word of many. Most encodings of one byte a character have no such bytes, so a file in UTF-8 would be
//! read as others without an error. Therefore a file that begins with valid UTF-8 outside ASCII is
//! refused, and one in ASCII if UTF-16 is named.

use std::io::{self, Read};

use thiserror::Error;

use super::ReadError;

/// Bytes at the start of a file that are compared with UTF-8.
pub(super) const HEAD: usize = 1 << 12;
/// Characters outside ASCII that make a head UTF-8: by chance, a text in another encoding may have one
/// or two that are valid.
#[cfg(feature = "encodings")]
const EVIDENCE: usize = 4;

/// Error: bytes that are not text of the encoding.
#[derive(Debug, Error)]
#[error("invalid {encoding}")]
pub(super) struct InvalidText {
    pub(super) encoding: &'static str,
    /// Line of the bytes, counted from 1; `None` if the file is UTF-8 instead.
    pub(super) line: Option<u64>,
}

/// An encoding; by default UTF-8, or UTF-16 with a byte order mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::corpus) struct Charset {
    #[cfg(feature = "encodings")]
    named: Option<&'static encoding_rs::Encoding>,
}

#[cfg(feature = "encodings")]
impl Charset {
    /// The encoding of that name.
    ///
    /// # Errors
    /// [`ReadError::Option`] for an unknown name.
    pub(super) fn named(name: Option<&str>) -> Result<Self, ReadError> {
        let Some(name) = name else { return Ok(Self::default()) };
        // The standard has names for "replacement", which decodes nothing.
        let known = encoding_rs::Encoding::for_label_no_replacement(name.as_bytes());
        let encoding = known.ok_or_else(|| ReadError::Option {
            name: "encoding",
            value: name.to_owned(),
            remedy: "give a name of the Encoding Standard, such as windows-1252, koi8-r, shift_jis or gb18030",
        })?;
        Ok(Self { named: (encoding != encoding_rs::UTF_8).then_some(encoding) })
    }

    /// The text of `reader`, which begins with `head`, in UTF-8; as it is without a name.
    ///
    /// # Errors
    /// [`InvalidText`] if the file is UTF-8.
    pub(super) fn decode<'a>(
        self,
        head: &[u8],
        reader: Box<dyn Read + 'a>,
    ) -> io::Result<Box<dyn Read + 'a>> {
        let Some(encoding) = self.named else { return Ok(reader) };
        // In UTF-16, any ASCII is text too: pairs of letters are Chinese characters.
        let is_utf16 = [encoding_rs::UTF_16LE, encoding_rs::UTF_16BE].contains(&encoding);
        let is_ascii = is_utf16 && head.len() >= 32 && is_plain(head);
        if is_utf8(head) || is_ascii {
            return Err(invalid(encoding.name(), None));
        }
        Ok(Box::new(decoder::Decoded::new(reader, encoding)))
    }
}

#[cfg(not(feature = "encodings"))]
impl Charset {
    pub(super) fn named(name: Option<&str>) -> Result<Self, ReadError> {
        match name {
            None => Ok(Self::default()),
            Some(_) => Err(ReadError::NotBuilt {
                path: "encoding".into(),
                what: "decoding of it",
                feature: "encodings",
            }),
        }
    }

    pub(super) fn decode<'a>(
        self,
        _head: &[u8],
        reader: Box<dyn Read + 'a>,
    ) -> io::Result<Box<dyn Read + 'a>> {
        Ok(reader)
    }
}

/// Whether the bytes are ASCII without NUL.
#[cfg(feature = "encodings")]
fn is_plain(head: &[u8]) -> bool {
    head.is_ascii() && !head.contains(&0)
}

#[cfg(feature = "encodings")]
fn is_utf8(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut off.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).expect("checked up to there")
        }
        Err(_) => return false,
    };
    text.chars().filter(|character| !character.is_ascii()).count() >= EVIDENCE
}

#[cfg(feature = "encodings")]
fn invalid(encoding: &'static str, line: Option<u64>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, InvalidText { encoding, line })
}

#[cfg(feature = "encodings")]
mod decoder {
    use std::io::{self, Read};

    use encoding_rs::{Decoder, DecoderResult, Encoding};

    use super::invalid;

    /// Bytes per read.
    const BLOCK: usize = 1 << 15;

    /// Reader of the decoded text.
    pub(super) struct Decoded<R> {
        inner: R,
        decoder: Decoder,
        packed: Vec<u8>,
        /// Bytes of `packed` that are decoded.
        used: usize,
        text: Vec<u8>,
        /// Bytes of `text` that are read.
        position: usize,
        lines: Lines,
        ended: bool,
    }

    impl<R: Read> Decoded<R> {
        pub(super) fn new(inner: R, encoding: &'static Encoding) -> Self {
            Self {
                inner,
                decoder: encoding.new_decoder(),
                packed: Vec::with_capacity(BLOCK),
                used: 0,
                text: Vec::new(),
                position: 0,
                lines: Lines { number: 1, after_return: false },
                ended: false,
            }
        }

        /// Decodes more text, at least one byte before the end.
        fn advance(&mut self) -> io::Result<()> {
            self.position = 0;
            self.text.clear();
            while self.text.is_empty() && !self.ended {
                if self.used == self.packed.len() {
                    self.packed.clear();
                    self.used = 0;
                    self.inner.by_ref().take(BLOCK as u64).read_to_end(&mut self.packed)?;
                }
                let is_last = self.packed.is_empty();
                self.text.resize(BLOCK, 0);
                let packed = &self.packed[self.used..];
                let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                    packed,
                    &mut self.text,
                    is_last,
                );
                self.used += read;
                self.text.truncate(written);
                self.lines.count(&self.text);
                match result {
                    DecoderResult::InputEmpty => self.ended = is_last,
                    DecoderResult::OutputFull => {}
                    DecoderResult::Malformed(..) => {
                        let encoding = self.decoder.encoding().name();
                        return Err(invalid(encoding, Some(self.lines.number)));
                    }
                }
            }
            Ok(())
        }
    }

    impl<R: Read> Read for Decoded<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.position == self.text.len() && !buffer.is_empty() {
                self.advance()?;
            }
            let rest = &self.text[self.position..];
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            self.position += len;
            Ok(len)
        }
    }

    /// Counter of lines, whatever ends them.
    struct Lines {
        number: u64,
        after_return: bool,
    }

    impl Lines {
        fn count(&mut self, text: &[u8]) {
            for &byte in text {
                let ends = byte == b'\r' || byte == b'\n' && !self.after_return;
                self.number += u64::from(ends);
                self.after_return = byte == b'\r';
            }
        }
    }
}

#[cfg(all(test, feature = "encodings"))]
mod tests {
    use super::*;

    fn text_of(name: &str, bytes: &[u8]) -> io::Result<String> {
        let charset = Charset::named(Some(name)).unwrap();
        let head = &bytes[..bytes.len().min(HEAD)];
        let mut text = String::new();
        charset.decode(head, Box::new(bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn invalid_line(error: &io::Error) -> Option<u64> {
        error.get_ref().unwrap().downcast_ref::<InvalidText>().unwrap().line
    }

    #[test]
    fn named_encodings_are_decoded() {
        let many = "caf\u{e9} na\u{ef}ve\n".repeat(9000);
        let latin: Vec<u8> = many.chars().map(|character| character as u8).collect();
        assert_eq!(text_of("latin1", &latin).unwrap(), many);
        assert_eq!(text_of("Shift_JIS", b"\x93\xfa\x96{").unwrap(), "\u{65e5}\u{672c}");
        assert_eq!(text_of("gb18030", b"\xd6\xd0\xce\xc4").unwrap(), "\u{4e2d}\u{6587}");
        assert_eq!(text_of("utf-16le", b"a\0\xe9\0").unwrap(), "a\u{e9}");
        let jis = b"\x1b$BF|K\\\x1b(B ".repeat(9);
        assert_eq!(text_of("iso-2022-jp", &jis).unwrap(), "\u{65e5}\u{672c} ".repeat(9));
        // A mark wins over the name.
        assert_eq!(text_of("latin1", b"\xef\xbb\xbf\xc3\xa9").unwrap(), "\u{e9}");
        for name in ["utf-8", "UTF8"] {
            assert_eq!(Charset::named(Some(name)).unwrap(), Charset::default());
        }
        for name in ["", "latin-99", "replacement", "iso-2022-kr"] {
            assert!(matches!(Charset::named(Some(name)), Err(ReadError::Option { .. })), "{name}");
        }
    }

    #[test]
    fn invalid_text_is_an_error_with_its_line() {
        for ends in ["\n", "\r\n", "\r"] {
            let start = format!("one{ends}two{ends}").repeat(20_000);
            let bytes = [start.as_bytes(), b"\x93\xff"].concat();
            let error = text_of("shift_jis", &bytes).unwrap_err();
            assert_eq!(invalid_line(&error), Some(40_001), "{ends:?}");
        }
        assert!(text_of("shift_jis", b"end \x93").is_err());
    }

    #[test]
    fn utf8_is_not_read_as_another_encoding() {
        let text = "caf\u{e9} na\u{ef}ve d\u{e9}j\u{e0} vu ".repeat(600);
        let error = text_of("windows-1252", text.as_bytes()).unwrap_err();
        assert_eq!(invalid_line(&error), None);
        assert!(text_of("windows-1252", b"plain ASCII").is_ok());
        let error = text_of("utf-16le", &b"plain ASCII, and no UTF-16".repeat(9)).unwrap_err();
        assert_eq!(invalid_line(&error), None);
        let wide: Vec<u8> =
            "plain ASCII".repeat(9).encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(text_of("utf-16le", &wide).is_ok());
    }
}
