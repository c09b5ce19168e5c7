//! Parsers of numeric options.

use clap::builder::ValueParser;

/// Parses a number.
///
/// # Errors
/// A message for the user.
pub fn number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| "not a number".to_owned())
}

/// Parses a finite number above 0.
///
/// # Errors
/// A message for the user.
pub fn positive(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err("give a finite number above 0".to_owned())
    }
}

/// Parser of a share: above 0 and below 1, or up to 1 if `whole`.
pub fn share(whole: bool) -> ValueParser {
    let parse = move |text: &str| {
        let value = number(text)?;
        if value > 0.0 && (value < 1.0 || whole && value == 1.0) {
            Ok(value)
        } else if whole {
            Err("give a share above 0 and at most 1".to_owned())
        } else {
            Err("give a share above 0 and below 1, as in 0.1".to_owned())
        }
    };
    ValueParser::new(parse)
}
