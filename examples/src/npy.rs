//! The head of a NumPy array file (NEP 1, version 1.0).

use std::io::{self, Write};

/// Writes the head of a matrix of `rows` rows of `columns` numbers of kind `descr`, as in `<f8` (64-bit
/// floats, little-endian); the numbers follow, row by row. It is padded to a multiple of 64 bytes.
///
/// # Errors
/// Those of `out`.
pub fn write_header(
    out: &mut (impl Write + ?Sized),
    descr: &str,
    rows: usize,
    columns: usize,
) -> io::Result<()> {
    // Magic, version and the length of what follows.
    let before = 10;
    let shape = format!("({rows}, {columns})");
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (before + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())
}
