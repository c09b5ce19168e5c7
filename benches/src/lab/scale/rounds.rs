//! Duration of an epoch whose groups of partitions differ in weight.
//!
//! In round r shard s has group (r + ⌊s R / S⌋) mod R, and a round ends when the last shard has
//! finished it, so each round takes as long as the heaviest group that a shard has in it. With a
//! staleness of x a shard starts round r when round r − x − 1 has ended.

/// Simulated epochs; the last one is reported.
const EPOCHS: usize = 3;

/// Seconds per epoch. `groups` has the seconds of a shard for each group; `beside` is the fixed
/// cost of a round.
pub(super) fn seconds(groups: &[f64], shards: u32, staleness: u16, beside: f64) -> f64 {
    let rounds = groups.len();
    // Shards that start with the same group behave equally.
    let kinds = rounds.min(shards as usize);
    let first = |kind: usize| match kinds {
        _ if kinds == rounds => kind,
        _ => kind * rounds / kinds,
    };
    let staleness = usize::from(staleness);
    let mut done = vec![0.0f64; kinds];
    let mut ends: Vec<f64> = Vec::with_capacity(EPOCHS * rounds);
    for round in 0..EPOCHS * rounds {
        let begun = round.checked_sub(staleness + 1).map_or(0.0, |before| ends[before]);
        for (kind, done) in done.iter_mut().enumerate() {
            *done = done.max(begun) + groups[(round + first(kind)) % rounds];
        }
        let last = done.iter().copied().fold(0.0, f64::max);
        let before = ends.last().copied().unwrap_or(0.0);
        // INVARIANT: rounds end in order.
        ends.push(last.max(before) + beside);
    }
    ends[EPOCHS * rounds - 1] - ends[(EPOCHS - 1) * rounds - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
    }

    #[test]
    fn a_round_takes_as_long_as_its_heaviest_group() {
        // Two shards, two groups: one of them always has the heavy group.
        near(seconds(&[3.0, 1.0], 2, 0, 0.5), 2.0 * 3.5);
        // A single shard never waits.
        near(seconds(&[3.0, 1.0], 1, 0, 0.5), 5.0);
        near(seconds(&[4.0], 100, 0, 0.25), 4.25);
    }

    #[test]
    fn staleness_lets_shards_continue() {
        let groups = [5.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        near(seconds(&groups, 6, 0, 0.0), 30.0);
        let stale = seconds(&groups, 6, 4, 0.0);
        assert!((10.0..20.0).contains(&stale), "{stale}");
    }
}
