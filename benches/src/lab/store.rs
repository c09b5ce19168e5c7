//! Finished runs in the output directory, one file each, from which an interrupted plan continues.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cell::Outcome;
use super::files::{create_directory, write_bytes};
use super::{Cell, LabError, Machine, Plan};

/// A finished run with its machine and load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The request.
    pub cell: Cell,
    /// Machine and build.
    pub machine: Machine,
    /// Load average in the minute before the run, if available.
    pub load: Option<f64>,
    /// Largest number of concurrent runs, this one included; they share caches and memory
    /// bandwidth.
    #[serde(default = "alone")]
    pub jobs: usize,
    /// The result.
    pub outcome: Outcome,
}

/// Value for records written before the field existed.
fn alone() -> usize {
    1
}

/// An output directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// An output directory at `directory`, created on the first write.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Directory of generated corpora.
    pub fn corpora(&self) -> PathBuf {
        self.directory.join("corpora")
    }

    /// Scratch directory of a run, removed after it.
    pub(super) fn scratch(&self, cell: &Cell) -> PathBuf {
        self.directory.join("scratch").join(cell.name())
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.directory.join("cells").join(format!("{}.json", cell.name()))
    }

    /// Loads the finished run of exactly this cell. A run with other epochs, priors and so on is
    /// ignored, and so is a malformed file: a new run replaces both.
    ///
    /// # Errors
    /// [`LabError::Read`] if an existing file cannot be read.
    pub fn load(&self, cell: &Cell) -> Result<Option<Record>, LabError> {
        let path = self.path(cell);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice::<Record>(&bytes)
                .ok()
                .filter(|record| record.cell == *cell)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::read(path)(error)),
        }
    }

    /// Saves a finished run.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn save(&self, record: &Record) -> Result<(), LabError> {
        let path = self.path(&record.cell);
        create_directory(path.parent().unwrap_or(&self.directory))?;
        let json = serde_json::to_vec(record).map_err(|e| LabError::write(&path)(e.into()))?;
        write_bytes(&path, &json)
    }

    /// Saves the plan, for [`plan`](Self::plan).
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn save_plan(&self, plan: &Plan) -> Result<(), LabError> {
        create_directory(&self.directory)?;
        let path = self.directory.join("plan.json");
        let json = serde_json::to_vec_pretty(plan).map_err(|e| LabError::write(&path)(e.into()))?;
        write_bytes(&path, &json)
    }

    /// Loads the last plan that was run here.
    ///
    /// # Errors
    /// [`LabError::Read`], [`LabError::Syntax`].
    pub fn plan(&self) -> Result<Plan, LabError> {
        let path = self.directory.join("plan.json");
        let bytes = fs::read(&path).map_err(LabError::read(&path))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| LabError::Syntax { path, message: error.to_string() })
    }
}
