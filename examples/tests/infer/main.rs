//! The subcommand `lda infer` as other programs call it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A temporary directory, which is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    /// A directory with a model of two themes in `m.lda`.
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("infer-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Self(path);
        let mut text = String::new();
        for d in 0..40 {
            let words = if d % 2 == 0 {
                ["tree", "leaf", "root", "branch", "forest"]
            } else {
                ["sea", "wave", "sand", "tide", "ocean"]
            };
            (0..8).for_each(|i| text.push_str(&format!("{} ", words[(i * d + i) % 5])));
            text.push('\n');
        }
        scratch.write("train.txt", &text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("train");
        let line = "train.txt --topics 2 --alpha 0.1 --epochs 60 --save m.lda -q";
        command.current_dir(&scratch.0).args(line.split_whitespace());
        assert!(command.output().unwrap().status.success());
        scratch
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn run(&self, line: &str, input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("infer");
        command.current_dir(&self.0).args(line.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may have failed before it read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn succeed(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fail(&self, line: &str, status: i32) -> String {
        let output = self.run(line, "tree");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{line}: {error}");
        assert!(output.stdout.is_empty() && !error.contains("panicked"), "{line}: {error}");
        error
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn documents_come_from_files_and_pipes() {
    let scratch = Scratch::new("sources");
    let text = "Tree, leaf and root\nwaves of the sea: wave tide\nnothing known here\n";
    scratch.write("new.txt", text);
    for method in ["fold-in", "rt", "variational"] {
        let piped = scratch.succeed(&format!("m.lda --method {method}"), text);
        let from_file = scratch.succeed(&format!("m.lda new.txt --method {method}"), "");
        assert_eq!(piped, from_file);
        let lines = lines(&piped);
        assert_eq!(lines.len(), 3);
        let leading = |line: &Value| line["topics"][0][0].as_u64().unwrap();
        assert_ne!(leading(&lines[0]), leading(&lines[1]), "{method}");
        assert!(lines[0]["topics"][0][1].as_f64().unwrap() > 0.7, "{method}: {piped}");
        assert_eq!((&lines[0]["tokens"], &lines[0]["unknown"]), (&3.into(), &0.into()));
        assert_eq!((&lines[1]["tokens"], &lines[1]["unknown"]), (&3.into(), &1.into()));
        assert_eq!(lines[2]["tokens"], 0);
        assert!(lines[2]["topics"].as_array().unwrap().is_empty());
    }
    assert_eq!(scratch.succeed("m.lda", ""), "");
    assert_eq!(lines(&scratch.succeed("m.lda", "\n \n")).len(), 2);
    // A document of stop words only, and an empty input.
    assert_eq!(lines(&scratch.succeed("m.lda", "and of the\nunknown\n")).len(), 2);
}

#[test]
fn all_formats_agree_at_any_number_of_threads() {
    let scratch = Scratch::new("forms");
    let line = "m.lda train.txt --samples 5 --seed 4 -q";
    let json = scratch.succeed(&format!("{line} --threads 1"), "");
    assert_eq!(scratch.succeed(&format!("{line} --threads 3 --out /dev/stdout"), ""), json);
    scratch.succeed(&format!("{line} --out t.csv"), "");
    scratch.succeed(&format!("{line} --out t.npy"), "");
    let csv = fs::read_to_string(scratch.0.join("t.csv")).unwrap();
    let npy = fs::read(scratch.0.join("t.npy")).unwrap();
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some("document,0,1"));
    let data = &npy[npy.len() - 40 * 2 * 8..];
    assert_eq!((npy.len() - data.len()) % 64, 0);
    let header = String::from_utf8_lossy(&npy[10..npy.len() - data.len()]).into_owned();
    assert!(header.contains("'shape': (40, 2)"), "{header}");
    for (d, (row, line)) in rows.zip(lines(&json)).enumerate() {
        let shares: Vec<f64> = row.split(',').skip(1).map(|x| x.parse().unwrap()).collect();
        let place = |k: usize| (d * 2 + k) * 8;
        for (k, share) in shares.iter().enumerate() {
            let bytes = data[place(k)..place(k) + 8].try_into().unwrap();
            assert_eq!(f64::from_le_bytes(bytes), *share);
        }
        for pair in line["topics"].as_array().unwrap() {
            let (topic, share) = (pair[0].as_u64().unwrap(), pair[1].as_f64().unwrap());
            assert!((shares[topic as usize] - share).abs() < 1e-12);
        }
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let named = scratch.succeed(&format!("{line} --top 1 --terms 2"), "");
    let named: Value = serde_json::from_str(named.lines().next().unwrap()).unwrap();
    let terms = named["terms"].as_array().unwrap();
    assert!(terms.len() == 1 && terms[0].as_array().unwrap().len() == 2, "{named}");
    let one = scratch.succeed(&format!("{line} --top 1"), "");
    assert!(lines(&one).iter().all(|line| line["topics"].as_array().unwrap().len() == 1));
}

#[test]
fn errors_are_reported() {
    let scratch = Scratch::new("errors");
    let model = fs::read(scratch.0.join("m.lda")).unwrap();
    scratch.write("foreign.lda", "no model");
    fs::write(scratch.0.join("cut.lda"), &model[..model.len() - 1]).unwrap();
    let mut damaged = model.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(scratch.0.join("damaged.lda"), damaged).unwrap();
    let letter = |i: u8| char::from(b'a' + i % 10);
    let strange: String = (0..100).map(|i| format!("zz{}{} ", letter(i), letter(i / 10))).collect();
    scratch.write("strangers.txt", &strange);
    for (line, status, what) in [
        ("none.lda", 1, "none.lda: "),
        ("foreign.lda", 1, "foreign.lda: it is not a file of this library"),
        ("cut.lda", 1, "copy it again"),
        ("damaged.lda", 1, "word-names is damaged"),
        ("m.lda nowhere.txt", 1, "nowhere.txt"),
        ("m.lda strangers.txt", 1, "none of the corpus's 100 words is the model's"),
        ("m.lda --out x.txt", 2, "ends in .jsonl, .csv or .npy"),
        ("m.lda --method guess", 2, "guess"),
        ("m.lda --samples 0", 2, "samples"),
        ("", 2, "MODEL"),
    ] {
        let error = scratch.fail(line, status);
        assert!(error.contains(what), "{line}: {error}");
    }
}

#[test]
fn documents_of_stop_words_alone_are_empty() {
    let scratch = Scratch::new("stop-words");
    scratch.write("only.txt", "the and of\n12 it\n");
    let from_file = scratch.succeed("m.lda only.txt", "");
    assert_eq!(from_file, scratch.succeed("m.lda", "the and of\n12 it\n"));
    for (at, line) in lines(&from_file).iter().enumerate() {
        let expected = serde_json::json!({"document": at, "tokens": 0, "unknown": 0, "topics": []});
        assert_eq!(line, &expected);
    }
    assert_eq!(lines(&from_file).len(), 2);
}

#[test]
fn texts_are_cut_as_those_of_the_training() {
    let scratch = Scratch::new("rules");
    // By the defaults, every one of these words is dropped or changed.
    let text = "K9 A-1 x\nK9 x B-2\nA-1 B-2 K9\n".repeat(8);
    scratch.write("codes.txt", &text);
    scratch.write("stop.txt", "x\n");
    let train = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        let line = format!("train {line} --topics 2 --epochs 5");
        command.current_dir(&scratch.0).args(line.split_whitespace());
        let output = command.output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{notes}");
        notes
    };
    train("codes.txt --words whitespace --keep-case --stop-words stop.txt --save c.lda");
    // The content of the list is in the model, not its name.
    fs::remove_file(scratch.0.join("stop.txt")).unwrap();
    scratch.write("new.txt", "K9 A-1 k9 x\n");
    let answer = |output: &Output| -> Value {
        let lines = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(lines.lines().next().unwrap()).unwrap()
    };
    for (line, input) in [("c.lda new.txt", ""), ("c.lda", "K9 A-1 k9 x\n")] {
        let output = scratch.run(line, input);
        let (found, error) = (answer(&output), String::from_utf8_lossy(&output.stderr));
        assert_eq!((&found["tokens"], &found["unknown"]), (&2.into(), &1.into()), "{line}");
        assert!(!error.contains("warning"), "{error}");
        let output = scratch.run(&format!("{line} --words unicode"), input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(answer(&output)["tokens"], 1, "{line}");
        assert!(error.contains("by other rules") && error.contains("(--words)"), "{error}");
    }
    // A pattern and a normal form are rules too.
    scratch.write("forms.txt", "A1-caf\u{e9} B2\nA1 cafe\u{301}\n");
    train(r"forms.txt --word-pattern \w+ --nfc --save p.lda");
    let output = scratch.run("p.lda", "B2-cafe\u{301} A1 caf\u{e9}\n");
    assert_eq!((&answer(&output)["tokens"], &answer(&output)["unknown"]), (&4.into(), &0.into()));
    let output = scratch.run(r"p.lda --word-pattern [", "B2\n");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--word-pattern: the pattern \"[\" is invalid"), "{error}");
    // So are the phrases that were found.
    let lines = "rain in New York\nNew York, bank of America\nthe Bank of America, New York\n";
    scratch.write("phrases.txt", &format!("{lines}bank of America, old rain\nrain and bank\n"));
    let line = "phrases.txt --phrases --phrase-min-count 3 --save f.lda";
    let err = train(line);
    assert!(err.contains("2 phrases, 6 tokens: bank_of_america, new_york"), "{err}");
    let output = scratch.run("f.lda", "York new york, a bank of america of rain\n");
    assert_eq!((&answer(&output)["tokens"], &answer(&output)["unknown"]), (&3.into(), &1.into()));
    let output = scratch.run("f.lda phrases.txt --phrases", "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("this model has its own phrases"), "{error}");
    assert!(train("phrases.txt --phrases").contains("no phrases: lower --phrase-threshold"));
    // Training goes on by the rules of the model, and so does the model that comes of it.
    train("new.txt --from c.lda --save d.lda");
    assert_eq!(answer(&scratch.run("d.lda new.txt", ""))["tokens"], 3);
    // A model of word numbers has no rules, which is said.
    scratch.write("docword.n.txt", "2\n2\n2\n1 1 3\n2 2 3\n");
    scratch.write("vocab.n.txt", "tree\nsea\n");
    train("docword.n.txt --save n.lda");
    let output = scratch.run("n.lda new.txt", "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("does not record how its texts were cut into words"), "{error}");
}

#[cfg(unix)]
#[test]
fn signals_leave_no_temporary_files() {
    let scratch = Scratch::new("signals");
    let files = || fs::read_dir(&scratch.0).unwrap().count();
    let before = files();
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.current_dir(&scratch.0).args(["infer", "m.lda", "--out", "theta.csv"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Standard input stays open, so that the program waits for documents. `wait` would close it.
        let input = child.stdin.take();
        let start = std::time::Instant::now();
        while files() == before {
            assert!(start.elapsed().as_secs() < 60, "no temporary file");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status));
        drop(input);
        assert_eq!(files(), before);
    }
}
