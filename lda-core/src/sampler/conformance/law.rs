//! Checks of the law of a sampler, on corpora whose posterior is enumerated.

use rayon::prelude::*;

use super::posterior::{PROBLEMS, Problem, draw};
use super::{Outcome, Subject, Testable};
use crate::corpus::Corpus;
use crate::random::{Xoshiro256PlusPlus, mix};
use crate::train::Init;

/// Epochs of a chain. That of the exact sampler is within 1e-7 of its law after 20 epochs on all of these
/// corpora, by powers of the transition matrix; others may be slower.
const EPOCHS: u32 = 60;
/// Rate of false alarms of each of the two tests of a law.
const RATE: f64 = 5e-7;
/// Quantile of the normal law that is exceeded with this probability.
const SIGMAS: f64 = 4.892;
/// Cells with a smaller expectation are merged: far out in its tail the chi-square law holds only for
/// full cells.
const SMALLEST_CELL: f64 = 25.0;

/// Starts at states of the posterior: after an epoch they must have its law again.
pub fn of_an_epoch<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    if subject.claims.distance.is_some() {
        return Ok(Outcome::Skipped);
    }
    for problem in &PROBLEMS {
        let posterior = problem.posterior();
        let start = |seed: u64| draw(&posterior, &mut Xoshiro256PlusPlus::from_seed(mix(seed)));
        let seen = ends(subject, problem, subject.claims.draws, 1, start)?;
        let difference = difference(&seen, &posterior);
        difference.map_err(|reason| format!("{}: after one epoch, {reason}", problem.name))?;
    }
    Ok(Outcome::Passed)
}

/// Starts with all tokens in topic 0: after many epochs their law must be the posterior, or near it.
pub fn of_a_chain<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    let draws = subject.claims.draws / 4;
    for problem in &PROBLEMS {
        let posterior = problem.posterior();
        let seen = ends(subject, problem, draws, EPOCHS, |_| 0)?;
        let result = match subject.claims.distance {
            None => difference(&seen, &posterior),
            Some(claimed) => too_far(&seen, &posterior, claimed),
        };
        result.map_err(|reason| format!("{}: after {EPOCHS} epochs, {reason}", problem.name))?;
    }
    Ok(Outcome::Passed)
}

/// Counts the states at the ends of runs from `start`, one per seed.
fn ends<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
    problem: &Problem,
    draws: u64,
    epochs: u32,
    start: impl Fn(u64) -> usize + Sync,
) -> Result<Vec<u64>, String> {
    let corpus: Corpus = problem.corpus().map_err(|error| error.to_string())?;
    let first = mix(subject.claims.seed);
    let states: Result<Vec<usize>, String> = (0..draws)
        .into_par_iter()
        .map(|number| {
            let seed = first.wrapping_add(number);
            let topics = problem.assignments(&corpus, start(seed));
            let init = Init { topics: Some(&topics), ..Init::default() };
            let trainer = subject.start(&corpus, &problem.options(seed), init);
            let mut trainer = trainer.map_err(|error| error.to_string())?;
            for _ in 0..epochs {
                trainer.epoch();
            }
            Ok(problem.state(trainer.assignments().as_slice()))
        })
        .collect();
    let mut seen = vec![0; problem.num_states()];
    states?.into_iter().for_each(|state| seen[state] += 1);
    Ok(seen)
}

/// Pearson's chi-square test, and a test of each state for too many draws, which merged cells could hide;
/// together with a false-alarm rate of 1e-6.
fn difference(seen: &[u64], law: &[f64]) -> Result<(), String> {
    let draws = seen.iter().sum::<u64>() as f64;
    for (state, (p, &seen)) in law.iter().zip(seen).enumerate() {
        // Chernoff's bound of a binomial tail, by that of the Poisson law.
        let (mean, seen) = (p * draws, seen as f64);
        let excess = if seen > mean { seen * (seen / mean).ln() - (seen - mean) } else { 0.0 };
        if excess > (law.len() as f64 / RATE).ln() {
            return Err(format!("state {state} was drawn {seen} times, {mean:.1} expected"));
        }
    }
    let mut cells: Vec<(f64, f64)> =
        law.iter().zip(seen).map(|(p, &seen)| (p * draws, seen as f64)).collect();
    cells.sort_by(|a, b| b.0.total_cmp(&a.0));
    let full = cells.partition_point(|cell| cell.0 >= SMALLEST_CELL);
    let rest = cells.drain(full..).fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
    match cells.last_mut() {
        Some(last) if rest.0 < SMALLEST_CELL => *last = (last.0 + rest.0, last.1 + rest.1),
        _ => cells.push(rest),
    }
    let statistic: f64 = cells.iter().map(|(mean, seen)| (seen - mean).powi(2) / mean).sum();
    let limit = quantile((cells.len() - 1) as f64);
    if statistic <= limit {
        return Ok(());
    }
    let far = distance(seen, law);
    Err(format!(
        "{draws} draws have another law than the posterior: chi-square {statistic:.0}, of at most \
         {limit:.0}; total variation {far:.3}"
    ))
}

/// The quantile of the chi-square law that is exceeded with a probability of [`RATE`] at most (Wilson and
/// Hilferty 1931; too large by 16 % with one degree of freedom, by 2 % with ten).
fn quantile(freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom.max(1.0));
    freedom.max(1.0) * (1.0 - spread + SIGMAS * spread.sqrt()).powi(3)
}

/// Total variation between draws and a law.
fn distance(seen: &[u64], law: &[f64]) -> f64 {
    let draws = seen.iter().sum::<u64>() as f64;
    law.iter().zip(seen).map(|(p, &seen)| (p - seen as f64 / draws).abs()).sum::<f64>() / 2.0
}

/// Refuses draws that are further from a law than claimed, with a false-alarm rate of 1e-6: draws of a
/// law have a mean distance of at most Σ √(p (1 - p) / n) / 2 from it, and exceed their mean by t with a
/// probability of at most exp(-2 n t²) (McDiarmid 1989).
fn too_far(seen: &[u64], law: &[f64], claimed: f64) -> Result<(), String> {
    let draws = seen.iter().sum::<u64>() as f64;
    let mean: f64 = law.iter().map(|p| (p * (1.0 - p) / draws).sqrt()).sum::<f64>() / 2.0;
    let slack = mean + (1e6_f64.ln() / (2.0 * draws)).sqrt();
    let found = distance(seen, law);
    if found <= claimed + slack {
        return Ok(());
    }
    Err(format!(
        "{draws} draws are {found:.3} from the posterior in total variation, where {claimed} is claimed \
         and {slack:.3} may be chance"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        // scipy.stats.chi2.isf(5e-7, freedom)
        for (freedom, exact, most) in [
            (1.0, 25.26, 1.17),
            (7.0, 42.09, 1.04),
            (10.0, 48.51, 1.03),
            (31.0, 85.72, 1.01),
            (80.0, 157.78, 1.01),
        ] {
            let found = quantile(freedom);
            assert!((exact..exact * most).contains(&found), "{freedom}: {found} for {exact}");
        }
    }

    #[test]
    fn a_law_is_told_from_others() {
        let law = [0.5, 0.3, 0.2];
        assert!(difference(&[5_010, 2_990, 2_000], &law).is_ok());
        assert!(difference(&[5_300, 2_800, 1_900], &law).is_err());
        assert!(too_far(&[5_300, 2_800, 1_900], &law, 0.01).is_ok(), "0.03 may be chance");
        assert!(too_far(&[6_300, 2_000, 1_700], &law, 0.05).is_err());
        // A rare state has the draws of the one with which it is merged.
        assert!(difference(&[9_900, 60, 40], &[0.99, 0.0099, 0.0001]).is_err());
    }
}
