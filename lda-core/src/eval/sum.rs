//! Compensated sums of many floats, and parallel sums that do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

/// Neumaier's compensated sum: the error does not grow with the number of terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    sum: f64,
    compensation: f64,
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.compensation += if self.sum.abs() >= term.abs() {
            (self.sum - next) + term
        } else {
            (term - next) + self.sum
        };
        self.sum = next;
    }

    pub(super) fn value(self) -> f64 {
        self.sum + self.compensation
    }
}

/// Splits `0..rows` into ranges of `rows_per_chunk`, evaluates them in the current rayon pool and
/// returns the values in order of rows.
///
/// `evaluate` is a trait object, because rayon's code is compiled again for each closure type and
/// is larger than the closure.
pub(super) fn map_chunks<T: Send>(
    rows: usize,
    rows_per_chunk: usize,
    evaluate: &(dyn Fn(Range<usize>) -> T + Sync),
) -> Vec<T> {
    map_chunks_with(rows, rows_per_chunk, &|| (), &|(), range| evaluate(range))
}

/// [`map_chunks`] with scratch memory, which is reused across chunks and must not affect a value.
pub(super) fn map_chunks_with<S, T: Send>(
    rows: usize,
    rows_per_chunk: usize,
    scratch: &(dyn Fn() -> S + Sync),
    evaluate: &(dyn Fn(&mut S, Range<usize>) -> T + Sync),
) -> Vec<T> {
    (0..rows.div_ceil(rows_per_chunk))
        .into_par_iter()
        .map_init(scratch, |scratch, chunk| {
            let start = chunk * rows_per_chunk;
            evaluate(scratch, start..rows.min(start + rows_per_chunk))
        })
        .collect()
}

/// Sum of the terms that `evaluate` adds for each chunk.
pub(super) fn sum_chunks(
    rows: usize,
    rows_per_chunk: usize,
    evaluate: &(dyn Fn(Range<usize>, &mut Sum) + Sync),
) -> f64 {
    let chunks = map_chunks(rows, rows_per_chunk, &|range| {
        let mut sum = Sum::default();
        evaluate(range, &mut sum);
        sum.value()
    });
    let mut total = Sum::default();
    for chunk in chunks {
        total.add(chunk);
    }
    total.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_cancels() {
        let mut sum = Sum::default();
        for term in [1.0, 1e100, 1.0, -1e100] {
            sum.add(term);
        }
        assert_eq!(sum.value(), 2.0);
    }

    #[test]
    fn chunks_cover_every_row_once_and_in_order() {
        for rows in [0, 1, 6, 7, 8, 700] {
            let seen: Vec<usize> =
                map_chunks(rows, 7, &|range: Range<usize>| range.collect::<Vec<_>>())
                    .into_iter()
                    .flatten()
                    .collect();
            assert_eq!(seen, (0..rows).collect::<Vec<_>>());
        }
    }
}
