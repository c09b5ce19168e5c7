//! The container format of this library's files: models, snapshots of runs and documents.
//!
//! A file is a header, a table of sections, and the sections, each an array of numbers of one type.
//! Numbers are little-endian on every machine; floating-point numbers are IEEE 754.
//!
//! ```text
//! header                                       an entry of the table, one per section
//!  byte                                         byte
//!     0   8  89 'L' 'D' 'A' 0d 0a 1a 0a            0  16  name, ASCII, padded with zeros
//!     8   8  kind, ASCII, padded with zeros       16   4  element: 1 u8, 2 u16, 3 u32, 4 u64,
//!    16   4  version of the format, from 1                         5 f32, 6 f64
//!    20   4  sections n, 256 at most              20   4  zero
//!    24   8  bytes of the file                    24   8  first byte of the section
//!    32   8  XXH64 of the table                   32   8  bytes of the section
//!    40  16  zeros                                40   8  XXH64 of the section
//!    56   8  XXH64 of bytes 0 to 55
//!    64      the table, 48 n bytes
//!            sections, each from the next multiple of 64 on, zeros between them;
//!            the last byte of the last one (or of the table) is the last of the file
//! ```
//!
//! The first bytes follow PNG: a transfer that converts line ends or strips the eighth bit destroys
//! them. Sections begin at multiples of 64, so that a mapped file can be read as arrays.
//!
//! A reader rejects a version above its own. Within a version, sections and names of pairs may be
//! added; a reader ignores unknown ones. The meaning of an existing section or name never changes.
//!
//! Text is stored as (name, value) pairs of UTF-8 in a section of bytes: the number of pairs in 4
//! bytes, then each string after its length in 4 bytes.
//!
//! The sections of each kind are documented at [`TopicModel`](crate::model::TopicModel),
//! [`Snapshot`](crate::train::Snapshot), [`Corpus::save`](crate::Corpus::save),
//! [`train::blocks`](crate::train::blocks).

mod array;
mod atomic;
mod error;
mod kind;
#[cfg(all(feature = "mmap", target_endian = "little"))]
mod map;
#[cfg(all(feature = "mmap", target_endian = "little"))]
mod mapped_bytes;
mod number;
pub(crate) mod pairs;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

/// Checksum of `bytes`: XXH64 with seed 0.
pub fn checksum(bytes: &[u8]) -> u64 {
    table::hash(bytes)
}

pub(crate) use array::Array;
pub use atomic::replace;
pub use error::{FileError, FileProblem};
pub(crate) use kind::Kind;
#[cfg(all(feature = "mmap", target_endian = "little"))]
pub(crate) use map::MappedReader;
pub(crate) use number::Number;
pub(crate) use read::{Reader, Source};
pub(crate) use write::Writer;
