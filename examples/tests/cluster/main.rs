//! The subcommand `lda cluster` as other programs call it.

#[cfg(feature = "grpc")]
mod checkpoints;
#[cfg(feature = "grpc")]
mod elastic;
#[cfg(feature = "grpc")]
mod held_out;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(all(feature = "grpc", target_os = "linux"))]
mod namespaces;
#[cfg(feature = "grpc")]
mod node;
#[cfg(all(feature = "grpc", unix))]
mod spark;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lda_core::eval::{Ranking, top_words};
use lda_core::model::TopicModel;
use lda_examples::table;

/// Timeout of every wait, far above the time that a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(300);

/// A temporary directory of one test.
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

/// Documents of ten words without a clear structure, so that different runs end in different
/// states.
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.arg("cluster");
    command.arg("local").arg(path).args(["--topics", "4", "--alpha", "0.5", "--epochs", "30"]);
    command.args(options).output().unwrap()
}

#[test]
fn any_number_of_workers_writes_the_same_model() {
    let scratch = Scratch::new("workers");
    let path = scratch.file("articles.txt");
    documents(&path);
    let model = |options: &[&str]| {
        let file = scratch.file("model.lda");
        let output = cluster(&path, &[options, &["--save", file.to_str().unwrap()]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("epoch 30: log joint per token -"), "{said}");
        (fs::read(&file).unwrap(), said)
    };
    let (one, said) = model(&[]);
    assert!(said.contains("1 worker, 1 server; 8 shards of documents, 10 partitions"), "{said}");
    assert!(model(&["--workers", "3", "--servers", "2"]).0 == one);
    assert!(model(&["--shards", "2"]).0 != one);
    assert!(model(&["--seed", "5"]).0 != one);
    let (stale, said) = model(&["--staleness", "1", "--shards", "4"]);
    assert!(said.contains("8 rounds per epoch"), "{said}");
    assert!(model(&["--staleness", "1", "--shards", "4", "--workers", "3"]).0 == stale);
    assert!(stale != one);
    let bounded = ["--staleness", "1", "--sync", "bounded", "--workers", "2"];
    assert!(model(&bounded).1.contains("epoch 30: log joint per token -"));
}

/// Number of tokens of a model, and its number of words.
fn size(path: &Path) -> (u64, usize) {
    let model = TopicModel::load(path).unwrap();
    (model.counts().unwrap().totals().iter().sum(), model.num_words())
}

#[test]
fn a_run_goes_on_from_a_model() {
    let scratch = Scratch::new("from");
    let (path, more) = (scratch.file("articles.txt"), scratch.file("more.txt"));
    documents(&path);
    fs::write(&more, "ocean wave river boat\nforest root moss fern\n").unwrap();
    let file = |name: &str| scratch.file(name).to_str().unwrap().to_owned();
    let (first, second) = (file("first.lda"), file("second.lda"));
    let run = |path: &Path, options: &[&str]| {
        let output = program(&[&["local", path.to_str().unwrap()], options].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() { Ok(said) } else { Err(said) }
    };
    run(&path, &["-k", "4", "--alpha", "0.5", "--save", &first]).unwrap();
    let (tokens, words) = size(Path::new(&first));
    let said = run(&more, &["--shards", "2", "--from", &first, "--save", &second]).unwrap();
    assert!(
        said.contains("from a model of 4 topics: 4 of the 8 words of the documents are in it"),
        "{said}"
    );
    assert_eq!(size(Path::new(&second)), (tokens + 8, words + 4));
    let half = ["--shards", "2", "--from", &first, "--from-share", "0.5", "--save", &second];
    run(&more, &half).unwrap();
    assert_eq!(size(Path::new(&second)), (tokens / 2 + 8, words + 4));
    let error = run(&more, &["--shards", "2", "-k", "3", "--from", &first]).unwrap_err();
    assert!(error.contains("--from: the model has 4 topics, the run 3"), "{error}");
    let error = run(&more, &["--shards", "2", "--learn-beta", "--from", &first]).unwrap_err();
    assert!(error.contains("β cannot be learnt"), "{error}");
}

#[test]
fn every_sampler_trains_and_wrong_combinations_are_refused() {
    let scratch = Scratch::new("samplers");
    let (path, file) = (scratch.file("articles.txt"), scratch.file("model.lda"));
    documents(&path);
    let run = |options: &str| {
        // With so many topics rows are lists: in dense ones, samplers draw the same.
        let all = format!("--topics 300 --alpha 0.01 --epochs 10 {options} --save");
        let mut arguments = vec!["local", path.to_str().unwrap()];
        arguments.extend(all.split(' ').chain(file.to_str()));
        let output = program(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() { Ok(fs::read(&file).unwrap()) } else { Err(said) }
    };
    let mut models = Vec::new();
    for sampler in [
        "exact",
        "f-plus",
        "f-plus-doc",
        "alias",
        "light",
        "zen",
        "zen-doc",
        "warp",
        "light --mh-steps 3",
        "exact --exclude-converged-from 2",
    ] {
        let model = run(&format!("--sampler {sampler} --workers 2")).unwrap();
        assert!(!models.contains(&model), "{sampler}");
        models.push(model);
    }
    // Every document has eight tokens.
    let [_, f_plus, .., warp, _, _] = &models[..] else { panic!("a model per sampler") };
    assert!(run("--sampler hybrid --short-length 7").unwrap() == *warp);
    assert!(run("--sampler hybrid --short-length 8").unwrap() == *f_plus);
    for (options, message) in [
        ("--sampler zen --mh-steps 2", "mh-steps applies to the samplers alias, light, warp"),
        ("--sampler warp --exclude-converged-from 2", "exclude-converged-from applies to"),
        ("--exclude-converged-from 0", "0 is not in 1"),
        ("--sampler polya-urn", "[possible values: exact, f-plus"),
        ("--sampler warp --short-length 7", "warp samples all documents, also those of 7 tokens"),
        ("--threads 9", "the documents here are 8 shards, each sampled by one thread"),
        ("--threads 3 --shards 2 --workers 2", "the documents here are 2 shards"),
    ] {
        let said = run(options).unwrap_err();
        assert!(said.contains(message), "{options}: {said}");
    }
    // Two workers of four shards each.
    run("--threads 8 --workers 2").unwrap();
}

#[test]
fn a_log_has_a_line_per_epoch() {
    let scratch = Scratch::new("log");
    let (path, log) = (scratch.file("articles.txt"), scratch.file("run.jsonl"));
    documents(&path);
    for runs in 1..3 {
        let output = cluster(&path, &["--workers", "2", "--log", log.to_str().unwrap()]);
        assert!(output.status.success());
        let lines = fs::read_to_string(&log).unwrap();
        let epochs: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // A log is appended to.
        assert_eq!(epochs.len(), 30 * runs);
        let mut before = 0.0;
        for (epoch, line) in (1..31).cycle().zip(&epochs) {
            assert_eq!(line["epoch"], epoch);
            // Time is cumulative, from the start of each run.
            let number = |name: &str| line[name].as_f64().unwrap();
            let epoch_seconds = number("seconds") - if epoch == 1 { 0.0 } else { before };
            before = number("seconds");
            assert!(
                (number("tokens_per_second") * epoch_seconds / 320.0 - 1.0).abs() < 1e-3,
                "{line}"
            );
            let joint = ["log_joint", "log_joint_doc", "log_joint_word", "log_joint_per_token"]
                .map(|name| line.get(name).map(|value| value.as_f64().unwrap()));
            if let [Some(total), Some(documents), Some(words), Some(per_token)] = joint {
                assert!(((documents + words) / total - 1.0).abs() < 1e-12, "{line}");
                assert!((per_token * 320.0 / total - 1.0).abs() < 1e-12, "{line}");
                assert!(documents < 0.0 && words < 0.0, "{line}");
            } else {
                assert_eq!(joint, [None; 4], "{line}");
            }
            assert_eq!(line["tokens"], 320);
            assert_eq!(line.get("log_joint").is_some(), epoch % 10 == 0, "{line}");
            let full =
                line.get("non_zeros").map(|it| (it["words"].as_u64(), it["documents"].as_u64()));
            assert_eq!(full.is_some(), epoch % 10 == 0, "{line}");
            // Ten words and four topics, forty documents.
            let fits =
                |(words, documents)| (10..=40).contains(&words) && (40..=160).contains(&documents);
            assert!(
                full.is_none_or(|(words, documents)| words.zip(documents).is_some_and(fits)),
                "{line}"
            );
            let bytes = line["bytes"].as_object().unwrap();
            let of = |name: &str| bytes[name].as_u64().unwrap();
            let parts = bytes.keys().filter(|name| *name != "all").map(|name| of(name));
            assert_eq!(of("all"), parts.sum::<u64>(), "{line}");
            assert!(of("rows") + of("pushed") > 0 && line["seconds"].as_f64().unwrap() > 0.0);
            assert!(line["heaviest_bytes"]["server"].as_u64().unwrap() > 0, "{line}");
            assert!(line["waited_seconds"]["rounds"].as_f64().unwrap() >= 0.0);
        }
    }
    let nowhere = scratch.file("nowhere/run.jsonl");
    let output = cluster(&path, &["--log", nowhere.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("run.jsonl: cannot write: "), "{said}");
}

#[test]
fn the_log_has_the_share_of_tokens_that_were_sampled() {
    let scratch = Scratch::new("excluded");
    let (path, log) = (scratch.file("articles.txt"), scratch.file("run.jsonl"));
    documents(&path);
    let options = ["--exclude-converged-from", "3", "--evaluate-every", "1"];
    let output = cluster(&path, &[&options[..], &["--log", log.to_str().unwrap()]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains(" % of the tokens sampled"), "{said}");
    let lines = fs::read_to_string(&log).unwrap();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let share = line.get("sampled").map(|share| share.as_f64().unwrap());
        match line["epoch"].as_u64().unwrap() {
            // Epoch 3 knows no token that has kept its topic.
            1..=3 => assert_eq!(share, None, "{line}"),
            _ => assert!(share.is_some_and(|it| (0.05..0.95).contains(&it)), "{line}"),
        }
    }
}

#[test]
fn a_run_prints_its_topics_with_and_without_a_saved_model() {
    let scratch = Scratch::new("topics");
    let (path, file) = (scratch.file("articles.txt"), scratch.file("model.lda"));
    documents(&path);
    let shown = |options: &[&str]| {
        let output = cluster(&path, &[options, &["--workers", "2", "--servers", "3"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
        String::from_utf8(output.stdout).unwrap()
    };
    let shown_with = shown(&["--top-words", "3", "--save", file.to_str().unwrap()]);
    let model = TopicModel::load(&file).unwrap();
    let (counts, mut expected) = (model.counts().unwrap(), Vec::new());
    let words = top_words(counts, counts.beta(), 3, Ranking::Probability).unwrap();
    table::write(&mut expected, counts.totals(), model.vocabulary(), &words, 100).unwrap();
    assert_eq!(shown_with, String::from_utf8(expected).unwrap());
    // Here no model is collected, and there the likelihood is not evaluated.
    assert_eq!(shown(&["--top-words", "3"]), shown_with);
    assert_eq!(shown(&["--top-words", "3", "--evaluate-every", "0"]), shown_with);
    assert_eq!(shown(&["--top-words", "0"]), "");
    assert_eq!(shown(&["--show-topics", "1"]).lines().count(), 3);
}

#[test]
fn without_a_path_the_documents_are_rust_sources() {
    let scratch = Scratch::new("sources");
    let package = scratch.file("registry/src/registry/tree-1.0.0");
    fs::create_dir_all(&package).unwrap();
    for n in 0..8 {
        let theme = if n % 2 == 0 { "forestLeaf branch_count" } else { "OceanWave // salty tides" };
        fs::write(package.join(format!("f{n}.rs")), format!("fn {theme}")).unwrap();
    }
    let run = |home: &Path, line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("cluster");
        let output = command.args(line.split(' ')).env("CARGO_HOME", home).output().unwrap();
        let status = output.status.code();
        let said = [output.stderr, output.stdout].concat();
        (status, String::from_utf8(said).unwrap())
    };
    let all = "--min-document-frequency 1 --max-document-frequency 1";
    let shards = scratch.file("shards");
    for (line, tells) in [
        (format!("local --topics 2 --epochs 3 {all}"), "salty"),
        (format!("cut --out {} {all}", shards.display()), "8 documents, 32 tokens, 8 words"),
    ] {
        let (status, said) = run(&scratch.0, &line);
        assert_eq!(status, Some(0), "{said}");
        for part in ["no path given", "8 files", tells] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (status, said) = run(&scratch.file("nowhere"), &line);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("no Rust sources in") && said.contains("give a path"), "{said}");
    }
    let (status, said) = run(&scratch.0, "local --format uci");
    assert_eq!(status, Some(2), "{said}");
}

#[test]
fn invalid_options_are_refused() {
    let scratch = Scratch::new("refused");
    let path = scratch.file("articles.txt");
    documents(&path);
    for (options, said) in [
        (&["--workers", "9", "--shards", "4"][..], "9 workers for 4 shards"),
        (&["--shards", "41"], "41 shards of 40 documents"),
        (&["--servers", "11"], "10 words for 11 servers"),
        (&["--rounds", "9", "--partitions", "3"], "9 rounds of 3 partitions"),
        (&["--staleness", "3", "--rounds", "3"], "staleness of 3 rounds with 3 rounds per epoch"),
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

#[test]
fn held_out_documents_are_evaluated() {
    let scratch = Scratch::new("held-out");
    let path = scratch.file("articles.txt");
    documents(&path);
    let run = |options: &[&str]| {
        let log = scratch.file("log.jsonl");
        let _ = fs::remove_file(&log);
        let held_out = ["--held-out", "0.3", "--evaluate-every", "2", "--log"];
        let options = [&held_out[..], &[log.to_str().unwrap()], options].concat();
        let output = cluster(&path, &options);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let log = fs::read_to_string(log).unwrap();
        let lines: Vec<serde_json::Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (printed, lines, said)
    };
    let perplexity = |printed: &str| -> f64 {
        let line = printed.lines().last().unwrap();
        let text = line.strip_prefix("held-out perplexity ").unwrap().split(' ').next().unwrap();
        text.parse().unwrap()
    };
    let (printed, lines, _) = run(&[]);
    assert!((1.0..10.0).contains(&perplexity(&printed)), "{printed}");
    assert_eq!(lines.len(), 30);
    assert!(lines.iter().all(|line| line["perplexity"].is_null()), "only with --patience");
    let (other, _, _) = run(&["--workers", "3", "--servers", "2", "--partitions", "9"]);
    let (same, _, _) = run(&["--partitions", "9"]);
    assert_eq!(perplexity(&other), perplexity(&same));

    let (printed, lines, said) = run(&["--patience", "1"]);
    assert!(lines.len() < 30 && said.contains("held-out perplexity"), "{said}");
    for line in &lines {
        let is_due = line["epoch"].as_u64().unwrap() % 2 == 0;
        assert_eq!(line["perplexity"].is_f64(), is_due, "{line}");
    }
    let last = lines.iter().rev().find_map(|line| line["perplexity"].as_f64()).unwrap();
    if lines.len() % 2 == 0 {
        assert!((perplexity(&printed) - last).abs() < 0.006, "{printed}, {last}");
    }

    for (options, said) in [
        (&["--held-out", "0.0001"][..], "leaves training or evaluation without documents"),
        (&["--held-out", "0.3", "--patience", "2", "--evaluate-every", "0"], "--patience needs"),
        (&["--held-out", "0.3", "--patience", "2", "--staleness", "1"], "held-out documents"),
        (&["--patience", "2"], "--held-out"),
    ] {
        let output = cluster(&path, options);
        let found = String::from_utf8(output.stderr).unwrap();
        assert!(found.contains(said) && output.status.code() == Some(2), "{options:?}: {found}");
    }
}

/// The last checkpointed epoch in this directory; 0 without a checkpoint.
fn kept(directory: &Path) -> u32 {
    let latest = fs::read_to_string(directory.join("latest"));
    latest.ok().and_then(|text| text.lines().nth(1)?.get(6..)?.parse().ok()).unwrap_or(0)
}

/// Waits for a checkpoint of a later epoch than this.
fn wait_for_kept(directory: &Path, before: u32) -> u32 {
    let begun = Instant::now();
    loop {
        let epoch = kept(directory);
        if epoch > before {
            return epoch;
        }
        assert!(begun.elapsed() < PATIENCE, "no checkpoint is written");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A process that is killed when the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends TERM to a process.
fn terminate(process: &Child) {
    send(process, "TERM");
}

/// Sends a signal.
#[cfg(unix)]
fn send(process: &Child, signal: &str) {
    let id = process.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Otherwise a file of a few bytes would end the process, and others with it, for lack of memory.
#[cfg(target_os = "linux")]
#[test]
fn runs_that_cannot_fit_into_memory_are_refused() {
    let scratch = Scratch::new("memory");
    let path = scratch.file("docword.count.txt");
    fs::write(&path, "4\n1\n4\n1 1 1000000000\n2 1 1000000000\n3 1 1\n4 1 1\n").unwrap();
    let small = scratch.file("articles.txt");
    documents(&small);
    let nodes = ["--topics", "16000000", "--servers", "2"];
    for (path, options) in [(&path, &["--topics", "2"][..]), (&small, &nodes)] {
        let limited = Command::new("sh")
            .args([
                "-c",
                "ulimit -v 2000000; exec \"$@\"",
                "sh",
                env!("CARGO_BIN_EXE_lda"),
                "cluster",
                "local",
            ])
            .args(["--epochs", "1", "--quiet"])
            .arg(path)
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&limited.stderr);
        assert_eq!(limited.status.code(), Some(1), "{said}");
        let start = "error: all nodes together need at least ";
        assert!(said.starts_with(start) && said.contains(" may use 2048000000: "), "{said}");
    }
}

#[test]
fn a_terminated_local_run_continues_from_its_checkpoints() {
    let scratch = Scratch::new("local-snapshots");
    let (path, directory) = (scratch.file("articles.txt"), scratch.file("kept"));
    documents(&path);
    let snapshots = ["--snapshots", directory.to_str().unwrap()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.arg("cluster");
    command.arg("local").arg(&path).args(["--topics", "4", "--alpha", "0.5"]);
    command.args(["--epochs", "1000000", "--workers", "2", "--quiet"]).args(snapshots);
    let mut endless = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    wait_for_kept(&directory, 29);
    terminate(&endless.0);
    let status = endless.0.wait().unwrap();
    let mut said = String::new();
    endless.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let stopped = kept(&directory);
    assert_eq!(status.code(), Some(75), "{said}");
    assert!(
        said.contains(&format!("a new start continues from the topics of epoch {stopped}")),
        "{said}"
    );
    // The run also continues with other numbers of workers, servers and epochs.
    let (epochs, model) = ((stopped + 7).to_string(), scratch.file("model.lda"));
    let end = |options: &[&str]| {
        let ending = ["--epochs", &epochs, "--save", model.to_str().unwrap()];
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("cluster");
        command.arg("local").arg(&path).args(["--topics", "4", "--alpha", "0.5"]);
        let output = command.args(ending).args(options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        (fs::read(&model).unwrap(), said)
    };
    let (resumed, said) = end(&[&["--servers", "2"][..], &snapshots].concat());
    assert!(!said.contains(&format!("epoch {stopped}:")), "{said}");
    let other =
        format!("continues from epoch {stopped} with other options, servers 2 instead of 1");
    assert!(said.contains(&other), "{said}");
    assert!(resumed == end(&[]).0);
    // Another run does not use these checkpoints, and leaves them unchanged.
    let before = fs::read(directory.join("latest")).unwrap();
    let output = cluster(&path, &[&["--seed", "9"][..], &snapshots].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("latest"), "{said}");
    assert!(fs::read(directory.join("latest")).unwrap() == before);
}

#[test]
fn a_local_run_that_ends_early_has_the_model_of_a_shorter_run() {
    let scratch = Scratch::new("local-early");
    let (path, model, log) =
        (scratch.file("articles.txt"), scratch.file("model.lda"), scratch.file("run.jsonl"));
    documents(&path);
    let run = |options: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.args(["cluster", "local"]).arg(&path).args(options.split(' '));
        command.arg("--save").arg(&model).arg("--log").arg(&log).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    };
    let ended = |mut running: Running| {
        let status = running.0.wait().unwrap();
        let mut said = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success(), "{said}");
        let epochs = fs::read_to_string(&log).unwrap().lines().count();
        fs::remove_file(&log).unwrap();
        (epochs, fs::read(&model).unwrap(), said)
    };
    let check = |(epochs, found, said): (usize, Vec<u8>, String)| {
        assert!((1..1_000_000).contains(&epochs), "{said}");
        let shorter = ended(run(&format!("--topics 4 --workers 2 --epochs {epochs}")));
        assert!(found == shorter.1, "{epochs} epochs: {said}");
        said
    };
    let endless = "--topics 4 --workers 2 --epochs 1000000";
    check(ended(run(&format!("{endless} --seconds 0.2"))));
    check(ended(run(&format!("{endless} --level-off=0.01"))));
    let terminated = run(endless);
    let start = Instant::now();
    while fs::read_to_string(&log).map_or(0, |lines| lines.lines().count()) < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no epoch ends");
        thread::sleep(Duration::from_millis(10));
    }
    terminate(&terminated.0);
    let said = check(ended(terminated));
    assert!(
        said.contains("stopping after this epoch or the next; another signal exits at once"),
        "{said}"
    );
}

/// The program with these arguments.
fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lda")).arg("cluster").args(arguments).output().unwrap()
}

#[test]
fn documents_are_cut_into_a_directory() {
    let scratch = Scratch::new("cut");
    let path = scratch.file("articles.txt");
    documents(&path);
    let (from, out) = (path.to_str().unwrap(), scratch.file("shards"));
    let cut = |shards| program(&["cut", from, "--out", out.to_str().unwrap(), "--shards", shards]);
    let output = cut("4");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("shards: 4 shards of 40 documents, 320 tokens, 10 words"), "{said}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 7);
    let output = cut("41");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("41 shards of 40 documents"));
}

#[test]
fn a_node_without_a_run_reports_the_reason() {
    let scratch = Scratch::new("norun");
    let config = scratch.file("run.toml");
    let node = |text: &str, more: &[&str]| {
        fs::write(&config, text).unwrap();
        let output = program(&[&["node", "--config", config.to_str().unwrap()], more].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = node("documents = 3", &[]);
    assert!(status == Some(2) && said.contains("run.toml: TOML parse error at line 1"), "{said}");
    let (status, said) = node("documents = \"nowhere\"", &[]);
    assert!(status == Some(1) && said.contains("nowhere/manifest"), "{said}");
    #[cfg(not(feature = "object-store"))]
    for text in ["documents = \"s3://bucket/nips\"", "documents = \"memory:///\""] {
        let (status, said) = node(text, &[]);
        assert!(status == Some(2) && said.contains("--features object-store"), "{said}");
    }
    #[cfg(feature = "object-store")]
    {
        let (status, said) = node("documents = \"s3://a:b@bucket/nips\"", &[]);
        assert!(status == Some(2) && said.contains("set it in the environment"), "{said}");
        let (status, said) = node("documents = \"memory:///\"", &[]);
        assert!(status == Some(2) && said.contains("lost with this process"), "{said}");
        let (status, said) = node("documents = \"file:///nowhere/at/all\"", &[]);
        assert!(status == Some(1) && said.contains("file:///nowhere/at/all/manifest: "), "{said}");
    }
    let path = scratch.file("articles.txt");
    documents(&path);
    let out = scratch.file("shards");
    program(&["cut", path.to_str().unwrap(), "--out", out.to_str().unwrap(), "--shards", "2"]);
    let many = "documents = \"shards\"\n[training]\nworkers = 3";
    let (status, said) = node(many, &[]);
    assert!(status == Some(2) && said.contains("3 workers for 2 shards"), "{said}");
    let two = "documents = \"shards\"\n[training]\nworkers = 2\n[locality]\nworkers = ";
    let (status, said) = node(&format!("{two}[\"a\"]"), &[]);
    assert!(
        status == Some(2) && said.contains("machines of 1 workers, but `workers = 2`"),
        "{said}"
    );
    fs::write(out.join("hosts"), "shard 0 a").unwrap();
    let (status, said) = node(&format!("{two}[\"a\", \"\"]"), &[]);
    assert!(
        status == Some(1) && said.contains("hosts:1: \"lda-dist hosts 1\" is expected"),
        "{said}"
    );
    let (status, said) = node("documents = \"shards\"", &["--role", "master"]);
    assert!(status == Some(2) && said.contains("the configuration has no [grpc]"), "{said}");
    let grpc = "documents = \"shards\"\n[grpc]\nmaster = \"m:1\"\nservers = \"s:1\"\n\
        workers = \"w:1\"";
    let (status, said) = node(grpc, &[]);
    assert!(status == Some(2) && said.contains("give --role"), "{said}");
    let (status, said) = node(grpc, &["--role", "server", "--index", "1"]);
    assert!(status == Some(2) && said.contains("there is no server 1"), "{said}");
}
