//! Reads the sections of a mapped file: nothing is copied, and processes that map the same file
//! share its memory.

use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use super::array::Array;
use super::error::FileError;
use super::kind::Kind;
use super::mapped_bytes::MappedBytes;
use super::number::Number;
use super::read::{Source, of_kind};
use super::table::{HEADER, Section, Table, hash};

/// A mapped file with a valid header and table.
#[derive(Debug)]
pub(crate) struct MappedReader {
    map: Arc<Mmap>,
    table: Table,
}

impl MappedReader {
    /// Checks the header and the table of a file of `kind`.
    pub fn new(map: Mmap, kind: Kind) -> Result<Self, FileError> {
        let len = map.len() as u64;
        let header = &map[..map.len().min(HEADER)];
        let sections = Table::check_header(header, kind, len)?;
        let table = Table::parse(header, &map[HEADER..Table::end(sections) as usize], len)?;
        Ok(Self { map: Arc::new(map), table })
    }

    /// Compares the checksums of all sections, in one pass over the file.
    pub fn verify(&self) -> Result<(), FileError> {
        for section in &self.table.sections {
            if hash(&self.map[bytes_of(section)]) != section.hash {
                return Err(FileError::damaged(&section.name));
            }
        }
        Ok(())
    }
}

impl Source for MappedReader {
    fn has(&self, name: &str) -> bool {
        self.table.find(name).is_some()
    }

    fn has_of<T: Number>(&self, name: &str) -> bool {
        of_kind::<T>(&self.table, name).is_ok()
    }

    fn array<T: Number>(&mut self, name: &str) -> Result<Array<T>, FileError> {
        let range = bytes_of(of_kind::<T>(&self.table, name)?);
        Ok(Array::Mapped(MappedBytes::new(&self.map, range)))
    }
}

/// Bytes of a section. INVARIANT: they lie within the file, because [`Table::parse`] checked them
/// against its length.
fn bytes_of(section: &Section) -> Range<usize> {
    section.start as usize..(section.start + section.len) as usize
}
