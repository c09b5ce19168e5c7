//! Delta of a word's row: the changes of its counts when its tokens change topics.

use lda_core::counts::TopicIndex;

/// Writes the delta of one row to `row` as (topic, change), topics ascending, without zeros, given
/// the topics of its tokens before and after. `delta` is scratch of length K, all zeros before and
/// after the call; `touched` is empty before and after.
pub(super) fn row_delta<'a, T: TopicIndex>(
    tokens: impl Iterator<Item = (&'a T, &'a T)>,
    delta: &mut [i32],
    touched: &mut Vec<u32>,
    row: &mut Vec<(u32, i32)>,
) {
    let changed = tokens.filter(|(before, after)| before != after);
    for (topic, by) in changed.flat_map(|(before, after)| [(before.get(), -1), (after.get(), 1)]) {
        let entry = &mut delta[topic as usize];
        if *entry == 0 {
            touched.push(topic);
        }
        *entry += by;
    }
    touched.sort_unstable();
    row.clear();
    // INVARIANT: a topic whose change went back to 0 in between is in `touched` twice. `take`
    // leaves 0 for its second occurrence, which the filter drops.
    let all = touched.drain(..).map(|topic| (topic, std::mem::take(&mut delta[topic as usize])));
    row.extend(all.filter(|&(_, by)| by != 0));
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_delta_is_the_difference_of_the_counts() {
        let (mut delta, mut touched, mut row) = ([0; 10], Vec::new(), Vec::new());
        let mut of = |before: &[u16], after: &[u16]| {
            super::row_delta(before.iter().zip(after), &mut delta, &mut touched, &mut row);
            assert_eq!((delta, touched.len()), ([0; 10], 0));
            row.clone()
        };
        assert_eq!(of(&[5, 1, 1, 2, 9], &[1, 5, 3, 2, 3]), [(1, -1), (3, 2), (9, -1)]);
        assert_eq!(of(&[1, 2], &[2, 1]), []);
        // Topic 4 goes up, back to 0, and down.
        assert_eq!(of(&[1, 4, 4], &[4, 2, 2]), [(1, -1), (2, 2), (4, -1)]);
    }
}
