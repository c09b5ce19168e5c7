//! The content of an operation on its way through MPI.

use ::mpi::collective::SystemOperation;
use ::mpi::request::{LocalScope, Request};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator, CommunicatorCollectives, Root};

use super::agree::Work;
use crate::buffer_pool::BufferPool;
use crate::frame::Frame;
use crate::rpc::{Collective, Element};

/// Room that MPI writes to and reads from, for as long as it may.
#[derive(Debug, Default)]
pub(super) struct Writable {
    bytes: Vec<u8>,
    own: Frame,
    short: (Vec<u32>, Vec<u32>),
    long: (Vec<u64>, Vec<u64>),
}

impl Writable {
    /// Gives it back when MPI is done with it.
    pub fn end(self, rooms: &BufferPool) {
        // One too many is freed.
        let _ = rooms.keep(self.bytes);
        rooms.release(self.own);
    }
}

type Asked<'a, 's, D> = Request<'a, D, &'s LocalScope<'a>>;

/// What MPI was asked for.
pub(super) enum Content<'a, 's> {
    /// For nothing: this is what the rank gets.
    Known(Vec<Frame>),
    Broadcast(Asked<'a, 's, [u8]>),
    GatherEqual {
        asked: Asked<'a, 's, [u8]>,
        lengths: Vec<usize>,
        each: usize,
    },
    /// By rank; what has come is a frame.
    GatherEach {
        asked: Vec<Result<Frame, Asked<'a, 's, [u8]>>>,
    },
    Short {
        asked: Asked<'a, 's, [u32]>,
        numbers: usize,
    },
    Long {
        asked: Asked<'a, 's, [u64]>,
        numbers: usize,
    },
    /// Of the root, which has it.
    Rooted {
        asked: Asked<'a, 's, [u8]>,
        own: Frame,
    },
}

impl<'a, 's> Content<'a, 's> {
    /// Has MPI begin. The collective is what this rank has given, and fits the work.
    pub fn begin(
        work: Work,
        collective: Collective,
        room: &'a mut Writable,
        scope: &'s LocalScope<'a>,
        ranks: &SimpleCommunicator,
        rooms: &BufferPool,
    ) -> Self {
        let (this, count) = (ranks.rank() as usize, ranks.size() as usize);
        let Writable { bytes, own, short, long } = room;
        // Nothing does not move. Besides, the place of no bytes may be the one by which MPI knows other things.
        match (work, collective) {
            (Work::Broadcast { length: 0, .. } | Work::Sum { length: 0, .. }, _) => {
                Self::Known(vec![Frame::new()])
            }
            (Work::GatherEqual { each: 0, .. }, _) => Self::Known(vec![Frame::new(); count]),
            (Work::Broadcast { root, length }, Collective::Broadcast { content, .. }) => {
                // MPI wants room that it may write to of the root too.
                *bytes =
                    content.as_ref().map_or_else(|| rooms.filled(length), |own| rooms.copy(own));
                let root = ranks.process_at_rank(root as i32);
                let asked = root.immediate_broadcast_into(scope, &mut bytes[..]);
                match content {
                    Some(own) => Self::Rooted { asked, own },
                    None => Self::Broadcast(asked),
                }
            }
            (Work::GatherEqual { lengths, each }, Collective::AllGather { content }) => {
                *bytes = rooms.filled(each * count);
                *own = content;
                if own.len() < each {
                    let mut padded = own.to_vec();
                    padded.resize(each, 0);
                    *own = Frame::from(padded);
                }
                let own: &'a [u8] = own;
                let asked = ranks.immediate_all_gather_into(scope, own, &mut bytes[..]);
                Self::GatherEqual { asked, lengths, each }
            }
            (Work::GatherEach { lengths }, Collective::AllGather { content }) => {
                *bytes = rooms.filled(lengths.iter().sum());
                let mut rest: &'a mut [u8] = &mut bytes[..];
                let mut asked = Vec::new();
                for (rank, &len) in lengths.iter().enumerate() {
                    let (part, after) = rest.split_at_mut(len);
                    rest = after;
                    if rank == this {
                        part.copy_from_slice(&content);
                    }
                    if len > 0 {
                        let root = ranks.process_at_rank(rank as i32);
                        asked.push(Err(root.immediate_broadcast_into(scope, part)));
                    } else {
                        asked.push(Ok(Frame::new()));
                    }
                }
                Self::GatherEach { asked }
            }
            (Work::Sum { element, length }, Collective::ReduceScatter { values, .. }) => {
                let numbers = length / element.bytes();
                let (each, own) = (numbers.div_ceil(count), part(this, numbers, count).len());
                // As many for each rank, so that one of MPI's operations does.
                let sum = SystemOperation::sum();
                if element == Element::I64 {
                    *long = (spread(&values, numbers, count, u64::from_le_bytes), vec![0; each]);
                    let (terms, sums) = (&long.0[..], &mut long.1[..]);
                    let asked = ranks.immediate_reduce_scatter_block_into(scope, terms, sums, sum);
                    Self::Long { asked, numbers: own }
                } else {
                    *short = (spread(&values, numbers, count, u32::from_le_bytes), vec![0; each]);
                    let (terms, sums) = (&short.0[..], &mut short.1[..]);
                    let asked = ranks.immediate_reduce_scatter_block_into(scope, terms, sums, sum);
                    Self::Short { asked, numbers: own }
                }
            }
            // A barrier.
            _ => Self::Known(Vec::new()),
        }
    }

    /// What this rank gets, or the operation as it is yet.
    pub fn test(self, rooms: &BufferPool) -> Result<Vec<Frame>, Self> {
        match self {
            Self::Known(frames) => Ok(frames),
            Self::Rooted { asked, own } => match asked.test() {
                Ok(_) => Ok(vec![own]),
                Err(asked) => Err(Self::Rooted { asked, own }),
            },
            Self::Broadcast(asked) => match asked.test_with_data() {
                Ok((_, bytes)) => Ok(vec![Frame::from(rooms.copy(bytes))]),
                Err(asked) => Err(Self::Broadcast(asked)),
            },
            Self::GatherEqual { asked, lengths, each } => match asked.test_with_data() {
                Ok((_, bytes)) => {
                    let all = Frame::from(rooms.copy(bytes));
                    let part = |(rank, len)| all.slice(rank * each..rank * each + len);
                    Ok(lengths.into_iter().enumerate().map(part).collect())
                }
                Err(asked) => Err(Self::GatherEqual { asked, lengths, each }),
            },
            Self::GatherEach { asked } => {
                let test = |asked: Result<Frame, Asked<'a, 's, [u8]>>| {
                    let asked = match asked {
                        Ok(frame) => return Ok(frame),
                        Err(asked) => asked,
                    };
                    asked.test_with_data().map(|(_, bytes)| Frame::from(rooms.copy(bytes)))
                };
                let asked: Vec<_> = asked.into_iter().map(test).collect();
                if asked.iter().all(Result::is_ok) {
                    return Ok(asked.into_iter().filter_map(Result::ok).collect());
                }
                Err(Self::GatherEach { asked })
            }
            Self::Short { asked, numbers } => match asked.test_with_data() {
                Ok((_, sums)) => Ok(vec![gather(&sums[..numbers], u32::to_le_bytes, rooms)]),
                Err(asked) => Err(Self::Short { asked, numbers }),
            },
            Self::Long { asked, numbers } => match asked.test_with_data() {
                Ok((_, sums)) => Ok(vec![gather(&sums[..numbers], u64::to_le_bytes, rooms)]),
                Err(asked) => Err(Self::Long { asked, numbers }),
            },
        }
    }
}

/// The numbers of a vector whose sums a rank gets.
fn part(rank: usize, numbers: usize, ranks: usize) -> std::ops::Range<usize> {
    let at = |rank: usize| (numbers as u128 * rank as u128 / ranks as u128) as usize;
    at(rank)..at(rank + 1)
}

/// The parts of all ranks one after the other, each filled up with zeroes to the longest.
fn spread<N: Copy + Default, const B: usize>(
    values: &[u8],
    numbers: usize,
    ranks: usize,
    read: impl Fn([u8; B]) -> N,
) -> Vec<N> {
    let values = values.as_chunks::<B>().0;
    let each = numbers.div_ceil(ranks);
    let mut all = Vec::with_capacity(each * ranks);
    for rank in 0..ranks {
        all.extend(values[part(rank, numbers, ranks)].iter().map(|&bytes| read(bytes)));
        all.resize((rank + 1) * each, N::default());
    }
    all
}

/// Numbers as they travel.
fn gather<N: Copy, const B: usize>(
    numbers: &[N],
    write: impl Fn(N) -> [u8; B],
    rooms: &BufferPool,
) -> Frame {
    let mut bytes = rooms.filled(size_of_val(numbers));
    let places = bytes.as_chunks_mut().0.iter_mut();
    places.zip(numbers).for_each(|(place, number)| *place = write(*number));
    Frame::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_long() {
        let values: Vec<u8> = (1..=5u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(spread(&values, 5, 3, u32::from_le_bytes), [1, 0, 2, 3, 4, 5]);
        assert_eq!(spread(&values[..4], 1, 3, u32::from_le_bytes), [0, 0, 1]);
        assert_eq!(spread(&[], 0, 3, u64::from_le_bytes), []);
    }
}
