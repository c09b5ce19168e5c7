//! Single topics of a row of the axis that is not visited.

use crate::counts::{RowMut, Rows, TopicIndex, dense16, dense16_add};
use crate::simd::{LANES, Lanes, Line};

/// Entry of `topic` in a sparse row.
#[inline(always)]
pub(super) fn find<L: Lanes, T: TopicIndex>(
    l: L,
    lines: &[Line],
    chunks: usize,
    topic: u32,
) -> Option<usize> {
    let (topic, zero) = (l.splat_u(topic), l.splat_f(0.0));
    for c in 0..chunks {
        let (topics, counts) = T::chunk(l, lines, c);
        let hit = l.eq_u(topics, topic) & l.gt_f(l.to_f(counts), zero);
        if hit != 0 {
            return Some(c * LANES + hit.trailing_zeros() as usize);
        }
    }
    None
}

/// Count of `topic` in `row`.
#[inline(always)]
pub(in crate::sampler) fn count<L: Lanes, T: TopicIndex>(
    l: L,
    row: &RowMut<'_, T>,
    topic: u32,
) -> u32 {
    let k = topic as usize;
    match row {
        RowMut::Sparse(sparse) => {
            let at = find::<L, T>(l, sparse.lines, sparse.chunks(), topic);
            at.map_or(0, |at| sparse.entry(at).1)
        }
        RowMut::Dense16(lines) => dense16(lines, k),
        RowMut::Dense32(lines) => lines[k / LANES].0[k % LANES],
    }
}

/// Moves one token of row `row` from topic `from`, which the row counts, to `to`.
#[inline(always)]
pub(in crate::sampler) fn shift<L: Lanes, T: TopicIndex>(
    l: L,
    rows: &mut Rows<T>,
    row: usize,
    from: u32,
    to: u32,
) {
    let [from, to] = places(l, &rows.row_mut(row), [from, to]);
    shift_at(rows, row, from, to);
}

/// A topic and where a row has it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sampler) struct Place {
    pub topic: u32,
    pub count: u32,
    /// Entry of a sparse row; 0 if it has none.
    at: u32,
}

/// Places of `topics` in `row`, in one go over it.
#[inline(always)]
pub(in crate::sampler) fn places<L: Lanes, T: TopicIndex, const N: usize>(
    l: L,
    row: &RowMut<'_, T>,
    topics: [u32; N],
) -> [Place; N] {
    match row {
        RowMut::Sparse(sparse) => {
            let wanted = topics.map(|topic| l.splat_u(topic));
            let zero = l.splat_f(0.0);
            let mut at = [0; N];
            for c in 0..sparse.chunks() {
                let (topics, counts) = T::chunk(l, sparse.lines, c);
                let some = l.gt_f(l.to_f(counts), zero);
                for (at, &wanted) in at.iter_mut().zip(&wanted) {
                    let hit = l.eq_u(topics, wanted) & some;
                    let place = (c * LANES) as u32 + hit.trailing_zeros();
                    *at = if hit != 0 { place } else { *at };
                }
            }
            // Entry 0, the header, counts nothing.
            std::array::from_fn(|n| Place {
                topic: topics[n],
                count: sparse.entry(at[n] as usize).1,
                at: at[n],
            })
        }
        RowMut::Dense16(lines) => {
            topics.map(|topic| Place { topic, count: dense16(lines, topic as usize), at: 0 })
        }
        RowMut::Dense32(lines) => topics.map(|topic| {
            let k = topic as usize;
            Place { topic, count: lines[k / LANES].0[k % LANES], at: 0 }
        }),
    }
}

/// Moves one token of row `row`, as [`shift`] does, between topics whose places are known.
#[inline(always)]
pub(in crate::sampler) fn shift_at<T: TopicIndex>(
    rows: &mut Rows<T>,
    row: usize,
    from: Place,
    to: Place,
) {
    match rows.row_mut(row) {
        RowMut::Sparse(mut sparse) => {
            if to.at > 0 {
                sparse.set(to.at as usize, to.topic, to.count + 1);
                sparse.decrement_at(from.at as usize);
            } else {
                sparse.decrement_at(from.at as usize);
                rows.increment(row, to.topic);
            }
        }
        RowMut::Dense16(lines) => {
            dense16_add(lines, from.topic as usize, 1u32.wrapping_neg());
            dense16_add(lines, to.topic as usize, 1);
        }
        RowMut::Dense32(lines) => {
            lines[from.topic as usize / LANES].0[from.topic as usize % LANES] -= 1;
            lines[to.topic as usize / LANES].0[to.topic as usize % LANES] += 1;
        }
    }
}
