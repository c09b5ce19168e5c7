//! Plan of a lab run: samplers and baselines × corpora × K × threads × seeds, from a TOML file.
//!
//! ```toml
//! samplers = ["f-plus", "warp"]
//! baselines = ["mallet"]
//! corpora = ["kos", "nytlike@0.1"]
//! topics = [100, 1000]
//! seeds = 5
//! epochs = 300
//! evaluate-every = 5
//! until = 99.8
//!
//! # Overrides for one sampler.
//! [sampler.warp]
//! epochs = 4000
//! evaluate-every = 50
//!
//! # The same sampler again, with other options and a name of its own.
//! [variant.warp-2]
//! sampler = "warp"
//! mh-steps = 2
//!
//! [baseline.mallet]
//! epochs = 1000
//!
//! # Overrides for one corpus.
//! [corpus.kos]
//! seconds = 60.0
//! ```
//!
//! If several tables set an option, the most specific one counts: that of a sampler, variant or
//! baseline before that of the corpus, and that before the plan. `seconds` is a limit: of a corpus'
//! and a method's value the smaller one counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lda_core::train::{SamplerKind, TrainOptions};
use serde::{Deserialize, Serialize};

use super::corpora::CorpusName;
use super::method::{baseline_names, sampler_names};
use super::thresholds::Thresholds;
use super::tuning::{BaselineTuning, CorpusTuning, Seeds, Tuning, Variant, is_name};
use super::{Baseline, Cell, LabError, Method};

/// Limit of the number of runs, against a mistyped number.
const MOST_CELLS: usize = 10_000;

/// Plan of a lab run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    /// Heading of reports. Defaults to the file's name.
    pub name: String,
    /// Samplers.
    pub samplers: Vec<Method>,
    /// Baselines to run next to the samplers.
    pub baselines: Vec<Baseline>,
    /// Corpora.
    pub corpora: Vec<CorpusName>,
    /// Numbers of topics K.
    pub topics: Vec<u32>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Seeds.
    pub seeds: Seeds,
    /// Document-topic prior α per topic. Defaults to 50/K.
    pub alpha: Option<f64>,
    /// Topic-word prior β.
    pub beta: f64,
    /// Largest number of epochs.
    pub epochs: u32,
    /// Limit of the CPU seconds of sampling.
    pub seconds: Option<f64>,
    /// Ends a run at this share of the best likelihood in percent, if thresholds have an entry.
    pub until: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: u32,
    /// Upper bounds of bins of document lengths, ascending, such as [60, 600]. Plots and tables
    /// then show the likelihood of each bin, and of one more bin for longer documents.
    pub length_bins: Vec<u64>,
    /// Share of the documents that are held out for perplexity.
    pub held_out: Option<f64>,
    /// Counts the topics K_d of documents at every evaluation, for plots of λ = K_d × acceptance.
    /// Takes four bytes per token, which the peak memory includes.
    pub complexity: bool,
    /// Computes the likelihood of the words given θ and φ at every evaluation (ZenLDA's figure).
    pub predictive: bool,
    /// Also plots the document part and the word part of the log joint.
    pub parts: bool,
    /// Plots document lengths even for a single corpus; for several corpora they are always
    /// plotted.
    pub lengths: bool,
    /// Timeout of a run in wall-clock seconds, after which it counts as failed. Defaults to 3600
    /// for baselines.
    pub timeout: Option<f64>,
    /// Number of runs at once, each in its own process. They share caches and memory bandwidth, so
    /// more than 1 increases CPU seconds too.
    pub jobs: usize,
    /// Overrides for samplers.
    pub sampler: BTreeMap<String, Tuning>,
    /// Samplers with other options, by name. They come after `samplers`, ordered by name.
    pub variant: BTreeMap<String, Variant>,
    /// Overrides for baselines.
    pub baseline: BTreeMap<String, BaselineTuning>,
    /// Overrides for corpora, each of which must be among `corpora`.
    pub corpus: BTreeMap<CorpusName, CorpusTuning>,
}

/// A method of the plan with its name and options.
struct Entrant {
    method: Method,
    variant: Option<String>,
    tuning: Tuning,
}

/// Effective limit in CPU seconds: the smaller one of the limits of the method and of the corpus,
/// or the plan's if neither is set. So a corpus limited to a minute takes a minute, and one that
/// allows an hour does not lift the ten minutes of a slow baseline.
fn limit(method: Option<f64>, corpus: Option<f64>, plan: Option<f64>) -> Option<f64> {
    match (method, corpus) {
        (Some(method), Some(corpus)) => Some(method.min(corpus)),
        (own, corpus) => own.or(corpus).or(plan),
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            name: "run".to_owned(),
            samplers: vec![SamplerKind::FPlus.into()],
            baselines: Vec::new(),
            corpora: Vec::new(),
            topics: vec![100],
            threads: vec![1],
            seeds: Seeds::Count(1),
            alpha: None,
            beta: 0.01,
            epochs: 100,
            seconds: None,
            until: None,
            evaluate_every: 5,
            length_bins: Vec::new(),
            held_out: None,
            complexity: false,
            predictive: false,
            parts: false,
            lengths: false,
            timeout: None,
            jobs: 1,
            sampler: BTreeMap::new(),
            variant: BTreeMap::new(),
            baseline: BTreeMap::new(),
            corpus: BTreeMap::new(),
        }
    }
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`LabError::Read`], or [`LabError::Syntax`] with line and remedy.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = fs::read_to_string(path).map_err(LabError::read(path))?;
        let mut plan: Self = toml::from_str(&text).map_err(|error| LabError::Syntax {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        if plan.name == Self::default().name {
            let stem = path.file_stem().unwrap_or_default();
            plan.name = stem.to_string_lossy().into_owned();
        }
        Ok(plan)
    }

    /// The cells of the plan, seeds outermost, so that a slow hour of the machine affects all
    /// samplers alike: the first seed of every corpus, then the second of those that have one, and
    /// so on.
    ///
    /// # Errors
    /// [`LabError::Value`] with key, value and remedy.
    pub fn cells(&self, thresholds: &Thresholds) -> Result<Vec<Cell>, LabError> {
        self.check()?;
        let seeds: Vec<Vec<u64>> = self.corpora.iter().map(|c| self.seeds_of(c).list()).collect();
        let mut cells = Vec::new();
        for round in 0..seeds.iter().map(Vec::len).max().unwrap_or(0) {
            for (corpus, seeds) in self.corpora.iter().zip(&seeds) {
                let Some(&seed) = seeds.get(round) else { continue };
                for &topics in &self.topics {
                    for &threads in &self.threads {
                        for entrant in self.entrants() {
                            let cell = self.cell(entrant, corpus, topics, threads, seed);
                            cells.push(self.bounded(cell, thresholds));
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn seeds_of(&self, corpus: &CorpusName) -> &Seeds {
        self.corpus.get(corpus).and_then(|tuning| tuning.seeds.as_ref()).unwrap_or(&self.seeds)
    }

    /// Samplers, then their variants, then baselines.
    fn entrants(&self) -> impl Iterator<Item = Entrant> {
        let samplers = self.samplers.iter().map(|&method| Entrant {
            method,
            variant: None,
            tuning: self.sampler.get(method.name()).cloned().unwrap_or_default(),
        });
        let variants = self.variant.iter().map(|(name, variant)| Entrant {
            method: variant.sampler,
            variant: Some(name.clone()),
            tuning: variant.tuning.clone(),
        });
        let baselines = self.baselines.iter().map(|&baseline| Entrant {
            method: baseline.into(),
            variant: None,
            tuning: self.baseline.get(baseline.name()).cloned().unwrap_or_default().into(),
        });
        samplers.chain(variants).chain(baselines)
    }

    /// Overrides of methods, including those that do not run, and of corpora.
    pub fn tunings(&self) -> impl Iterator<Item = Tuning> {
        let variants = self.variant.values().map(|variant| &variant.tuning);
        let baselines = self.baseline.values().cloned().map(Tuning::from);
        let corpora = self.corpus.values().cloned().map(Tuning::from);
        self.sampler.values().chain(variants).cloned().chain(baselines).chain(corpora)
    }

    fn cell(
        &self,
        entrant: Entrant,
        corpus: &CorpusName,
        topics: u32,
        threads: usize,
        seed: u64,
    ) -> Cell {
        let Entrant { method, variant, tuning } = entrant;
        let here = self.corpus.get(corpus).cloned().unwrap_or_default();
        let evaluate_every = tuning.evaluate_every.or(here.evaluate_every);
        Cell {
            sampler: method,
            variant,
            corpus: corpus.clone(),
            topics,
            threads,
            seed,
            alpha: self.alpha.unwrap_or(50.0 / f64::from(topics)),
            beta: self.beta,
            epochs: tuning.epochs.or(here.epochs).unwrap_or(self.epochs),
            seconds: limit(tuning.seconds, here.seconds, self.seconds),
            until: None,
            evaluate_every: evaluate_every.unwrap_or(self.evaluate_every),
            overrides: tuning.overrides,
            length_bins: self.length_bins.clone(),
            held_out: self.held_out,
            complexity: self.complexity,
            predictive: self.predictive,
        }
    }

    /// Converts the share of the best into a likelihood.
    fn bounded(&self, cell: Cell, thresholds: &Thresholds) -> Cell {
        let Some(share) = self.until else { return cell };
        let level = thresholds.of(&cell).iter().find(|level| level.percent.parse() == Ok(share));
        Cell { until: level.map(|level| level.log_joint), ..cell }
    }

    /// Checks everything that does not need a corpus.
    fn check(&self) -> Result<(), LabError> {
        let entrants = self.entrants().count();
        let seeds = self.corpora.iter().map(|corpus| self.seeds_of(corpus).count());
        let seeds = seeds.reduce(usize::saturating_add).unwrap_or(self.seeds.count());
        // An empty list is refused below; here it must not make the product 0 and hide a long one.
        let lists = [entrants, self.topics.len(), self.threads.len()];
        let cells = lists.into_iter().fold(seeds, |cells, n| cells.saturating_mul(n.max(1)));
        if cells > MOST_CELLS {
            let remedy = format!("give lists whose product is at most {MOST_CELLS}");
            return Err(value("the number of runs", cells, remedy));
        }
        if entrants == 0 || !self.samplers.is_empty() {
            distinct("samplers", &self.samplers, "a list such as [\"f-plus\", \"warp\"]")?;
        }
        if let Some(baseline) = self.samplers.iter().find(|method| method.is_baseline()) {
            return Err(value(
                "samplers",
                baseline,
                "baselines go into a list of their own, `baselines`",
            ));
        }
        if !self.baselines.is_empty() {
            distinct("baselines", &self.baselines, "a list such as [\"tomotopy\"]")?;
        }
        distinct("corpora", &self.corpora, "a list such as [\"kos\", \"nytlike@0.1\"]")?;
        distinct("topics", &self.topics, "a list such as [100, 1000]")?;
        distinct("threads", &self.threads, "a list such as [1, 2]")?;
        for corpus in &self.corpora {
            let seeds = self.seeds_of(corpus).list();
            distinct("seeds", &seeds, "a number from 1, or a list such as [1, 7]")?;
        }
        if let Some(name) = self.corpus.keys().find(|name| !self.corpora.contains(name)) {
            let corpora: Vec<&str> = self.corpora.iter().map(CorpusName::as_str).collect();
            let remedy = format!(
                "it is none of `corpora`; name a table [corpus.NAME] {}",
                corpora.join(" or ")
            );
            return Err(value("corpus", name, remedy));
        }
        for name in self.sampler.keys() {
            if name.parse::<Method>().map_or(true, Method::is_baseline) {
                let remedy = format!("name a table [sampler.NAME] {}", sampler_names());
                return Err(value("sampler", name, remedy));
            }
        }
        for name in self.baseline.keys() {
            if name.parse::<Baseline>().is_err() {
                let remedy = format!("name a table [baseline.NAME] {}", baseline_names());
                return Err(value("baseline", name, remedy));
            }
        }
        self.variant.keys().try_for_each(|name| check_name(name))?;
        self.check_tables()?;
        let tunings: Vec<Tuning> = self.tunings().collect();
        let epochs = tunings.iter().filter_map(|tuning| tuning.epochs);
        let every = tunings.iter().filter_map(|tuning| tuning.evaluate_every);
        at_least_1("topics", self.topics.iter().copied())?;
        at_least_1("threads", self.threads.iter().map(|&n| n.min(1) as u32))?;
        at_least_1("jobs", [self.jobs.min(1) as u32])?;
        at_least_1("epochs", epochs.chain([self.epochs]))?;
        at_least_1("evaluate-every", every.chain([self.evaluate_every]))?;
        let seconds = tunings.iter().filter_map(|tuning| tuning.seconds).chain(self.seconds);
        above_0("seconds", seconds)?;
        if !self.length_bins.is_sorted_by(|a, b| a < b) || self.length_bins.first() == Some(&0) {
            let bins = format!("{:?}", self.length_bins);
            return Err(value("length-bins", bins, "give lengths from 1 up, as in [60, 600]"));
        }
        if let Some(share) = self.held_out.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return Err(value("held-out", share, "give a share between 0 and 1, as 0.1"));
        }
        above_0("timeout", self.timeout)?;
        above_0("until", self.until)?;
        above_0("alpha", self.alpha)?;
        above_0("beta", [self.beta])
    }
}

impl Plan {
    /// Checks that every table of a sampler or variant sets only options that its sampler has.
    fn check_tables(&self) -> Result<(), LabError> {
        let check = |table: String, method: Method, tuning: &Tuning| match tuning
            .overrides
            .apply(TrainOptions::default(), method)
        {
            Ok(_) => Ok(()),
            Err(source) => Err(LabError::Table { table, source }),
        };
        for (name, tuning) in &self.sampler {
            // The names of these tables were checked.
            let method = name.parse().unwrap_or(Method::Auto);
            check(format!("sampler.{name}"), method, tuning)?;
        }
        self.variant.iter().try_for_each(|(name, variant)| {
            check(format!("variant.{name}"), variant.sampler, &variant.tuning)
        })
    }
}

fn value(key: &'static str, value: impl ToString, remedy: impl Into<String>) -> LabError {
    LabError::Value { key, value: value.to_string(), remedy: remedy.into() }
}

/// A variant's name must differ from those of samplers and baselines. TOML already refuses two
/// tables of one name.
fn check_name(name: &str) -> Result<(), LabError> {
    if name.parse::<Method>().is_ok() {
        let remedy = "it is the name of a sampler or baseline, give it one of its own";
        return Err(value("variant", name, remedy));
    }
    if !is_name(name) {
        let remedy = "give at most 40 lower-case letters and digits, a letter first, and single \
                      hyphens between words, as in [variant.light-doc]";
        return Err(value("variant", name, remedy));
    }
    Ok(())
}

fn distinct<T: PartialEq + std::fmt::Debug>(
    key: &'static str,
    list: &[T],
    expected: &str,
) -> Result<(), LabError> {
    if list.is_empty() {
        return Err(value(key, "empty", format!("give {expected}")));
    }
    let repeated = list.iter().enumerate().find(|(i, item)| list[..*i].contains(item));
    match repeated {
        Some((_, item)) => {
            Err(value(key, format!("{list:?}"), format!("{item:?} is listed twice: remove one")))
        }
        None => Ok(()),
    }
}

fn at_least_1(key: &'static str, values: impl IntoIterator<Item = u32>) -> Result<(), LabError> {
    match values.into_iter().find(|&n| n == 0) {
        Some(n) => Err(value(key, n, "give at least 1")),
        None => Ok(()),
    }
}

fn above_0(key: &'static str, values: impl IntoIterator<Item = f64>) -> Result<(), LabError> {
    match values.into_iter().find(|x| !(x.is_finite() && *x > 0.0)) {
        Some(x) => Err(value(key, x, "give a finite number above 0")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Plan, toml::de::Error> {
        toml::from_str(text)
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap().cells(&Thresholds::default()).unwrap_err().to_string()
    }

    #[test]
    fn a_plan_is_the_product_of_its_lists_seeds_outermost() {
        let plan = parse(
            "samplers = [\"f-plus\", \"warp\"]\ncorpora = [\"kos\", \"nips\"]\n\
             topics = [10, 20]\nthreads = [1]\nseeds = 2\nepochs = 7\n[sampler.warp]\nepochs = 70\n\
             evaluate-every = 9\nmh-steps = 2",
        );
        let cells = plan.unwrap().cells(&Thresholds::default()).unwrap();
        assert_eq!(cells.len(), 16);
        let names: Vec<String> = cells.iter().take(3).map(Cell::name).collect();
        assert_eq!(names, ["kos-k10-f-plus-t1-s1", "kos-k10-warp-t1-s1", "kos-k20-f-plus-t1-s1"]);
        assert_eq!(cells[8].seed, 2);
        let how = |cell: &Cell| (cell.epochs, cell.evaluate_every, cell.overrides.mh_steps);
        assert_eq!(how(&cells[0]), (7, 5, None));
        assert_eq!(how(&cells[1]), (70, 9, Some(2)));
        assert_eq!((cells[0].alpha, cells[2].alpha), (5.0, 2.5));
        let mut distinct: Vec<String> = cells.iter().map(Cell::name).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 16);
    }

    #[test]
    fn baselines_are_methods_like_samplers() {
        let plan = parse(
            "samplers = [\"warp\"]\nbaselines = [\"mallet\", \"gensim\"]\ncorpora = [\"kos\"]\n\
             held-out = 0.1\n[baseline.mallet]\nepochs = 70\nseconds = 9.0\n",
        );
        let cells = plan.unwrap().cells(&Thresholds::default()).unwrap();
        let names: Vec<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(
            names,
            ["kos-k100-warp-t1-s1", "kos-k100-mallet-t1-s1", "kos-k100-gensim-t1-s1"]
        );
        assert_eq!((cells[0].epochs, cells[1].epochs, cells[2].epochs), (100, 70, 100));
        assert_eq!((cells[1].seconds, cells[2].seconds), (Some(9.0), None));
        assert!(cells.iter().all(|cell| cell.held_out == Some(0.1)));
        let alone = parse("samplers = []\nbaselines = [\"spark\"]\ncorpora = [\"kos\"]").unwrap();
        assert_eq!(alone.cells(&Thresholds::default()).unwrap().len(), 1);
    }

    #[test]
    fn a_corpus_has_limits_and_seeds_of_its_own() {
        let plan = parse(
            "samplers = [\"light\", \"warp\"]\nbaselines = [\"mallet\"]\n\
             corpora = [\"kos\", \"nytlike@0.1\", \"nips\"]\n\
             epochs = 9\nseconds = 50.0\nseeds = 1\n\
             [corpus.kos]\nseeds = [4, 7]\nseconds = 60.0\nevaluate-every = 3\nepochs = 8\n\
             [corpus.\"nytlike@0.1\"]\nseconds = 10.0\n\
             [sampler.warp]\nepochs = 90\nevaluate-every = 30\nseconds = 20.0\n\
             [variant.b]\nsampler = \"warp\"\n[baseline.mallet]\nseconds = 70.0\n",
        )
        .unwrap();
        let cells = plan.cells(&Thresholds::default()).unwrap();
        // The first seed of every corpus, then the second of those that have one.
        let seeds: Vec<(&str, u64)> =
            cells.iter().step_by(4).map(|cell| (cell.corpus.as_str(), cell.seed)).collect();
        assert_eq!(seeds, [("kos", 4), ("nytlike@0.1", 1), ("nips", 1), ("kos", 7)]);
        let how = |cell: &Cell| (cell.epochs, cell.evaluate_every, cell.seconds.unwrap());
        let how: Vec<_> = cells.iter().map(how).collect();
        // light, warp, b, mallet: a method's own value comes first; of two limits the smaller one
        // counts.
        let kos = [(8, 3, 60.0), (90, 30, 20.0), (8, 3, 60.0), (8, 3, 60.0)];
        let generated = [(9, 5, 10.0), (90, 30, 10.0), (9, 5, 10.0), (9, 5, 10.0)];
        let nips = [(9, 5, 50.0), (90, 30, 20.0), (9, 5, 50.0), (9, 5, 70.0)];
        assert_eq!(how, [kos, generated, nips, kos].concat());
        // As the store writes it.
        let kept = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&kept).unwrap(), plan);
    }

    #[test]
    fn variants_come_after_samplers_with_options_of_their_own() {
        let plan = parse(
            "samplers = [\"warp\"]\nbaselines = [\"mallet\"]\ncorpora = [\"kos\"]\nepochs = 9\n\
             [sampler.warp]\nmh-steps = 4\n[variant.warp-8]\nsampler = \"warp\"\nmh-steps = 8\n\
             [variant.grid]\nsampler = \"warp\"\nranges = 2\nepochs = 3",
        );
        let plan = plan.unwrap();
        let cells = plan.cells(&Thresholds::default()).unwrap();
        let names: Vec<String> = cells.iter().map(Cell::name).collect();
        let expected = ["warp", "grid", "warp-8", "mallet"].map(|n| format!("kos-k100-{n}-t1-s1"));
        assert_eq!(names, expected);
        let steps: Vec<_> = cells.iter().map(|cell| cell.overrides.mh_steps).collect();
        assert_eq!(steps, [Some(4), None, Some(8), None]);
        assert_eq!((cells[1].epochs, cells[1].overrides.ranges), (3, Some(2)));
        assert!(cells[..3].iter().all(|cell| cell.sampler == SamplerKind::Warp.into()));
        // As the store writes it.
        let kept = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&kept).unwrap(), plan);
        let alone = "samplers = []\ncorpora = [\"kos\"]\n[variant.a]\nsampler = \"warp\"";
        assert_eq!(parse(alone).unwrap().cells(&Thresholds::default()).unwrap().len(), 1);
    }

    #[test]
    fn until_becomes_a_likelihood_where_one_is_known() {
        let plan = parse("corpora = [\"kos\", \"ap\"]\ntopics = [1000]\nuntil = 99");
        let cells = plan.unwrap().cells(&Thresholds::built_in()).unwrap();
        assert_eq!((cells[0].until, cells[1].until), (Some(-9.186), None));
    }

    #[test]
    fn mistakes_of_syntax_name_their_line() {
        for (text, expected) in [
            ("corpora = [\"kos\"]\nsampler = 3", "line 2"),
            ("corpora = [\"kos\"]\nepoch = 3", "epoch"),
            ("samplers = [\"gibbs\"]", "f-plus"),
            ("baselines = [\"gibbs\"]", "tomotopy, gensim"),
            ("[baseline.mallet]\nmh-steps = 3", "mh-steps"),
            ("[corpus.kos]\nepoch = 3", "unknown field `epoch`, expected one of `epochs`"),
            ("[corpus.kos]\ntopics = [3]", "line 2"),
            ("[corpus.kos]\nseeds = \"many\"", "a number of seeds"),
            ("[corpus.\"../kos\"]\nepochs = 3", "no name of a corpus"),
            ("seeds = \"many\"", "a number of seeds"),
            ("corpora = [\"../kos\"]", "no name of a corpus"),
            (
                "[sampler.warp]\nepoch = 3",
                "unknown key `epoch`: use alpha-by-size, epochs, evaluate-every,",
            ),
            ("[sampler.warp]\nepoch = 3", "line 1"),
            (
                "[variant.a]\nsampler = \"warp\"\nepoch = 3",
                "unknown key `epoch`: use alpha-by-size",
            ),
            ("[variant.a]\nsampler = \"warp\"\nmh-steps = -1", "expected u32"),
            ("[variant.a]\nmh-steps = 3", "missing field `sampler`"),
            ("[variant.a]\nsampler = \"mallet\"", "f-plus"),
            ("[variant.a]\nsampler = \"warp\"\n[variant.a]", "duplicate key"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn mistakes_of_meaning_name_key_and_remedy() {
        for (text, expected) in [
            ("", "corpora is empty: give a list"),
            ("corpora = [\"kos\", \"kos\"]", "twice"),
            ("corpora = [\"kos\"]\ntopics = [0]", "topics is 0: give at least 1"),
            ("corpora = [\"kos\"]\nseeds = 0", "seeds is empty"),
            ("corpora = [\"kos\"]\nthreads = [0]", "threads is 0"),
            ("corpora = [\"kos\"]\njobs = 0", "jobs is 0: give at least 1"),
            ("corpora = [\"kos\"]\nevaluate-every = 0", "evaluate-every is 0"),
            ("corpora = [\"kos\"]\nseconds = -1.0", "seconds is -1"),
            ("corpora = [\"kos\"]\nbeta = nan", "beta is NaN"),
            ("corpora = [\"kos\"]\nlength-bins = [0]", "length-bins is [0]: give lengths"),
            ("corpora = [\"kos\"]\nlength-bins = [9, 9]", "length-bins is [9, 9]"),
            ("corpora = [\"kos\"]\n[sampler.gibbs]", "sampler is gibbs"),
            ("corpora = [\"kos\"]\n[baseline.warp]", "baseline is warp: name a table"),
            ("corpora = [\"kos\"]\nsamplers = []", "samplers is empty"),
            ("corpora = [\"kos\"]\nsamplers = [\"spark\"]", "samplers is spark: baselines go"),
            ("corpora = [\"kos\"]\n[variant.warp]\nsampler = \"light\"", "variant is warp: it is"),
            ("corpora = [\"kos\"]\n[variant.spark]\nsampler = \"light\"", "variant is spark: it"),
            ("corpora = [\"kos\"]\n[variant.A]\nsampler = \"light\"", "variant is A: give at most"),
            ("corpora = [\"kos\"]\n[variant.a]\nsampler = \"light\"\nepochs = 0", "epochs is 0"),
            ("corpora = [\"kos\"]\nbaselines = [\"spark\", \"spark\"]", "twice"),
            ("corpora = [\"kos\"]\nheld-out = 1.0", "held-out is 1: give a share"),
            ("corpora = [\"kos\"]\nheld-out = nan", "held-out is NaN"),
            ("corpora = [\"kos\"]\nseeds = 1000000", "number of runs is 1000000"),
            ("corpora = [\"kos\"]\n[corpus.nips]", "corpus is nips: it is none of `corpora`"),
            ("corpora = [\"kos\"]\n[corpus.kos]\nseeds = 0", "seeds is empty"),
            ("corpora = [\"kos\"]\n[corpus.kos]\nseeds = 20000", "number of runs is 20000"),
            ("corpora = [\"kos\"]\n[corpus.kos]\nepochs = 0", "epochs is 0: give at least 1"),
            ("corpora = [\"kos\"]\n[corpus.kos]\nseconds = 0.0", "seconds is 0: give a finite"),
            ("seeds = 4294967295", "number of runs is 4294967295"),
        ] {
            assert!(refused(text).contains(expected), "{}", refused(text));
        }
    }

    #[test]
    fn options_of_other_samplers_are_refused() {
        for (table, sampler, option, expected) in [
            (
                "sampler.f-plus",
                "",
                "short-length = 5",
                "applies to the sampler hybrid, not to f-plus",
            ),
            (
                "sampler.sparse",
                "",
                "mh-steps = 2",
                "applies to the samplers alias, light, warp and",
            ),
            ("sampler.alias", "", "proposals = \"word\"", "applies to the sampler light, not to"),
            ("sampler.warp", "", "exclude-converged-from = 3", "zen-hybrid, not to warp: leave it"),
            ("sampler.auto", "", "mh-steps = 2", "and hybrid, not to auto: leave it out"),
            ("sampler.polya-urn", "", "mh-steps = 2", "makes no Metropolis-Hastings steps"),
            ("variant.b", "sampler = \"polya-urn\"\n", "short-length = 5", "hybrid, not to custom"),
            ("variant.a", "sampler = \"zen\"\n", "short-length = 5", "hybrid, not to zen"),
            ("sampler.zen", "", "start-degree = 0.2", "it applies to sparse starts: set start"),
        ] {
            // Tables of samplers that the plan does not run are checked too.
            let error = refused(&format!("corpora = [\"kos\"]\n[{table}]\n{sampler}{option}"));
            assert!(
                error.starts_with(&format!("[{table}]: ")) && error.contains(expected),
                "{error}"
            );
        }
        let fits = "corpora = [\"kos\"]\n[sampler.hybrid]\nshort-length = 5\nmh-steps = 2\n\
            [sampler.auto]\nexclude-converged-from = 3\n[sampler.light]\nproposals = \"word\"\n\
            [sampler.zen]\nstart = \"sparse-word\"\nstart-degree = 0.2";
        parse(fits).unwrap().cells(&Thresholds::default()).unwrap();
    }

    #[test]
    fn every_corpus_and_k_of_the_table_has_thresholds() {
        for (name, columns, runs) in [("table", 18, 630), ("table-30-minutes", 4, 60)] {
            let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/presets"));
            let plan = Plan::read(&directory.join(format!("{name}.toml"))).unwrap();
            let cells = plan.cells(&Thresholds::built_in()).unwrap();
            assert_eq!((plan.corpora.len() * plan.topics.len(), cells.len()), (columns, runs));
            let unknown: Vec<String> =
                cells.iter().filter(|cell| cell.until.is_none()).map(Cell::name).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
            assert!(cells.iter().all(|cell| cell.seconds.is_some()));
            // All methods whose log joint can be computed.
            let all = SamplerKind::ALL.into_iter().map(Method::from).chain([Method::Auto]);
            assert_eq!(plan.samplers, all.collect::<Vec<_>>());
        }
    }

    #[test]
    fn presets_of_this_repository_are_plans() {
        let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/presets"));
        let mut seen = 0;
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            // Presets of other commands lie in subdirectories.
            if path.is_dir() {
                continue;
            }
            let plan = Plan::read(&path).unwrap();
            plan.cells(&Thresholds::built_in()).unwrap();
            seen += 1;
        }
        assert!(seen > 0);
    }
}
