//! Nodes in network namespaces, with a connection between them that fails for a while.
//!
//! This needs root and `ip`. Without them the test prints a note and does nothing, unless
//! `LDA_NAMESPACES_REQUIRED` is set.

#![expect(clippy::print_stdout, reason = "it says that it does nothing")]

use super::node::{ALL, Node, is_that_of_one_process, prepare_at};
use super::*;

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    let output = command.args(words.split_whitespace()).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Two namespaces with a connection between them.
struct Line {
    name: String,
}

const ADDRESSES: [&str; 2] = ["10.78.0.1", "10.78.0.2"];

impl Line {
    fn new() -> Option<Self> {
        // Names of devices have at most 15 characters.
        let line = Self { name: format!("ldac{}", std::process::id()) };
        let n = &line.name;
        if !ip(&format!("netns add {n}a")) {
            assert!(std::env::var_os("LDA_NAMESPACES_REQUIRED").is_none(), "no namespaces here");
            println!("skipped: network namespaces need root and ip (iproute2)");
            return None;
        }
        assert!(ip(&format!("netns add {n}b")));
        assert!(ip(&format!("-n {n}a link add line type veth peer name line netns {n}b")));
        for (side, address) in ["a", "b"].into_iter().zip(ADDRESSES) {
            assert!(ip(&format!("-n {n}{side} addr add {address}/24 dev line")));
            assert!(ip(&format!("-n {n}{side} link set lo up")));
            assert!(ip(&format!("-n {n}{side} link set line up")));
        }
        Some(line)
    }

    fn set(&self, state: &str) {
        assert!(ip(&format!("-n {}a link set line {state}", self.name)));
    }

    fn space(&self, side: usize) -> String {
        format!("{}{}", self.name, ["a", "b"][side])
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for side in 0..2 {
            ip(&format!("netns del {}", self.space(side)));
        }
    }
}

#[test]
#[ignore = "half a minute, and root: `.ci/extended`"]
fn a_run_survives_ten_seconds_without_a_line() {
    let Some(line) = Line::new() else { return };
    let scratch = Scratch::new("line");
    let epochs = 300;
    let [near, far] = ADDRESSES;
    // The second worker is alone in its namespace.
    let places = [near, near, near, far].map(|address| address.to_owned());
    let ports = [7000, 7001, 7002, 7003];
    let nodes: Vec<String> =
        places.iter().zip(ports).map(|(address, port)| format!("{address}:{port}")).collect();
    let config = prepare_at(&scratch, epochs, "patience = 60.0", &nodes);
    let mut text = fs::read_to_string(&config).unwrap();
    text.push_str("[snapshots]\ndirectory = \"kept\"\nevery = 20\n");
    fs::write(&config, text).unwrap();
    let nodes = ALL.map(|(role, index)| {
        let space = line.space(usize::from((role, index) == ALL[3]));
        Node::within(&space, &config, role, index)
    });
    wait_for_kept(&scratch.file("kept"), 0);
    line.set("down");
    let begun = Instant::now();
    let before = wait_for_kept(&scratch.file("kept"), 0);
    thread::sleep(Duration::from_secs(10));
    // Without the connection no epoch ends: the checkpoints are of epochs before.
    let kept = wait_for_kept(&scratch.file("kept"), 0);
    assert!(kept <= before + 20 && kept < epochs, "{before} {kept}");
    line.set("up");
    assert!(begun.elapsed() >= Duration::from_secs(10));
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, epochs));
}
