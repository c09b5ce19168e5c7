//! The directory of a sweep, in which it can be continued.
//!
//! ```text
//! options.json        options that all runs have in common
//! runs.jsonl          one line per finished run or number of topics, appended
//! run-20-1.lda        model of a run, until all runs with its number of topics are done
//! topics-20.lda       the model that is kept
//! sweep.csv, index.html
//! ```
//!
//! A model is in place before its line is written, and the line before anything else is removed: at any
//! moment the lines and the files suffice to continue. Runs whose models are missing or damaged are
//! repeated. A lock on `runs.jsonl` keeps a second sweep out.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lda_core::model::TopicModel;
use lda_core::train::SweepRun;
use lda_core::train::sweep::{ModelMeasures, Stability};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::sweep::error::SweepError;
use lda_examples::output::Output;

/// A line of `runs.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    /// A run is finished.
    Run { topics: u32, seed: u64, measures: ModelMeasures },
    /// All runs with this number of topics are finished.
    Topics { topics: u32, kept_seed: u64, stability: Option<Stability> },
}

/// Results of one number of topics.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Measures by seed.
    pub runs: BTreeMap<u64, ModelMeasures>,
    /// Once all runs are finished: the seed of the model that is kept, and how stable topics are.
    pub kept: Option<(u64, Option<Stability>)>,
}

/// The directory of a sweep.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    lines: File,
    /// Results by number of topics.
    pub results: BTreeMap<u32, Results>,
}

impl Directory {
    /// Opens or makes the directory of a sweep with these options. `note` receives a line if something in
    /// it is left out. Time: O(size of all models), as each of them is read.
    ///
    /// # Errors
    /// [`SweepError::Other`], [`SweepError::InUse`], [`SweepError::Record`], [`SweepError::Io`],
    /// [`SweepError::Output`].
    pub fn open(
        path: &Path,
        options: &Map<String, Value>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, SweepError> {
        let fail = |path: &Path, source| SweepError::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(|error| fail(path, error))?;
        let file = path.join("options.json");
        match fs::read_to_string(&file) {
            Ok(text) => check(path, &file, &text, options)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = serde_json::to_string_pretty(options).expect("plain data");
                Output::create_file(&file)?.fill(|out| writeln!(out, "{text}"))?;
            }
            Err(error) => return Err(fail(&file, error)),
        }
        let file = path.join("runs.jsonl");
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&file);
        let lines = opened.map_err(|error| fail(&file, error))?;
        match lines.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(SweepError::InUse { directory: path.to_owned() });
            }
            // A file system without locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(fail(&file, error)),
        }
        let mut directory = Self { path: path.to_owned(), lines, results: BTreeMap::new() };
        directory.read(&file, note)?;
        directory.forget_lost_models(note);
        Ok(directory)
    }

    /// Reads the lines that are there. One that was not written to its end is cut off.
    fn read(&mut self, file: &Path, note: &mut dyn FnMut(&str)) -> Result<(), SweepError> {
        let fail = |source| SweepError::Io { path: file.to_owned(), source };
        let mut text = Vec::new();
        self.lines.read_to_end(&mut text).map_err(fail)?;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            note(&format!("{}: the last line is not whole, its run is repeated", file.display()));
            self.lines.set_len(whole as u64).map_err(fail)?;
        }
        for (number, line) in (1..).zip(text[..whole].split(|&byte| byte == b'\n')) {
            if line.is_empty() {
                continue;
            }
            let line = serde_json::from_slice(line).map_err(|error| SweepError::Record {
                path: file.to_owned(),
                reason: format!("line {number}: {error}"),
            })?;
            self.take(line);
        }
        Ok(())
    }

    /// Removes results whose models cannot be read, so that their runs are repeated.
    fn forget_lost_models(&mut self, note: &mut dyn FnMut(&str)) {
        let mut results = std::mem::take(&mut self.results);
        for (&topics, results) in &mut results {
            let mut is_usable = |file: &Path| {
                let fault = match TopicModel::load(file) {
                    Ok(_) => return true,
                    Err(_) if file.exists() => "it cannot be read",
                    Err(_) => "it is missing",
                };
                note(&format!("{}: {fault}: the run is repeated", file.display()));
                false
            };
            if let Some((kept_seed, _)) = results.kept {
                // A sweep that was interrupted before `tidy` has not renamed it yet.
                let run_model = self.run_model(topics, kept_seed);
                let file = if run_model.exists() { run_model } else { self.model(topics) };
                if is_usable(&file) {
                    continue;
                }
                // Models of the other runs were removed when this one was kept.
                *results = Results::default();
            }
            results.runs.retain(|&seed, _| is_usable(&self.run_model(topics, seed)));
        }
        self.results = results;
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Run { topics, seed, measures } => {
                let results = self.results.entry(topics).or_default();
                results.runs.insert(seed, measures);
                // A run after it was compared with others is a repetition.
                results.kept = None;
            }
            Line::Topics { topics, kept_seed, stability } => {
                self.results.entry(topics).or_default().kept = Some((kept_seed, stability));
            }
        }
    }

    fn add(&mut self, line: Line) -> Result<(), SweepError> {
        let mut bytes = serde_json::to_vec(&line).expect("plain data");
        bytes.push(b'\n');
        let written = self.lines.write_all(&bytes).and_then(|()| self.lines.sync_data());
        written.map_err(|source| SweepError::Io { path: self.path.join("runs.jsonl"), source })?;
        self.take(line);
        Ok(())
    }

    /// Runs that need not be repeated.
    pub fn done(&self) -> Vec<(u32, u64)> {
        let of = |(&topics, results): (&u32, &Results)| -> Vec<(u32, u64)> {
            results.runs.keys().map(|&seed| (topics, seed)).collect()
        };
        self.results.iter().flat_map(of).collect()
    }

    /// Adds a finished run.
    ///
    /// # Errors
    /// [`SweepError::Model`], [`SweepError::Io`].
    pub fn add_run(&mut self, run: &SweepRun) -> Result<(), SweepError> {
        run.model.save(self.run_model(run.topics, run.seed))?;
        let SweepRun { topics, seed, measures, .. } = run;
        self.add(Line::Run { topics: *topics, seed: *seed, measures: measures.clone() })
    }

    /// The models of all runs with a number of topics, by seed.
    ///
    /// # Errors
    /// [`SweepError::Model`].
    pub fn models(&self, topics: u32) -> Result<Vec<TopicModel>, SweepError> {
        let seeds = self.results.get(&topics).into_iter().flat_map(|results| results.runs.keys());
        seeds.map(|&seed| Ok(TopicModel::load(self.run_model(topics, seed))?)).collect()
    }

    /// Records that all runs with a number of topics are finished, and which of their models is kept.
    ///
    /// # Errors
    /// [`SweepError::Io`].
    pub fn finish(
        &mut self,
        topics: u32,
        kept_seed: u64,
        stability: Option<Stability>,
    ) -> Result<(), SweepError> {
        self.add(Line::Topics { topics, kept_seed, stability })
    }

    /// Gives the kept models of finished numbers of topics their names, and removes the others.
    ///
    /// # Errors
    /// [`SweepError::Io`].
    pub fn tidy(&self) -> Result<(), SweepError> {
        for (&topics, results) in &self.results {
            let Some((kept_seed, _)) = results.kept else { continue };
            for &seed in results.runs.keys() {
                let model = self.run_model(topics, seed);
                let moved = match seed == kept_seed {
                    true => fs::rename(&model, self.model(topics)),
                    false => fs::remove_file(&model),
                };
                match moved {
                    // It was moved before.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    moved => moved.map_err(|source| SweepError::Io { path: model, source })?,
                }
            }
        }
        Ok(())
    }

    /// Path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Path of the model that is kept of a number of topics.
    pub fn model(&self, topics: u32) -> PathBuf {
        self.path.join(format!("topics-{topics}.lda"))
    }

    fn run_model(&self, topics: u32, seed: u64) -> PathBuf {
        self.path.join(format!("run-{topics}-{seed}.lda"))
    }
}

/// Checks that the directory's options are those of this sweep.
fn check(
    directory: &Path,
    file: &Path,
    text: &str,
    options: &Map<String, Value>,
) -> Result<(), SweepError> {
    let found: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| SweepError::Record { path: file.to_owned(), reason: error.to_string() })?;
    let names: Vec<&String> = options.keys().chain(found.keys()).collect();
    for name in names {
        let (there, here) = (found.get(name), options.get(name));
        if there != here {
            let shown = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
            let difference = format!("{name} {}, not {}", shown(there), shown(here));
            return Err(SweepError::Other { directory: directory.to_owned(), difference });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::train::{Flow, Sweep};

    use super::*;

    /// A directory that is removed with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("lda-sweep-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn open(&self, options: &str) -> Result<Directory, SweepError> {
            let options = serde_json::from_str(options).unwrap();
            Directory::open(&self.0, &options, &mut |_| {})
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn add_runs(directory: &mut Directory) {
        let corpus = Corpus::from_tokens((0..20).map(|d| [d % 2, 2 + d % 2])).unwrap();
        let sweep = Sweep::new([2]).seeds(2).train(|options| options.epochs(5));
        sweep
            .run(&corpus, |run| {
                directory.add_run(&run).unwrap();
                Flow::Continue
            })
            .unwrap();
    }

    #[test]
    fn a_sweep_continues_from_its_lines_and_models() {
        let scratch = Scratch::new("continues");
        let mut directory = scratch.open(r#"{"beta":0.1}"#).unwrap();
        add_runs(&mut directory);
        drop(directory);
        // As if the program had been killed while it wrote a line.
        let lines = scratch.0.join("runs.jsonl");
        let mut file = OpenOptions::new().append(true).open(&lines).unwrap();
        file.write_all(b"{\"topics\":{\"topi").unwrap();
        let mut directory = scratch.open(r#"{"beta":0.1}"#).unwrap();
        assert_eq!(directory.done(), [(2, 0), (2, 1)]);
        assert_eq!(directory.models(2).unwrap().len(), 2);
        add_runs(&mut directory);
        directory.finish(2, 1, None).unwrap();
        // As if the program had been killed before `tidy`.
        drop(directory);
        let directory = scratch.open(r#"{"beta":0.1}"#).unwrap();
        directory.tidy().unwrap();
        assert_eq!(directory.done(), [(2, 0), (2, 1)]);
        assert_eq!(directory.results[&2].kept, Some((1, None)));
        assert!(directory.model(2).exists() && !directory.run_model(2, 0).exists());
        directory.tidy().unwrap();
        assert!(directory.model(2).exists());
    }

    #[test]
    fn runs_without_their_models_are_repeated() {
        let scratch = Scratch::new("lost");
        let mut directory = scratch.open("{}").unwrap();
        add_runs(&mut directory);
        let [first, second, kept] =
            [directory.run_model(2, 0), directory.run_model(2, 1), directory.model(2)];
        let reopen = |directory: Directory| {
            drop(directory);
            let mut notes = Vec::new();
            let directory = Directory::open(&scratch.0, &Map::new(), &mut |note| {
                notes.push(note.to_owned());
            });
            (directory.unwrap(), notes.join("\n"))
        };
        fs::remove_file(&first).unwrap();
        let (directory, notes) = reopen(directory);
        assert!(notes.ends_with("run-2-0.lda: it is missing: the run is repeated"), "{notes}");
        assert_eq!(directory.done(), [(2, 1)]);
        fs::write(&second, &fs::read(&second).unwrap()[..100]).unwrap();
        let (mut directory, notes) = reopen(directory);
        assert!(notes.contains("run-2-1.lda: it cannot be read: the run is repeated"), "{notes}");
        assert_eq!(directory.done(), []);
        for lose in [|file: &Path| fs::remove_file(file), |file: &Path| fs::write(file, "cut")] {
            add_runs(&mut directory);
            directory.finish(2, 1, None).unwrap();
            directory.tidy().unwrap();
            let (tidied, notes) = reopen(directory);
            assert!(notes.is_empty() && tidied.done() == [(2, 0), (2, 1)], "{notes}");
            lose(&kept).unwrap();
            let (opened, notes) = reopen(tidied);
            assert_eq!((notes.lines().count(), opened.done()), (1, vec![]));
            directory = opened;
        }
    }

    #[test]
    fn a_directory_has_one_sweep_at_a_time() {
        let scratch = Scratch::new("locked");
        let first = scratch.open("{}").unwrap();
        let refused = scratch.open("{}").unwrap_err().to_string();
        assert!(refused.starts_with("another sweep runs in "), "{refused}");
        drop(first);
        scratch.open("{}").unwrap();
    }

    #[test]
    fn another_sweep_and_foreign_lines_are_refused() {
        let scratch = Scratch::new("refused");
        drop(scratch.open(r#"{"beta":0.1,"documents":"ab"}"#).unwrap());
        let refused = scratch.open(r#"{"beta":0.2,"documents":"ab"}"#).unwrap_err().to_string();
        assert!(refused.contains("has a sweep with beta 0.1, not 0.2: give its"), "{refused}");
        let refused = scratch.open(r#"{"beta":0.1}"#).unwrap_err().to_string();
        assert!(refused.contains("documents \"ab\", not none"), "{refused}");
        fs::write(scratch.0.join("runs.jsonl"), "{}\n").unwrap();
        let refused = scratch.open(r#"{"beta":0.1,"documents":"ab"}"#).unwrap_err().to_string();
        assert!(refused.contains("runs.jsonl: line 1: "), "{refused}");
        fs::write(scratch.0.join("options.json"), "x").unwrap();
        let refused = scratch.open(r#"{"beta":0.1}"#).unwrap_err().to_string();
        assert!(refused.contains("options.json: ") && refused.contains("remove it"), "{refused}");
    }
}
