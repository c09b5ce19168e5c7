//! Encoding of unsigned integers as a short string.
//!
//! A page holds some hundred thousand numbers, most of them small. In JSON a small number takes two
//! characters, and the browser parses each while it loads; in this encoding it takes one, and is
//! decoded when it is displayed. A number is written in base 32, lowest digit first, each digit as a
//! letter of the Base64 alphabet, plus 32 if another digit follows.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a number.
pub fn push(out: &mut String, mut number: u64) {
    loop {
        let (digit, rest) = (number & 31, number >> 5);
        let follows = if rest > 0 { 32 } else { 0 };
        out.push(char::from(LETTERS[(digit | follows) as usize]));
        if rest == 0 {
            return;
        }
        number = rest;
    }
}

/// Encodes a list of numbers.
pub fn encode(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut out = String::new();
    numbers.into_iter().for_each(|number| push(&mut out, number));
    out
}

/// Differences of consecutive numbers of an ascending list.
pub fn gaps(numbers: impl IntoIterator<Item = u32>) -> impl Iterator<Item = u64> {
    let mut last = 0;
    numbers.into_iter().map(move |number| u64::from(number - std::mem::replace(&mut last, number)))
}

#[cfg(test)]
pub fn decode(text: &str) -> Vec<u64> {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for letter in text.bytes() {
        let digit = LETTERS.iter().position(|&l| l == letter).expect("a letter") as u64;
        number += (digit & 31) << shift;
        shift += 5;
        if digit < 32 {
            numbers.push(std::mem::take(&mut number));
            shift = 0;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        let numbers = [0, 1, 31, 32, 1023, 1024, u64::from(u32::MAX), u64::MAX];
        assert_eq!(decode(&encode(numbers)), numbers);
        assert_eq!(encode([0, 31, 32]), "AfgB");
        assert_eq!(gaps([2, 2, 9]).collect::<Vec<_>>(), [2, 0, 7]);
    }
}
