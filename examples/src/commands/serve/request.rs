//! What clients send: documents, as text, ids or words.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use lda_core::corpus::Vocabulary;
use lda_core::corpus::read::Tokenizer;
use lda_core::model::TopicModel;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::problem::Problem;

/// The id of a word that no model has.
const UNKNOWN: u32 = u32::MAX;

/// Body of `POST /infer`: one document, or `documents`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferRequest {
    text: Option<String>,
    ids: Option<Vec<u32>>,
    words: Option<Vec<String>>,
    documents: Option<Vec<Object<Document>>>,
    /// Topics an answer has at most.
    pub top: Option<NonZeroU32>,
}

/// Body of `POST /similar`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimilarRequest {
    document: Object<Document>,
    documents: Vec<Object<Document>>,
    pub limit: Option<NonZeroU32>,
}

/// A document, in one of three forms.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    /// Cut into words as the command line says.
    text: Option<String>,
    /// The model's ids of the tokens.
    ids: Option<Vec<u32>>,
    /// Tokens, taken as they are.
    words: Option<Vec<String>>,
}

/// What a JSON object says. By itself serde also takes a list for a struct, its fields by place.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfObject<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(OfObject(PhantomData)).map(Self)
    }
}

/// What a body says.
///
/// # Errors
/// [`Problem::Syntax`] or [`Problem::Shape`].
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map(|Object(body)| body).map_err(Problem::of_body)
}

impl InferRequest {
    /// The documents, and whether they are a batch.
    ///
    /// # Errors
    /// [`Problem::Request`] unless there is just one thing to infer.
    pub fn documents(&mut self) -> Result<(Vec<Document>, bool), Problem> {
        let Self { text, ids, words, documents, .. } = self;
        let one = Document { text: text.take(), ids: ids.take(), words: words.take() };
        match (one.forms(), documents.take()) {
            (1, None) => Ok((vec![one], false)),
            (0, Some(documents)) => Ok((plain(documents).collect(), true)),
            _ => Err(Problem::Request(
                "give one of `text`, `ids`, `words` and `documents`".to_owned(),
            )),
        }
    }
}

impl SimilarRequest {
    /// The one asked about, then the others.
    pub fn documents(self) -> Vec<Document> {
        std::iter::once(self.document.0).chain(plain(self.documents)).collect()
    }
}

fn plain(documents: Vec<Object<Document>>) -> impl Iterator<Item = Document> {
    documents.into_iter().map(|Object(document)| document)
}

impl Document {
    fn forms(&self) -> u32 {
        [self.text.is_some(), self.ids.is_some(), self.words.is_some()].map(u32::from).iter().sum()
    }
}

/// Brings documents to a model's ids, within the limits of one request.
#[derive(Debug)]
pub struct Resolver<'a> {
    model: &'a TopicModel,
    tokenizer: &'a mut Tokenizer,
    limit: usize,
    left: usize,
}

impl<'a> Resolver<'a> {
    /// For a request of so many documents.
    ///
    /// # Errors
    /// [`Problem::Documents`], if they are too many.
    pub fn new(
        model: &'a TopicModel,
        tokenizer: &'a mut Tokenizer,
        limits: &LimitArgs,
        documents: usize,
    ) -> Result<Self, Problem> {
        if documents > limits.max_documents {
            return Err(Problem::Documents { found: documents, limit: limits.max_documents });
        }
        Ok(Self { model, tokenizer, limit: limits.max_tokens, left: limits.max_tokens })
    }

    /// Ids of a document's tokens, in ascending order as a corpus has them, so that an answer does not
    /// depend on the order of words. Words that the model does not have get an id that it does not
    /// have either, and are counted by it.
    ///
    /// # Errors
    /// [`Problem::Request`] for a document of no form or of several, and of words where the model has
    /// no names of them; [`Problem::Tokens`] if the request has too many.
    pub fn resolve(&mut self, document: Document) -> Result<Vec<u32>, Problem> {
        if document.forms() != 1 {
            return Err(Problem::Request(
                "give each document one of `text`, `ids` and `words`".to_owned(),
            ));
        }
        let mut ids = match document {
            Document { ids: Some(ids), .. } => ids,
            Document { words: Some(words), .. } => {
                let names = names(self.model)?;
                words.iter().map(|word| names.id(word).unwrap_or(UNKNOWN)).collect()
            }
            Document { text, .. } => {
                let names = names(self.model)?;
                let mut ids = Vec::new();
                self.tokenizer.for_each_word(text.as_deref().unwrap_or_default(), |word| {
                    // What is no word here is no word of the model's corpus, and not unknown.
                    ids.extend(word.map(|word| names.id(word).unwrap_or(UNKNOWN)));
                });
                ids
            }
        };
        let left = self.left.checked_sub(ids.len());
        self.left = left.ok_or(Problem::Tokens { limit: self.limit })?;
        ids.sort_unstable();
        Ok(ids)
    }
}

fn names(model: &TopicModel) -> Result<&Vocabulary, Problem> {
    model.vocabulary().ok_or_else(|| {
        Problem::Request("the model has no names of its words: give `ids`".to_owned())
    })
}
