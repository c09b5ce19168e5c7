//! Parsers of option values of `lda train`.

use std::iter;

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use lda_core::simd::Isa;
use lda_core::train::SamplerKind;
use lda_examples::parsers::number;

/// A sampler; `None` lets the library choose.
#[derive(Clone, Copy, Debug)]
pub struct Sampler(pub Option<SamplerKind>);

/// Parser of `--sampler`.
pub fn sampler_parser() -> ValueParser {
    let names = iter::once("auto").chain(SamplerKind::ALL.map(SamplerKind::name));
    PossibleValuesParser::new(names)
        .try_map(|name| match name.as_str() {
            "auto" => Ok(Sampler(None)),
            name => name.parse().map(|kind| Sampler(Some(kind))),
        })
        .into()
}

/// Parser of `--isa`.
pub fn isa_parser() -> ValueParser {
    PossibleValuesParser::new(["scalar", "avx2", "avx512"])
        .map(|name| match name.as_str() {
            "avx512" => Isa::Avx512,
            "avx2" => Isa::Avx2,
            _ => Isa::Scalar,
        })
        .into()
}

/// Parses a number from 0 to 1.
pub fn lambda(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("give a number from 0 to 1".into()) }
}

/// Parses a size in bytes with an optional unit.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = number(&text[..unit_at])?;
    let unit = match text[unit_at..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return Err("give a number of bytes, or one with MiB or GiB".to_owned()),
    };
    let bytes = value * unit;
    if bytes >= 1.0 && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err("give at least 1 byte, and less than 2^64".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("12"), Ok(12));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        for bad in ["", "-1", "0", "1TB?", "1e40", ".", "99999999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
