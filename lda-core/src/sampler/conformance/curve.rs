//! Check of the curve: training arrives where the exact sampler does.

use super::{Outcome, Subject, Testable};
use crate::corpus::{BuildError, Corpus, CorpusBuilder};
use crate::random::Xoshiro256PlusPlus;
use crate::sampler::Exact;
use crate::train::{Init, OptionsError, TrainOptions, Trainer};

const TOPICS: u32 = 8;
/// Words of each theme.
const THEME: u32 = 25;
const EPOCHS: u32 = 100;
const SEEDS: u64 = 4;

pub fn check<S: Testable + 'static>(
    subject: &Subject<'_, impl Fn() -> S + Sync>,
) -> Result<Outcome, String> {
    let corpus = themes().map_err(|error| error.to_string())?;
    let start = |options: &TrainOptions| subject.start(&corpus, options, Init::default());
    let found = arrival(subject.claims.seed, start).map_err(|error| error.to_string())?;
    let exact =
        |options: &TrainOptions| Trainer::with_sampler(&corpus, options, Exact, Init::default());
    let expected = arrival(subject.claims.seed, exact).map_err(|error| error.to_string())?;
    let part = (found - expected).abs() / expected.abs();
    if part <= subject.claims.curve {
        return Ok(Outcome::Passed);
    }
    Err(format!(
        "after {EPOCHS} epochs log p(W, Z) is {found:.0}, and {expected:.0} with the exact sampler: a \
         difference of {:.1} %, where {:.1} % is claimed",
        100.0 * part,
        100.0 * subject.claims.curve
    ))
}

/// Mean of log p(W, Z) at the end of runs.
fn arrival<'c>(
    seed: u64,
    start: impl Fn(&TrainOptions) -> Result<Trainer<&'c Corpus>, OptionsError>,
) -> Result<f64, OptionsError> {
    let mut sum = 0.0;
    for number in 0..SEEDS {
        let seed = seed.wrapping_add(number);
        let options = TrainOptions::new(TOPICS).alpha(0.1).seed(seed).warm_up(0);
        let mut trainer = start(&options)?;
        for _ in 0..EPOCHS {
            trainer.epoch();
        }
        sum += trainer.log_joint().total();
    }
    Ok(sum / SEEDS as f64)
}

/// 200 documents of 50 tokens, each of two themes of its own, with a tenth of the words from any theme.
fn themes() -> Result<Corpus, BuildError> {
    let mut rng = Xoshiro256PlusPlus::from_seed(2);
    let mut builder = CorpusBuilder::new().num_words(TOPICS * THEME);
    for _ in 0..200 {
        let own = [rng.below(TOPICS), rng.below(TOPICS)];
        let tokens: Vec<u32> = (0..50)
            .map(|_| {
                let any = rng.below(10) == 0;
                let theme = if any { rng.below(TOPICS) } else { own[rng.below(2) as usize] };
                theme * THEME + rng.below(THEME)
            })
            .collect();
        builder.push_tokens(tokens)?;
    }
    builder.build()
}
