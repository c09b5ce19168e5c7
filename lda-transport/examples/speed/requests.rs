//! Pushes between two endpoints, each executed at most once.

use std::time::Duration;

use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestKind,
};
use lda_transport::{NodeId, Time, Transport};

use super::{Result, Sender};

/// Maximum number of requests in flight, and of their bytes: as much as a queue of
/// [`lda_transport::grpc`] holds.
const OPEN: usize = 256;
const OPEN_BYTES: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn config() -> Config {
    Config::new(Identity { incarnation: 1, role: 0, run: 1, configuration: 1 })
}

/// Acknowledges requests until the process is killed.
pub fn receive(transport: Box<dyn Transport>) -> Result<()> {
    let mut driver = Driver::new(transport, config());
    let mut program = Counts::default();
    loop {
        driver.step(&mut program, Time::NEVER)?;
    }
}

/// Acknowledges requests and counts those of its own.
#[derive(Default)]
struct Counts {
    joined: bool,
    open: usize,
    failed: Option<Outcome>,
}

impl Program for Counts {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Joined { .. } => self.joined = true,
            Action::Request { reply_to, .. } => {
                cx.reply(reply_to, MessageBuf::new());
            }
            Action::Completed { outcome, .. } => {
                self.open -= 1;
                if !matches!(outcome, Outcome::Done(_)) {
                    self.failed = Some(outcome);
                }
            }
            _ => {}
        }
    }
}

pub struct Pushes {
    driver: Driver<Box<dyn Transport>>,
    counts: Counts,
}

impl Pushes {
    pub fn new(transport: Box<dyn Transport>) -> Result<Self> {
        let mut pushes =
            Self { driver: Driver::new(transport, config()), counts: Counts::default() };
        while !pushes.counts.joined {
            pushes.driver.step(&mut pushes.counts, Time::NEVER)?;
        }
        Ok(pushes)
    }

    fn push(&mut self, len: usize) -> Result<()> {
        let mut message = self.driver.message();
        message.resize(len, 1);
        self.driver.context().request(NodeId(0), RequestKind::Push, message, PATIENCE)?;
        self.counts.open += 1;
        Ok(())
    }

    /// Waits until at most `open` requests are in flight.
    fn wait(&mut self, open: usize) -> Result<()> {
        while self.counts.open > open {
            self.driver.step(&mut self.counts, Time::NEVER)?;
            if let Some(outcome) = self.counts.failed.take() {
                return Err(format!("a push ended as {outcome:?}").into());
            }
        }
        Ok(())
    }
}

impl Sender for Pushes {
    fn pour(&mut self, count: usize, len: usize) -> Result<()> {
        let most = OPEN.min(OPEN_BYTES / len).max(1);
        for _ in 0..count {
            self.wait(most - 1)?;
            self.push(len)?;
            self.driver.flush(&mut self.counts);
        }
        self.wait(0)
    }

    fn round(&mut self, len: usize) -> Result<()> {
        self.push(len)?;
        self.wait(0)
    }
}
