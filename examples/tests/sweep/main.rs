//! The subcommand `lda sweep` as other programs call it: outputs, exit status, and how it goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lda_core::model::TopicModel;

/// A temporary directory with documents of five themes, which is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sweep-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let line = |d: usize| -> String {
            let words =
                (0..14).map(|i| format!("word{} ", d % 5 * 4 + (i * (i + 1) / 2 + d / 5) % 4));
            words.collect()
        };
        let text: Vec<String> = (0..120).map(line).collect();
        fs::write(path.join("texts.txt"), text.join("\n")).unwrap();
        Self(path)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("sweep").current_dir(&self.0).args(line.split_whitespace());
        command.args(["--numbers", "--alpha", "0.1"]).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs to the end; returns standard output and standard error.
    fn succeed(&self, line: &str) -> (String, String) {
        let output = self.run(line);
        let [out, err] =
            [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        assert!(output.status.success(), "{line}: {err}");
        (out, err)
    }

    /// The table of a directory without times.
    fn table(&self, directory: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.0.join(directory).join("sweep.csv")).unwrap();
        let cells = |line: &str| -> Vec<String> {
            let cells = line.split(',').enumerate().filter(|&(at, _)| at != 3);
            cells.map(|(_, cell)| cell.to_owned()).collect()
        };
        text.lines().map(cells).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LINE: &str = "texts.txt --epochs 60 --seeds 2 --held-out 0.2";

#[test]
fn a_sweep_compares_numbers_of_topics_and_keeps_a_model_of_each() {
    let scratch = Scratch::new("compares");
    let (out, err) = scratch.succeed(&format!("{LINE} --topics 2,5,10 --out found"));
    assert!(err.contains("6 of 6: "), "{err}");
    let header = out.lines().next().unwrap();
    for name in ["perplexity", "c-v", "npmi", "stability", "arun-2010", "cao-juan-2009"] {
        assert!(header.contains(name), "{header}");
    }
    let row =
        |topics: &str| out.lines().find(|line| line.trim_start().starts_with(topics)).unwrap();
    assert!(row("5 ").contains('*'), "{out}");
    let marked = out.lines().find(|line| line.starts_with("worth a look")).unwrap();
    assert!(
        marked.starts_with("worth a look: found/topics-5.lda (") && marked.contains("stability"),
        "{out}"
    );
    let table = scratch.table("found");
    assert_eq!(table.len(), 1 + 6 + 3);
    assert!(table.iter().all(|row| row.len() == table[0].len()), "{table:?}");
    let mut names: Vec<String> = fs::read_dir(scratch.0.join("found"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let models = ["topics-10.lda", "topics-2.lda", "topics-5.lda"];
    let expected = [&["index.html", "options.json", "runs.jsonl", "sweep.csv"][..], &models];
    assert_eq!(names, expected.concat());
    let model = TopicModel::load(scratch.0.join("found/topics-10.lda")).unwrap();
    assert_eq!((model.num_topics(), model.vocabulary().unwrap().len()), (10, 20));
    let page = fs::read_to_string(scratch.0.join("found/index.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 9);
    assert!(page.contains("<td class=\"best\">"), "{page}");
}

#[test]
fn a_finished_sweep_is_shown_again_and_takes_more_numbers() {
    let scratch = Scratch::new("again");
    let (first, _) = scratch.succeed(&format!("{LINE} --topics 2,5 --out found"));
    let (again, err) = scratch.succeed(&format!("{LINE} --topics 2,5 --out found"));
    assert!(first == again && !err.contains(" of "), "{err}");
    let (more, err) = scratch.succeed(&format!("{LINE} --topics 3,5 --out found"));
    assert!(err.contains("2 of 2: 3 topics") && more.lines().count() > first.lines().count());
    let removed = scratch.0.join("found/topics-3.lda");
    let model = fs::read(&removed).unwrap();
    fs::remove_file(&removed).unwrap();
    let (repeated, err) = scratch.succeed(&format!("{LINE} --topics 3,5 --out found"));
    assert!(err.contains("topics-3.lda: it is missing: the run is repeated"), "{err}");
    assert!(err.contains("2 of 2: 3 topics") && repeated == more, "{err}");
    assert_eq!(fs::read(&removed).unwrap(), model);
    // The same as without interruption, with any number of threads and of runs at a time.
    scratch.succeed(&format!("{LINE} --topics 2,3,5 --out whole --threads 3 --jobs 1"));
    assert_eq!(scratch.table("found"), scratch.table("whole"));
}

#[test]
fn topics_that_most_seeds_share_are_kept() {
    let scratch = Scratch::new("consensus");
    let line =
        "texts.txt --epochs 60 --seeds 3 --held-out 0.2 --topics 5,8 --consensus --out found";
    let (_, err) = scratch.succeed(line);
    assert!(err.contains("are in more than half of the 3 models: found/consensus-8.csv"), "{err}");
    let shared = TopicModel::load(scratch.0.join("found/consensus-5.lda")).unwrap();
    let table = fs::read_to_string(scratch.0.join("found/consensus-5.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["topic", "support", "overlap", "words"]);
    assert_eq!(rows.len(), 1 + shared.num_topics());
    for row in &rows[1..] {
        let (support, overlap): (usize, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        assert!((2..=3).contains(&support) && (0.0..=1.0).contains(&overlap), "{table}");
    }
    // The stable topics come first: the texts have five themes.
    assert!(rows[1][1] == "3" && rows[1][2].parse::<f64>().unwrap() > 0.8, "{table}");
    let output = scratch.run(&line.replace(" --consensus", ""));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("found has a sweep with consensus true, not false"), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_continues() {
    let scratch = Scratch::new("interrupted");
    let line = "texts.txt --epochs 3000 --seeds 3 --topics 4,9 --jobs 1";
    let mut command = scratch.command(&format!("{line} --out found"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = scratch.0.join("found/runs.jsonl");
    let begun = Instant::now();
    while fs::metadata(&lines).map_or(0, |file| file.len()) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(300), "no run ends");
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("runs left: the same command continues"), "{said}");
    let (_, err) = scratch.succeed(&format!("{line} --out found"));
    assert!(!err.contains("6 of 6"), "{err}");
    scratch.succeed(&format!("{line} --out whole"));
    assert_eq!(scratch.table("found"), scratch.table("whole"));
}

#[test]
fn another_sweep_and_wrong_options_are_refused() {
    let scratch = Scratch::new("refused");
    scratch.succeed(&format!("{LINE} --topics 2 --out found"));
    let refused = |line: &str, status: i32, what: &str| {
        let output = scratch.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(what), "{said}");
    };
    let other = "texts.txt --epochs 70 --seeds 2 --held-out 0.2 --topics 2 --out found";
    refused(other, 2, "found has a sweep with epochs 60, not 70");
    fs::write(scratch.0.join("other.txt"), "some words in another order\n".repeat(30)).unwrap();
    let documents = "other.txt --epochs 60 --seeds 2 --held-out 0.2 --topics 2 --out found";
    refused(documents, 2, "found has a sweep with documents ");
    refused("texts.txt --topics 2,x --out other", 2, "'x'");
    refused("texts.txt --topics 0 --out other", 2, "0 is not in 1");
    refused("texts.txt --topics 2,2000000000 --out other", 1, "2000000000 topics: training needs");
    refused("nowhere.txt --topics 2 --out other", 1, "nowhere.txt");
    refused(
        "texts.txt --topics 2 --held-out 0.0001 --out other",
        1,
        "--held-out 0.0001 of 120 documents",
    );
    assert!(!scratch.0.join("other").exists(), "nothing is left behind");
    refused("texts.txt --topics 2 --out texts.txt", 1, "check that --out is a directory");
}

#[test]
fn documents_without_order_have_no_c_v() {
    let scratch = Scratch::new("unordered");
    let pairs: String = (0..60).map(|d| format!("{} {} 3\n", d + 1, d % 5 + 1)).collect();
    let more: String = (0..60).map(|d| format!("{} {} 2\n", d + 1, d % 5 + 6)).collect();
    let mut lines: Vec<&str> = pairs.lines().chain(more.lines()).collect();
    lines.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap());
    let text = format!("60\n10\n{}\n{}\n", lines.len(), lines.join("\n"));
    fs::write(scratch.0.join("docword.txt"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.arg("sweep").current_dir(&scratch.0);
    let line = "docword.txt --topics 2,5 --epochs 30 --seeds 1 --out found";
    let output = command.args(line.split(' ')).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    assert!(output.status.success(), "{err}");
    assert!(err.contains("npmi is of whole documents, and c-v is left out"), "{err}");
    // One seed shows no stability.
    assert!(out.contains("npmi") && !out.contains("c-v") && !out.contains("stability"), "{out}");
}
