//! Numbers that nodes add together.

use crate::frame::Frame;
use crate::rpc::Element;

/// A number that can be added over a group.
pub trait Number: Copy + Send + sealed::Sealed + 'static {
    /// What it is to an operation.
    const ELEMENT: Element;
    #[doc(hidden)]
    fn put(self, bytes: &mut Vec<u8>);
    #[doc(hidden)]
    fn all(bytes: &[u8]) -> Vec<Self>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty => $element:ident),*) => {$(
        impl sealed::Sealed for $number {}

        impl Number for $number {
            const ELEMENT: Element = Element::$element;

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn all(bytes: &[u8]) -> Vec<Self> {
                let (numbers, _) = bytes.as_chunks();
                numbers.iter().map(|&bytes| Self::from_le_bytes(bytes)).collect()
            }
        }
    )*};
}

numbers!(i32 => I32, u32 => I32, i64 => I64, u64 => I64, f32 => F32);

/// A vector as it travels.
pub(super) fn frame_of<N: Number>(values: &[N]) -> Frame {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    values.iter().for_each(|value| value.put(&mut bytes));
    Frame::from(bytes)
}
