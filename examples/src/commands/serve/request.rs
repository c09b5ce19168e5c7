//! JSON requests: documents as text, word ids or words.

use std::fmt;
use std::marker::PhantomData;

use lda_core::corpus::Vocabulary;
use lda_core::corpus::read::Tokenizer;
use lda_core::model::TopicModel;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::counted::{self, Documents, Tokens};
use crate::commands::serve::problem::Problem;
use crate::commands::serve::whole::{Positive, Whole};

/// Id of unknown words, which no model has.
const UNKNOWN: u32 = u32::MAX;

/// Body of `POST /infer`: one document, or `documents`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferRequest {
    text: Option<String>,
    ids: Option<Tokens<Whole>>,
    words: Option<Tokens<String>>,
    documents: Option<Documents<Object<Document>>>,
    /// Maximum number of topics per answer.
    pub top: Option<Positive>,
}

/// Body of `POST /similar`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimilarRequest {
    document: Object<Document>,
    documents: Documents<Object<Document>>,
    pub limit: Option<Positive>,
}

/// A document; exactly one field is set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    /// Text, which is cut into words as in the training of the model.
    text: Option<String>,
    /// Word ids of the model.
    ids: Option<Tokens<Whole>>,
    /// Words, which are looked up as they are.
    words: Option<Tokens<String>>,
}

/// Accepts only a JSON object for `T`; serde alone also accepts an array, with fields by position.
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

/// Parses a JSON body.
///
/// # Errors
/// As [`counted::parse`].
pub fn parse<T: DeserializeOwned>(body: &[u8], limits: &LimitArgs) -> Result<T, Problem> {
    counted::parse(body, limits).map(|Object(body)| body)
}

impl InferRequest {
    /// The documents, and whether they are a batch.
    ///
    /// # Errors
    /// [`Problem::Request`] unless exactly one of the fields is set.
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
    /// The query document, then the others.
    pub fn documents(self) -> Vec<Document> {
        std::iter::once(self.document.0).chain(plain(self.documents)).collect()
    }
}

fn plain(documents: Documents<Object<Document>>) -> impl Iterator<Item = Document> {
    documents.0.into_iter().map(|Object(document)| document)
}

impl Document {
    fn forms(&self) -> u32 {
        [self.text.is_some(), self.ids.is_some(), self.words.is_some()].map(u32::from).iter().sum()
    }
}

/// Converts documents to word ids of a model, within the limits of one request.
#[derive(Debug)]
pub struct Resolver<'a> {
    model: &'a TopicModel,
    tokenizer: &'a mut Tokenizer,
    limit: usize,
    left: usize,
}

impl<'a> Resolver<'a> {
    /// Resolver for a request of `documents` documents.
    ///
    /// # Errors
    /// [`Problem::Documents`], if there are too many.
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

    /// Word ids of a document's tokens, in ascending order as in a corpus, so that an answer does not
    /// depend on the word order. Unknown words get an id that the model does not have either, and are
    /// counted as unknown by the inference.
    ///
    /// # Errors
    /// [`Problem::Request`] if not exactly one field is set, or if the model has no vocabulary for text
    /// or words; [`Problem::Tokens`] if the request has too many.
    pub fn resolve(&mut self, document: Document) -> Result<Vec<u32>, Problem> {
        if document.forms() != 1 {
            return Err(Problem::Request(
                "give each document one of `text`, `ids` and `words`".to_owned(),
            ));
        }
        let mut ids = match document {
            Document { ids: Some(Tokens(ids)), .. } => {
                ids.into_iter().map(|Whole(id)| id).collect()
            }
            Document { words: Some(Tokens(words)), .. } => {
                let names = names(self.model)?;
                words.iter().map(|word| names.id(word).unwrap_or(UNKNOWN)).collect()
            }
            Document { text, .. } => {
                let names = names(self.model)?;
                let mut ids = Vec::new();
                self.tokenizer.for_each_word(text.as_deref().unwrap_or_default(), |word| {
                    // A token that the tokenizer leaves out was left out in training too: it does
                    // not count as unknown.
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
    model
        .vocabulary()
        .ok_or_else(|| Problem::Request("the model has no vocabulary: give `ids`".to_owned()))
}
