//! Lists of a request, bounded while they are parsed.
//!
//! A body of 16 MiB can have millions of empty documents or words, which take many times its size in
//! memory. The lists here stop growing at the limit of the request.
//!
//! serde gives a derived `Deserialize` no way to take a limit, so the limits are in a variable of the
//! thread for the time of a parse.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::problem::Problem;

/// Documents and tokens that a request may still have, and what it had too many of.
#[derive(Clone, Copy, Debug)]
struct Budget {
    documents: usize,
    tokens: usize,
    /// Number of documents, if there were too many.
    too_many_documents: Option<usize>,
    too_many_tokens: bool,
}

impl Budget {
    /// Outside of [`parse`], lists have no limits.
    const UNLIMITED: Self = Self {
        documents: usize::MAX,
        tokens: usize::MAX,
        too_many_documents: None,
        too_many_tokens: false,
    };
}

thread_local! {
    static BUDGET: Cell<Budget> = const { Cell::new(Budget::UNLIMITED) };
}

/// Parses JSON whose [`Documents`] and [`Tokens`] are within the limits.
///
/// # Errors
/// [`Problem::Documents`], [`Problem::Tokens`], [`Problem::Syntax`] or [`Problem::Shape`].
pub fn parse<T: DeserializeOwned>(body: &[u8], limits: &LimitArgs) -> Result<T, Problem> {
    let LimitArgs { max_documents, max_tokens, .. } = *limits;
    let (documents, tokens) = (max_documents, max_tokens);
    BUDGET.set(Budget { documents, tokens, ..Budget::UNLIMITED });
    let parsed = serde_json::from_slice(body);
    let Budget { too_many_documents, too_many_tokens, .. } = BUDGET.replace(Budget::UNLIMITED);
    match parsed {
        _ if let Some(found) = too_many_documents => {
            Err(Problem::Documents { found, limit: max_documents })
        }
        _ if too_many_tokens => Err(Problem::Tokens { limit: max_tokens }),
        Ok(parsed) => Ok(parsed),
        Err(error) => Err(Problem::of_body(error)),
    }
}

/// A list of documents.
#[derive(Debug)]
pub struct Documents<T>(pub Vec<T>);

/// A list of words or of their ids.
#[derive(Debug)]
pub struct Tokens<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Documents<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounded = Bounded { left: |budget| &mut budget.documents, item: PhantomData };
        let (items, found) = deserializer.deserialize_seq(bounded)?;
        if found > items.len() {
            BUDGET.set(Budget { too_many_documents: Some(found), ..BUDGET.get() });
        }
        Ok(Self(items))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Tokens<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounded = Bounded { left: |budget| &mut budget.tokens, item: PhantomData };
        let (items, found) = deserializer.deserialize_seq(bounded)?;
        if found > items.len() {
            BUDGET.set(Budget { too_many_tokens: true, ..BUDGET.get() });
        }
        Ok(Self(items))
    }
}

/// Visitor of a list: the items for which there is room, and the number of all.
struct Bounded<T> {
    /// Room in the budget.
    left: fn(&mut Budget) -> &mut usize,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = (Vec<T>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Self { left, .. } = self;
        let mut items = Vec::new();
        while *left(&mut BUDGET.get()) > 0 {
            let Some(item) = list.next_element()? else {
                let found = items.len();
                return Ok((items, found));
            };
            items.push(item);
            // Read again: the lists of a document have taken from the budget too.
            let mut budget = BUDGET.get();
            *left(&mut budget) -= 1;
            BUDGET.set(budget);
        }
        let mut found = items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            found += 1;
        }
        Ok((items, found))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::serve::args::Args;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Request {
        documents: Option<Documents<Request>>,
        ids: Option<Tokens<u32>>,
    }

    fn parsed(body: &str) -> Result<Request, Problem> {
        let line = "serve m.lda --max-documents 2 --max-tokens 4";
        let args = Args::parse_from(line.split(' '));
        parse(body.as_bytes(), &args.limits)
    }

    #[test]
    fn lists_at_their_limits_are_parsed() {
        let request = parsed(r#"{"documents": [{"ids": [1, 2]}, {"ids": [3, 4]}]}"#).unwrap();
        let ids = request.documents.unwrap().0.into_iter().flat_map(|one| one.ids.unwrap().0);
        assert_eq!(ids.collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(parsed(r#"{"ids": [1, 2, 3, 4]}"#).is_ok());
        assert!(parsed("{}").unwrap().documents.is_none());
    }

    #[test]
    fn longer_lists_are_counted_and_not_kept() {
        let many = format!(r#"{{"documents": [{}{{}}]}}"#, "{},".repeat(9));
        assert!(matches!(parsed(&many), Err(Problem::Documents { found: 10, limit: 2 })));
        for many in [
            r#"{"ids": [1, 2, 3, 4, 5]}"#,
            r#"{"documents": [{"ids": [1, 2, 3]}, {"ids": [4, 5]}]}"#,
        ] {
            assert!(matches!(parsed(many), Err(Problem::Tokens { limit: 4 })), "{many}");
        }
        // The budget is that of one request, whatever the last one had.
        assert!(parsed(r#"{"ids": [1, 2, 3, 4]}"#).is_ok());
        assert!(matches!(parsed(r#"{"ids": [1"#), Err(Problem::Syntax(_))));
        assert!(matches!(parsed(r#"{"ids": 1}"#), Err(Problem::Shape(_))));
    }
}
