//! The command line of `lab`: outputs, resuming, and errors.
#![cfg(feature = "lab")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use lda_benches::synthetic::Spec;
use lda_core::corpus::write_uci;

/// An empty directory with a corpus named tiny.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab").join(name);
    // The directory may be left over from an earlier run.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let spec = Spec { num_documents: 40, num_words: 100, num_topics: 4, ..Spec::default() };
    let corpus = spec.generate(1).unwrap().corpus;
    write_uci(&corpus, fs::File::create(path.join("docword.tiny.txt")).unwrap()).unwrap();
    path
}

fn lab(directory: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(arguments.split_whitespace()).current_dir(directory);
    command.env("LDA_CORPORA", directory).output().unwrap()
}

fn succeeds(directory: &Path, arguments: &str) -> (String, String) {
    let output = lab(directory, arguments);
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn fails(directory: &Path, arguments: &str, status: i32) -> String {
    let output = lab(directory, arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn column(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let i = lines.next().unwrap().iter().position(|field| *field == name).unwrap();
    lines.map(|line| line[i].to_owned()).collect()
}

const PLAN: &str = "samplers = [\"f-plus\", \"exact\"]\ncorpora = [\"tiny\"]\ntopics = [4, 9]\n\
                    seeds = 2\nepochs = 6\nevaluate-every = 2\n[sampler.exact]\nepochs = 5\n";

#[test]
fn a_plan_becomes_tables_and_plots() {
    let directory = directory("whole");
    fs::write(directory.join("small.toml"), PLAN).unwrap();
    let (stdout, stderr) = succeeds(&directory, "run small.toml");
    let out = directory.join("target/lab/small");
    let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(stdout, text("summary.md"));
    assert!(stdout.contains("## tiny, K = 9"), "{stdout}");
    assert_eq!(stderr.lines().filter(|line| line.contains("tiny-k")).count(), 8, "{stderr}");

    // 4 and 4 runs; evaluated at 0, 2, 4, 6 and at 0, 2, 4, 5.
    let epochs = text("epochs.csv");
    assert_eq!(column(&epochs, "epoch").len(), 8 * 4);
    assert_eq!(column(&epochs, "epoch").iter().filter(|epoch| *epoch == "5").count(), 4);
    let cells = text("cells.csv");
    assert_eq!(column(&cells, "status"), ["finished"; 8]);
    // The start and the corpus are equal; every run ends differently.
    let mut ends = column(&cells, "assignments_fingerprint");
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 8);
    if cfg!(target_os = "linux") {
        let peaks = column(&cells, "peak_bytes");
        assert!(peaks.iter().all(|peak| peak.parse::<u64>().unwrap() > 1 << 20), "{peaks:?}");
    }
    for plot in ["tiny-k4-t1-likelihood-by-time", "tiny-k9-t1-likelihood-by-epoch", "speed"] {
        assert!(text(&format!("plots/{plot}.svg")).ends_with("</svg>\n"));
    }
}

#[test]
fn variants_run_under_their_names_with_their_options() {
    let directory = directory("variants");
    let plan = "samplers = [\"f-plus\"]\ncorpora = [\"tiny\"]\ntopics = [4]\nepochs = 4\n\
                evaluate-every = 2\ncomplexity = true\nparts = true\nlengths = true\n\
                [variant.warp-3]\nsampler = \"warp\"\nmh-steps = 3\nepochs = 6\n\
                [variant.again]\nsampler = \"f-plus\"\n";
    fs::write(directory.join("p.toml"), plan).unwrap();
    let (table, _) = succeeds(&directory, "run p.toml --out out");
    assert!(table.contains("warp-3: sampler = \"warp\", epochs = 6, mh-steps = 3."), "{table}");
    let text = |name: &str| fs::read_to_string(directory.join("out").join(name)).unwrap();
    let cells = text("cells.csv");
    assert_eq!(column(&cells, "sampler"), ["f-plus", "again", "warp-3"]);
    assert_eq!(column(&cells, "kind"), ["f-plus", "f-plus", "warp"]);
    assert_eq!(column(&cells, "options"), ["", "", "mh-steps = 3"]);
    assert_eq!(column(&cells, "epochs"), ["4", "4", "6"]);
    // The same sampler with the same options ends in the same state.
    let ends = column(&cells, "assignments_fingerprint");
    assert!(ends[0] == ends[1] && ends[1] != ends[2], "{ends:?}");
    assert!(text("cells/tiny-k4-warp-3-t1-s1.json").contains("\"variant\":\"warp-3\""));
    for plot in ["complexity-ratio", "document-part-by-time", "word-part-by-epoch", "changed"] {
        assert!(text(&format!("plots/tiny-k4-t1-{plot}.svg")).contains(">warp-3<"), "{plot}");
    }
    assert!(text("plots/lengths-of-documents.svg").contains(">tiny<"));
    let ratios = column(&text("epochs.csv"), "complexity_ratio");
    let known: Vec<bool> = ratios.iter().map(|ratio| !ratio.is_empty()).collect();
    // Three points of each f-plus, which has no proposals, then epochs 0, 2, 4 and 6.
    assert_eq!(known, [[false; 6].as_slice(), &[false, true, true, true]].concat());
    // The command line also overrides the table of a variant.
    succeeds(&directory, "run p.toml --out out --epochs 2");
    assert_eq!(column(&text("cells.csv"), "epochs"), ["2"; 3]);
}

fn written(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn an_interrupted_plan_goes_on_and_finished_runs_are_kept() {
    let directory = directory("resume");
    fs::write(directory.join("p.toml"), PLAN).unwrap();
    succeeds(&directory, "run p.toml --out out --seeds 1");
    let cells = directory.join("out/cells");
    let (kept, lost) =
        (cells.join("tiny-k4-f-plus-t1-s1.json"), cells.join("tiny-k9-exact-t1-s1.json"));
    let before = (written(&kept), fs::read_to_string(directory.join("out/cells.csv")).unwrap());
    // As after an interruption: one run is missing, and one is truncated.
    fs::remove_file(&lost).unwrap();
    fs::write(cells.join("tiny-k9-f-plus-t1-s1.json"), "{\"cell\":").unwrap();
    let (_, stderr) = succeeds(&directory, "run p.toml --out out --seeds 1");
    assert_eq!(stderr.matches("finished before").count(), 2, "{stderr}");
    assert_eq!(written(&kept), before.0);
    // The repeated runs give the same assignments.
    let after = fs::read_to_string(directory.join("out/cells.csv")).unwrap();
    let ends = |csv: &str| column(csv, "assignments_fingerprint");
    assert_eq!(ends(&after), ends(&before.1));
    // Another number of epochs is another run; `--again` repeats all.
    let (_, stderr) = succeeds(&directory, "run p.toml --out out --seeds 1 --epochs 4");
    assert_eq!(stderr.matches("finished before").count(), 0, "{stderr}");
    let (_, stderr) = succeeds(&directory, "run p.toml --out out --seeds 1 --epochs 4 --again");
    assert_eq!(stderr.matches("finished before").count(), 0, "{stderr}");
    // `lab report` runs nothing and writes the same files.
    let table = fs::read_to_string(directory.join("out/summary.md")).unwrap();
    assert_eq!(succeeds(&directory, "report out").0, table);
}

#[test]
fn runs_at_once_come_to_the_same_tables() {
    let directory = directory("jobs");
    fs::write(directory.join("p.toml"), format!("jobs = 3\n{PLAN}")).unwrap();
    succeeds(&directory, "run p.toml --out alone --jobs 1");
    let (_, stderr) = succeeds(&directory, "run p.toml --out at-once");
    // Each run is reported with its number, in the order of the ends.
    let numbers = (1..=8).map(|number| format!("[{number}/8] tiny-k"));
    assert!(numbers.into_iter().all(|number| stderr.contains(&number)), "{stderr}");
    let cells = |out: &str| fs::read_to_string(directory.join(out).join("cells.csv")).unwrap();
    let (alone, at_once) = (cells("alone"), cells("at-once"));
    for name in ["sampler", "topics", "seed", "assignments_fingerprint"] {
        assert_eq!(column(&alone, name), column(&at_once, name), "{name}");
    }
    assert_eq!(column(&alone, "jobs"), ["1"; 8]);
    assert_eq!(column(&at_once, "jobs"), ["3"; 8]);
    // The number of simultaneous runs is not part of a cell: all stored runs are reused, and record
    // it.
    let (table, stderr) = succeeds(&directory, "run p.toml --out at-once --jobs 1");
    assert_eq!(stderr.matches("finished before").count(), 8, "{stderr}");
    assert!(table.contains("Runs at once: 3."), "{table}");
    assert!(!fs::read_to_string(directory.join("alone/summary.md")).unwrap().contains("at once"));
}

#[test]
fn a_corpus_has_a_table_of_its_own() {
    let directory = directory("corpora");
    let plan = "corpora = [\"tiny\", \"pubmedlike@0.0005\"]\ntopics = [4]\nepochs = 4\n\
                [corpus.tiny]\nseeds = 2\nepochs = 3\n";
    fs::write(directory.join("p.toml"), plan).unwrap();
    let (table, _) = succeeds(&directory, "run p.toml --out out");
    assert!(table.contains("tiny: epochs = 3, seeds = 2."), "{table}");
    let cells = || fs::read_to_string(directory.join("out/cells.csv")).unwrap();
    assert_eq!(column(&cells(), "corpus"), ["tiny", "pubmedlike@0.0005", "tiny"]);
    assert_eq!(column(&cells(), "epochs"), ["3", "4", "3"]);
    // The command line overrides the table, which may be that of a corpus that is not selected.
    succeeds(&directory, "run p.toml --out out --epochs 2 --seeds 1");
    assert_eq!(column(&cells(), "epochs"), ["2"; 2]);
    succeeds(&directory, "run p.toml --out out --corpus pubmedlike@0.0005");
    assert_eq!(column(&cells(), "corpus"), ["pubmedlike@0.0005"]);
    fs::write(directory.join("wrong.toml"), format!("{plan}[corpus.tyni]\n")).unwrap();
    assert!(fails(&directory, "run wrong.toml", 2).contains("corpus is tyni: it is none of"));
}

#[test]
fn generated_corpora_are_made_once_for_runs_at_once() {
    let directory = directory("generated-at-once");
    let arguments = "run --corpus pubmedlike@0.0005 --topics 5 --epochs 2 --seeds 4 --jobs 4";
    let (_, stderr) = succeeds(&directory, arguments);
    assert_eq!(stderr.lines().filter(|line| line.contains("epochs, ")).count(), 4, "{stderr}");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is() {
    let directory = directory("refused");
    let missing = fails(&directory, "run --corpus tiny,nosuch --out out", 1);
    assert!(missing.contains("docword.nosuch.txt.gz"), "{missing}");
    assert!(missing.contains("LDA_CORPORA"), "{missing}");
    assert!(!directory.join("out").exists());
    assert!(fails(&directory, "run --out out", 2).contains("corpora is empty"));
    assert!(fails(&directory, "run --corpus tiny --sampler gibbs", 2).contains("f-plus"));
    assert!(fails(&directory, "run --corpus tiny --topics 0", 2).contains("topics is 0"));
    assert!(fails(&directory, "run nosuch.toml", 1).contains("cannot read nosuch.toml"));
    fs::write(directory.join("bad.toml"), "corpora = [\"tiny\"]\nepoch = 3\n").unwrap();
    let bad = fails(&directory, "run bad.toml", 1);
    assert!(bad.contains("bad.toml") && bad.contains("line 2") && bad.contains("epochs"), "{bad}");
    assert!(fails(&directory, "report out", 1).contains("plan.json"));
    assert!(fails(&directory, "cell", 1).contains("lab run"));
}

#[test]
fn a_run_that_fails_has_its_row_and_the_others_go_on() {
    let directory = directory("fails");
    fs::write(directory.join("docword.torn.txt"), "2\n3\n9\n1 1 1\n").unwrap();
    let stderr = fails(&directory, "run --corpus torn,tiny --epochs 2 --out out", 1);
    assert!(stderr.contains("failed: torn-k100-f-plus-t1-s1") && stderr.contains("docword.torn"));
    let cells = fs::read_to_string(directory.join("out/cells.csv")).unwrap();
    assert!(cells.contains("tiny,100,1,1,finished") && cells.contains("torn,100,1,1,"), "{cells}");
    let summary = fs::read_to_string(directory.join("out/summary.md")).unwrap();
    assert!(summary.contains("failed: "), "{summary}");
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let directory = directory("timeout");
    let plan = "corpora = [\"tiny\"]\nepochs = 100000000\ntimeout = 0.3\n";
    fs::write(directory.join("slow.toml"), plan).unwrap();
    assert!(fails(&directory, "run slow.toml", 1).contains("timeout"));
}

#[test]
fn generated_corpora_need_no_files() {
    let directory = directory("generated");
    let arguments = "run --corpus pubmedlike@0.0005 --topics 5 --epochs 2 --out out";
    succeeds(&directory, arguments);
    let corpus = directory.join("out/corpora/docword.pubmedlike@0.0005.txt");
    let before = written(&corpus);
    succeeds(&directory, &format!("{arguments} --again"));
    assert_eq!(written(&corpus), before);
}

#[test]
fn a_threshold_entry_can_be_used() {
    let directory = directory("thresholds");
    let arguments = "thresholds --corpus tiny --topics 4 --epochs 40 --out long";
    let (entry, _) = succeeds(&directory, arguments);
    fs::write(directory.join("own.toml"), &entry).unwrap();
    let run = "run --corpus tiny --topics 4 --epochs 40 --evaluate-every 1 --until 95 \
               --thresholds own.toml --out out";
    let (table, _) = succeeds(&directory, run);
    assert!(table.contains("s to 99.8 %"), "{table}");
    let cells = fs::read_to_string(directory.join("out/cells.csv")).unwrap();
    assert!(column(&cells, "cpu_seconds_to_95")[0].parse::<f64>().unwrap() > 0.0, "{cells}");
    let epochs: u32 = column(&cells, "epochs")[0].parse().unwrap();
    assert!(epochs < 40, "{epochs}");
}

#[test]
fn calibration_prints_a_cost_table() {
    let directory = directory("calibrate");
    let arguments = "calibrate --lengths 10,40 --topics 5 --tokens 2000 --epochs 1";
    let (table, _) = succeeds(&directory, arguments);
    assert!(table.contains("lengths = [10, 40]") && table.contains("f-plus = ["), "{table}");
}
