//! Progress of a run on standard error.

use std::time::Instant;

use lda_dist::cluster::{NonZeros, Report, Setup};
use lda_examples::program::ProgramArgs;

use crate::commands::cluster::role::{RoleName, counted};

/// Prints the reports of the master.
#[derive(Debug)]
pub struct Progress<'a> {
    program: &'a ProgramArgs,
    tokens: f64,
    every: u32,
    epochs: u32,
    attempt: u32,
    is_elastic: bool,
    begun: Instant,
}

impl<'a> Progress<'a> {
    /// Progress of a run over `tokens` tokens; prints the division of the work.
    pub fn new(program: &'a ProgramArgs, setup: &Setup, tokens: u64) -> Self {
        let options = &setup.options;
        program.note(&format!(
            "{}, {}; {} shards of documents, {} partitions of words, {} rounds per epoch",
            counted(setup.workers, RoleName::Worker),
            counted(options.servers, RoleName::Server),
            options.shards,
            options.partitions,
            options.rounds
        ));
        Self {
            program,
            tokens: tokens as f64,
            every: setup.evaluate_every.max(1),
            epochs: setup.epochs,
            attempt: 0,
            is_elastic: setup.is_elastic(),
            begun: Instant::now(),
        }
    }

    /// Prints an epoch, if it is evaluated or the last.
    pub fn report(&mut self, report: &Report, perplexity: Option<f64>) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.begun = Instant::now();
        // Also on the first attempt, if it continues from the checkpoint of an earlier run.
        if report.attempt != std::mem::replace(&mut self.attempt, report.attempt)
            && (report.attempt > 1 || report.epoch > 1)
        {
            let workers = counted(report.workers, RoleName::Worker);
            let workers = if self.is_elastic { format!(" with {workers}") } else { String::new() };
            let (attempt, epoch) = (report.attempt, report.epoch - 1);
            self.program
                .note(&format!("attempt {attempt}: the run continues from epoch {epoch}{workers}"));
        }
        if report.epoch.is_multiple_of(self.every) || report.epoch == self.epochs {
            let joint = report.log_joint.map_or(String::new(), |joint| {
                format!("log joint per token {:.4}, ", joint / self.tokens)
            });
            let held_out = perplexity.map_or(String::new(), |perplexity| {
                format!("held-out perplexity {perplexity:.1}, ")
            });
            let full = report.non_zeros.map_or(String::new(), |NonZeros { words, documents }| {
                let [words, documents] = [words, documents].map(|number| number as f64 * 1e-6);
                format!("; {words:.2} M non-zeros of words, {documents:.2} M of documents")
            });
            let share = report.sampled as f64 / self.tokens;
            let sampled = if share < 1.0 {
                format!("; {:.0} % of the tokens sampled", 100.0 * share)
            } else {
                String::new()
            };
            let of_workers = 100.0 / (f64::from(report.workers) * seconds.max(1e-9));
            self.program.note(&format!(
                "epoch {}: {joint}{held_out}{:.2} MB moved, {:.2} M tokens/s; workers waited {:.0} % for servers, {:.0} % for \
                 each other{sampled}{full}",
                report.epoch,
                report.bytes.total() as f64 * 1e-6,
                self.tokens / seconds.max(1e-9) * 1e-6,
                report.waited.servers.as_secs_f64() * of_workers,
                report.waited.master.as_secs_f64() * of_workers,
            ));
        }
    }
}
