//! Text in files: (name, value) pairs in one section of bytes.

use std::str::FromStr;

use super::error::FileError;

/// Name of the section that has the pairs.
pub(crate) const ABOUT: &str = "about";

/// Prefix of the names of options.
pub(crate) const OPTION: &str = "option.";

/// Encodes pairs.
pub(crate) fn to_bytes<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    let mut count = 0u32;
    for (name, value) in pairs {
        for text in [name, value] {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        count += 1;
    }
    bytes[..4].copy_from_slice(&count.to_le_bytes());
    bytes
}

/// Decoded pairs, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// Decodes pairs. Memory is bounded by the length of `bytes`, not by the lengths stated in
    /// them.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let mut rest = bytes;
        let mut number = || {
            let (number, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            Some(u32::from_le_bytes(*number))
        };
        let cut_off = || FileError::malformed(ABOUT, "it ends within a string");
        let count = number().ok_or_else(cut_off)?;
        let mut text = || {
            let (len, after) = rest.split_first_chunk::<4>()?;
            let (text, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            rest = after;
            Some(std::str::from_utf8(text).map(str::to_owned))
        };
        let mut next = || {
            let text = text().ok_or_else(cut_off)?;
            text.map_err(|_| FileError::malformed(ABOUT, "a string is not UTF-8"))
        };
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((next()?, next()?));
        }
        if !rest.is_empty() {
            return Err(FileError::malformed(ABOUT, "bytes follow its last string"));
        }
        Ok(Self(pairs))
    }

    /// The pairs whose names begin with `prefix`, with the prefix removed.
    pub fn under(&self, prefix: &str) -> Self {
        let under = |(name, value): &(String, String)| {
            Some((name.strip_prefix(prefix)?.to_owned(), value.clone()))
        };
        Self(self.0.iter().filter_map(under).collect())
    }

    /// The value of `name`, or `None` if there is no such pair.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// The value of `name`, parsed by `parse`; `None` if there is no such pair.
    pub fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let refused = || FileError::malformed(ABOUT, format!("{name} is {value:?}"));
        parse(value).map(Some).ok_or_else(refused)
    }

    /// The value of a required `name`, parsed by [`FromStr`].
    pub fn read<T: FromStr>(&self, name: &str) -> Result<T, FileError> {
        self.required(name, |value| value.parse().ok())
    }

    /// The value of `name`, parsed by [`FromStr`]; `None` if there is no such pair.
    pub fn read_if<T: FromStr>(&self, name: &str) -> Result<Option<T>, FileError> {
        self.parsed(name, |value| value.parse().ok())
    }

    /// The value of a required `name`, parsed by `parse`.
    pub fn required<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FileError> {
        let missing = || FileError::malformed(ABOUT, format!("{name} is missing"));
        self.parsed(name, parse)?.ok_or_else(missing)
    }
}
