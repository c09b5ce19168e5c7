//! Error responses: RFC 9457, `application/problem+json`.
//!
//! `code` is for programs and stable; `detail` is for people and may change. Temporary errors have
//! `Retry-After`: 429 if the client has too many requests in flight, 503 if the service has.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use thiserror::Error;

/// Media type of error responses.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Reasons for an error response.
#[derive(Debug, Error)]
pub enum Problem {
    #[error("the body is not JSON: {0}")]
    Syntax(serde_json::Error),
    #[error("the body did not arrive: {0}")]
    Body(axum::Error),
    #[error("invalid request: {0}")]
    Shape(serde_json::Error),
    #[error("{0}")]
    Request(String),
    #[error("invalid query: {0}")]
    Query(String),
    #[error("no such route: GET /openapi.json lists the routes")]
    Route,
    #[error("this route does not support the method: GET /openapi.json lists the methods")]
    Method,
    #[error("no topic {asked:?}: topics of this model are 0 to {last}")]
    Topic { asked: String, last: usize },
    #[error("the body did not arrive in time")]
    BodyTime,
    #[error("the body has more than {limit} bytes: send a smaller one")]
    BodyLength { limit: usize },
    #[error("{found} documents in the request, at most {limit} are allowed: send fewer")]
    Documents { found: usize, limit: usize },
    #[error("more than {limit} tokens in the request: send fewer")]
    Tokens { limit: usize },
    #[error("{limit} requests from this address are already in flight: wait for one of them")]
    Client { limit: usize },
    #[error("request bodies in flight already take {limit} bytes: try again")]
    Buffers { limit: usize },
    #[error(
        "answers that clients have not read take {limit} bytes, or this one would: try again, or ask for less"
    )]
    Answers { limit: usize },
    #[error("{limit} requests are already queued: try again")]
    Queue { limit: usize },
    #[error("the answer was not ready in time: try again, or send a smaller request")]
    Time,
    #[error("the model is being loaded: try again")]
    Loading,
    #[error(
        "the model file was changed in place, so that the model is lost: replace the file, and reload"
    )]
    Overwritten,
    #[error("the service is shutting down: use another instance")]
    Ending,
    #[error("internal error: see the log of the service")]
    Internal,
}

/// Body of an error response.
#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    code: &'static str,
    detail: String,
}

impl Problem {
    /// Maps an error of serde_json about a body.
    pub fn of_body(error: serde_json::Error) -> Self {
        if error.is_data() { Self::Shape(error) } else { Self::Syntax(error) }
    }

    fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Syntax(_) => (StatusCode::BAD_REQUEST, "no-json"),
            Self::Body(_) => (StatusCode::BAD_REQUEST, "broken-body"),
            Self::Shape(_) | Self::Request(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid-request")
            }
            Self::Query(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-query"),
            Self::Route => (StatusCode::NOT_FOUND, "no-route"),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "no-method"),
            Self::Topic { .. } => (StatusCode::NOT_FOUND, "no-topic"),
            Self::BodyTime => (StatusCode::REQUEST_TIMEOUT, "slow-body"),
            Self::BodyLength { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "long-body"),
            Self::Documents { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "many-documents"),
            Self::Tokens { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "many-tokens"),
            Self::Client { .. } => (StatusCode::TOO_MANY_REQUESTS, "busy-client"),
            Self::Buffers { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full-buffers"),
            Self::Answers { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full-answers"),
            Self::Overwritten => (StatusCode::SERVICE_UNAVAILABLE, "model-overwritten"),
            Self::Queue { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full-queue"),
            Self::Time => (StatusCode::SERVICE_UNAVAILABLE, "out-of-time"),
            Self::Loading => (StatusCode::SERVICE_UNAVAILABLE, "loading"),
            Self::Ending => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code) = self.kind();
        let body = Body {
            r#type: "about:blank",
            title: status.canonical_reason().expect("every status above has a reason phrase"),
            status: status.as_u16(),
            code,
            detail: self.to_string(),
        };
        let body = serde_json::to_vec(&body).expect("plain data serializes to JSON");
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
