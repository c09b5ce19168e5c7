//! `lda serve`: serves topics of documents over HTTP, with a model of `lda train --save`.
//!
//! ```text
//! lda serve kos.lda --listen 0.0.0.0:8080
//! curl localhost:8080/infer --json '{"text": "The senate votes on the budget", "top": 2}'
//! {"tokens":3,"unknown":0,"topics":[{"topic":437,"share":0.0066},{"topic":146,"share":0.0057}]}
//! ```
//!
//! Also an example of how to embed inference in a service. Each part is a file:
//!
//! ```text
//! server ── routes ── app ──► queue ──► workers       connections on the left, inference threads on
//!              │       ▲                   │          the right, a bounded queue between them
//!           request   model ◄── reload   topics
//! ```
//!
//! - An asynchronous runtime serves the connections and never computes; one thread per core computes
//!   and never waits for a client. `workers` describes how abandoned requests are cancelled.
//! - Every limit has a status: size, documents and tokens of a body (413), total bytes of bodies and of
//!   answers, length of the queue and time (503), requests per client (429). Documents and tokens are
//!   counted while a body is parsed. Clients that do not read their answers are disconnected, and one
//!   client has at most half of the connections.
//! - `--health-listen` answers health checks and metrics on connections of their own.
//! - A new model is loaded while the current one serves, and then replaces it; the header `x-model` of an
//!   answer is the fingerprint of its model.
//! - An answer depends only on model, method, seed and document, and equals that of `lda infer`; batches,
//!   threads and load do not change it.
//!
//! # Cost
//! CPU time of the process per query of 20 words, with a model of 1,000 topics and 6,906 words, over
//! 16 connections on the same machine (two cores of a virtual AMD EPYC); the process used 10 MB:
//!
//! | | 1 query per request | 32 queries per request |
//! |---|--:|--:|
//! | `--method rt` | 29 µs | 7 µs |
//! | fold-in | 114 µs | 81 µs |
//!
//! `load.lua` measures it on your machine. Above the limits it shows 429 and 503, and no other failure.
//!
//! `openapi.json` describes the routes. The service has neither TLS nor authentication: use a reverse
//! proxy.

mod answer;
mod answers_held;
mod app;
mod args;
mod body;
mod counted;
mod description;
mod leading_words;
mod log;
mod mapped_model;
mod metrics;
mod model;
mod openapi;
mod problem;
mod queue;
mod reload;
mod request;
mod routes;
mod run;
mod signals;
mod topics;
mod whole;
mod work;
mod workers;

use std::process::ExitCode;

pub use args::Args;

/// Runs `lda serve`.
pub fn execute(args: Args) -> ExitCode {
    log::start(args.log, args.log_level);
    match run::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            tracing::error!(%reason, "failed");
            ExitCode::from(reason.status())
        }
    }
}
