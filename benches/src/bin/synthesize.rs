//! Writes a synthetic corpus as UCI files: `synthesize nytlike --out docword.txt`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use lda_benches::synthetic::{Preset, Synthetic};
use lda_core::corpus::blocks::Blocks as _;
use lda_core::corpus::{Vocabulary, write_uci};

/// Writes a synthetic corpus in the UCI bag-of-words format.
///
/// The same preset, scale and seed give the same tokens on every machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// nytlike, pubmedlike, baikelike (about 9.9 million tokens each), weblike or cellslike (50 million).
    preset: Preset,
    /// Number of documents as a share of the preset's.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Random seed: another seed gives another corpus of the same distribution.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Output file for the documents.
    #[arg(long, value_name = "FILE", required_unless_present = "blocks")]
    out: Option<PathBuf>,
    /// Output directory for the documents in blocks, as `lda cut` writes them, of which a few are in memory.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "vocabulary"])]
    blocks: Option<PathBuf>,
    /// Tokens of a block.
    #[arg(long, value_name = "N", default_value_t = 1 << 22, requires = "blocks")]
    block_tokens: u64,
    /// Output file for the vocabulary, one word per line.
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
}

/// An error here is reported by the command line as misuse.
fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    let spec = Preset::NytLike.spec().scaled(scale).and_then(|spec| spec.check());
    spec.map(|()| scale).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(summary) => {
            let _ = writeln!(io::stdout(), "{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn std::error::Error>> {
    let spec = arguments.preset.spec().scaled(arguments.scale)?;
    if let Some(path) = &arguments.blocks {
        let blocks = spec.generate_blocks(arguments.seed, arguments.block_tokens, path)?;
        let (parts, found) = (blocks.parts().len(), blocks.statistics());
        let (documents, words, tokens) =
            (found.num_documents(), found.num_words(), found.num_tokens());
        return Ok(format!(
            "{} scale {} seed {}: {documents} documents, {words} words, {tokens} tokens, {parts} blocks",
            arguments.preset, arguments.scale, arguments.seed,
        ));
    }
    let Synthetic { corpus, .. } = spec.generate(arguments.seed)?;
    if let Some(path) = &arguments.out {
        write_whole(path, |out| write_uci(&corpus, out))?;
    }
    if let Some(path) = &arguments.vocabulary {
        write_whole(path, |out| {
            let mut words = corpus.vocabulary().into_iter().flat_map(Vocabulary::iter);
            words.try_for_each(|word| writeln!(out, "{word}"))?;
            out.flush()
        })?;
    }
    Ok(format!(
        "{} scale {} seed {}: {} documents, {} words, {} tokens, {} pairs, fingerprint {:016x}",
        arguments.preset,
        arguments.scale,
        arguments.seed,
        corpus.num_documents(),
        corpus.num_words(),
        corpus.num_tokens(),
        corpus.num_pairs(),
        corpus.fingerprint(),
    ))
}

/// Writes to a temporary file and renames it, so that an error leaves no partial file.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), String> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let result = File::create(&partial)
        .and_then(|file| write(&mut BufWriter::new(file)))
        .and_then(|()| fs::rename(&partial, path));
    result.map_err(|error| {
        // The first error is reported; the file may not exist.
        let _ = fs::remove_file(&partial);
        format!("cannot write {}: {error}", path.display())
    })
}
