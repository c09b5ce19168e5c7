//! Two programs that push over gRPC, to see what becomes of pushes when machines and lines fail.
//!
//! ```text
//! pushes serve LISTEN JOURNAL       takes pushes, and writes each down before it answers
//! pushes push SERVER SECONDS        makes pushes for so long, and says how each has ended
//! ```
//!
//! The journal has a line a push: the incarnation that took it, and its number. The other program prints lines of
//! three words: milliseconds since it began, the number, and how it ended. `tests/namespaces.rs` puts the two
//! into network namespaces and breaks the line between them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

use std::collections::VecDeque;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, process, thread};

use lda_transport::NodeId;
use lda_transport::grpc::{Grpc, GrpcOptions, Peer};
use lda_transport::node::{Asked, Node, Pending, Silent};
use lda_transport::rpc::{Config, Identity, MessageBuf, Outcome};

/// How long a push may take: longer than any line here is down.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pushes that are open at a time.
const OPEN: usize = 32;

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

/// Of a new incarnation each time.
fn config() -> Result<Config, Box<dyn Error>> {
    let incarnation = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    Ok(Config::new(Identity { incarnation, role: 0, run: 1, configuration: 1 }))
}

fn options() -> GrpcOptions {
    let mut options = GrpcOptions::default();
    // A line that is back is found soon.
    options.max_backoff = Duration::from_millis(500);
    options
}

fn serve(listen: &str, journal: &str) -> Result<(), Box<dyn Error>> {
    let mut options = options();
    options.listen = Some(listen.to_owned());
    let config = config()?;
    let incarnation = config.identity.incarnation;
    let mut journal: File = OpenOptions::new().create(true).append(true).open(journal)?;
    let service = move |asked: Asked| {
        let number = String::from_utf8_lossy(asked.body()).into_owned();
        let line = format!("{incarnation} {number}\n");
        match journal.write_all(line.as_bytes()) {
            Ok(()) => asked.reply(MessageBuf::new()),
            Err(error) => asked.reject(MessageBuf::from(error.to_string().as_bytes())),
        }
    };
    let _node = Node::start(Box::new(Grpc::start(NodeId(0), options)?), config, service)?;
    println!("serving");
    loop {
        thread::park();
    }
}

fn push(server: &str, time: Duration) -> Result<(), Box<dyn Error>> {
    let mut options = options();
    options.listen = None;
    options.peers.insert(NodeId(0), Peer::at(server.to_owned()));
    let node = Node::start(Box::new(Grpc::start(NodeId(1), options)?), config()?, Silent)?;
    let began = Instant::now();
    let mut open: VecDeque<(u64, Pending<Outcome>)> = VecDeque::new();
    let mut next = 0;
    while began.elapsed() < time || !open.is_empty() {
        while open.len() < OPEN && began.elapsed() < time {
            let message = MessageBuf::from(next.to_string().as_bytes());
            open.push_back((next, node.push(NodeId(0), message, PATIENCE)));
            next += 1;
        }
        // What has ended is told at once, whatever was made before it.
        for _ in 0..open.len() {
            let Some((number, pending)) = open.pop_front() else { break };
            if !pending.has_ended() {
                open.push_back((number, pending));
                continue;
            }
            let millis = began.elapsed().as_millis();
            match pending.wait() {
                Outcome::Done(_) => println!("{millis} {number} done"),
                Outcome::Rejected(_) => println!("{millis} {number} rejected"),
                Outcome::Unknown { sent: true, reason } => {
                    println!("{millis} {number} unknown:{reason:?}")
                }
                Outcome::Unknown { reason, .. } => println!("{millis} {number} unsent:{reason:?}"),
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    node.close(Duration::from_secs(1))?;
    Ok(())
}
