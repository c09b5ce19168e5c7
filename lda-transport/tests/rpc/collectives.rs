//! Collective operations of a program with all others, one after the other. Their results are known
//! in advance.

use std::ops::Range;
use std::time::Duration;

use lda_transport::rpc::{BeginError, Collective, CollectiveError, Element, Group, OperationId};
use lda_transport::rpc::{Context, SplitMix64};
use lda_transport::{Frame, NodeId};

/// Progress of a program in the operations.
#[derive(Debug, Default)]
pub struct Operations {
    /// Group and number of the operation that runs, or is next.
    group: u64,
    number: u64,
    running: Option<OperationId>,
}

/// Returns random numbers of an operation and a member.
fn rng(id: OperationId, rank: u32) -> SplitMix64 {
    let mut rng = SplitMix64::new(id.group << 32 | id.number << 8 | u64::from(rank));
    rng.draw();
    rng
}

/// Returns the content of a member.
fn content(id: OperationId, rank: u32) -> Vec<u8> {
    let mut rng = rng(id, rank);
    let len = rng.below(300) as usize;
    vec![rng.draw() as u8; len]
}

/// Returns the length of the vectors that are added.
fn length(id: OperationId) -> u64 {
    rng(id, 255).below(200)
}

fn values(id: OperationId, rank: u32) -> Vec<u64> {
    let mut rng = rng(id, rank);
    (0..length(id)).map(|_| rng.draw()).collect()
}

fn sums(id: OperationId, nodes: u32, range: Range<u64>) -> Vec<u8> {
    let all: Vec<Vec<u64>> = (0..nodes).map(|rank| values(id, rank)).collect();
    let sum = |at: u64| all.iter().fold(0u64, |sum, values| sum.wrapping_add(values[at as usize]));
    range.flat_map(|at| sum(at).to_le_bytes()).collect()
}

/// Returns the expected result of a member.
fn expected(id: OperationId, nodes: u32, rank: u32) -> Vec<Vec<u8>> {
    match kind(id) {
        0 => vec![],
        1 => vec![content(id, root(id, nodes))],
        2 => {
            let part = |rank: u32| u64::from(rank) * length(id) / u64::from(nodes);
            vec![sums(id, nodes, part(rank)..part(rank + 1))]
        }
        _ => (0..nodes).map(|rank| content(id, rank)).collect(),
    }
}

fn kind(id: OperationId) -> u64 {
    rng(id, 254).below(4)
}

fn root(id: OperationId, nodes: u32) -> u32 {
    rng(id, 253).below(u64::from(nodes)) as u32
}

impl Operations {
    /// Begins the next operation of the group, with all nodes.
    pub fn begin(
        &mut self,
        nodes: u32,
        patience: Duration,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        if self.running.is_some() {
            return Ok(());
        }
        let members = (0..nodes).map(NodeId).collect();
        let group = Group::new(self.group, members, cx.id()).expect("all are in it");
        let id = OperationId { group: self.group, number: self.number };
        let rank = cx.id().0;
        let own = |rank| Frame::from(content(id, rank));
        let collective = match kind(id) {
            0 => Collective::Barrier,
            1 => {
                let root = root(id, nodes);
                Collective::Broadcast {
                    root: NodeId(root),
                    content: (root == rank).then(|| own(rank)),
                }
            }
            2 => {
                let values: Vec<u8> =
                    values(id, rank).into_iter().flat_map(u64::to_le_bytes).collect();
                Collective::ReduceScatter { element: Element::I64, values: Frame::from(values) }
            }
            _ => Collective::AllGather { content: own(rank) },
        };
        let (now, deadline) = (cx.now(), cx.now() + patience);
        let begun = match cx.endpoint().begin(&group, collective, deadline, now) {
            Ok(begun) => begun,
            Err(BeginError::Broken { .. }) => {
                // Other members have notified this one.
                self.start_after(self.group);
                return self.begin(nodes, patience, cx);
            }
            Err(error) => return Err(error.to_string()),
        };
        self.running = Some(begun);
        if begun == id { Ok(()) } else { Err(format!("{begun:?} was begun, not {id:?}")) }
    }

    /// Continues with the group after this one.
    pub fn start_after(&mut self, group: u64) {
        (self.group, self.number) = (group + 1, 0);
    }

    /// Checks the result of an operation. Returns whether it succeeded.
    pub fn ended(
        &mut self,
        id: OperationId,
        result: &Result<Vec<Frame>, CollectiveError>,
        nodes: u32,
        rank: u32,
    ) -> Result<bool, String> {
        if self.running.take() != Some(id) {
            return Err(format!("{id:?} ended at {rank} and did not run"));
        }
        match result {
            Ok(got) => {
                let expected = expected(id, nodes, rank);
                if got.len() != expected.len()
                    || got.iter().zip(&expected).any(|(a, b)| a[..] != b[..])
                {
                    return Err(format!("{id:?} gave {rank} {got:?}, not {expected:?}"));
                }
                self.number += 1;
                Ok(true)
            }
            Err(error) => {
                // The group is broken.
                self.start_after(self.group);
                if matches!(error, CollectiveError::Mismatch { .. }) {
                    return Err(format!(
                        "{id:?} at {rank}: {error}, although all begin the same operations"
                    ));
                }
                Ok(false)
            }
        }
    }

    /// Returns group and number of the operation that runs, or is next.
    pub fn next(&self) -> (u64, u64) {
        (self.group, self.number)
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }
}
