//! Arrays that are held in memory, or lie in a mapped file.

use std::fmt;
use std::ops::Deref;

use super::number::Number;

/// Numbers, wherever they are; reads as a slice.
pub(crate) enum Array<T> {
    /// In memory of our own.
    Held(Vec<T>),
    /// In a file.
    #[cfg(all(feature = "mmap", target_endian = "little"))]
    Mapped(super::map::MappedSection),
}

impl<T: Number> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Held(values) => values,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(section) => T::cast(section),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Held(values)
    }
}

impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Held(values) => Self::Held(values.clone()),
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(section) => Self::Mapped(section.clone()),
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
    /// The numbers, in memory.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::Held(values) => values,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(_) => self.to_vec(),
        }
    }

    /// Bytes of heap memory held; none where they are in a file.
    pub fn memory(&self) -> usize {
        match self {
            Self::Held(values) => values.capacity() * T::SIZE,
            #[cfg(all(feature = "mmap", target_endian = "little"))]
            Self::Mapped(_) => 0,
        }
    }
}
