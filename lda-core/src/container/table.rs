//! Header and table: what sections there are, and where.

use super::error::{FileError, FileProblem};
use super::number::size_of_element;
use crate::checksum::Xxh64;

/// First bytes of every file.
const MAGIC: [u8; 8] = *b"\x89LDA\r\n\x1a\n";
/// Bytes of the header.
pub(super) const HEADER: usize = 64;
/// Bytes of the header that its checksum covers.
const HEADER_SUMMED: usize = 56;
/// Bytes of an entry.
const ENTRY: usize = 48;
/// Sections begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 64;
/// Most sections.
const MAX_SECTIONS: usize = 256;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A trained model.
    Model,
    /// A run between two epochs.
    Snapshot,
    /// Documents.
    Corpus,
}

impl Kind {
    /// As it stands in the header and in errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Snapshot => "snapshot",
            Self::Corpus => "corpus",
        }
    }

    /// Last version of the format.
    fn version(self) -> u32 {
        1
    }

    fn code(self) -> [u8; 8] {
        let mut code = [0; 8];
        code[..self.name().len()].copy_from_slice(self.name().as_bytes());
        code
    }
}

/// Where a section lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub name: String,
    pub element: u32,
    pub start: u64,
    /// Bytes.
    pub len: u64,
    pub hash: u64,
}

/// All sections, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub sections: Vec<Section>,
}

/// XXH64 of `bytes`.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Xxh64::new();
    hash.update(bytes);
    hash.digest()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Table {
    /// Bytes of header and table of `sections` sections.
    pub fn end(sections: usize) -> u64 {
        (HEADER + sections * ENTRY) as u64
    }

    /// Header and table of a file of `kind` that has `len` bytes.
    pub fn to_bytes(&self, kind: Kind, len: u64) -> Vec<u8> {
        let mut table = Vec::with_capacity(self.sections.len() * ENTRY);
        for section in &self.sections {
            let name = section.name.as_bytes();
            table.extend_from_slice(name);
            table.resize(table.len() + 16 - name.len(), 0);
            table.extend_from_slice(&section.element.to_le_bytes());
            table.extend_from_slice(&[0; 4]);
            for number in [section.start, section.len, section.hash] {
                table.extend_from_slice(&number.to_le_bytes());
            }
        }
        let mut bytes = Vec::with_capacity(HEADER + table.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&kind.code());
        bytes.extend_from_slice(&kind.version().to_le_bytes());
        bytes.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&hash(&table).to_le_bytes());
        bytes.resize(HEADER_SUMMED, 0);
        let sum = hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&table);
        bytes
    }

    /// Checks the header of a file of `len` bytes; returns the number of its sections, whose table
    /// lies within the file.
    pub fn check_header(header: &[u8], kind: Kind, len: u64) -> Result<usize, FileError> {
        if header.len() < MAGIC.len() || header[..MAGIC.len()] != MAGIC {
            return Err(FileError::foreign(header));
        }
        if header.len() < HEADER {
            return Err(FileProblem::Length { expected: HEADER as u64, found: len }.into());
        }
        // Before the checksum: another version may compute it from other bytes.
        let version = u32_at(header, 16);
        if version > kind.version() {
            return Err(FileProblem::Newer { version, known: kind.version() }.into());
        }
        if hash(&header[..HEADER_SUMMED]) != u64_at(header, HEADER_SUMMED) {
            return Err(FileError::damaged("header"));
        }
        let code = header[8..16].try_into().expect("eight bytes");
        if code != kind.code() {
            return Err(FileError::kind(&code, kind));
        }
        if version == 0 {
            return Err(FileError::malformed("header", "versions count from 1"));
        }
        let expected = u64_at(header, 24);
        if expected != len {
            return Err(FileProblem::Length { expected, found: len }.into());
        }
        let sections = u32_at(header, 20) as usize;
        if sections > MAX_SECTIONS {
            let reason = format!("{sections} sections, above the limit of {MAX_SECTIONS}");
            return Err(FileError::malformed("header", reason));
        }
        if Self::end(sections) > len {
            return Err(FileError::malformed("header", "the table goes beyond the file"));
        }
        Ok(sections)
    }

    /// Reads the table after a header that was checked. Sections lie in the file, in order, and do
    /// not overlap; names are distinct.
    pub fn parse(header: &[u8], table: &[u8], len: u64) -> Result<Self, FileError> {
        if hash(table) != u64_at(header, 32) {
            return Err(FileError::damaged("table"));
        }
        let mut sections: Vec<Section> = Vec::new();
        let mut free = Self::end(table.len() / ENTRY);
        for entry in table.chunks_exact(ENTRY) {
            let name = &entry[..16];
            let name = &name[..name.iter().position(|&byte| byte == 0).unwrap_or(16)];
            let name = name.escape_ascii().to_string();
            let (element, start, bytes) = (u32_at(entry, 16), u64_at(entry, 24), u64_at(entry, 32));
            let malformed = |what: &str| FileError::malformed("table", format!("{name:?} {what}"));
            let size = size_of_element(element).ok_or_else(|| malformed("is of no known kind"))?;
            if start < free || !start.is_multiple_of(ALIGNMENT) {
                return Err(malformed("begins where it must not"));
            }
            free = start.checked_add(bytes).ok_or_else(|| malformed("is too long"))?;
            if free > len || !bytes.is_multiple_of(size) {
                return Err(malformed("ends where it must not"));
            }
            if sections.iter().any(|section| section.name == name) {
                return Err(malformed("is there twice"));
            }
            sections.push(Section { name, element, start, len: bytes, hash: u64_at(entry, 40) });
        }
        if free != len {
            return Err(FileError::malformed("table", "the sections end before the file does"));
        }
        Ok(Self { sections })
    }

    /// The section of that name.
    pub fn find(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}
