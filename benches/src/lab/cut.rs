//! Documents of a cluster, cut into shards by the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files::create_directory;
use super::process::last_line;
use super::{CorpusName, LabError};

/// Cuts a corpus into shards in the output directory, unless that was done before; returns where they are.
pub(super) fn cut(
    corpus: &CorpusName,
    shards: u16,
    directory: &Path,
    program: &Path,
) -> Result<PathBuf, LabError> {
    let to = directory.join("documents").join(format!("{corpus}-{shards}"));
    if to.exists() {
        return Ok(to);
    }
    let file = corpus.file(&directory.join("corpora"))?;
    create_directory(&directory.join("documents"))?;
    let mut command = Command::new(program);
    command.args(["cluster", "cut"]).arg(file);
    command.args(["--shards", &shards.to_string(), "--out"]).arg(&to);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| LabError::Network {
        command: program.display().to_string(),
        why: format!("{error}; build it (--features grpc), and name it by --lda"),
    })?;
    if output.status.success() {
        return Ok(to);
    }
    let command = format!("{} cluster cut", program.display());
    Err(LabError::Network { command, why: last_line(&output.stderr[..]) })
}
