//! `lda serve`: topics of documents over HTTP, by a model that `train --save` left.
//!
//! ```text
//! lda serve kos.lda --listen 0.0.0.0:8080
//! curl localhost:8080/infer --json '{"text": "The senate votes on the budget", "top": 2}'
//! {"tokens":3,"unknown":0,"topics":[{"topic":437,"share":0.0066},{"topic":146,"share":0.0057}]}
//! ```
//!
//! An example of how to embed inference in a service, to be copied. Of its parts each is a file:
//!
//! ```text
//! server ── routes ── app ──► queue ──► workers       connections on one side, threads that compute on
//!              │       ▲                   │          the other, a queue with a last place between
//!           request   model ◄── reload   topics
//! ```
//!
//! - Connections are served by an asynchronous runtime that never computes; a thread a core computes and
//!   never waits for a client. `workers` says what becomes of a request that nobody waits for any more.
//! - Whoever meets a bound is told so: length, documents and tokens of a body (413), bytes of all bodies,
//!   places in the queue, time (503), requests a client (429). A body is parsed before its documents are
//!   counted, which takes up to some 25 times its length, a thread; answers have no bound of their own, but
//!   those that follow from a request's (`top` makes them short).
//! - A model is loaded beside the one in use and takes its place; answers say which one they are of
//!   (`x-model`, the model's fingerprint).
//! - What an answer says follows from model, method, seed and document alone, and is what the program
//!   `infer` says: batches, threads and load do not matter.
//!
//! # Cost
//! CPU of the whole process for a query of 20 words, by a model of 1,000 topics and 6,906 words, over
//! 16 connections on the same machine (two cores of a virtual AMD EPYC); the process held 10 MB:
//!
//! | | one a request | 32 a request |
//! |---|--:|--:|
//! | `--method rt` | 29 µs | 7 µs |
//! | fold-in | 114 µs | 81 µs |
//!
//! `load.lua` measures yours. Above the limits it shows 429 and 503, and no other failure.
//!
//! `openapi.json` describes the routes. Neither TLS nor authentication is here: that is for the proxy in
//! front, and so are clients that read answers slowly.

mod answer;
mod app;
mod args;
mod body;
mod clients;
mod log;
mod metrics;
mod model;
mod problem;
mod queue;
mod reload;
mod request;
mod routes;
mod run;
mod server;
mod signals;
mod topics;
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
