//! The contract of [`Transport`] as a program.
//!
//! A [`Subject`] makes nodes; [`run`] puts them through everything that a transport promises and gives a [`Report`]:
//! what passed, what failed and why, and what was left out because the transport does not claim it. Where all of that
//! passes, [endpoints](crate::rpc) over it are checked too. Nothing is timed, but everything has to come within
//! [`Effort::patience`].
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
mod flow;
mod node;
mod requests;
mod traffic;

use std::fmt;
use std::time::Duration;

use crate::transport::{NodeId, Transport};

/// Makes nodes of the transport under test.
pub trait Subject {
    /// Nodes 0 to `nodes` that are about to hear of each other. Earlier ones are gone.
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>>;

    /// A node of the last mesh that has closed, once more. None where that cannot be.
    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        let _ = id;
        None
    }
}

/// How hard to try.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Bytes that are sent and compared, roughly.
    pub bytes: u64,
    /// Longest frame that is tried, where the transport takes it.
    pub max_frame_len: usize,
    /// Of the lengths and contents of frames.
    pub seed: u64,
    /// How long anything may take to come.
    pub patience: Duration,
}

impl Default for Effort {
    /// 64 MiB, in frames of up to 4 MiB; half a minute.
    fn default() -> Self {
        Self { bytes: 64 << 20, max_frame_len: 4 << 20, seed: 0, patience: Duration::from_secs(30) }
    }
}

/// How each check ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name and end of each, in the order in which they ran.
    pub checks: Vec<(&'static str, Outcome)>,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As promised.
    Passed,
    /// The transport does not claim it; what it lacks.
    Skipped(&'static str),
    /// Otherwise; what was expected and what came.
    Failed(String),
}

impl Report {
    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Outcome::Passed => writeln!(f, "{name}: passed")?,
                Outcome::Skipped(lack) => writeln!(f, "{name}: skipped, for want of {lack}")?,
                Outcome::Failed(reason) => writeln!(f, "{name}: FAILED: {reason}")?,
            }
        }
        Ok(())
    }
}

type Check = fn(&mut dyn Subject, &Effort) -> Result<Outcome, String>;

/// Of the transport itself.
const CHECKS: [(&str, Check); 10] = [
    ("peers are introduced", basics::introductions),
    ("waiting ends in time", basics::waiting),
    ("a waker wakes", basics::waking),
    ("frames that cannot be sent come back", basics::refusals),
    ("order and integrity", traffic::integrity),
    ("seventeen nodes", traffic::many),
    ("a stalled receiver is felt by its senders alone", flow::backpressure),
    ("what was taken is handed on before the end", closing::handing_on),
    ("a lost peer leaves the others", closing::loss),
    ("a peer comes again", closing::rejoining),
];

/// Of endpoints over it.
const REQUESTS: [(&str, Check); 4] = [
    ("requests have their own answers", requests::answers),
    ("a deadline ends a request", requests::deadlines),
    ("what is lost, comes twice or is cut off is done once", requests::once),
    ("one to seventeen nodes do operations together", requests::together),
];

/// Puts a transport through all of it.
pub fn run(subject: &mut dyn Subject, effort: &Effort) -> Report {
    let mut of = |check: Check| check(subject, effort).unwrap_or_else(Outcome::Failed);
    let checks = CHECKS.map(|(name, check)| (name, of(check)));
    let mut report = Report { checks: checks.to_vec() };
    // An endpoint may wait for ever where the transport does not do as it should.
    let sound = report.passed();
    let lack = || Outcome::Skipped("a transport that does the above");
    let requests = REQUESTS.map(|(name, check)| (name, if sound { of(check) } else { lack() }));
    report.checks.extend(requests);
    report
}
