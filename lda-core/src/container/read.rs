//! Reads files section by section.

use std::io::{Read, Seek, SeekFrom};

use super::array::Array;
use super::error::{FileError, FileProblem};
use super::kind::Kind;
use super::number::Number;
use super::table::{HEADER, Section, Table};
use crate::checksum::Xxh64;
use crate::prior::Alpha;

/// Bytes per read; a multiple of the size of every element type.
const BLOCK: usize = 1 << 16;

/// Access to the sections of a file, whether read or mapped.
pub(crate) trait Source {
    /// Whether there is a section `name`.
    fn has(&self, name: &str) -> bool;

    /// Whether there is a section `name` with elements of type `T`.
    fn has_of<T: Number>(&self, name: &str) -> bool;

    /// The numbers of a section.
    fn array<T: Number>(&mut self, name: &str) -> Result<Array<T>, FileError>;

    /// A document-topic prior: one value, or one per topic.
    fn alpha(&mut self, name: &str) -> Result<Alpha, FileError> {
        let alphas = self.array::<f64>(name)?;
        Alpha::from_slice(&alphas).ok_or_else(|| FileError::malformed(name, "it is empty"))
    }

    /// The numbers of a section, of which there must be `expected`.
    fn exactly<T: Number>(&mut self, name: &str, expected: u64) -> Result<Array<T>, FileError> {
        let array = self.array::<T>(name)?;
        if array.len() as u64 != expected {
            let reason = format!("it has {} values, not {expected}", array.len());
            return Err(FileError::malformed(name, reason));
        }
        Ok(array)
    }
}

/// A file with a valid header and table. Memory grows only with the sections that are read, and no
/// section is longer than the file.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    inner: R,
    table: Table,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads and checks header and table.
    pub fn open(mut inner: R, kind: Kind) -> Result<Self, FileError> {
        let len = inner.seek(SeekFrom::End(0))?;
        inner.rewind()?;
        let mut header = Vec::with_capacity(HEADER);
        inner.by_ref().take(HEADER as u64).read_to_end(&mut header)?;
        let sections = Table::check_header(&header, kind, len)?;
        let mut table = vec![0; Table::end(sections) as usize - HEADER];
        inner.read_exact(&mut table)?;
        let table = Table::parse(&header, &table, len)?;
        Ok(Self { inner, table })
    }

    /// Reads a section and compares its checksum.
    pub fn numbers<T: Number>(&mut self, name: &str) -> Result<Vec<T>, FileError> {
        let section = of_kind::<T>(&self.table, name)?;
        self.inner.seek(SeekFrom::Start(section.start))?;
        // INVARIANT: the table was checked against the length of the file, which bounds the memory.
        let mut values = Vec::with_capacity(section.len as usize / T::SIZE);
        let mut hash = Xxh64::new();
        let mut buffer = vec![0; BLOCK.min(section.len as usize)];
        let mut left = section.len;
        while left > 0 {
            let part = &mut buffer[..(BLOCK as u64).min(left) as usize];
            self.inner.read_exact(part)?;
            hash.update(part);
            T::get(part, &mut values);
            left -= part.len() as u64;
        }
        if hash.digest() != section.hash {
            return Err(FileError::damaged(name));
        }
        Ok(values)
    }
}

impl<R: Read + Seek> Source for Reader<R> {
    fn has(&self, name: &str) -> bool {
        self.table.find(name).is_some()
    }

    fn has_of<T: Number>(&self, name: &str) -> bool {
        of_kind::<T>(&self.table, name).is_ok()
    }

    fn array<T: Number>(&mut self, name: &str) -> Result<Array<T>, FileError> {
        self.numbers(name).map(Array::Owned)
    }
}

/// The section `name`, if its elements are of type `T`.
pub(super) fn of_kind<'a, T: Number>(
    table: &'a Table,
    name: &str,
) -> Result<&'a Section, FileError> {
    match table.find(name) {
        Some(section) if section.element == T::ELEMENT => Ok(section),
        Some(_) => Err(FileError::malformed(name, "its numbers are of another type")),
        None => Err(FileProblem::Missing { name: name.to_owned() }.into()),
    }
}
