//! Documents in a [`Storage`], one object per shard, so that a worker reads only its own shards.
//!
//! ```text
//! manifest        list of the shards, as text:
//!                   lda-dist documents 2
//!                   words 6906
//!                   # documents without tokens
//!                   empty 0
//!                   # shard, first document, documents, tokens, fingerprint
//!                   shard 0 0 429 58431 9d0c1c6f4a5d3b21
//!                   shard 1 429 431 58502 …
//! words           the vocabulary, if there is one: a corpus without documents
//! shard-00000     documents of a shard: a corpus without vocabulary
//! statistics      word counts and lengths of all documents, so that words are placed before any document is
//!                 read; without it, workers read their documents twice
//! held-out        documents that are not trained on, if there are any: a corpus without vocabulary
//! hosts           machines that store a shard locally, as text, if the storage knows them:
//!                   lda-dist hosts 1
//!                   shard 0 node-7 node-9
//! ```
//!
//! Machines are looked up once, when the documents are stored, because all nodes must use the same
//! ones. If shards are moved, rewrite `hosts`; it is not part of the fingerprint.
//!
//! The manifest is written last: without it the documents are incomplete and cannot be opened.

use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;

use lda_core::Corpus;
use lda_core::container::{FileError, checksum};
use lda_core::corpus::Vocabulary;
use thiserror::Error;

use super::manifest::{HOSTS_TITLE, MANIFEST, Manifest, Part, TITLE, parse, parse_hosts};
use super::{Documents, ReadShardError, Statistics};
use crate::config::ConfigError;
use crate::locality::ShardLocation;
use crate::plan::cut;
use crate::storage::{Storage, StorageError};

const WORDS: &str = "words";
const STATISTICS: &str = "statistics";
const HELD_OUT: &str = "held-out";
const HOSTS: &str = "hosts";

/// Error of storing documents or reading them back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoredError {
    /// The documents cannot be cut into this many shards.
    #[error(transparent)]
    Cut(#[from] ConfigError),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A line of the manifest is malformed.
    #[error("manifest:{line}: {why}; store the documents again")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the problem.
        why: String,
    },
    /// A line of `hosts` is malformed.
    #[error("hosts:{line}: {why}; correct or remove the file")]
    Hosts {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the problem.
        why: String,
    },
    /// An object is damaged, or is not a corpus.
    #[error("{name}: {error}")]
    File {
        /// Name of the object.
        name: String,
        /// Description of the problem.
        #[source]
        error: FileError,
    },
    /// An object differs from what the manifest lists.
    #[error("{name} does not match the manifest: {why}; store the documents again")]
    Other {
        /// Name of the object.
        name: String,
        /// The difference.
        why: String,
    },
}

/// Documents in a storage. Clones share it.
#[derive(Debug)]
pub struct StoredDocuments<S> {
    storage: Arc<S>,
    words: u32,
    empty: u64,
    parts: Arc<[Part]>,
    fingerprint: u64,
    statistics: Option<Arc<Statistics>>,
}

impl<S> Clone for StoredDocuments<S> {
    fn clone(&self) -> Self {
        let Self { storage, words, empty, parts, fingerprint, statistics } = self;
        let (storage, parts) = (Arc::clone(storage), Arc::clone(parts));
        let (words, empty, fingerprint) = (*words, *empty, *fingerprint);
        Self { storage, words, empty, parts, fingerprint, statistics: statistics.clone() }
    }
}

/// Stores documents in `shards` shards, [cut](cut()) about evenly. Documents that were stored there
/// before are overwritten.
///
/// # Errors
/// [`StoredError::Cut`] and [`StoredError::Storage`].
pub fn store(corpus: &Corpus, shards: u16, storage: &dyn Storage) -> Result<(), StoredError> {
    let firsts = cut(corpus, shards)?;
    // They may have other words.
    storage.remove(HELD_OUT)?;
    let (words, empty) = (corpus.num_words(), corpus.num_empty());
    let mut manifest = format!("{TITLE}\nwords {words}\nempty {empty}\n");
    manifest.push_str("# shard, first document, documents, tokens, fingerprint\n");
    let mut hosts = String::new();
    storage.write(WORDS, &bytes(&corpus.select([])))?;
    for (shard, ends) in firsts.windows(2).enumerate() {
        let mut part = corpus.select(ends[0]..ends[1]);
        part.take_vocabulary();
        storage.write(&name(shard), &bytes(&part))?;
        let told = storage.hosts(&name(shard))?;
        // Names with spaces, or empty ones, would break the format: leave them out.
        let told = told.iter().filter(|host| host.split_whitespace().eq([&host[..]]));
        let told: String = told.map(|host| format!(" {host}")).collect();
        if !told.is_empty() {
            writeln!(hosts, "shard {shard}{told}").expect("writing to a string does not fail");
        }
        let (first, documents, tokens) = (ends[0], part.num_documents(), part.num_tokens());
        let fingerprint = part.fingerprint();
        writeln!(manifest, "shard {shard} {first} {documents} {tokens} {fingerprint:016x}")
            .expect("writing to a string does not fail");
    }
    if hosts.is_empty() {
        storage.remove(HOSTS)?;
    } else {
        storage.write(HOSTS, format!("{HOSTS_TITLE}\n{hosts}").as_bytes())?;
    }
    storage.write(STATISTICS, &Statistics::of(corpus).encode(manifest.as_bytes()))?;
    Ok(storage.write(MANIFEST, manifest.as_bytes())?)
}

/// Stores documents that are not trained on beside those that are, which must be stored before and have the
/// same words.
///
/// ```
/// use lda_core::Corpus;
/// use lda_dist::documents::{StoredDocuments, store, store_held_out};
/// use lda_dist::storage::Memory;
///
/// let (training, storage) = (Corpus::from_tokens([[0, 1], [1, 2]])?, Memory::default());
/// store(&training, 2, &storage)?;
/// let held_out = Corpus::from_tokens([[2, 0, 2]])?;
/// store_held_out(&held_out, &storage)?;
/// assert_eq!(StoredDocuments::open(storage)?.held_out()?, Some(held_out));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`StoredError::Storage`].
pub fn store_held_out(corpus: &Corpus, storage: &dyn Storage) -> Result<(), StoredError> {
    let mut corpus = corpus.clone();
    corpus.take_vocabulary();
    Ok(storage.write(HELD_OUT, &bytes(&corpus))?)
}

fn bytes(corpus: &Corpus) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    corpus.write_to(&mut file).expect("writing to memory does not fail");
    file.into_inner()
}

fn name(shard: usize) -> String {
    format!("shard-{shard:05}")
}

impl<S: Storage> StoredDocuments<S> {
    /// Opens stored documents: reads the manifest.
    ///
    /// # Errors
    /// [`StoredError::Storage`] if there is no manifest, [`StoredError::Line`] if it is malformed.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_dist::documents::{Documents, StoredDocuments, store};
    /// use lda_dist::storage::Directory;
    ///
    /// let path = std::env::temp_dir().join(format!("lda-doc-stored-{}", std::process::id()));
    /// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"], ["leaf", "sea"]])?;
    /// store(&corpus, 2, &Directory::create(&path)?)?;
    ///
    /// let stored = StoredDocuments::open(Directory::at(&path))?;
    /// assert_eq!((stored.num_shards(), stored.num_documents(), stored.num_words()), (2, 3, 4));
    /// let (documents, first) = stored.read(1)?;
    /// assert_eq!((documents.num_documents(), first), (1, 2));
    /// assert_eq!(stored.vocabulary()?.unwrap().word(3), "wave");
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(storage: S) -> Result<Self, StoredError> {
        let manifest = storage.read(MANIFEST)?;
        let Manifest { words, empty, parts } = parse(&manifest)?;
        let (fingerprint, parts) = (checksum(&manifest), parts.into());
        let mut statistics = None;
        if storage.has(STATISTICS)? {
            let read = Statistics::decode(words, &manifest, &storage.read(STATISTICS)?);
            statistics = read.map(Arc::new);
        }
        let storage = Arc::new(storage);
        Ok(Self { storage, words, empty, parts, fingerprint, statistics })
    }

    /// Number of shards.
    pub fn num_shards(&self) -> u16 {
        self.parts.len() as u16
    }

    /// Number of documents.
    pub fn num_documents(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.documents.end)
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> u64 {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// Mean number of tokens of the documents that have tokens; 0 without any.
    pub fn mean_length(&self) -> f64 {
        match self.num_documents() - self.empty {
            0 => 0.0,
            documents => self.num_tokens() as f64 / documents as f64,
        }
    }

    /// Number of words V.
    pub fn num_words(&self) -> u32 {
        self.words
    }

    /// Hash of all documents and of their shards.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Reads the vocabulary, if there is one.
    ///
    /// # Errors
    /// [`StoredError`] if it is missing or damaged.
    pub fn vocabulary(&self) -> Result<Option<Vocabulary>, StoredError> {
        let mut words = self.corpus(WORDS.to_owned())?;
        Ok(words.take_vocabulary())
    }

    /// Reads the documents that are not trained on, without vocabulary; `None` if there are none.
    ///
    /// # Errors
    /// [`StoredError`] if they are damaged, or have another number of words.
    pub fn held_out(&self) -> Result<Option<Corpus>, StoredError> {
        if !self.storage.has(HELD_OUT)? {
            return Ok(None);
        }
        self.corpus(HELD_OUT.to_owned()).map(Some)
    }

    /// Tokens of each shard and the machines that store it, as far as they are known, for
    /// [`assign`](crate::locality::assign).
    ///
    /// # Errors
    /// [`StoredError::Hosts`] and [`StoredError::Storage`].
    pub fn shard_locations(&self) -> Result<Vec<ShardLocation>, StoredError> {
        let held = |part: &Part| ShardLocation { tokens: part.tokens, hosts: Vec::new() };
        let mut held: Vec<ShardLocation> = self.parts.iter().map(held).collect();
        if self.storage.has(HOSTS)? {
            parse_hosts(&self.storage.read(HOSTS)?, &mut held)?;
        }
        Ok(held)
    }

    /// Reads an object that is a corpus with this number of words.
    fn corpus(&self, name: String) -> Result<Corpus, StoredError> {
        let read = Corpus::load_from(Cursor::new(self.storage.read(&name)?));
        let corpus = match read {
            Ok(corpus) => corpus,
            Err(error) => return Err(StoredError::File { name, error }),
        };
        let found = corpus.num_words();
        if found == self.words as usize {
            return Ok(corpus);
        }
        Err(StoredError::Other { name, why: format!("{found} words, not {}", self.words) })
    }

    fn shard(&self, shard: u16) -> Result<(Corpus, u64), StoredError> {
        let name = name(shard.into());
        let Some(part) = self.parts.get(usize::from(shard)) else {
            let why = format!("there are {} shards", self.parts.len());
            return Err(StoredError::Other { name, why });
        };
        let corpus = self.corpus(name.clone())?;
        if corpus.fingerprint() != part.fingerprint {
            return Err(StoredError::Other { name, why: "other documents".to_owned() });
        }
        Ok((corpus, part.documents.start))
    }
}

impl<S: Storage> Documents for StoredDocuments<S> {
    fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
        self.shard(shard).map_err(ReadShardError::new)
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.statistics.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    fn corpus() -> Corpus {
        Corpus::from_words((0..20).map(|d| vec![format!("w{}", d % 7), format!("w{}", d % 3)]))
            .unwrap()
    }

    fn stored() -> Memory {
        let memory = Memory::default();
        store(&corpus(), 3, &memory).unwrap();
        memory
    }

    /// Otherwise words would be placed by the counts of documents that are not there any more.
    #[test]
    fn statistics_of_other_documents_are_not_used() {
        let memory = stored();
        let others = Memory::default();
        store(&corpus().select(0..9), 3, &others).unwrap();
        memory.write(STATISTICS, &others.read(STATISTICS).unwrap()).unwrap();
        assert_eq!(StoredDocuments::open(memory).unwrap().statistics(), None);
        let without = stored();
        without.remove(STATISTICS).unwrap();
        assert_eq!(StoredDocuments::open(without).unwrap().statistics(), None);
    }

    #[test]
    fn shards_together_are_the_corpus() {
        let stored = StoredDocuments::open(stored()).unwrap();
        let corpus = corpus();
        assert_eq!(stored.num_documents(), 20);
        assert_eq!(stored.num_tokens(), corpus.num_tokens());
        assert_eq!(stored.vocabulary().unwrap().as_ref(), corpus.vocabulary());
        assert_eq!(stored.statistics(), Some(&Statistics::of(&corpus)));
        let in_memory = super::super::InMemory::new(corpus, 3).unwrap();
        for shard in 0..3 {
            let (mut there, first) = in_memory.read(shard).unwrap();
            there.take_vocabulary();
            assert_eq!(stored.read(shard).unwrap(), (there, first));
        }
        assert!(stored.read(3).unwrap_err().to_string().contains("there are 3 shards"));
        assert!(in_memory.read(3).unwrap_err().to_string().contains("there are 3 shards"));
        // The cause keeps its type.
        let error = stored.read(3).unwrap_err();
        let cause = error.get_ref().downcast_ref::<StoredError>();
        assert!(matches!(cause, Some(StoredError::Other { .. })));
    }

    #[test]
    fn the_mean_length_is_of_documents_with_tokens() {
        let corpus = Corpus::from_tokens([vec![0, 5, 5], vec![], vec![1]]).unwrap();
        let memory = Memory::default();
        store(&corpus, 2, &memory).unwrap();
        let stored = StoredDocuments::open(memory).unwrap();
        assert_eq!(stored.mean_length(), 2.0);
        assert_eq!(stored.mean_length(), corpus.mean_length());
    }

    #[test]
    fn held_out_documents_are_those_of_the_same_words() {
        let open = |memory: &Arc<Memory>| StoredDocuments::open(Arc::clone(memory)).unwrap();
        let held_out = |memory: &Arc<Memory>| open(memory).held_out();
        let memory = Arc::new(stored());
        assert_eq!(held_out(&memory).unwrap(), None);
        store_held_out(&corpus(), &memory).unwrap();
        let mut without_names = corpus();
        without_names.take_vocabulary();
        assert_eq!(held_out(&memory).unwrap(), Some(without_names));
        store_held_out(&Corpus::from_tokens([[0, 3]]).unwrap(), &memory).unwrap();
        assert!(held_out(&memory).unwrap_err().to_string().contains("4 words, not 7"));
        // Documents that are stored again may have other words.
        store(&corpus(), 3, &memory).unwrap();
        assert_eq!(held_out(&memory).unwrap(), None);
    }

    #[test]
    fn documents_without_vocabulary_have_none() {
        let memory = Memory::default();
        store(&Corpus::from_tokens([[0, 5], [1, 1]]).unwrap(), 2, &memory).unwrap();
        let stored = StoredDocuments::open(memory).unwrap();
        assert_eq!((stored.num_words(), stored.vocabulary().unwrap()), (6, None));
    }

    #[test]
    fn the_fingerprint_covers_documents_and_shards() {
        let of = |shards, corpus: &Corpus| {
            let memory = Memory::default();
            store(corpus, shards, &memory).unwrap();
            StoredDocuments::open(memory).unwrap().fingerprint()
        };
        let other = Corpus::from_tokens([[0, 1], [2, 3]]).unwrap();
        assert_eq!(of(2, &corpus()), of(2, &corpus()));
        assert_ne!(of(2, &corpus()), of(3, &corpus()));
        assert_ne!(of(2, &corpus()), of(2, &other));
    }

    #[test]
    fn objects_that_differ_from_the_manifest_are_refused() {
        let swap = |from: &str, to: &str| {
            let memory = stored();
            let object = memory.read(from).unwrap();
            memory.write(to, &object).unwrap();
            StoredDocuments::open(memory).unwrap().read(0).unwrap_err().to_string()
        };
        assert!(swap("shard-00001", "shard-00000").contains("other documents"));
        assert!(swap("words", "shard-00000").contains("other documents"));
        assert!(swap("manifest", "shard-00000").contains("shard-00000: it is not a file"));
        let memory = stored();
        store(&Corpus::from_tokens([[0, 1], [2, 3]]).unwrap(), 1, &Memory::default()).unwrap();
        memory.remove("shard-00000").unwrap();
        assert!(
            StoredDocuments::open(memory)
                .unwrap()
                .read(0)
                .unwrap_err()
                .to_string()
                .contains("shard-00000")
        );
    }

    /// A storage whose objects are on machines that depend on their names.
    #[derive(Debug, Default)]
    struct Spread(Memory);

    impl Storage for Spread {
        fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
            self.0.read(name)
        }

        fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
            self.0.write(name, content)
        }

        fn has(&self, name: &str) -> Result<bool, StorageError> {
            self.0.has(name)
        }

        fn remove(&self, name: &str) -> Result<(), StorageError> {
            self.0.remove(name)
        }

        fn hosts(&self, name: &str) -> Result<Vec<String>, StorageError> {
            assert!(self.has(name)?, "{name} is there");
            let hosts: &[&str] = match name {
                "shard-00000" => &["node-1", "node-2"],
                "shard-00002" => &["no name", "node-3", ""],
                _ => &[],
            };
            Ok(hosts.iter().map(|&host| host.to_owned()).collect())
        }
    }

    #[test]
    fn hosts_are_stored_if_the_storage_knows_them() {
        let spread = Arc::new(Spread::default());
        store(&corpus(), 3, &spread).unwrap();
        let stored = StoredDocuments::open(Arc::clone(&spread)).unwrap();
        let held = stored.shard_locations().unwrap();
        let hosts: Vec<&[String]> = held.iter().map(|held| &held.hosts[..]).collect();
        assert_eq!(
            hosts,
            [&["node-1".to_owned(), "node-2".to_owned()][..], &[], &["node-3".to_owned()]]
        );
        assert_eq!(held.iter().map(|held| held.tokens).sum::<u64>(), stored.num_tokens());
        let told = "lda-dist hosts 1\nshard 0 node-1 node-2\nshard 2 node-3\n";
        assert_eq!(spread.read(HOSTS).unwrap(), told.as_bytes());
        // `hosts` is not part of the fingerprint, and is removed when documents are stored again.
        let silent = Arc::new(Memory::default());
        silent.write(HOSTS, told.as_bytes()).unwrap();
        store(&corpus(), 3, &silent).unwrap();
        let other = StoredDocuments::open(Arc::clone(&silent)).unwrap();
        assert_eq!(other.fingerprint(), stored.fingerprint());
        assert!(other.shard_locations().unwrap().iter().all(|held| held.hosts.is_empty()));
        for (text, said) in [
            (&b"\xff"[..], "hosts:1: not UTF-8 text"),
            (b"", "hosts:1: \"lda-dist hosts 1\" is expected"),
            (b"lda-dist hosts 1\n# x\nshard", "hosts:3: a shard and its machines are"),
            (b"lda-dist hosts 1\nshard x a", "hosts:2: a shard and its machines are"),
            (b"lda-dist hosts 1\nshard 3 a", "hosts:2: no shard 3: there are 3, from 0"),
            (b"lda-dist hosts 1\nshard 1 a\nshard 1 b", "hosts:3: shard 1 is listed twice"),
        ] {
            silent.write(HOSTS, text).unwrap();
            let error = other.shard_locations().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        silent.write(HOSTS, b"lda-dist hosts 1\nshard 1\n").unwrap();
        assert!(other.shard_locations().unwrap()[1].hosts.is_empty());
    }
}
