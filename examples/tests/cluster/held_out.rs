//! Held-out documents of nodes as processes.

use super::node::{ALL, Node, prepare};
use super::*;

/// Documents that `cut` has kept out of training are evaluated as in one process.
#[test]
fn nodes_evaluate_held_out_documents() {
    let scratch = Scratch::new("node-held-out");
    let config = prepare(&scratch, 30, "[held-out]\npatience = 1\n");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("[training]\n", "[training]\nevaluate-every = 2\n")).unwrap();
    let (status, said) = Node::start(&config, "master", "0").end();
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("has no held-out documents: make them with `lda cluster cut"), "{said}");

    let (path, out) = (scratch.file("articles.txt"), scratch.file("shards"));
    let path = path.to_str().unwrap();
    let cut = ["cut", path, "--out", out.to_str().unwrap(), "--shards", "4", "--held-out", "0.3"];
    let said = String::from_utf8(program(&cut).stderr).unwrap();
    assert!(said.contains(" documents are held out"), "{said}");
    let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    for node in nodes {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{said}");
    }
    let perplexities = |file: &Path| -> Vec<f64> {
        let log = fs::read_to_string(file).unwrap();
        let lines =
            log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter_map(|line| line["perplexity"].as_f64()).collect()
    };
    let found = perplexities(&scratch.file("epochs.jsonl"));
    assert!((2..15).contains(&found.len()), "it ends early: {found:?}");
    let log = scratch.file("local.jsonl");
    let options = "--topics 4 --alpha 0.5 --epochs 30 --workers 2 --shards 4 --held-out 0.3 \
                   --patience 1 --evaluate-every 2 --log";
    let local = ["local", path].into_iter().chain(options.split_whitespace()).chain(log.to_str());
    assert!(program(&local.collect::<Vec<_>>()).status.success());
    let expected = perplexities(&log);
    // Either run may go on for an epoch when it has to end.
    let both = found.len().min(expected.len());
    assert!(both + 1 >= found.len().max(expected.len()));
    assert_eq!(found[..both], expected[..both]);
}
