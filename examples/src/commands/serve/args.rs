//! The command line. Names and meanings are a contract: whoever deploys the program relies on them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum, value_parser};
use lda_core::corpus::read::TextOptions;
use lda_examples::method::MethodArgs;
use lda_examples::parsers::number;
use lda_examples::reading::stop_words;
use tracing::level_filters::LevelFilter;

const AFTER_HELP: &str = "\
Examples:
  lda serve news.lda --listen 0.0.0.0:8080            the posterior's shares, by Gibbs sampling
  lda serve news.lda --method rt --watch 10           quickest; a new news.lda is taken up by itself
  curl localhost:8080/infer --json '{\"text\": \"Parliament votes on the budget\"}'
  curl 'localhost:8080/topics?terms=5'

Routes: POST /infer, POST /similar, GET /similar, GET /topics, GET /topics/{id}, GET /healthz,
GET /readyz, GET /metrics, GET /openapi.json, which describes them.
Signals: HUP loads the model anew; TERM and INT let requests under way finish, then end.
Exit status: 0 ended by a signal with every request answered, 1 failed, 2 wrong usage.";

/// Answers over HTTP which topics documents have, by a trained model.
#[derive(Debug, Parser)]
#[command(name = "serve", after_help = AFTER_HELP)]
pub struct Args {
    /// Model that `train --save` has written
    pub model: PathBuf,
    /// Address and port; port 0 takes a free one, which the log names
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// Form of the log, on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value_t = LogForm::Json)]
    pub log: LogForm,
    /// Least weight of what is logged: off, error, warn, info, or debug, which has a line a request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,

    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub words: WordArgs,
    #[command(flatten)]
    pub model_file: ModelArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// How the model is held and kept up to date.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Leave the model in its file, for one that is larger than memory or shared by processes. Whoever
    /// writes a new one must then replace the file, as `train --save` does, and never write into it
    #[arg(long)]
    pub map: bool,
    /// Look this often whether the file is another, and load it then; without it only SIGHUP does
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    pub watch: Option<Duration>,
    /// Words of a topic that are kept at hand, and the most that /topics can be asked for; 4 bytes each
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_terms: usize,
}

/// What is a word of a text. Give what the model's corpus was read with.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Words of texts, as the model's corpus was read")]
pub struct WordArgs {
    /// Words to leave out: `english`, `none`, or a file with one word a line
    #[arg(long, value_name = "LIST", default_value = "english")]
    stop_words: PathBuf,
    /// Leave out words of fewer characters
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_length: u32,
    /// Leave out words of more characters
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_length: u32,
    /// Split words at underscores and where the case changes
    #[arg(long)]
    split_identifiers: bool,
    /// Keep upper case
    #[arg(long)]
    keep_case: bool,
    /// Keep numbers
    #[arg(long)]
    numbers: bool,
}

/// What the service takes on at most.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Threads that infer; all cores unless given. Never changes an answer
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Threads that read and write connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1024))]
    pub io_threads: u16,
    /// Requests that wait for a thread; one more is refused with 503
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = positive)]
    pub queue: usize,
    /// Requests of one client's address under way; one more is refused with 429. Unless given there is
    /// no such limit: behind a proxy all clients have one address
    #[arg(long, value_name = "N", value_parser = positive)]
    pub per_client: Option<usize>,
    /// Connections held; further ones wait
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive)]
    pub max_connections: usize,
    /// Bytes of a request's body; more is refused with 413
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20,
        value_parser = value_parser!(u32).range(1..))]
    pub max_body: u32,
    /// Bytes of all bodies held at a time; more is refused with 503
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, value_parser = positive)]
    pub max_buffered: usize,
    /// Documents of a request; more are refused with 413
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive)]
    pub max_documents: usize,
    /// Tokens of a request; more are refused with 413
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = positive)]
    pub max_tokens: usize,
    /// Time for a request: 408 if its body has not come by then, 503 if its answer is not ready. A
    /// million tokens took half a minute by fold-in with 1,000 topics
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = some_seconds)]
    pub timeout: Duration,
    /// Time for the head of a request, on a new connection or since the last answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = some_seconds)]
    pub idle: Duration,
    /// Time between a signal to end and the last new connection; /readyz says 503 meanwhile
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub drain: Duration,
    /// Time that requests under way have after that
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub grace: Duration,
}

/// Forms of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A JSON object a line
    Json,
    /// Text, for a person
    Text,
}

impl WordArgs {
    /// As the readers of text have them.
    pub fn options(&self) -> TextOptions {
        let mut options = TextOptions::default();
        options.stop_words = stop_words(&self.stop_words);
        options.min_length = self.min_length;
        options.max_length = self.max_length;
        options.split_identifiers = self.split_identifiers;
        options.lowercase = !self.keep_case;
        options.numbers = self.numbers;
        options
    }
}

impl LimitArgs {
    /// Threads that infer.
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
        // What a semaphore counts to.
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
    fn text_is_read_as_by_default() {
        let args = Args::try_parse_from(["serve", "m.lda"]).unwrap();
        assert_eq!(args.words.options(), TextOptions::default());
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
