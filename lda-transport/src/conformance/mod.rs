//! Conformance suite: the contract of [`Transport`] as a program.
//!
//! A [`Subject`] creates nodes. [`run`] checks every promise of the contract and returns a
//! [`Report`]: the checks that passed, those that failed with the reason, and those that were
//! skipped because the transport does not claim the property. If all pass, [endpoints](crate::rpc)
//! over the transport are checked too. Speed is not checked, but every wait has to end within
//! [`Effort::patience`]: a call that does not return fails its check, and ends the run.
//!
//! ```
//! use lda_transport::conformance::{self, Effort, Subject};
//! use lda_transport::{NodeId, Transport, local};
//!
//! #[derive(Default)]
//! struct Local(Option<local::Hub>);
//!
//! impl Subject for Local {
//!     fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
//!         let hub = self.0.insert(local::Hub::new(&local::Options::default()));
//!         let join = |id| Box::new(hub.join(NodeId(id)).unwrap()) as Box<dyn Transport>;
//!         (0..nodes).map(join).collect()
//!     }
//!
//!     fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
//!         Some(Box::new(self.0.as_ref()?.join(id).unwrap()))
//!     }
//! }
//!
//! let report = conformance::run(&mut Local::default(), &Effort { bytes: 1 << 20, ..Effort::default() });
//! assert!(report.passed(), "{report}");
//! ```

mod basics;
mod closing;
#[cfg(feature = "collectives")]
mod collectives;
mod flow;
mod member;
mod node;
mod requests;
mod traffic;
mod watchdog;

use std::fmt;
use std::time::Duration;

use crate::transport::{NodeId, Transport};

/// Creates nodes of the transport under test.
pub trait Subject {
    /// Creates nodes 0 to `nodes` − 1, which connect to each other. Nodes of earlier calls have
    /// been dropped.
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>>;

    /// Creates a node of the last mesh again, after it has closed. `None` if that is not possible.
    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        let _ = id;
        None
    }
}

/// Extent of the checks.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Approximate number of bytes that are sent and compared.
    pub bytes: u64,
    /// Longest frame that is sent, if the transport allows it.
    pub max_frame_len: usize,
    /// Seed of the lengths and contents of frames.
    pub seed: u64,
    /// Longest wait for anything.
    pub patience: Duration,
    /// Called with the name of each check when it begins.
    pub on_check: fn(&str),
}

impl Default for Effort {
    /// 64 MiB in frames of up to 4 MiB; waits of up to 30 s; names of checks go to standard error.
    fn default() -> Self {
        let patience = Duration::from_secs(30);
        Self { bytes: 64 << 20, max_frame_len: 4 << 20, seed: 0, patience, on_check: print }
    }
}

#[expect(clippy::print_stderr, reason = "shows the check that runs, and is captured by tests")]
fn print(check: &str) {
    eprintln!("conformance: {check}");
}

/// Results of all checks.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name and result of each check, in order.
    pub checks: Vec<(&'static str, Outcome)>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The transport keeps the promise.
    Passed,
    /// The transport does not claim the property, which is named.
    Skipped(&'static str),
    /// The transport breaks the promise; contains the difference.
    Failed(String),
    /// The check was not run, for this reason.
    NotRun(&'static str),
}

impl Report {
    /// Whether all checks passed, but for those that were skipped.
    pub fn passed(&self) -> bool {
        let passed = |outcome: &Outcome| matches!(outcome, Outcome::Passed | Outcome::Skipped(_));
        self.checks.iter().all(|(_, outcome)| passed(outcome))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Outcome::Passed => writeln!(f, "{name}: passed")?,
                Outcome::Skipped(lack) => writeln!(f, "{name}: skipped: not claimed: {lack}")?,
                Outcome::Failed(reason) => writeln!(f, "{name}: FAILED: {reason}")?,
                Outcome::NotRun(why) => writeln!(f, "{name}: not run: {why}")?,
            }
        }
        Ok(())
    }
}

type Check = fn(&mut dyn Subject, &Effort) -> Result<Outcome, String>;

/// Checks of the transport.
const CHECKS: [(&str, Check); 10] = [
    ("peers connect", basics::connections),
    ("waits end in time", basics::waiting),
    ("a waker wakes", basics::waking),
    ("frames that cannot be sent are returned", basics::refusals),
    ("order and integrity", traffic::integrity),
    ("seventeen nodes", traffic::many),
    ("a stalled receiver blocks only its senders", flow::backpressure),
    ("frames that were taken are sent before the close", closing::sending_before_close),
    ("a lost peer does not affect the others", closing::loss),
    ("a peer reconnects", closing::rejoining),
];

/// Checks of endpoints over the transport.
const REQUESTS: &[(&str, Check)] = &[
    ("requests get their own replies", requests::answers),
    ("a deadline ends a request", requests::deadlines),
    ("lost, duplicated or interrupted requests are executed once", requests::once),
    #[cfg(feature = "collectives")]
    ("one to seventeen nodes run collective operations", collectives::all_sizes),
];

/// Runs all checks, each on a thread of its own. Nodes are created on the thread of the caller.
pub fn run(subject: &mut dyn Subject, effort: &Effort) -> Report {
    let mut report = Report { checks: Vec::new() };
    let mut hangs = false;
    let mut run = |(name, check): (&'static str, Check)| {
        if hangs {
            return Outcome::NotRun("a check above does not end");
        }
        (effort.on_check)(name);
        let end = watchdog::run(subject, effort, check);
        hangs = end.hangs;
        end.outcome
    };
    for check in CHECKS {
        report.checks.push((check.0, run(check)));
    }
    // An endpoint may wait forever over a transport that breaks the contract.
    let sound = report.passed();
    for &check in REQUESTS {
        let lack = Outcome::NotRun("the transport breaks the contract");
        report.checks.push((check.0, if sound { run(check) } else { lack }));
    }
    report
}
