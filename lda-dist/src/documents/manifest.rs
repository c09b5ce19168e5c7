//! Parsing of the lists beside [stored documents](super::StoredDocuments): the manifest, and the machines of the
//! shards.

use std::ops::Range;

use super::StoredError;
use crate::locality::ShardLocation;

/// Name of the manifest's object.
pub(super) const MANIFEST: &str = "manifest";
/// Title of a manifest.
pub(super) const TITLE: &str = "lda-dist documents 2";
/// Title of the machines.
pub(super) const HOSTS_TITLE: &str = "lda-dist hosts 1";

/// Entry of a shard in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub documents: Range<u64>,
    pub tokens: u64,
    pub fingerprint: u64,
}

/// Contents of the manifest.
pub(super) struct Manifest {
    pub words: u32,
    /// Documents without tokens.
    pub empty: u64,
    pub parts: Vec<Part>,
}

/// Parses the manifest.
///
/// # Errors
/// [`StoredError::Line`].
pub(super) fn parse(manifest: &[u8]) -> Result<Manifest, StoredError> {
    let fail = |line: usize, why: &str| StoredError::Line { line: line + 1, why: why.to_owned() };
    let text = std::str::from_utf8(manifest).map_err(|_| fail(0, "not UTF-8 text"))?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let (_, title) = lines.next().ok_or_else(|| fail(0, "the file is empty"))?;
    if title != TITLE {
        return Err(fail(0, &format!("{TITLE:?} is expected")));
    }
    let (at, line) = lines.next().ok_or_else(|| fail(1, "the file ends here"))?;
    let words = line.strip_prefix("words ").and_then(|words| words.parse().ok());
    let words = words.ok_or_else(|| fail(at, "the number of words is expected"))?;
    let (at_empty, line) = lines.next().ok_or_else(|| fail(at + 1, "the file ends here"))?;
    let empty: Option<u64> = line.strip_prefix("empty ").and_then(|empty| empty.parse().ok());
    let why = "the number of documents without tokens is expected";
    let empty = empty.ok_or_else(|| fail(at_empty, why))?;
    let (mut parts, mut next) = (Vec::new(), 0);
    for (at, line) in lines {
        let part = shard_line(line, parts.len(), next)
            .ok_or_else(|| fail(at, &format!("shard {} is expected", parts.len())))?;
        next = part.documents.end;
        parts.push(part);
    }
    if parts.is_empty() || u16::try_from(parts.len()).is_err() {
        let why = format!("{} shards: there are 1 to 65,535", parts.len());
        return Err(fail(1, &why));
    }
    if empty > next {
        let why = format!("{empty} documents without tokens, of {next}");
        return Err(fail(at_empty, &why));
    }
    Ok(Manifest { words, empty, parts })
}

/// Parses `hosts`, and fills in the machines of each shard.
///
/// # Errors
/// [`StoredError::Hosts`].
pub(super) fn parse_hosts(hosts: &[u8], held: &mut [ShardLocation]) -> Result<(), StoredError> {
    let fail = |line: usize, why: String| StoredError::Hosts { line: line + 1, why };
    let text = std::str::from_utf8(hosts).map_err(|_| fail(0, "not UTF-8 text".to_owned()))?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    if lines.next().is_none_or(|(_, title)| title != HOSTS_TITLE) {
        return Err(fail(0, format!("{HOSTS_TITLE:?} is expected")));
    }
    for (at, line) in lines {
        let mut words = line.split_whitespace();
        let shard = words.next().filter(|&word| word == "shard").and_then(|_| words.next());
        let Some(shard) = shard.and_then(|shard| shard.parse::<usize>().ok()) else {
            return Err(fail(at, "a shard and its machines are expected".to_owned()));
        };
        let count = held.len();
        match held.get_mut(shard) {
            Some(held) if held.hosts.is_empty() => held.hosts = words.map(str::to_owned).collect(),
            Some(_) => return Err(fail(at, format!("shard {shard} is listed twice"))),
            None => {
                return Err(fail(at, format!("no shard {shard}: there are {count}, from 0")));
            }
        }
    }
    Ok(())
}

/// Parses the line of a shard; `None` if it is not that of this shard with this first document.
fn shard_line(line: &str, shard: usize, first: u64) -> Option<Part> {
    let mut words = line.split(' ');
    let named = words.next() == Some("shard")
        && words.next()?.parse() == Ok(shard)
        && words.next()?.parse() == Ok(first);
    let documents: u64 = words.next()?.parse().ok()?;
    let tokens = words.next()?.parse().ok()?;
    let fingerprint = u64::from_str_radix(words.next()?, 16).ok()?;
    let end = first.checked_add(documents).filter(|_| documents > 0)?;
    (named && words.next().is_none()).then_some(Part { documents: first..end, tokens, fingerprint })
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::super::{StoredDocuments, store};
    use super::*;
    use crate::storage::{Memory, Storage};

    #[test]
    fn a_manifest_is_read_line_by_line() {
        let words = (0..20).map(|d| [format!("w{}", d % 7), format!("w{}", d % 3)]);
        let (corpus, memory) = (Corpus::from_words(words).unwrap(), Memory::default());
        store(&corpus, 3, &memory).unwrap();
        let whole = String::from_utf8(memory.read(MANIFEST).unwrap()).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let refused = |line: usize, with: &str| {
            let mut lines = lines.clone();
            lines[line] = with;
            let memory = Memory::default();
            memory.write(MANIFEST, lines.join("\n").as_bytes()).unwrap();
            StoredDocuments::open(memory).unwrap_err().to_string()
        };
        assert!(refused(0, "documents").starts_with("manifest:1: \"lda-dist documents 2\" is"));
        assert!(refused(1, "words many").starts_with("manifest:2: the number of words"));
        assert!(refused(2, "empty").starts_with("manifest:3: the number of documents without"));
        let more = refused(2, "empty 21");
        assert!(more.starts_with("manifest:3: 21 documents without tokens, of 20"), "{more}");
        for bad in
            ["", "shard 1 0 7 14 ff", "shard 0 1 7 14 ff", "shard 0 0 0 14 ff", "shard 0 0 7"]
        {
            assert!(refused(4, bad).starts_with("manifest:5: shard 0 is expected"), "{bad}");
        }
        assert!(refused(5, "shard 1 9 7 14 ff").starts_with("manifest:6: shard 1"));
        assert!(refused(5, "shard 1 7 7 14 ff more").starts_with("manifest:6: "));
        let title = "lda-dist documents 2\n";
        let (short, without) = (format!("{title}words 3"), format!("{title}words 3\nempty 0"));
        for text in [&b"\xff"[..], b"", title.as_bytes(), short.as_bytes(), without.as_bytes()] {
            let memory = Memory::default();
            memory.write(MANIFEST, text).unwrap();
            assert!(StoredDocuments::open(memory).is_err());
        }
        assert!(
            StoredDocuments::open(Memory::default()).unwrap_err().to_string().contains("manifest")
        );
    }
}
