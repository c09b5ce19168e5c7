//! Finished runs in the output directory: one file each, so that an interrupted plan goes on where
//! it was.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cell::Outcome;
use super::files::{create_directory, write_bytes};
use super::{Cell, LabError, Machine, Plan};

/// A finished run and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// What was asked for.
    pub cell: Cell,
    /// Where and with what.
    pub machine: Machine,
    /// Processes that wanted a core in the minute before, where the system says so.
    pub load: Option<f64>,
    /// Runs at once, at most: this one and those beside it, which take caches and memory from it.
    #[serde(default = "alone")]
    pub jobs: usize,
    /// What came out.
    pub outcome: Outcome,
}

/// What records were before it was written down.
fn alone() -> usize {
    1
}

/// An output directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// The output directory at `directory`; made on the first write.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where generated corpora are kept.
    pub fn corpora(&self) -> PathBuf {
        self.directory.join("corpora")
    }

    /// Where a run may write what is gone after it.
    pub(super) fn scratch(&self, cell: &Cell) -> PathBuf {
        self.directory.join("scratch").join(cell.name())
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.directory.join("cells").join(format!("{}.json", cell.name()))
    }

    /// The finished run of exactly this cell. One of other epochs, priors and so on is none; neither
    /// is a file that cannot be understood, since running again mends both.
    ///
    /// # Errors
    /// [`LabError::Read`], if there is a file that cannot be read.
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

    /// Keeps a finished run.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn save(&self, record: &Record) -> Result<(), LabError> {
        let path = self.path(&record.cell);
        create_directory(path.parent().unwrap_or(&self.directory))?;
        let json = serde_json::to_vec(record).map_err(|e| LabError::write(&path)(e.into()))?;
        write_bytes(&path, &json)
    }

    /// Keeps the plan, for [`plan`](Self::plan).
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn save_plan(&self, plan: &Plan) -> Result<(), LabError> {
        create_directory(&self.directory)?;
        let path = self.directory.join("plan.json");
        let json = serde_json::to_vec_pretty(plan).map_err(|e| LabError::write(&path)(e.into()))?;
        write_bytes(&path, &json)
    }

    /// The last plan that was run here.
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
