//! Options of `lda serve`. Their names and meanings are stable, because deployments use them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum, value_parser};
use lda_examples::connections::Bounds;
use lda_examples::method::MethodArgs;
use lda_examples::parsers::number;
use lda_examples::text::{WordArgs, of_model};
use tracing::level_filters::LevelFilter;

const AFTER_HELP: &str = "\
Examples:
  lda serve news.lda --listen 0.0.0.0:8080            posterior shares, by Gibbs sampling
  lda serve news.lda --method rt --watch 10           fastest; reloads news.lda when it changes
  curl localhost:8080/infer --json '{\"text\": \"Parliament votes on the budget\"}'
  curl 'localhost:8080/topics?terms=5'

Routes: POST /infer, POST /similar, GET /similar, GET /topics, GET /topics/{id}, GET /model,
GET /healthz, GET /readyz, GET /metrics, GET /openapi.json, which describes them.
Signals: HUP reloads the model; TERM and INT finish the requests in flight, then exit.
Exit status: 0 stopped by a signal with every request answered, 1 failure, 2 wrong usage.";

/// Serve topics of documents over HTTP with a trained model
#[derive(Debug, Parser)]
#[command(name = "serve", after_help = AFTER_HELP, mut_args(of_model))]
pub struct Args {
    /// Model written by `lda train --save`
    pub model: PathBuf,
    /// Format of the log, which goes to standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogForm::Json)]
    pub log: LogForm,
    /// Minimum log level: off, error, warn, info, or debug, which logs every request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(
        flatten,
        next_help_heading = "Words of texts [default: as in the training of the model]"
    )]
    pub words: WordArgs,
    #[command(flatten)]
    pub model_file: ModelArgs,
    #[command(flatten)]
    pub connections: ConnectionArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Loading and reloading of the model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Map the model file into memory instead of reading it, for a model that is larger than memory or
    /// shared by processes. The file must then be replaced, as `lda train --save` does, never
    /// overwritten: after that every request is answered with 503, or, if the file is shorter, the process
    /// ends
    #[arg(long)]
    pub map: bool,
    /// Seconds between checks for a changed model file, which is then reloaded [default: only SIGHUP
    /// reloads]
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    pub watch: Option<Duration>,
    /// Number of top words cached per topic, 4 bytes each; upper limit for `/topics?terms=`
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_terms: usize,
}

/// Connections of the service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Address and port to listen on; port 0 chooses a free port, which is logged
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// Address and port for GET /healthz, /readyz and /metrics alone, so that clients cannot keep health
    /// checks from connecting [default: with the other routes only]
    #[arg(long, value_name = "ADDR")]
    pub health_listen: Option<String>,
    /// Number of threads that read and write connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1024))]
    pub io_threads: u16,
    /// Maximum number of open connections; more wait
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive)]
    pub max_connections: usize,
    /// Maximum number of open connections per client address; more are closed [default: half of
    /// --max-connections]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub connections_per_client: Option<usize>,
    /// Seconds per request: 408 if the body has not arrived by then, 503 if the answer is not ready. A
    /// client that has not read the whole answer as many seconds later is disconnected. Fold-in of a
    /// million tokens with 1,000 topics took half a minute
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = some_seconds)]
    pub timeout: Duration,
    /// Seconds until the head of a request has arrived, on a new connection or after the last answer,
    /// and until a client has read some of its answer; it is then disconnected
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = some_seconds)]
    pub idle: Duration,
}

/// Limits of the service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Number of inference threads; does not change answers [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Maximum number of queued requests; more are rejected with 503
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = positive)]
    pub queue: usize,
    /// Maximum number of requests in flight per client address; more are rejected with 429. Behind a
    /// proxy all clients have one address [default: --threads and half of --queue]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub per_client: Option<usize>,
    /// Maximum size of a request body, in bytes; a larger one is rejected with 413
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20,
        value_parser = value_parser!(u32).range(1..))]
    pub max_body: u32,
    /// Maximum total size of the request bodies in memory, in bytes; more is rejected with 503
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, value_parser = positive)]
    pub max_buffered: usize,
    /// Maximum total size of the answers that clients have not read, in bytes; more is rejected with 503
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, value_parser = positive)]
    pub max_answers: usize,
    /// Maximum number of documents per request; more are rejected with 413
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive)]
    pub max_documents: usize,
    /// Maximum number of tokens per request; more are rejected with 413
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = positive)]
    pub max_tokens: usize,
    /// Seconds to accept connections after a signal to stop; /readyz returns 503 during that time
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub drain: Duration,
    /// Seconds to finish the requests in flight after --drain
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub grace: Duration,
}

/// Log formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// One JSON object per line
    Json,
    /// Plain text
    Text,
}

impl ConnectionArgs {
    /// Bounds of the connections of clients.
    pub fn bounds(&self) -> Bounds {
        let connections = self.max_connections;
        Bounds {
            connections,
            per_client: self.connections_per_client.unwrap_or(connections.div_ceil(2)),
            idle: self.idle,
            timeout: self.timeout,
        }
    }
}

impl LimitArgs {
    /// Maximum number of requests in flight per client.
    pub fn requests_per_client(&self) -> usize {
        self.per_client.unwrap_or(self.num_threads() + self.queue.div_ceil(2))
    }

    /// Number of inference threads.
    pub fn num_threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(text)?)
        .map_err(|_| "give a number of seconds, not below 0".to_owned())
}

fn some_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("give a number of seconds above 0".to_owned()),
        some => Ok(some),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a whole number above 0".to_owned()),
        // Largest count of a semaphore.
        Ok(value) => Ok(usize::min(value, tokio::sync::Semaphore::MAX_PERMITS)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn numbers_are_checked() {
        for line in [
            "--timeout -1",
            "--timeout NaN",
            "--timeout inf",
            "--queue 0",
            "--watch x",
            "--watch 0",
        ] {
            let words = ["serve", "m.lda"].into_iter().chain(line.split(' '));
            assert!(Args::try_parse_from(words).is_err(), "{line}");
        }
        let args = Args::try_parse_from(["serve", "m.lda", "--grace", "0.5"]).unwrap();
        assert_eq!(args.limits.grace, Duration::from_millis(500));
    }
}
