//! Document-topic and topic-word matrices in files.
//!
//! Both have the same form: rows of counts over columns, smoothed by a prior per column,
//!
//! ```text
//! θ_dk = (C_dk + α_k) / (L_d + ᾱ)        φ_kw = (C_kw + β) / (C_k + Vβ)
//! ```
//!
//! or, for a model without counts, φ itself: probabilities above the floor of each topic.
//!
//! A dense file, CSV or npy, has every cell; MatrixMarket has the non-zero entries, from which the
//! cells follow, and is the format for large matrices. Rows are produced one at a time: memory is one
//! row, and for topics also the transposed entries of the model, 16 bytes each.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_core::interop::npy;
use lda_core::model::TopicModel;
use lda_core::prior::Alpha;
use lda_core::train::Assignments;
use thiserror::Error;

/// Maximum size of a dense file in bytes.
const DENSE_LIMIT: u64 = 1 << 30;

/// A dense matrix would exceed the limit.
#[derive(Debug, Error)]
#[error(
    "{option} {path} would take about {gib:.1} GiB as a dense matrix, more than the limit of \
     1 GiB: name a file that ends in .mtx, which omits zeros",
    path = path.display()
)]
pub struct DenseError {
    /// The option that names the file.
    pub option: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Size of the file in GiB.
    pub gib: f64,
}

/// File format of a matrix, selected by the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// CSV: a comment with the options, then the column names.
    Csv,
    /// NumPy, 32-bit floats.
    Npy,
    /// MatrixMarket coordinates: entries.
    MatrixMarket,
}

impl Layout {
    /// Format of the extension of `path`; `None` if unknown.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "npy" => Some(Self::Npy),
            "mtx" => Some(Self::MatrixMarket),
            _ => None,
        }
    }

    /// Returns `path` if its extension is known.
    ///
    /// # Errors
    /// A message with the known extensions.
    pub fn check(path: PathBuf) -> Result<PathBuf, String> {
        match Self::of(&path) {
            Some(_) => Ok(path),
            None => Err("give a file name that ends in .csv, .npy or .mtx".to_owned()),
        }
    }

    /// Whether the options go into a separate file.
    pub fn needs_sidecar(self) -> bool {
        self == Self::Npy
    }

    /// Rejects a dense file above 1 GiB.
    ///
    /// # Errors
    /// [`DenseError`].
    pub fn check_size(
        self,
        option: &'static str,
        path: &Path,
        rows: usize,
        columns: usize,
    ) -> Result<(), DenseError> {
        let cell = match self {
            // Bytes of a cell: 8 digits, a leading zero, a point and a comma. Short shares, which
            // are common, take fewer.
            Self::Csv => 11,
            Self::Npy => 4,
            Self::MatrixMarket => return Ok(()),
        };
        let bytes = (rows as u64).saturating_mul(columns as u64).saturating_mul(cell);
        if bytes <= DENSE_LIMIT {
            return Ok(());
        }
        let gib = bytes as f64 / DENSE_LIMIT as f64;
        Err(DenseError { option, path: path.to_owned(), gib })
    }
}

/// Function that collects the non-zero (column, entry) of a row in ascending order.
type Row<'a> = Box<dyn Fn(usize, &mut Vec<(u32, f64)>) + 'a>;
/// Function that writes the header of a row or column as CSV.
type Head<'a> = Box<dyn Fn(&mut dyn Write, usize) -> io::Result<()> + 'a>;

/// Formula of the cells.
#[derive(Debug)]
enum Smoothing {
    /// Entries are counts, to which a prior of the column is added before they are divided by their sum.
    Prior(Alpha),
    /// Entries are shares above a floor of the row.
    Floors(Vec<f64>),
}

impl Smoothing {
    /// Type of the entries, as in MatrixMarket headers.
    fn field(&self) -> &'static str {
        match self {
            Self::Prior(_) => "integer",
            Self::Floors(_) => "real",
        }
    }
}

/// A matrix: sparse rows and their smoothing.
pub struct Matrix<'a> {
    /// Number of the first row in the file, from 0.
    first_row: u64,
    num_rows: usize,
    num_columns: usize,
    row: Row<'a>,
    smoothing: Smoothing,
    /// Header of the column of row headers.
    corner: &'static str,
    row_head: Head<'a>,
    column_head: Head<'a>,
    /// Comment in the sparse file.
    legend: &'static str,
}

impl fmt::Debug for Matrix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_rows, num_columns, corner, smoothing, .. } = self;
        write!(f, "Matrix({corner}, {num_rows} × {num_columns}, {smoothing:?})")
    }
}

impl<'a> Matrix<'a> {
    /// Rows of the document-topic matrix, D × K, of documents from number `first` on.
    pub fn of_documents(
        first: u64,
        corpus: &'a Corpus,
        assignments: &'a Assignments,
        alpha: &Alpha,
        k: usize,
    ) -> Self {
        let row = move |d: usize, entries: &mut Vec<(u32, f64)>| {
            let mut topics = assignments.document(d).to_vec();
            topics.sort_unstable();
            entries.extend(topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f64)));
        };
        let row_head = move |out: &mut dyn Write, d: usize| {
            write!(out, "{}", first + d as u64)?;
            if let Some(name) = corpus.document_name(d) {
                out.write_all(b",")?;
                write_field(out, name)?;
            }
            corpus.dates().map_or(Ok(()), |dates| write!(out, ",{}", dates[d]))
        };
        let corner = match (has_names(corpus), corpus.dates().is_some()) {
            (false, false) => "document",
            (false, true) => "document,date",
            (true, false) => "document,name",
            (true, true) => "document,name,date",
        };
        Self {
            first_row: first,
            num_rows: corpus.num_documents(),
            num_columns: k,
            row: Box::new(row),
            smoothing: Smoothing::Prior(alpha.clone()),
            corner,
            row_head: Box::new(row_head),
            column_head: Box::new(|out, topic| write!(out, "{topic}")),
            legend: "rows: documents; columns: topics; entries: tokens C_dk; \
                share = (C_dk + alpha_k) / (sum of row + sum of alpha)",
        }
    }

    /// Topic-word matrix, K × V.
    pub fn of_topics(model: &'a TopicModel) -> Self {
        let (smoothing, legend) = match (model.counts(), model.weights()) {
            (Some(counts), _) => (
                Smoothing::Prior(Alpha::Symmetric(counts.beta())),
                "rows: topics; columns: words; entries: tokens C_kw; \
                probability = (C_kw + beta) / (sum of row + words * beta)",
            ),
            (None, weights) => (
                Smoothing::Floors(weights.map_or_else(Vec::new, |w| w.floors().to_vec())),
                "rows: topics; columns: words; entries: probability above the floor of the topic; \
                probability = entry + floor of the row",
            ),
        };
        let (starts, entries) = by_topic(model);
        let row = move |topic: usize, row: &mut Vec<(u32, f64)>| {
            row.extend_from_slice(&entries[starts[topic]..starts[topic + 1]]);
        };
        let column_head = move |out: &mut dyn Write, word: usize| match model.vocabulary() {
            Some(vocabulary) => write_field(out, vocabulary.word(word as u32)),
            None => write!(out, "{word}"),
        };
        Self {
            first_row: 0,
            num_rows: model.num_topics(),
            num_columns: model.num_words(),
            row: Box::new(row),
            smoothing,
            corner: "topic",
            row_head: Box::new(|out, topic| write!(out, "{topic}")),
            column_head: Box::new(column_head),
            legend,
        }
    }

    /// Writes the matrix; `options` is its provenance as one line of JSON.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, layout: Layout, options: &str, out: &mut impl Write) -> io::Result<()> {
        let of_file = Size { rows: self.num_rows as u64, entries: self.num_entries() };
        self.write_head(layout, options, of_file, out)?;
        self.write_rows(layout, out)
    }

    /// Number of entries of all rows.
    fn num_entries(&self) -> u64 {
        let (mut row, mut entries) = (Vec::new(), 0);
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            entries += row.len() as u64;
        }
        entries
    }

    /// Writes what comes before the rows.
    fn write_head(
        &self,
        layout: Layout,
        options: &str,
        of_file: Size,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match layout {
            Layout::Csv => {
                writeln!(out, "# options: {options}")?;
                out.write_all(self.corner.as_bytes())?;
                for column in 0..self.num_columns {
                    out.write_all(b",")?;
                    (self.column_head)(out, column)?;
                }
                writeln!(out)
            }
            Layout::Npy => {
                npy::write_header(out, "<f4", &[of_file.rows as usize, self.num_columns])
            }
            Layout::MatrixMarket => self.write_sparse_head(options, of_file, out),
        }
    }

    /// Writes the rows.
    fn write_rows(&self, layout: Layout, out: &mut impl Write) -> io::Result<()> {
        match layout {
            Layout::Csv => self.write_csv(out),
            Layout::Npy => self.for_each_row(|_, cells| {
                cells.iter().try_for_each(|cell| out.write_all(&cell.to_le_bytes()))
            }),
            Layout::MatrixMarket => self.write_sparse(out),
        }
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::new();
        // PERF: most cells of a row are equal, so their text is formatted once.
        let mut last = None;
        self.for_each_row(|row, cells| {
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

    /// Writes the entries as an npy file with zeros between them: counts, where the cells of the others
    /// are shares.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_entries(&self, out: &mut impl Write) -> io::Result<()> {
        npy::write_header(out, "<f4", &[self.num_rows, self.num_columns])?;
        let mut row = Vec::new();
        let mut cells = vec![0.0f32; self.num_columns];
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            cells.fill(0.0);
            row.iter().for_each(|&(column, entry)| cells[column as usize] = entry as f32);
            cells.iter().try_for_each(|cell| out.write_all(&cell.to_le_bytes()))?;
        }
        Ok(())
    }

    fn write_sparse_head(
        &self,
        options: &str,
        of_file: Size,
        out: &mut impl Write,
    ) -> io::Result<()> {
        writeln!(out, "%%MatrixMarket matrix coordinate {} general", self.smoothing.field())?;
        writeln!(out, "% {}", self.legend)?;
        if let Smoothing::Floors(floors) = &self.smoothing {
            write!(out, "% floors:")?;
            floors.iter().try_for_each(|floor| write!(out, " {floor:e}"))?;
            writeln!(out)?;
        }
        writeln!(out, "% options: {options}")?;
        writeln!(out, "{} {} {}", of_file.rows, self.num_columns, of_file.entries)
    }

    fn write_sparse(&self, out: &mut impl Write) -> io::Result<()> {
        let mut row = Vec::new();
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            let number = self.first_row + r as u64 + 1;
            for &(column, entry) in &row {
                writeln!(out, "{number} {} {entry}", u64::from(column) + 1)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` with the index and the cells of each row.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn for_each_row(
        &self,
        mut visit: impl FnMut(usize, &[f32]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut row = Vec::new();
        let mut cells = vec![0.0; self.num_columns];
        for r in 0..self.num_rows {
            row.clear();
            (self.row)(r, &mut row);
            match &self.smoothing {
                Smoothing::Prior(prior) => {
                    let total: f64 = row.iter().map(|entry| entry.1).sum();
                    let scale = total + prior.sum(self.num_columns);
                    for (column, cell) in cells.iter_mut().enumerate() {
                        *cell = (prior.get(column) / scale) as f32;
                    }
                    for &(column, count) in &row {
                        let column = column as usize;
                        cells[column] = ((count + prior.get(column)) / scale) as f32;
                    }
                }
                Smoothing::Floors(floors) => {
                    cells.fill(floors[r] as f32);
                    for &(column, excess) in &row {
                        cells[column as usize] = (floors[r] + excess) as f32;
                    }
                }
            }
            visit(r, &cells)?;
        }
        Ok(())
    }
}

/// Size of the matrix of a file.
#[derive(Clone, Copy, Debug)]
struct Size {
    rows: u64,
    entries: u64,
}

/// Documents of a run with the topics of their tokens, in memory or block by block.
pub trait DocumentTopics {
    /// Number of documents.
    fn num_documents(&self) -> u64;

    /// Calls `f` with the number of the first document, documents and topics, part by part in order.
    ///
    /// # Errors
    /// Those of `f`, and of reading the documents.
    fn visit(
        &mut self,
        f: &mut (dyn FnMut(u64, &Corpus, &Assignments) -> io::Result<()> + Send),
    ) -> io::Result<()>;
}

/// Writes the document-topic matrix of a run.
///
/// # Errors
/// Those of `out` and of the documents.
pub fn write_documents(
    documents: &mut dyn DocumentTopics,
    (alpha, num_topics): (&Alpha, usize),
    layout: Layout,
    options: &str,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let mut of_file = Size { rows: documents.num_documents(), entries: 0 };
    if layout == Layout::MatrixMarket {
        documents.visit(&mut |first, corpus, topics| {
            of_file.entries +=
                Matrix::of_documents(first, corpus, topics, alpha, num_topics).num_entries();
            Ok(())
        })?;
    }
    let mut columns = None;
    documents.visit(&mut |first, corpus, topics| {
        let part = Matrix::of_documents(first, corpus, topics, alpha, num_topics);
        match columns {
            None => part.write_head(layout, options, of_file, out)?,
            Some(columns) if columns != part.corner => {
                return Err(io::Error::other(format!(
                    "documents from number {first} on have the columns {}, those before {columns}: cut \
                     documents with the same columns",
                    part.corner
                )));
            }
            Some(_) => {}
        }
        columns = Some(part.corner);
        part.write_rows(layout, out)
    })
}

/// Start of the entries of each topic, and (word, entry) with words ascending.
fn by_topic(model: &TopicModel) -> (Vec<usize>, Vec<(u32, f64)>) {
    let (topics, words) = (model.num_topics(), model.num_words());
    let mut starts = vec![0; topics + 1];
    for word in 0..words {
        for topic in model.topics(word).iter() {
            starts[topic as usize + 1] += 1;
        }
    }
    for topic in 0..topics {
        starts[topic + 1] += starts[topic];
    }
    let mut next = starts.clone();
    let mut entries = vec![(0, 0.0); starts[topics]];
    for word in 0..words {
        let mut place = |topic: u32, entry: f64| {
            let place = &mut next[topic as usize];
            entries[*place] = (word as u32, entry);
            *place += 1;
        };
        if let Some(counts) = model.counts() {
            counts.word(word).iter().for_each(|(topic, count)| place(topic, f64::from(count)));
        } else if let Some(weights) = model.weights() {
            weights.word(word).iter().for_each(|(topic, share)| place(topic, f64::from(share)));
        }
    }
    (starts, entries)
}

/// Whether documents have names.
fn has_names(corpus: &Corpus) -> bool {
    corpus.num_documents() > 0 && corpus.document_name(0).is_some()
}

/// Writes a field of a CSV file (RFC 4180), quoted if necessary. Text that a spreadsheet would take for
/// a formula follows an apostrophe, and control and bidirectional characters are left out.
///
/// # Errors
/// Those of `out`.
pub fn write_field(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = text.replace(is_hidden, "");
    // A number with a sign is no formula.
    if shown.starts_with(['=', '+', '-', '@']) && shown.parse::<f64>().is_err() {
        shown.insert(0, '\'');
    }
    if shown.contains([',', '"', '#']) || shown.trim() != shown {
        write!(out, "\"{}\"", shown.replace('"', "\"\""))
    } else {
        out.write_all(shown.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use lda_core::model::Weights;
    use lda_core::train::{Lda, Trained};

    use super::*;

    fn trained() -> (Corpus, Trained) {
        let corpus =
            Corpus::from_words([vec!["a", "b,c", "a"], vec![], vec!["q\"", "b,c"]]).unwrap();
        let trained = Lda::topics(3).epochs(5).train(&corpus, ()).unwrap();
        (corpus, trained)
    }

    fn text(matrix: &Matrix<'_>, layout: Layout) -> Vec<u8> {
        let mut out = Vec::new();
        matrix.write(layout, "{}", &mut out).unwrap();
        out
    }

    #[test]
    fn rows_of_shares_sum_to_one() {
        let (corpus, trained) = trained();
        let alpha = trained.model.alpha();
        let documents = Matrix::of_documents(0, &corpus, &trained.assignments, alpha, 3);
        let topics = Matrix::of_topics(&trained.model);
        for matrix in [&documents, &topics] {
            let mut rows = 0;
            let visit = |_, cells: &[f32]| {
                rows += 1;
                let sum: f32 = cells.iter().sum();
                assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                Ok(())
            };
            matrix.for_each_row(visit).unwrap();
            assert_eq!(rows, 3);
        }
        let visit = |topic, cells: &[f32]| {
            for (word, &cell) in cells.iter().enumerate() {
                assert!((f64::from(cell) - trained.model.phi(topic, word)).abs() < 1e-7);
            }
            Ok(())
        };
        topics.for_each_row(visit).unwrap();
    }

    #[test]
    fn csv_quotes_words() {
        let (_, trained) = trained();
        let csv = String::from_utf8(text(&Matrix::of_topics(&trained.model), Layout::Csv)).unwrap();
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0], "# options: {}");
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
        let documents = Matrix::of_documents(0, &corpus, &trained.assignments, alpha, 3);
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
    fn models_without_counts_have_shares() {
        let weights = Weights::from_rows(&[[7.0, 2.0, 1.0], [0.0, 0.0, 4.0]]).unwrap();
        let model = TopicModel::from_weights(weights, 0.5.into());
        let matrix = Matrix::of_topics(&model);
        let sparse = String::from_utf8(text(&matrix, Layout::MatrixMarket)).unwrap();
        let lines: Vec<_> = sparse.lines().collect();
        assert_eq!(lines[0], "%%MatrixMarket matrix coordinate real general");
        assert_eq!(lines[2], "% floors: 1e-1 0e0");
        assert_eq!(lines[4], "2 3 3");
        let mut rows = Vec::new();
        let visit = |_, cells: &[f32]| {
            rows.push(cells.to_vec());
            Ok(())
        };
        matrix.for_each_row(visit).unwrap();
        for (row, expected) in rows.iter().zip([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]) {
            assert!(row.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-7), "{row:?}");
        }
    }

    #[test]
    fn entries_are_counts() {
        let (_, trained) = trained();
        let mut file = Vec::new();
        Matrix::of_topics(&trained.model).write_entries(&mut file).unwrap();
        let cells: Vec<f32> = file[file.len() - 36..]
            .chunks_exact(4)
            .map(|cell| f32::from_le_bytes(cell.try_into().unwrap()))
            .collect();
        let counts = trained.model.counts().unwrap();
        for word in 0..3 {
            let mut column = [0.0; 3];
            counts
                .word(word)
                .iter()
                .for_each(|(topic, count)| column[topic as usize] = count as f32);
            assert_eq!([0, 1, 2].map(|topic| cells[topic * 3 + word]), column);
        }
    }

    #[test]
    fn dense_files_have_a_limit() {
        let check = |path, rows, columns| {
            let path = Path::new(path);
            Layout::of(path).unwrap().check_size("--doc-topics", path, rows, columns)
        };
        assert!(check("a.npy", 1 << 14, 1 << 14).is_ok());
        assert!(check("a.npy", (1 << 14) + 1, 1 << 14).is_err());
        assert!(check("a.csv", 1 << 14, 1 << 14).is_err());
        assert!(check("a.mtx", usize::MAX, usize::MAX).is_ok());
        let error = check("a.npy", usize::MAX, usize::MAX).unwrap_err().to_string();
        assert!(error.contains(".mtx"), "{error}");
    }
}
