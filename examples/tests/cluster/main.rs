//! The program `cluster` from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of a test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lda-cluster-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Documents of ten words that hang together in no clear way, so that runs end in different places.
fn documents(to: &Path) {
    let words = "tree leaf root branch forest wave sand beach tide ocean";
    let words: Vec<&str> = words.split(' ').collect();
    let lines = (0..40).map(|d| {
        let line: Vec<&str> = (0..8).map(|i| words[(d * 7 + i * i * 3 + i * d) % 10]).collect();
        line.join(" ")
    });
    fs::write(to, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

fn cluster(path: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
    command.arg("local").arg(path).args(["--topics", "4", "--alpha", "0.5", "--epochs", "30"]);
    command.args(options).output().unwrap()
}

#[test]
fn any_number_of_workers_leaves_the_same_file() {
    let scratch = Scratch::new("workers");
    let path = scratch.file("articles.txt");
    documents(&path);
    let model = |options: &[&str]| {
        let file = scratch.file("model.lda");
        let output = cluster(&path, &[options, &["--save", file.to_str().unwrap()]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("epoch 30: log joint a token -"), "{said}");
        (fs::read(&file).unwrap(), said)
    };
    let (one, said) = model(&[]);
    assert!(said.contains("1 workers, 1 servers; 8 shards of documents, 10 partitions"), "{said}");
    assert!(model(&["--workers", "3", "--servers", "2"]).0 == one);
    assert!(model(&["--shards", "2"]).0 != one);
    assert!(model(&["--seed", "5"]).0 != one);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new("refused");
    let path = scratch.file("articles.txt");
    documents(&path);
    for (options, said) in [
        (&["--workers", "9", "--shards", "4"][..], "9 workers for 4 shards"),
        (&["--shards", "41"], "41 shards of 40 documents"),
        (&["--servers", "11"], "10 words for 11 servers"),
        (&["--rounds", "9", "--partitions", "3"], "9 rounds of 3 partitions"),
        (&["--beta", "0"], "beta is 0"),
    ] {
        let output = cluster(&path, options);
        let found = String::from_utf8(output.stderr).unwrap();
        assert!(found.contains(said), "{options:?}: {found}");
        assert_eq!(output.status.code(), Some(2), "{found}");
    }
    let empty = scratch.file("empty.txt");
    fs::write(&empty, "\n").unwrap();
    assert_eq!(cluster(&empty, &[]).status.code(), Some(1));
    assert_eq!(cluster(&scratch.file("nowhere.txt"), &[]).status.code(), Some(1));
}
