//! The subcommand `lda convert` as other programs call it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lda_core::model::{TopicModel, Weights};
use serde_json::Value;

/// A temporary directory, which is removed with the test.
struct Scratch(PathBuf);

const DOCUMENTS: &str = "tree leaf tree root\nsea wave sea\nleaf \u{e9}t\u{e9} tree\n";

impl Scratch {
    /// A directory with a model in `m.lda`, whose topics `lda train` wrote too.
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("convert-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Self(path);
        fs::write(scratch.path("docs.txt"), DOCUMENTS).unwrap();
        let mut train = Command::new(env!("CARGO_BIN_EXE_lda"));
        let line = "docs.txt -q --topics 3 --alpha 0.1,0.2,0.3 --epochs 9 --save m.lda";
        train.arg("train").current_dir(&scratch.0).args(line.split_whitespace());
        train.args(["--topic-words", "t.npy"]);
        assert!(train.output().unwrap().status.success());
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn run(&self, subcommand: &str, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg(subcommand).current_dir(&self.0).args(line.split_whitespace()).output().unwrap()
    }

    fn convert(&self, line: &str) {
        let output = self.run("convert", line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
    }

    fn fail(&self, line: &str, status: i32, named: &str) {
        let output = self.run("convert", line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {error}");
        assert!(error.contains(named), "{line}: {error}");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn model(&self, name: &str) -> TopicModel {
        TopicModel::load(self.path(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Shape and cells of a NumPy array.
fn array<const N: usize>(npy: &[u8]) -> (String, Vec<[u8; N]>) {
    let cells = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    let head = std::str::from_utf8(&npy[10..cells]).unwrap();
    let shape = head.split_once("'shape': ").unwrap().1.split_once(", }").unwrap().0;
    let cells = npy[cells..].chunks_exact(N).map(|cell| cell.try_into().unwrap());
    (shape.to_owned(), cells.collect())
}

fn all_phi(model: &TopicModel) -> Vec<f64> {
    let words = 0..model.num_words();
    let cells = |topic| words.clone().map(move |word| model.phi(topic, word));
    (0..model.num_topics()).flat_map(cells).collect()
}

#[track_caller]
fn assert_near(found: impl IntoIterator<Item = f64>, expected: &[f64]) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() < 1e-6, "{found:?} {expected:?}");
    }
}

#[test]
fn matrices_equal_those_of_train() {
    let scratch = Scratch::new("matrices");
    scratch.convert("m.lda --out phi.npy");
    assert_eq!(scratch.bytes("phi.npy"), scratch.bytes("t.npy"));
    scratch.convert("m.lda --out phi.csv");
    let csv = scratch.text("phi.csv");
    let mut lines = csv.lines();
    let about = lines.next().unwrap().strip_prefix("# options: ").unwrap();
    let about: Value = serde_json::from_str(about).unwrap();
    assert_eq!((&about["program"], &about["trained"]["topics"]), (&"convert".into(), &3.into()));
    assert_eq!(lines.next(), Some("topic,tree,leaf,root,sea,wave,\u{e9}t\u{e9}"));
    let cells = lines.flat_map(|line| line.split(',').skip(1)).map(|cell| cell.parse().unwrap());
    assert_near(cells, &all_phi(&scratch.model("m.lda")));
    scratch.convert("m.lda --to mtx --out counts");
    let mtx = scratch.text("counts");
    assert!(mtx.starts_with("%%MatrixMarket matrix coordinate integer general\n"), "{mtx}");
    let entries = mtx.lines().filter(|line| !line.starts_with('%')).skip(1);
    let tokens = entries.map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
    assert_eq!(tokens.sum::<u32>(), 10);
}

#[test]
fn archives_contain_the_counts() {
    let scratch = Scratch::new("archive");
    scratch.convert("m.lda --out m.npz");
    let mut archive = zip::ZipArchive::new(File::open(scratch.path("m.npz")).unwrap()).unwrap();
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        archive.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let model = scratch.model("m.lda");
    let counts = model.counts().unwrap();
    assert_eq!(array(&read("format")), ("()".to_owned(), vec![*b"csc"]));
    let long = |bytes: [u8; 8]| i64::from_le_bytes(bytes);
    let (shape, cells) = array(&read("shape"));
    assert_eq!((shape.as_str(), cells.into_iter().map(long).collect()), ("(2,)", vec![3, 6]));
    let ends: Vec<i64> = array(&read("indptr")).1.into_iter().map(long).collect();
    let indices: Vec<u32> = array(&read("indices")).1.into_iter().map(u32::from_le_bytes).collect();
    let data: Vec<u32> = array(&read("data")).1.into_iter().map(u32::from_le_bytes).collect();
    assert_eq!((ends.len(), ends[6]), (7, data.len() as i64));
    for word in 0..6 {
        let entries = ends[word] as usize..ends[word + 1] as usize;
        let found = entries.map(|entry| (indices[entry], data[entry]));
        assert!(found.eq(counts.word(word).iter()));
    }
    let float = |bytes: [u8; 8]| f64::from_le_bytes(bytes);
    assert_eq!(array(&read("beta")), ("()".to_owned(), vec![0.01f64.to_le_bytes()]));
    let alpha: Vec<f64> = array(&read("alpha")).1.into_iter().map(float).collect();
    assert_eq!(alpha, [0.1, 0.2, 0.3]);
    let totals = array(&read("totals")).1.into_iter().map(u64::from_le_bytes);
    assert!(totals.eq(counts.totals().iter().copied()));
    let words: Vec<u8> = array::<1>(&read("words")).1.into_iter().flatten().collect();
    assert_eq!(String::from_utf8(words).unwrap(), "tree\nleaf\nroot\nsea\nwave\n\u{e9}t\u{e9}");
    scratch.convert("m.lda --out again.npz");
    assert_eq!(scratch.bytes("m.npz"), scratch.bytes("again.npz"));
}

#[test]
fn gensim_files_contain_counts_alpha_and_words() {
    let scratch = Scratch::new("gensim");
    scratch.convert("m.lda --to gensim --out g");
    let model = scratch.model("m.lda");
    let (shape, sstats) = array(&scratch.bytes("g.sstats.npy"));
    assert_eq!(shape, "(3, 6)");
    let sstats: Vec<f32> = sstats.into_iter().map(f32::from_le_bytes).collect();
    for word in 0..6 {
        let mut column = [0.0; 3];
        let counts = model.counts().unwrap().word(word);
        counts.iter().for_each(|(topic, count)| column[topic as usize] = count as f32);
        assert_eq!([0, 1, 2].map(|topic| sstats[topic * 6 + word]), column);
    }
    let (shape, alpha) = array(&scratch.bytes("g.alpha.npy"));
    let alpha: Vec<f64> = alpha.into_iter().map(f64::from_le_bytes).collect();
    assert_eq!((shape.as_str(), &alpha[..]), ("(3,)", &[0.1, 0.2, 0.3][..]));
    assert_eq!(scratch.text("g.words.txt"), "tree\nleaf\nroot\nsea\nwave\n\u{e9}t\u{e9}\n");
}

#[test]
fn pyldavis_json_contains_the_documents() {
    let scratch = Scratch::new("pyldavis");
    // A word that the model does not know, and a document of unknown words only.
    let documents = format!("{DOCUMENTS}stone tree\nstone\n");
    fs::write(scratch.path("more.txt"), documents).unwrap();
    scratch.convert("m.lda more.txt --out vis.json --seed 3");
    let vis: Value = serde_json::from_str(&scratch.text("vis.json")).unwrap();
    let numbers = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        rows.map(|x| x.as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_near(numbers(&vis["topic_term_dists"]), &all_phi(&scratch.model("m.lda")));
    let infer = scratch.run("infer", "m.lda more.txt --seed 3 --out theta.npy");
    assert!(infer.status.success());
    let theta = array(&scratch.bytes("theta.npy")).1.into_iter().map(f64::from_le_bytes);
    assert_eq!(numbers(&vis["doc_topic_dists"]), theta.collect::<Vec<_>>());
    assert_eq!(vis["doc_lengths"], serde_json::json!([4, 3, 3, 1, 0]));
    assert_eq!(
        vis["vocab"],
        serde_json::json!(["tree", "leaf", "root", "sea", "wave", "\u{e9}t\u{e9}"])
    );
    assert_eq!(vis["term_frequency"], serde_json::json!([4, 2, 1, 2, 1, 1]));
}

/// pyLDAvis reads the JSON. `LDA_PYLDAVIS_PYTHON` is a Python with it.
#[test]
#[ignore = "needs pyLDAvis; .ci/extended runs it"]
fn pyldavis_prepares_the_json() {
    const PREPARE: &str = "\
import json, sys, pyLDAvis
with open(sys.argv[1], encoding='utf-8') as file:
    page = pyLDAvis.prepare(**json.load(file))
print(len(page.topic_coordinates), page.topic_coordinates['Freq'].sum())
";
    let python = std::env::var("LDA_PYLDAVIS_PYTHON").expect("a Python with pyLDAvis");
    let scratch = Scratch::new("prepare");
    // With a document of unknown words; and without most of the model's words.
    for documents in [format!("{DOCUMENTS}stone\n"), "tree leaf\n".to_owned()] {
        fs::write(scratch.path("more.txt"), documents).unwrap();
        scratch.convert("m.lda more.txt --out vis.json");
        let mut command = Command::new(&python);
        let prepared =
            command.args(["-c", PREPARE]).arg(scratch.path("vis.json")).output().unwrap();
        let said = String::from_utf8_lossy(&prepared.stderr);
        assert!(prepared.status.success(), "{said}");
        let printed = String::from_utf8(prepared.stdout).unwrap();
        let (topics, percent) = printed.trim().split_once(' ').unwrap();
        assert_eq!(topics, "3");
        assert!((percent.parse::<f64>().unwrap() - 100.0).abs() < 1e-6, "{percent}");
    }
}

#[test]
fn formats_of_other_programs_are_detected() {
    let scratch = Scratch::new("imports");
    scratch.convert("m.lda --out same.lda");
    assert_eq!(scratch.bytes("m.lda"), scratch.bytes("same.lda"));
    let expected = all_phi(&scratch.model("m.lda"));
    scratch.convert("m.lda --to gensim --out g");
    scratch.convert("t.npy --names g.words.txt --alpha 0.25 --out numpy.lda");
    let numpy = scratch.model("numpy.lda");
    assert_near(all_phi(&numpy), &expected);
    assert_eq!(numpy.alpha().get(2), 0.25);
    scratch.convert("t.npy --alpha 0.5,0.1,0.2 --out priors.lda");
    let priors = TopicModel::load(scratch.0.join("priors.lda")).unwrap();
    assert_eq!(priors.alpha().as_slice(), [0.5, 0.1, 0.2]);
    assert_eq!(numpy.vocabulary().unwrap().word(3), "sea");
    arrays_are_read_in_every_form(&scratch);
    // A model without counts has fewer output formats, and a round trip returns the same file.
    scratch.convert("numpy.lda --out numpy.npz");
    scratch.fail("numpy.lda --to gensim --out h", 1, "no counts");
    let state = "#doc source pos typeindex type topic\n#alpha : 0.5 0.25 \n#beta : 0.01\n\
                 0 NA 0 0 tree 1\n0 NA 1 1 leaf 1\n1 NA 0 0 tree 0\n";
    fs::write(scratch.path("state"), state).unwrap();
    scratch.convert("state --out mallet.lda");
    assert_eq!(scratch.model("mallet.lda").counts().unwrap().totals(), [1, 2]);
    fs::write(scratch.path("w.model"), "3 2 0.5 0.01\n2\t1:4 0:1 \n0\t\n1\t0:2 \n").unwrap();
    scratch.convert("w.model --out warp.lda");
    assert_eq!(scratch.model("warp.lda").counts().unwrap().totals(), [3, 4]);
}

/// `g.alpha.npy` has the prior of `m.lda`; `t.npy` its topics.
fn arrays_are_read_in_every_form(scratch: &Scratch) {
    use flate2::write::GzEncoder;
    use zip::write::SimpleFileOptions;
    let array = scratch.bytes("t.npy");
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&array).unwrap();
    fs::write(scratch.path("p.npy.gz"), packed.finish().unwrap()).unwrap();
    let archive = |name: &str, arrays: &[&str], method| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for name in arrays {
            let options = SimpleFileOptions::default().compression_method(method);
            archive.start_file(format!("{name}.npy"), options).unwrap();
            archive.write_all(&array).unwrap();
        }
        fs::write(scratch.path(name), archive.finish().unwrap().into_inner()).unwrap();
    };
    archive("plain.npz", &["arr_0"], zip::CompressionMethod::Stored);
    archive("packed.npz", &["topics"], zip::CompressionMethod::Deflated);
    fs::write(scratch.path("alpha.txt"), "0.25\n").unwrap();
    scratch.convert("t.npy --names g.words.txt --alpha 0.25 --out one.lda");
    for file in ["p.npy.gz", "plain.npz", "packed.npz"] {
        scratch.convert(&format!("{file} --names g.words.txt --alpha alpha.txt --out two.lda"));
        assert_eq!(scratch.bytes("one.lda"), scratch.bytes("two.lda"), "{file}");
    }
    fs::write(scratch.path("alpha.txt"), "0.5, 0.1\n0.2\n").unwrap();
    let expected = scratch.model("m.lda").alpha().as_slice().to_vec();
    for (file, expected) in [("alpha.txt", vec![0.5, 0.1, 0.2]), ("g.alpha.npy", expected)] {
        scratch.convert(&format!("t.npy --alpha {file} --out a.lda"));
        let priors = TopicModel::load(scratch.0.join("a.lda")).unwrap();
        let prior: Vec<f64> = (0..3).map(|topic| priors.alpha().get(topic)).collect();
        assert_eq!(prior, expected, "{file}");
    }
    archive("two.npz", &["a", "b"], zip::CompressionMethod::Stored);
    scratch.convert("m.lda --out sparse.npz");
    fs::write(scratch.path("zero.txt"), "0.5 0 0.2").unwrap();
    fs::write(scratch.path("empty.txt"), "").unwrap();
    for (line, status, named) in [
        (
            "two.npz --out x.lda",
            1,
            "expected one array, topics \u{d7} words, but it has a.npy, b.npy",
        ),
        ("sparse.npz --out x.lda", 1, "matrix.toarray()"),
        ("t.npy --alpha zero.txt --out x.lda", 1, "zero.txt: \"0\": give a finite number above 0"),
        ("t.npy --alpha empty.txt --out x.lda", 1, "empty.txt: it has no numbers"),
        (
            "t.npy --alpha t.npy --out x.lda",
            1,
            "t.npy: its shape is (3, 6): expected one number per topic",
        ),
        ("t.npy --alpha nowhere --out x.lda", 2, "not a number, nor a file"),
    ] {
        scratch.fail(line, status, named);
    }
}

#[test]
fn duplicates_are_merged() {
    let scratch = Scratch::new("duplicates");
    // Topics 0 and 2 are alike.
    let rows = [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]];
    let weights = Weights::from_rows(&rows).unwrap();
    TopicModel::from_weights(weights, 0.1.into()).save(scratch.path("three.lda")).unwrap();
    scratch.convert("three.lda --merge-duplicates 0.5 --out two.lda");
    let two = scratch.model("two.lda");
    assert_eq!(two.num_topics(), 2);
    assert_near([two.phi(0, 0), two.phi(0, 1), two.phi(1, 2)], &[0.75, 0.15, 0.8]);
    assert_eq!(two.alpha().as_slice(), [0.2, 0.1]);
    let notes = &two.provenance().notes;
    assert!(notes.iter().any(|note| note.1.starts_with("3 topics merged to 2")), "{notes:?}");
    // Topics that are not near enough stay.
    scratch.convert("three.lda --merge-duplicates 0.1 --out same.lda");
    assert_eq!(scratch.model("same.lda").num_topics(), 3);
    scratch.fail("three.lda --merge-duplicates 0 --out none.lda", 2, "--merge-duplicates");
}

#[test]
fn impossible_conversions_are_refused() {
    let scratch = Scratch::new("refusals");
    fs::write(scratch.path("two.txt"), "a\nb\n").unwrap();
    fs::write(scratch.path("other.txt"), "one two three four five six seven eight nine ten\n")
        .unwrap();
    fs::write(scratch.path("cut.lda"), &scratch.bytes("m.lda")[..100]).unwrap();
    fs::write(scratch.path("prose"), "nothing of a model\n").unwrap();
    for (line, status, named) in [
        ("m.lda --out phi.txt", 2, ".npz"),
        ("m.lda --out vis.json", 2, "name them after the model"),
        ("m.lda docs.txt --out phi.npy", 2, "only a snapshot and a .json"),
        ("m.lda --alpha 1 --out same.lda", 2, "its own prior"),
        ("t.npy --alpha 0 --out x.lda", 2, "above 0"),
        ("t.npy --alpha 0.5,0.1 --out x.lda", 1, "alpha has 2 values for 3 topics"),
        ("m.lda --names two.txt --out x.lda", 1, "2 words, but the model has 6"),
        ("m.lda --names nowhere --out x.lda", 1, "nowhere"),
        ("nowhere --out x.lda", 1, "nowhere"),
        ("cut.lda --out x.npy", 1, "cut.lda"),
        ("prose --out x.npy", 1, "prose"),
        ("prose --from mallet --out x.npy", 1, "--output-state"),
        ("two.txt --from warplda --out x.npy", 1, "--dumpmodel"),
        ("m.lda nowhere --out x.json", 1, "nowhere"),
        ("m.lda --out no/where.npy", 1, "where.npy"),
    ] {
        scratch.fail(line, status, named);
    }
    let left: Vec<_> =
        fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('x')), "{left:?}");
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn snapshots_become_models() {
    let scratch = Scratch::new("snapshots");
    let run = "docs.txt -q --topics 3 --alpha 0.1,0.2,0.3 --epochs 9 --checkpoint kept";
    assert!(scratch.run("train", run).status.success());
    for (snapshot, out) in [("kept", "a.lda"), ("kept/epoch-0000000009.snapshot", "b.lda")] {
        scratch.convert(&format!("{snapshot} docs.txt --out {out}"));
        let [found, expected] =
            [out, "m.lda"].map(|name| TopicModel::load(scratch.path(name)).unwrap());
        assert_eq!(found.alpha(), expected.alpha(), "{snapshot}");
        assert!(found.counts() == expected.counts() && found.counts().is_some(), "{snapshot}");
        assert_eq!(found.vocabulary(), expected.vocabulary(), "{snapshot}");
        scratch.fail(
            &format!("{snapshot} --out c.lda"),
            1,
            "name the documents of the run after it",
        );
    }
    fs::create_dir(scratch.path("parts")).unwrap();
    fs::write(scratch.path("parts/latest"), "lda-dist snapshot 2\n").unwrap();
    scratch.fail("parts --out c.lda", 1, "`lda cluster model --config FILE");
    scratch.convert("kept docs.txt --out vis.json");
    fs::write(scratch.path("other.txt"), "tree leaf\n").unwrap();
    scratch.fail("kept other.txt --out c.lda", 1, "the snapshot is of another corpus");
    fs::write(scratch.path("renamed.txt"), DOCUMENTS.replace("tree", "bush")).unwrap();
    scratch.fail("kept renamed.txt --out c.lda", 1, "words of the documents have other names");
    scratch.fail(
        "m.lda docs.txt --out c.lda",
        2,
        "only a snapshot and a .json output need documents",
    );
    assert!(!scratch.path("c.lda").exists());
}
