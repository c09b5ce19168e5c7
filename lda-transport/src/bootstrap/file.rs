//! A list of nodes in a file.
//!
//! One line per node: its number, its address, and optionally its role. `#` starts a comment.
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

use super::{BootstrapError, MAX_NODES, Member, Membership};
use crate::transport::NodeId;

/// Maximum size of a list, in bytes.
const MAX_LEN: u64 = 64 << 20;

/// Parses a list in which this node has the number `this`. `path` is for error messages.
///
/// ```
/// use lda_transport::NodeId;
/// use lda_transport::bootstrap::file;
///
/// let list = "0 localhost:7000 server\n1 localhost:7001\n";
/// let membership = file::parse(list, "nodes.txt".as_ref(), NodeId(1))?;
/// assert_eq!(membership.this_member().unwrap().address.as_deref(), Some("localhost:7001"));
/// assert_eq!(membership.nodes[0].role.as_deref(), Some("server"));
/// let error = file::parse("0 localhost\n", "nodes.txt".as_ref(), NodeId(0)).unwrap_err();
/// assert!(error.to_string().starts_with("nodes.txt:1: "));
/// # Ok::<(), lda_transport::bootstrap::BootstrapError>(())
/// ```
///
/// # Errors
/// [`BootstrapError`], with the file and the line.
pub fn parse(text: &str, path: &Path, this: NodeId) -> Result<Membership, BootstrapError> {
    let mut nodes = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let wrong =
            |reason: String| BootstrapError::Line { path: path.to_owned(), line: at + 1, reason };
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(id) = words.next() else { continue };
        let id = id.parse().map(NodeId).map_err(|_| {
            wrong(format!(
                "{id:?} is not a node number: write number, address and optionally a role"
            ))
        })?;
        let address = words.next().ok_or_else(|| wrong(format!("{id} has no address")))?;
        check(address)
            .map_err(|reason| wrong(format!("{address:?} is not an address: {reason}")))?;
        let role = words.next().map(str::to_owned);
        if let Some(more) = words.next() {
            return Err(wrong(format!("unexpected {more:?} after the role")));
        }
        if !seen.insert(id) {
            return Err(wrong(format!("{id} is listed twice")));
        }
        if nodes.len() == MAX_NODES {
            return Err(wrong(format!("more than {MAX_NODES} nodes")));
        }
        nodes.push(Member { id, address: Some(address.to_owned()), role });
    }
    if !seen.contains(&this) {
        return Err(BootstrapError::Absent {
            path: path.to_owned(),
            node: this,
            count: nodes.len(),
        });
    }
    Ok(Membership { this, nodes, job: None })
}

/// Reads a list from a file.
///
/// # Errors
/// [`BootstrapError`], with the file, and the line if one is invalid.
pub fn read(path: &Path, this: NodeId) -> Result<Membership, BootstrapError> {
    let read = || {
        let len = fs::metadata(path)?.len();
        if len > MAX_LEN {
            return Err(std::io::Error::other(format!(
                "the list has {len} bytes; the maximum is {MAX_LEN}"
            )));
        }
        fs::read_to_string(path)
    };
    let text = read().map_err(|error| BootstrapError::Read { path: path.to_owned(), error })?;
    parse(&text, path, this)
}

/// Checks that an address is a host and a port. The host is not resolved.
fn check(address: &str) -> Result<(), &'static str> {
    let (host, port) = address.rsplit_once(':').ok_or("it has no port; write host:7000")?;
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    if plain.is_empty() {
        return Err("it has no host");
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("write an IPv6 address in brackets, as in [::1]:7000");
    }
    match port.parse::<u16>() {
        Ok(0) | Err(_) => Err("its port is not a number from 1 to 65535"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line() {
        let parse = |text: &str| parse(text, Path::new("list"), NodeId(0));
        let list = "# all\n\n 0\t[::1]:7000  master # this\n7 b.c:1 \n";
        let membership = parse(list).unwrap();
        assert_eq!(membership.ids(), [NodeId(0), NodeId(7)]);
        assert_eq!(membership.this_member().unwrap().role.as_deref(), Some("master"));
        for (text, expected) in [
            ("0 a:1\nx a:1", "list:2: \"x\" is not a node number"),
            ("0 a:1\n1", "list:2: node 1 has no address"),
            ("0 a:1\n\n0 b:2", "list:3: node 0 is listed twice"),
            ("0 a", "list:1: \"a\" is not an address: it has no port"),
            ("0 :1", "list:1: \":1\" is not an address: it has no host"),
            ("0 ::1:7", "list:1: \"::1:7\" is not an address: write an IPv6 address in brackets"),
            ("0 a:0", "list:1: \"a:0\" is not an address: its port"),
            ("0 a:65536", "list:1: \"a:65536\" is not an address: its port"),
            ("0 a:1 x y", "list:1: unexpected \"y\" after the role"),
            ("1 a:1", "list: node 0 is not in the list of 1 nodes"),
            ("", "list: node 0 is not in the list"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let error = super::read(Path::new("/nowhere/list"), NodeId(0)).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/list: "), "{error}");
    }
}
