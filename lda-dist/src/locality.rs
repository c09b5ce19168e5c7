//! Which worker has which shards: about as many tokens each, and near where their documents lie (LDA*, section 5.2).
//!
//! Shards are the job's, and the bits of a run do not depend on who has them; how long it takes does, as all wait for
//! the worker that has most, and documents that lie on its own machine need no network. Shards are taken in turn, the
//! largest first: each goes to a worker on a machine that has it, the one with least so far, if that has less than its
//! share of all tokens; or else to whoever has least. So nobody has more than its share and the largest shard, wherever
//! shards lie; where that is not known, nobody has more than 4/3 of what the best division would give (Graham, 1969).
//!
//! LDA* takes, of the workers that are near, the one that has most blocks of the same machines. That fills one worker
//! while others on the same machines have nothing, and they get what lies elsewhere: with 80 shards of 50 to 150
//! tokens, each on 3 of 10 machines, and a worker on each machine, 94 % of the tokens are near so, and 99.7 % as it is
//! done here, where the largest worker has 5 % more than its share and not 12 % (means of 200 such).
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

/// A shard, and where it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardLocation {
    /// Its tokens, or bytes: what of it makes work.
    pub tokens: u64,
    /// Machines that have it; none where that is not known.
    pub hosts: Vec<String>,
}

/// What a worker has so far: tokens, shards, and its number. Of those that have as little the first has the least
/// shards, so that whoever has none comes before all others.
type Share = (u64, usize, u32);

/// The worker of each shard; `workers` are the machines that they are on, as far as that is known. Names of machines
/// are the same in capitals and in small letters. Takes O(shards × log workers) for each machine that has one.
///
/// # Errors
/// [`ConfigError::Workers`], as each is to have a shard.
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
        // As many shards are left as workers without one.
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

/// Tokens that lie on the machine of their worker, where shards are assigned so.
///
/// # Panics
/// If a worker is none of these.
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
    fn shards_go_where_they_lie_until_a_worker_has_its_share() {
        let shards: Vec<ShardLocation> = (0..6).map(|_| held(10, &["A", "b"])).collect();
        // Both of the machine's workers, and the rest to whoever has least.
        assert_eq!(assign(&shards, &on(&["a", "a", ""])).unwrap(), [0, 1, 0, 1, 2, 2]);
        assert_eq!(assign(&shards, &on(&["b", "a", "c"])).unwrap(), [0, 1, 0, 1, 2, 2]);
        // Without knowledge, as without workers near.
        for workers in [["", "", ""], ["x", "y", "z"]] {
            assert_eq!(assign(&shards, &on(&workers)).unwrap(), [0, 1, 2, 0, 1, 2]);
        }
    }

    #[test]
    fn nobody_is_left_without_a_shard() {
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
    fn most_of_what_has_three_copies_is_near() {
        // As in the head of this file.
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
        fn everyone_has_some_and_nobody_much_more((shards, workers) in cases()) {
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
        fn without_knowledge_loads_are_even((shards, workers) in cases()) {
            let unknown = vec![None; workers.len()];
            let assigned = assign(&shards, &unknown).unwrap();
            let loads = loads(&shards, &assigned, workers.len());
            // Each is at most as much larger than the least as the last shard that it was given.
            for (worker, &load) in (0..).zip(&loads) {
                let own = shards.iter().zip(&assigned).filter(|(_, of)| **of == worker);
                let least = own.map(|(shard, _)| shard.tokens).min().unwrap();
                prop_assert!(load - least <= *loads.iter().min().unwrap());
            }
        }

        #[test]
        fn a_shard_is_far_only_where_those_near_have_their_share((shards, workers) in cases()) {
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
                    // Of the last shards each is for a worker without one.
                    let was_last = assigned.iter().filter(|&&of| of == worker).count() == 1;
                    prop_assert!(was_last || loads[other as usize] >= share);
                }
            }
        }
    }
}
