//! `lda cut`, and `lda train` over the blocks that it writes.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{DOCUMENTS, Scratch, WORDS, stderr};

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
        let needed = needed(&scratch, &format!("blocks --topics 3 --threads {threads}"));
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

/// Exact Gibbs sampling over a single block draws the topics of documents in memory: so must all measures and files
/// be equal.
#[test]
fn a_single_block_has_the_outputs_of_documents_in_memory() {
    let scratch = Scratch::with_corpus("blocks-outputs");
    let cut = cut(&scratch, "docword.txt --vocabulary words.txt --out blocks");
    assert_eq!(cut.status.code(), Some(0), "{}", stderr(&cut));
    let options = "--topics 3 --sampler exact --epochs 6 --evaluate-every 2 --held-out 0.2 --patience 9 --coherence";
    let run = |path: &str, name: &str| {
        let files = ["assignments z.txt", "doc-topics d.csv", "diagnostics m.csv"];
        let files: String = files
            .iter()
            .map(|file| format!(" --{}", file.replace(' ', &format!(" {name}-"))))
            .collect();
        let table = scratch.succeed(&format!("{path} {options} -q {files}"));
        let count = |suffix: &str| {
            let file = format!("{name}-{suffix}");
            scratch.succeed(&format!("{path} {options} -q --doc-topics {file}"));
            scratch.bytes(&file)
        };
        let sparse = String::from_utf8(count("d.mtx")).unwrap();
        let texts = [
            table,
            scratch.read(&format!("{name}-z.txt")),
            scratch.read(&format!("{name}-d.csv")),
            scratch.read(&format!("{name}-m.csv")),
            sparse,
        ];
        let is_comment =
            |line: &&str| !line.starts_with("# options:") && !line.starts_with("% options:");
        let texts =
            texts.map(|text| text.lines().filter(is_comment).collect::<Vec<_>>().join("\n"));
        (texts, count("d.npy"))
    };
    let (in_memory, dense) = run("docword.txt --vocabulary words.txt", "memory");
    let (of_block, dense_of_block) = run("blocks", "block");
    assert!(in_memory[0].contains("held-out perplexity") && in_memory[0].contains("mean npmi"));
    for (expected, found) in in_memory.iter().zip(&of_block) {
        assert_eq!(expected, found);
    }
    assert!(dense == dense_of_block);
}

/// Files of several blocks are of all documents, and agree with each other.
#[test]
fn files_of_several_blocks_agree() {
    let scratch = blocks("blocks-files");
    let options = "blocks --topics 4 --epochs 5 --held-out 0.2 -q";
    scratch.succeed(&format!("{options} --assignments z.txt --doc-topics d.mtx"));
    scratch.succeed(&format!("{options} --doc-topics d.csv"));
    let topics = scratch.topics("z.txt");
    let sparse = scratch.read("d.mtx");
    let mut lines = sparse.lines().filter(|line| !line.starts_with('%'));
    let numbers = |line: &str| -> Vec<usize> {
        line.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let size = numbers(lines.next().unwrap());
    let entries: Vec<Vec<usize>> = lines.map(numbers).collect();
    assert_eq!(size, [DOCUMENTS, 4, entries.len()]);
    for topic in 0..4 {
        let tokens = topics.iter().filter(|&&z| z as usize == topic).count();
        let of_topic = entries.iter().filter(|entry| entry[1] == topic + 1).map(|entry| entry[2]);
        assert_eq!(of_topic.sum::<usize>(), tokens, "topic {topic}");
    }
    assert!(entries.is_sorted_by_key(|entry| (entry[0], entry[1])));
    let dense = scratch.read("d.csv");
    let documents: Vec<&str> = dense.lines().skip(2).collect();
    assert_eq!(documents.len(), DOCUMENTS);
    for (d, line) in documents.iter().enumerate() {
        assert!(line.starts_with(&format!("{d},")), "{line}");
        let shares: f64 = line.split(',').skip(1).map(|share| share.parse::<f64>().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-5, "{line}");
    }
}

/// The model's words stay, also those that only held-out documents have.
#[test]
fn a_run_over_blocks_goes_on_from_a_model() {
    let scratch = blocks("blocks-from");
    scratch.write("old.txt", "word1 word2 ancient\nword11 word12 relic\nancient relic word3\n");
    scratch.succeed("old.txt --topics 3 --epochs 20 -q --save old.lda");
    let output = scratch.train("blocks --from old.lda --held-out 0.3 --epochs 10 --save new.lda");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("continuing from a model of 3 topics: 5 of the 20 words"), "{said}");
    assert!(said.contains("2 words of the model are added"), "{said}");
    // In memory too.
    let line = "docword.txt --vocabulary words.txt --from old.lda --held-out 0.3 --epochs 10 -q";
    scratch.succeed(&format!("{line} --save memory.lda"));
    for name in ["new.lda", "memory.lda"] {
        let model = lda_core::model::TopicModel::load(scratch.0.join(name)).unwrap();
        let words = model.vocabulary().unwrap();
        assert_eq!(words.len(), WORDS + 2, "{name}");
        let ancient = words.id("ancient").unwrap() as usize;
        let tokens: u32 =
            model.counts().unwrap().word(ancient).iter().map(|(_, count)| count).sum();
        assert_eq!(tokens, 2, "{name}");
    }
}

/// The least memory that a run needs, from the error.
fn needed(scratch: &Scratch, line: &str) -> u64 {
    let output = scratch.train(&format!("{line} --memory-limit 1000"));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let refused = stderr(&output);
    refused
        .split_once("needs about ")
        .and_then(|(_, rest)| rest.split(' ').next())
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or_else(|| panic!("{refused}"))
}

#[test]
fn documents_beyond_the_memory_limit_are_cut() {
    let scratch = blocks("blocks-scratch");
    let path = "docword.txt --vocabulary words.txt";
    let options = "--topics 3 --threads 1 --warm-up 2 -q";
    std::fs::create_dir(scratch.0.join("scratch")).unwrap();
    let own = format!("{path} --block-tokens 100 --scratch scratch {options}");
    let limit = needed(&scratch, &own);
    scratch.succeed(&format!("blocks {options} --epochs 9 --assignments expected.txt"));
    let own = format!("{own} --memory-limit {limit}");
    scratch.succeed(&format!("{own} --epochs 9 --assignments found.txt"));
    assert_eq!(scratch.read("expected.txt"), scratch.read("found.txt"));
    assert!(!scratch.topics("found.txt").is_empty());
    // Its topics are a checkpoint, from which it goes on with the documents cut again.
    scratch.succeed(&format!("{own} --epochs 4 --checkpoint run"));
    let resumed = format!("{own} --epochs 9 --resume run --assignments resumed.txt");
    scratch.succeed(&resumed);
    assert_eq!(scratch.read("expected.txt"), scratch.read("resumed.txt"));
    let other = scratch.train(&resumed.replace("--block-tokens 100", "--block-tokens 50"));
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains("--resume: "), "{}", stderr(&other));
    // A damaged record is named, and not taken for a directory without checkpoints.
    let record = scratch.0.join("run/run");
    let mut bytes = std::fs::read(&record).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&record, bytes).unwrap();
    let damaged = scratch.train(&resumed);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(stderr(&damaged).contains("run/run: "), "{}", stderr(&damaged));
    // Without a limit all documents are in memory, with other topics.
    let output = scratch.train(&format!("{path} {options} --epochs 9"));
    assert!(output.status.success() && !stderr(&output).contains("blocks"));
    assert_eq!(std::fs::read_dir(scratch.0.join("scratch")).unwrap().count(), 0);
}

/// The peak of a program's resident memory, polled while it runs.
#[cfg(target_os = "linux")]
fn peak(mut command: Command) -> u64 {
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = kib.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_below_the_stated_bound() {
    let scratch = Scratch::new("blocks-bound");
    // Zipf-like words, 2.4 million tokens.
    let (mut text, mut state) = (String::new(), 1u64);
    for _ in 0..40_000 {
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
            let word = (20_000f64.powf(unit)) as u64;
            text.push_str(&format!(" {word}:{}", 1 + (state >> 30) % 2));
        }
        text.push('\n');
    }
    scratch.write("a.svm", &text);
    let blocks = cut(&scratch, "a.svm --out blocks --block-tokens 150000");
    assert_eq!(blocks.status.code(), Some(0), "{}", stderr(&blocks));
    let options = "--topics 400 --sampler f-plus --threads 2 -q";
    let line = format!("blocks {options}");
    let bound = needed(&scratch, &line);
    let limited = format!("{line} --epochs 4 --memory-limit {bound}");
    let limited = peak(scratch.command(&limited));
    // The program with its threads, long enough to be seen.
    scratch.write("b.svm", "1:1 2:1\n3:4\n");
    let tiny = cut(&scratch, "b.svm --out tiny");
    assert_eq!(tiny.status.code(), Some(0), "{}", stderr(&tiny));
    let program = peak(scratch.command(&format!("tiny {options} --epochs 50")));
    let whole = peak(scratch.command(&format!("a.svm {options} --epochs 4")));
    assert!(
        limited <= bound + program,
        "{limited} bytes, {bound} stated, {program} of the program"
    );
    // The bound is of use: it is far below what all documents take.
    assert!(2 * (bound + program) < whole, "{bound} stated, {program}, {whole} in memory");
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
    for option in ["--checkpoint-every 3", "--checkpoint-keep 4"] {
        let said = refused(&format!("blocks --checkpoint run {option}"), 2);
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
