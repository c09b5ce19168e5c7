//! What all ranks say of an operation before any content moves, and what they make of it: all the same.

use super::wire::HaltReason;
use crate::rpc::{Collective, CollectiveError, Element, OperationId};
use crate::transport::NodeId;

/// Numbers of a row.
pub(super) const ROW: usize = 6;

/// A gathering goes as one of MPI's, in which all have as much, if that moves at most twice the bytes or is
/// at most so short.
const SHORT: u64 = 64 << 10;

/// What a rank says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// 0 of a rank that takes no part any more.
    kind: u64,
    group: u64,
    number: u64,
    /// The root's rank, or which numbers.
    detail: u64,
    /// Of what it has, in bytes.
    length: u64,
    /// The most that it takes.
    longest: u64,
}

/// What is to be done when all agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing: who knows what all say knows that all are there.
    Barrier,
    Broadcast {
        root: usize,
        length: usize,
    },
    /// As many bytes of each.
    GatherEqual {
        lengths: Vec<usize>,
        each: usize,
    },
    /// One broadcast of each.
    GatherEach {
        lengths: Vec<usize>,
    },
    Sum {
        element: Element,
        length: usize,
    },
}

impl Row {
    /// Of an operation that fits its group, or of none.
    pub fn new(begun: Option<(OperationId, &Collective, u64)>) -> Self {
        let Some((OperationId { group, number }, collective, longest)) = begun else {
            let (group, number, detail, length) = Default::default();
            return Self { kind: 0, group, number, detail, length, longest: u64::MAX };
        };
        let (kind, detail, length) = match collective {
            Collective::Barrier => (1, 0, 0),
            Collective::Broadcast { root, content } => {
                (2, u64::from(root.0), content.as_ref().map_or(0, |content| content.len()))
            }
            Collective::ReduceScatter { element, values } => (3, *element as u64, values.len()),
            Collective::AllGather { content } => (4, 0, content.len()),
        };
        Self { kind, group, number, detail, length: length as u64, longest }
    }

    pub fn numbers(self) -> [u64; ROW] {
        [self.kind, self.group, self.number, self.detail, self.length, self.longest]
    }

    fn read(numbers: &[u64; ROW]) -> Self {
        let [kind, group, number, detail, length, longest] = *numbers;
        Self { kind, group, number, detail, length, longest }
    }

    /// What has to be the same everywhere.
    fn shape(&self) -> [u64; 5] {
        let vector = if self.kind == 3 { self.length } else { 0 };
        [self.kind, self.group, self.number, self.detail, vector]
    }

    fn words(&self) -> String {
        let what = match self.kind {
            1 => "a barrier".to_owned(),
            2 => format!("a broadcast from rank {}", self.detail),
            3 => format!("a sum of {} bytes of element {}", self.length, self.detail),
            _ => "a gathering".to_owned(),
        };
        format!("operation {} of group {}, {what}", self.number, self.group)
    }
}

/// What comes of the rows of all ranks, which are the same at each of them: either all do the work or none.
///
/// # Errors
/// How the operation ends here, and whether ranks are out of step.
pub(super) fn agree(
    numbers: &[u64],
    this: usize,
    halted: impl Fn(usize) -> HaltReason,
) -> Result<Work, CollectiveError> {
    let rows: Vec<Row> = numbers.as_chunks().0.iter().map(Row::read).collect();
    let own = rows[this];
    let node = |rank: usize| NodeId(rank as u32);
    if let Some(rank) = rows.iter().position(|row| row.kind == 0) {
        let words = halted(rank).describe().to_owned();
        return Err(CollectiveError::Rejected { peer: node(rank), words });
    }
    let mismatch = |rank, words| Err(CollectiveError::Mismatch { peer: node(rank), words });
    if let Some(rank) = rows.iter().position(|row| row.shape() != own.shape()) {
        let (there, here) = (rows[rank].words(), own.words());
        let words = format!(
            "{there}, and here it is {here}: begin the same operations in the same order on all nodes"
        );
        return mismatch(rank, words);
    }
    let longest = rows.iter().map(|row| row.longest).min().unwrap_or_default();
    // MPI counts to here.
    let most = longest.min(i32::MAX as u64);
    if let Some(rank) = rows.iter().position(|row| row.length > most) {
        let length = rows[rank].length;
        let words =
            format!("{length} bytes, where an operation takes {most} over MPI: cut them up");
        return mismatch(rank, words);
    }
    let lengths = || rows.iter().map(|row| row.length as usize).collect::<Vec<_>>();
    Ok(match own.kind {
        1 => Work::Barrier,
        2 => {
            let root = own.detail as usize;
            Work::Broadcast { root, length: rows[root].length as usize }
        }
        3 => {
            let all = [Element::I32, Element::I64, Element::F32];
            let element = all.into_iter().find(|element| *element as u64 == own.detail);
            Work::Sum { element: element.expect("this rank's own"), length: own.length as usize }
        }
        _ => {
            let each = rows.iter().map(|row| row.length).max().unwrap_or_default();
            let (total, equal) =
                (rows.iter().map(|row| row.length).sum::<u64>(), each * rows.len() as u64);
            if equal <= i32::MAX as u64 && equal <= SHORT.max(2 * total) {
                Work::GatherEqual { lengths: lengths(), each: each as usize }
            } else {
                Work::GatherEach { lengths: lengths() }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn row(number: u64, collective: &Collective, longest: u64) -> Row {
        Row::new(Some((OperationId { group: 9, number }, collective, longest)))
    }

    fn end(rows: &[Row], this: usize) -> Result<Work, CollectiveError> {
        let numbers: Vec<u64> = rows.iter().flat_map(|row| row.numbers()).collect();
        agree(&numbers, this, |_| HaltReason::Closed)
    }

    fn gathering(len: usize) -> Row {
        row(1, &Collective::AllGather { content: vec![0; len].into() }, 1 << 20)
    }

    #[test]
    fn who_agrees_works() {
        let barrier = row(0, &Collective::Barrier, 10);
        assert_eq!(end(&[barrier; 3], 1), Ok(Work::Barrier));
        let broadcast = |content: Option<Frame>| {
            row(0, &Collective::Broadcast { root: NodeId(1), content }, 10)
        };
        let rows = [broadcast(None), broadcast(Some(vec![0; 7].into()))];
        assert_eq!(end(&rows, 0), Ok(Work::Broadcast { root: 1, length: 7 }));
        let sum = Collective::ReduceScatter { element: Element::I64, values: vec![0; 8].into() };
        let work = end(&[row(0, &sum, 10); 2], 0);
        assert_eq!(work, Ok(Work::Sum { element: Element::I64, length: 8 }));
        let work = end(&[gathering(5), gathering(0)], 0);
        assert_eq!(work, Ok(Work::GatherEqual { lengths: vec![5, 0], each: 5 }));
        let work = end(&[gathering(1 << 20), gathering(0), gathering(3)], 2);
        assert_eq!(work, Ok(Work::GatherEach { lengths: vec![1 << 20, 0, 3] }));
    }

    #[test]
    fn who_does_something_else_is_named() {
        let (one, other) = (row(0, &Collective::Barrier, 10), row(1, &Collective::Barrier, 10));
        for (this, named) in [(0, 2), (1, 2), (2, 0)] {
            let error = end(&[one, one, other], this).unwrap_err();
            let CollectiveError::Mismatch { peer, words } = error else { panic!("{error}") };
            assert_eq!(peer, NodeId(named), "{words}");
        }
        let sum = |len, element| {
            let values = Frame::from(vec![0; len]);
            row(0, &Collective::ReduceScatter { element, values }, 100)
        };
        assert!(end(&[sum(8, Element::I32), sum(16, Element::I32)], 0).is_err());
        assert!(end(&[sum(8, Element::I32), sum(8, Element::I64)], 0).is_err());
        // What one takes all take.
        let error =
            end(&[gathering(11), row(1, &Collective::AllGather { content: Frame::new() }, 10)], 1);
        assert!(
            matches!(error, Err(CollectiveError::Mismatch { peer: NodeId(0), .. })),
            "{error:?}"
        );
        let error = end(&[one, Row::new(None)], 0).unwrap_err();
        assert!(matches!(error, CollectiveError::Rejected { peer: NodeId(1), .. }), "{error}");
    }
}
