//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lda_core::train::EpochReport;

/// Resolution of the bar.
const STEPS: u64 = 1000;
/// Time between plain lines if there are no evaluations.
const SILENCE: Duration = Duration::from_secs(10);

/// Display of the progress of a run.
#[derive(Debug)]
pub struct Progress {
    style: Style,
    goal: Goal,
    per_token: Option<f64>,
    /// Last held-out perplexity.
    perplexity: Option<f64>,
    last: Instant,
}

#[derive(Debug)]
enum Style {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

/// Known limits of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goal {
    /// Maximum number of epochs.
    pub epochs: Option<u32>,
    /// Maximum seconds of sampling.
    pub seconds: Option<f64>,
}

impl Goal {
    /// Completed share of the run, 0 to 1; `None` if only the likelihood decides when it stops.
    fn fraction(self, report: &EpochReport) -> Option<f64> {
        let epochs = self.epochs.map(|n| f64::from(report.epoch) / f64::from(n));
        let seconds = self.seconds.map(|n| report.seconds / n);
        epochs.into_iter().chain(seconds).reduce(f64::max).map(|done| done.min(1.0))
    }
}

impl Progress {
    /// A bar if standard error is a terminal, else lines; nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let style = if quiet {
            Style::Quiet
        } else if io::stderr().is_terminal() {
            Style::Bar(ProgressBar::no_length())
        } else {
            Style::Lines
        };
        let goal = Goal::default();
        Self { style, goal, per_token: None, perplexity: None, last: Instant::now() }
    }

    /// Sets the limits of the run.
    pub fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
    }

    /// Prints a line that stays.
    pub fn note(&self, text: &str) {
        let write = || {
            // If standard error is closed, there is nowhere to report that.
            let _ = writeln!(io::stderr(), "{text}");
        };
        match &self.style {
            Style::Quiet => {}
            Style::Lines => write(),
            Style::Bar(bar) => bar.suspend(write),
        }
    }

    /// Shows a step before the first epoch on the bar.
    pub fn busy(&self, text: &str) {
        if let Style::Bar(bar) = &self.style {
            bar.set_style(style("{spinner} {wide_msg}"));
            bar.set_message(text.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Shows an epoch.
    pub fn epoch(&mut self, report: &EpochReport) {
        self.per_token = report.log_joint_per_token().or(self.per_token);
        self.perplexity = report.perplexity.or(self.perplexity);
        match &self.style {
            Style::Quiet => {}
            Style::Lines => {
                if report.log_joint.is_some() || self.last.elapsed() >= SILENCE {
                    self.note(&self.text(report));
                    self.last = Instant::now();
                }
            }
            Style::Bar(bar) => {
                match self.goal.fraction(report) {
                    Some(done) => {
                        bar.set_style(style("[{bar:10}] {wide_msg}").progress_chars("=> "));
                        bar.set_length(STEPS);
                        bar.set_position((done * STEPS as f64) as u64);
                    }
                    None => bar.set_style(style("{spinner} {wide_msg}")),
                }
                bar.set_message(self.text(report));
            }
        }
    }

    /// Removes the bar and prints its last text.
    pub fn finish(&self, report: &EpochReport) {
        if let Style::Bar(bar) = &self.style {
            bar.finish_and_clear();
            self.note(&self.text(report));
        }
    }

    fn text(&self, report: &EpochReport) -> String {
        let of = self.goal.epochs.map(|n| format!("/{n}")).unwrap_or_default();
        let (epoch, rate) = (report.epoch, report.tokens_per_second / 1e6);
        let (sampler, seconds) = (report.sampler, report.seconds);
        let mut text =
            format!("epoch {epoch}{of} by {sampler}, {seconds:.1} s, {rate:.1} M tokens/s");
        if let Some(per_token) = self.per_token {
            text.push_str(&format!(", log likelihood/token {per_token:.4}"));
        }
        if let Some(perplexity) = self.perplexity {
            text.push_str(&format!(", held-out perplexity {perplexity:.1}"));
        }
        text
    }
}

/// Removes the bar, also after an error.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Style::Bar(bar) = &self.style {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are valid")
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::train::Lda;

    use super::*;

    #[test]
    fn the_fraction_is_that_of_the_nearer_limit() {
        let corpus = Corpus::from_tokens([[0, 1]]).unwrap();
        let report = Lda::topics(1).epochs(5).train(&corpus, ()).unwrap().last;
        let fraction = |epochs, seconds| Goal { epochs, seconds }.fraction(&report);
        assert_eq!(fraction(None, None), None);
        assert_eq!(fraction(Some(10), None), Some(0.5));
        assert_eq!(fraction(Some(10), Some(1e9)), Some(0.5));
        assert_eq!(fraction(None, Some(1e-12)), Some(1.0));
    }
}
