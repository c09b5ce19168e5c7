//! Pushes between two processes in network namespaces, while the connection fails and a process is
//! killed.
//!
//! The tests need root, `ip` and `nft`. Without these they print that they are skipped, unless
//! `LDA_NAMESPACES_REQUIRED` is set. They take two minutes: `cargo test -p lda-transport --features
//! grpc --test namespaces -- --ignored --nocapture`.

#![expect(clippy::print_stdout, reason = "it tells how long things take")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs, process};

/// The program of `examples/pushes`: `cargo build -p lda-transport --features grpc --example
/// pushes`.
fn program() -> PathBuf {
    let mut path = env::current_exe().expect("this is a program");
    path.pop();
    path.pop();
    path.join("examples").join("pushes")
}

fn run(words: &str) -> bool {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    let output = command.args(words).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

fn must(words: &str) {
    assert!(run(words), "{words}");
}

/// Two namespaces with a connection.
struct Lab {
    name: String,
    journal: PathBuf,
}

impl Lab {
    fn new(test: &str) -> Option<Self> {
        // Names of devices have a short limit.
        let name = format!("lda{}{test}", process::id() % 10_000);
        let lab = Self { journal: env::temp_dir().join(format!("{name}.journal")), name };
        let able = run("ip -V") && run("nft -v") && run(&format!("ip netns add {}a", lab.name));
        if !able {
            let needs = "network namespaces need root, ip (iproute2) and nft (nftables)";
            assert!(env::var_os("LDA_NAMESPACES_REQUIRED").is_none(), "{needs}");
            println!("skipped: {needs}");
            return None;
        }
        let n = &lab.name;
        must(&format!("ip netns add {n}b"));
        must(&format!("ip link add {n}a type veth peer name {n}b"));
        for (side, address) in [("a", "10.77.0.1/24"), ("b", "10.77.0.2/24")] {
            must(&format!("ip link set {n}{side} netns {n}{side}"));
            must(&format!("ip -n {n}{side} addr add {address} dev {n}{side}"));
            must(&format!("ip -n {n}{side} link set lo up"));
            must(&format!("ip -n {n}{side} link set {n}{side} up"));
        }
        Some(lab)
    }

    fn link(&self, up: bool) {
        let n = &self.name;
        must(&format!("ip -n {n}a link set {n}a {}", if up { "up" } else { "down" }));
    }

    /// Drops this many of a thousand packets that arrive at the server.
    fn drop_packets(&self, thousandths: u32) {
        let nft = |rule: &str| must(&format!("ip netns exec {}a nft {rule}", self.name));
        if thousandths == 0 {
            return nft("delete table inet lda");
        }
        nft("add table inet lda");
        nft("add chain inet lda in { type filter hook input priority 0 ; }");
        nft(&format!("add rule inet lda in numgen random mod 1000 < {thousandths} drop"));
    }

    fn start(&self, side: &str, arguments: &[&str]) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &format!("{}{side}", self.name)])
            .arg(program())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ip is there")
    }

    /// Starts a server and waits until it listens.
    fn serve(&self) -> Child {
        let mut child =
            self.start("a", &["serve", "10.77.0.1:7000", &self.journal.to_string_lossy()]);
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says that it serves");
        assert_eq!(line, "serving\n");
        child
    }

    fn push(&self, seconds: u32) -> Pushes {
        let mut child = self.start("b", &["push", "10.77.0.1:7000", &seconds.to_string()]);
        let out = child.stdout.take().expect("it is piped");
        let (ends, began) = (Arc::<Mutex<Vec<End>>>::default(), Instant::now());
        let list = Arc::clone(&ends);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let mut words = line.split(' ').skip(1);
                let number = words.next().and_then(|word| word.parse().ok()).expect("a number");
                let end = words.next().expect("an end").to_owned();
                list.lock().unwrap().push(End { at: began.elapsed(), number, end });
            }
        });
        Pushes { child, ends, began }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for side in ["a", "b"] {
            run(&format!("ip netns del {}{side}", self.name));
        }
        let _ = fs::remove_file(&self.journal);
    }
}

#[derive(Clone, Debug)]
struct End {
    at: Duration,
    number: u64,
    end: String,
}

struct Pushes {
    child: Child,
    ends: Arc<Mutex<Vec<End>>>,
    began: Instant,
}

impl Pushes {
    /// Waits until a push is done after now. Returns the time that it took.
    fn until_one_is_done(&self) -> Duration {
        let now = self.began.elapsed();
        loop {
            let done =
                self.ends.lock().unwrap().iter().rev().find(|end| end.end == "done").cloned();
            if let Some(end) = done.filter(|end| end.at > now) {
                return end.at - now;
            }
            assert!(
                self.began.elapsed() < now + Duration::from_secs(60),
                "nothing is done any more"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn count(&self, end: &str) -> usize {
        self.ends.lock().unwrap().iter().filter(|other| other.end == end).count()
    }

    /// Waits for the end of all pushes and compares their outcomes with the journals of the
    /// servers.
    fn check(mut self, journal: &Path) -> BTreeMap<String, usize> {
        assert!(self.child.wait().expect("it is a child").success());
        thread::sleep(Duration::from_millis(100));
        let mut taken: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for line in fs::read_to_string(journal).expect("a journal").lines() {
            let (incarnation, number) = line.split_once(' ').expect("two words");
            taken.entry(number.parse().unwrap()).or_default().push(incarnation.to_owned());
        }
        let mut sums = BTreeMap::new();
        let ends = self.ends.lock().unwrap();
        for (number, End { number: ended, .. }) in {
            let mut sorted = ends.clone();
            sorted.sort_by_key(|end| end.number);
            sorted.into_iter().enumerate()
        } {
            assert_eq!(number as u64, ended, "each ends once");
        }
        for End { number, end, .. } in ends.iter() {
            let times = taken.get(number).map_or(0, Vec::len);
            let promised = match end.split(':').next().unwrap() {
                "done" => times == 1,
                "unknown" => times <= 1,
                "unsent" | "rejected" => times == 0,
                _ => false,
            };
            assert!(promised, "{number} ended as {end}, and was taken {times} times");
            *sums.entry(end.clone()).or_default() += 1;
        }
        sums
    }
}

fn seconds(time: u64) {
    thread::sleep(Duration::from_secs(time));
}

#[test]
#[ignore = "breaks a real line for 10 s; needs root"]
fn a_line_that_was_down_is_used_again_within_two_seconds() {
    let Some(lab) = Lab::new("l") else { return };
    let mut server = lab.serve();
    let pushes = lab.push(30);
    pushes.until_one_is_done();
    for down in [1, 10] {
        lab.link(false);
        seconds(down);
        let before = pushes.count("done");
        lab.link(true);
        let back = pushes.until_one_is_done();
        println!("down for {down} s: pushes are done again after {:.2} s", back.as_secs_f64());
        assert!(back < Duration::from_secs(2));
        assert!(before > 0);
    }
    let sums = pushes.check(&lab.journal);
    println!("{sums:?}");
    assert_eq!(sums.keys().collect::<Vec<_>>(), ["done"], "the line was back before any deadline");
    let _ = server.kill();
    let _ = server.wait();
}

#[test]
#[ignore = "drops real packets for 10 s; needs root"]
fn dropped_packets_cost_time_and_nothing_else() {
    let Some(lab) = Lab::new("d") else { return };
    let mut server = lab.serve();
    let pushes = lab.push(15);
    pushes.until_one_is_done();
    lab.drop_packets(100);
    seconds(10);
    lab.drop_packets(0);
    let back = pushes.until_one_is_done();
    assert!(back < Duration::from_secs(2), "{back:?}");
    let sums = pushes.check(&lab.journal);
    println!("{sums:?}");
    assert_eq!(sums.keys().collect::<Vec<_>>(), ["done"]);
    let _ = server.kill();
    let _ = server.wait();
}

#[test]
#[ignore = "kills processes; needs root"]
fn a_server_that_is_killed_is_another_when_it_comes_again() {
    let Some(lab) = Lab::new("k") else { return };
    let mut server = lab.serve();
    let pushes = lab.push(20);
    for round in 0..5 {
        pushes.until_one_is_done();
        thread::sleep(Duration::from_millis(300 + 100 * round));
        // SIGKILL reaches the program itself, since `ip netns exec` has replaced itself by it.
        server.kill().expect("it runs");
        server.wait().expect("it is a child");
        thread::sleep(Duration::from_millis(500 * round));
        server = lab.serve();
        let back = pushes.until_one_is_done();
        println!("killed: pushes are done again after {:.2} s", back.as_secs_f64());
        assert!(back < Duration::from_secs(2));
    }
    let sums = pushes.check(&lab.journal);
    println!("{sums:?}");
    let ends: Vec<&str> = sums.keys().map(String::as_str).collect();
    assert!(ends.iter().all(|end| matches!(*end, "done" | "unknown:NewIncarnation")), "{ends:?}");
    let _ = server.kill();
    let _ = server.wait();
}
