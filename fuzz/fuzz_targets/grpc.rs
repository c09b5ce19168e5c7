//! Messages and hellos of gRPC, of any bytes: read or refused, and what is read is what others would read.
#![no_main]

use lda_transport::grpc::wire::{Hello, decode_message};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    match decode_message(&mut rest) {
        Ok(data) => assert!(rest.is_empty() && data.len() <= bytes.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // In pieces, as a network gives them.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut pieces = bytes::Buf::chain(first, second);
    assert_eq!(decode_message(&mut pieces), decode_message(&mut &bytes[..]));
    for hello in [bytes, &[b"lda-grpc\x01", bytes].concat()] {
        match Hello::decode(hello) {
            Ok(read) => assert_eq!(Hello::decode(&read.encode()), Ok(read)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
