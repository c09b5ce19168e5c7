//! Dates of documents: a year, or a year, month and day.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The date of a document, `YYYY` or `YYYY-MM-DD`, in 4 bytes.
///
/// Dates order by time; a year alone comes before every day in it.
///
/// ```
/// use lda_core::corpus::Date;
///
/// let day: Date = "1987-02-26".parse()?;
/// assert_eq!((day.year(), day.month(), day.day()), (1987, Some(2), Some(26)));
/// let year: Date = "1987".parse()?;
/// assert!(year < day);
/// assert_eq!(year.to_string(), "1987");
/// # Ok::<(), lda_core::corpus::DateError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Date(
    /// `year << 9 | month << 5 | day`; month and day are 0 if only the year is known.
    u32,
);

/// Error of parsing a [`Date`]: the text is neither `YYYY` nor a valid `YYYY-MM-DD`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is not a date: write YYYY or YYYY-MM-DD")]
pub struct DateError {
    found: String,
}

impl Date {
    /// A year, 0 to 9999; `None` beyond.
    pub fn from_year(year: u32) -> Option<Self> {
        (year <= 9999).then_some(Self(year << 9))
    }

    /// A day of the proleptic Gregorian calendar; `None` if it does not exist.
    pub fn from_day(year: u32, month: u32, day: u32) -> Option<Self> {
        let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            _ => 0,
        };
        let exists = year <= 9999 && (1..=days).contains(&day);
        exists.then_some(Self(year << 9 | month << 5 | day))
    }

    /// Encoding in corpus files.
    pub(super) fn to_bits(self) -> u32 {
        self.0
    }

    /// Decodes [`to_bits`](Self::to_bits); `None` if the date does not exist.
    pub(super) fn from_bits(bits: u32) -> Option<Self> {
        match (bits >> 9, bits >> 5 & 15, bits & 31) {
            (year, 0, 0) => Self::from_year(year),
            (year, month, day) => Self::from_day(year, month, day),
        }
    }

    /// The year.
    pub fn year(self) -> u32 {
        self.0 >> 9
    }

    /// The month, 1 to 12, if known.
    pub fn month(self) -> Option<u32> {
        Some(self.0 >> 5 & 15).filter(|&month| month > 0)
    }

    /// The day of the month, from 1, if known.
    pub fn day(self) -> Option<u32> {
        Some(self.0 & 31).filter(|&day| day > 0)
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse(text.as_bytes())
            .ok_or_else(|| DateError { found: text.chars().take(40).collect::<String>() })
    }
}

fn parse(text: &[u8]) -> Option<Date> {
    match text {
        [_, _, _, _] => Date::from_year(digits(text)?),
        [year @ .., b'-', m1, m0, b'-', d1, d0] if year.len() == 4 => {
            Date::from_day(digits(year)?, digits(&[*m1, *m0])?, digits(&[*d1, *d0])?)
        }
        _ => None,
    }
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.year())?;
        match (self.month(), self.day()) {
            (Some(month), Some(day)) => write!(f, "-{month:02}-{day:02}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Date {
    type Error = DateError;

    fn try_from(text: String) -> Result<Self, DateError> {
        text.parse()
    }
}

impl From<Date> for String {
    fn from(date: Date) -> Self {
        date.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonexistent_days_are_rejected() {
        for text in ["", "87", "19870", "1987-2-26", "1987-02-30", "1900-02-29", "1987-13-01"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        for text in ["1987-02-00", "1987-00-01", "-987", "1987/02/26", "1987-02-2x", "١٩٨٧"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        assert!("2000-02-29".parse::<Date>().is_ok());
        assert_eq!(Date::from_year(10_000), None);
        assert_eq!(Date::from_day(10_000, 1, 1), None);
    }

    #[test]
    fn serde_writes_what_display_writes() {
        let date = Date::from_day(476, 9, 4).unwrap();
        assert_eq!(serde_json::to_string(&date).unwrap(), "\"0476-09-04\"");
        assert_eq!(serde_json::from_str::<Date>("\"0476-09-04\"").unwrap(), date);
        assert!(serde_json::from_str::<Date>("\"soon\"").is_err());
    }

    #[test]
    fn dates_order_by_time() {
        let dates = ["1986", "1986-12-31", "1987", "1987-01-01", "1987-01-02", "1987-02-01"];
        let dates: Vec<Date> = dates.iter().map(|text| text.parse().unwrap()).collect();
        assert!(dates.is_sorted());
    }
}
