//! Assignment of shards to workers.

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

#[cfg(test)]
mod tests {
    use super::*;

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
