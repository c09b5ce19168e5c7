//! Atomic writing of files and reports.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::LabError;
use super::plot::Scene;

/// Writes to a temporary file and renames it, so that an interruption leaves no partial file.
pub(super) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), LabError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.and_then(|()| fs::rename(&partial, path)).map_err(|error| {
        // The first error is reported; the file may not exist.
        let _ = fs::remove_file(&partial);
        LabError::write(path)(error)
    })
}

/// [`write_whole`] for bytes in memory.
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    write_whole(path, |out| out.write_all(bytes))
}

/// Writes a report: text files by name, and plots as SVG. Returns the paths.
pub(super) fn write_report(
    directory: &Path,
    files: Vec<(String, Vec<u8>)>,
    plots: Vec<(String, Scene)>,
) -> Result<Vec<PathBuf>, LabError> {
    create_directory(&directory.join("plots"))?;
    let drawn = plots
        .into_iter()
        .map(|(name, scene)| (format!("plots/{name}.svg"), scene.svg().into_bytes()));
    let write = |(name, bytes): (String, Vec<u8>)| {
        let path = directory.join(name);
        write_bytes(&path, &bytes).map(|()| path)
    };
    files.into_iter().chain(drawn).map(write).collect()
}

/// Reads a plan of any kind. `name` accesses its name, which defaults to the file's.
pub(super) fn read_plan<P: DeserializeOwned>(
    path: &Path,
    name: impl FnOnce(&mut P) -> &mut String,
) -> Result<P, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::read(path))?;
    let mut plan: P = toml::from_str(&text)
        .map_err(|error| LabError::Syntax { path: path.to_owned(), message: error.to_string() })?;
    let name = name(&mut plan);
    if name.is_empty() {
        *name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    Ok(plan)
}

pub(super) fn create_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::write(path))
}
