//! Default corpus: the Rust sources in cargo's registry, which exist on any machine that built this
//! program.
//!
//! Each file is a document. Identifiers and words of comments are tokenized alike: runs of letters are
//! split where the case changes (`readHTTPHeader` is read, http, header), underscores and digits
//! end a word, numbers are skipped with the letters in them (`0xff`, `1u8`). Keywords of Rust and
//! the most frequent English words are left out.
//!
//! If a package exists in several versions, only the last one is read, because copies of a text would
//! become topics of their own. Generated code is left out: packages of bindings (by their names) and
//! files above 256 KiB. Above 20,000 files or 64 MiB, files are left out at even distances. Files are
//! sorted by path, so that the corpus depends only on the content of the registry.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use lda_core::Corpus;
use lda_core::corpus::read::{StopWords, TokenizerOptions};
use lda_core::corpus::{BuildError, CorpusBuilder, ReadError, Vocabulary};
use serde::Serialize;
use thiserror::Error;

use crate::text::{TextArgs, read_words, stop_words};

/// Name of the corpus.
pub const NAME: &str = "Rust sources in cargo's registry";

const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Maximum depth of directories below the registry; real trees are less than half as deep.
const MAX_DEPTH: u32 = 32;

/// Keywords, and names that only belong to the language.
const KEYWORDS: &str = "abstract async await become box break const continue crate default dyn \
    else enum extern false fn for if impl in let loop macro match mod move mut override priv pub \
    ref return self static struct super trait true try type typeof union unsafe unsized use \
    virtual where while yield bool char str string usize isize vec option some none result ok err \
    assert debug derive inline cfg allow doc test tests clone copy iter into from unwrap expect \
    std core alloc fmt";

/// English stop words, in addition to those that the document frequency removes.
const ENGLISH: &str = "about above after again all also although always and another any are aren \
    because been before being below between both but can cannot could did does doesn doing don \
    done down during each either etc even every few first for from further get gets had has hasn \
    have having here how however instead into isn its itself just last like made make makes many \
    may maybe might more most much must need needs never not note now off once one only onto other \
    others our out over own per rather same see set shall should since so some such than that the \
    their them then there therefore these they thing this those though through thus too two under \
    until upon use used using very via want was way we well were what when where whether which \
    while who whose why will with within without won would yet you your";

/// Tokenization options.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rules {
    /// Minimum number of letters of a word.
    pub min_length: u32,
    /// Maximum number of letters of a word.
    pub max_length: u32,
    /// Minimum number of files that contain a word.
    pub min_document_frequency: u32,
    /// Maximum share of the files that contain a word.
    pub max_document_frequency: f64,
    /// Source of the stop words; keywords of Rust are always left out too.
    pub stop_words: String,
    /// Stop words in lower case, if they are given.
    #[serde(skip)]
    pub stop_list: Option<Vec<String>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            min_length: 3,
            max_length: 32,
            min_document_frequency: 5,
            max_document_frequency: 0.25,
            stop_words: "english".to_owned(),
            stop_list: None,
        }
    }
}

impl Rules {
    /// Takes the options of the command line.
    fn by(text: &TextArgs) -> Result<Self, ReadError> {
        let defaults = Self::default();
        let words = &text.words;
        Ok(Self {
            min_length: words.min_length.unwrap_or(defaults.min_length),
            max_length: words.max_length.unwrap_or(defaults.max_length),
            min_document_frequency: text
                .min_document_frequency
                .unwrap_or(defaults.min_document_frequency),
            max_document_frequency: text
                .max_document_frequency
                .unwrap_or(defaults.max_document_frequency),
            stop_words: match &words.stop_words {
                Some(list) => list.display().to_string(),
                None => defaults.stop_words,
            },
            stop_list: match words.stop_words.as_deref().map(stop_words) {
                Some(StopWords::None) => Some(Vec::new()),
                Some(StopWords::File(path)) => Some(read_words(&path)?),
                _ => None,
            },
        })
    }
}

impl Rules {
    /// The rules for texts of a model of Rust sources. They differ in words with digits only, which the
    /// sources are read without and no model has.
    fn tokenizer(&self) -> TokenizerOptions {
        let mut options = TokenizerOptions::default();
        options.split_identifiers = true;
        (options.min_length, options.max_length) = (self.min_length, self.max_length);
        if let Some(list) = &self.stop_list {
            options.stop_words = StopWords::List(list.clone());
        }
        options
    }
}

/// Errors of reading the Rust sources.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourcesError {
    /// There are no sources.
    #[error("there are no Rust sources in {looked_in}: give a path of documents")]
    None {
        /// The directory that was searched.
        looked_in: String,
    },
    /// The stop words cannot be read.
    #[error(transparent)]
    StopWords(#[from] ReadError),
    /// The corpus could not be built.
    #[error("{path}: {source}", path = path.display())]
    Build {
        /// Path of the documents.
        path: PathBuf,
        /// Cause.
        source: BuildError,
    },
}

/// Summary of the files read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Number of files read.
    pub files: usize,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Number of files left out because of the limits.
    pub left_out: usize,
    /// Tokenization options.
    pub rules: Rules,
}

/// Reads the registry of this machine, for a subcommand without a path; `note` receives lines for
/// people.
///
/// # Errors
/// [`SourcesError`].
pub fn read(
    text: &TextArgs,
    note: &mut dyn FnMut(&str),
) -> Result<(Corpus, Summary), SourcesError> {
    note(&format!("no path given: the documents are the {NAME} (see --help)"));
    let (corpus, summary) = read_by(Rules::by(text)?)?;
    let left_out = match summary.left_out {
        0 => String::new(),
        n => format!(" ({n} left out, spread evenly)"),
    };
    note(&format!(
        "{} files of {:.1} MB{left_out}: {} words, {} tokens",
        summary.files,
        summary.bytes as f64 / 1e6,
        corpus.num_words(),
        corpus.num_tokens()
    ));
    Ok((corpus, summary))
}

fn read_by(rules: Rules) -> Result<(Corpus, Summary), SourcesError> {
    let root = registry();
    let looked_in = root.clone().map_or("~/.cargo".to_owned(), |root| root.display().to_string());
    let mut found = Found::default();
    if let Some(root) = &root {
        found.registries(root);
    }
    let left_out = found.thin_out();
    let mut words = Words::new(&rules);
    let mut bytes = 0;
    let mut files = 0;
    for (path, _) in &found.files {
        // A file that was removed or cannot be read is skipped.
        let Ok(content) = fs::read(path) else { continue };
        words.add(&String::from_utf8_lossy(&content)).map_err(|source| build(path, source))?;
        bytes += content.len() as u64;
        files += 1;
    }
    if files == 0 {
        return Err(SourcesError::None { looked_in });
    }
    let corpus = words.finish(&rules).map_err(|source| match source {
        BuildError::NoTokens => SourcesError::None { looked_in },
        source => build(Path::new(&looked_in), source),
    })?;
    Ok((corpus, Summary { files, bytes, left_out, rules }))
}

fn build(path: &Path, source: BuildError) -> SourcesError {
    SourcesError::Build { path: path.to_owned(), source }
}

/// Directory of the sources that cargo has unpacked.
fn registry() -> Option<PathBuf> {
    let home = match env::var_os("CARGO_HOME").filter(|home| !home.is_empty()) {
        Some(home) => PathBuf::from(home),
        None => env::home_dir()?.join(".cargo"),
    };
    Some(home.join("registry").join("src"))
}

/// Source files with their sizes.
#[derive(Default)]
struct Found {
    files: Vec<(PathBuf, u64)>,
}

impl Found {
    /// Walks the packages of each registry, `root/REGISTRY/NAME-VERSION`.
    fn registries(&mut self, root: &Path) {
        for (registry, _) in entries(root) {
            let packages: Vec<_> = entries(&registry).into_iter().map(|(path, _)| path).collect();
            for (n, package) in packages.iter().enumerate() {
                let name = package_name(package);
                let newer = packages.get(n + 1).is_some_and(|next| package_name(next) == name);
                if !newer && !is_bindings(&name) {
                    self.walk(package, 0);
                }
            }
        }
    }

    fn walk(&mut self, directory: &Path, depth: u32) {
        for (path, metadata) in entries(directory) {
            if metadata.is_dir() && depth < MAX_DEPTH {
                self.walk(&path, depth + 1);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && metadata.is_file()
                && metadata.len() <= MAX_FILE_BYTES
            {
                self.files.push((path, metadata.len()));
            }
        }
    }

    /// Keeps files at even distances, as many as the limits allow; returns the number left out.
    fn thin_out(&mut self) -> usize {
        let all = self.files.len();
        let bytes: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        let share = (MAX_FILES as f64 / all as f64).min(MAX_BYTES as f64 / bytes as f64);
        if share < 1.0 {
            let mut n = 0.0f64;
            self.files.retain(|_| {
                n += 1.0;
                (n * share).floor() > ((n - 1.0) * share).floor()
            });
        }
        all - self.files.len()
    }
}

/// Entries of a directory sorted by name, without links and hidden files.
fn entries(directory: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut entries: Vec<_> = entries
        .flatten()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        // `DirEntry::metadata` does not follow links.
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .filter(|(_, metadata)| !metadata.is_symlink())
        .collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// Package name without the version, which starts at the first `-` before a digit.
fn package_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digit_at = |at: usize| name.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
    let end = name.match_indices('-').map(|(at, _)| at).find(|&at| digit_at(at));
    name[..end.unwrap_or(name.len())].to_owned()
}

/// Whether a package contains bindings, which are mostly generated.
fn is_bindings(name: &str) -> bool {
    name.ends_with("-sys")
        || name.ends_with("_sys")
        || ["libc", "winapi", "windows", "web-", "js-"].iter().any(|start| name.starts_with(start))
}

/// Documents and word frequencies; rare and common words are removed at the end.
struct Words {
    vocabulary: Vocabulary,
    documents: Vec<Vec<u32>>,
    /// Number of documents that contain each word.
    frequencies: Vec<u32>,
    stop_words: HashSet<String>,
    min_length: usize,
    max_length: usize,
}

impl Words {
    fn new(rules: &Rules) -> Self {
        let keywords = KEYWORDS.split_ascii_whitespace().map(str::to_owned);
        let stop_words = match &rules.stop_list {
            Some(given) => keywords.chain(given.iter().cloned()).collect(),
            None => keywords.chain(ENGLISH.split_ascii_whitespace().map(str::to_owned)).collect(),
        };
        Self {
            vocabulary: Vocabulary::new(),
            documents: Vec::new(),
            frequencies: Vec::new(),
            stop_words,
            min_length: rules.min_length as usize,
            max_length: rules.max_length as usize,
        }
    }

    fn add(&mut self, text: &str) -> Result<(), BuildError> {
        let mut tokens = Vec::new();
        let mut failed = None;
        for_each_word(text, |word| {
            let letters = word.chars().count();
            if letters < self.min_length
                || letters > self.max_length
                || self.stop_words.contains(word)
            {
                return;
            }
            match self.vocabulary.intern(word) {
                Ok(id) => tokens.push(id),
                Err(full) => failed = Some(full),
            }
        });
        if let Some(full) = failed {
            return Err(full.into());
        }
        tokens.sort_unstable();
        self.frequencies.resize(self.vocabulary.len(), 0);
        for run in tokens.chunk_by(|a, b| a == b) {
            self.frequencies[run[0] as usize] += 1;
        }
        self.documents.push(tokens);
        Ok(())
    }

    /// Builds the corpus without words that are too rare or too common.
    fn finish(self, rules: &Rules) -> Result<Corpus, BuildError> {
        let most = rules.max_document_frequency * self.documents.len() as f64;
        let mut kept = Vocabulary::new();
        let mut ids = Vec::with_capacity(self.vocabulary.len());
        for (word, &frequency) in self.vocabulary.iter().zip(&self.frequencies) {
            let keep = frequency >= rules.min_document_frequency && f64::from(frequency) <= most;
            ids.push(if keep { Some(kept.intern(word)?) } else { None });
        }
        kept.set_tokenizer(Some(rules.tokenizer()));
        let mut builder = CorpusBuilder::new().vocabulary(kept);
        for tokens in self.documents {
            builder.push_tokens(tokens.iter().filter_map(|&token| ids[token as usize]))?;
        }
        builder.build()
    }
}

/// Calls `visit` with each word of a source, in lower case.
fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut word = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if run.starts_with(|c: char| c.is_numeric()) {
            continue;
        }
        let mut chars = run.chars().peekable();
        let mut last_upper = false;
        while let Some(c) = chars.next() {
            if !c.is_alphabetic() {
                flush(&mut word, &mut visit);
                continue;
            }
            // In `aB` a word starts at B; in `ABc`, where the capitals are an acronym, at B too.
            let upper = c.is_uppercase();
            let next_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            if upper && (!last_upper || next_lower) {
                flush(&mut word, &mut visit);
            }
            word.extend(c.to_lowercase());
            last_upper = upper;
        }
        flush(&mut word, &mut visit);
    }
}

fn flush(word: &mut String, visit: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        visit(word);
        word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn identifiers_are_split() {
        assert_eq!(words("readHTTPHeader"), ["read", "http", "header"]);
        assert_eq!(words("MAX_FILE_BYTES"), ["max", "file", "bytes"]);
        assert_eq!(words("_x utf8_len"), ["x", "utf", "len"]);
        assert_eq!(words("0xdead_beef 1u8 é3Ä"), ["é", "ä"]);
        assert_eq!(words("Don't // IOs"), ["don", "t", "i", "os"]);
        assert_eq!(words(" \u{0} "), Vec::<String>::new());
    }

    #[test]
    fn rare_common_and_stop_words_are_left_out() {
        let rules = Rules { min_document_frequency: 2, ..Rules::default() };
        let mut gathered = Words::new(&rules);
        for n in 0..8 {
            gathered.add(if n < 2 { "fn parse_tree() common the go" } else { "common" }).unwrap();
        }
        gathered.add("lonely").unwrap();
        let corpus = gathered.finish(&rules).unwrap();
        assert_eq!(corpus.num_documents(), 9);
        assert_eq!(corpus.vocabulary().unwrap().iter().collect::<Vec<_>>(), ["parse", "tree"]);
    }

    #[test]
    fn names_end_where_versions_start() {
        for (directory, name) in
            [("serde-1.0.229", "serde"), ("linux-raw-sys-0.12.1", "linux-raw-sys"), ("x", "x")]
        {
            assert_eq!(package_name(&Path::new("/a").join(directory)), name);
        }
        assert!(is_bindings("linux-raw-sys") && is_bindings("windows-targets"));
        assert!(!is_bindings("system") && !is_bindings("clap"));
    }

    #[test]
    fn bounds_hold() {
        let file = |_| (PathBuf::from("file"), MAX_FILE_BYTES);
        let many = 3 * MAX_BYTES / MAX_FILE_BYTES;
        let mut found = Found { files: (0..many).map(file).collect() };
        assert_eq!(found.thin_out() as u64, many / 3 * 2);
        let mut found = Found { files: (0..3).map(file).collect() };
        assert_eq!((found.thin_out(), found.files.len()), (0, 3));
        assert_eq!(Found::default().thin_out(), 0);
    }
}
