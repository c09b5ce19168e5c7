//! Parsing of numbers from bytes.
//!
//! PERF: up to 8 digits are parsed at once. The byte-wise loop mispredicts the branch at the end
//! of nearly every number, since lengths vary; finding the first byte that is not a digit by
//! arithmetic on a 64-bit word costs the same for every length.

use super::error::CountProblem;

/// Value and number of the leading digits of 8 bytes, given as a little-endian word.
#[inline]
pub(super) fn digits(bytes: u64) -> (u64, usize) {
    let values = bytes ^ 0x3030_3030_3030_3030;
    // Sets the high bit of each byte that is not a digit; wrong only above the first such byte.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let len = (others.trailing_zeros() / 8) as usize;
    if len == 0 {
        return (0, 0);
    }
    // Shift the digits to the top, so that zeros lead; then combine neighbours three times.
    let one = values << (64 - 8 * len);
    let two = (one & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul((10 << 8) + 1) >> 8;
    let four = (two & 0x00ff_00ff_00ff_00ff).wrapping_mul((100 << 16) + 1) >> 16;
    let eight = (four & 0x0000_ffff_0000_ffff).wrapping_mul((10_000 << 32) + 1) >> 32;
    (eight, len)
}

/// The integer value of a real number in decimal notation: `3`, `+3.0`, `30e-1`.
///
/// Exact, without floating point: only the digits from the first to the last non-zero one matter, and
/// the power of ten of the last.
pub(super) fn decimal(text: &[u8]) -> Result<u32, CountProblem> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mantissa_len = text.iter().position(|byte| matches!(byte, b'e' | b'E' | b'd' | b'D'));
    let (mantissa, exponent) = text.split_at(mantissa_len.unwrap_or(text.len()));
    let exponent = if exponent.is_empty() { 0 } else { signed(&exponent[1..])? };

    let (mut value, mut power, mut zeros) = (0u64, exponent, 0u32);
    let (mut any, mut fraction) = (false, false);
    for &byte in mantissa {
        if byte == b'.' && !fraction {
            fraction = true;
            continue;
        }
        if !byte.is_ascii_digit() {
            return Err(CountProblem::Syntax);
        }
        any = true;
        power -= i64::from(fraction);
        if byte == b'0' {
            zeros += 1;
        } else {
            let shift = 10u64.saturating_pow(zeros + 1);
            value = value.saturating_mul(shift).saturating_add(u64::from(byte - b'0'));
            zeros = 0;
        }
    }
    if !any {
        return Err(CountProblem::Syntax);
    }
    if value == 0 {
        return Ok(0);
    }
    if negative {
        return Err(CountProblem::Negative);
    }
    let power = power.saturating_add(i64::from(zeros));
    // The last digit of `value` is not zero, so a negative power leaves a fraction.
    let power = u32::try_from(power)
        .map_err(|_| if power < 0 { CountProblem::Fractional } else { CountProblem::Overflow })?;
    u32::try_from(value.saturating_mul(10u64.saturating_pow(power)))
        .map_err(|_| CountProblem::Overflow)
}

/// An integer, clamped to one million either way: a larger exponent exceeds any count.
fn signed(text: &[u8]) -> Result<i64, CountProblem> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(CountProblem::Syntax);
    }
    let value = digits
        .iter()
        .fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1_000_000));
    Ok(sign * value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn digits_stop_at_any_other_byte() {
        for byte in 0..=255u8 {
            let bytes = [b'1', b'9', b'0', byte, b'7', 0xff, 0x3a, 0x2f];
            let expected = match byte {
                b'0'..=b'9' => (1900 + u64::from(byte - b'0'), 4),
                _ => (190, 3),
            };
            let (value, len) = digits(u64::from_le_bytes(bytes));
            if byte.is_ascii_digit() {
                assert_eq!((value, len), (expected.0 * 10 + 7, 5));
            } else {
                assert_eq!((value, len), expected, "{byte}");
            }
        }
    }

    proptest! {
        #[test]
        fn decimals_agree_with_floats(
            whole in 0u64..10_000_000, fraction in 0u64..1000, exponent in -6i32..6,
        ) {
            let text = format!("{whole}.{fraction:03}e{exponent}");
            let scaled = i128::from(whole * 1000 + fraction) * 10i128.pow((exponent + 6) as u32);
            let expected = if scaled % 1_000_000_000 != 0 {
                Err(CountProblem::Fractional)
            } else {
                u32::try_from(scaled / 1_000_000_000).map_err(|_| CountProblem::Overflow)
            };
            prop_assert_eq!(decimal(text.as_bytes()), expected);
        }

        #[test]
        fn decimal_takes_any_bytes(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = decimal(&text);
        }
    }

    #[test]
    fn decimals() {
        use CountProblem::{Fractional, Negative, Overflow, Syntax};
        let cases: [(&str, Result<u32, CountProblem>); 27] = [
            ("3", Ok(3)),
            ("3.", Ok(3)),
            ("3.0", Ok(3)),
            ("+3e0", Ok(3)),
            ("30e-1", Ok(3)),
            ("0.003E+3", Ok(3)),
            ("3.0D0", Ok(3)),
            (".0", Ok(0)),
            ("-0", Ok(0)),
            ("0e999999999999999999999", Ok(0)),
            ("4294967295", Ok(u32::MAX)),
            ("4294967296", Err(Overflow)),
            ("1e999999999999999999999", Err(Overflow)),
            ("123456789012345678901234567890", Err(Overflow)),
            ("0.5", Err(Fractional)),
            ("1e-1", Err(Fractional)),
            ("1e-999999999999999999999", Err(Fractional)),
            ("3.00000000000000000000000000000000001", Err(Fractional)),
            ("-1", Err(Negative)),
            ("", Err(Syntax)),
            (".", Err(Syntax)),
            ("e3", Err(Syntax)),
            ("3e", Err(Syntax)),
            ("3e+", Err(Syntax)),
            ("1.2.3", Err(Syntax)),
            ("nan", Err(Syntax)),
            ("inf", Err(Syntax)),
        ];
        for (text, expected) in cases {
            assert_eq!(decimal(text.as_bytes()), expected, "{text}");
        }
    }
}
