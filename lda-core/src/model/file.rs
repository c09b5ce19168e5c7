//! Writes and reads model files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

use super::counts::Counts;
use super::names::Names;
use super::provenance::Provenance;
use super::rows::{Pattern, TopicArray};
use super::weights::Weights;
use super::{Parameters, TopicModel};
use crate::container::pairs::{self, ABOUT, Pairs};
use crate::container::{FileError, Kind, Reader, Source, Writer, replace};
use crate::corpus::Vocabulary;
use crate::corpus::read::TokenizerOptions;
use crate::prior::check_beta;

impl TopicModel {
    /// Writes the model file at `path` [atomically](replace): a failure leaves the old file.
    ///
    /// # Errors
    /// [`FileError`] for I/O errors.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        replace(path.as_ref(), |file| self.write_to(file).map_err(FileError::from))
    }

    /// Writes the model file at the current position of `out`. The header is written last, so that
    /// an incomplete file is invalid.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to<W: Write + Seek>(&self, out: W) -> io::Result<()> {
        let names = self.vocabulary();
        let asked = self.provenance.initial_alpha.as_ref();
        let asked = asked.filter(|&asked| *asked != self.alpha);
        let sections = 6 + 2 * usize::from(names.is_some()) + usize::from(asked.is_some());
        let mut file = Writer::new(out, Kind::Model, sections)?;
        let about = self.about();
        file.section(
            ABOUT,
            pairs::to_bytes(about.iter().map(|(name, value)| (&**name, &**value))),
        )?;
        file.section("alpha", self.alpha.as_slice().iter().copied())?;
        if let Some(asked) = asked {
            file.section("alpha-asked", asked.as_slice().iter().copied())?;
        }
        let pattern = match &self.parameters {
            Parameters::Counts(counts) => {
                file.section("totals", counts.totals.iter().copied())?;
                &counts.pattern
            }
            Parameters::Weights(weights) => {
                file.section("floors", weights.floors.iter().copied())?;
                &weights.pattern
            }
        };
        file.section("offsets", pattern.offsets.iter().copied())?;
        match &pattern.topics {
            TopicArray::Narrow(topics) => file.section("topics", topics.iter().copied())?,
            TopicArray::Wide(topics) => file.section("topics", topics.iter().copied())?,
        }
        match &self.parameters {
            Parameters::Counts(counts) => file.section("counts", counts.counts.iter().copied())?,
            Parameters::Weights(weights) => {
                file.section("weights", weights.excesses.iter().copied())?;
            }
        }
        if let Some(names) = names {
            let (text, ends) = names.parts();
            file.section("word-ends", ends.iter().copied())?;
            file.section("word-names", text.bytes())?;
        }
        file.finish()?.flush()
    }

    /// Pairs of the section [`ABOUT`].
    fn about(&self) -> Vec<(String, String)> {
        let mut about = vec![
            ("topics".to_owned(), self.num_topics().to_string()),
            ("words".to_owned(), self.num_words().to_string()),
        ];
        let parameters = match &self.parameters {
            Parameters::Counts(counts) => {
                about.push(("beta".to_owned(), counts.beta.to_string()));
                "counts"
            }
            Parameters::Weights(_) => "weights",
        };
        about.push(("parameters".to_owned(), parameters.to_owned()));
        about.extend(self.provenance.to_pairs());
        let tokenizer = self.vocabulary().and_then(Vocabulary::tokenizer);
        about.extend(tokenizer.map(TokenizerOptions::to_pairs).unwrap_or_default());
        about
    }

    /// Reads the model file at `path` into memory. Compares every checksum and checks every entry.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let open = || Self::read_from(BufReader::new(File::open(path)?));
        open().map_err(|error: FileError| error.at(path))
    }

    /// Reads a model file that spans all of `from`. Memory is bounded by its length.
    ///
    /// # Errors
    /// [`FileError`] names the problem.
    pub fn read_from<R: Read + Seek>(from: R) -> Result<Self, FileError> {
        let model = read(&mut Reader::open(from, Kind::Model)?)?;
        model.check_entries()?;
        Ok(model)
    }

    /// Checks that entries are valid and consistent with the totals.
    pub(super) fn check_entries(&self) -> Result<(), FileError> {
        match &self.parameters {
            Parameters::Counts(counts) => counts.check(),
            Parameters::Weights(weights) => weights.check(),
        }
    }
}

/// Reads a model and checks everything except the entries, which [`TopicModel::check_entries`]
/// does.
pub(super) fn read(file: &mut impl Source) -> Result<TopicModel, FileError> {
    let about = Pairs::parse(&file.array::<u8>(ABOUT)?)?;
    let topics = about.read::<u32>("topics")?;
    let words = about.read::<u32>("words")?;
    let alpha = file.alpha("alpha")?;
    alpha
        .check(topics as usize)
        .map_err(|error| FileError::malformed("alpha", error.to_string()))?;
    let offsets = file.exactly("offsets", u64::from(words) + 1)?;
    let topic_ids = if file.has_of::<u16>("topics") {
        TopicArray::Narrow(file.array("topics")?)
    } else {
        TopicArray::Wide(file.array("topics")?)
    };
    let pattern = Pattern { offsets, topics: topic_ids };
    pattern.check_offsets()?;
    let entries = *pattern.offsets.last().expect("offsets has V + 1 elements");
    let parameters = match about.required("parameters", |kind| Some(kind.to_owned()))?.as_str() {
        "counts" => {
            let beta = about.read::<f64>("beta")?;
            check_beta(beta, words as usize)
                .map_err(|error| FileError::malformed(ABOUT, error.to_string()))?;
            let totals = file.exactly("totals", topics.into())?;
            let counts = file.exactly("counts", entries)?;
            Parameters::Counts(Counts { pattern, counts, totals, beta })
        }
        "weights" => {
            let floors = file.exactly("floors", topics.into())?;
            let excesses = file.exactly("weights", entries)?;
            let weights = Weights { pattern, excesses, floors };
            weights.check_floors()?;
            Parameters::Weights(weights)
        }
        other => {
            return Err(FileError::malformed(ABOUT, format!("parameters are {other:?}")));
        }
    };
    let names = if file.has("word-ends") {
        let ends = file.exactly("word-ends", words.into())?;
        Names::stored(ends, file.array("word-names")?, TokenizerOptions::from_pairs(&about)?)?
    } else {
        Names::default()
    };
    let asked = if file.has("alpha-asked") { file.alpha("alpha-asked")? } else { alpha.clone() };
    let provenance = Provenance::from_pairs(&about, asked)?;
    Ok(TopicModel { parameters, alpha, names, provenance })
}
