//! Assignment of shards to workers, which may change while a run is on: results depend on shards alone.

use std::sync::Arc;

use crate::config::ConfigError;

/// Assignment of shards to workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assignment {
    /// Each worker has a run of consecutive shards, and about as many as the others.
    #[default]
    Runs,
    /// Worker of each shard, for example from [`assign`](crate::locality::assign).
    Each(Arc<[u32]>),
}

impl From<Vec<u32>> for Assignment {
    fn from(workers: Vec<u32>) -> Self {
        Self::Each(workers.into())
    }
}

impl Assignment {
    /// Checks that every shard has a worker that exists, and that every worker has a shard.
    pub(super) fn check(&self, shards: u16, workers: u32) -> Result<(), ConfigError> {
        let Self::Each(of) = self else { return Ok(()) };
        if of.len() != usize::from(shards) {
            return Err(ConfigError::AssignedShards { found: of.len(), shards });
        }
        let mut idle = vec![true; workers as usize];
        for (shard, &worker) in of.iter().enumerate() {
            let idle = idle.get_mut(worker as usize);
            *idle.ok_or(ConfigError::UnknownWorker { shard, worker, workers })? = false;
        }
        match idle.iter().position(|&idle| idle) {
            Some(worker) => Err(ConfigError::WorkerWithoutShards { worker: worker as u32 }),
            None => Ok(()),
        }
    }

    /// Shards of a worker, ascending.
    pub(super) fn shards(&self, worker: u32, shards: u16, workers: u32) -> Vec<u16> {
        match self {
            Self::Runs => {
                let first = |worker: u32| {
                    (u64::from(worker) * u64::from(shards) / u64::from(workers)) as u16
                };
                (first(worker)..first(worker + 1)).collect()
            }
            Self::Each(of) => {
                let own = (0..shards).zip(of.iter()).filter(|(_, of)| **of == worker);
                own.map(|(shard, _)| shard).collect()
            }
        }
    }
}

/// The worker of each shard in an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Assigned(pub Vec<u32>);

impl Assigned {
    /// Shards of a worker, ascending.
    pub fn shards(&self, worker: u32) -> Vec<u16> {
        let own = (0..).zip(&self.0).filter(|(_, of)| **of == worker);
        own.map(|(shard, _)| shard).collect()
    }

    /// Gives the shards to these workers, numbers ascending: about equally many to each, and as few as
    /// possible to another one than before. There must be a worker, and at most one per shard.
    pub fn among(&self, workers: &[u32]) -> Self {
        let shards = self.0.len();
        let mut kept: Vec<(u32, Vec<u16>)> =
            workers.iter().map(|&worker| (worker, self.shards(worker))).collect();
        // Workers that have the most keep one more, if not all can have the same number.
        kept.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
        let (each, more) = (shards / kept.len(), shards % kept.len());
        let mut all: Vec<Option<u32>> = vec![None; shards];
        let mut missing: Vec<(u32, usize)> = Vec::new();
        for (index, (worker, own)) in kept.into_iter().enumerate() {
            let quota = each + usize::from(index < more);
            own.iter().take(quota).for_each(|&shard| all[usize::from(shard)] = Some(worker));
            missing.push((worker, quota.saturating_sub(own.len())));
        }
        missing.sort_unstable();
        let mut takers =
            missing.into_iter().flat_map(|(worker, number)| std::iter::repeat_n(worker, number));
        let mut taker = || takers.next().expect("quotas add up to the shards");
        Self(all.into_iter().map(|worker| worker.unwrap_or_else(&mut taker)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shards_are_shared_evenly_and_few_move(
            before in prop::collection::vec(0..9u32, 1..40),
            workers in prop::collection::btree_set(0..9u32, 1..9),
        ) {
            let workers: Vec<u32> = workers.into_iter().take(before.len()).collect();
            let before = Assigned(before);
            let now = before.among(&workers);
            prop_assert_eq!(now.0.len(), before.0.len());
            let numbers = workers.iter().map(|&worker| now.shards(worker).len());
            prop_assert_eq!(numbers.clone().sum::<usize>(), before.0.len());
            let (most, least) = (numbers.clone().max().unwrap(), numbers.min().unwrap());
            prop_assert!(least > 0 && most <= least + 1);
            // A worker gets shards of others only if it keeps its own.
            for &worker in &workers {
                let (old, new) = (before.shards(worker), now.shards(worker));
                let stay = new.iter().filter(|shard| old.contains(shard)).count();
                prop_assert!(stay == new.len() || stay == old.len());
            }
            prop_assert_eq!(now.among(&workers), now);
        }
    }

    #[test]
    fn a_worker_that_comes_takes_a_share_of_each() {
        let two = Assigned(vec![0, 0, 0, 0, 1, 1, 1, 1]);
        let four = two.among(&[0, 1, 2, 3]);
        assert_eq!(four.0, [0, 0, 2, 2, 1, 1, 3, 3]);
        assert_eq!(four.among(&[2]).0, [2; 8]);
        assert_eq!(four.among(&[0, 1, 3]).0, [0, 0, 0, 1, 1, 1, 3, 3]);
    }

    #[test]
    fn every_shard_has_one_worker_and_every_worker_a_shard() {
        let each = |of: &[u32]| Assignment::from(of.to_vec());
        let of = |assignment: &Assignment, shards, workers| -> Vec<Vec<u16>> {
            assert_eq!(assignment.check(shards, workers), Ok(()));
            (0..workers).map(|worker| assignment.shards(worker, shards, workers)).collect()
        };
        assert_eq!(of(&Assignment::Runs, 5, 2), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(of(&each(&[1, 0, 1, 1, 0]), 5, 2), [vec![1, 4], vec![0, 2, 3]]);
        let refused = |it: &[u32], shards| each(it).check(shards, 2).unwrap_err().to_string();
        assert!(
            refused(&[0, 1], 3).contains("2 shards are assigned to workers, but the run has 3")
        );
        assert!(
            refused(&[0, 2], 2)
                .contains("shard 1 is assigned to worker 2, but the run has 2 workers")
        );
        assert!(refused(&[1, 1], 2).contains("no shard is assigned to worker 0"));
    }
}
