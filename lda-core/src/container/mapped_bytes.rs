//! Bytes of a mapped file.

use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;

/// A range of a mapped file. The file stays mapped while the range exists.
#[derive(Clone)]
pub(crate) struct MappedBytes {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl MappedBytes {
    /// A range within the file.
    pub fn new(map: &Arc<Mmap>, range: Range<usize>) -> Self {
        Self { map: Arc::clone(map), range }
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }
}
