//! Two programs that push over gRPC, to test pushes while machines and connections fail.
//!
//! ```text
//! pushes serve LISTEN JOURNAL       writes each push to the journal, then answers it
//! pushes push SERVER SECONDS        makes pushes for this time and prints how each has ended
//! ```
//!
//! The journal has a line for each push: the incarnation that received it, and its number. The
//! other program prints lines of three words: milliseconds since its start, the number, and the
//! outcome. `tests/namespaces.rs` runs the two in network namespaces and breaks the connection
//! between them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "output is the purpose of this program"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, process};

use lda_transport::grpc::{Grpc, GrpcOptions, Peer};
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestId, RequestKind,
};
use lda_transport::{NodeId, Time, Transport};

/// Deadline of a push: longer than any outage of the test.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of pushes in flight.
const OPEN: usize = 32;
/// Longest wait before the time to push is checked again.
const POLL: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", listen, journal] => serve(listen, journal),
        ["push", server, seconds] => push(server, Duration::from_secs_f64(seconds.parse()?)),
        _ => {
            eprintln!("usage: pushes serve LISTEN JOURNAL\n       pushes push SERVER SECONDS");
            process::exit(2)
        }
    }
}

/// Returns a configuration with the time of day as incarnation, so that each start has a larger
/// one.
fn config() -> Result<Config, Box<dyn Error>> {
    let incarnation = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    Ok(Config::new(Identity { incarnation, role: 0, run: 1, configuration: 1 }))
}

fn options() -> GrpcOptions {
    let mut options = GrpcOptions::default();
    // An example for a network of one's own. Give others certificates.
    options.insecure = true;
    // Reconnects soon after an outage.
    options.max_backoff = Duration::from_millis(500);
    options
}

/// Writes each push to the journal before it answers.
struct Server {
    incarnation: u64,
    journal: File,
}

impl Program for Server {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        let Action::Request { reply_to, body, .. } = action else { return };
        let line = format!("{} {}\n", self.incarnation, String::from_utf8_lossy(&body));
        match self.journal.write_all(line.as_bytes()) {
            Ok(()) => cx.reply(reply_to, MessageBuf::new()),
            Err(error) => cx.reject(reply_to, error.to_string().as_bytes().into()),
        };
    }
}

fn serve(listen: &str, journal: &str) -> Result<(), Box<dyn Error>> {
    let mut options = options();
    options.listen = Some(listen.to_owned());
    let config = config()?;
    let incarnation = config.identity.incarnation;
    let journal = OpenOptions::new().create(true).append(true).open(journal)?;
    let mut driver = Driver::new(Grpc::start(NodeId(0), options)?, config);
    let mut server = Server { incarnation, journal };
    println!("serving");
    loop {
        driver.step(&mut server, Time::NEVER)?;
    }
}

/// Prints how each push has ended, as soon as it has.
struct Client {
    start: Instant,
    open: BTreeMap<RequestId, u64>,
}

impl Program for Client {
    fn act(&mut self, action: Action, _: &mut Context<'_>) {
        let Action::Completed { request, outcome } = action else { return };
        let Some(number) = self.open.remove(&request) else { return };
        let millis = self.start.elapsed().as_millis();
        match outcome {
            Outcome::Done(_) => println!("{millis} {number} done"),
            Outcome::Rejected(_) => println!("{millis} {number} rejected"),
            Outcome::Unknown { sent: true, reason } => {
                println!("{millis} {number} unknown:{reason:?}")
            }
            Outcome::Unknown { reason, .. } => println!("{millis} {number} unsent:{reason:?}"),
        }
    }
}

fn push(server: &str, time: Duration) -> Result<(), Box<dyn Error>> {
    let mut options = options();
    options.listen = None;
    options.peers.insert(NodeId(0), Peer::at(server.to_owned()));
    let mut driver = Driver::new(Grpc::start(NodeId(1), options)?, config()?);
    let mut client = Client { start: Instant::now(), open: BTreeMap::new() };
    let mut next = 0_u64;
    while client.start.elapsed() < time || !client.open.is_empty() {
        while client.open.len() < OPEN && client.start.elapsed() < time {
            let message = next.to_string().as_bytes().into();
            let mut cx = driver.context();
            let request = cx.request(NodeId(0), RequestKind::Push, message, PATIENCE)?;
            client.open.insert(request, next);
            next += 1;
        }
        let until = driver.now() + POLL;
        driver.step(&mut client, until)?;
    }
    driver.transport().close(Duration::from_secs(1));
    Ok(())
}
