//! JSON that fits in a comment of another format.

use serde::Serialize;

/// Serializes a value as one line of ASCII JSON, which fits in a comment of any format.
///
/// # Panics
/// If `value` cannot be serialized: a map with keys that are not strings, or an error of its own.
pub fn ascii_line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("plain data serializes to JSON");
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            // JSON is ASCII outside of strings, so `c` is inside one and can be escaped.
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
    fn a_line_is_ascii_and_parses_back() {
        let value = ["dír/\u{1f600}\n\u{7f}", "plain"];
        let line = ascii_line(&value);
        assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&line).unwrap(), value);
    }
}
