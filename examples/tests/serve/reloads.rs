//! Replacement of the model.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Files of two models, of 2 and of 3 topics; the first is in use.
fn models(scratch: &Scratch) -> [Vec<u8>; 2] {
    scratch.train("train.txt --topics 3 --seed 9 --save other.lda");
    ["m.lda", "other.lda"].map(|name| fs::read(scratch.path(name)).unwrap())
}

#[test]
fn a_reload_fails_no_request() {
    let scratch = Scratch::new("reload");
    let models = models(&scratch);
    let server = Server::start(&scratch, "--threads 2");
    let text = "tree leaf wave sea root tide sand";
    let body = json!({ "text": text }).to_string();
    // Answers of each model alone.
    let expected = [0, 1].map(|model| {
        scratch.write("alone.lda", &models[model]);
        scratch.infer("alone.lda -q", text)
    });
    assert_ne!(expected[0], expected[1]);
    let over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let client = || {
            let mut seen = BTreeSet::new();
            let mut connection = server.connect();
            let mut requests = 0;
            while !over.load(Ordering::Relaxed) {
                let reply = connection.post("/infer", &body);
                assert_eq!(reply.status, 200, "{}", reply.text());
                seen.insert((reply.headers["x-model"].clone(), reply.text()));
                requests += 1;
            }
            (seen, requests)
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        for turn in 1..=10 {
            scratch.replace("m.lda", &models[turn % 2]);
            server.signal("-HUP");
            server.logged("model loaded", turn + 1);
            let served = server.metric("lda_documents_total");
            wait_for("requests", || {
                (server.metric("lda_documents_total") > served + 20.0).then_some(())
            });
        }
        over.store(true, Ordering::Relaxed);
        let mut all = BTreeSet::new();
        for client in clients {
            let (seen, requests) = client.join().unwrap();
            assert!(requests > 20);
            all.extend(seen);
        }
        all
    });
    // Two models with one answer each.
    assert_eq!(seen.len(), 2, "{seen:?}");
    let prints: BTreeSet<_> = seen.iter().map(|(print, _)| print).collect();
    assert_eq!(prints.len(), 2);
    for (_, answer) in &seen {
        let first = serde_json::from_str::<Value>(answer).unwrap()["topics"][0].clone();
        let same = expected.iter().filter(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["topics"][0] == json!([first["topic"], first["share"]])
        });
        assert_eq!(same.count(), 1, "{answer}");
    }
    assert_eq!(server.metric("lda_model_loads_total{outcome=\"ok\"}"), 11.0);
    assert_eq!(server.metric("lda_http_requests_abandoned_total"), 0.0);
}

#[test]
fn a_request_keeps_its_model() {
    let scratch = Scratch::new("keep");
    let models = models(&scratch);
    let server = Server::start(&scratch, &format!("{SLOW} --timeout 600"));
    let old = server.get("/topics").headers["x-model"].clone();
    let mut slow = server.connect();
    slow.request("POST", "/infer", "", slow_document().to_string());
    server.wait_in_flight(1, 0);
    scratch.replace("m.lda", &models[1]);
    server.signal("-HUP");
    server.logged("model loaded", 2);
    let reply = slow.receive("POST", "/infer");
    assert_eq!((reply.status, &reply.headers["x-model"]), (200, &old));
    let topics = server.get("/topics");
    assert_ne!(topics.headers["x-model"], old);
    assert_eq!(topics.json()["num_topics"], 3);
    // The ETag of the old model does not match the new one.
    let mut connection = server.connect();
    connection.request("GET", "/topics", &format!("if-none-match: W/\"{old}\"\r\n"), "");
    assert_eq!(connection.receive("GET", "/topics").status, 200);
}

#[test]
fn a_failed_reload_changes_nothing() {
    let scratch = Scratch::new("broken");
    let models = models(&scratch);
    let server = Server::start(&scratch, "");
    let print = || server.get("/topics").headers["x-model"].clone();
    let old = print();
    let mut newer = models[1].clone();
    newer[17] ^= 0x40;
    let cut = &models[1][..models[1].len() / 2];
    let broken: [(&[u8], &str); 4] = [
        (b"no model", "it is not a file of this library"),
        (cut, "copy it again"),
        (&newer, "use a newer program"),
        (b"", "it is not a file of this library"),
    ];
    for (count, (content, what)) in broken.into_iter().enumerate() {
        scratch.replace("m.lda", content);
        server.signal("-HUP");
        let event = server.logged("reload failed; the current model stays", count + 1);
        let reason = event["reason"].as_str().unwrap();
        assert!(reason.contains("m.lda: ") && reason.contains(what), "{reason}");
        assert_eq!(event["level"], "ERROR");
        assert_eq!(print(), old);
        assert_eq!(server.infer(&json!({ "text": "tree" }))["tokens"], 1);
    }
    fs::remove_file(scratch.path("m.lda")).unwrap();
    server.signal("-HUP");
    server.logged("reload failed; the current model stays", 5);
    assert_eq!(server.metric("lda_model_loads_total{outcome=\"failed\"}"), 5.0);
    assert_eq!((print(), server.get("/readyz").status), (old.clone(), 200));
    scratch.replace("m.lda", &models[1]);
    server.signal("-HUP");
    server.logged("model loaded", 2);
    assert_ne!(print(), old);
}

#[test]
fn a_file_is_watched() {
    let scratch = Scratch::new("watch");
    let models = models(&scratch);
    for line in ["--watch 0.02", "--watch 0.02 --map"] {
        scratch.replace("m.lda", &models[0]);
        let server = Server::start(&scratch, line);
        let print = || server.get("/topics").headers["x-model"].clone();
        let old = print();
        scratch.replace("m.lda", &models[1]);
        wait_for("the new model", || (print() != old).then_some(()));
        scratch.replace("m.lda", "no model");
        server.logged("reload failed; the current model stays", 1);
        scratch.replace("m.lda", &models[0]);
        wait_for("the old model", || (print() == old).then_some(()));
        // The service checked often, and loaded only changed files.
        assert_eq!(server.metric("lda_model_loads_total{outcome=\"ok\"}"), 3.0);
        assert_eq!(server.metric("lda_model_loads_total{outcome=\"failed\"}"), 1.0);
        // Old models are dropped: idle threads were notified.
        if cfg!(target_os = "linux") {
            let maps = format!("/proc/{}/maps", server.child.id());
            wait_for("the end of replaced files", || {
                let maps = fs::read_to_string(&maps).unwrap();
                let held = maps.lines().filter(|line| line.contains("m.lda")).count();
                (held == usize::from(line.contains("--map")) && !maps.contains("(deleted)"))
                    .then_some(())
            });
        }
    }
}

#[test]
fn a_mapped_file_that_is_overwritten_is_noticed() {
    let scratch = Scratch::new("overwritten");
    let models = models(&scratch);
    let server = Server::start(&scratch, "--map");
    let body = json!({ "text": "tree" });
    assert_eq!(server.post("/infer", &body).status, 200);
    let file = fs::OpenOptions::new().write(true).open(scratch.path("m.lda")).unwrap();
    let mut file = std::io::BufWriter::new(file);
    file.write_all(&models[0][..100]).unwrap();
    file.flush().unwrap();
    for _ in 0..2 {
        let reply = server.post("/infer", &body);
        assert_eq!((reply.status, reply.code().as_str()), (503, "model-overwritten"));
        assert_eq!(server.get("/readyz").status, 503);
    }
    server.logged("the model file was changed in place: replace it, and reload", 1);
    scratch.replace("m.lda", &models[1]);
    server.signal("-HUP");
    server.logged("model loaded", 2);
    assert_eq!(server.post("/infer", &body).status, 200);
    // A file that was replaced may be anything.
    scratch.replace("m.lda", "no model");
    assert_eq!(server.post("/infer", &body).status, 200);
}

#[test]
fn a_pipe_in_the_place_of_the_model_is_refused() {
    let scratch = Scratch::new("pipe");
    let server = Server::start(&scratch, "");
    fs::remove_file(scratch.path("m.lda")).unwrap();
    let made = Command::new("mkfifo").arg(scratch.path("m.lda")).status().unwrap();
    assert!(made.success());
    for turn in 1..=2 {
        server.signal("-HUP");
        let event = server.logged("reload failed; the current model stays", turn);
        assert!(event["reason"].as_str().unwrap().contains("it is not a file"), "{event}");
    }
    assert_eq!(server.post("/infer", &json!({ "text": "tree" })).status, 200);
}
