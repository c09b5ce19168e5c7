#![no_main]

use lda_core::corpus::Format;
use lda_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|input: (bool, bool, Option<u8>, Option<u8>, &str, &[u8])| {
    let (is_json, header, id, date, text, bytes) = input;
    let mut options = options();
    let name = |column: u8| (column % 4).to_string();
    options.columns.text = vec![text.to_owned(), "1".to_owned()];
    options.columns.id = id.map(name);
    options.columns.date = date.map(name);
    options.columns.header = header;
    let format = if is_json { Format::JsonLines } else { Format::Csv };
    check(format.read_from(bytes, "fuzz", &options));
});
