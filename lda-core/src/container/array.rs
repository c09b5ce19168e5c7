//! Arrays of numbers in memory or in a mapped file.

use std::fmt;
use std::ops::Deref;

use super::number::Number;

/// Numbers in memory or in a mapped file; dereferences to a slice.
pub(crate) enum Array<T> {
    /// On the heap.
    Owned(Vec<T>),
    /// In a mapped file. Only on little-endian machines, where memory and file hold the same bytes.
    #[cfg(all(feature = "mmap", target_endian = "little"))]
    Mapped(super::mapped_bytes::MappedBytes),
}

impl<T: Number> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(values) => values,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(bytes) => T::cast(bytes),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Owned(values)
    }
}

impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Owned(values) => Self::Owned(values.clone()),
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(bytes) => Self::Mapped(bytes.clone()),
        }
    }
}

impl<T: Number + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Number> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} values]", self.len())
    }
}

impl<T: Number> Array<T> {
    /// The numbers on the heap, copied if they are mapped.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::Owned(values) => values,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(_) => self.to_vec(),
        }
    }

    /// Heap memory in bytes; 0 if the file is mapped.
    pub fn memory(&self) -> usize {
        match self {
            Self::Owned(values) => values.capacity() * T::SIZE,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(_) => 0,
        }
    }
}
