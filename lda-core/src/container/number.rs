//! Numbers as they stand in files.

/// A number that sections are made of.
pub(crate) trait Number: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Its code in the table.
    const ELEMENT: u32;
    /// Bytes of one.
    const SIZE: usize;

    /// Appends it to `bytes`.
    fn put(self, bytes: &mut Vec<u8>);

    /// Appends those that `bytes` hold, a multiple of [`SIZE`](Self::SIZE) of them, to `values`.
    fn get(bytes: &[u8], values: &mut Vec<Self>);

    /// The numbers that mapped bytes are; only where memory holds them as files do.
    ///
    /// # Panics
    /// If the bytes do not begin at a multiple of their size, or are no whole number of them.
    #[cfg(all(feature = "mmap", target_endian = "little"))]
    fn cast(bytes: &[u8]) -> &[Self];
}

macro_rules! numbers {
    ($($type:ty = $element:literal),+) => {$(
        impl Number for $type {
            const ELEMENT: u32 = $element;
            const SIZE: usize = size_of::<$type>();

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8], values: &mut Vec<Self>) {
                let (chunks, rest) = bytes.as_chunks();
                debug_assert!(rest.is_empty());
                values.extend(chunks.iter().map(|&bytes| Self::from_le_bytes(bytes)));
            }

            #[cfg(all(feature = "mmap", target_endian = "little"))]
            #[inline]
            fn cast(bytes: &[u8]) -> &[Self] {
                bytemuck::cast_slice(bytes)
            }
        }
    )+};
}

numbers!(u8 = 1, u16 = 2, u32 = 3, u64 = 4, f32 = 5, f64 = 6);

/// Bytes of an element, by its code; `None` where there is no such code.
pub(super) fn size_of_element(element: u32) -> Option<u64> {
    match element {
        u8::ELEMENT => Some(1),
        u16::ELEMENT => Some(2),
        u32::ELEMENT | f32::ELEMENT => Some(4),
        u64::ELEMENT | f64::ELEMENT => Some(8),
        _ => None,
    }
}
