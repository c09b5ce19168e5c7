//! Options of `lda convert`. Their names and meanings are stable, because other programs call this
//! one.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use lda_core::Alpha;
use lda_examples::documents::InferenceArgs;
use lda_examples::parsers::{alpha, positive};
use lda_examples::text::of_model;

const AFTER_HELP: &str = "\
Examples:
  lda convert news.lda --out phi.npy                 word probabilities, topics by words
  lda convert news.lda --out counts.npz              sparse counts, for scipy.sparse.load_npz
  lda convert news.lda --to gensim --out news        gensim: news.sstats.npy, news.alpha.npy
  lda convert news.lda articles.txt --out vis.json   arguments of pyLDAvis.prepare for these documents
  lda convert checkpoints articles.txt --out news.lda
                                                     from the last snapshot of a run on these documents
  lda convert news.lda --merge-duplicates 0.5 --out merged.lda
                                                     one topic instead of several that are alike
  lda convert state.gz --out news.lda                from MALLET's --output-state
  lda convert topics.npy --names words.txt --alpha 0.1 --out news.lda
                                                     from gensim, scikit-learn, tomotopy by numpy.save
                                                     (also .npz with one array, and .npy.gz)

Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Convert a model to or from the format of another program
#[derive(Debug, Parser)]
#[command(name = "convert", after_help = AFTER_HELP, mut_args(of_model))]
pub struct Args {
    /// Model to convert: of `lda train --save`, a snapshot or the directory of `lda train --checkpoint`,
    /// a MALLET state, a WarpLDA model, or a NumPy array of topics by words
    pub model: PathBuf,
    /// Documents, needed for .json and for a snapshot: a file, or a directory of text files
    pub path: Option<PathBuf>,
    /// Output file: .lda, .npy, .npz, .csv, .mtx or .json; with --to any name
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Output format [default: by the extension of --out]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub to: Option<Form>,
    /// Program that wrote MODEL [default: detected from its first bytes]
    #[arg(long, value_name = "PROGRAM", value_enum)]
    pub from: Option<Program>,
    /// File of the words of the model, one per line, for a model without a vocabulary or to replace it
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Prior of topics in a document, for a NumPy array, which has none: one number, one per topic
    /// with commas between them, or a file of them (.npy or text) [default: 5/K]
    #[arg(long, value_name = "X", value_parser = prior)]
    pub alpha: Option<Prior>,
    /// Merge topics that are nearer than this to each other: Σ over words of the differences of their
    /// probabilities, from 0 for equal topics to 2 for topics without common words; 0.5 is a start
    #[arg(long, value_name = "DISTANCE", value_parser = positive)]
    pub merge_duplicates: Option<f64>,
    #[command(flatten)]
    pub inference: InferenceArgs,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Model of this library
    Lda,
    /// Word probabilities, topics by words, as a NumPy array of 32-bit floats
    Npy,
    /// Sparse counts, priors and vocabulary, for SciPy and NumPy
    Npz,
    /// Word probabilities with names, as text
    Csv,
    /// Sparse counts as MatrixMarket text
    Mtx,
    /// JSON with the arguments of `pyLDAvis.prepare`
    Pyldavis,
    /// Counts, alpha and vocabulary for gensim, in three files whose names begin with --out
    Gensim,
}

/// Value of `--alpha`.
#[derive(Clone, Debug, PartialEq)]
pub enum Prior {
    /// Numbers.
    Numbers(Alpha),
    /// A file of numbers.
    File(PathBuf),
}

/// Parses numbers; a text that is no number and is not a list of them names a file.
fn prior(text: &str) -> Result<Prior, String> {
    let is_list = text.split(',').any(|part| part.trim().parse::<f64>().is_ok());
    if is_list || !Path::new(text).is_file() {
        return alpha(text).map(Prior::Numbers).map_err(|reason| match is_list {
            true => reason,
            false => format!("{reason}, nor a file"),
        });
    }
    Ok(Prior::File(text.into()))
}

impl Form {
    /// Format of the extension of `path`.
    ///
    /// # Errors
    /// A message with the known extensions.
    pub fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("lda") => Ok(Self::Lda),
            Some("npy") => Ok(Self::Npy),
            Some("npz") => Ok(Self::Npz),
            Some("csv") => Ok(Self::Csv),
            Some("mtx") => Ok(Self::Mtx),
            Some("json") => Ok(Self::Pyldavis),
            _ => Err(format!(
                "--out {}: name a file that ends in .lda, .npy, .npz, .csv, .mtx or .json, or give --to",
                path.display()
            )),
        }
    }
}

/// Programs whose models can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// This library
    Lda,
    /// MALLET: --output-state
    Mallet,
    /// WarpLDA: --dumpmodel
    Warplda,
    /// numpy.save of topics by words
    Numpy,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }
}
