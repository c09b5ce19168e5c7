//! Samplers of a node, which sample on several threads.
//!
//! Partitions of different shards share nothing that sampling changes at a worker: the rows of a round are
//! those of its start, and each shard has its own documents. Nor do requests to different slices at a server.
//! So such jobs run at the same time, each with a sampler of its own, and the results do not depend on the
//! number of threads.
//!
//! Each job has the number of what it works on, such as its shard. Jobs of the same number run on the same
//! thread, unless another one has nothing left to do: what a job reads is then still in the caches of its
//! processor, and not in those of another.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use lda_core::counts::TopicIndex;
use lda_core::train::SamplerOptions;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::partition_sampler::PartitionSampler;

/// One sampler per thread, made when it is first needed. Their buffers are reused.
#[derive(Debug)]
pub(crate) struct SamplerPool<T: TopicIndex> {
    topics: u32,
    options: SamplerOptions,
    threads: usize,
    samplers: Vec<Mutex<PartitionSampler<T>>>,
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
    /// order. Each job comes with the number of what it works on. A single job runs on the calling thread,
    /// several on the threads of rayon.
    pub fn each<J: Send, R: Send>(
        &mut self,
        jobs: Vec<(usize, J)>,
        work: impl Fn(J, &mut PartitionSampler<T>) -> R + Sync,
    ) -> Vec<R> {
        let threads = jobs.len().min(self.threads);
        while self.samplers.len() < threads {
            self.samplers.push(Mutex::new(PartitionSampler::new(self.topics, self.options)));
        }
        let samplers = &self.samplers[..threads];
        run(jobs, threads, |thread, next| {
            let mut sampler = free_sampler(samplers, thread);
            std::iter::from_fn(next).map(|(at, job)| (at, work(job, &mut sampler))).collect()
        })
    }

    /// Calls `work` with each item, as many at the same time as there are threads. The number of what it works
    /// on is its position.
    pub fn for_each<I: Send>(&self, items: &mut [I], work: impl Fn(&mut I) + Send + Sync) {
        let jobs: Vec<(usize, &mut I)> = items.iter_mut().enumerate().collect();
        let threads = jobs.len().min(self.threads);
        run(jobs, threads, |_, next| {
            std::iter::from_fn(next).map(|(at, item)| (at, work(item))).collect()
        });
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |sampler: &Mutex<PartitionSampler<T>>| {
            sampler.lock().unwrap_or_else(PoisonError::into_inner).memory()
        };
        self.samplers.iter().map(of).sum()
    }
}

/// Runs all jobs on this many threads, and returns their results in the same order. `of_thread` runs the jobs of
/// one thread. It gets the thread's number, and a function that returns the position of the next job, and the job.
/// It returns the position of each job, and its result.
fn run<J: Send, R: Send>(
    jobs: Vec<(usize, J)>,
    threads: usize,
    of_thread: impl Fn(usize, &mut dyn FnMut() -> Option<(usize, J)>) -> Vec<(usize, R)> + Sync,
) -> Vec<R> {
    if jobs.is_empty() {
        return Vec::new();
    }
    if threads == 1 {
        let mut jobs = jobs.into_iter().map(|(_, job)| job).enumerate();
        let results = of_thread(0, &mut || jobs.next());
        return results.into_iter().map(|(_, result)| result).collect();
    }
    let mut queues: Vec<VecDeque<(usize, J)>> = (0..threads).map(|_| VecDeque::new()).collect();
    for (at, (number, job)) in jobs.into_iter().enumerate() {
        queues[number % threads].push_back((at, job));
    }
    let queues = Mutex::new(queues);
    let next = |thread: usize| {
        let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues[thread].pop_front().or_else(|| {
            // PERF: a thread that is done takes a job of another, and does not wait for it.
            queues.iter_mut().max_by_key(|queue| queue.len())?.pop_back()
        })
    };
    let on_thread = |at: usize| {
        let thread = rayon::current_thread_index().unwrap_or(at) % threads;
        of_thread(thread, &mut || next(thread))
    };
    let each = (0..threads).into_par_iter().with_max_len(1).map(on_thread);
    let mut results: Vec<(usize, R)> = each.flatten_iter().collect();
    results.sort_unstable_by_key(|result| result.0);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The sampler of a thread, or one that no thread uses. Not more threads call this at the same time than there
/// are samplers.
fn free_sampler<T: TopicIndex>(
    samplers: &[Mutex<PartitionSampler<T>>],
    thread: usize,
) -> MutexGuard<'_, PartitionSampler<T>> {
    let own_first = samplers[thread..].iter().chain(&samplers[..thread]);
    let free = own_first.filter_map(|sampler| match sampler.try_lock() {
        Ok(sampler) => Some(sampler),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    });
    free.into_iter().next().expect("one sampler per thread")
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
            assert_eq!(pool.each(Vec::<(usize, u64)>::new(), |job, _| job), [0; 0]);
            for delays in [vec![3], vec![40, 0, 20, 5, 1], vec![0, 10]] {
                let sleep = |delay, _: &mut _| {
                    thread::sleep(Duration::from_millis(delay));
                    delay
                };
                // Jobs of different numbers, in no order, and jobs of the same one.
                for numbers in [[3, 1, 2, 0, 1], [7; 5]] {
                    let jobs = numbers.into_iter().zip(delays.clone()).collect();
                    assert_eq!(in_pool(|| pool.each(jobs, sleep)), delays);
                }
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
            in_pool(|| pool.each((0..7).map(|at| (at, ())).collect(), |(), _| job()));
            in_pool(|| pool.for_each(&mut [(); 7], |()| job()));
            assert_eq!(most.into_inner(), threads);
        }
    }

    #[test]
    fn a_single_job_runs_on_the_calling_thread() {
        let mut pool = pool(4);
        assert_eq!(
            pool.each(vec![(5, ())], |(), _| thread::current().id()),
            [thread::current().id()]
        );
    }
}
