//! Ranges of words of about equal cost, and greedy assignment to servers: the two steps of LDA*
//! (section 4.2).

use std::collections::BTreeSet;

/// Sum of costs, saturating.
pub(super) fn total(costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(0, u64::saturating_add)
}

/// Cuts words into at most `partitions` ranges of about equal cost, and at least `least` if there
/// are as many words. Each range takes words until it has its share of the remaining cost, or until
/// one word more would take it further from that share. Returns the starts of the ranges, and V.
pub(super) fn equal_costs(costs: &[u64], partitions: u32, least: u32) -> Vec<u32> {
    let words = costs.len();
    let mut left = total(costs.iter().copied());
    let mut starts = vec![0];
    let mut begin = 0;
    for open in (1..=partitions as usize).rev() {
        if begin == words {
            break;
        }
        // Words that must be left so that `least` ranges come out in the end.
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
    // The last range takes the words that are left.
    *starts.last_mut().expect("starts has an element") = words as u32;
    starts
}

/// Cost of each range.
pub(super) fn loads_of(costs: &[u64], starts: &[u32]) -> Vec<u64> {
    let load = |range: &[u32]| total(costs[range[0] as usize..range[1] as usize].iter().copied());
    starts.windows(2).map(load).collect()
}

/// Indices of the loads, the largest load first; of equal loads the one with the lower index.
pub(super) fn costliest_first(loads: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(loads[at]), at));
    order
}

/// Server of each load: takes the largest load first, and places each on the server with the least
/// load so far; of equal servers the one with fewer loads, then the one with the lower number.
pub(super) fn place_greedily(loads: &[u64], servers: u32) -> Vec<u32> {
    // (load, number of loads, server): of servers with equal load, one with fewer loads goes first,
    // so that loads of 0 are spread as well.
    let mut free: BTreeSet<(u64, u32, u32)> = (0..servers).map(|server| (0, 0, server)).collect();
    let mut homes = vec![0; loads.len()];
    for at in costliest_first(loads) {
        let (load, count, server) = free.pop_first().expect("there is a server");
        homes[at] = server;
        free.insert((load.saturating_add(loads[at]), count + 1, server));
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_loads_are_placed_first() {
        assert_eq!(place_greedily(&[1, 1, 2], 2), [1, 1, 0]);
        assert_eq!(place_greedily(&[0, 5, 0], 3), [1, 0, 2], "every server has one");
    }
}
