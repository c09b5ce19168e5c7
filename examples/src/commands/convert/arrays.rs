//! Reading of NumPy arrays: `.npy`, also compressed, archives of one array (`.npz`), and a prior with one
//! number per topic.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use lda_core::Alpha;
use lda_core::interop::{InteropError, npy};
use lda_core::model::Weights;
use lda_examples::parsers;
use thiserror::Error;
use zip::ZipArchive;
use zip::result::ZipError;

/// Longest text file with a prior, in bytes.
const MAX_ALPHA_BYTES: u64 = 1 << 26;

/// Errors of arrays.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The file cannot be read.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The array is invalid.
    #[error(transparent)]
    Array(#[from] InteropError),
    /// The archive does not have one array.
    #[error("{path}: {reason}", path = path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// The problem and what to do.
        reason: String,
    },
    /// The text has no valid prior.
    #[error("{path}: {reason}", path = path.display())]
    Alpha {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
}

/// Whether the name is that of a NumPy array that is compressed.
pub fn is_packed_array(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| [".npy.gz", ".npy.zst"].iter().any(|end| name.ends_with(end)))
}

/// Reads a topics × words array.
///
/// # Errors
/// [`ArrayError`] names the file and the problem.
pub fn load_topics(path: &Path) -> Result<Weights, ArrayError> {
    let open = |source| ArrayError::Open { path: path.to_owned(), source };
    let refuse = |reason: String| ArrayError::Archive { path: path.to_owned(), reason };
    if !starts_with(path, b"PK").map_err(open)? {
        return Ok(npy::load_topics(path)?);
    }
    let file = BufReader::new(File::open(path).map_err(open)?);
    let mut archive = ZipArchive::new(file).map_err(|error| refuse(error.to_string()))?;
    let names = archive.file_names().map(|name| Ok(name?.escape_debug().to_string()));
    let names: Result<Vec<String>, ZipError> = names.collect();
    let names = names.map_err(|error| refuse(error.to_string()))?;
    if names.iter().any(|name| name == "indptr.npy") {
        let reason = "it is a sparse matrix of SciPy: save it dense, by numpy.save(\"topics.npy\", matrix.toarray())";
        return Err(refuse(reason.to_owned()));
    }
    let [name] = &names[..] else {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let reason = format!("expected one array, topics × words, but it has {names}");
        return Err(refuse(reason));
    };
    let array = archive.by_index(0).map_err(|error| refuse(error.to_string()))?;
    npy::read_topics(array).map_err(|error| refuse(format!("{name}: {error}")))
}

/// Reads a prior: an array of K numbers, or a text of numbers with commas or white space between them.
///
/// # Errors
/// [`ArrayError`] names the file and the problem.
pub fn load_alpha(path: &Path) -> Result<Alpha, ArrayError> {
    let open = |source| ArrayError::Open { path: path.to_owned(), source };
    let refuse = |reason: String| ArrayError::Alpha { path: path.to_owned(), reason };
    if starts_with(path, b"\x93NUMPY").map_err(open)? || is_packed_array(path) {
        let numbers = npy::load_vector(path)?;
        let is_valid = |number: &f64| number.is_finite() && *number > 0.0;
        return match numbers.iter().position(|number| !is_valid(number)) {
            Some(topic) => Err(refuse(format!(
                "topic {topic}: {}: expected finite numbers above 0",
                numbers[topic]
            ))),
            None => Ok(Alpha::PerTopic(numbers)),
        };
    }
    if fs::metadata(path).map_err(open)?.len() > MAX_ALPHA_BYTES {
        return Err(refuse(format!(
            "expected one number per topic, in at most {MAX_ALPHA_BYTES} bytes"
        )));
    }
    let text = fs::read_to_string(path).map_err(open)?;
    let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
    let number = |part: &str| {
        parsers::positive(part).map_err(|reason| refuse(format!("{part:.40?}: {reason}")))
    };
    let numbers = parts.map(number).collect::<Result<Vec<f64>, ArrayError>>()?;
    match numbers[..] {
        [] => Err(refuse("it has no numbers: expected one per topic".to_owned())),
        [alpha] => Ok(Alpha::Symmetric(alpha)),
        _ => Ok(Alpha::PerTopic(numbers)),
    }
}

fn starts_with(path: &Path, magic: &[u8]) -> io::Result<bool> {
    use io::Read;
    let mut start = Vec::new();
    File::open(path)?.take(magic.len() as u64).read_to_end(&mut start)?;
    Ok(start == magic)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// An archive of one array, with this shape in its header.
    fn archive(shape: &[usize], cells: &[f32]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("arr_0.npy", SimpleFileOptions::default()).unwrap();
        npy::write_header(&mut archive, "<f4", shape).unwrap();
        cells.iter().for_each(|cell| archive.write_all(&cell.to_le_bytes()).unwrap());
        archive.finish().unwrap().into_inner()
    }

    /// A file of its own for each test, removed with it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("lda-{name}-{}.npz", std::process::id())))
        }

        fn load(&self, bytes: &[u8]) -> Result<Weights, ArrayError> {
            fs::write(&self.0, bytes).unwrap();
            load_topics(&self.0)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn damaged_archives_are_refused() {
        let scratch = Scratch::new("damaged");
        let bytes = archive(&[2, 3], &[0.5, 0.25, 0.25, 0.0, 0.5, 0.5]);
        let whole = scratch.load(&bytes).unwrap();
        for position in 0..bytes.len() {
            assert!(scratch.load(&bytes[..position]).is_err(), "the first {position} bytes");
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= flip;
                // Times and attributes have no meaning here. Cells have a checksum.
                if let Ok(read) = scratch.load(&damaged) {
                    assert_eq!(read, whole, "byte {position} ^ {flip}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_allocated_for_cells_that_are_missing() {
        let scratch = Scratch::new("missing");
        for shape in [[1 << 20, 1 << 20], [3, usize::MAX / 8], [1, 1]] {
            let error = scratch.load(&archive(&shape, &[0.5, 0.5])).unwrap_err();
            assert!(error.to_string().contains("arr_0.npy"), "{error}");
        }
    }
}
