//! NumPy array files (NEP 1), limited to matrices of numbers.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::{InteropError, MAX_TOPICS};
use crate::corpus::read::Source;
use crate::model::Weights;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum length of a header in bytes; NumPy writes about a hundred.
const LONGEST_HEAD: u32 = 1 << 16;

/// Writes the header of an array. `shape` is for example `[rows, columns]`, or `[]` for a single
/// number; `descr` is the type, for example `<f8` for little-endian 64-bit floats. The caller then
/// writes the numbers, row by row. The header is padded to a multiple of 64 bytes.
///
/// # Errors
/// Those of `out`.
pub fn write_header(
    out: &mut (impl Write + ?Sized),
    descr: &str,
    shape: &[usize],
) -> io::Result<()> {
    // Magic, version and the length of what follows.
    let before = 10;
    // Python's notation of tuples: one with a single element has a comma.
    let shape: String = match shape {
        [size] => format!("({size},)"),
        sizes => {
            let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
            format!("({})", sizes.join(", "))
        }
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (before + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(b"\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// Reads a topics × words array at `path`.
///
/// # Errors
/// [`InteropError`] names the file and the problem.
pub fn load_topics(path: impl AsRef<Path>) -> Result<Weights, InteropError> {
    let path = path.as_ref();
    let open = || read_topics(File::open(path)?);
    open().map_err(|error| error.at(path))
}

/// Reads a topics × words array of non-negative numbers, in any of NumPy's float and integer types
/// except half precision. Each row is divided by its sum.
///
/// ```
/// use lda_core::interop::npy::{read_topics, write_header};
/// use lda_core::model::TopicModel;
///
/// let mut file = Vec::new();
/// write_header(&mut file, "<f4", &[2, 3])?;
/// for number in [2.0f32, 1.0, 1.0, 0.0, 0.0, 5.0] {
///     file.extend(number.to_le_bytes());
/// }
/// let weights = read_topics(&file[..])?;
/// assert_eq!((weights.num_topics(), weights.num_words()), (2, 3));
/// let model = TopicModel::from_weights(weights, 0.1.into());
/// assert!((model.phi(0, 0) - 0.5).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`InteropError`] names the problem.
pub fn read_topics(reader: impl Read) -> Result<Weights, InteropError> {
    let content = |reason: String| InteropError::Content(reason);
    let matrix = read_matrix(reader)?;
    if matrix.rows.len() > MAX_TOPICS as usize {
        let (rows, words) = (matrix.rows.len(), matrix.rows[0].len());
        return Err(content(format!(
            "{rows} rows of {words}: expected topics × words; transpose the array"
        )));
    }
    Weights::from_rows(&matrix.rows).map_err(|error| content(error.to_string()))
}

/// Reads a vector of numbers at `path`, such as a prior with one number per topic.
///
/// # Errors
/// [`InteropError`] names the file and the problem.
pub fn load_vector(path: impl AsRef<Path>) -> Result<Vec<f64>, InteropError> {
    let path = path.as_ref();
    let open = || {
        read_array(File::open(path)?, "one number per topic", |shape| match *shape {
            [size] if size > 0 => Some((1, size)),
            _ => None,
        })
    };
    let mut matrix = open().map_err(|error| error.at(path))?;
    Ok(matrix.rows.swap_remove(0))
}

/// Rows and columns of an array; `None` for a shape that is not expected.
type Layout = fn(&[usize]) -> Option<(usize, usize)>;

/// Rows and columns of a matrix.
fn matrix(shape: &[usize]) -> Option<(usize, usize)> {
    match *shape {
        [rows, columns] if rows > 0 && columns > 0 => Some((rows, columns)),
        _ => None,
    }
}

struct Matrix {
    rows: Vec<Vec<f64>>,
}

/// Content of a header.
#[derive(Debug, PartialEq)]
struct Head {
    kind: Kind,
    fortran_order: bool,
    rows: usize,
    columns: usize,
}

/// Type of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    letter: u8,
    bytes: usize,
    big: bool,
}

impl Kind {
    fn parse(descr: &str) -> Option<Self> {
        let &[order, letter, digit] = descr.as_bytes() else { return None };
        let bytes = usize::from(digit.checked_sub(b'0')?);
        let known = match letter {
            b'f' => matches!(bytes, 4 | 8),
            b'i' | b'u' => matches!(bytes, 1 | 2 | 4 | 8),
            _ => false,
        };
        let ordered = matches!(order, b'<' | b'>') || order == b'|' && bytes == 1;
        (known && ordered).then_some(Self { letter, bytes, big: order == b'>' })
    }

    fn read(self, from: &[u8]) -> f64 {
        let mut bytes = [0; 8];
        for (to, at) in bytes.iter_mut().zip(0..from.len()) {
            *to = from[if self.big { from.len() - 1 - at } else { at }];
        }
        let whole = u64::from_le_bytes(bytes);
        let shift = 64 - 8 * self.bytes;
        match self.letter {
            b'f' if self.bytes == 4 => f64::from(f32::from_bits(whole as u32)),
            b'f' => f64::from_bits(whole),
            b'i' => ((whole << shift) as i64 >> shift) as f64,
            _ => whole as f64,
        }
    }
}

fn read_matrix(reader: impl Read) -> Result<Matrix, InteropError> {
    read_array(reader, "topics × words", matrix)
}

/// Reads an array of the shape that `layout` takes; errors say that `expected` was.
fn read_array(reader: impl Read, expected: &str, layout: Layout) -> Result<Matrix, InteropError> {
    let content = |reason: &str| InteropError::Content(reason.to_owned());
    let source = Source::new(reader, None)?;
    let mut reader = BufReader::new(source.reader);
    let short = "it is truncated, or not an array";
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(|error| ends_early(error, short))?;
    if !start.starts_with(MAGIC) {
        return Err(content("it is not a NumPy array: give a file written by numpy.save"));
    }
    let len = if start[6] == 1 {
        let mut len = [0; 2];
        reader.read_exact(&mut len).map_err(|error| ends_early(error, short))?;
        u32::from(u16::from_le_bytes(len))
    } else {
        let mut len = [0; 4];
        reader.read_exact(&mut len).map_err(|error| ends_early(error, short))?;
        u32::from_le_bytes(len)
    };
    if len > LONGEST_HEAD {
        return Err(content("its header is too long"));
    }
    let mut head = vec![0; len as usize];
    reader.read_exact(&mut head).map_err(|error| ends_early(error, short))?;
    let head = std::str::from_utf8(&head).ok().map(|head| parse_head(head, expected, layout));
    let head = head.unwrap_or_else(|| Err("its header is not UTF-8".to_owned()));
    let Head { kind, fortran_order, rows, columns } = head.map_err(InteropError::Content)?;
    // In file order: `outer` lines of `inner` numbers.
    let (outer, inner) = if fortran_order { (columns, rows) } else { (rows, columns) };
    let bytes = inner.checked_mul(kind.bytes).ok_or_else(|| content("its shape is too large"))?;
    let mut lines: Vec<Vec<f64>> = Vec::new();
    let mut line = Vec::new();
    for _ in 0..outer {
        line.clear();
        // `line` grows with the bytes that are read, not with the size in the header.
        let read = reader.by_ref().take(bytes as u64).read_to_end(&mut line)?;
        if read < bytes {
            return Err(content(short));
        }
        lines.push(line.chunks_exact(kind.bytes).map(|number| kind.read(number)).collect());
    }
    if reader.read(&mut [0])? > 0 {
        return Err(content("it has more data than its header states"));
    }
    if fortran_order {
        let rows = (0..rows).map(|row| lines.iter().map(|column| column[row]).collect());
        return Ok(Matrix { rows: rows.collect() });
    }
    Ok(Matrix { rows: lines })
}

fn ends_early(error: io::Error, short: &str) -> InteropError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => InteropError::Content(short.to_owned()),
        _ => error.into(),
    }
}

/// Parses the header, a Python dictionary with three entries.
fn parse_head(head: &str, expected: &str, layout: Layout) -> Result<Head, String> {
    let after = |name: &str| {
        let at = head.find(&format!("'{name}'"))?;
        let rest = head[at..].split_once(':')?.1;
        Some(rest.trim_start())
    };
    let descr = after("descr").and_then(|rest| rest.strip_prefix('\'')?.split('\'').next());
    let descr = descr.ok_or("its header has no simple number type")?;
    let kind = Kind::parse(descr)
        .ok_or_else(|| format!("its numbers are {descr:?}: save it as float32 or float64"))?;
    let order = after("fortran_order").ok_or("its header has no fortran_order")?;
    let shape = after("shape").and_then(|rest| rest.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or("its header has no shape")?;
    let sizes: Option<Vec<usize>> = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().ok())
        .collect();
    match sizes.as_deref().and_then(layout) {
        Some((rows, columns)) => {
            // A vector has one order; NumPy calls it both.
            let fortran_order = order.starts_with("True") && rows > 1;
            Ok(Head { kind, fortran_order, rows, columns })
        }
        None => Err(format!("its shape is ({shape}): expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(head: &str, numbers: &[u8]) -> Vec<u8> {
        let len = (head.len() as u16).to_le_bytes();
        [MAGIC, b"\x01\x00", &len, head.as_bytes(), numbers].concat()
    }

    fn rows(file: &[u8]) -> Vec<Vec<f64>> {
        read_matrix(file).unwrap_or_else(|error| panic!("{error}")).rows
    }

    #[test]
    fn every_kind_of_number_is_read() {
        let head = |descr: &str| {
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1, 2), }}")
        };
        let little: Vec<(&str, Vec<u8>)> = vec![
            ("<f4", [3f32, 250.0].map(f32::to_le_bytes).concat()),
            ("<f8", [3f64, 250.0].map(f64::to_le_bytes).concat()),
            ("<i8", [3i64, 250].map(i64::to_le_bytes).concat()),
            ("<i4", [3i32, 250].map(i32::to_le_bytes).concat()),
            ("<u2", [3u16, 250].map(u16::to_le_bytes).concat()),
            ("|u1", vec![3, 250]),
            (">f4", [3f32, 250.0].map(f32::to_be_bytes).concat()),
            (">i2", [3i16, 250].map(i16::to_be_bytes).concat()),
            (">u8", [3u64, 250].map(u64::to_be_bytes).concat()),
        ];
        for (descr, numbers) in little {
            assert_eq!(rows(&file(&head(descr), &numbers)), [[3.0, 250.0]], "{descr}");
        }
        assert_eq!(rows(&file(&head("|i1"), &[3, 250])), [[3.0, -6.0]]);
    }

    #[test]
    fn columns_are_turned_into_rows() {
        let numbers = [1u8, 2, 3, 4, 5, 6];
        let head =
            |order| format!("{{'shape': (2, 3), 'fortran_order': {order}, 'descr': '|u1'}}\n");
        assert_eq!(rows(&file(&head("False"), &numbers)), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(rows(&file(&head("True"), &numbers)), [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
        // Version 2 has a longer length.
        let head = head("False");
        let len = (head.len() as u32).to_le_bytes();
        let second = [MAGIC, b"\x02\x00", &len, head.as_bytes(), &numbers].concat();
        assert_eq!(rows(&second), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    }

    #[test]
    fn errors_are_reported() {
        let good = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }";
        let wrong = |bytes: &[u8]| read_topics(bytes).unwrap_err().to_string();
        assert!(wrong(b"").contains("truncated"));
        assert!(wrong(b"PK\x03\x04 and so on").contains("not a NumPy array"));
        assert!(wrong(&file(good, &[1])).contains("truncated"));
        assert!(wrong(&file(good, &[1, 2, 3])).contains("more data"));
        assert!(wrong(&file(&good.replace("|u1", "<f2"), &[0; 4])).contains("float32"));
        assert!(wrong(&file(&good.replace("|u1", "|O"), &[0; 4])).contains("float32"));
        assert!(wrong(&file(&good.replace("(1, 2)", "(2,)"), &[1, 2])).contains("topics × words"));
        assert!(wrong(&file(&good.replace("(1, 2)", "(0, 2)"), &[])).contains("topics × words"));
        let huge = good.replace("(1, 2)", "(9999999999999, 9999999999999)");
        assert!(wrong(&file(&huge, &[1, 2])).contains("truncated"));
        let sum = wrong(&file(good, &[0, 0]));
        assert!(sum.contains("topic 0"), "{sum}");
        let negative = wrong(&file(&good.replace("|u1", "|i1"), &[1, 255]));
        assert!(negative.contains("-1"), "{negative}");
    }
}
