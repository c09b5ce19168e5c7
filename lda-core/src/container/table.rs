//! Header and table of sections.

use super::error::{FileError, FileProblem};
use super::kind::Kind;
use super::number::size_of_element;
use crate::checksum::Xxh64;

/// First bytes of every file.
const MAGIC: [u8; 8] = *b"\x89LDA\r\n\x1a\n";
/// Length of the header, in bytes.
pub(super) const HEADER: usize = 64;
/// Bytes of the header that its checksum covers.
const HEADER_SUMMED: usize = 56;
/// Length of an entry of the table, in bytes.
const ENTRY: usize = 48;
/// Sections begin at multiples of this many bytes.
pub(super) const ALIGNMENT: u64 = 64;
/// Maximum number of sections.
const MAX_SECTIONS: usize = 256;

/// Entry of the table: a section's name, position and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub name: String,
    /// Code of the element type.
    pub element: u32,
    /// First byte, counted from the start of the file.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// XXH64 of the bytes.
    pub hash: u64,
}

/// All sections, in file order.
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
    /// Length in bytes of header and table for `sections` sections.
    pub fn end(sections: usize) -> u64 {
        (HEADER + sections * ENTRY) as u64
    }

    /// Encodes header and table of a file of `kind` with a length of `len` bytes.
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

    /// Checks the header of a file of `len` bytes. Returns the number of sections; their table lies
    /// within the file.
    pub fn check_header(header: &[u8], kind: Kind, len: u64) -> Result<usize, FileError> {
        if header.len() < MAGIC.len() || header[..MAGIC.len()] != MAGIC {
            return Err(FileError::foreign(header));
        }
        if header.len() < HEADER {
            return Err(FileProblem::Length { expected: HEADER as u64, found: len }.into());
        }
        // The version is checked before the checksum, because another version may compute the
        // checksum from other bytes.
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
            return Err(FileError::malformed("header", "the table extends beyond the file"));
        }
        Ok(sections)
    }

    /// Decodes the table; the header must have been checked.
    ///
    /// INVARIANT of the result: sections lie within the file, in order, without overlap, and their
    /// names are distinct. Readers slice a mapped file by it without further checks.
    pub fn parse(header: &[u8], table: &[u8], len: u64) -> Result<Self, FileError> {
        if hash(table) != u64_at(header, 32) {
            return Err(FileError::damaged("table"));
        }
        let mut sections: Vec<Section> = Vec::new();
        // First byte that no section has claimed yet.
        let mut free = Self::end(table.len() / ENTRY);
        for entry in table.chunks_exact(ENTRY) {
            let name = &entry[..16];
            let name = &name[..name.iter().position(|&byte| byte == 0).unwrap_or(16)];
            let name = name.escape_ascii().to_string();
            let (element, start, bytes) = (u32_at(entry, 16), u64_at(entry, 24), u64_at(entry, 32));
            let malformed = |what: &str| FileError::malformed("table", format!("{name:?} {what}"));
            let size =
                size_of_element(element).ok_or_else(|| malformed("has an unknown element type"))?;
            if start < free || !start.is_multiple_of(ALIGNMENT) {
                return Err(malformed("has an invalid start"));
            }
            // INVARIANT: starts ascend past every earlier end, so that sections cannot overlap.
            free = start.checked_add(bytes).ok_or_else(|| malformed("is too long"))?;
            if free > len || !bytes.is_multiple_of(size) {
                return Err(malformed("has an invalid end"));
            }
            if sections.iter().any(|section| section.name == name) {
                return Err(malformed("occurs twice"));
            }
            sections.push(Section { name, element, start, len: bytes, hash: u64_at(entry, 40) });
        }
        if free != len {
            return Err(FileError::malformed("table", "the sections end before the file does"));
        }
        Ok(Self { sections })
    }

    /// The section `name`.
    pub fn find(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}
