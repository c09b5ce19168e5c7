//! Whole numbers of a JSON request. JSON does not tell 1 from 1.0, and some clients write the second.

use std::fmt;
use std::num::NonZeroU32;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A whole number below 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u32(OfNumber { least: 0 })
    }
}

/// A whole number from 1, below 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positive(pub NonZeroU32);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Whole(number) = deserializer.deserialize_u32(OfNumber { least: 1 })?;
        Ok(Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)))
    }
}

struct OfNumber {
    least: u32,
}

impl OfNumber {
    fn check<E: Error>(&self, number: Option<u32>, found: Unexpected<'_>) -> Result<Whole, E> {
        match number.filter(|&number| number >= self.least) {
            Some(number) => Ok(Whole(number)),
            None => Err(E::invalid_value(found, self)),
        }
    }
}

impl Visitor<'_> for OfNumber {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.least, u32::MAX)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        self.check(u32::try_from(number).ok(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
        self.check(u32::try_from(number).ok(), Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        let whole = number as u32;
        self.check((f64::from(whole) == number).then_some(whole), Unexpected::Float(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_reals_are_whole_numbers() {
        let whole = |text: &str| serde_json::from_str(text).ok().map(|Whole(number)| number);
        for (text, number) in [
            ("0", Some(0)),
            ("7.0", Some(7)),
            ("-0.0", Some(0)),
            ("4294967295", Some(u32::MAX)),
            ("4.294967295e9", Some(u32::MAX)),
            ("4294967296", None),
            ("4294967296.0", None),
            ("-1", None),
            ("1.5", None),
            ("1e300", None),
            ("\"1\"", None),
        ] {
            assert_eq!(whole(text), number, "{text}");
        }
        let positive =
            |text: &str| serde_json::from_str::<Positive>(text).map_err(|error| error.to_string());
        assert_eq!(positive("2.0"), Ok(Positive(NonZeroU32::new(2).unwrap())));
        let refused = positive("0").unwrap_err();
        assert!(refused.contains("a whole number from 1 to 4294967295"), "{refused}");
    }
}
