//! Ranges of words of about equal cost, and what is costliest first: LDA*'s two steps (section 4.2).

use std::collections::BTreeSet;

/// What these cost together: as much as there is room for, where it is more.
pub(super) fn total(costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(0, u64::saturating_add)
}

/// Cuts words into ranges of about equal cost: each takes words until it has its share of what is left, or would be
/// further from it with one more.
pub(super) fn equal_costs(costs: &[u64], partitions: u32, least: u32) -> Vec<u32> {
    let words = costs.len();
    let mut left = total(costs.iter().copied());
    let mut starts = vec![0];
    let mut begin = 0;
    for open in (1..=partitions as usize).rev() {
        if begin == words {
            break;
        }
        // Each server is to have one.
        let needed = (least as usize).saturating_sub(starts.len());
        let share = left / open as u64;
        let (mut end, mut cost) = (begin, 0u64);
        while end < words - needed.min(words - begin - 1) {
            let more = cost.saturating_add(costs[end]);
            let over = more.saturating_sub(share);
            if open > 1 && end > begin && over > share.saturating_sub(cost) {
                break;
            }
            (cost, end) = (more, end + 1);
            if open > 1 && cost >= share && share > 0 {
                break;
            }
        }
        left = left.saturating_sub(cost);
        begin = end;
        starts.push(end as u32);
    }
    *starts.last_mut().expect("there is a first") = words as u32;
    starts
}

/// What each range costs.
pub(super) fn loads_of(costs: &[u64], starts: &[u32]) -> Vec<u64> {
    let load = |range: &[u32]| total(costs[range[0] as usize..range[1] as usize].iter().copied());
    starts.windows(2).map(load).collect()
}

/// Numbers of loads.
pub(super) fn costliest_first(loads: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(loads[at]), at));
    order
}

/// The costliest first, each to the server that has least; of equals the one with the lowest number.
pub(super) fn least_first(loads: &[u64], servers: u32) -> Vec<u32> {
    // Who has fewer partitions is taken before one that has as little by more.
    let mut free: BTreeSet<(u64, u32, u32)> = (0..servers).map(|server| (0, 0, server)).collect();
    let mut homes = vec![0; loads.len()];
    for at in costliest_first(loads) {
        let (load, count, server) = free.pop_first().expect("there are servers");
        homes[at] = server;
        free.insert((load.saturating_add(loads[at]), count + 1, server));
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costliest_are_placed_first() {
        assert_eq!(least_first(&[1, 1, 2], 2), [1, 1, 0]);
        assert_eq!(least_first(&[0, 5, 0], 3), [1, 0, 2], "and each has one");
    }
}
