//! Likelihood curve of a run, read from its log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::commands::report::contents::Curve;

/// Errors of reading a log.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CurveError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The log.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A line is not from `lda train --log`.
    #[error(
        "{path}: line {line}: {source}; give a file that `train --log` has written",
        path = path.display()
    )]
    Line {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Cause.
        source: serde_json::Error,
    },
    /// No epoch was evaluated.
    #[error("{path}: the log has no line: omit it, or train with a smaller --evaluate-every",
        path = path.display())]
    Empty {
        /// The log.
        path: PathBuf,
    },
}

/// Fields of a log line that the curve uses.
#[derive(Deserialize)]
struct Line {
    epoch: u32,
    seconds: f64,
    log_joint_per_token: Option<f64>,
    perplexity: Option<f64>,
    /// The sampler of this epoch; logs of `lda cluster` have one for all.
    sampler: Option<String>,
    #[serde(default)]
    options: Value,
}

impl Curve {
    /// Reads the curve of a log.
    ///
    /// # Errors
    /// [`CurveError`] names the line.
    pub fn read(path: &Path) -> Result<Self, CurveError> {
        let owned = || path.to_owned();
        let text =
            fs::read_to_string(path).map_err(|source| CurveError::Io { path: owned(), source })?;
        let mut curve = Self {
            name: file_name(path),
            caption: String::new(),
            epochs: Vec::new(),
            seconds: Vec::new(),
            values: Vec::new(),
            perplexity: Vec::new(),
            changes: Vec::new(),
        };
        // Samplers, and the first epoch that was evaluated of each.
        let mut options = Value::Null;
        let mut samplers: Vec<(String, u32)> = Vec::new();
        for (number, text) in text.lines().enumerate() {
            let mut line: Line = serde_json::from_str(text).map_err(|source| CurveError::Line {
                path: owned(),
                line: number + 1,
                source,
            })?;
            // `lda cluster --log` has a line for epochs that were not evaluated, too.
            let Some(per_token) = line.log_joint_per_token else { continue };
            let sampler =
                line.sampler.or_else(|| line.options["sampler"].as_str().map(str::to_owned));
            if let Some(sampler) =
                sampler.filter(|name| samplers.last().is_none_or(|of| of.0 != *name))
            {
                if !samplers.is_empty() {
                    let seconds = rounded(line.seconds, 1e3);
                    curve.changes.push((line.epoch, seconds, sampler.clone()));
                }
                samplers.push((sampler, line.epoch));
            }
            if curve.epochs.is_empty() {
                options = line.options.take();
            }
            curve.epochs.push(line.epoch);
            curve.seconds.push(rounded(line.seconds, 1e3));
            curve.values.push(rounded(per_token, 1e5));
            let perplexity = line.perplexity.map(|x| rounded(x, 1e2));
            curve
                .perplexity
                .extend(perplexity.map(|x| (line.epoch, rounded(line.seconds, 1e3), x)));
        }
        if curve.epochs.is_empty() {
            return Err(CurveError::Empty { path: owned() });
        }
        curve.caption = caption(&samplers, &options);
        Ok(curve)
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// File name of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The samplers of the epochs, and the main options, for people.
fn caption(samplers: &[(String, u32)], options: &Value) -> String {
    let mut parts = Vec::new();
    for (number, (sampler, epoch)) in samplers.iter().enumerate() {
        parts.push(match number {
            0 => format!("sampler {sampler}"),
            _ => format!("{sampler} from epoch {epoch} on"),
        });
    }
    let text = |name: &str| {
        let value = &options[name];
        value.as_str().map(str::to_owned).or_else(|| value.as_number().map(|n| n.to_string()))
    };
    parts.extend(
        ["topics", "seed"].iter().filter_map(|name| Some(format!("{name} {}", text(name)?))),
    );
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Curve, CurveError> {
        let path = std::env::temp_dir().join(format!("lda-curve-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        let curve = Curve::read(&path);
        fs::remove_file(path).unwrap();
        curve
    }

    #[test]
    fn lines_become_points() {
        let text = "{\"epoch\":10,\"seconds\":0.51239,\"log_joint_per_token\":-8.123456,\
            \"perplexity\":812.345,\"options\":{\"sampler\":\"f-plus\",\"topics\":7,\"seed\":3}}\n\
            {\"epoch\":15,\"seconds\":0.7}\n\
            {\"epoch\":20,\"seconds\":1,\"log_joint_per_token\":-8}\n";
        let curve = read("good.jsonl", text).unwrap();
        assert!(curve.name.ends_with("good.jsonl"));
        assert_eq!(curve.caption, "sampler f-plus, topics 7, seed 3");
        assert_eq!((curve.epochs, curve.seconds), (vec![10, 20], vec![0.512, 1.0]));
        assert_eq!(curve.values, [-8.12346, -8.0]);
        assert_eq!(curve.perplexity, [(10, 0.512, 812.35)]);
    }

    #[test]
    fn captions_name_the_sampler_of_each_epoch() {
        let line = |epoch: u32, sampler: &str| {
            format!(
                "{{\"epoch\":{epoch},\"seconds\":1,\"log_joint_per_token\":-8,\
                 \"sampler\":\"{sampler}\",\"options\":{{\"sampler\":\"f-plus\",\"topics\":7}}}}\n"
            )
        };
        let caption = |text: &str| read("samplers.jsonl", text).unwrap().caption;
        let both = line(10, "warp") + &line(20, "warp") + &line(30, "f-plus");
        let changes = read("changes.jsonl", &both).unwrap().changes;
        assert_eq!(changes, [(30, 1.0, "f-plus".to_owned())]);
        assert_eq!(caption(&both), "sampler warp, f-plus from epoch 30 on, topics 7");
        assert_eq!(caption(&line(10, "warp")), "sampler warp, topics 7");
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = read("bad", "{\"epoch\":1,\"seconds\":1,\"log_joint_per_token\":-1}\nx\n");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("line 2: ") && error.contains("train --log"), "{error}");
        assert!(read("empty", "").unwrap_err().to_string().contains("no line"));
        let error = Curve::read(Path::new("nowhere.jsonl")).unwrap_err();
        assert!(error.to_string().starts_with("nowhere.jsonl: "));
    }
}
