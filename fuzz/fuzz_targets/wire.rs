//! Rows of counts and of deltas, documents that are pushed, answers: any bytes are read or refused, and what is read
//! is written again, rows in no more bytes.
#![no_main]

use lda_dist::wire::{Document, PushCode, RowCode, Value};

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

fn pushed(code: PushCode, mut bytes: &[u8]) {
    let (mut document, mut again) = (Document::default(), Document::default());
    let (mut documents, mut topics) = (Vec::new(), Vec::new());
    while code.decode(&mut bytes, &mut document).is_ok() {
        let mut written = Vec::new();
        code.encode(&document, &mut written);
        let mut rest = &written[..];
        assert_eq!(code.decode(&mut rest, &mut again), Ok(()));
        assert_eq!((&again, rest.len()), (&document, 0));
        documents.push(document.clone());
    }
    // What is no document may be an answer.
    if code.decode_answer(&documents, bytes, &mut topics).is_ok() {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        code.encode_answer(&documents, &topics, &mut written);
        assert_eq!(code.decode_answer(&documents, &written, &mut read), Ok(()));
        assert_eq!(read, topics);
    }
}

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (topics, bytes) = input;
    let code = RowCode::new(u32::from(topics) + 1);
    rows::<u32>(code, bytes);
    rows::<i32>(code, bytes);
    pushed(PushCode::new(u32::from(topics) + 1, 500, 200), bytes);
});
