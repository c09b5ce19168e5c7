//! A run whose workers come, leave and are lost, as processes.

use super::node::{Node, is_that_of_one_process, prepare_elastic};
use super::*;

/// Waits until the last epoch was sampled by this number of workers.
fn wait_for_workers(scratch: &Scratch, workers: u64) {
    let begun = Instant::now();
    let last = || {
        let text = fs::read_to_string(scratch.file("epochs.jsonl")).ok()?;
        // A line may be being written.
        let line: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
        line["workers"].as_u64()
    };
    while last() != Some(workers) {
        assert!(begun.elapsed() < PATIENCE, "{:?} workers instead of {workers}", last());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn workers_come_leave_and_are_lost_without_a_change_of_the_model() {
    let scratch = Scratch::new("elastic");
    let epochs = 9000;
    let config = prepare_elastic(&scratch, epochs);
    let start = |index| Node::start(&config, "worker", index);
    let [master, server] =
        [("master", "0"), ("server", "0")].map(|(role, index)| Node::start(&config, role, index));
    let first = start("0");
    // The other worker does not connect in time.
    wait_for_workers(&scratch, 1);
    let second = start("1");
    wait_for_workers(&scratch, 2);
    first.send("TERM");
    let (status, said) = first.end();
    assert_eq!(status, Some(75), "{said}");
    wait_for_workers(&scratch, 1);
    let first = start("0");
    wait_for_workers(&scratch, 2);
    drop(second);
    wait_for_workers(&scratch, 1);
    // It was given up, and its successor takes part.
    let second = start("1");
    wait_for_workers(&scratch, 2);
    // Stopped for longer than the patience, it ends when it goes on.
    second.send("STOP");
    wait_for_workers(&scratch, 1);
    second.send("CONT");
    let (status, said) = second.end();
    assert!(status == Some(75) && said.contains("the run has gone on without this node"), "{said}");
    for (node, role) in [(master, "master"), (server, "server"), (first, "worker")] {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
        if role == "master" {
            assert!(said.contains("the run goes on without worker 1"), "{said}");
            assert!(said.contains("with 2 workers") && said.contains("with 1 worker\n"), "{said}");
        }
    }
    assert!(is_that_of_one_process(&scratch, epochs));
}
