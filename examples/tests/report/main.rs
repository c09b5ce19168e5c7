//! The subcommand `lda report` as other programs call it, and its page in a browser.

// A skipped test prints a note.
#![allow(clippy::print_stderr)]

mod browser;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lda_core::model::{TopicModel, Weights};
use serde_json::{Value, json};

/// A temporary directory, which is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A directory with 60 documents of three themes in `docword.x.txt`, names in `vocab.x.txt`,
    /// dates in `dates.txt`, and a model of five topics in `m.lda` with its log.
    fn trained(name: &str) -> Self {
        let scratch = Self::new(name);
        let (mut body, mut pairs) = (String::new(), 0);
        for d in 0..60 {
            for n in 0..40 {
                if (d * 7 + n * 3) % 5 < 3 {
                    let word = (d % 3) * 30 + n;
                    body.push_str(&format!("{} {} {}\n", d + 1, word + 1, 1 + (d * n) % 4));
                    pairs += 1;
                }
            }
        }
        scratch.write("docword.x.txt", &format!("60\n100\n{pairs}\n{body}"));
        scratch.write("vocab.x.txt", &(0..100).map(|w| format!("word{w}\n")).collect::<String>());
        let date = |d: usize| format!("{}\n", 1990 + d / 6);
        scratch.write("dates.txt", &(0..60).map(date).collect::<String>());
        scratch.train("docword.x.txt --topics 5 --save m.lda --log m.jsonl");
        scratch
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn train(&self, line: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("train");
        command.current_dir(&self.0).args(line.split_whitespace());
        command.args(["--alpha", "0.1", "--epochs", "60", "--seed", "3", "-q"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("report");
        command.current_dir(&self.0).args(line.split_whitespace()).output().unwrap()
    }

    /// Runs the program; returns the contents of `page.html`.
    fn report(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --out page.html"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        assert!(output.stdout.is_empty());
        let page = self.read("page.html");
        let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
    }

    fn page(&self) -> String {
        format!("file://{}", self.0.join("page.html").display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Decodes the numbers of a field, as the page's script does.
fn decode(codes: &Value) -> Vec<u64> {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for letter in codes.as_str().unwrap().bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            other => {
                assert_eq!(other, b'/');
                63
            }
        };
        number |= u64::from(digit & 31) << shift;
        shift += 5;
        if digit < 32 {
            numbers.push(std::mem::take(&mut number));
            shift = 0;
        }
    }
    numbers
}

/// Rows of a table in the page's section on its origin.
fn about(contents: &Value, title: &str) -> Value {
    let sections = contents["about"].as_array().unwrap();
    let section = sections.iter().find(|section| section["title"] == title).unwrap();
    let pairs = section["rows"].as_array().unwrap().iter();
    pairs.map(|row| (row[0].as_str().unwrap().to_owned(), row[1].clone())).collect()
}

#[test]
fn a_page_holds_topics_documents_time_and_curve() {
    let scratch = Scratch::trained("contents");
    let contents = scratch.report("m.lda docword.x.txt --dates dates.txt --log m.jsonl");
    assert_eq!(contents["title"], "docword.x.txt");
    let topics = contents["topics"].as_array().unwrap();
    assert_eq!(topics.len(), 5);
    let tokens = contents["corpus"]["tokens"].as_u64().unwrap();
    let total = |topic: &Value| topic["total"].as_u64().unwrap();
    assert_eq!(topics.iter().map(total).sum::<u64>(), tokens);
    assert_eq!(contents["counts"]["tokens"], tokens);
    let words = contents["words"].as_array().unwrap();
    assert_eq!(decode(&contents["frequencyCodes"]).iter().sum::<u64>(), tokens);
    for topic in topics {
        let codes = decode(&topic["wordCodes"]);
        assert!(codes.iter().step_by(2).sum::<u64>() < words.len() as u64);
        assert!(codes.iter().skip(1).step_by(2).sum::<u64>() <= total(topic));
        let near = topic["near"].as_array().unwrap();
        assert_eq!(near.len(), 4);
        assert!(near.iter().all(|pair| (1..=1000).contains(&pair[1].as_u64().unwrap())));
    }
    let documents = contents["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 60);
    assert_eq!((&documents[7]["number"], &documents[7]["date"]), (&json!(7), &json!("1991")));
    let in_words: u64 = decode(&documents[7]["wordCodes"]).iter().skip(2).step_by(3).sum();
    assert_eq!(json!(in_words), documents[7]["tokens"]);
    assert!(documents[7].get("orderCodes").is_none());
    let time = &contents["time"];
    assert_eq!((&time["unit"], time["bins"].as_array().unwrap().len()), (&json!("year"), 10));
    for bin in 0..10 {
        let shares = time["shareCodes"].as_array().unwrap().iter();
        let sum: u64 = shares.map(|codes| decode(codes)[bin]).sum();
        assert!((9990..=10010).contains(&sum), "{sum}");
    }
    let curve = &contents["curves"][0];
    assert_eq!((&curve["name"], &curve["epochs"][0]), (&json!("m.jsonl"), &json!(10)));
    assert!(curve["caption"].as_str().unwrap().contains("topics 5, seed 3"));
    // The warm-up of 60 epochs ends half way.
    assert_eq!(curve["changes"], json!([[40, curve["seconds"][3], "f-plus"]]));
    assert!(contents["stress"].as_f64().unwrap() < 0.2);
    assert_eq!(contents["coherence"], "npmi in whole documents");
    for topic in topics.iter().filter(|topic| total(topic) > 0) {
        assert!((-1.0..=1.0).contains(&topic["coherence"].as_f64().unwrap()), "{topic}");
        assert!(topic.get("name").is_none());
    }
    assert_eq!(about(&contents, "Documents")["model was trained on them"], "yes");
    assert_eq!(about(&contents, "Training options")["seed"], "3");
    assert_eq!(about(&contents, "This page")["documents shown"], "60 of 60");
    assert_eq!(about(&contents, "This page")["distances of topics"], "exact");
}

#[test]
fn a_page_makes_no_requests() {
    let scratch = Scratch::trained("offline");
    scratch.report("m.lda docword.x.txt");
    let page = scratch.read("page.html").replace("http://www.w3.org/2000/svg", "");
    for word in
        ["http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "XMLHttp", "import("]
    {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
}

#[test]
fn documents_are_selected_and_shortened() {
    let scratch = Scratch::trained("cut");
    let contents = scratch.report("m.lda docword.x.txt --documents 7 --document-words 3");
    let documents = contents["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 7);
    assert!(documents.iter().all(|document| decode(&document["wordCodes"]).len() == 9));
    assert_eq!(contents["corpus"]["documents"], 60);
    for topic in contents["topics"].as_array().unwrap() {
        let codes = decode(&topic["documentCodes"]);
        assert!(codes.len() >= 2 && codes.iter().step_by(2).all(|&place| place < 7));
    }
    let none = scratch.report("m.lda docword.x.txt --documents 0");
    assert_eq!(none["documents"], json!([]));
}

#[test]
fn threads_do_not_matter_and_the_page_replaces_an_old_one() {
    let scratch = Scratch::trained("threads");
    scratch.write("page.html", "old");
    scratch.report("m.lda docword.x.txt --threads 1");
    let one = scratch.read("page.html");
    let before = scratch.files();
    scratch.report("m.lda docword.x.txt --threads 3 -q");
    assert!(one == scratch.read("page.html"));
    assert_eq!(scratch.files(), before);
}

#[test]
fn text_documents_keep_word_order_and_have_titles() {
    let scratch = Scratch::new("text");
    let line = |d: usize| match d % 3 {
        0 => "sea wave sand sea tide\n",
        1 => "tree leaf root tree branch\n",
        _ => "\n",
    };
    scratch.write("t.txt", &(0..30).map(line).collect::<String>());
    scratch
        .write("titles.txt", &(0..30).map(|d| format!("<b>Title</b> {d}\n")).collect::<String>());
    scratch.train("t.txt --topics 2 --save m.lda");
    scratch.write("new.txt", "sea foam sand sea\n\nroot tree\nunheard words\n");
    let contents = scratch.report("m.lda t.txt --titles titles.txt --method rt");
    let words = contents["words"].as_array().unwrap();
    let document = &contents["documents"][3];
    assert_eq!(document["title"], "<b>Title</b> 3");
    let gaps = decode(&document["wordCodes"]);
    let places: Vec<u64> = gaps
        .iter()
        .step_by(3)
        .scan(0, |sum, gap| {
            *sum += gap;
            Some(*sum)
        })
        .collect();
    let order = decode(&document["orderCodes"]).into_iter();
    let said: Vec<_> = order.map(|at| &words[places[at as usize] as usize]).collect();
    assert_eq!(said, ["sea", "wave", "sand", "sea", "tide"]);
    assert_eq!(document["text"], "sea wave sand sea tide");
    // An empty document is listed too.
    let empty = &contents["documents"][2];
    assert_eq!((&empty["tokens"], &empty["wordCodes"]), (&json!(0), &json!("")));
    assert!(empty["text"].is_null());
    let contents = scratch.report("m.lda t.txt --document-text 9");
    assert_eq!(contents["documents"][3]["text"], "sea wave…");
    let contents = scratch.report("m.lda t.txt --document-text 0");
    assert!(contents["documents"][3]["text"].is_null());
    // A field of a table, and files of a directory with several lines.
    scratch.write("t.csv", "id,text\n1,\"Sea, wave\"\n2,\"Tree\nleaf\"\n");
    let contents = scratch.report("m.lda t.csv --text-column text --id-column id");
    let texts = |contents: &Value, d: usize| contents["documents"][d]["text"].clone();
    assert_eq!([texts(&contents, 0), texts(&contents, 1)], ["Sea, wave", "Tree\nleaf"]);
    fs::create_dir(scratch.0.join("files")).unwrap();
    scratch.write("files/a.txt", "The sea.\n\nA wave.\n");
    scratch.write("files/b.txt", "Tree");
    let contents = scratch.report("m.lda files");
    assert_eq!([texts(&contents, 0), texts(&contents, 1)], ["The sea.\n\nA wave.", "Tree"]);
    // Documents that the model was not trained on.
    let contents = scratch.report("m.lda new.txt");
    let number = |d: usize, key: &str| contents["documents"][d][key].as_u64().unwrap();
    assert_eq!((number(0, "tokens"), number(0, "unknown"), number(3, "tokens")), (3, 1, 0));
    assert_eq!(contents["corpus"], json!({ "documents": 4, "tokens": 5, "unknown": 3 }));
    assert_eq!(about(&contents, "Documents")["model was trained on them"], "no");
}

#[test]
fn one_topic_without_a_vocabulary_makes_a_page() {
    let scratch = Scratch::new("small");
    scratch.write("c.txt", "2\n3\n3\n1 1 2\n1 3 1\n2 3 1\n");
    scratch.train("c.txt --topics 1 --save m.lda");
    let contents = scratch.report("m.lda c.txt");
    assert_eq!(contents["words"], json!(["#0", "#2"]));
    let topic = &contents["topics"][0];
    assert_eq!((&topic["place"], &topic["near"]), (&json!([0, 0]), &json!([])));
    assert_eq!(decode(&topic["wordCodes"]), [0, 2, 1, 2]);
    assert!(contents.get("time").is_none() && contents["curves"] == json!([]));
}

#[test]
fn models_without_counts_have_words_and_sizes() {
    let scratch = Scratch::new("weights");
    let rows = [[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.1, 0.8]];
    let weights = Weights::from_rows(&rows).unwrap();
    TopicModel::from_weights(weights, 0.1.into()).save(scratch.0.join("m.lda")).unwrap();
    scratch.write("c.txt", "4\n4\n6\n1 1 6\n1 2 3\n2 1 4\n2 2 2\n3 1 5\n4 4 9\n");
    let contents = scratch.report("m.lda c.txt");
    assert_eq!(
        (&contents["counts"]["exact"], &contents["corpus"]["tokens"]),
        (&json!(false), &json!(29))
    );
    let total = |topic: usize| contents["topics"][topic]["total"].as_f64().unwrap();
    // 20 of 29 tokens are words of the first topic.
    let share = total(0) / (total(0) + total(1));
    assert!((share - 20.0 / 29.0).abs() < 0.03, "{share}");
    let codes = decode(&contents["topics"][0]["wordCodes"]);
    assert_eq!(codes.iter().step_by(2).sum::<u64>(), 2);
    for (at, phi) in [(1, 0.6), (3, 0.3), (5, 0.1)] {
        assert!((codes[at] as f64 / total(0) - phi).abs() < 1e-6, "{codes:?}");
    }
}

#[test]
fn a_page_has_no_directories_of_the_machine() {
    let scratch = Scratch::new("paths");
    scratch.write("docs.txt", "tree leaf root\nsea wave tide\n");
    let here = scratch.0.display();
    scratch.train(&format!("{here}/docs.txt --topics 2 --save {here}/m.lda"));
    let contents = scratch.report(&format!("{here}/m.lda {here}/docs.txt"));
    assert_eq!(about(&contents, "Model")["input"], "docs.txt");
    assert!(!scratch.read("page.html").contains(&here.to_string()));
}

#[test]
fn thousands_of_topics_have_neighbours_and_a_map() {
    const TOPICS: usize = 2100;
    const WORDS: usize = 70;
    let scratch = Scratch::new("thousands");
    // Topic k has the words k, k + 1 and k + 2, in a circle: topics 70 apart are the same.
    let row = |topic: usize| {
        let mut row = vec![0.0; WORDS];
        (0..3).for_each(|step| row[(topic + step) % WORDS] = 1.0);
        row
    };
    let weights = Weights::from_rows(&(0..TOPICS).map(row).collect::<Vec<_>>()).unwrap();
    TopicModel::from_weights(weights, 0.1.into()).save(scratch.0.join("m.lda")).unwrap();
    let pairs: String = (1..=WORDS).map(|word| format!("{word} {word} 2\n")).collect();
    scratch.write("c.txt", &format!("{WORDS}\n{WORDS}\n{WORDS}\n{pairs}"));
    let contents = scratch.report("m.lda c.txt --method rt");
    let topics = contents["topics"].as_array().unwrap();
    assert_eq!(topics.len(), TOPICS);
    let distances = &about(&contents, "This page")["distances of topics"];
    assert_eq!(distances, "by the 64 leading words of each topic");
    for (topic, described) in topics.iter().enumerate() {
        let near = described["near"].as_array().unwrap();
        assert_eq!(near.len(), 6);
        for pair in near {
            let other = pair[0].as_u64().unwrap() as usize;
            assert!(other != topic && other % WORDS == topic % WORDS && pair[1] == 0, "{pair}");
        }
    }
}

#[test]
fn errors_are_reported_and_no_file_is_left() {
    let scratch = Scratch::trained("errors");
    let strange: String = (0..100).map(|w| format!("fremd{w}\n")).collect();
    let docword = scratch.read("docword.x.txt");
    scratch.write("docword.y.txt", &docword);
    scratch.write("vocab.y.txt", &strange);
    scratch.write("plain.txt", &docword);
    scratch.write("bad.jsonl", "{\"epoch\":1}\n");
    scratch.write("short.txt", "1990\n");
    scratch.write("foreign.lda", "no model");
    let before = scratch.files();
    for (line, status, what) in [
        ("none.lda docword.x.txt --out p.html", 1, "none.lda: "),
        ("foreign.lda docword.x.txt --out p.html", 1, "it is not a file of this library"),
        ("m.lda nowhere.txt --out p.html", 1, "nowhere.txt"),
        ("m.lda docword.y.txt --out p.html", 1, "none of the corpus's 100 words is the model's"),
        ("m.lda plain.txt --out p.html", 1, "the model names its words and the corpus"),
        ("m.lda docword.x.txt --log bad.jsonl --out p.html", 1, "bad.jsonl: line 1: "),
        ("m.lda docword.x.txt --titles short.txt --out p.html", 1, "--titles: short.txt"),
        ("m.lda docword.x.txt --topic-names short.txt --out p.html", 1, "--topic-names: short.txt"),
        ("m.lda docword.x.txt --dates short.txt --out p.html", 1, "short.txt"),
        ("m.lda docword.x.txt --out no/such/p.html", 1, "no/such/p.html: cannot write"),
        ("m.lda docword.x.txt --out .", 1, "is a directory"),
        ("m.lda docword.x.txt --keep-case --out p.html", 2, "--keep-case applies to texts"),
        ("m.lda docword.x.txt --method guess --out p.html", 2, "guess"),
        ("m.lda docword.x.txt", 2, "--out"),
    ] {
        let output = scratch.run(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {error}");
        assert!(error.contains(what) && !error.contains("panicked"), "{line}: {error}");
        assert_eq!(scratch.files(), before, "{line}");
    }
}
