//! Files as memory: nothing is copied, and processes that map the same file share it.

use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;

use super::array::Array;
use super::error::FileError;
use super::number::Number;
use super::read::{Source, of_kind};
use super::table::{HEADER, Kind, Section, Table, hash};

/// A mapped file whose header and table were checked.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: Arc<Mmap>,
    table: Table,
}

impl Mapped {
    /// Maps a file of `kind`.
    pub fn open(file: &File, kind: Kind) -> Result<Self, FileError> {
        // Nothing can be mapped of an empty file, and some systems say so in their own words.
        if file.metadata()?.len() == 0 {
            return Err(FileError::foreign(&[]));
        }
        let map = map(file)?;
        let len = map.len() as u64;
        let header = &map[..map.len().min(HEADER)];
        let sections = Table::check_header(header, kind, len)?;
        let table = Table::parse(header, &map[HEADER..Table::end(sections) as usize], len)?;
        Ok(Self { map: Arc::new(map), table })
    }

    /// Compares the checksums of all sections: a pass over the file.
    pub fn verify(&self) -> Result<(), FileError> {
        for section in &self.table.sections {
            if hash(&self.map[bytes_of(section)]) != section.hash {
                return Err(FileError::damaged(&section.name));
            }
        }
        Ok(())
    }
}

impl Source for Mapped {
    fn has(&self, name: &str) -> bool {
        self.table.find(name).is_some()
    }

    fn has_of<T: Number>(&self, name: &str) -> bool {
        of_kind::<T>(&self.table, name).is_ok()
    }

    fn array<T: Number>(&mut self, name: &str) -> Result<Array<T>, FileError> {
        let bytes = bytes_of(of_kind::<T>(&self.table, name)?);
        Ok(Array::Mapped(MappedSection { map: Arc::clone(&self.map), bytes }))
    }
}

/// Within the file, as the table was checked to say.
fn bytes_of(section: &Section) -> Range<usize> {
    section.start as usize..(section.start + section.len) as usize
}

/// Bytes of a section; keeps the file mapped.
#[derive(Clone)]
pub(crate) struct MappedSection {
    map: Arc<Mmap>,
    bytes: Range<usize>,
}

impl Deref for MappedSection {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map[self.bytes.clone()]
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the bytes must not change while they are mapped. This library never changes a file, it
    // replaces it by a rename, and the mapped one then lives on without a name; that nobody else
    // writes into it is asked of the caller where a file is mapped (`TopicModel::map`).
    unsafe { Mmap::map(file) }
}
