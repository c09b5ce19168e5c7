//! What tokens' words gain when their topics change.

use lda_core::counts::TopicIndex;

/// (topic, tokens gained), topics ascending. `gained` is zeros, K of them.
pub(super) fn row_delta<'a, T: TopicIndex>(
    tokens: impl Iterator<Item = (&'a T, &'a T)>,
    gained: &mut [i32],
    touched: &mut Vec<u32>,
    row: &mut Vec<(u32, i32)>,
) {
    let changed = tokens.filter(|(before, after)| before != after);
    for (topic, by) in changed.flat_map(|(before, after)| [(before.get(), -1), (after.get(), 1)]) {
        let gained = &mut gained[topic as usize];
        if *gained == 0 {
            touched.push(topic);
        }
        *gained += by;
    }
    touched.sort_unstable();
    row.clear();
    // One that was back at 0 in between is there twice, and is 0 the second time.
    let all = touched.drain(..).map(|topic| (topic, std::mem::take(&mut gained[topic as usize])));
    row.extend(all.filter(|&(_, by)| by != 0));
}

#[cfg(test)]
mod tests {
    #[test]
    fn gains_are_what_topics_have_more_than_before() {
        let (mut gained, mut touched, mut row) = ([0; 10], Vec::new(), Vec::new());
        let mut gains = |before: &[u16], after: &[u16]| {
            super::row_delta(before.iter().zip(after), &mut gained, &mut touched, &mut row);
            assert_eq!((gained, touched.len()), ([0; 10], 0));
            row.clone()
        };
        assert_eq!(gains(&[5, 1, 1, 2, 9], &[1, 5, 3, 2, 3]), [(1, -1), (3, 2), (9, -1)]);
        assert_eq!(gains(&[1, 2], &[2, 1]), []);
        // Topic 4 goes up, back to 0, and down.
        assert_eq!(gains(&[1, 4, 4], &[4, 2, 2]), [(1, -1), (2, 2), (4, -1)]);
    }
}
