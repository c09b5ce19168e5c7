//! A list of nodes in a file.
//!
//! A line a node: its number, its address, and what it is to be where that is to be said. What is behind a `#` is for
//! people.
//!
//! ```text
//! # id  address              role
//! 0     10.0.0.1:7000        server
//! 1     10.0.0.2:7000        server
//! 2     worker-a.lan:7000    worker
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Error, MOST, Placed, Started};
use crate::transport::NodeId;

/// Bytes of a list, at most.
const LONGEST: u64 = 64 << 20;

/// Reads a list, of which this node has that number.
///
/// ```
/// use lda_transport::NodeId;
/// use lda_transport::bootstrap::file;
///
/// let list = "0 localhost:7000 server\n1 localhost:7001\n";
/// let started = file::parse(list, "nodes.txt".as_ref(), NodeId(1))?;
/// assert_eq!(started.place().unwrap().address.as_deref(), Some("localhost:7001"));
/// assert_eq!(started.nodes[0].role.as_deref(), Some("server"));
/// let error = file::parse("0 localhost\n", "nodes.txt".as_ref(), NodeId(0)).unwrap_err();
/// assert!(error.to_string().starts_with("nodes.txt:1: "));
/// # Ok::<(), lda_transport::bootstrap::Error>(())
/// ```
///
/// # Errors
/// [`enum@Error`], with the file and the line.
pub fn parse(text: &str, path: &Path, this: NodeId) -> Result<Started, Error> {
    let mut nodes = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = |why: String| Error::Line { path: path.to_owned(), line: at + 1, why };
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(id) = words.next() else { continue };
        let id = id.parse().map(NodeId).map_err(|_| {
            wrong(format!(
                "{id:?} is no number of a node: write number, address and perhaps a role"
            ))
        })?;
        let address = words.next().ok_or_else(|| wrong(format!("{id} has no address")))?;
        check(address).map_err(|why| wrong(format!("{address:?} is no address: {why}")))?;
        let role = words.next().map(str::to_owned);
        if let Some(more) = words.next() {
            return Err(wrong(format!("{more:?} is one word too many")));
        }
        if !seen.insert(id) {
            return Err(wrong(format!("{id} is there twice")));
        }
        if nodes.len() == MOST {
            return Err(wrong(format!("more than {MOST} nodes")));
        }
        nodes.push(Placed { id, address: Some(address.to_owned()), role });
    }
    if !seen.contains(&this) {
        return Err(Error::Absent { path: path.to_owned(), node: this, count: nodes.len() });
    }
    Ok(Started { this, nodes, job: None })
}

/// Reads a list from a file.
///
/// # Errors
/// [`enum@Error`].
pub fn started(path: &Path, this: NodeId) -> Result<Started, Error> {
    let read = || {
        let len = fs::metadata(path)?.len();
        if len > LONGEST {
            return Err(std::io::Error::other(format!(
                "a list of {len} bytes, where {LONGEST} are the most"
            )));
        }
        fs::read_to_string(path)
    };
    let text = read().map_err(|error| Error::Read { path: path.to_owned(), error })?;
    parse(&text, path, this)
}

/// Whether it is a host and a port; the host is looked up when it is connected to.
fn check(address: &str) -> Result<(), &'static str> {
    let (host, port) = address.rsplit_once(':').ok_or("it has no port, as in host:7000")?;
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    if plain.is_empty() {
        return Err("it has no host");
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("write an address of IPv6 in brackets, as in [::1]:7000");
    }
    match port.parse::<u16>() {
        Ok(0) | Err(_) => Err("its port is no number from 1 to 65535"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_names_its_line() {
        let parse = |text: &str| parse(text, Path::new("list"), NodeId(0));
        let list = "# all\n\n 0\t[::1]:7000  master # this\n7 b.c:1 \n";
        let started = parse(list).unwrap();
        assert_eq!(started.ids(), [NodeId(0), NodeId(7)]);
        assert_eq!(started.place().unwrap().role.as_deref(), Some("master"));
        for (text, expected) in [
            ("0 a:1\nx a:1", "list:2: \"x\" is no number of a node"),
            ("0 a:1\n1", "list:2: node 1 has no address"),
            ("0 a:1\n\n0 b:2", "list:3: node 0 is there twice"),
            ("0 a", "list:1: \"a\" is no address: it has no port"),
            ("0 :1", "list:1: \":1\" is no address: it has no host"),
            ("0 ::1:7", "list:1: \"::1:7\" is no address: write an address of IPv6 in brackets"),
            ("0 a:0", "list:1: \"a:0\" is no address: its port"),
            ("0 a:65536", "list:1: \"a:65536\" is no address: its port"),
            ("0 a:1 x y", "list:1: \"y\" is one word too many"),
            ("1 a:1", "list: node 0 is not in it; it has 1 nodes"),
            ("", "list: node 0 is not in it"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let error = super::started(Path::new("/nowhere/list"), NodeId(0)).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/list: "), "{error}");
    }
}
