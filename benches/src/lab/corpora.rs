//! Corpora by name: files of a directory, several files joined, or generated corpora.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lda_core::Corpus;
use lda_core::corpus::{CorpusBuilder, write_uci};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::files::{create_directory, write_whole};
use crate::synthetic::Preset;

/// Default seed of generated corpora.
const SEED: u64 = 1;

/// Name of a corpus: `kos` for `docword.kos.txt.gz`; `acl+scotus` for the documents of both, with
/// words matched by spelling; `nytlike`, `nytlike@0.1` or `nytlike@0.1+7` for a generated one, a
/// tenth of it, and a tenth of it with seed 7.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CorpusName(String);

/// A generated corpus.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Generated {
    preset: Preset,
    scale: f64,
    seed: u64,
}

impl CorpusName {
    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn generated(&self) -> Option<Generated> {
        let (preset, rest) = self.0.split_once('@').unwrap_or((&self.0, "1"));
        let (scale, seed) = rest.split_once('+').unwrap_or((rest, ""));
        let preset = preset.parse().ok()?;
        let seed = if seed.is_empty() { SEED } else { seed.parse().ok()? };
        Some(Generated { preset, scale: scale.parse().ok()?, seed })
    }

    /// Names of the joined files; a single name if there is nothing to join.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('+')
    }

    /// Path of the corpus as a UCI file. Joined and generated corpora are made in `cache` if
    /// missing.
    ///
    /// # Errors
    /// [`LabError::NoCorpus`] with the searched directory.
    pub fn file(&self, cache: &Path) -> Result<PathBuf, LabError> {
        let cached = cache.join(format!("docword.{}.txt", self.0));
        if let Some(generated) = self.generated() {
            return generated.file(&cached);
        }
        let (files, vocabularies) = self.sources()?;
        match files.as_slice() {
            [file] => Ok(file.clone()),
            files => join(files, &vocabularies, &cached),
        }
    }

    /// Checks that [`file`](Self::file) would succeed, without making the file.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn check(&self) -> Result<(), LabError> {
        match self.generated() {
            Some(generated) => Ok(generated.preset.spec().scaled(generated.scale)?.check()?),
            None => self.sources().map(|_| ()),
        }
    }

    /// The files of all parts, and their vocabularies if several are joined.
    fn sources(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>), LabError> {
        let directory = directory();
        let files = self.find(&directory, "docword")?;
        let joined = files.len() > 1;
        let vocabularies = if joined { self.find(&directory, "vocab")? } else { Vec::new() };
        Ok((files, vocabularies))
    }

    /// `kind`.NAME.txt.gz of each part, or without .gz.
    fn find(&self, directory: &Path, kind: &'static str) -> Result<Vec<PathBuf>, LabError> {
        let find = |part: &str| {
            let candidates = ["txt.gz", "txt"].map(|end| format!("{kind}.{part}.{end}"));
            let mut paths = candidates.iter().map(|name| directory.join(name));
            paths.find(|path| path.is_file()).ok_or_else(|| LabError::NoCorpus {
                name: part.to_owned(),
                kind,
                directory: directory.to_owned(),
            })
        };
        self.parts().map(find).collect()
    }
}

/// Writes the documents of all `files`, in order, to `path`, unless it exists.
fn join(files: &[PathBuf], vocabularies: &[PathBuf], path: &Path) -> Result<PathBuf, LabError> {
    if !path.is_file() {
        let mut builder = CorpusBuilder::new();
        for (file, vocabulary) in files.iter().zip(vocabularies) {
            let corpus = Corpus::read(file)?.with_vocabulary(vocabulary)?;
            let vocabulary = corpus.vocabulary().expect("it was just attached");
            for document in corpus.documents() {
                let repeat = |(word, n)| std::iter::repeat_n(vocabulary.word(word), n as usize);
                builder.push_words(document.iter().flat_map(repeat))?;
            }
        }
        let joined = builder.build()?;
        if let Some(parent) = path.parent() {
            create_directory(parent)?;
        }
        write_whole(path, |out| write_uci(&joined, out))?;
    }
    Ok(path.to_owned())
}

impl Generated {
    fn file(&self, path: &Path) -> Result<PathBuf, LabError> {
        if !path.is_file() {
            if let Some(parent) = path.parent() {
                create_directory(parent)?;
            }
            let synthetic = self.preset.spec().scaled(self.scale)?.generate(self.seed)?;
            write_whole(path, |out| write_uci(&synthetic.corpus, out))?;
        }
        Ok(path.to_owned())
    }
}

/// `$LDA_CORPORA`, or `shared/corpora` next to the repository.
fn directory() -> PathBuf {
    match std::env::var_os("LDA_CORPORA") {
        Some(directory) if !directory.is_empty() => directory.into(),
        _ => {
            let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora");
            // Resolves `..` for messages; if the directory is missing, the unresolved path is
            // shown.
            Path::new(default).canonicalize().unwrap_or_else(|_| default.into())
        }
    }
}

impl FromStr for CorpusName {
    type Err = String;

    /// Names become parts of file names: letters, digits, `.`, `_`, `-`, `@` and `+`.
    fn from_str(name: &str) -> Result<Self, String> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(legal) {
            return Err(format!(
                "{name:?} is no name of a corpus: use kos for docword.kos.txt.gz, acl+scotus for \
                 two of them joined, or nytlike@0.1"
            ));
        }
        let corpus = Self(name.to_owned());
        if name.contains('@') && corpus.generated().is_none() {
            return Err(format!(
                "{name:?} is no generated corpus: use nytlike, pubmedlike, baikelike, weblike or cellslike, then @ and \
                 a scale, and optionally + and a seed, as in nytlike@0.1+7"
            ));
        }
        Ok(corpus)
    }
}

impl TryFrom<String> for CorpusName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<CorpusName> for String {
    fn from(name: CorpusName) -> Self {
        name.0
    }
}

impl fmt::Display for CorpusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CorpusName {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_generated_corpora_have_scale_and_seed() {
        let generated = |preset, scale, seed| Some(Generated { preset, scale, seed });
        assert_eq!(name("kos").generated(), None);
        assert_eq!(name("nytlike").generated(), generated(Preset::NytLike, 1.0, 1));
        assert_eq!(name("baikelike@0.01").generated(), generated(Preset::BaikeLike, 0.01, 1));
        assert_eq!(name("pubmedlike@2+9").generated(), generated(Preset::PubmedLike, 2.0, 9));
    }

    #[test]
    fn names_cannot_leave_their_directory() {
        for bad in ["", "../kos", "a/b", "kos@0.1", "nytlike@x", "nytlike@1+x", ".", "a\nb"] {
            assert!(bad.parse::<CorpusName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn joined_corpora_share_words_of_the_same_spelling() {
        let directory = std::env::temp_dir().join(format!("lda-lab-join-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, words, pairs) in [
            ("one", "apple\nfig\n", "1\n2\n2\n1 1 2\n1 2 1\n"),
            ("two", "plum\napple\n", "2\n2\n2\n1 2 3\n2 1 1\n"),
        ] {
            std::fs::write(directory.join(format!("vocab.{name}.txt")), words).unwrap();
            std::fs::write(directory.join(format!("docword.{name}.txt")), pairs).unwrap();
        }
        let (both, path) = (name("one+two"), directory.join("docword.one+two.txt"));
        let find = |kind| both.find(&directory, kind).unwrap();
        join(&find("docword"), &find("vocab"), &path).unwrap();
        let corpus = Corpus::read(&path).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(corpus.word_frequencies(), [5, 1, 1]);
        assert_eq!((corpus.num_documents(), corpus.num_tokens()), (3, 7));
    }

    #[test]
    fn the_error_of_a_missing_corpus_names_the_directory() {
        let find = |text| name(text).find(Path::new("/nowhere"), "docword").unwrap_err();
        let error = find("nosuch").to_string();
        assert_eq!(error, find("nosuch+kos").to_string());
        assert!(error.contains("docword.nosuch.txt.gz") && error.contains("/nowhere"), "{error}");
        assert!(error.contains("LDA_CORPORA"), "{error}");
        assert!(name("nytlike@0").check().unwrap_err().to_string().contains("scale"));
    }
}
