//! Output as an archive of NumPy arrays.
//!
//! ```python
//! counts = scipy.sparse.load_npz("model.npz")       # topics × words, CSC
//! about = numpy.load("model.npz")
//! about["alpha"], about["beta"], about["totals"]
//! bytes(about["words"]).decode().split("\n")
//! phi = (counts.toarray() + about["beta"]) / (about["totals"] + counts.shape[1] * about["beta"])[:, None]
//! ```
//!
//! For a model without counts, the matrix has the probabilities above the floor of each topic, and
//! `floors` replaces `beta` and `totals`: φ = matrix + floor.
//!
//! Counts are stored by word, in the model and in the archive: nothing is transposed, and the file is as
//! large as the model for any K and V.

use std::io::{self, Seek, Write};

use lda_core::interop::npy;
use lda_core::model::TopicModel;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Writes the archive.
///
/// # Errors
/// Those of `out`.
pub fn write(model: &TopicModel, out: impl Write + Seek) -> io::Result<()> {
    let mut archive = Archive(ZipWriter::new(out));
    let (topics, words) = (model.num_topics(), model.num_words());
    archive.array("format", "|S3", &[], [*b"csc"])?;
    archive.array("shape", "<i8", &[2], [topics, words].map(|n| (n as i64).to_le_bytes()))?;
    let mut end = 0;
    let ends = (0..words).map(|word| {
        end += model.topics(word).len() as i64;
        end
    });
    let indptr = std::iter::once(0).chain(ends).map(i64::to_le_bytes);
    archive.array("indptr", "<i8", &[words + 1], indptr)?;
    let entries = (0..words).map(|word| model.topics(word).len()).sum::<usize>();
    let indices = (0..words).flat_map(|word| model.topics(word).iter());
    archive.array("indices", "<i4", &[entries], indices.map(|topic| topic.to_le_bytes()))?;
    if let Some(counts) = model.counts() {
        let data = (0..words).flat_map(|word| counts.word(word).values).map(|n| n.to_le_bytes());
        archive.array("data", "<u4", &[entries], data)?;
        archive.array("beta", "<f8", &[], [counts.beta().to_le_bytes()])?;
        let totals = counts.totals().iter().map(|total| total.to_le_bytes());
        archive.array("totals", "<u8", &[topics], totals)?;
    } else if let Some(weights) = model.weights() {
        let data = (0..words).flat_map(|word| weights.word(word).values).map(|x| x.to_le_bytes());
        archive.array("data", "<f4", &[entries], data)?;
        let floors = weights.floors().iter().map(|floor| floor.to_le_bytes());
        archive.array("floors", "<f8", &[topics], floors)?;
    }
    let alpha = (0..topics).map(|topic| model.alpha().get(topic).to_le_bytes());
    archive.array("alpha", "<f8", &[topics], alpha)?;
    if let Some(vocabulary) = model.vocabulary() {
        let names: Vec<&str> = vocabulary.iter().collect();
        let names = names.join("\n");
        archive.array("words", "|u1", &[names.len()], names.bytes().map(|byte| [byte]))?;
    }
    archive.0.finish()?;
    Ok(())
}

struct Archive<W: Write + Seek>(ZipWriter<W>);

impl<W: Write + Seek> Archive<W> {
    /// Appends an array of type `descr`; `shape` is empty for a scalar.
    fn array<const N: usize>(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[usize],
        cells: impl IntoIterator<Item = [u8; N]>,
    ) -> io::Result<()> {
        // Arrays are not compressed, which NumPy reads fastest, and have no time stamp, so that equal
        // models give equal files.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        self.0.start_file(format!("{name}.npy"), options)?;
        npy::write_header(&mut self.0, descr, shape)?;
        // Buffered, because a call of the archive per cell would take longer than the copy.
        let mut buffer = io::BufWriter::with_capacity(1 << 16, &mut self.0);
        cells.into_iter().try_for_each(|cell| buffer.write_all(&cell))?;
        buffer.flush()
    }
}
