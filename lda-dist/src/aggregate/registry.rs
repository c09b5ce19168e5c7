//! The aggregates of a run by name, and their values.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::{
    Aggregate, AggregateRequest, LogJoint, NonZeros, TopWords, TopicTotals, WordHistogram,
};
use crate::spec::ModelSpec;

type Constructor = dyn Fn(&ModelSpec, AggregateRequest) -> Option<Box<dyn Aggregate>> + Send + Sync;

/// The aggregates of a run, in the order in which servers encode them: [`LogJoint`], [`NonZeros`],
/// [`TopWords`], [`WordHistogram`], [`TopicTotals`], then those that the program
/// [registers](Self::register).
///
/// All nodes need the same names in the same order, which are part of
/// [`Setup::fingerprint`](crate::cluster::Setup::fingerprint). The constructors cannot be compared:
/// change the name when the encoding or the meaning changes, as in `entropy-2`.
#[derive(Clone)]
pub struct Registry {
    entries: Arc<[Entry]>,
}

#[derive(Clone)]
struct Entry {
    name: Arc<str>,
    new: Arc<Constructor>,
}

/// Error of a name that is registered already.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the aggregate {name:?} is registered already: choose another name")]
#[non_exhaustive]
pub struct DuplicateName {
    /// The name.
    pub name: String,
}

impl Default for Registry {
    fn default() -> Self {
        let entry = |name: &str, new: Arc<Constructor>| Entry { name: name.into(), new };
        let entries = [
            entry(
                LogJoint::NAME,
                Arc::new(|spec, request| {
                    request.evaluation.then(|| Box::new(LogJoint::new(spec.beta())) as _)
                }),
            ),
            entry(
                NonZeros::NAME,
                Arc::new(|_, request| {
                    request.evaluation.then(|| Box::new(NonZeros::default()) as _)
                }),
            ),
            entry(
                TopWords::NAME,
                Arc::new(|spec, request| {
                    let new = || TopWords::new(spec.topics(), spec.words(), request.top_words);
                    (request.top_words > 0).then(|| Box::new(new()) as _)
                }),
            ),
            entry(
                WordHistogram::NAME,
                Arc::new(|_, request| {
                    request.word_histogram.then(|| Box::new(WordHistogram::default()) as _)
                }),
            ),
            entry(
                TopicTotals::NAME,
                Arc::new(|spec, request| {
                    request.totals.then(|| Box::new(TopicTotals::new(spec.topics())) as _)
                }),
            ),
        ];
        Self { entries: entries.into() }
    }
}

impl Registry {
    /// Number of built-in aggregates.
    const BUILT_IN: usize = 5;

    /// Adds an aggregate, which is computed in every evaluated epoch. `new` makes an empty one, on
    /// servers and on the master.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn register<A: Aggregate>(
        self,
        name: &str,
        new: impl Fn(&ModelSpec) -> A + Send + Sync + 'static,
    ) -> Result<Self, DuplicateName> {
        if self.names().any(|known| known == name) {
            return Err(DuplicateName { name: name.to_owned() });
        }
        let new: Arc<Constructor> = Arc::new(move |spec, request| {
            request.evaluation.then(|| Box::new(new(spec)) as Box<dyn Aggregate>)
        });
        let entry = Entry { name: name.into(), new };
        Ok(Self { entries: self.entries.iter().cloned().chain([entry]).collect() })
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.name)
    }

    /// Names that the program has registered, in order.
    pub fn registered(&self) -> impl Iterator<Item = &str> {
        self.names().skip(Self::BUILT_IN)
    }

    /// Empty aggregates for a request.
    pub fn aggregates(&self, request: AggregateRequest, spec: &ModelSpec) -> Aggregates {
        let value = |entry: &Entry| Some((Arc::clone(&entry.name), (entry.new)(spec, request)?));
        Aggregates { values: self.entries.iter().filter_map(value).collect() }
    }
}

/// Registries are equal if they have the same names.
impl PartialEq for Registry {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Values of the requested aggregates.
#[derive(Debug, Default)]
pub struct Aggregates {
    values: Vec<(Arc<str>, Box<dyn Aggregate>)>,
}

impl Aggregates {
    /// Empty built-in aggregates for a request.
    pub fn new(request: AggregateRequest, spec: &ModelSpec) -> Self {
        Registry::default().aggregates(request, spec)
    }

    /// The aggregate with this name, if it was requested and has this type.
    pub fn get<A: Aggregate>(&self, name: &str) -> Option<&A> {
        let (_, value) = self.values.iter().find(|(known, _)| **known == *name)?;
        (&**value as &dyn Any).downcast_ref()
    }

    /// Whether nothing is requested, so that the rows need not be visited.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// As [`merge`](Aggregate::merge), with the name of the aggregate whose bytes are malformed.
    ///
    /// # Errors
    /// The name.
    pub fn try_merge(&mut self, from: &mut &[u8]) -> Result<(), Arc<str>> {
        self.values
            .iter_mut()
            .try_for_each(|(name, value)| value.merge(from).ok_or_else(|| Arc::clone(name)))
    }
}

/// All values together, encoded in the order of the registry.
impl Aggregate for Aggregates {
    fn add_row(&mut self, slice: u16, word: u32, row: &[(u32, u32)]) {
        self.values.iter_mut().for_each(|(_, value)| value.add_row(slice, word, row));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.values.iter().for_each(|(_, value)| value.encode(to));
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        self.try_merge(from).ok()
    }
}

/// Values are equal if they have the same names and the same encoding.
impl PartialEq for Aggregates {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |aggregates: &Self| {
            let mut bytes = Vec::new();
            aggregates.encode(&mut bytes);
            bytes
        };
        let names = |aggregates: &Self| -> Vec<Arc<str>> {
            aggregates.values.iter().map(|(name, _)| Arc::clone(name)).collect()
        };
        names(self) == names(other) && bytes(self) == bytes(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::take;

    /// Tokens of a word.
    #[derive(Debug)]
    struct Tokens {
        word: u32,
        tokens: u64,
    }

    impl Aggregate for Tokens {
        fn add_row(&mut self, _: u16, word: u32, row: &[(u32, u32)]) {
            let tokens = row.iter().map(|entry| u64::from(entry.1)).sum::<u64>();
            self.tokens += if word == self.word { tokens } else { 0 };
        }

        fn encode(&self, to: &mut Vec<u8>) {
            to.extend(self.tokens.to_le_bytes());
        }

        fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
            self.tokens += u64::from_le_bytes(take(from)?);
            Some(())
        }
    }

    fn registry() -> Registry {
        let of = |word| move |_: &ModelSpec| Tokens { word, tokens: 0 };
        Registry::default().register("first", of(0)).unwrap().register("second", of(1)).unwrap()
    }

    #[test]
    fn registered_aggregates_are_computed_with_the_built_in_ones() {
        let spec = ModelSpec::builder(3, 5).build().unwrap();
        let request = AggregateRequest { evaluation: true, ..AggregateRequest::default() };
        let mut all = registry().aggregates(request, &spec);
        for rows in [[(0, 2), (1, 7)], [(0, 3), (2, 1)]] {
            let mut part = registry().aggregates(request, &spec);
            rows.iter().for_each(|&(word, tokens)| part.add_row(word as u16, word, &[(2, tokens)]));
            let mut bytes = Vec::new();
            part.encode(&mut bytes);
            // Built-in aggregates are encoded the same with and without others.
            let mut alone = Aggregates::new(request, &spec);
            rows.iter()
                .for_each(|&(word, tokens)| alone.add_row(word as u16, word, &[(2, tokens)]));
            let mut expected = Vec::new();
            alone.encode(&mut expected);
            assert_eq!(bytes[..expected.len()], expected);
            assert_eq!(bytes.len(), expected.len() + 16);
            // Slice 0 twice is an error of the log joint, so each part is merged alone.
            let mut one = registry().aggregates(request, &spec);
            assert_eq!(one.merge(&mut &bytes[..]), Some(()));
            assert_eq!(one, part);
            let mut rest = &bytes[expected.len()..];
            // After the log joint and the non-zeros.
            for (_, value) in &mut all.values[2..] {
                value.merge(&mut rest).unwrap();
            }
        }
        assert_eq!(all.get::<Tokens>("first").unwrap().tokens, 5);
        assert_eq!(all.get::<Tokens>("second").unwrap().tokens, 7);
        assert!(all.get::<Tokens>("third").is_none() && all.get::<NonZeros>("first").is_none());
        let nothing = registry().aggregates(AggregateRequest::default(), &spec);
        assert!(nothing.is_empty());
    }

    #[test]
    fn an_error_names_the_aggregate() {
        let spec = ModelSpec::builder(3, 5).build().unwrap();
        let request = AggregateRequest { evaluation: true, ..AggregateRequest::default() };
        let mut bytes = Vec::new();
        registry().aggregates(request, &spec).encode(&mut bytes);
        for (missing, name) in [(1, "second"), (9, "first"), (17, NonZeros::NAME)] {
            let mut found = registry().aggregates(request, &spec);
            let error = found.try_merge(&mut &bytes[..bytes.len() - missing]).unwrap_err();
            assert_eq!(&*error, name);
        }
    }

    #[test]
    fn a_name_is_registered_once() {
        let of = |_: &ModelSpec| Tokens { word: 0, tokens: 0 };
        for name in ["first", LogJoint::NAME] {
            let error = registry().register(name, of).unwrap_err();
            assert_eq!(error, DuplicateName { name: name.to_owned() });
        }
        assert!(registry().registered().eq(["first", "second"]));
        assert!(registry() == registry() && registry() != Registry::default());
    }
}
