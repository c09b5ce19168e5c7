//! The scripts of `deploy/spark`: nodes as tasks of Spark, and documents of DataFrames, on a Spark
//! with a master and two workers of two cores each. `LDA_SPARK_PYTHON` is a Python with pyspark and
//! numpy.

use std::env;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// If set, a missing Spark is a failure.
const REQUIRED: &str = "LDA_SPARK_REQUIRED";
/// Path of the Python interpreter.
const PYTHON: &str = "LDA_SPARK_PYTHON";
/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Spark on this machine, which is stopped when the test ends.
struct Spark {
    python: String,
    home: PathBuf,
    url: String,
    daemons: Vec<Child>,
}

impl Spark {
    /// `None`, and a note, if Spark or Java is not installed.
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn start(scratch: &Scratch) -> Option<Self> {
        let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
        let look = "import numpy, tomllib, pyspark; print(pyspark.__path__[0])";
        let mut missing = None;
        let mut run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            match output.map_err(|error| error.to_string()) {
                Ok(output) if output.status.success() => {
                    return String::from_utf8(output.stdout).unwrap().trim().to_owned();
                }
                Ok(output) => missing = Some(String::from_utf8_lossy(&output.stderr).into_owned()),
                Err(error) => missing = Some(format!("{program}: {error}")),
            }
            String::new()
        };
        let home = PathBuf::from(run(&python, &["-c", look]));
        run("java", &["-version"]);
        if let Some(missing) = missing {
            assert!(env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {missing}");
            eprintln!(
                "skipped: no Java or no pyspark; set {PYTHON} to a Python that has it: {}",
                missing.trim()
            );
            return None;
        }
        let mut spark = Self { python, home, url: String::new(), daemons: Vec::new() };
        let log = spark.daemon(scratch, "master.Master", "master", &[]);
        let master = wait_for(&log, "Starting Spark master at ");
        master.split_whitespace().next().unwrap().clone_into(&mut spark.url);
        for name in ["first", "second"] {
            let work = scratch.file(name);
            let url = spark.url.clone();
            let arguments = ["--cores", "2", "--memory", "1g", "--work-dir"];
            let arguments = [&arguments[..], &[work.to_str().unwrap(), &url]].concat();
            let log = spark.daemon(scratch, "worker.Worker", name, &arguments);
            wait_for(&log, "Successfully registered with master");
        }
        Some(spark)
    }

    /// Starts a daemon of Spark; returns the path of its log.
    fn daemon(
        &mut self,
        scratch: &Scratch,
        class: &str,
        name: &str,
        arguments: &[&str],
    ) -> PathBuf {
        let log = scratch.file(&format!("{name}.log"));
        let mut command = self.command("bin/spark-class");
        command.arg(format!("org.apache.spark.deploy.{class}"));
        command.args(["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]).args(arguments);
        // The REST server of the master has a fixed port, which may be in use.
        command.env("SPARK_MASTER_OPTS", "-Dspark.master.rest.enabled=false");
        command.env("SPARK_DAEMON_MEMORY", "256m");
        let file = fs::File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
        log
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.home.join(program));
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        command.env("SPARK_HOME", &self.home).env("SPARK_LOCAL_IP", "127.0.0.1");
        command.env("PYSPARK_PYTHON", &self.python).env("PYSPARK_DRIVER_PYTHON", &self.python);
    }

    /// Runs a script of `deploy/spark`; returns its status, and its output with that of Spark.
    fn submit(&self, script: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command("bin/spark-submit");
        command.args(["--master", &self.url, "--driver-memory", "512m"]);
        command.args(["--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"]);
        end(command.arg(scripts().join(script)).args(arguments))
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        // Workers first, so that they stop their executors.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let begun = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/spark")
}

fn end(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.code(), said.concat())
}

/// Waits for a text in a log; returns what follows it.
fn wait_for(log: &Path, words: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(log).unwrap();
        if let Some((_, rest)) = text.split_once(words)
            && rest.contains('\n')
        {
            return rest.to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Documents of different lengths, some without words. The first half of them has half of the
/// tokens, so that a shard may end exactly there.
fn uneven() -> Vec<Vec<&'static str>> {
    let words =
        ["tree", "leaf", "root", "branch", "forest", "wave", "sand", "beach", "tide", "sea"];
    let length = |d: usize| if d % 20 == 7 { 0 } else { 1 + (d % 20).pow(2) % 13 };
    (0..40)
        .map(|d| (0..length(d)).map(|i| words[(d * 7 + i * i * 3 + i * d) % 10]).collect())
        .collect()
}

/// The same documents as a JSON table, in another order.
fn write_table(path: &Path) {
    let documents = uneven();
    let row = |at: usize| {
        let id = at * 7 % documents.len();
        serde_json::json!({ "id": id, "tokens": documents[id] }).to_string()
    };
    fs::write(path, (0..documents.len()).map(row).collect::<Vec<_>>().join("\n")).unwrap();
}

/// The same documents as an LDA-C file and a vocabulary, as options of `lda cluster`.
fn write_pairs(scratch: &Scratch, vocabulary: &[String]) -> [String; 7] {
    let number = |word: &&str| vocabulary.iter().position(|other| other == word).unwrap();
    let line = |document: Vec<&str>| {
        let pairs: Vec<_> = document.iter().map(|word| format!("{}:1", number(word))).collect();
        format!("{} {}\n", pairs.len(), pairs.join(" "))
    };
    let (pairs, words) = (scratch.file("articles.dat"), scratch.file("words.txt"));
    fs::write(&pairs, uneven().into_iter().map(line).collect::<String>()).unwrap();
    fs::write(&words, vocabulary.join("\n")).unwrap();
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let [format, number, vocabulary] =
        ["--format", "--num-words", "--vocabulary"].map(str::to_owned);
    [path(pairs), format, "ldac".to_owned(), number, "10".to_owned(), vocabulary, path(words)]
}

/// The files of a directory, by name.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut files: Vec<_> = entries.map(|path| (name(&path), fs::read(&path).unwrap())).collect();
    files.sort_unstable();
    files
}

/// Checks that two directories have the same files; a panic shows the first that differs.
fn assert_same_files(found: &Path, wanted: &Path) {
    let (found, wanted) = (files(found), files(wanted));
    let differ = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
    let text = |(name, bytes): &(String, Vec<u8>)| (name.clone(), bytes.escape_ascii().to_string());
    let differ = differ.map(|(found, wanted)| (text(found), text(wanted)));
    assert!(found == wanted, "{} and {} files: {differ:?}", found.len(), wanted.len());
}

/// Shards and model of one process, to compare with.
fn in_one_process(scratch: &Scratch, documents: &[String; 7], epochs: &str) -> PathBuf {
    let [shards, model] = ["wanted", "wanted.lda"].map(|name| scratch.file(name));
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let cut = ["cut", "--shards", "4", "--out", shards.to_str().unwrap()];
    assert!(program(&[&cut[..], &documents].concat()).status.success());
    // The tasks of Spark write none, so workers count the words.
    fs::remove_file(shards.join("statistics")).unwrap();
    let local = ["local", "--shards", "4", "--topics", "4", "--alpha", "0.5", "--epochs", epochs];
    let save = ["--save", model.to_str().unwrap()];
    assert!(program(&[&local[..], &save, &documents].concat()).status.success());
    model
}

/// A script that runs `lda`, but for worker 1 first the shell commands `does`.
fn instead(scratch: &Scratch, name: &str, does: &str) -> String {
    use std::os::unix::fs::PermissionsExt;

    let (path, cluster) = (scratch.file(name), env!("CARGO_BIN_EXE_lda"));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'--role worker --index 1'*) {does};; esac\nexec {cluster} \"$@\"\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn write_run(scratch: &Scratch, name: &str, workers: u32, epochs: &str, more: &str) -> String {
    let path = scratch.file(&format!("{name}.toml"));
    let text = format!(
        "documents = \"shards\"\n[training]\ntopics = 4\nalpha = 0.5\nepochs = {epochs}\n\
         workers = {workers}\nsave = \"{name}.lda\"\n{more}"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const CLUSTER: &str = env!("CARGO_BIN_EXE_lda");

#[test]
#[ignore = "two minutes, and Spark; LDA_SPARK_REQUIRED"]
fn spark_tasks_write_the_files_of_one_process() {
    let scratch = Scratch::new("spark");
    let Some(spark) = Spark::start(&scratch) else { return };
    let table = scratch.file("articles.json");
    write_table(&table);
    let (table, shards) = (table.to_str().unwrap(), scratch.file("shards"));
    documents_are_divided_into_shards(&spark, &scratch, table, &shards);
    nodes_are_tasks(&spark, &scratch);
    errors_are_reported(&spark, &scratch);
    a_killed_node_is_restarted(&spark, &scratch);
    a_notebook_does_the_same(&spark, &scratch, table, &shards);
}

fn documents_are_divided_into_shards(spark: &Spark, scratch: &Scratch, table: &str, shards: &Path) {
    let mut words: Vec<String> = uneven().concat().into_iter().map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    let documents = write_pairs(scratch, &words);
    in_one_process(scratch, &documents, "30");
    let cut = |shards: &str, out: &Path| {
        let of = ["--input", table, "--format", "json", "--column", "tokens", "--order-by", "id"];
        let to = ["--out", out.to_str().unwrap(), "--shards", shards, "--cluster", CLUSTER];
        spark.submit("cut.py", &[&of[..], &to].concat())
    };
    let (status, said) = cut("4", shards);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("4 shards of 40 documents"), "{said}");
    assert_same_files(shards, &scratch.file("wanted"));
    if cfg!(feature = "object-store") {
        let stored = scratch.file("stored");
        let (status, said) = cut("4", Path::new(&format!("file://{}", stored.display())));
        assert_eq!(status, Some(0), "{said}");
        assert_same_files(&stored, &scratch.file("wanted"));
        // A URL of no store, from a task.
        let (status, said) = cut("4", Path::new("ftp://host/articles"));
        assert!(status == Some(1) && said.contains("give s3://bucket/prefix"), "{said}");
    }
    let (status, said) = cut("41", shards);
    assert!(status == Some(2) && said.contains("41 shards of 40 documents: give fewer"), "{said}");
    assert!(shards.join("manifest").exists());
}

/// Whether the nodes wrote the model of one process; removes their file.
fn is_wanted(scratch: &Scratch, name: &str) -> bool {
    let model = scratch.file(name);
    let is_wanted = fs::read(&model).unwrap() == fs::read(scratch.file("wanted.lda")).unwrap();
    fs::remove_file(model).unwrap();
    is_wanted
}

fn nodes_are_tasks(spark: &Spark, scratch: &Scratch) {
    node::certificates(scratch, "ca.pem", &[("node", &["127.0.0.1"])]);
    let tls = "[grpc.tls]\nauthority = \"ca.pem\"\ncertificate = \"node.pem\"\nkey = \"node.key\"\n\
        name = \"{host}\"\n[locality]\n";
    let hosts: String = (0..4).map(|shard| format!("shard {shard} 127.0.0.1\n")).collect();
    fs::write(scratch.file("shards/hosts"), format!("lda-dist hosts 1\n{hosts}")).unwrap();
    let config = write_run(scratch, "tasks", 2, "30", tls);
    let (status, said) = spark.submit("launch.py", &["--config", &config, "--cluster", CLUSTER]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("master 0: epoch 30: log joint per token -"), "{said}");
    assert!(said.contains("server 0 on 127.0.0.1, worker 0 on 127.0.0.1"), "{said}");
    assert!(log_of(scratch).contains("tokens are on the machines of their workers"));
    assert!(is_wanted(scratch, "tasks.lda"));
}

fn errors_are_reported(spark: &Spark, scratch: &Scratch) {
    let refused = |config: &str, more: &[&str], status: i32, what: &str| {
        let (found, said) = spark.submit("launch.py", &[&["--config", config][..], more].concat());
        assert!(said.contains(what), "{said}");
        assert!(found == Some(status) && !said.contains("Lost executor"), "{found:?} {said}");
    };
    let config = write_run(scratch, "wrong", 2, "1000000", "");
    let many = write_run(scratch, "many", 4, "30", "");
    let slots = "6 tasks must run at the same time, for a master, 1 servers and 4 workers, but the executors have room for 4";
    refused(&many, &["--cluster", CLUSTER, "--wait", "5"], 2, slots);
    let nowhere = "nowhere/cluster is not an executable file there: install it";
    refused(&config, &["--installed", "nowhere/cluster"], 2, nowhere);
    let full = instead(scratch, "full", "sleep 1; echo 'the disk is full' >&2; exit 1");
    refused(&config, &["--cluster", &full], 1, "error: worker 1 on 127.0.0.1: the disk is full");
    let again = instead(scratch, "again", "sleep 1; echo 'not now' >&2; exit 75");
    let said = "error: 2 attempts failed, the last one with: worker 1 on 127.0.0.1: not now";
    refused(&config, &["--cluster", &again, "--attempts", "2"], 75, said);
    // No process runs any more, and no file is left.
    assert!(
        fs::read_dir(&scratch.0)
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_str().unwrap().contains("wrong.lda") })
    );
}

fn a_killed_node_is_restarted(spark: &Spark, scratch: &Scratch) {
    let words = fs::read_to_string(scratch.file("words.txt")).unwrap();
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    in_one_process(scratch, &write_pairs(scratch, &words), "600");
    let config = write_run(scratch, "killed", 2, "600", "[snapshots]\ndirectory = \"kept\"\n");
    let kept = scratch.file("kept/latest");
    let once = scratch.file("once");
    // The first process of worker 1 is killed after a checkpoint.
    let does = format!(
        "if mkdir {} 2>/dev/null; then (while [ ! -e {} ]; do sleep 0.02; done; kill -9 $$) \
         </dev/null >/dev/null 2>&1 & fi",
        once.display(),
        kept.display()
    );
    let program = instead(scratch, "mortal", &does);
    let (status, said) = spark.submit("launch.py", &["--config", &config, "--cluster", &program]);
    assert_eq!(status, Some(0), "{said}");
    let killed = "attempt 1 of 4 failed: worker 1 on 127.0.0.1 was killed by signal 9";
    assert!(said.contains(killed), "{said}");
    assert!(
        log_of(scratch).contains("master 0 on 127.0.0.1: attempt 1: the run continues from epoch")
    );
    assert!(is_wanted(scratch, "killed.lda"));
}

/// Output of the nodes: the logs of all executors.
fn log_of(scratch: &Scratch) -> String {
    fn read(directory: &Path, to: &mut String) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, to);
            } else if path.file_name().is_some_and(|name| name == "stderr") {
                to.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
            }
        }
    }
    let mut log = String::new();
    ["first", "second"].iter().for_each(|name| read(&scratch.file(name), &mut log));
    log
}

fn a_notebook_does_the_same(spark: &Spark, scratch: &Scratch, table: &str, shards: &Path) {
    let kept = "[snapshots]\ndirectory = \"notebook\"\n";
    let config = write_run(scratch, "notebook", 2, "30", kept);
    let words = scratch.file("of-mllib.txt");
    let mut command = Command::new(&spark.python);
    spark.environment(&mut command);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/notebook.py"));
    let kept = "[snapshots]\ndirectory = \"endless\"\n";
    let endless = write_run(scratch, "endless", 2, "1000000", kept);
    let kept = scratch.file("endless/latest");
    command.args([table, shards.to_str().unwrap(), &config, &endless, kept.to_str().unwrap()]);
    command.args([CLUSTER, words.to_str().unwrap()]);
    command.env("PYTHONPATH", scripts());
    let options =
        "--driver-memory 512m --conf spark.executor.memory=512m --conf spark.ui.enabled=false";
    let arguments = format!("--master {} {options} pyspark-shell", spark.url);
    let (status, said) = end(command.env("PYSPARK_SUBMIT_ARGS", arguments));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("cut 40 10\n"), "{said}");
    assert!(said.contains("nodes master 0 server 0 worker 0 worker 1\n"), "{said}");
    let topics = "topics 2 ['epoch', 'document', 'name', 'tokens', 'topics']\n";
    assert!(said.contains(topics), "{said}");
    let ended = ["running 4\n", "cancelled 1 ", "left 0\n"];
    assert!(ended.iter().all(|ended| said.contains(ended)), "{said}");
    // MLlib orders words by frequency.
    let words = fs::read_to_string(words).unwrap();
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    assert!(!words.is_sorted());
    in_one_process(scratch, &write_pairs(scratch, &words), "30");
    assert_same_files(shards, &scratch.file("wanted"));
    assert!(is_wanted(scratch, "notebook.lda"));
}
