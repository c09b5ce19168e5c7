//! JSON in comments of other formats.

use serde::Serialize;

/// One line of JSON, all ASCII: it fits a comment of any format.
///
/// # Panics
/// If `value` is no plain data: a map whose keys are no strings, or an error of its own.
pub fn ascii_line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("plain data");
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            // Outside of strings JSON is ASCII, so this is in one, where an escape may stand.
            for unit in c.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ascii_and_parses_back() {
        let value = ["dír/\u{1f600}\n\u{7f}", "plain"];
        let line = ascii_line(&value);
        assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&line).unwrap(), value);
    }
}
