//! Single topics of a row of the axis that is not visited.

use std::hint::select_unpredictable;

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

/// A topic, its count in a row, and its position there.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sampler) struct Place {
    pub topic: u32,
    pub count: u32,
    /// Index of its entry in a sparse row; 0 if it has none.
    at: u32,
}

/// Places of `topics` in `row`, found in one scan.
#[inline(always)]
pub(in crate::sampler) fn places<L: Lanes, T: TopicIndex, const N: usize>(
    l: L,
    row: &RowMut<'_, T>,
    topics: [u32; N],
) -> [Place; N] {
    match row {
        RowMut::Sparse(sparse) => {
            let wanted = topics.map(|topic| l.splat_u(topic));
            let zero = l.splat_u(0);
            // For each topic: number of the chunk that contains it (upper bits) and mask of the
            // matching lanes (lower 16 bits).
            let mut hits = [0u64; N];
            let chunks = sparse.chunks();
            let lines = &sparse.lines[..chunks * T::LINES];
            for c in 0..chunks {
                let (topics, counts) = T::chunk(l, lines, c);
                let some = !l.eq_u(counts, zero);
                for n in 0..N {
                    let hit = u64::from(l.eq_u(topics, wanted[n]) & some);
                    hits[n] = select_unpredictable(hit != 0, (c as u64) << 16 | hit, hits[n]);
                }
            }
            let mut places = [Place::default(); N];
            for n in 0..N {
                let lane = (hits[n] | 1 << 16).trailing_zeros() % LANES as u32;
                let at = (hits[n] >> 16) as u32 * LANES as u32 + lane;
                // A topic that was not found gets entry 0, the header, whose count is 0.
                places[n] = Place { topic: topics[n], count: sparse.entry(at as usize).1, at };
            }
            places
        }
        RowMut::Dense16(lines) => {
            let mut places = [Place::default(); N];
            for (place, topic) in places.iter_mut().zip(topics) {
                *place = Place { topic, count: dense16(lines, topic as usize), at: 0 };
            }
            places
        }
        RowMut::Dense32(lines) => {
            let mut places = [Place::default(); N];
            for (place, topic) in places.iter_mut().zip(topics) {
                let k = topic as usize;
                *place = Place { topic, count: lines[k / LANES].0[k % LANES], at: 0 };
            }
            places
        }
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
                rows.append(row, to.topic);
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
