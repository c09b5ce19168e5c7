//! The subcommand `lda train` as other programs call it: outputs, exit status, and files left
//! behind.

// A skipped test prints a note.
#![allow(clippy::print_stderr)]

mod blocks;
mod checkpoints;
mod init;
mod inputs;
mod interrupts;
mod refusals;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lda_core::train::SamplerKind;
use serde_json::Value;

const DOCUMENTS: usize = 60;
const WORDS: usize = 20;

/// A temporary directory, which is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("train-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A directory with a corpus of two themes in `docword.txt` and its words in `words.txt`.
    fn with_corpus(name: &str) -> Self {
        let scratch = Self::new(name);
        let (pairs, body) = corpus();
        scratch.write("docword.txt", &format!("{DOCUMENTS}\n{WORDS}\n{pairs}\n{body}"));
        let words: String = (0..WORDS).map(|word| format!("word{word}\n")).collect();
        scratch.write("words.txt", &words);
        scratch
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("train");
        command.current_dir(&self.0).args(line.split_whitespace()).stdin(Stdio::null());
        command
    }

    fn train(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs the program and expects success; returns standard output.
    fn succeed(&self, line: &str) -> String {
        let output = self.train(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program and expects a failure without outputs; returns standard error.
    fn fail(&self, line: &str, status: i32) -> String {
        let before = self.files();
        let output = self.train(line);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{line}: {error}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(error.contains("error: ") && !error.contains("panicked"), "{line}: {error}");
        assert_eq!(self.files(), before, "{line}");
        error
    }

    fn log(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn topics(&self, name: &str) -> Vec<u32> {
        self.read(name).lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Even documents use the first ten words, odd ones the last ten. Lines of UCI pairs, and their
/// number.
fn corpus() -> (usize, String) {
    let mut body = String::new();
    let mut pairs = 0;
    for d in 0..DOCUMENTS {
        for n in 0..WORDS / 2 {
            if (d * 7 + n * 3) % 5 < 3 {
                let word = n + (d % 2) * WORDS / 2;
                body.push_str(&format!("{} {} {}\n", d + 1, word + 1, 1 + (d + n) % 3));
                pairs += 1;
            }
        }
    }
    (pairs, body)
}

/// (document, word, count) from 0, as in the corpus.
fn pairs() -> Vec<(usize, usize, usize)> {
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
    corpus().1.lines().map(numbers).map(|n| (n[0] - 1, n[1] - 1, n[2])).collect()
}

fn tokens() -> usize {
    pairs().iter().map(|pair| pair.2).sum()
}

#[test]
fn a_run_writes_all_outputs_and_repeats() {
    let scratch = Scratch::with_corpus("contract");
    let line = "docword.txt --vocabulary words.txt --topics 4 --sampler f-plus --epochs 12 \
        --alpha 0.1 --beta 0.02 --seed 7 --threads 1 --evaluate-every 5 --log log.jsonl \
        --assignments z.txt";
    let stdout = scratch.succeed(line);
    let log = scratch.log("log.jsonl");
    let epochs: Vec<_> = log.iter().map(|line| line["epoch"].as_u64().unwrap()).collect();
    assert_eq!(epochs, [5, 10, 12]);
    let mut seconds = 0.0;
    for line in &log {
        let number = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key}: {line}"));
        let parts = number("log_joint_doc") + number("log_joint_word");
        assert!((number("log_joint") - parts).abs() < 1e-6);
        assert!(number("tokens_per_second") > 0.0 && number("seconds") >= seconds);
        seconds = number("seconds");
        let options = &line["options"];
        assert_eq!(options["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!((&options["sampler"], &options["topics"]), (&"f-plus".into(), &4.into()));
        assert_eq!((&options["alpha"], &options["beta"]), (&0.1.into(), &0.02.into()));
        assert_eq!(
            (&options["seed"], &options["input"]["path"]),
            (&7.into(), &"docword.txt".into())
        );
    }
    let topics = scratch.topics("z.txt");
    assert_eq!(topics.len(), tokens());
    assert!(topics.iter().all(|&topic| topic < 4));
    let mut lines = stdout.lines();
    assert!(lines.next().unwrap().starts_with("# options: {\"program\":\"train\""), "{stdout}");
    assert_eq!(lines.next(), Some("topic   share  words"));
    assert!(lines.all(|line| line.contains('%') && line.contains("word")), "{stdout}");
}

#[test]
fn defaults_are_as_documented() {
    let scratch = Scratch::with_corpus("defaults");
    scratch.succeed("docword.txt --topics 5 --log log.jsonl");
    let log = scratch.log("log.jsonl");
    let options = &log[0]["options"];
    assert_eq!((&options["sampler"], &options["warm-up"]), (&"f-plus".into(), &640.into()));
    // An eighth of the mean number of tokens per document, and 1 at least.
    let sum = (tokens() as f64 / DOCUMENTS as f64 / 8.0).clamp(1.0, 50.0);
    assert_eq!(options["alpha"], sum / 5.0);
    assert_eq!((&options["beta"], &options["seed"]), (&0.01.into(), &0.into()));
    // The earliest end: two windows of three evaluations, ten epochs apart.
    assert!(log.len() >= 6 && log[0]["epoch"] == 10, "{log:?}");
}

#[test]
fn topics_are_measured_on_request() {
    let scratch = Scratch::with_corpus("measured");
    let line = "docword.txt --vocabulary words.txt --topics 2 --alpha 0.1 --epochs 60";
    let plain = scratch.succeed(line);
    let stdout = scratch.succeed(&format!("{line} --coherence --diagnostics topics.csv"));
    let table = stdout.strip_prefix(&*plain.replace("\r", "")).expect("the measures follow");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 2 + 1, "{table}");
    assert!(lines[0].ends_with("npmi   u-mass") && !lines[0].contains("c-v"), "{table}");
    // No word belongs to both themes.
    assert!(lines[3].starts_with("mean npmi ") && lines[3].ends_with("diversity 1.000"), "{table}");
    let csv = scratch.read("topics.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(csv.starts_with("# options: {\"program\":\"train\""), "{csv}");
    let [header, first, second] = &rows[1..] else { panic!("{csv}") };
    assert_eq!((header.len(), first.len(), second.len()), (10, 10, 10));
    let sum = |column: usize| -> usize {
        first[column].parse::<usize>().unwrap() + second[column].parse::<usize>().unwrap()
    };
    assert_eq!((header[1], sum(1)), ("tokens", tokens()));
    assert_eq!((header[2], sum(2)), ("documents", DOCUMENTS));
    for row in [first, second] {
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        assert!(number(5) > 0.99 && number(4) < 10.001 && row[6].is_empty(), "{row:?}");
        assert!((-1.0..=1.0).contains(&number(7)) && number(8) <= 0.0, "{row:?}");
        assert_eq!(row[9].split(' ').count(), 10);
    }
    // Texts have an order, and so C_V; lists of one word have no coherence.
    let text: String = (0..40).map(|d| format!("tree{d} leaf root\n", d = d % 3)).collect();
    scratch.write("texts.txt", &text);
    let stdout = scratch.succeed("texts.txt --topics 2 --epochs 20 --coherence");
    assert!(stdout.contains("c-v     npmi   u-mass") && stdout.contains("mean c-v 0."), "{stdout}");
    let stdout = scratch.succeed("texts.txt --topics 2 --epochs 20 --coherence --top-words 1");
    assert!(stdout.contains("mean c-v -, mean npmi -, mean u-mass -, diversity"), "{stdout}");
}

#[test]
fn help_and_version_succeed() {
    let scratch = Scratch::new("help");
    assert_eq!(scratch.succeed("-V"), format!("lda-train {}\n", env!("CARGO_PKG_VERSION")));
    let help = scratch.succeed("--help");
    for option in [
        "--vocabulary",
        "--topics",
        "--sampler",
        "--epochs",
        "--alpha",
        "--beta",
        "--seed",
        "--threads",
        "--log",
        "--assignments",
        "--evaluate-every",
        "[default: auto]",
    ]
    .into_iter()
    .chain(SamplerKind::ALL.map(SamplerKind::name))
    {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn every_output_contains_its_provenance() {
    let scratch = Scratch::with_corpus("outputs");
    scratch.write("dates.txt", &"1987-02-26\n".repeat(DOCUMENTS));
    let line = "docword.txt --vocabulary words.txt --dates dates.txt --topics 3 --epochs 4 \
        --evaluate-every 2 --seed 11";
    let run = |outputs: &str| scratch.succeed(&format!("{line} --threads 2 {outputs}"));
    let stdout = run("--doc-topics d.csv --topic-words t.csv --plot p.svg --assignments z.txt");
    run("--doc-topics d.npy --topic-words t.npy --plot p.png");
    run("--doc-topics d.mtx --topic-words t.mtx");
    let files = [
        "d.csv",
        "d.mtx",
        "d.npy",
        "d.npy.json",
        "dates.txt",
        "docword.txt",
        "p.png",
        "p.svg",
        "t.csv",
        "t.mtx",
        "t.npy",
        "t.npy.json",
        "words.txt",
        "z.txt",
        "z.txt.json",
    ];
    assert_eq!(scratch.files(), files.map(str::to_owned).into());
    let check = |json: &str| {
        let options: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!((&options["seed"], &options["epochs"]), (&11.into(), &4.into()), "{json}");
        assert_eq!(options["version"], env!("CARGO_PKG_VERSION"));
    };
    check(stdout.lines().next().unwrap().strip_prefix("# options: ").unwrap());
    for name in ["d.csv", "t.csv"] {
        check(scratch.read(name).lines().next().unwrap().strip_prefix("# options: ").unwrap());
    }
    for name in ["d.mtx", "t.mtx"] {
        check(scratch.read(name).lines().nth(2).unwrap().strip_prefix("% options: ").unwrap());
    }
    for name in ["d.npy.json", "t.npy.json", "z.txt.json"] {
        let sidecar: Value = serde_json::from_str(&scratch.read(name)).unwrap();
        check(&sidecar["options"].to_string());
    }
    let svg = scratch.read("p.svg");
    let (start, end) = (svg.find("<metadata>").unwrap() + 10, svg.find("</metadata>").unwrap());
    check(&svg[start..end]);
    let png = scratch.bytes("p.png");
    let at = png.windows(12).position(|window| window == b"tEXtComment\0").unwrap() + 12;
    let length = u32::from_be_bytes(png[at - 16..at - 12].try_into().unwrap()) as usize - 8;
    check(std::str::from_utf8(&png[at..at + length]).unwrap());

    let csv = scratch.read("d.csv");
    assert_eq!(csv.lines().count(), DOCUMENTS + 2);
    assert_eq!(csv.lines().nth(1), Some("document,date,0,1,2"));
    assert!(csv.lines().nth(2).unwrap().starts_with("0,1987-02-26,"));
    let npy = scratch.bytes("t.npy");
    assert_eq!(npy[..8], *b"\x93NUMPY\x01\x00");
    let header = usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    assert!(String::from_utf8_lossy(&npy[10..]).contains("'shape': (3, 20)"));
    assert_eq!(npy.len(), 10 + header + 4 * 3 * WORDS);
}

#[test]
fn assignments_are_by_document_and_ascending_word() {
    let scratch = Scratch::with_corpus("order");
    // Documents out of order with descending words give the same corpus.
    let (count, body) = corpus();
    let reversed: Vec<_> = body.lines().rev().collect();
    let reversed = format!("{DOCUMENTS}\n{WORDS}\n{count}\n{}\n", reversed.join("\n"));
    scratch.write("reversed.txt", &reversed);
    let outputs =
        "--topics 6 --epochs 3 --assignments z.txt --doc-topics d.mtx --topic-words t.mtx";
    scratch.succeed(&format!("docword.txt {outputs}"));
    let topics = scratch.topics("z.txt");
    let mut pairs = pairs();
    pairs.sort_unstable();
    let (mut documents, mut words) = (vec![[0; 6]; DOCUMENTS], vec![[0; WORDS]; 6]);
    let mut next = topics.iter();
    for (document, word, count) in pairs {
        for &topic in next.by_ref().take(count) {
            documents[document][topic as usize] += 1;
            words[topic as usize][word] += 1;
        }
    }
    assert_eq!(next.next(), None);
    let sparse = |name: &str| -> Vec<Vec<usize>> {
        let text = scratch.read(name);
        let lines = text.lines().filter(|line| !line.starts_with('%'));
        lines.skip(1).map(|l| l.split(' ').map(|n| n.parse().unwrap()).collect()).collect()
    };
    for entry in sparse("d.mtx") {
        assert_eq!(documents[entry[0] - 1][entry[1] - 1], entry[2]);
    }
    for entry in sparse("t.mtx") {
        assert_eq!(words[entry[0] - 1][entry[1] - 1], entry[2]);
    }
    scratch.succeed(&format!("reversed.txt --format uci {outputs}"));
    assert_eq!(scratch.topics("z.txt"), topics);
}

#[test]
fn results_depend_on_the_seed_and_not_on_threads() {
    let scratch = Scratch::with_corpus("seed-decides");
    for sampler in ["exact", "f-plus", "warp", "hybrid"] {
        let run = |seed: u32, threads: u32| {
            scratch.succeed(&format!(
                "docword.txt --topics 5 --sampler {sampler} --epochs 6 --ranges 4 --seed {seed} \
                 --threads {threads} --assignments z.txt --topic-words t.csv -q"
            ));
            (scratch.bytes("z.txt"), scratch.bytes("t.csv"))
        };
        let one = run(1, 1);
        assert!(one == run(1, 2), "{sampler}: threads change the result");
        assert!(one.0 != run(2, 1).0, "{sampler}: the seed changes nothing");
    }
}

#[test]
fn themes_are_found() {
    let scratch = Scratch::with_corpus("themes");
    let line =
        "docword.txt --vocabulary words.txt --topics 2 --alpha 0.1 --epochs 60 --held-out 0.2";
    let stdout = scratch.succeed(line);
    let rows: Vec<_> = stdout.lines().filter(|line| line.contains('%')).collect();
    assert_eq!(rows.len(), 2, "{stdout}");
    for row in rows {
        let numbers: Vec<usize> =
            row.split("word").skip(1).map(|n| n.trim().parse().unwrap()).collect();
        let low = numbers.iter().filter(|&&word| word < WORDS / 2).count();
        assert!(numbers.len() == 10 && (low == 0 || low == 10), "{stdout}");
    }
    // A theme is ten words of nearly equal probability.
    let line = stdout.lines().find(|line| line.starts_with("held-out perplexity ")).unwrap();
    let perplexity: f64 = line.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((5.0..13.0).contains(&perplexity), "{line}");
}

#[test]
fn held_out_documents_stop_a_run_early() {
    let scratch = Scratch::with_corpus("patience");
    let line = "docword.txt --vocabulary words.txt --topics 2 --alpha 0.1 --held-out 0.3 \
                --evaluate-every 2 --sampler f-plus --log log.jsonl";
    scratch.succeed(&format!("{line} --patience 2"));
    let log = scratch.read("log.jsonl");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let perplexities: Vec<f64> =
        lines.iter().map(|line| line["perplexity"].as_f64().unwrap()).collect();
    let (before, last) = perplexities.split_at(perplexities.len() - 2);
    let least = |part: &[f64]| part.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least(last) > 0.99 * least(before), "{perplexities:?}");
    scratch.succeed(&format!("{line} --epochs 2"));
    assert!(!scratch.read("log.jsonl").contains("perplexity"));
}

#[test]
fn unused_words_of_the_vocabulary_are_not_in_the_model() {
    let scratch = Scratch::with_corpus("unused-words");
    let (pairs, body) = corpus();
    scratch.write("wide.txt", &format!("{DOCUMENTS}\n{}\n{pairs}\n{body}", WORDS + 2));
    scratch.write("more.txt", &(scratch.read("words.txt") + "absent\nmissing\n"));
    let line = "--topics 2 --epochs 3 --topic-words";
    scratch.succeed(&format!("docword.txt --vocabulary words.txt {line} all.csv"));
    let output = scratch.train(&format!("wide.txt --vocabulary more.txt {line} wide.csv"));
    let note = "2 words of the vocabulary have no token and are left out: 20 words";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    let table = |name| scratch.read(name).lines().skip(1).map(String::from).collect::<Vec<_>>();
    assert_eq!(table("wide.csv"), table("all.csv"));
}

#[test]
fn held_out_documents_keep_their_numbers() {
    let scratch = Scratch::with_corpus("held-out");
    scratch.succeed(
        "docword.txt --topics 2 --epochs 2 --held-out 0.3 --doc-topics d.mtx --assignments z.txt",
    );
    let sparse = scratch.read("d.mtx");
    let mut lines = sparse.lines().filter(|line| !line.starts_with('%'));
    assert!(lines.next().unwrap().starts_with("60 2 "));
    let documents: BTreeSet<&str> = lines.map(|line| line.split(' ').next().unwrap()).collect();
    assert!((30..56).contains(&documents.len()), "{documents:?}");
    assert!(scratch.topics("z.txt").len() < tokens());
}

#[test]
fn small_and_large_numbers_of_topics_work() {
    let scratch = Scratch::with_corpus("sizes");
    let one = scratch.succeed("docword.txt --topics 1 --epochs 2");
    assert_eq!(one.lines().filter(|line| line.contains("100.00%")).count(), 1);
    let many = scratch.succeed("docword.txt --topics 5000 --epochs 2 --show-topics 3");
    assert_eq!(many.lines().filter(|line| line.contains('%')).count(), 3, "{many}");
    assert!(many.contains("--show-topics") && many.contains("topics have no tokens"), "{many}");
}

#[cfg(unix)]
#[test]
fn a_device_is_written_during_the_run() {
    let scratch = Scratch::with_corpus("device");
    let output = scratch.train("docword.txt --epochs 3 --evaluate-every 1 -q --log /dev/stderr");
    assert_eq!(output.status.code(), Some(0));
    let epochs: Vec<u64> = stderr(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(epochs, [1, 2, 3]);
}

#[test]
fn without_a_path_rust_sources_are_read() {
    let scratch = Scratch::new("sources");
    let package = |name: &str| format!("home/registry/src/registry/{name}");
    for name in ["tree-1.0.0/src", "tree-1.1.0/src", "tree-sys-1.0.0/src"] {
        fs::create_dir_all(scratch.0.join(package(name))).unwrap();
    }
    for n in 0..8 {
        let theme = if n % 2 == 0 { "forestLeaf branch_count" } else { "OceanWave // salty tides" };
        scratch.write(&package(&format!("tree-1.1.0/src/f{n}.rs")), &format!("fn {theme}"));
    }
    scratch.write(&package("tree-1.0.0/src/lib.rs"), "older");
    scratch.write(&package("tree-sys-1.0.0/src/lib.rs"), "bindings");
    let run = |home: &str, line: &str| {
        scratch.command(line).env("CARGO_HOME", scratch.0.join(home)).output().unwrap()
    };
    let line = "--topics 2 --epochs 5 --min-document-frequency 1 --max-document-frequency 1";
    let output = run("home", line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("8 files"), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    for word in ["forest", "leaf", "branch", "count", "ocean", "wave", "salty", "tides"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    for home in ["nowhere", "."] {
        let output = run(home, "");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("give a path"), "{}", stderr(&output));
    }
}

#[test]
fn text_and_other_formats_are_detected() {
    let scratch = Scratch::new("formats");
    scratch.write("lines.txt", "The forest leaf.\nAn ocean wave!\nA forest, a leaf\n");
    scratch.write("zero.svm", "1 0:2 3:1\n2 1:1 2:3\n");
    scratch.write(
        "counts.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 1.0\n",
    );
    scratch.write("four.ldac", "2 0:1 3:2\n1 1:4\n");
    fs::create_dir(scratch.0.join("texts")).unwrap();
    scratch.write("texts/a.md", "forest leaf");
    scratch.write("texts/b.txt", "ocean wave");
    for (line, words) in [
        ("lines.txt", &["forest", "leaf", "ocean", "wave"][..]),
        ("lines.txt --stop-words words", &["ocean", "the"]),
        ("texts --extensions md", &["forest"]),
        ("zero.svm --index-base 0", &["#0", "#3"]),
        ("counts.mtx", &["#0", "#1"]),
        ("four.ldac --num-words 9", &["#3"]),
    ] {
        scratch.write("words", "forest\nleaf\n");
        let stdout = scratch.succeed(&format!("{line} --topics 1 --epochs 1"));
        for word in words {
            assert!(stdout.contains(word), "{line}: {stdout}");
        }
        if line.contains("--stop-words") {
            assert!(!stdout.contains("forest"), "{stdout}");
        }
        if line.contains("--extensions") {
            assert!(!stdout.contains("ocean"), "{stdout}");
        }
    }
}

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn the_vocabulary_of_a_real_corpus_is_found() {
    let corpora = std::env::var_os("LDA_CORPORA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora")),
        PathBuf::from,
    );
    let path = corpora.join("docword.bbc.txt.gz");
    assert!(path.is_file(), "{} is missing: set LDA_CORPORA", path.display());
    let scratch = Scratch::new("real");
    let line = format!("{} --topics 10 --epochs 40 --log log.jsonl", path.display());
    let stdout = scratch.succeed(&line);
    assert_eq!(stdout.lines().filter(|line| line.contains('%')).count(), 10, "{stdout}");
    assert!(["film", "game", "party"].iter().all(|word| stdout.contains(word)), "{stdout}");
    let log = scratch.log("log.jsonl");
    let joint = |line: &Value| line["log_joint"].as_f64().unwrap();
    assert!(joint(log.last().unwrap()) > joint(&log[0]));
}
