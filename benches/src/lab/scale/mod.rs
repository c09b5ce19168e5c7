//! What a cluster that is not at hand would take: bytes, memory and time an epoch of a thousand workers and servers.
//!
//! A model of a corpus (frequencies of words, lengths of documents) says which words a shard has; rows and documents
//! are drawn and measured by the encoder itself, and the way of each word is chosen by the code that chooses it in a
//! run. How many topics rows have after some epochs, and what a core does in a second, is measured here. The same model
//! foretells runs that can be had, and the tables say by how much it errs.
//!
//! ```toml
//! topics = 8000
//! machines = [10, 100, 1000]         # each with a worker and a server
//!
//! [corpus]                           # the one that is not at hand
//! documents = 2_200_000_000
//! words = 3_911_813
//! tokens = 308_000_000_000
//!
//! [measure]
//! corpus = "reddit"                  # rows of its words, rates, and what the model is held against
//! after = [0, 30, 100]
//! check = [{ shards = 300 }]
//!
//! [arm.symmetric]
//! routing = "pull"
//! [arm.asymmetric]
//! ```
//!
//! What was measured is kept, so that arms and machines can be changed without measuring again.

mod check;
mod draw;
mod limits;
mod observe;
mod plan;
mod project;
mod rates;
mod report;
mod rng;
mod rounds;
mod sizes;
mod state;
mod traffic_model;
mod words;

use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_dist::together::{Options, Routing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::files::{create_directory, write_bytes};
use super::machine::load;
use super::{LabError, Machine};
pub use check::Checked;
use check::Checking;
use observe::Run;
use plan::MeasurePlan;
pub use plan::{CheckPlan, CorpusPlan, MachinePlan, ScaleArm, ScalePlan};
use project::Division;
pub use project::{BytesByKind, Link, Projected, Time};
use rates::Measuring;
pub use rates::Rates;
use rng::Rng;
use sizes::Sizes;
pub use state::{Curve, State};
pub use words::Repeats;
use words::{Lengths, frequencies};

/// Shards of the run of which rows are looked at, and as many rounds, so that counts are fresh.
const LOOKED_AT: u16 = 4;

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Tokens of the corpus.
    pub tokens: u64,
    /// How often a document that has a word has it.
    pub repeats: Repeats,
    /// Rows, by epochs.
    pub states: Vec<State>,
    /// Rates, of the first epoch and of another.
    pub rates: Vec<Rates>,
    /// The model against runs.
    pub checked: Vec<Checked>,
    /// Where what was measured, and how many processes wanted a core before and after.
    pub places: Vec<Place>,
}

/// Where something was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// What.
    pub what: String,
    /// Where.
    pub machine: Machine,
    /// Processes that wanted a core in the minute before it began, and before it ended.
    pub load: (f64, f64),
}

/// What was measured for a plan.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    of: String,
    place: Place,
    what: T,
}

/// One line of the projection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Line {
    /// Name of the arm.
    pub arm: String,
    /// Machines.
    pub machines: u16,
    /// Whether tokens grow with the machines, or are those of the whole corpus on few machines too.
    pub grows: bool,
    /// Tokens.
    pub tokens: f64,
    /// Epochs that were done before.
    pub after: u32,
    /// How it is divided.
    pub shards: u16,
    /// Servers.
    pub servers: u32,
    /// Partitions.
    pub partitions: u32,
    /// Rounds.
    pub rounds: u16,
    /// Slack.
    pub slack: u16,
    /// What it takes.
    pub takes: Projected,
}

/// Measures what is not yet, projects, and writes tables and plots; returns the files. `tell` is given lines for
/// people.
///
/// # Errors
/// [`LabError`].
pub fn run(
    plan: &ScalePlan,
    directory: &Path,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, LabError> {
    plan.check()?;
    let measured = measure(plan, directory, again, tell)?;
    let lines = project(plan, &measured, tell)?;
    report::write(plan, &measured, &lines, directory)
}

/// What was measured before, if it was of the same; or is now.
fn kept<T: Serialize + DeserializeOwned>(
    directory: &Path,
    name: &str,
    of: &str,
    again: bool,
    places: &mut Vec<Place>,
    make: impl FnOnce() -> Result<T, LabError>,
) -> Result<T, LabError> {
    let path = directory.join("runs").join(format!("{name}.json"));
    let found = std::fs::read(&path).ok().filter(|_| !again);
    let found = found.and_then(|bytes| serde_json::from_slice::<Kept<T>>(&bytes).ok());
    if let Some(found) = found.filter(|found| found.of == of) {
        places.push(found.place);
        return Ok(found.what);
    }
    let before = load().unwrap_or(0.0);
    let what = make()?;
    let load = (before, load().unwrap_or(0.0));
    let place = Place { what: name.to_owned(), machine: Machine::detect(), load };
    let kept = Kept { of: of.to_owned(), place, what };
    create_directory(&directory.join("runs"))?;
    let bytes = serde_json::to_vec_pretty(&kept)
        .map_err(|error| LabError::Syntax { path: path.clone(), message: error.to_string() })?;
    write_bytes(&path, &bytes)?;
    places.push(kept.place);
    Ok(kept.what)
}

fn measure(
    plan: &ScalePlan,
    directory: &Path,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Measured, LabError> {
    let MeasurePlan { after, rate_corpora, rate_epochs, rate_shards, check_epochs, check, .. } =
        &plan.measure;
    let Some(name) = &plan.measure.corpus else {
        return Err(LabError::Value {
            key: "measure.corpus",
            value: "not given".to_owned(),
            remedy: "name one".to_owned(),
        });
    };
    let (topics, seed, cache) = (plan.topics, plan.seed, directory.join("corpora"));
    let mut places = Vec::new();
    let corpus = Corpus::read(&name.file(&cache)?)?;
    let of = format!("{name} {topics} {seed}");
    let look_at = || look(&corpus, topics, seed, after, tell);
    let states = format!("{of} {after:?}");
    let states: Vec<State> = kept(directory, "rows", &states, again, &mut places, look_at)?;
    let own = vec![name.clone()];
    let mut rates = Vec::new();
    for name in if rate_corpora.is_empty() { &own } else { rate_corpora } {
        let of_rates = format!("{name} {topics} {seed} {rate_epochs} {rate_shards}");
        let measure = || {
            let corpus = &Corpus::read(&name.file(&cache)?)?;
            let (many, epochs) = (*rate_shards, *rate_epochs);
            Measuring { name, corpus, topics, seed, many, epochs }.rates(&states, tell)
        };
        let file = format!("rates-{name}");
        rates.extend::<Vec<Rates>>(kept(directory, &file, &of_rates, again, &mut places, measure)?);
    }
    let mut checked = Vec::new();
    for of in check {
        let name = of.corpus.as_ref().unwrap_or(name);
        let servers = of.servers.unwrap_or(of.shards.into());
        let file = format!("check-{name}-{}-{servers}-{}", of.shards, of.rounds);
        let what = format!("{name} {topics} {seed} {of:?} {check_epochs:?}");
        let run = || {
            let corpus = Corpus::read(&name.file(&cache)?)?;
            let corpus = if of.shuffled { shuffle(&corpus, seed)? } else { corpus };
            let checking = Checking { name, corpus: &corpus, topics, seed, rates: &rates };
            let partitions = servers.min(corpus.num_words() as u32);
            let rounds = of.rounds.min(u16::try_from(partitions).unwrap_or(u16::MAX));
            let cut = Options { shards: of.shards, rounds, ..Options::default() };
            let options = Options { servers: partitions, partitions, ..cut };
            let both = [Routing::Pull, Routing::Cheapest];
            let both = both.map(|routing| Options { routing, ..options });
            let both = both.iter().map(|options| checking.check(options, check_epochs, tell));
            Ok(both.collect::<Result<Vec<_>, LabError>>()?.concat())
        };
        checked.extend::<Vec<Checked>>(kept(directory, &file, &what, again, &mut places, run)?);
    }
    let (tokens, repeats) = (corpus.num_tokens(), Repeats::of(&corpus));
    Ok(Measured { tokens, repeats, states, rates, checked, places })
}

/// The same documents in another order.
fn shuffle(corpus: &Corpus, seed: u64) -> Result<Corpus, LabError> {
    let mut order: Vec<usize> = (0..corpus.num_documents()).collect();
    let mut rng = Rng::new(seed, 6);
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at as u32 + 1) as usize);
    }
    let tokens = |document: usize| {
        let pairs = corpus.document(document).iter();
        pairs.flat_map(|(word, count)| std::iter::repeat_n(word, count as usize)).collect()
    };
    let documents = order.into_iter().map(tokens);
    Ok(Corpus::from_tokens(documents.collect::<Vec<Vec<u32>>>())?)
}

/// Rows after these epochs.
fn look(
    corpus: &Corpus,
    topics: u32,
    seed: u64,
    after: &[u32],
    tell: &dyn Fn(&str),
) -> Result<Vec<State>, LabError> {
    let parts = LOOKED_AT.min(u16::try_from(corpus.num_words()).unwrap_or(u16::MAX));
    let cut =
        Options { shards: parts, partitions: parts.into(), rounds: parts, ..Options::default() };
    let options = Options { routing: Routing::Pull, ..cut };
    let mut run = Run::new(corpus, topics, seed, &options)?;
    let mut rng = Rng::new(seed, 3);
    let mut states = Vec::new();
    for epoch in 0..=after.last().copied().unwrap_or(0) {
        let before = after.contains(&epoch).then(|| run.look(&mut rng));
        let work = run.epoch()?.1;
        tell(&format!("rows: epoch {}, {:.1} CPU s", epoch + 1, work.seconds));
        states.extend(before.map(|before| run.look_back(before)));
    }
    Ok(states)
}

/// All lines.
fn project(
    plan: &ScalePlan,
    measured: &Measured,
    tell: &dyn Fn(&str),
) -> Result<Vec<Line>, LabError> {
    let CorpusPlan { documents, words, tokens, exponent, shift, spread } = plan.corpus;
    let most = plan.machines.last().copied().unwrap_or(1);
    let sizes = measured.states.iter().map(|state| Sizes::new(plan.topics, state, plan.seed));
    let sizes: Vec<Sizes<'_>> = sizes.collect();
    let mut lines = Vec::new();
    for &machines in &plan.machines {
        for grows in [true, false] {
            // The two are the same in the end.
            if machines == most && !grows {
                continue;
            }
            let share = if grows { f64::from(machines) / f64::from(most) } else { 1.0 };
            let of_tokens = (tokens as f64 * share) as u64;
            let each = frequencies(words, of_tokens.max(words.into()), exponent, shift, plan.seed);
            let mean = tokens as f64 / documents as f64;
            let lengths = Lengths::log_normal(documents as f64 * share, mean, spread);
            for (name, arm) in plan.arms() {
                let options = arm.options(machines);
                let division = Division::new(
                    &each,
                    &lengths,
                    &measured.repeats,
                    plan.topics,
                    &options,
                    plan.seed,
                )?;
                // Of few machines only rows of the end.
                let from = if machines == most { 0 } else { sizes.len() - 1 };
                for sizes in &sizes[from..] {
                    let takes = division.project(sizes, &measured.rates, &plan.machine);
                    lines.push(Line {
                        arm: name.to_owned(),
                        machines,
                        grows,
                        tokens: each.iter().map(|&tokens| tokens as f64).sum(),
                        after: sizes.state.after,
                        shards: options.shards,
                        servers: options.servers,
                        partitions: options.partitions,
                        rounds: options.rounds,
                        slack: options.slack,
                        takes,
                    });
                }
                tell(&format!("projected: {name}, {machines} machines, {of_tokens} tokens"));
            }
        }
    }
    Ok(lines)
}
