//! Encoding of numbers in files: little-endian.

/// Element type of a section.
pub(crate) trait Number: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Code of the type in the table.
    const ELEMENT: u32;
    /// Size in bytes.
    const SIZE: usize;

    /// Appends the encoded number to `bytes`.
    fn put(self, bytes: &mut Vec<u8>);

    /// Decodes `bytes`, whose length is a multiple of [`SIZE`](Self::SIZE), and appends the numbers
    /// to `values`.
    fn get(bytes: &[u8], values: &mut Vec<Self>);

    /// Reinterprets mapped bytes as numbers. Only on little-endian machines, where memory and file
    /// hold the same bytes.
    ///
    /// # Panics
    /// If the bytes are not aligned to [`SIZE`](Self::SIZE), or their length is not a multiple of
    /// it.
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

/// Size in bytes of an element type, by its code; `None` for an unknown code.
pub(super) fn size_of_element(element: u32) -> Option<u64> {
    match element {
        u8::ELEMENT => Some(1),
        u16::ELEMENT => Some(2),
        u32::ELEMENT | f32::ELEMENT => Some(4),
        u64::ELEMENT | f64::ELEMENT => Some(8),
        _ => None,
    }
}
