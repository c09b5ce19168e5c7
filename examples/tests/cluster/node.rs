//! Nodes as processes, over gRPC with certificates on both sides.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;

/// Files of an authority, and of certificates that it signed: each with its subject alternative names.
pub fn certificates(scratch: &Scratch, authority: &str, of: &[(&str, &[&str])]) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = KeyPair::generate().unwrap();
    fs::write(scratch.file(authority), params.self_signed(&own).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, own);
    for (file, names) in of {
        let pair = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let signed = CertificateParams::new(names).unwrap().signed_by(&pair, &issuer).unwrap();
        fs::write(scratch.file(&format!("{file}.pem")), signed.pem()).unwrap();
        fs::write(scratch.file(&format!("{file}.key")), pair.serialize_pem()).unwrap();
    }
}

/// The same for each node of a run, by its role and index.
fn certificates_of_nodes(scratch: &Scratch, authority: &str, prefix: &str) {
    let names = ALL.map(|(role, index)| format!("{role}-{index}"));
    let files = names.each_ref().map(|name| format!("{prefix}{name}"));
    let names = names.each_ref().map(|name| [&**name]);
    let of: Vec<_> =
        files.iter().map(|file| &**file).zip(names.iter().map(|names| &names[..])).collect();
    certificates(scratch, authority, &of);
}

/// Loopback addresses that are not in use, below the ports that systems give to connections: those
/// could be taken before the nodes listen.
fn addresses<const N: usize>() -> [String; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id().wrapping_mul(64);
    let free = || {
        let ports = (0..20_000).map(|_| NEXT.fetch_add(1, Relaxed));
        let mut ports = ports.map(|offset| 10_000 + process.wrapping_add(offset) % 20_000);
        let port = ports.find(|&port| TcpListener::bind(("127.0.0.1", port as u16)).is_ok());
        format!("127.0.0.1:{}", port.unwrap())
    };
    std::array::from_fn(|_| free())
}

/// Waits until the master has finished one more epoch: all nodes are connected then.
pub fn wait_for_an_epoch(scratch: &Scratch) {
    let length = || fs::metadata(scratch.file("epochs.jsonl")).map_or(0, |log| log.len());
    let (begun, before) = (Instant::now(), length());
    while length() <= before {
        assert!(begun.elapsed() < PATIENCE, "no epoch ends");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A run of a master, a server and two workers; `save` is the file of the model.
pub fn prepare(scratch: &Scratch, epochs: u32, more: &str) -> PathBuf {
    prepare_at(scratch, epochs, more, &addresses::<4>())
}

/// The same run with one worker or two, which pass topics on by storage.
pub fn prepare_elastic(scratch: &Scratch, epochs: u32) -> PathBuf {
    let more = "patience = 1.0\nmin-workers = 1\n[snapshots]\ndirectory = \"kept\"\nevery = 100\n";
    let config = prepare(scratch, epochs, more);
    // Few lines: they are read at the end.
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("[training]\n", "[training]\nevaluate-every = 200\n")).unwrap();
    config
}

/// The same run with nodes at these addresses, in this order.
pub fn prepare_at(scratch: &Scratch, epochs: u32, more: &str, nodes: &[String]) -> PathBuf {
    let path = scratch.file("articles.txt");
    documents(&path);
    let out = scratch.file("shards");
    let cut =
        program(&["cut", path.to_str().unwrap(), "--out", out.to_str().unwrap(), "--shards", "4"]);
    assert!(cut.status.success());
    certificates_of_nodes(scratch, "ca.pem", "");
    let [master, server, first, second] = nodes else { panic!("four nodes") };
    let config = scratch.file("run.toml");
    let text = format!(
        "documents = \"shards\"\nrun = \"test\"\n{more}\n\
         [training]\ntopics = 4\nalpha = 0.5\nepochs = {epochs}\nworkers = 2\n\
         save = \"model.lda\"\nlog = \"epochs.jsonl\"\n\
         [grpc]\nmaster = \"{master}\"\nservers = [\"{server}\"]\nworkers = [\"{first}\", \"{second}\"]\n\
         [grpc.tls]\nauthority = \"ca.pem\"\n\
         certificate = \"{{role}}-{{index}}.pem\"\nkey = \"{{role}}-{{index}}.key\"\n\
         name = \"{{role}}-{{index}}\"\n"
    );
    fs::write(&config, text).unwrap();
    config
}

/// A process that is killed when the test ends.
pub struct Node(pub Child);

impl Node {
    pub fn start(config: &Path, role: &str, index: &str) -> Self {
        Self::with(config, role, index, &[], Stdio::null())
    }

    fn with(config: &Path, role: &str, index: &str, more: &[&str], input: Stdio) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_lda"));
        Self::started(command, config, role, index, more, input)
    }

    /// The same in a network namespace.
    #[cfg(target_os = "linux")]
    pub fn within(space: &str, config: &Path, role: &str, index: &str) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", space, env!("CARGO_BIN_EXE_lda")]);
        Self::started(command, config, role, index, &[], Stdio::null())
    }

    fn started(
        mut command: Command,
        config: &Path,
        role: &str,
        index: &str,
        more: &[&str],
        input: Stdio,
    ) -> Self {
        command.args(["cluster", "node", "--config", config.to_str().unwrap(), "--role", role]);
        command.args(["--index", index]).args(more).stdin(input).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Sends a signal to the process.
    pub fn send(&self, signal: &str) {
        send(&self.0, signal);
    }

    /// Waits for the end; returns the exit status and the output.
    pub fn end(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it goes on");
            thread::sleep(Duration::from_millis(10));
        }
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn networked_nodes_write_the_model_of_one_process() {
    let scratch = Scratch::new("node");
    let config = prepare(&scratch, 30, "");
    // The nodes are started in any order.
    let nodes = [("worker", "1"), ("server", "0"), ("worker", "0"), ("master", "0")]
        .map(|(role, index)| Node::start(&config, role, index));
    for (node, role) in nodes.into_iter().zip(["worker 1", "server 0", "worker 0", "master 0"]) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
        // A node that started early may have warned that it cannot connect yet.
        assert!(said.lines().any(|line| line.starts_with(role)), "{said}");
        let tells = said.contains("epoch 30: log joint per token -");
        assert_eq!(tells, role == "master 0", "{said}");
    }
    let local = scratch.file("local.lda");
    let options = ["--shards", "4", "--workers", "3", "--save", local.to_str().unwrap()];
    assert!(cluster(&scratch.file("articles.txt"), &options).status.success());
    assert!(fs::read(&local).unwrap() == fs::read(scratch.file("model.lda")).unwrap());
}

/// All nodes have the same counts of the model, and those who cut the documents have its words.
#[test]
fn nodes_go_on_from_a_model() {
    let scratch = Scratch::new("going-on");
    let config = prepare(&scratch, 20, "[snapshots]\ndirectory = \"kept\"\n");
    let (path, more) = (scratch.file("articles.txt"), scratch.file("more.txt"));
    fs::write(&more, "ocean wave river boat\nforest root moss fern\n".repeat(9)).unwrap();
    let file = |name: &str| scratch.file(name).to_str().unwrap().to_owned();
    let first = file("first.lda");
    assert!(cluster(&path, &["--save", &first]).status.success());
    let text = fs::read_to_string(&config)
        .unwrap()
        .replace("topics = 4\nalpha = 0.5\n", "from = \"first.lda\"\n");
    fs::write(&config, text).unwrap();
    let cut = |from: &[&str]| {
        let out = file("shards");
        let given = ["cut", more.to_str().unwrap(), "--out", &out, "--shards", "4"];
        assert!(program(&[&given, from].concat()).status.success());
    };
    cut(&[]);
    let (status, said) = Node::start(&config, "server", "0").end();
    assert!(status == Some(2) && said.contains("6 words of the model are not among"), "{said}");
    cut(&["--from", &first]);
    let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    let local = file("local.lda");
    let options = ["--epochs", "20", "--shards", "4", "--from", &first, "--save", &local];
    let given = ["local", more.to_str().unwrap()];
    assert!(program(&[&given[..], &options].concat()).status.success());
    let model = scratch.file("model.lda");
    assert!(fs::read(&local).unwrap() == fs::read(&model).unwrap());
    // So has the model of a checkpoint.
    let saved = file("saved.lda");
    let of_checkpoint = ["model", "--config", config.to_str().unwrap(), "--out", &saved];
    assert!(program(&of_checkpoint).status.success());
    assert_eq!(size(Path::new(&saved)), size(&model));
}

#[test]
fn shards_go_to_workers_near_them() {
    let scratch = Scratch::new("near");
    let named =
        "lda-dist hosts 1\nshard 0 node-2\nshard 1 node-1 node-3\nshard 2 NODE-2\nshard 3 node-1\n";
    let of_addresses = "lda-dist hosts 1\nshard 0 127.0.0.1\nshard 1 127.0.0.1\nshard 2 127.0.0.1\nshard 3 elsewhere\n";
    for (locality, hosts, near) in [
        ("[locality]\nworkers = [\"node-1\", \"node-2\"]", named, "320 of 320 tokens are on the "),
        ("[locality]", of_addresses, "240 of 320 tokens are on the machines of their workers"),
    ] {
        let config = prepare(&scratch, 30, locality);
        fs::write(scratch.file("shards").join("hosts"), hosts).unwrap();
        let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
        for (node, (role, _)) in nodes.into_iter().zip(ALL) {
            let (status, said) = node.end();
            assert_eq!(status, Some(0), "{role}: {said}");
            assert_eq!(said.contains(near), role == "master", "{said}");
        }
        assert!(is_that_of_one_process(&scratch, 30));
    }
}

#[test]
fn without_certificates_nodes_stay_on_one_machine_and_need_the_token() {
    let scratch = Scratch::new("token");
    let config = prepare(&scratch, 10, "patience = 1.0");
    let text = fs::read_to_string(&config).unwrap();
    let (plain, _) = text.split_once("[grpc.tls]").unwrap();
    fs::write(scratch.file("run.token"), "a secret of this run\n").unwrap();
    fs::write(&config, format!("{plain}token-file = \"run.token\"\n")).unwrap();
    // A worker of another run, with another token, is kept out.
    let other = scratch.file("other.toml");
    fs::write(scratch.file("other.token"), "the secret of another\n").unwrap();
    fs::write(&other, format!("{plain}token-file = \"other.token\"\n")).unwrap();
    let elsewhere = ["--listen", "127.0.0.1:0"];
    let stranger = Node::with(&other, "worker", "1", &elsewhere, Stdio::null());
    let nodes = ALL.map(|(role, index)| Node::start(&config, role, index));
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, 10));
    drop(stranger);

    let start = |more: &str| {
        fs::write(&config, format!("{plain}{more}")).unwrap();
        Node::start(&config, "server", "0").end()
    };
    fs::write(scratch.file("run.token"), "short\n").unwrap();
    let (status, said) = start("token-file = \"run.token\"\n");
    assert!(
        status == Some(1) && said.contains("run.token: option token: the secret has 5"),
        "{said}"
    );
    let far = plain.replace("master = \"127.0.0.1:", "master = \"192.0.2.1:");
    fs::write(&config, far).unwrap();
    let (status, said) = Node::start(&config, "server", "0").end();
    assert!(status == Some(1) && said.contains("connects to 192.0.2.1:"), "{said}");
}

#[test]
fn a_list_has_the_addresses_of_nodes() {
    let scratch = Scratch::new("list");
    let config = prepare(&scratch, 30, "");
    let text = fs::read_to_string(&config).unwrap();
    let (before, rest) = text.split_once("[grpc]\n").unwrap();
    let (places, tls) = rest.split_once("[grpc.tls]").unwrap();
    fs::write(&config, format!("{before}[grpc.tls]{tls}")).unwrap();
    let places = places.split('"').skip(1).step_by(2).enumerate();
    let line = |(node, place): (usize, &str)| format!("{node} {place} {}\n", ALL[node].0);
    let list = scratch.file("nodes.txt");
    let start = |(role, index)| {
        Node::with(&config, role, index, &["--nodes", list.to_str().unwrap()], Stdio::null())
    };
    fs::write(&list, places.map(line).collect::<String>()).unwrap();
    for (node, (role, _)) in ALL.map(start).into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
    }
    assert!(is_that_of_one_process(&scratch, 30));
    // Neither a list nor addresses, and a list that is too short.
    let (status, said) = Node::start(&config, "server", "0").end();
    assert!(status == Some(2) && said.contains("no address of the master"), "{said}");
    fs::write(&list, "0 127.0.0.1:1\n1 127.0.0.1:2\n").unwrap();
    let (status, said) = start(("server", "0")).end();
    assert!(status == Some(2) && said.contains("nodes.txt: 2 nodes, with numbers up to"), "{said}");
}

#[test]
fn a_node_exits_when_its_input_closes() {
    let scratch = Scratch::new("input");
    let config = prepare(&scratch, 30, "");
    let is_other = |name: &std::ffi::OsStr| name != "epochs.jsonl";
    let entries = || fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name());
    let others = || entries().filter(|name| is_other(name)).count();
    let before = others();
    let mut master = Node::with(&config, "master", "0", &["--end-with-input"], Stdio::piped());
    let input = master.0.stdin.take().unwrap();
    let begun = Instant::now();
    // The temporary file of the model is next to its final path.
    while others() == before {
        assert!(begun.elapsed() < PATIENCE, "it does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
    assert!(master.0.try_wait().unwrap().is_none());
    drop(input);
    let (status, said) = master.end();
    assert!(status == Some(75) && said.contains("standard input has closed"), "{said}");
    assert_eq!(others(), before);
}

#[test]
fn nodes_exit_with_status_75_when_another_is_lost() {
    let scratch = Scratch::new("lost");
    let config = prepare(&scratch, 1_000_000, "");
    let nodes = [("master", "0"), ("server", "0"), ("worker", "0")]
        .map(|(role, index)| Node::start(&config, role, index));
    let mut lost = Node::start(&config, "worker", "1");
    wait_for_an_epoch(&scratch);
    lost.0.kill().unwrap();
    for (node, role) in nodes.into_iter().zip(["master", "server", "worker"]) {
        let (status, said) = node.end();
        assert_eq!(status, Some(75), "{role}: {said}");
        if role == "master" {
            assert!(said.contains("worker 1 has ended, for 0 s: see its log"), "{said}");
            assert!(
                said.contains("a new start of the run begins with the initial topics"),
                "{said}"
            );
        }
    }
    assert!(!scratch.file("model.lda").exists());
}

/// Power loss, a cut network and a frozen machine are the same for the others: no socket says so.
#[cfg(unix)]
#[test]
fn a_node_that_stops_answering_is_reported_and_given_up() {
    for frozen in [1, 3, 0] {
        let scratch = Scratch::new(&format!("frozen{frozen}"));
        let config = prepare(&scratch, 1_000_000, "patience = 6.0");
        let mut nodes: Vec<_> =
            ALL.into_iter().map(|(role, index)| Node::start(&config, role, index)).collect();
        wait_for_an_epoch(&scratch);
        let stopped = nodes.remove(frozen);
        send(&stopped.0, "STOP");
        let begun = Instant::now();
        let (role, index) = ALL[frozen];
        let name = if role == "master" { role.to_owned() } else { format!("{role} {index}") };
        for node in nodes {
            let (status, said) = node.end();
            assert_eq!(status, Some(75), "without {name}: {said}");
            // Nodes of the same role are not connected: they end because others do.
            if frozen != 3 || said.lines().any(|line| line == "master 0") {
                assert!(said.contains(&format!("{name} is not reached: ")), "{said}");
                assert!(said.contains("if it does not return\n"), "{said}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}

#[cfg(unix)]
#[test]
fn a_node_without_a_master_ends() {
    let scratch = Scratch::new("alone");
    let config = prepare(&scratch, 10, "patience = 6.0");
    let begun = Instant::now();
    let (status, said) = Node::start(&config, "worker", "0").end();
    assert_eq!(status, Some(75), "{said}");
    for what in ["for 5 s: the run ends ", "for 6 s: see its log, start it again\n"] {
        assert!(said.contains(&format!("master has not connected, {what}")), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    // A signal ends it at once.
    let node = Node::start(&config, "server", "0");
    thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    terminate(&node.0);
    let (status, said) = node.end();
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("stopped without the master, which has not connected"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Whether the model equals that of one process.
pub fn is_that_of_one_process(scratch: &Scratch, epochs: u32) -> bool {
    let (local, epochs) = (scratch.file("local.lda"), epochs.to_string());
    let more = ["--epochs", &epochs, "--shards", "4", "--save", local.to_str().unwrap()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
    command.arg("cluster");
    command.arg("local").arg(scratch.file("articles.txt"));
    command.args(["--topics", "4", "--alpha", "0.5"]).args(more);
    assert!(command.output().unwrap().status.success());
    fs::read(&local).unwrap() == fs::read(scratch.file("model.lda")).unwrap()
}

pub const ALL: [(&str, &str); 4] =
    [("master", "0"), ("server", "0"), ("worker", "0"), ("worker", "1")];

/// Otherwise the key of one node would be enough to take the place of all.
#[test]
fn a_node_with_the_certificate_of_another_is_rejected() {
    let scratch = Scratch::new("role");
    let config = prepare(&scratch, 30, "patience = 60.0");
    let text = fs::read_to_string(&config).unwrap();
    let stolen = scratch.file("stolen.toml");
    fs::write(&stolen, text.replace("\"{role}-{index}.", "\"server-0.")).unwrap();
    let mut nodes: Vec<_> =
        ALL[..3].iter().map(|(role, index)| Node::start(&config, role, index)).collect();
    let mut thief = Node::start(&stolen, "worker", "1");
    thread::sleep(Duration::from_secs(3));
    assert!(nodes.iter_mut().all(|node| node.0.try_wait().unwrap().is_none()), "the run waits");
    thief.0.kill().unwrap();
    thief.0.wait().unwrap();
    nodes.push(Node::start(&config, "worker", "1"));
    for (node, (role, _)) in nodes.into_iter().zip(ALL) {
        let (status, said) = node.end();
        assert_eq!(status, Some(0), "{role}: {said}");
        if role == "master" {
            assert!(said.contains("connection rejected") && said.contains("worker-1"), "{said}");
        }
    }
    assert!(is_that_of_one_process(&scratch, 30));
    // Without names, certificates of the same host do not tell nodes apart.
    fs::write(&config, text.replace("name = ", "# name = ")).unwrap();
    let (status, said) = Node::start(&config, "master", "0").end();
    assert!(status == Some(2) && said.contains("have the host 127.0.0.1, so each could"), "{said}");
}

#[test]
fn a_node_of_another_authority_is_rejected() {
    let scratch = Scratch::new("stranger");
    let config = prepare(&scratch, 30, "");
    let master = Node::start(&config, "master", "0");
    certificates_of_nodes(&scratch, "other-ca.pem", "other-");
    let other = scratch.file("other.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text
        .replace("\"ca.pem", "\"other-ca.pem")
        .replace("\"{role}-{index}.", "\"other-{role}-{index}.");
    fs::write(&other, text).unwrap();
    let others = [("server", "0"), ("worker", "0"), ("worker", "1")]
        .map(|(role, index)| Node::start(&other, role, index));
    thread::sleep(Duration::from_secs(2));
    // These nodes wait for a master that they trust, and report the reason.
    for mut node in others {
        assert!(node.0.try_wait().unwrap().is_none());
        node.0.kill().unwrap();
        let (_, said) = node.end();
        assert!(said.contains("certificate"), "{said}");
    }
    // The master also reports each rejected peer.
    let mut master = master;
    master.0.kill().unwrap();
    let (_, said) = master.end();
    assert!(said.contains("connection rejected"), "{said}");
    assert!(!scratch.file("model.lda").exists());
}
