//! Checkpoints of nodes that are processes: they outlive any node, and are read without them.

use super::node::{ALL, Node, is_that_of_one_process, prepare, wait_for_an_epoch};
use super::*;

/// A run that writes checkpoints and waits for restarted nodes.
fn prepare_keeping(scratch: &Scratch, epochs: u32, every: u32) -> PathBuf {
    let config = prepare(scratch, epochs, "patience = 60.0");
    let mut text = fs::read_to_string(&config).unwrap();
    text.push_str(&format!("[snapshots]\ndirectory = \"kept\"\nevery = {every}\n"));
    fs::write(&config, text).unwrap();
    config
}

#[test]
fn a_run_survives_the_failure_of_any_node() {
    let scratch = Scratch::new("killed");
    let epochs = 1500;
    let config = prepare_keeping(&scratch, epochs, 20);
    let mut nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    let mut kept = 0;
    for (at, (role, index)) in ALL.into_iter().enumerate() {
        // A checkpoint is written between any two failures.
        kept = wait_for_kept(&scratch.file("kept"), kept);
        assert!(nodes[at].0.try_wait().unwrap().is_none(), "{role} has ended");
        nodes[at].0.kill().unwrap();
        nodes[at].0.wait().unwrap();
        nodes[at] = Node::start(&config, role, index);
    }
    assert!(kept < epochs, "the run is over");
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
        let tells = said.contains("the run continues from epoch");
        assert_eq!(tells, role == "master", "{said}");
    }
    assert!(is_that_of_one_process(&scratch, epochs));
}

/// Workers have the topics of the last epoch in memory, so nothing starts again from the beginning.
#[test]
fn a_lost_server_or_master_costs_no_epoch_without_checkpoints() {
    let scratch = Scratch::new("memory");
    let epochs = 800;
    let config = prepare(&scratch, epochs, "patience = 60.0");
    let mut nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    let log = scratch.file("epochs.jsonl");
    let logged = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    for at in [1, 0, 1] {
        let before = logged();
        let begun = Instant::now();
        while logged() < before + 50 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no epoch ends");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (role, index) = ALL[at];
        assert!(nodes[at].0.try_wait().unwrap().is_none(), "{role} has ended");
        nodes[at].0.kill().unwrap();
        nodes[at].0.wait().unwrap();
        nodes[at] = Node::start(&config, role, index);
    }
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, epochs));
    let text = fs::read_to_string(&log).unwrap();
    let numbers = |name: &str| -> Vec<u64> {
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.map(|line: serde_json::Value| line[name].as_u64().unwrap()).collect()
    };
    assert!(numbers("attempt").last().is_some_and(|&attempt| attempt >= 4));
    // The epoch at whose end the master was killed may be sampled and logged again.
    let repeated = numbers("epoch").windows(2).filter(|pair| pair[0] >= pair[1]).count();
    assert!(repeated <= 1, "{repeated}");
}

/// Writes the topics of all documents at the checkpoint `before`, in parts and as a whole; that of `damaged` is an
/// error.
fn documents_of_a_checkpoint(config: &str, (damaged, before): (u32, u32)) {
    let document_topics = |options: &[&str]| {
        let written = program(&[&["document-topics", "--config", config][..], options].concat());
        let said = String::from_utf8(written.stderr).unwrap();
        (written.status.code(), String::from_utf8(written.stdout).unwrap(), said)
    };
    let (status, before_it, said) = document_topics(&[]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&format!("topics-{damaged:08}-00003: it is damaged")), "{said}");
    assert!(said.contains("--epoch N reads another checkpoint"), "{said}");
    let epoch = before.to_string();
    let (status, whole, said) = document_topics(&["--epoch", &epoch]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(&format!("documents after epoch {before}")), "{said}");
    assert!(before_it.lines().count() < whole.lines().count(), "the last shard is damaged");
    let mut tokens = 0;
    for (number, line) in whole.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["epoch"], &line["document"]), (&before.into(), &number.into()));
        let topics = line["topics"].as_array().unwrap();
        let shares = topics.iter().map(|topic| topic[1].as_f64().unwrap()).sum::<f64>();
        let length = line["tokens"].as_u64().unwrap();
        // α is 0.5 for each of four topics.
        let expected = (length as f64 + 0.5 * topics.len() as f64) / (length as f64 + 2.0);
        assert!((shares - expected).abs() < 1e-9, "{line}");
        tokens += length;
    }
    assert_eq!(tokens, 320);
    let parts =
        ["0/3", "1/3", "2/3"].map(|part| document_topics(&["--epoch", &epoch, "--part", part]).1);
    assert!(parts.concat() == whole && parts.iter().all(|part| !part.is_empty()));
    let (status, _, said) = document_topics(&["--part", "0/3"]);
    assert!(status == Some(2) && said.contains("--epoch <N>"), "parts of two epochs: {said}");
    let (status, _, said) = document_topics(&["--out", "topics.csv"]);
    assert!(status == Some(2) && said.contains("ends in .jsonl"), "{said}");
}

#[test]
fn a_damaged_checkpoint_is_said_and_the_run_goes_on_from_the_one_before() {
    let scratch = Scratch::new("damaged");
    let directory = scratch.file("kept");
    let start = |epochs| {
        let config = prepare_keeping(&scratch, epochs, 10);
        let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
        nodes.map(|node| {
            let (status, said) = node.end();
            assert_eq!(status, Some(0), "{said}");
            said
        })
    };
    start(200);
    let latest = || {
        let text = fs::read_to_string(directory.join("latest")).unwrap();
        let number = |line: usize| text.lines().nth(line).unwrap().split_once(' ').unwrap().1;
        [1, 2].map(|line| number(line).parse::<u32>().unwrap())
    };
    let [epoch, before] = latest();
    assert!(before > 0);
    let file = |epoch: u32| format!("topics-{epoch:08}-00003");
    let damaged = directory.join(file(epoch));
    let mut bytes = fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    // The model of the checkpoint before.
    let (config, out) = (scratch.file("run.toml"), scratch.file("model.lda"));
    let (config, out) = (config.to_str().unwrap(), out.to_str().unwrap());
    let written = program(&["model", "--config", config, "--out", out]);
    let said = String::from_utf8(written.stderr).unwrap();
    assert!(written.status.success(), "{said}");
    assert!(said.contains(&format!("{}: it is damaged", file(epoch))), "{said}");
    assert!(said.contains(&format!("the model of epoch {before}")), "{said}");
    assert!(is_that_of_one_process(&scratch, before));
    documents_of_a_checkpoint(config, (epoch, before));

    let said = start(300);
    let note = format!(
        "cannot read the checkpoint of epoch {epoch}, so the run goes on from that of epoch {before}: \
         snapshot {}: it is damaged",
        file(epoch)
    );
    assert!(said[0].contains(&note), "{}", said[0]);
    assert!(is_that_of_one_process(&scratch, 300));
    // Files of earlier epochs are removed. Those of the last one may not be recorded any more.
    let [epoch, before] = latest();
    let exists = |&epoch: &u32| directory.join(file(epoch)).exists();
    assert!(exists(&epoch) && exists(&before) && (0..before).find(exists).is_none());
}

#[cfg(feature = "object-store")]
#[test]
fn documents_and_checkpoints_may_be_in_an_object_store() {
    let scratch = Scratch::new("objects");
    let epochs = 600;
    let config = prepare_keeping(&scratch, epochs, 20);
    let url = |name: &str| format!("file://{}", scratch.file(name).display());
    let (path, out) = (scratch.file("articles.txt"), url("documents"));
    let cut = program(&["cut", path.to_str().unwrap(), "--out", &out, "--shards", "4"]);
    let said = String::from_utf8(cut.stderr).unwrap();
    assert!(said.contains(&format!("{out}: 4 shards of 40 documents")), "{said}");
    for entry in fs::read_dir(scratch.file("shards")).unwrap() {
        let name = entry.unwrap().file_name();
        let read = |from: &str| fs::read(scratch.file(from).join(&name)).unwrap();
        assert!(read("documents") == read("shards"), "{name:?}");
    }
    fs::remove_dir_all(scratch.file("shards")).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("\"shards\"", &format!("\"{out}\""));
    fs::write(&config, text.replace("\"kept\"", &format!("\"{}\"", url("kept")))).unwrap();
    let mut nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    assert!(wait_for_kept(&scratch.file("kept"), 0) < epochs, "the run is over");
    let (role, index) = ALL[3];
    nodes[3].0.kill().unwrap();
    nodes[3].0.wait().unwrap();
    nodes[3] = Node::start(&config, role, index);
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, epochs));
}

#[cfg(unix)]
#[test]
fn a_terminated_node_writes_a_checkpoint_first() {
    let scratch = Scratch::new("terminated");
    // No checkpoint is written but those that signals cause.
    let epochs = 1_000_000;
    let config = prepare_keeping(&scratch, epochs, epochs);
    let kept = |said: &str| -> u32 {
        let (_, rest) = said.split_once("topics of epoch ").unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let mut nodes = ALL.map(|(role, index)| Some(Node::start(&config, role, index)));
    let mut before = 0;
    for at in [3, 1] {
        wait_for_an_epoch(&scratch);
        let (role, index) = ALL[at];
        let node = nodes[at].take().unwrap();
        terminate(&node.0);
        let (status, said) = node.end();
        assert_eq!(status, Some(75), "{role}: {said}");
        assert!(kept(&said) >= before, "{role}: {said}");
        before = kept(&said);
        nodes[at] = Some(Node::start(&config, role, index));
    }
    // All nodes exit with the master, and are started again.
    wait_for_an_epoch(&scratch);
    terminate(&nodes[0].as_ref().unwrap().0);
    for (node, (role, _)) in nodes.into_iter().flatten().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(75), "{role}: {said}");
        assert!(kept(&said) >= before, "{role}: {said}");
        before = kept(&said);
    }
    // The number of epochs is not part of the identity of a run.
    let text = fs::read_to_string(&config).unwrap();
    let more = format!("epochs = {}\n", before + 50);
    fs::write(&config, text.replace("epochs = 1000000\n", &more)).unwrap();
    let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, before + 50));
}
