//! Runs of baselines: one that works, and others that crash, hang, send wrong states or are
//! missing.
//!
//! The adapters are a shell script, so nothing has to be installed.
#![cfg(all(feature = "lab", unix))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lda_benches::lab::Baseline;
use lda_benches::synthetic::Spec;
use lda_core::corpus::write_uci;

/// An adapter: for each baseline its name, `)`, and its commands.
const ADAPTER: &str = r#"#!/bin/sh
read -r job
value() { printf '%s' "$job" | sed "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/"; }
corpus=$(value corpus) scratch=$(value scratch) topics=$(value topics)
assignments() { # epoch
    awk -v topics="$topics" -v shift="$1" '
        NR == 1 { documents = $1 }
        NR == 2 { printf "assignments %d %d %d\n", documents, $1, topics }
        NR > 3 { for (i = 0; i < $3; i++) line[$1] = line[$1] " " ($2 - 1) ":" ((n++ + shift) % topics) }
        END { for (d = 1; d <= documents; d++) print line[d] }' "$corpus"
}
weights() {
    awk -v topics="$topics" '
        NR == 2 { print "weights", topics, $1
            for (k = 0; k < topics; k++) { for (w = 0; w < $1; w++) printf "%g ", 1 + (w % topics == k); print "" } }
        ' "$corpus"
}
evaluated() { # epoch, file
    echo "{\"evaluated\":{\"epoch\":$1,\"cpu-seconds\":$1.5,\"wall-seconds\":$1,\"file\":\"$2\"}}"
    read -r answer && [ "$answer" = go ]
}
finished() {
    echo '{"done":{"version":"stub 1.0","options":"eta = 0.01","clock":"Nothing.","peak-bytes":4194304}}'
}
case $1 in
"#;

/// Writes states at two epochs, and keeps the job in a file.
const GOOD: &str = r#"
    printf '%s\n' "$job" > HERE/job.json
    test -e "$scratch/old.txt" && exit 8
    for epoch in 0 2 4; do
        assignments $epoch > "$scratch/$epoch.txt"
        evaluated $epoch $epoch.txt || break
        test -e "$scratch/$epoch.txt" && exit 9
    done
    finished ;;
"#;

const VARIATIONAL: &str = r#"
    weights > "$scratch/a.txt"; evaluated 1 a.txt
    weights > "$scratch/a.txt"; evaluated 2 a.txt
    finished ;;
"#;

const CRASH: &str = "echo 'Traceback' >&2; echo 'MemoryError: out of luck' >&2; exit 3 ;;\n";

/// Starts a child process, which must be killed with it.
const HANG: &str = "sleep 1000 & echo $! > HERE/part-$1; mv HERE/part-$1 HERE/pid-$1; wait ;;\n";

/// Moves a token to a word that its document does not have.
const LIE: &str = r#"
    assignments 0 | sed '2s/ [0-9]*:/ 99:/' > "$scratch/0.txt"
    evaluated 0 0.txt; finished ;;
"#;

/// A directory with a corpus named tiny and an adapter of these baselines.
fn directory(name: &str, baselines: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("baselines").join(name);
    // The directory may be left over from an earlier run.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let spec = Spec { num_documents: 40, num_words: 100, num_topics: 4, ..Spec::default() };
    let corpus = spec.generate(1).unwrap().corpus;
    write_uci(&corpus, fs::File::create(path.join("docword.tiny.txt")).unwrap()).unwrap();
    let mut script = ADAPTER.to_owned();
    for (baseline, does) in baselines {
        script +=
            &format!("{baseline}) {}", does.replace("HERE", &format!("'{}'", path.display())));
    }
    script += "*) echo 'no such baseline' >&2; exit 1 ;;\nesac\n";
    let program = path.join("baseline");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn command(directory: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(arguments.split_whitespace()).current_dir(directory);
    command.env("LDA_CORPORA", directory).env("LDA_BASELINES", directory);
    command.env_remove("LDA_MALLET").env("LDA_WARPLDA", directory.join("baseline"));
    command
}

fn lab(directory: &Path, arguments: &str) -> Output {
    command(directory, arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Column of a CSV file whose quoted fields hold no line ends.
fn column(csv: &str, name: &str) -> Vec<String> {
    let fields = |line: &str| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                c => fields.last_mut().unwrap().push(c),
            }
        }
        fields
    };
    let at = fields(csv.lines().next().unwrap()).iter().position(|field| field == name).unwrap();
    csv.lines().skip(1).map(|line| fields(line)[at].clone()).collect()
}

#[test]
fn baselines_are_in_the_tables_of_our_samplers() {
    let directory = directory("beside", &[("tomotopy", GOOD), ("gensim", VARIATIONAL)]);
    let run = "run --corpus tiny --topics 4 --baseline tomotopy,gensim --held-out 0.3 --epochs 4 \
               --evaluate-every 2 --length-bins 100 --alpha 0.5 --out out";
    // A leftover of an interrupted run.
    let scratch = directory.join("out/scratch/tiny-k4-tomotopy-t1-s1");
    fs::create_dir_all(&scratch).unwrap();
    fs::write(scratch.join("old.txt"), "").unwrap();
    let output = lab(&directory, run);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["| f-plus | 1 | 1 |", "| tomotopy | 1 | 1 |", "| gensim | 1 | 1 |", " perplexity |"]
    {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    assert!(table.contains("- tomotopy is stub 1.0: eta = 0.01. Nothing."), "{table}");

    // One evaluator: assignments give a log joint, and every state a perplexity.
    let cells = fs::read_to_string(directory.join("out/cells.csv")).unwrap();
    assert_eq!(column(&cells, "sampler"), ["f-plus", "tomotopy", "gensim"]);
    assert_eq!(column(&cells, "peak_bytes")[1..], ["4194304", "4194304"]);
    let joints = column(&cells, "log_joint_per_token");
    assert!(joints[1].starts_with('-') && joints[2].is_empty(), "{joints:?}");
    let perplexities = column(&cells, "perplexity");
    assert!(perplexities.iter().all(|x| x.parse::<f64>().unwrap() > 1.0), "{perplexities:?}");
    // All methods trained on the same documents, and not on all 40.
    let fingerprints = column(&cells, "corpus_fingerprint");
    assert!(fingerprints.iter().all(|hash| *hash == fingerprints[0]), "{fingerprints:?}");
    assert!(column(&cells, "documents")[0].parse::<u32>().unwrap() < 40);
    let epochs = fs::read_to_string(directory.join("out/epochs.csv")).unwrap();
    assert_eq!(column(&epochs, "epoch"), ["0", "2", "4", "0", "2", "4", "1", "2"]);
    let lengths = fs::read_to_string(directory.join("out/lengths.csv")).unwrap();
    assert!(lengths.contains("tomotopy,") && !lengths.contains("gensim,"), "{lengths}");
    assert!(directory.join("out/plots/tiny-k4-t1-perplexity-by-time.svg").is_file());

    let job = fs::read_to_string(directory.join("job.json")).unwrap();
    let job: serde_json::Value = serde_json::from_str(&job).unwrap();
    let number = |key: &str| job[key].as_f64().unwrap();
    let numbers = ["topics", "alpha", "beta", "epochs", "evaluate-every", "seed", "threads"];
    assert_eq!(numbers.map(number), [4.0, 0.5, 0.01, 4.0, 2.0, 1.0, 1.0]);
    // The scratch directory of a baseline is removed, and a finished run is reused.
    assert!(!scratch.exists());
    assert_eq!(stderr(&lab(&directory, run)).matches("finished before").count(), 3);
}

#[test]
fn the_row_of_a_failed_baseline_has_the_error_and_the_run_continues() {
    let baselines = [("tomotopy", GOOD), ("gensim", CRASH), ("spark", HANG), ("warplda", LIE)];
    let directory = directory("wrong", &baselines);
    let plan = "samplers = []\nbaselines = [\"gensim\", \"spark\", \"mallet\", \"warplda\", \"tomotopy\"]\n\
                corpora = [\"tiny\"]\ntopics = [4]\ntimeout = 5.0\n";
    fs::write(directory.join("plan.toml"), plan).unwrap();
    wrong_baselines_have_their_rows(&directory, "run plan.toml --out out");
    // Simultaneous runs give the same rows in the same order.
    wrong_baselines_have_their_rows(&directory, "run plan.toml --out at-once --jobs 3");
    let rows = |out: &str| {
        let text = fs::read_to_string(directory.join(out).join("cells.csv")).unwrap();
        column(&text, "sampler")
    };
    assert_eq!(rows("out"), ["tomotopy", "gensim", "spark", "mallet", "warplda"]);
    assert_eq!(rows("at-once"), rows("out"));
}

fn wrong_baselines_have_their_rows(directory: &Path, arguments: &str) {
    let output = lab(directory, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    let row = |baseline: &str| {
        let start = format!("| {baseline} |");
        let row = table.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| {
            panic!("no row of {baseline}: {table}");
        });
        row.to_owned()
    };
    assert!(row("gensim").contains("gensim: MemoryError: out of luck"), "{table}");
    assert!(row("spark").contains("exceeded the timeout"), "{table}");
    assert!(row("mallet").contains("not installed: set LDA_MALLET to its executable"), "{table}");
    assert!(row("warplda").contains("line 2, document 0: "), "{table}");
    assert!(row("tomotopy").contains("| 1 |") && !row("tomotopy").contains("failed"), "{table}");
    // Its child processes are killed too.
    assert!(is_gone(directory, "spark"), "{table}");
}

/// Whether the child process of a hanging baseline has ended.
fn is_gone(directory: &Path, baseline: &str) -> bool {
    let pid = fs::read_to_string(directory.join(format!("pid-{baseline}"))).unwrap();
    let state = if cfg!(target_os = "linux") {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit(") ").next().unwrap_or_default().to_owned()
    } else {
        let ps = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
        String::from_utf8(ps.stdout).unwrap().trim().to_owned()
    };
    // A process that has exited but was not reaped counts as gone.
    state.is_empty() || state.starts_with('Z')
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_lab_kills_its_baselines() {
    let baselines = ["spark", "gensim"];
    let directory = directory("ended", &baselines.map(|baseline| (baseline, HANG)));
    let arguments =
        "run --corpus tiny --baseline spark,gensim --topics 4 --epochs 2 --jobs 3 --out out";
    let mut lab = command(&directory, arguments).stderr(Stdio::null()).spawn().unwrap();
    for baseline in baselines {
        let pid = directory.join(format!("pid-{baseline}"));
        wait_until("the baseline starts", || pid.exists());
    }
    // Both run at the same time.
    assert!(!baselines.iter().any(|baseline| is_gone(&directory, baseline)));
    // Results of finished runs are kept.
    let kept = directory.join("out/cells/tiny-k4-f-plus-t1-s1.json");
    wait_until("our sampler is done", || kept.exists());
    // The lab is killed without a chance to clean up.
    lab.kill().unwrap();
    lab.wait().unwrap();
    for baseline in baselines {
        wait_until("the baseline ends", || is_gone(&directory, baseline));
    }
    assert!(kept.exists());
}

#[test]
fn a_lab_that_cannot_write_results_kills_its_runs() {
    let directory = directory("unwritable", &[("spark", HANG)]);
    fs::create_dir(directory.join("out")).unwrap();
    // A file in the place of the directory of results.
    fs::write(directory.join("out/cells"), "").unwrap();
    let run = "run --corpus tiny --baseline spark --topics 4 --epochs 2 --jobs 2 --again --out out";
    let output = lab(&directory, run);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
    // The baseline may have been killed before it started a child process.
    if directory.join("pid-spark").exists() {
        wait_until("the baseline ends", || is_gone(&directory, "spark"));
    }
}

#[test]
fn errors_of_adapters_are_reported() {
    for (does, expected) in [
        ("echo hello; sleep 1 ;;\n", "standard output, line 1: expected value"),
        ("finished ;;\n", "sent `done` without a state"),
        ("exit 0 ;;\n", "exited without the message `done`"),
        ("exit 7 ;;\n", "exited with exit status: 7"),
        ("evaluated 1 ../docword.tiny.txt ;;\n", "is not a file of the scratch directory"),
        ("evaluated 1 none.txt ;;\n", "\"none.txt\" is not a file"),
        (
            "assignments 0 > \"$scratch/a\"; evaluated 3 a; assignments 0 > \"$scratch/a\"; \
          evaluated 3 a ;;\n",
            "sent epoch 3 after epoch 3",
        ),
        ("echo x > \"$scratch/a\"; evaluated 1 a ;;\n", "line 1: the header is \"x\""),
        ("head -c 100000 /dev/zero ;;\n", "longer than the maximum of 65536 bytes"),
    ] {
        let directory = directory("protocol", &[("tomotopy", does)]);
        let output = lab(&directory, "run --corpus tiny --baseline tomotopy --epochs 2 --out out");
        assert_eq!(output.status.code(), Some(1), "{does}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{does}: {}", stderr(&output));
    }
}

#[test]
fn missing_packages_are_reported_with_a_remedy() {
    let directory = directory("packages", &[]);
    let mut command =
        command(&directory, "run --corpus tiny --baseline gensim --epochs 2 --out out");
    let output = command.env_remove("LDA_BASELINES").env("CARGO_TARGET_DIR", &directory).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = "gensim: not installed: run benches/baselines/setup";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn unknown_baselines_are_refused() {
    let directory = directory("unknown", &[]);
    let output = lab(&directory, "run --corpus tiny --baseline vowpal");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("tomotopy, gensim, scikit-learn"), "{}", stderr(&output));
    let help = lab(&directory, "run --help");
    assert!(String::from_utf8(help.stdout).unwrap().contains("mallet or warplda"));
}

/// The tests above replace the adapters, so this one checks that the real ones exist.
#[test]
fn every_baseline_has_an_adapter() {
    let adapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines/adapters");
    let main = fs::read_to_string(adapters.join("__main__.py")).unwrap();
    for baseline in Baseline::ALL {
        let module = format!("baseline_{}", baseline.name().replace('-', "_"));
        assert!(main.contains(&format!("\"{}\": \"{module}\"", baseline.name())), "{module}");
        assert!(adapters.join(format!("{module}.py")).is_file(), "{module}");
    }
}
