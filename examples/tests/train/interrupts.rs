//! Runs that are interrupted, or whose reader closes the pipe.

use super::*;

/// Waits up to a minute; the duration is not part of a test.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_after_the_epoch_and_writes_all_outputs() {
    let scratch = Scratch::with_corpus("ctrl-c");
    let line = "docword.txt --topics 3 --epochs 4000000000 --evaluate-every 1 --log log.jsonl \
        --assignments z.txt --doc-topics d.csv --topic-words t.npy --plot p.png";
    let mut command = scratch.command(line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("epoch 3/")).unwrap().unwrap();
    signal(&child, "-INT");
    // The pipe is read, so that it does not fill up and block the child.
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("stopping after this epoch")), "{rest:?}");
    let files = [
        "d.csv",
        "docword.txt",
        "log.jsonl",
        "p.png",
        "t.npy",
        "t.npy.json",
        "words.txt",
        "z.txt",
        "z.txt.json",
    ];
    assert_eq!(scratch.files(), files.map(str::to_owned).into());
    let log = scratch.log("log.jsonl");
    let sidecar: Value = serde_json::from_str(&scratch.read("z.txt.json")).unwrap();
    assert_eq!(log.last().unwrap()["epoch"], sidecar["options"]["epochs"]);
    assert!(log.len() >= 3 && scratch.topics("z.txt").len() == tokens());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains('%'), "{stdout}");
    // The result equals that of a run with this number of epochs and the options that were
    // resolved.
    let stopped = scratch.topics("z.txt");
    let options = &sidecar["options"];
    let line = format!(
        "docword.txt --topics 3 --epochs {} --sampler {} --warm-up {} --assignments z.txt -q",
        options["epochs"],
        options["sampler"].as_str().unwrap(),
        options["warm-up"]
    );
    scratch.succeed(&line);
    assert_eq!(scratch.topics("z.txt"), stopped);
}

#[cfg(target_os = "linux")]
#[test]
fn other_signals_that_end_programs_write_all_outputs_too() {
    let scratch = Scratch::with_corpus("signals");
    let program = env!("CARGO_BIN_EXE_lda");
    for name in ["-TERM", "-HUP"] {
        let line = "docword.txt --topics 3 --epochs 4000000000 --evaluate-every 1 --save m.lda";
        // The tests may run under `nohup`, so that HUP would be ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", program, "train"]).args(line.split_whitespace());
        command.current_dir(&scratch.0);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().starts_with("epoch 3/")).unwrap().unwrap();
        signal(&child, name);
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}: {rest:?}");
        fs::remove_file(scratch.0.join("m.lda")).unwrap();
    }
    // What the caller ignores, as `nohup` does, stays ignored.
    let script = format!(
        "trap '' HUP; exec {program} train docword.txt --topics 3 --epochs 300 --evaluate-every 1"
    );
    let mut command = Command::new("sh");
    command.current_dir(&scratch.0).args(["-c", &script]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("epoch 3/")).unwrap().unwrap();
    signal(&child, "-HUP");
    assert!(lines.any(|line| line.unwrap().starts_with("epoch 300/300")));
    assert!(child.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn files_of_killed_programs_are_removed_at_the_next_start() {
    let scratch = Scratch::new("orphans");
    assert!(Command::new("mkfifo").arg(scratch.0.join("in")).status().unwrap().success());
    let start = |line: &str| {
        scratch.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut killed = start("in --save a.lda");
    wait_for("the first temporary", || scratch.files().len() == 2);
    let mut alive = start("in --save b.lda");
    wait_for("the second temporary", || scratch.files().len() == 3);
    signal(&killed, "-KILL");
    killed.wait().unwrap();
    assert_eq!(scratch.files().len(), 3);
    // It fails, and removes its own file and that of the killed program, not that of the living one.
    assert_eq!(scratch.train("nothing --save c.lda").status.code(), Some(1));
    let left: Vec<String> = scratch.files().into_iter().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains(&format!("-{}-", alive.id())), "{left:?}");
    signal(&alive, "-TERM");
    assert_eq!(alive.wait().unwrap().code(), Some(143));
    assert_eq!(scratch.files(), ["in".to_owned()].into());
}

#[cfg(unix)]
#[test]
fn ctrl_c_before_training_exits_without_outputs() {
    let scratch = Scratch::new("early");
    // A pipe without a writer: reading the corpus blocks.
    assert!(Command::new("mkfifo").arg(scratch.0.join("in")).status().unwrap().success());
    let mut command = scratch.command("in --log log.jsonl --assignments z.txt");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the temporaries", || scratch.files().len() == 4);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(scratch.files(), ["in".to_owned()].into());
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_exits_at_once() {
    let scratch = Scratch::with_corpus("twice");
    // More output than a pipe holds, and no reader: printing the table blocks.
    let line = "docword.txt --topics 8000 --epochs 2 --top-words 9 --show-topics 8000 --plot p.svg";
    let body: String = (1..=8000).map(|d| format!("{d} 1 1\n{d} {} 1\n", d + 1)).collect();
    scratch.write("docword.txt", &format!("8000\n8001\n16000\n{body}"));
    let mut command = scratch.command(line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the plot", || scratch.files().contains("p.svg"));
    signal(&child, "-INT");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("another signal")).unwrap().unwrap();
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let scratch = Scratch::with_corpus("head");
    let mut command = scratch.command("docword.txt --topics 2 --epochs 1 --assignments z.txt -q");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(scratch.topics("z.txt").len(), tokens());
}
