//! Samplers of a node, which sample on several threads.
//!
//! Partitions of different shards share nothing that sampling changes at a worker: the rows of a round are
//! those of its start, and each shard has its own documents. Nor do requests to different slices at a server.
//! So such jobs run at the same time, each with a sampler of its own, and the results do not depend on the
//! number of threads.

use std::sync::{Mutex, PoisonError};

use lda_core::counts::TopicIndex;
use lda_core::train::SamplerOptions;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::partition_sampler::PartitionSampler;

/// One sampler per thread, made when it is first needed. Their buffers are reused.
#[derive(Debug)]
pub(crate) struct SamplerPool<T: TopicIndex> {
    topics: u32,
    options: SamplerOptions,
    threads: usize,
    samplers: Vec<PartitionSampler<T>>,
}

impl<T: TopicIndex> SamplerPool<T> {
    /// Samplers for K topics. With one thread all jobs run on the calling one.
    pub fn new(topics: u32, options: SamplerOptions, threads: usize) -> Self {
        Self { topics, options, threads: threads.max(1), samplers: Vec::new() }
    }

    /// Number of jobs that run at the same time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Sets the number of jobs that run at the same time.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Runs all jobs, as many at the same time as there are threads, and returns their results in the same
    /// order. A single job runs on the calling thread, several on the threads of rayon.
    pub fn each<J: Send, R: Send>(
        &mut self,
        jobs: Vec<J>,
        work: impl Fn(J, &mut PartitionSampler<T>) -> R + Sync,
    ) -> Vec<R> {
        while self.samplers.len() < jobs.len().min(self.threads) {
            self.samplers.push(PartitionSampler::new(self.topics, self.options));
        }
        let count = jobs.len();
        let samplers = &mut self.samplers[..count.min(self.threads)];
        if let [sampler] = samplers {
            return jobs.into_iter().map(|job| work(job, sampler)).collect();
        }
        // PERF: a thread that is done takes the next job, and does not wait for the others.
        let jobs = Mutex::new(jobs.into_iter().enumerate());
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let of_thread = |sampler: &mut PartitionSampler<T>| {
            let jobs = std::iter::from_fn(next);
            jobs.map(|(at, job)| (at, work(job, sampler))).collect::<Vec<(usize, R)>>()
        };
        let of_threads = samplers.par_iter_mut().with_max_len(1).map(of_thread);
        let mut results: Vec<(usize, R)> = of_threads.flatten_iter().collect();
        results.sort_unstable_by_key(|result| result.0);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Calls `work` with each item, as many at the same time as there are threads.
    pub fn for_each<I: Send>(&self, items: &mut [I], work: impl Fn(&mut I) + Send + Sync) {
        if self.threads > 1 && items.len() > 1 {
            let work = |items: &mut [I]| items.par_iter_mut().with_max_len(1).for_each(&work);
            items.chunks_mut(self.threads).for_each(work);
        } else {
            items.iter_mut().for_each(work);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.samplers.iter().map(PartitionSampler::memory).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use lda_core::train::SamplerKind;

    use super::*;

    fn pool(threads: usize) -> SamplerPool<u16> {
        SamplerPool::new(3, SamplerKind::FPlus.into(), threads)
    }

    fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap().install(work)
    }

    #[test]
    fn results_are_in_the_order_of_jobs_however_long_each_takes() {
        for threads in [1, 2, 8] {
            let mut pool = pool(threads);
            assert_eq!(pool.each(Vec::<u64>::new(), |job, _| job), [0; 0]);
            for delays in [vec![3], vec![40, 0, 20, 5, 1], vec![0, 10]] {
                let sleep = |delay, _: &mut _| {
                    thread::sleep(Duration::from_millis(delay));
                    delay
                };
                assert_eq!(in_pool(|| pool.each(delays.clone(), sleep)), delays);
            }
            assert_eq!(pool.samplers.len(), threads.min(5));
        }
    }

    #[test]
    fn no_more_jobs_run_at_once_than_there_are_threads() {
        for threads in [1, 3] {
            let mut pool = pool(threads);
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let job = || {
                most.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                thread::sleep(Duration::from_millis(10));
                now.fetch_sub(1, Ordering::SeqCst);
            };
            in_pool(|| pool.each(vec![(); 7], |(), _| job()));
            in_pool(|| pool.for_each(&mut [(); 7], |()| job()));
            assert_eq!(most.into_inner(), threads);
        }
    }

    #[test]
    fn a_single_job_runs_on_the_calling_thread() {
        let mut pool = pool(4);
        assert_eq!(pool.each(vec![()], |(), _| thread::current().id()), [thread::current().id()]);
    }
}
