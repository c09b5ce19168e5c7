//! Batches of keys and rows: what is read is what is written, and any bytes are read or refused.
#![no_main]

use lda_transport::batch::{self, Items};
use lda_transport::rpc::MessageBuf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(items) = Items::of(bytes) else { return };
    let mut again = MessageBuf::new();
    let count = items.len();
    assert_eq!(items.inspect(|item| batch::put(&mut again, item)).count(), count);
    assert_eq!(again.body(), bytes);
});
