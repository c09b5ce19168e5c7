//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use lda_examples::method::MethodArgs;
use lda_examples::parsers::positive;
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  lda convert news.lda --out phi.npy               probabilities of words, topics by words
  lda convert news.lda --out counts.npz            sparse counts, for scipy.sparse.load_npz
  lda convert news.lda --to gensim --out news      arrays for gensim: news.sstats.npy, news.alpha.npy
  lda convert news.lda articles.txt --out vis.json   what pyLDAvis.prepare takes, of these documents
  lda convert state.gz --out news.lda              from MALLET's --output-state
  lda convert topics.npy --names words.txt --alpha 0.1 --out news.lda
                                               from gensim, scikit-learn, tomotopy by numpy.save

Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Brings a model into the form that another program reads, or from one.
#[derive(Debug, Parser)]
#[command(name = "convert", after_help = AFTER_HELP)]
pub struct Args {
    /// Model: of `train --save`, MALLET's state, WarpLDA's model, or a NumPy array of topics by words
    pub model: PathBuf,
    /// Documents, for .json: a file, or a directory of text files
    pub path: Option<PathBuf>,
    /// Write to this file: .lda, .npy, .npz, .csv, .mtx or .json, unless --to says otherwise
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Form of what is written [default: by the end of its name]
    #[arg(long, value_name = "FORM", value_enum)]
    pub to: Option<Form>,
    /// Program that has written MODEL [default: by how it begins]
    #[arg(long, value_name = "PROGRAM", value_enum)]
    pub from: Option<Program>,
    /// Names of the model's words, one a line, where it has none or others are wanted
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Document-topic prior of every topic, which a NumPy array does not tell [default: 50/K]
    #[arg(long, value_name = "X", value_parser = positive)]
    pub alpha: Option<f64>,
    #[command(flatten)]
    pub program: ProgramArgs,

    #[command(flatten)]
    pub method: MethodArgs,

    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A model of this library
    Lda,
    /// Probabilities, topics by words, 32-bit floats, for NumPy
    Npy,
    /// The sparse counts, priors and words, for SciPy and NumPy
    Npz,
    /// Probabilities with names, as text
    Csv,
    /// The sparse counts as MatrixMarket text
    Mtx,
    /// JSON with phi, theta, doc.length, vocab and term.frequency
    Pyldavis,
    /// Counts, alpha and words in three files that begin with the name given
    Gensim,
}

impl Form {
    /// By the end of a name.
    ///
    /// # Errors
    /// Which ends there are.
    pub fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("lda") => Ok(Self::Lda),
            Some("npy") => Ok(Self::Npy),
            Some("npz") => Ok(Self::Npz),
            Some("csv") => Ok(Self::Csv),
            Some("mtx") => Ok(Self::Mtx),
            Some("json") => Ok(Self::Pyldavis),
            _ => Err(format!(
                "--out {}: name a file that ends in .lda, .npy, .npz, .csv, .mtx or .json, or say --to",
                path.display()
            )),
        }
    }
}

/// Who can have written a model.
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
