//! Tests of all kinds of storage.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

/// An empty storage of every kind; those on disk use their own subdirectory of `directory`.
fn all(directory: &Scratch) -> Vec<(&'static str, Arc<dyn Storage>)> {
    vec![
        ("memory", Arc::new(Memory::default())),
        ("directory", Arc::new(Directory::create(directory.0.join("deeper")).unwrap())),
        #[cfg(feature = "object-store")]
        ("memory:///", Arc::new(ObjectStore::open("memory:///", &Access::default()).unwrap())),
        #[cfg(feature = "object-store")]
        ("file:///", Arc::new(ObjectStore::open(&directory.url(), &Access::default()).unwrap())),
    ]
}

/// A temporary directory of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lda-storage-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    #[cfg(feature = "object-store")]
    fn url(&self) -> String {
        format!("file://{}/with%20a%20space", self.0.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_directory_that_was_removed_is_made_again() {
    let scratch = Scratch::new("removed");
    let path = scratch.0.join("one");
    let storage = Directory::create(path.join("two")).unwrap();
    fs::remove_dir(path.join("two")).unwrap();
    storage.write("a", b"new").unwrap();
    assert_eq!(storage.read("a").unwrap(), b"new");
    // Without its parent, it may be that of another file system.
    fs::remove_dir_all(&path).unwrap();
    assert!(storage.write("a", b"new").is_err() && !path.exists());
}

#[test]
fn objects_are_replaced_and_removed() {
    let scratch = Scratch::new("whole");
    for (kind, storage) in all(&scratch) {
        assert!(!storage.has("a-1.x").unwrap(), "{kind}");
        let error = storage.read("a-1.x").unwrap_err().to_string();
        assert!(error.contains("a-1.x"), "{kind}: {error}");
        storage.write("a-1.x", b"old, and longer").unwrap();
        storage.write("a-1.x", b"new").unwrap();
        storage.write("a-1", b"").unwrap();
        assert_eq!(storage.read("a-1.x").unwrap(), b"new", "{kind}");
        assert_eq!(storage.read("a-1").unwrap(), b"", "{kind}");
        for _ in 0..2 {
            storage.remove("a-1.x").unwrap();
            assert!(!storage.has("a-1.x").unwrap(), "{kind}");
            assert!(storage.has("a-1").unwrap(), "{kind}");
        }
        assert!(storage.read("a-1.x").is_err(), "{kind}");
    }
    // No temporary files are left.
    for (directory, files) in [("deeper", 1), ("with a space", 1)] {
        let Ok(found) = fs::read_dir(scratch.0.join(directory)) else { continue };
        assert_eq!(found.count(), files, "{directory}");
    }
}

#[test]
fn names_cannot_leave_the_storage() {
    let scratch = Scratch::new("names");
    let longest = "a".repeat(LONGEST);
    for (kind, storage) in all(&scratch) {
        for name in ["", "../a", ".a", "-a", "a/b", "a b", "a%2fb", "é", "a\\b", &"a".repeat(129)]
        {
            let refused = [
                storage.write(name, b"").err(),
                storage.read(name).err(),
                storage.has(name).err(),
                storage.remove(name).err(),
            ];
            for error in refused {
                assert!(matches!(error, Some(StorageError::Name { .. })), "{kind}: {name}");
            }
        }
        for name in ["a", "7", "a..", "A_b-c.9", &longest] {
            storage.write(name, name.as_bytes()).unwrap();
            assert_eq!(storage.read(name).unwrap(), name.as_bytes(), "{kind}");
        }
    }
}

#[test]
fn concurrent_readers_find_whole_objects() {
    let scratch = Scratch::new("meanwhile");
    for (kind, storage) in all(&scratch) {
        let content = |byte: u8| vec![byte; 1000 * (1 + usize::from(byte))];
        storage.write("it", &content(0)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let found = storage.read("it").unwrap();
                        assert_eq!(found, content(found[0]), "{kind}");
                    }
                });
            }
            (0..50).for_each(|byte| storage.write("it", &content(byte)).unwrap());
        });
    }
}

#[test]
fn errors_name_the_path() {
    let scratch = Scratch::new("nowhere");
    fs::write(scratch.0.join("file"), "").unwrap();
    assert!(Directory::create(scratch.0.join("file")).is_err());
    let storage = Directory::at(scratch.0.join("file"));
    let error = storage.write("a", b"").unwrap_err().to_string();
    assert!(error.contains("file/a"), "{error}");
    assert_eq!(storage.path(), scratch.0.join("file"));
}

/// An operation.
#[derive(Clone, Debug)]
enum Step {
    Write(u8, Vec<u8>),
    Remove(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = prop::collection::vec(any::<u8>(), 0..20);
    let step = prop_oneof![
        3 => (0..4u8, content).prop_map(|(name, content)| Step::Write(name, content)),
        1 => (0..4u8).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn all_storages_have_the_same_contents(steps in steps()) {
        let scratch = Scratch::new("same");
        for (kind, storage) in all(&scratch) {
            let mut expected = std::collections::BTreeMap::new();
            for step in &steps {
                match step {
                    Step::Write(name, content) => {
                        storage.write(&format!("n-{name}"), content).unwrap();
                        expected.insert(*name, content);
                    }
                    Step::Remove(name) => {
                        storage.remove(&format!("n-{name}")).unwrap();
                        expected.remove(name);
                    }
                }
                for name in 0..4u8 {
                    let (object, there) = (format!("n-{name}"), expected.get(&name));
                    prop_assert_eq!(storage.has(&object).unwrap(), there.is_some(), "{}", kind);
                    prop_assert_eq!(storage.read(&object).ok(), there.map(|it| it.to_vec()), "{}", kind);
                }
            }
            for name in 0..4u8 {
                storage.remove(&format!("n-{name}")).unwrap();
            }
        }
    }
}
