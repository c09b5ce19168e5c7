//! The command line of `synthesize`.
#![cfg(feature = "cli")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // The directory may be left over from an earlier run.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn synthesize(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synthesize"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn writes_documents_and_words() {
    let directory = directory("writes");
    let arguments = "pubmedlike --scale 0.0002 --seed 3 --out d.txt --vocabulary v.txt";
    let output = synthesize(&directory, &arguments.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&directory), ["d.txt", "v.txt"]);
    let docword = fs::read_to_string(directory.join("d.txt")).unwrap();
    let numbers: Vec<Vec<u64>> = docword
        .lines()
        .map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect())
        .collect();
    let words = fs::read_to_string(directory.join("v.txt")).unwrap().lines().count() as u64;
    let (header, pairs) = numbers.split_at(3);
    assert_eq!(header, [[22], [words], [pairs.len() as u64]]);
    assert!(pairs.iter().all(|pair| pair.len() == 3 && pair[0] <= 22 && pair[1] <= words));
    let tokens: u64 = pairs.iter().map(|pair| pair[2]).sum();
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(
        summary.contains(&format!("22 documents, {words} words, {tokens} tokens")),
        "{summary}"
    );
}

#[test]
fn misuse_is_status_2_and_failure_status_1() {
    let directory = directory("fails");
    for arguments in [
        &["nyt", "--out", "d.txt"][..],
        &["nytlike"],
        &["nytlike", "--out", "d.txt", "--scale", "0"],
        &["nytlike", "--out", "d.txt", "--scale", "1e300"],
    ] {
        let output = synthesize(&directory, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let arguments = ["nytlike", "--scale", "0.00001", "--out", "missing/d.txt"];
    let output = synthesize(&directory, &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write missing/d.txt"));
    assert!(files(&directory).is_empty());
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let directory = directory("partial");
    // A directory with the name of the file, so that the final rename fails.
    fs::create_dir(directory.join("d.txt")).unwrap();
    let output = synthesize(&directory, &["nytlike", "--scale", "0.00001", "--out", "d.txt"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(files(&directory), ["d.txt"]);
}
