//! Writes files section by section. Header and table are written last, when lengths and checksums
//! are known.

use std::io::{self, Seek, SeekFrom, Write};

use super::kind::Kind;
use super::number::Number;
use super::table::{ALIGNMENT, Section, Table};
use crate::checksum::Xxh64;

/// Bytes per write.
const BLOCK: usize = 1 << 16;

/// Writer of one file, which is invalid until [`finish`](Self::finish).
#[derive(Debug)]
pub(crate) struct Writer<W> {
    inner: W,
    kind: Kind,
    /// Position in `inner` where the file begins.
    base: u64,
    /// Bytes written so far, counted from `base`.
    position: u64,
    table: Table,
    /// Number of entries reserved in the table.
    room: usize,
}

impl<W: Write + Seek> Writer<W> {
    /// Reserves space for the header and a table of `sections` sections.
    pub fn new(mut inner: W, kind: Kind, sections: usize) -> io::Result<Self> {
        let base = inner.stream_position()?;
        let position = Table::end(sections);
        let mut writer =
            Self { inner, kind, base, position: 0, table: Table::default(), room: sections };
        writer.pad(position)?;
        Ok(writer)
    }

    /// Writes zeros up to `position`.
    fn pad(&mut self, position: u64) -> io::Result<()> {
        const ZEROS: [u8; 512] = [0; 512];
        while self.position < position {
            let n = (position - self.position).min(ZEROS.len() as u64);
            self.inner.write_all(&ZEROS[..n as usize])?;
            self.position += n;
        }
        Ok(())
    }

    /// Appends a section.
    ///
    /// # Panics
    /// If the table is full, or the name is empty, longer than 16 bytes or not ASCII.
    pub fn section<T: Number>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        assert!(self.table.sections.len() < self.room, "no room for section {name:?}");
        assert!((1..=16).contains(&name.len()) && name.is_ascii(), "section name {name:?}");
        self.pad(self.position.next_multiple_of(ALIGNMENT))?;
        let start = self.position;
        let mut hash = Xxh64::new();
        let mut buffer = Vec::with_capacity(BLOCK);
        for value in values {
            value.put(&mut buffer);
            if buffer.len() >= BLOCK {
                hash.update(&buffer);
                self.inner.write_all(&buffer)?;
                self.position += buffer.len() as u64;
                buffer.clear();
            }
        }
        hash.update(&buffer);
        self.inner.write_all(&buffer)?;
        self.position += buffer.len() as u64;
        self.table.sections.push(Section {
            name: name.to_owned(),
            element: T::ELEMENT,
            start,
            len: self.position - start,
            hash: hash.digest(),
        });
        Ok(())
    }

    /// Writes header and table; leaves the position of `inner` at the end of the file.
    ///
    /// # Panics
    /// If there are fewer sections than were reserved.
    pub fn finish(mut self) -> io::Result<W> {
        assert_eq!(self.table.sections.len(), self.room, "sections");
        // INVARIANT: until this write the file begins with zeros, which no reader accepts.
        self.inner.seek(SeekFrom::Start(self.base))?;
        self.inner.write_all(&self.table.to_bytes(self.kind, self.position))?;
        self.inner.seek(SeekFrom::Start(self.base + self.position))?;
        Ok(self.inner)
    }
}
