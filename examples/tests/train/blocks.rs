//! `lda cut`, and `lda train` over the blocks that it writes.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{Scratch, stderr};

/// Runs `lda cut`.
fn cut(scratch: &Scratch, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.arg("cut").current_dir(&scratch.0).args(line.split_whitespace());
    command.stdin(Stdio::null()).output().unwrap()
}

fn blocks(name: &str) -> Scratch {
    let scratch = Scratch::with_corpus(name);
    let line = "docword.txt --vocabulary words.txt --out blocks --block-tokens 100";
    let output = cut(&scratch, line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("blocks of 1"), "{}", stderr(&output));
    scratch
}

#[test]
fn the_model_depends_on_the_blocks_and_not_on_memory() {
    let scratch = blocks("blocks-memory");
    let train = |more: &str| {
        let line = format!("blocks --topics 3 --epochs 30 --save model.lda {more}");
        let output = scratch.train(&line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (scratch.bytes("model.lda"), stderr(&output))
    };
    let (expected, said) = train("--memory-limit 1GiB");
    assert!(said.contains("all in memory"), "{said}");
    for threads in [1, 2] {
        // The least memory that such a run takes.
        let line = format!("blocks --topics 3 --threads {threads} --memory-limit 1000");
        let output = scratch.train(&line);
        assert_eq!(output.status.code(), Some(1));
        let refused = stderr(&output);
        let needed: u64 = refused
            .split_once("needs about ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .and_then(|bytes| bytes.parse().ok())
            .unwrap_or_else(|| panic!("{refused}"));
        let (found, said) = train(&format!("--threads {threads} --memory-limit {needed}"));
        assert!(said.contains("three in memory at a time"), "{said}");
        assert!(found == expected, "{threads} threads");
    }
    let left = std::fs::read_dir(scratch.0.join("blocks")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with('.')).count(), 0, "files of runs are removed");
}

/// At any moment: while blocks are counted, sampled or written, and between epochs.
#[test]
fn a_killed_run_goes_on_to_the_same_model() {
    let scratch = blocks("blocks-kill");
    scratch.succeed(
        "blocks --topics 3 --epochs 40 --warm-up 5 -q --checkpoint whole --save whole.lda",
    );
    let options = "blocks --topics 3 --epochs 40 --warm-up 5 -q --save model.lda";
    let mut kills = 0;
    for delay in (0..).map(|i| 3 + i * 7 % 40) {
        let record = scratch.0.join("run/run");
        let line = match record.exists() {
            true => format!("{options} --resume run"),
            false => format!("{options} --checkpoint run"),
        };
        let mut child = scratch.command(&line).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        if kills < 50 && child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            continue;
        }
        let status = child.wait().unwrap();
        assert!(status.success(), "{status}");
        break;
    }
    assert!(kills > 3, "{kills}");
    assert!(scratch.bytes("model.lda") == scratch.bytes("whole.lda"));
}

#[test]
fn standard_input_is_cut_as_it_comes() {
    let scratch = Scratch::new("blocks-stdin");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.args(["cut", "-", "--out", "blocks", "--block-tokens", "4"]).current_dir(&scratch.0);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let text = b"tree leaf wood root\nsea wave foam\ntree root leaf\nsea tide wave\n";
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = scratch.succeed("blocks --topics 2 --epochs 50 -q");
    assert!(table.contains("tree") && table.contains("sea"), "{table}");
}

#[test]
fn bad_input_is_refused_by_name() {
    let scratch = blocks("blocks-refusals");
    let refused = |line: &str, code: i32| {
        let output = scratch.train(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        stderr(&output)
    };
    for option in ["--coherence", "--held-out 0.1", "--assignments z.txt", "--doc-topics d.csv"] {
        let said = refused(&format!("blocks {option}"), 2);
        assert!(said.contains("is for documents in memory"), "{said}");
    }
    // They would be ignored without a word.
    for option in
        ["--vocabulary words.txt", "--format svmlight", "--min-length 7", "--stop-words x"]
    {
        let said = refused(&format!("blocks {option}"), 2);
        assert!(said.contains("give it to lda cut"), "{said}");
    }
    std::fs::remove_file(scratch.0.join("blocks/part-00001")).unwrap();
    let said = refused("blocks --topics 3 --epochs 2", 1);
    assert!(said.contains("part-00001: "), "{said}");
    let left = std::fs::read_dir(scratch.0.join("blocks")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with('.')).count(), 0);
    // Words of numbers have no length.
    let output = cut(&scratch, "docword.txt --out misfit --min-length 3");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!scratch.0.join("misfit/manifest").exists());
    std::fs::write(scratch.0.join("blocks/manifest"), "lda documents 3\nwords x\n").unwrap();
    let said = refused("blocks", 1);
    assert!(said.contains("manifest") && said.contains("line 2"), "{said}");
    for (line, expected) in [
        ("docword.txt --out blocks --dates days.txt", "--dates is for documents in memory"),
        ("none.txt --out blocks", "none.txt"),
        ("words.txt --out blocks --phrases", "phrases"),
    ] {
        let output = cut(&scratch, line);
        assert_ne!(output.status.code(), Some(0), "{line}");
        assert!(stderr(&output).contains(expected), "{line}: {}", stderr(&output));
    }
}
