//! Numbers of the starts of a node.
//!
//! A node that starts again has a larger number than before, or its peers take it for one that they
//! have replaced. The clock gives one, unless it was set back; so the last number is kept in the storage
//! of the snapshots, and the next one is above both.

use std::time::{SystemTime, UNIX_EPOCH};

use lda_dist::storage::Storage;

use crate::commands::cluster::role::NodeName;

/// The number of this start of the node `name`. `note` receives a line if the storage cannot keep it:
/// the number is then that of the clock.
pub fn next(storage: Option<&dyn Storage>, name: NodeName, note: &mut dyn FnMut(&str)) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let Some(storage) = storage else { return now };
    let object = format!("start-{}-{}", name.role.name(), name.index);
    let keep = || {
        let last = if storage.has(&object)? { storage.read(&object)? } else { Vec::new() };
        let number = above(now, &last);
        storage.write(&object, number.to_string().as_bytes())?;
        Ok(number)
    };
    keep().unwrap_or_else(|error: lda_dist::storage::StorageError| {
        note(&format!(
            "warning: {error}: if the clock is set back, other nodes will refuse this one when it starts again"
        ));
        now
    })
}

/// The first number above the stored one that is not below the clock's. An object without a number, or
/// with the largest, is replaced by the clock's.
fn above(now: u64, stored: &[u8]) -> u64 {
    let last = std::str::from_utf8(stored).ok().and_then(|text| text.parse().ok());
    last.and_then(|last: u64| last.checked_add(1)).map_or(now, |next| now.max(next))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lda_dist::storage::Memory;

    use super::*;
    use crate::commands::cluster::role::RoleName;

    #[test]
    fn a_start_is_above_the_last_whatever_the_clock_says() {
        assert_eq!(above(50, b""), 50);
        assert_eq!(above(50, b"40"), 50);
        assert_eq!(above(50, b"90"), 91);
        assert_eq!(above(50, b"no number"), 50);
        assert_eq!(above(50, u64::MAX.to_string().as_bytes()), 50);
    }

    #[test]
    fn each_node_has_its_own_number() {
        let storage: Arc<dyn Storage> = Arc::new(Memory::default());
        let worker = |index| NodeName { role: RoleName::Worker, index };
        let start = |name| next(Some(&*storage), name, &mut |line| panic!("{line}"));
        let first = start(worker(0));
        // As if the clock had been an hour ahead.
        let ahead = first + 3_600_000_000_000;
        storage.write("start-worker-0", ahead.to_string().as_bytes()).unwrap();
        assert_eq!(start(worker(0)), ahead + 1);
        assert_eq!(start(worker(0)), ahead + 2);
        assert!(start(worker(1)) < ahead);
    }

    #[test]
    fn a_storage_that_fails_is_noted() {
        let file = std::env::temp_dir().join(format!("lda-start-{}", std::process::id()));
        std::fs::write(&file, "in the place of a directory").unwrap();
        let storage = lda_dist::storage::Directory::at(&file);
        let mut lines = Vec::new();
        let name = NodeName { role: RoleName::Master, index: 0 };
        assert!(next(Some(&storage), name, &mut |line| lines.push(line.to_owned())) > 0);
        std::fs::remove_file(&file).unwrap();
        assert!(lines.len() == 1 && lines[0].contains("clock is set back"), "{lines:?}");
    }
}
