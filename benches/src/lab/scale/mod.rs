//! Projects what an epoch takes on a cluster that is not available: bytes, memory and time of a
//! thousand workers and servers.
//!
//! A model of a corpus (word frequencies, document lengths) gives the words of a shard. Rows and
//! documents are drawn from it and measured by the real encoder, and the route of each word is
//! chosen by the code that chooses it in a real run. The number of topics per row after some
//! epochs, and the work a core does per second, are measured on this machine. The same model
//! predicts runs that can be made here, and the tables show its errors.
//!
//! ```toml
//! topics = 8000
//! machines = [10, 100, 1000]         # each with a worker and a server
//!
//! [corpus]                           # the corpus that is not available
//! documents = 2_200_000_000
//! words = 3_911_813
//! tokens = 308_000_000_000
//!
//! [measure]
//! corpus = "reddit"                  # source of rows and rates; predictions are checked against it
//! after = [0, 30, 100]
//! check = [{ shards = 300 }]
//!
//! [arm.symmetric]
//! routing = "pull"
//! [arm.asymmetric]
//! ```
//!
//! Measurements are cached, so arms and machines can be changed without measuring again.

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
use lda_dist::config::{Options, Routing};
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

/// Shards and rounds of the run whose rows are measured. Few shards keep counts fresh.
const LOOKED_AT: u16 = 4;

/// Measurements that a projection starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Tokens of the measured corpus.
    pub tokens: u64,
    /// Occurrences of a word in a document that contains it.
    pub repeats: Repeats,
    /// Row statistics, one per measured epoch.
    pub states: Vec<State>,
    /// Sampling rates of the first epoch and of a later one.
    pub rates: Vec<Rates>,
    /// Predictions compared with runs.
    pub checked: Vec<Checked>,
    /// Machine and load of each measurement.
    pub places: Vec<Place>,
}

/// Machine and load of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// Name of the measurement.
    pub what: String,
    /// Machine it ran on.
    pub machine: Machine,
    /// Load average over one minute, at the start and at the end.
    pub load: (f64, f64),
}

/// Cached measurement and the plan it belongs to.
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
    /// Number of machines.
    pub machines: u16,
    /// Whether the number of tokens grows with the machines; otherwise every line has the whole
    /// corpus.
    pub grows: bool,
    /// Tokens of the corpus of this line.
    pub tokens: f64,
    /// Epochs completed before the projected one.
    pub after: u32,
    /// Number of shards.
    pub shards: u16,
    /// Number of servers.
    pub servers: u32,
    /// Number of word partitions.
    pub partitions: u32,
    /// Rounds per epoch.
    pub rounds: u16,
    /// Staleness of counts, in rounds.
    pub staleness: u16,
    /// The projection.
    pub takes: Projected,
}

/// Lines of the largest number of machines, which has all tokens.
fn largest<'a>(plan: &ScalePlan, lines: &'a [Line]) -> Vec<&'a Line> {
    let most = plan.machines.last();
    lines.iter().filter(|line| Some(&line.machines) == most).collect()
}

/// Measures what is not cached, projects, writes tables and plots, and returns the files. `tell`
/// receives progress lines.
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

/// Returns the cached measurement if its plan is equal, otherwise measures and caches.
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

/// Returns the same documents in random order.
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

/// Measures rows after the given epochs.
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

/// Projects every arm on every number of machines.
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
            // At the largest number of machines both modes are the same.
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
                )?
                .of_cluster();
                // Fewer machines are projected only for the last measured epoch.
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
                        staleness: options.sync.staleness(),
                        takes,
                    });
                }
                tell(&format!("projected: {name}, {machines} machines, {of_tokens} tokens"));
            }
        }
    }
    Ok(lines)
}
