//! Shutdown of the service.

use super::*;

#[test]
fn requests_in_flight_are_answered() {
    let scratch = Scratch::new("end");
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&scratch, &format!("{SLOW} --grace 600 --timeout 600"));
        let mut idle = server.connect();
        assert_eq!(idle.get("/healthz").status, 200);
        let mut slow = server.connect();
        slow.request("POST", "/infer", "", slow_document().to_string());
        server.wait_in_flight(1, 0);
        server.signal(signal);
        server.logged("shutting down", 1);
        wait_for("no new connections", || Connection::open(&server.address).is_err().then_some(()));
        assert!(idle.is_closed());
        let reply = slow.receive("POST", "/infer");
        assert_eq!((reply.status, reply.json()["tokens"].as_u64()), (200, Some(4000)));
        assert_eq!(reply.headers["connection"], "close");
        assert!(slow.is_closed());
        let (status, log) = server.wait();
        assert_eq!(status.code(), Some(0), "{log:?}");
        assert_eq!(log.last().unwrap()["message"], "stopped");
        // Every line of the log is JSON.
        assert!(log.iter().all(|event| event["level"].is_string()), "{log:?}");
    }
}

#[test]
fn readiness_ends_before_connections_close() {
    let scratch = Scratch::new("drain");
    let server = Server::start(&scratch, "--drain 600");
    server.signal("-TERM");
    let reply = wait_for("the end", || {
        let reply = server.get("/readyz");
        (reply.status == 503).then_some(reply)
    });
    assert_eq!(reply.code(), "ending");
    // Balancers send requests until they have seen the 503.
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.infer(&json!({ "text": "tree" }))["tokens"], 1);
    server.signal("-TERM");
    assert_eq!(server.wait().0.code(), Some(0));
}

#[test]
fn the_service_is_not_ready_while_the_model_is_loaded() {
    let scratch = Scratch::new("loading");
    // A pipe without a writer: the model is being loaded as long as the test likes.
    let made = Command::new("mkfifo").arg(scratch.path("pipe.lda")).status().unwrap();
    assert!(made.success());
    let server = Server::begin(&scratch, "pipe.lda");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.metric("lda_model_loads_total{outcome=\"ok\"}"), 0.0);
    let replies = [
        server.get("/readyz"),
        server.get("/topics"),
        server.post("/infer", &json!({ "text": "tree" })),
    ];
    for reply in replies {
        assert_eq!((reply.status, reply.code().as_str()), (503, "loading"));
        assert_eq!(reply.headers["retry-after"], "1");
    }
    server.signal("-TERM");
    assert_eq!(server.wait().0.code(), Some(0));
}

#[test]
fn shutdown_is_bounded_by_the_grace_period() {
    let scratch = Scratch::new("grace");
    for (line, signals) in [("--grace 0.1", 1), ("--grace 600", 2)] {
        let server = Server::start(&scratch, &format!("{ENDLESS} --timeout 600 {line}"));
        let mut slow = server.connect();
        slow.request("POST", "/infer", "", json!({ "text": "tree" }).to_string());
        server.wait_in_flight(1, 0);
        for count in 0..signals {
            server.signal("-TERM");
            if count == 0 {
                server.logged("shutting down", 1);
                wait_for("the end", || Connection::open(&server.address).is_err().then_some(()));
            }
        }
        let (status, log) = server.wait();
        assert_eq!(status.code(), Some(1), "{log:?}");
        let reason = log.last().unwrap()["reason"].as_str().unwrap();
        assert!(reason.starts_with("1 requests were aborted"), "{log:?}");
        assert!(slow.try_receive().is_err());
    }
    // A connection without a request does not count as aborted.
    let server = Server::start(&scratch, "--grace 0.1");
    let mut half = server.connect();
    half.send("GET /healthz HTTP/1.1\r\nhost");
    wait_for("two connections", || (server.metric("lda_http_connections") == 2.0).then_some(()));
    server.signal("-TERM");
    assert_eq!(server.wait().0.code(), Some(0));
}

#[test]
fn the_log_can_be_plain_text() {
    let scratch = Scratch::new("text");
    let mut command = scratch.command("m.lda --listen 127.0.0.1:0 --log text --log-level info");
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("model loaded")).unwrap();
    assert!(line.contains("INFO") && line.contains("topics=2"), "{line}");
    let process = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert!(lines.any(|line| line.contains("stopped")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
