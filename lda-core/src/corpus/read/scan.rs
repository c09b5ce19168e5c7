//! Fast scanner of numbers and words, shared by all formats.
//!
//! A [`Scanner`] has a block of 128 KiB and a position in it. Before an element is parsed, it is
//! made to lie completely in the block (the rest of the block moves to its front, and the next
//! bytes are read behind it). So nothing is copied out, and no line becomes a string.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::charset::{HEAD, InvalidText};
use super::encoding::{InvalidUtf16, as_text, unread_kind};
use super::error::{Place, ReadError};
use super::number::{decimal, digits};
use super::source::Source;
use super::{Compression, Input};
use crate::corpus::assembly::{Excess, Extent};
use crate::corpus::blocks::{BlockSink, Destination};

/// Size of a block in bytes.
const BLOCK: usize = 1 << 17;
/// Bytes that must be in the block before a number is parsed.
const LOOKAHEAD: usize = 64;
/// Zero bytes after the block's content, so that 8 bytes can be loaded at any position.
const PADDING: usize = 8;
/// Maximum length of one number, in bytes.
const MAX_NUMBER: usize = 1024;
/// Maximum size of the block, if a line or a run without spaces must lie in it completely.
const MAX_RUN: usize = 1 << 24;

pub(super) struct Scanner<'a> {
    reader: Box<dyn Read + 'a>,
    path: PathBuf,
    compression: Compression,
    extent: Extent,
    blocks: Option<BlockSink>,
    buffer: Vec<u8>,
    position: usize,
    end: usize,
    /// Whether the file ends at `end`.
    exhausted: bool,
    line: u64,
    /// Decompressed bytes read so far.
    bytes: u64,
}

/// A piece of a line, from [`Scanner::piece`].
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    /// Whether the line ends after this piece.
    pub(super) ends_line: bool,
}

impl<'a> Scanner<'a> {
    /// # Errors
    /// [`ReadError::Io`]; [`ReadError::NotBuilt`] if a decoder is not compiled in.
    pub(super) fn new(input: Input<'a>) -> Result<Self, ReadError> {
        let Input { reader, size, path, charset, blocks } = input;
        // A full block for each of many small files would cost more than reading them.
        let block =
            size.map_or(BLOCK, |size| (4 * size.min(BLOCK as u64) as usize).clamp(1 << 12, BLOCK));
        let source = Source::new(reader, size).map_err(|source| match source.kind() {
            io::ErrorKind::Unsupported => ReadError::NotBuilt {
                path: path.clone(),
                what: "its compression",
                feature: if cfg!(feature = "gzip") { "zstd" } else { "gzip" },
            },
            _ => ReadError::Io { path: path.clone(), source },
        })?;
        let compression = source.compression;
        let fail = |error| failed(path.clone(), compression, error);
        let (mut head, mut reader) = (Vec::new(), source.reader);
        reader.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(fail)?;
        if let Some(kind) = unread_kind(&head) {
            return Err(ReadError::UnreadKind { path, kind });
        }
        let whole = Box::new(Cursor::new(head.clone()).chain(reader));
        let reader = charset.decode(&head, whole).and_then(as_text).map_err(fail)?;
        let mut scanner = Self {
            reader,
            path,
            compression,
            extent: source.extent,
            blocks,
            buffer: vec![0; block + PADDING],
            position: 0,
            end: 0,
            exhausted: false,
            line: 1,
            bytes: 0,
        };
        scanner.fill()?;
        if scanner.rest().starts_with(b"\xef\xbb\xbf") {
            // Skip the byte order mark.
            scanner.position = 3;
        }
        Ok(scanner)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// Destination of the documents.
    pub(super) fn destination(&self) -> Destination {
        Destination { extent: self.extent.clone(), blocks: self.blocks.clone() }
    }

    /// Receiver of blocks, if documents go into them.
    pub(super) fn blocks(&self) -> Option<&BlockSink> {
        self.blocks.as_ref()
    }

    pub(super) fn extent(&self) -> &Extent {
        &self.extent
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Estimate of the number of items of at least `least` bytes in the input: an upper bound for a
    /// plain file, the usual density for a compressed file, and a small number if the size is
    /// unknown.
    pub(super) fn plausible(&self, least: u64) -> u64 {
        match (self.extent.total(), self.compression) {
            (Some(total), Compression::None) => total / least + 1,
            // The densest corpus that was measured has 0.34 pairs per compressed byte.
            (Some(total), _) => total.saturating_mul(2).min(1 << 24) + total / 2,
            (None, _) => 4096,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place::line(&self.path, self.line)
    }

    /// Adds the current position to an error of the assembly.
    #[inline]
    pub(super) fn placed<T>(&self, result: Result<T, Excess>) -> Result<T, ReadError> {
        result.map_err(|excess| ReadError::from_excess(excess, self.place()))
    }

    /// Adds an earlier line to an error of the assembly.
    #[inline]
    pub(super) fn placed_at<T>(
        &self,
        line: u64,
        result: Result<T, Excess>,
    ) -> Result<T, ReadError> {
        result.map_err(|excess| ReadError::from_excess(excess, Place::line(&self.path, line)))
    }

    /// Line of the next byte, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The unread bytes in the block.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.position..self.end]
    }

    /// Moves the unread bytes to the front and fills the block, up to the end of the input.
    #[cold]
    #[inline(never)]
    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.position..self.end, 0);
        self.end -= self.position;
        self.position = 0;
        let capacity = self.buffer.len() - PADDING;
        while self.end < capacity && !self.exhausted {
            match self.reader.read(&mut self.buffer[self.end..capacity]) {
                Ok(0) => self.exhausted = true,
                Ok(n) => {
                    self.end += n;
                    self.bytes += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(self.path.clone(), self.compression, error)),
            }
        }
        self.buffer[self.end..self.end + PADDING].fill(0);
        Ok(())
    }

    /// Ensures that the next [`LOOKAHEAD`] bytes, or all that remain, are in the block.
    #[inline]
    fn look_ahead(&mut self) -> Result<(), ReadError> {
        if self.end - self.position < LOOKAHEAD && !self.exhausted { self.fill() } else { Ok(()) }
    }

    /// The next byte; 0 at the end of the input.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, ReadError> {
        if self.position == self.end && !self.exhausted {
            self.fill()?;
        }
        Ok(self.buffer[self.position])
    }

    /// Whether the block extends to the end of the input.
    pub(super) fn is_whole(&self) -> bool {
        self.exhausted
    }

    #[inline]
    fn is_exhausted(&self) -> bool {
        self.position == self.end && self.exhausted
    }

    /// Skips spaces within the line; returns whether there were any.
    #[inline]
    pub(super) fn blanks(&mut self) -> Result<bool, ReadError> {
        let mut any = false;
        while matches!(self.peek()?, b' ' | b'\t' | b'\r') {
            self.position += 1;
            any = true;
        }
        Ok(any)
    }

    /// Skips spaces and empty lines; returns whether more input follows.
    #[inline]
    pub(super) fn content(&mut self) -> Result<bool, ReadError> {
        loop {
            match self.peek()? {
                b'\n' => {
                    self.position += 1;
                    self.line += 1;
                }
                b' ' | b'\t' | b'\r' => self.position += 1,
                0 => return Ok(!self.is_exhausted()),
                _ => return Ok(true),
            }
        }
    }

    /// Skips spaces; returns whether the line ends, and if so moves to the next line.
    #[inline]
    pub(super) fn line_ended(&mut self) -> Result<bool, ReadError> {
        self.blanks()?;
        match self.peek()? {
            b'\n' => {
                self.position += 1;
                self.line += 1;
                Ok(true)
            }
            0 => Ok(self.is_exhausted()),
            _ => Ok(false),
        }
    }

    /// Moves to the next line; anything but spaces before it is an error.
    #[inline]
    pub(super) fn end_line(&mut self) -> Result<(), ReadError> {
        if self.line_ended()? { Ok(()) } else { Err(self.syntax("the end of the line")) }
    }

    /// Skips the rest of the line.
    pub(super) fn skip_line(&mut self) -> Result<(), ReadError> {
        loop {
            match self.rest().iter().position(|&byte| byte == b'\n') {
                Some(n) => {
                    self.position += n + 1;
                    self.line += 1;
                    return Ok(());
                }
                None => self.position = self.end,
            }
            if self.exhausted {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Skips one required byte.
    pub(super) fn byte(&mut self, byte: u8, expected: &'static str) -> Result<(), ReadError> {
        if self.peek()? != byte {
            return Err(self.syntax(expected));
        }
        self.position += 1;
        Ok(())
    }

    /// Parses an unsigned integer after optional spaces; saturates at 2^64 - 1.
    #[inline]
    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, ReadError> {
        self.blanks()?;
        self.look_ahead()?;
        let (value, len) = self.eight_digits();
        if len == 0 {
            return Err(self.syntax(expected));
        }
        self.position += len;
        if len < 8 { Ok(value) } else { self.more_digits(value) }
    }

    /// Parses a line of exactly three numbers of at most 7 digits with single spaces between them.
    /// Returns the numbers and the length of the line, or `None` for any other line. Does not move
    /// the position.
    ///
    /// PERF: nearly all lines of a UCI or MatrixMarket file have this form, which takes one bounds
    /// check and no call that might fill the block.
    #[inline]
    pub(super) fn plain_triple(&self) -> Option<([u64; 3], usize)> {
        const LONGEST: usize = 8 * 3;
        let line = self.rest().first_chunk::<{ LONGEST + PADDING }>()?;
        let (mut triple, mut at) = ([0; 3], 0);
        for (number, delimiter) in triple.iter_mut().zip(*b"  \n") {
            let bytes = line[at..at + 8].try_into().expect("8 bytes");
            let (value, len) = digits(u64::from_le_bytes(bytes));
            if len == 0 || len == 8 || line[at + len] != delimiter {
                return None;
            }
            *number = value;
            at += len + 1;
        }
        Some((triple, at))
    }

    /// Moves past a line parsed by [`plain_triple`](Self::plain_triple).
    #[inline]
    pub(super) fn skip_plain_line(&mut self, len: usize) {
        self.position += len;
        self.line += 1;
    }

    #[inline]
    fn eight_digits(&self) -> (u64, usize) {
        let bytes = &self.buffer[self.position..self.position + 8];
        digits(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
    }

    #[cold]
    fn more_digits(&mut self, mut value: u64) -> Result<u64, ReadError> {
        loop {
            let digit = self.peek()?.wrapping_sub(b'0');
            if digit > 9 {
                return Ok(value);
            }
            value = value.saturating_mul(10).saturating_add(u64::from(digit));
            self.position += 1;
        }
    }

    /// Parses a count after optional spaces: a number with an integer value, such as `3` or `3.0`.
    /// Programs that compute in floating point write such counts in every format.
    #[inline]
    pub(super) fn count(&mut self) -> Result<u32, ReadError> {
        self.blanks()?;
        self.look_ahead()?;
        let (value, len) = self.eight_digits();
        // Any byte up to the space ends the number, including the zero padding at the end.
        if (1..8).contains(&len) && self.buffer[self.position + len] <= b' ' {
            self.position += len;
            return Ok(value as u32);
        }
        self.odd_count()
    }

    #[cold]
    #[inline(never)]
    fn odd_count(&mut self) -> Result<u32, ReadError> {
        let token = self.token(MAX_NUMBER)?;
        let len = token.len();
        match decimal(token) {
            Ok(count) => {
                self.position += len;
                Ok(count)
            }
            Err(problem) => {
                Err(ReadError::Count { at: self.place(), found: self.found(), problem })
            }
        }
    }

    /// The bytes up to the next space, line end or `#`, but at most `most`. Does not move the
    /// position.
    pub(super) fn token(&mut self, most: usize) -> Result<&[u8], ReadError> {
        if self.end - self.position < most && !self.exhausted {
            self.fill()?;
        }
        let rest = self.rest();
        let rest = &rest[..rest.len().min(most)];
        let len = rest.iter().position(|&byte| byte <= b' ' || byte == b'#');
        Ok(&rest[..len.unwrap_or(rest.len())])
    }

    /// Skips bytes returned by [`token`](Self::token).
    pub(super) fn skip(&mut self, bytes: usize) {
        self.position += bytes.min(self.end - self.position);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn syntax(&self, expected: &'static str) -> ReadError {
        ReadError::Syntax { at: self.place(), expected, found: self.found() }
    }

    /// Text at the position, for an error message.
    pub(super) fn found(&self) -> String {
        let rest = self.rest();
        let len = rest.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
        match rest.first() {
            None => "the end of the file".to_owned(),
            Some(b'\n') => "the end of the line".to_owned(),
            Some(_) => quote(&rest[..len.max(1)]),
        }
    }

    /// The next piece of text: a whole line if it fits into the block, otherwise the part of it up
    /// to the last space. `None` at the end. The line number is that of the piece.
    pub(super) fn piece(&mut self) -> Result<Option<Piece<'_>>, ReadError> {
        self.next_piece(true)
    }

    /// The next line of at most 16 MiB, without its end; `None` at the end of the input.
    #[cfg(feature = "tables")]
    pub(super) fn whole_line(&mut self) -> Result<Option<&[u8]>, ReadError> {
        Ok(self.next_piece(false)?.map(|piece| piece.text))
    }

    fn next_piece(&mut self, cut_at_spaces: bool) -> Result<Option<Piece<'_>>, ReadError> {
        loop {
            let rest = self.rest();
            if let Some(len) = rest.iter().position(|&byte| byte == b'\n') {
                return Ok(Some(self.cut(len, true)));
            }
            if self.exhausted {
                let len = rest.len();
                return Ok((len > 0).then(|| self.cut(len, true)));
            }
            if self.position > 0 || self.end < self.buffer.len() - PADDING {
                self.fill()?;
            } else if cut_at_spaces
                && self.end >= BLOCK
                && let Some(len) = rest.iter().rposition(u8::is_ascii_whitespace)
            {
                return Ok(Some(self.cut(len, false)));
            } else if self.end >= MAX_RUN {
                let (at, limit) = (self.place(), MAX_RUN);
                let delimiter = if cut_at_spaces { "space" } else { "line end" };
                return Err(ReadError::TooLong { at, limit, delimiter });
            } else {
                let whole = self.buffer.len() - PADDING;
                self.buffer.resize(2 * whole + PADDING, 0);
            }
        }
    }

    /// Copies unread bytes to `buffer`; returns their number, 0 at the end of the input.
    #[cfg(feature = "tables")]
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        if self.position == self.end && !self.exhausted {
            self.fill()?;
        }
        let len = buffer.len().min(self.end - self.position);
        buffer[..len].copy_from_slice(&self.rest()[..len]);
        self.position += len;
        Ok(len)
    }

    fn cut(&mut self, len: usize, ends_line: bool) -> Piece<'_> {
        let start = self.position;
        self.position = (start + len + 1).min(self.end);
        Piece { text: &self.buffer[start..start + len], ends_line }
    }

    /// Increments the line number after the last piece of a line.
    pub(super) fn count_line(&mut self) {
        self.line += 1;
    }

    /// The next whole line as text, without its end; `None` at the end.
    pub(super) fn text_line(&mut self) -> Result<Option<&str>, ReadError> {
        let at = self.place();
        match self.piece()? {
            None => Ok(None),
            Some(Piece { ends_line: false, .. }) => {
                Err(ReadError::TooLong { at, limit: BLOCK, delimiter: "line end" })
            }
            Some(Piece { text, .. }) => utf8(text, &at).map(Some),
        }
    }
}

/// The text, which must be UTF-8.
pub(super) fn utf8<'a>(text: &'a [u8], at: &Place) -> Result<&'a str, ReadError> {
    std::str::from_utf8(text).map_err(|error| invalid_utf8(&text[error.valid_up_to()..], at))
}

/// Error: text goes on with bytes that are not UTF-8.
pub(super) fn invalid_utf8(rest: &[u8], at: &Place) -> ReadError {
    let len = std::str::from_utf8(rest).err().and_then(|error| error.error_len()).unwrap_or(4);
    ReadError::Utf8 { at: at.clone(), found: quote(&rest[..rest.len().min(len)]) }
}

/// Error of a reader.
fn failed(path: PathBuf, compression: Compression, source: io::Error) -> ReadError {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    if source.get_ref().is_some_and(|inner| inner.is::<InvalidUtf16>()) {
        return ReadError::Utf16 { path };
    }
    let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<InvalidText>());
    if let Some(&InvalidText { encoding, line }) = inner {
        return match line {
            Some(line) => ReadError::Encoding { at: Place::line(&path, line), encoding },
            None => ReadError::NotEncoded { path, encoding },
        };
    }
    match (compression, source.kind()) {
        (Compression::None, _) => ReadError::Io { path, source },
        (_, UnexpectedEof) => ReadError::Truncated { path, compression },
        (_, InvalidData | InvalidInput | Other) => ReadError::Corrupt { path, compression, source },
        _ => ReadError::Io { path, source },
    }
}

/// At most 40 bytes in quotes, anything but printable ASCII escaped.
fn quote(bytes: &[u8]) -> String {
    let more = if bytes.len() > 40 { "..." } else { "" };
    format!("`{}{more}`", bytes[..bytes.len().min(40)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reader that returns its bytes a few at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(self.1).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn scanner(bytes: &[u8]) -> Scanner<'_> {
        let input = Input::stream(bytes, Path::new("test"));
        Scanner::new(input).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in prop::collection::vec(prop_oneof![0u64..99, any::<u64>()], 0..200),
            zeros in 0usize..90,
            at_once in 1usize..50,
        ) {
            let mut text = String::new();
            for number in &numbers {
                text.push_str(&"0".repeat(zeros));
                text.push_str(&format!("{number} "));
            }
            let input = Input::stream(Drops(text.as_bytes(), at_once), Path::new("test"));
            let mut scanner = Scanner::new(input).unwrap();
            for &number in &numbers {
                prop_assert_eq!(scanner.number("a number").unwrap(), number);
            }
            prop_assert!(!scanner.content().unwrap());
        }

    }

    #[test]
    fn lines_longer_than_a_block_are_cut_at_spaces() {
        let mut text = "word ".repeat(BLOCK / 2);
        text.push_str("\nlast");
        let mut scanner = scanner(text.as_bytes());
        let (mut words, mut lines) = (0, 0);
        while let Some(piece) = scanner.piece().unwrap() {
            assert!(piece.text.len() <= BLOCK);
            words += piece.text.split(|&byte| byte == b' ').filter(|w| w == b"word").count();
            lines += usize::from(piece.ends_line);
        }
        assert_eq!((words, lines), (BLOCK / 2, 2));
    }

    #[test]
    fn a_run_without_spaces_is_bounded() {
        let text = vec![b'x'; 3 * BLOCK];
        let mut long = scanner(&text);
        assert_eq!(long.piece().unwrap().unwrap().text.len(), 3 * BLOCK);
        let text = vec![b'x'; MAX_RUN + BLOCK];
        let mut longer = scanner(&text);
        assert!(matches!(longer.piece(), Err(ReadError::TooLong { .. })));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(scanner(b"\xef\xbb\xbf12").number("").unwrap(), 12);
    }
}
