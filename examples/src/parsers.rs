//! Parsers of option values that several commands have.

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use lda_core::Alpha;
use lda_core::train::{LearnAlpha, Start};

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

/// Parses a prior: one number, or one per topic.
///
/// # Errors
/// A message for the user.
pub fn alpha(text: &str) -> Result<Alpha, String> {
    let values = text.split(',').map(positive).collect::<Result<Vec<f64>, String>>()?;
    Ok(if let [alpha] = values[..] { Alpha::Symmetric(alpha) } else { Alpha::PerTopic(values) })
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

/// Parser of `--learn-alpha`.
pub fn learn_parser() -> ValueParser {
    PossibleValuesParser::new(LearnAlpha::ALL.map(LearnAlpha::name))
        .map(|name| {
            let named = |alpha: &LearnAlpha| alpha.name() == name;
            LearnAlpha::ALL.into_iter().find(named).expect("one of the names above")
        })
        .into()
}

/// Parser of `--start`.
pub fn start_parser() -> ValueParser {
    PossibleValuesParser::new(Start::ALL.map(Start::name))
        .map(|name| {
            let named = |start: &Start| start.name() == name;
            Start::ALL.into_iter().find(named).expect("one of the names above")
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_a_number_or_a_list() {
        assert_eq!(alpha("0.5"), Ok(Alpha::Symmetric(0.5)));
        assert_eq!(alpha("0.5, 1"), Ok(Alpha::PerTopic(vec![0.5, 1.0])));
        for bad in ["", "0", "-1", "nan", "inf", "0.5,", "x"] {
            assert!(alpha(bad).is_err(), "{bad}");
        }
    }
}
