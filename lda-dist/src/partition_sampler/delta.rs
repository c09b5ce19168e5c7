//! Delta of a word's row: the changes of its counts when its tokens change topics.

use lda_core::counts::TopicIndex;

/// Scratch memory with which deltas of rows are computed.
pub(super) struct Delta {
    /// Change of each topic's count: length K, zero between rows.
    changes: Vec<i32>,
    /// Topics whose entry of `changes` was written.
    touched: Vec<u32>,
    row: Vec<(u32, i32)>,
}

impl Delta {
    /// Scratch memory for K topics.
    pub fn new(topics: u32) -> Self {
        Self { changes: vec![0; topics as usize], touched: Vec::new(), row: Vec::new() }
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        size_of::<i32>() * self.changes.capacity()
            + size_of::<u32>() * self.touched.capacity()
            + size_of::<(u32, i32)>() * self.row.capacity()
    }

    /// Delta of one row as (topic, change), topics ascending, without zeros, given the topics of
    /// its tokens before and after.
    pub fn of_row<'a, T: TopicIndex>(
        &mut self,
        tokens: impl Iterator<Item = (&'a T, &'a T)>,
    ) -> &[(u32, i32)] {
        let Self { changes, touched, row } = self;
        let changed = tokens.filter(|(before, after)| before != after);
        for (topic, by) in
            changed.flat_map(|(before, after)| [(before.get(), -1), (after.get(), 1)])
        {
            let entry = &mut changes[topic as usize];
            if *entry == 0 {
                touched.push(topic);
            }
            *entry += by;
        }
        touched.sort_unstable();
        row.clear();
        // INVARIANT: a topic whose change went back to 0 in between is in `touched` twice. `take`
        // leaves 0 for its second occurrence, which the filter drops.
        let all =
            touched.drain(..).map(|topic| (topic, std::mem::take(&mut changes[topic as usize])));
        row.extend(all.filter(|&(_, by)| by != 0));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::Delta;

    #[test]
    fn a_delta_is_the_difference_of_the_counts() {
        let mut delta = Delta::new(10);
        let mut of = |before: &[u16], after: &[u16]| {
            let row = delta.of_row(before.iter().zip(after)).to_vec();
            assert_eq!((&*delta.changes, delta.touched.len()), (&[0; 10][..], 0));
            row
        };
        assert_eq!(of(&[5, 1, 1, 2, 9], &[1, 5, 3, 2, 3]), [(1, -1), (3, 2), (9, -1)]);
        assert_eq!(of(&[1, 2], &[2, 1]), []);
        // Topic 4 goes up, back to 0, and down.
        assert_eq!(of(&[1, 4, 4], &[4, 2, 2]), [(1, -1), (2, 2), (4, -1)]);
    }
}
