//! Rows of counts and of deltas: any bytes are read or refused, and what is read is written in no more bytes.
#![no_main]

use lda_dist::wire::{RowCode, Value};

fn rows<V: Value + PartialEq + std::fmt::Debug>(code: RowCode, mut bytes: &[u8]) {
    let (mut row, mut again) = (Vec::new(), Vec::new());
    loop {
        let before = bytes.len();
        if code.decode::<V>(&mut bytes, &mut row).is_err() {
            assert!(row.is_empty() && bytes.len() == before);
            return;
        }
        let mut written = Vec::new();
        code.encode(&row, &mut written);
        assert_eq!(written.len(), code.size(&row));
        assert!(written.len() <= before - bytes.len(), "{row:?}");
        let mut rest = &written[..];
        assert_eq!(code.decode::<V>(&mut rest, &mut again), Ok(()));
        assert_eq!((&again, rest.len()), (&row, 0));
    }
}

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (topics, bytes) = input;
    let code = RowCode::new(u32::from(topics) + 1);
    rows::<u32>(code, bytes);
    rows::<i32>(code, bytes);
});
