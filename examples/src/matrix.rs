//! Document-topic and topic-word matrices in files.
//!
//! Both are the same thing: rows of counts over columns, smoothed by a prior a column,
//!
//! ```text
//! θ_dk = (C_dk + α_k) / (L_d + ᾱ)        φ_kw = (C_kw + β) / (C_k + Vβ)
//! ```
//!
//! A dense file, CSV or npy, has every cell; MatrixMarket has the counts that are not zero, from
//! which the cells follow, and is the one to use where there are many. Rows are made one at a time:
//! memory is one row, and for topics also the counts of the model turned on their side, 8 bytes a
//! non-zero.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_core::model::{Counts, TopicModel};
use lda_core::prior::Alpha;
use lda_core::train::Assignments;

use lda_core::exchange::npy;

use crate::error::TrainError;
use crate::provenance::Provenance;

/// Largest dense file.
const DENSE_LIMIT: u64 = 1 << 30;

/// A form of file, told by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Text with commas; a comment with the options, then names of columns.
    Csv,
    /// NumPy, 32-bit floats.
    Npy,
    /// MatrixMarket coordinates: counts.
    MatrixMarket,
}

impl Layout {
    /// The layout that the extension asks for.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "npy" => Some(Self::Npy),
            "mtx" => Some(Self::MatrixMarket),
            _ => None,
        }
    }

    /// Passes on a path with a known extension.
    pub fn check(path: PathBuf) -> Result<PathBuf, String> {
        match Self::of(&path) {
            Some(_) => Ok(path),
            None => Err("give a file name that ends in .csv, .npy or .mtx".to_owned()),
        }
    }

    /// Whether the options have to go into a file of their own.
    pub fn needs_sidecar(self) -> bool {
        self == Self::Npy
    }

    /// Refuses a dense file above 1 GiB.
    pub fn check_size(
        option: &'static str,
        path: &Path,
        rows: usize,
        columns: usize,
    ) -> Result<(), TrainError> {
        let cell = match Self::of(path) {
            // A share of 8 digits, its zero, point and comma; the common short ones are shorter.
            Some(Self::Csv) => 11,
            Some(Self::Npy) => 4,
            Some(Self::MatrixMarket) | None => return Ok(()),
        };
        let bytes = (rows as u64).saturating_mul(columns as u64).saturating_mul(cell);
        if bytes <= DENSE_LIMIT {
            return Ok(());
        }
        let gib = bytes as f64 / DENSE_LIMIT as f64;
        Err(TrainError::Dense { option, path: path.to_owned(), gib })
    }
}

/// Puts the non-zero (column, count) of a row into a vector, ascending.
type Row<'a> = Box<dyn Fn(usize, &mut Vec<(u32, u32)>) + 'a>;
/// Writes the head of a row or column, as CSV wants it.
type Head<'a> = Box<dyn Fn(&mut dyn Write, usize) -> io::Result<()> + 'a>;

/// Rows of counts and what smooths them.
pub struct Matrix<'a> {
    num_rows: usize,
    num_columns: usize,
    row: Row<'a>,
    /// Pseudo-counts of the columns.
    prior: Alpha,
    /// What stands above the row heads.
    corner: &'static str,
    row_head: Head<'a>,
    column_head: Head<'a>,
    /// For a reader of the sparse file.
    legend: &'static str,
}

impl<'a> Matrix<'a> {
    /// Topics of documents, D × K.
    pub fn of_documents(
        corpus: &'a Corpus,
        assignments: &'a Assignments,
        alpha: &Alpha,
        k: usize,
    ) -> Self {
        let row = move |d: usize, entries: &mut Vec<(u32, u32)>| {
            let mut topics = assignments.document(d).to_vec();
            topics.sort_unstable();
            entries.extend(topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
        };
        let row_head = move |out: &mut dyn Write, d: usize| match corpus.dates() {
            Some(dates) => write!(out, "{d},{}", dates[d]),
            None => write!(out, "{d}"),
        };
        Self {
            num_rows: corpus.num_documents(),
            num_columns: k,
            row: Box::new(row),
            prior: alpha.clone(),
            corner: if corpus.dates().is_some() { "document,date" } else { "document" },
            row_head: Box::new(row_head),
            column_head: Box::new(|out, topic| write!(out, "{topic}")),
            legend: "rows: documents; columns: topics; entries: tokens C_dk; \
                share = (C_dk + alpha_k) / (sum of row + sum of alpha)",
        }
    }

    /// Words of topics, K × V.
    pub fn of_topics(model: &'a TopicModel) -> Self {
        let counts = model.counts().expect("a run leaves counts");
        let (starts, entries) = by_topic(counts);
        let row = move |topic: usize, row: &mut Vec<(u32, u32)>| {
            row.extend_from_slice(&entries[starts[topic]..starts[topic + 1]]);
        };
        let column_head = move |out: &mut dyn Write, word: usize| match model.vocabulary() {
            Some(vocabulary) => write_field(out, vocabulary.word(word as u32)),
            None => write!(out, "{word}"),
        };
        Self {
            num_rows: model.num_topics(),
            num_columns: model.num_words(),
            row: Box::new(row),
            prior: Alpha::Symmetric(counts.beta()),
            corner: "topic",
            row_head: Box::new(|out, topic| write!(out, "{topic}")),
            column_head: Box::new(column_head),
            legend: "rows: topics; columns: words; entries: tokens C_kw; \
                probability = (C_kw + beta) / (sum of row + words * beta)",
        }
    }

    /// Writes the matrix.
    pub fn write(
        &self,
        layout: Layout,
        provenance: &Provenance,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match layout {
            Layout::Csv => self.write_csv(provenance, out),
            Layout::Npy => self.write_npy(out),
            Layout::MatrixMarket => self.write_sparse(provenance, out),
        }
    }

    fn write_csv(&self, provenance: &Provenance, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "# options: {}", provenance.to_json())?;
        out.write_all(self.corner.as_bytes())?;
        for column in 0..self.num_columns {
            out.write_all(b",")?;
            (self.column_head)(out, column)?;
        }
        writeln!(out)?;
        let mut text = Vec::new();
        // Most cells of a row are the same: not printed anew each time.
        let mut last = None;
        self.for_each_dense_row(|row, cells| {
            (self.row_head)(out, row)?;
            for &cell in cells {
                if last.replace(cell) != Some(cell) {
                    text.clear();
                    if cell < 1e-4 { write!(text, ",{cell:e}")? } else { write!(text, ",{cell}")? }
                }
                out.write_all(&text)?;
            }
            writeln!(out)
        })
    }

    /// Format 1.0 of NumPy: magic, version, length of the header, a Python dictionary padded so
    /// that the data start at a multiple of 64, the cells row by row.
    fn write_npy(&self, out: &mut impl Write) -> io::Result<()> {
        npy::write_header(out, "<f4", self.num_rows, self.num_columns)?;
        self.for_each_dense_row(|_, cells| {
            cells.iter().try_for_each(|cell| out.write_all(&cell.to_le_bytes()))
        })
    }

    fn write_sparse(&self, provenance: &Provenance, out: &mut impl Write) -> io::Result<()> {
        let mut row = Vec::new();
        let mut entries = 0;
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            entries += row.len();
        }
        writeln!(out, "%%MatrixMarket matrix coordinate integer general")?;
        writeln!(out, "% {}", self.legend)?;
        writeln!(out, "% options: {}", provenance.to_json())?;
        writeln!(out, "{} {} {entries}", self.num_rows, self.num_columns)?;
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            for &(column, count) in &row {
                writeln!(out, "{} {} {count}", r + 1, u64::from(column) + 1)?;
            }
        }
        Ok(())
    }

    fn for_each_dense_row(
        &self,
        mut visit: impl FnMut(usize, &[f32]) -> io::Result<()>,
    ) -> io::Result<()> {
        let prior_sum = self.prior.sum(self.num_columns);
        let mut row = Vec::new();
        let mut cells = vec![0.0; self.num_columns];
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            let total: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
            let scale = total as f64 + prior_sum;
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell = (self.prior.get(column) / scale) as f32;
            }
            for &(column, count) in &row {
                let column = column as usize;
                cells[column] = ((f64::from(count) + self.prior.get(column)) / scale) as f32;
            }
            visit(r, &cells)?;
        }
        Ok(())
    }
}

/// Where each topic's entries start, and (word, count), words ascending.
fn by_topic(counts: &Counts) -> (Vec<usize>, Vec<(u32, u32)>) {
    let mut starts = vec![0; counts.num_topics() + 1];
    for word in 0..counts.num_words() {
        for topic in counts.word(word).topics.iter() {
            starts[topic as usize + 1] += 1;
        }
    }
    for topic in 0..counts.num_topics() {
        starts[topic + 1] += starts[topic];
    }
    let mut next = starts.clone();
    let mut entries = vec![(0, 0); starts[counts.num_topics()]];
    for word in 0..counts.num_words() {
        for (topic, count) in counts.word(word).iter() {
            let place = &mut next[topic as usize];
            entries[*place] = (word as u32, count);
            *place += 1;
        }
    }
    (starts, entries)
}

/// A field of CSV (RFC 4180): in quotes where it has to be.
fn write_field(out: &mut dyn Write, text: &str) -> io::Result<()> {
    if text.contains([',', '"', '\n', '\r', '#']) || text.trim() != text {
        write!(out, "\"{}\"", text.replace('"', "\"\""))
    } else {
        out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use lda_core::train::{Lda, Trained};
    use serde_json::json;

    use super::*;
    use crate::provenance::Input;

    fn trained() -> (Corpus, Trained) {
        let corpus =
            Corpus::from_words([vec!["a", "b,c", "a"], vec![], vec!["q\"", "b,c"]]).unwrap();
        let trained = Lda::topics(3).epochs(5).train(&corpus, ()).unwrap();
        (corpus, trained)
    }

    fn text(matrix: &Matrix<'_>, layout: Layout) -> Vec<u8> {
        let (corpus, trained) = trained();
        let input = Input::new("x".into(), &corpus, json!({}));
        let provenance = Provenance::new(&trained.resolved, 10, input);
        let mut out = Vec::new();
        matrix.write(layout, &provenance, &mut out).unwrap();
        out
    }

    #[test]
    fn rows_of_shares_sum_to_one() {
        let (corpus, trained) = trained();
        let alpha = trained.model.alpha();
        let documents = Matrix::of_documents(&corpus, &trained.assignments, alpha, 3);
        let topics = Matrix::of_topics(&trained.model);
        for matrix in [&documents, &topics] {
            let mut rows = 0;
            let visit = |_, cells: &[f32]| {
                rows += 1;
                let sum: f32 = cells.iter().sum();
                assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                Ok(())
            };
            matrix.for_each_dense_row(visit).unwrap();
            assert_eq!(rows, 3);
        }
        let visit = |topic, cells: &[f32]| {
            for (word, &cell) in cells.iter().enumerate() {
                assert!((f64::from(cell) - trained.model.phi(topic, word)).abs() < 1e-7);
            }
            Ok(())
        };
        topics.for_each_dense_row(visit).unwrap();
    }

    #[test]
    fn csv_quotes_words() {
        let (_, trained) = trained();
        let csv = String::from_utf8(text(&Matrix::of_topics(&trained.model), Layout::Csv)).unwrap();
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].starts_with("# options: {"));
        assert_eq!(lines[1], "topic,a,\"b,c\",\"q\"\"\"");
    }

    #[test]
    fn npy_data_start_at_a_multiple_of_64() {
        let (_, trained) = trained();
        let npy = text(&Matrix::of_topics(&trained.model), Layout::Npy);
        assert_eq!(npy.len() % 64, 36, "3 x 3 cells of 4 bytes");
        let header = usize::from(u16::from_le_bytes([npy[8], npy[9]]));
        assert_eq!(npy.len(), 10 + header + 36);
        assert_eq!(npy[9 + header], b'\n');
    }

    #[test]
    fn sparse_entries_are_all_tokens() {
        let (corpus, trained) = trained();
        let alpha = trained.model.alpha();
        let documents = Matrix::of_documents(&corpus, &trained.assignments, alpha, 3);
        let sparse = String::from_utf8(text(&documents, Layout::MatrixMarket)).unwrap();
        let mut lines = sparse.lines().filter(|line| !line.starts_with('%'));
        let size: Vec<usize> =
            lines.next().unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(size[..2], [3, 3]);
        let counts: Vec<u32> =
            lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!((counts.len(), counts.iter().sum::<u32>()), (size[2], 5));
    }

    #[test]
    fn dense_files_have_a_limit() {
        let check = |path, rows, columns| {
            Layout::check_size("--doc-topics", Path::new(path), rows, columns)
        };
        assert!(check("a.npy", 1 << 14, 1 << 14).is_ok());
        assert!(check("a.npy", (1 << 14) + 1, 1 << 14).is_err());
        assert!(check("a.csv", 1 << 14, 1 << 14).is_err());
        assert!(check("a.mtx", usize::MAX, usize::MAX).is_ok());
        let error = check("a.npy", usize::MAX, usize::MAX).unwrap_err().to_string();
        assert!(error.contains(".mtx"), "{error}");
    }
}
