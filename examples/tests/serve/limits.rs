//! Limits of the service.

use super::*;

fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{}", reply.text());
    assert_eq!(reply.headers.contains_key("retry-after"), [429, 503].contains(&status));
}

#[test]
fn bodies_are_bounded() {
    let scratch = Scratch::new("sizes");
    let server = Server::start(
        &scratch,
        "--max-body 300 --max-buffered 200 --max-documents 2 --max-tokens 5",
    );
    let spaces = |length: usize| format!("{{\"text\": \"{:length$}\"}}", "tree");
    assert_eq!(server.connect().post("/infer", spaces(180)).status, 200);
    refused(&server.connect().post("/infer", spaces(220)), 503, "full-buffers");
    // Rejected by its length before it arrives, and in chunks of unknown length.
    let mut connection = server.connect();
    connection.send("POST /infer HTTP/1.1\r\nhost: x\r\ncontent-length: 301\r\n\r\n");
    refused(&connection.receive("POST", "/infer"), 413, "long-body");
    let mut connection = server.connect();
    connection.send("POST /infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n12d\r\n");
    connection.send(" ".repeat(301) + "\r\n");
    refused(&connection.receive("POST", "/infer"), 413, "long-body");

    // The memory of each chunk is released.
    let mut connection = server.connect();
    connection.send("POST /infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for part in ["{\"text\":", "\"tree", "\"}"] {
        connection.send(format!("{:x}\r\n{part}\r\n", part.len()));
    }
    connection.send("0\r\n\r\n");
    assert_eq!(connection.receive("POST", "/infer").status, 200);

    let documents = |count| json!({ "documents": vec![json!({ "text": "tree sea" }); count] });
    assert_eq!(server.post("/infer", &documents(2)).status, 200);
    refused(&server.post("/infer", &documents(3)), 413, "many-documents");
    assert_eq!(server.post("/infer", &json!({ "text": "sea tree sea tree sea" })).status, 200);
    refused(
        &server.post("/infer", &json!({ "text": "sea tree sea tree sea x1" })),
        413,
        "many-tokens",
    );
    let both = json!({ "documents": [{ "ids": [0, 1, 2] }, { "words": ["sea", "sea", "sea"] }] });
    refused(&server.post("/infer", &both), 413, "many-tokens");
    let similar =
        json!({ "document": { "text": "" }, "documents": [{ "ids": [] }, { "ids": [] }] });
    refused(&server.post("/similar", &similar), 413, "many-documents");
    assert_eq!(server.metric("lda_buffered_bytes"), 0.0);
}

#[test]
fn a_full_queue_rejects_requests_and_answers_the_rest() {
    let scratch = Scratch::new("queue");
    let server = Server::start(&scratch, &format!("{SLOW} --queue 2 --per-client 9 --timeout 600"));
    let quick = json!({ "text": "tree" }).to_string();
    let mut slow = server.connect();
    slow.request("POST", "/infer", "", slow_document().to_string());
    server.wait_in_flight(1, 0);
    let mut waiting = [server.connect(), server.connect()];
    for connection in &mut waiting {
        connection.request("POST", "/infer", "", &quick);
    }
    server.wait_in_flight(3, 2);
    for _ in 0..3 {
        refused(&server.connect().post("/infer", &quick), 503, "full-queue");
    }
    refused(&server.get("/topics"), 503, "full-queue");
    // Requests without inference are not limited by the queue.
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(slow.receive("POST", "/infer").status, 200);
    for mut connection in waiting {
        assert_eq!(connection.receive("POST", "/infer").status, 200);
    }
    assert_eq!(server.connect().post("/infer", &quick).status, 200);
    let refusals = "lda_http_requests_total{route=\"/infer\",status=\"503\"}";
    assert_eq!(server.metric(refusals), 3.0);
}

#[test]
fn requests_per_client_are_bounded() {
    let scratch = Scratch::new("client");
    let server = Server::start(&scratch, &format!("{SLOW} --per-client 1 --timeout 600"));
    let mut slow = server.connect();
    slow.request("POST", "/infer", "", slow_document().to_string());
    server.wait_in_flight(1, 0);
    refused(&server.post("/infer", &json!({ "text": "tree" })), 429, "busy-client");
    refused(&server.get("/topics"), 429, "busy-client");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(slow.receive("POST", "/infer").status, 200);
    assert_eq!(server.post("/infer", &json!({ "text": "tree" })).status, 200);
}

#[test]
fn requests_time_out() {
    let scratch = Scratch::new("time");
    let server = Server::start(&scratch, &format!("{ENDLESS} --timeout 0.3"));
    let mut connection = server.connect();
    connection.send("POST /infer HTTP/1.1\r\nhost: x\r\ncontent-length: 30\r\n\r\n{\"text\"");
    refused(&connection.receive("POST", "/infer"), 408, "slow-body");
    assert_eq!(server.metric("lda_buffered_bytes"), 0.0);
    let documents = json!({ "documents": [{ "text": "tree" }, { "text": "sea" }] });
    refused(&server.post("/infer", &documents), 503, "out-of-time");
    // The thread cancels the request.
    wait_for("the thread", || (server.get("/topics").status == 200).then_some(()));
    assert_eq!(server.metric("lda_documents_total"), 0.0);
}

#[test]
fn requests_of_disconnected_clients_are_cancelled() {
    let scratch = Scratch::new("left");
    let server = Server::start(&scratch, &format!("{ENDLESS} --timeout 100"));
    let body = json!({ "text": "tree" }).to_string();
    let mut leavers = [server.connect(), server.connect()];
    leavers[0].request("POST", "/infer", "", &body);
    server.wait_in_flight(1, 0);
    // One request is in work and one is queued.
    leavers[1].request("POST", "/infer", "", &body);
    server.wait_in_flight(2, 1);
    drop(leavers);
    wait_for("the connections' end", || {
        (server.metric("lda_http_requests_abandoned_total") == 2.0).then_some(())
    });
    assert_eq!(server.get("/topics").status, 200);
    assert_eq!(server.metric("lda_documents_total"), 0.0);
}

#[test]
fn connections_are_bounded_and_time_out() {
    let scratch = Scratch::new("connections");
    let server = Server::start(&scratch, "--max-connections 1 --idle 3");
    let mut first = wait_for("a place", || {
        let mut connection = server.connect();
        connection.request("GET", "/healthz", "", "");
        connection.try_receive().ok().map(|_| connection)
    });
    let mut second = server.connect();
    second.request("GET", "/healthz", "", "");
    for _ in 0..20 {
        assert!(first.get("/metrics").text().contains("lda_http_connections 1\n"));
    }
    // The second connection takes the place of the first, which is closed.
    assert_eq!(second.receive("GET", "/healthz").status, 200);
    assert!(first.is_closed());
    // An incomplete head is not answered.
    second.send("GET /healthz HTTP/1.1\r\nhost");
    let late = second.try_receive();
    assert!(late.is_err() || late.is_ok_and(|reply| reply.status == 408));
    assert!(second.is_closed());
}

#[test]
fn connections_per_client_are_bounded() {
    let scratch = Scratch::new("per-client");
    let server = Server::start(&scratch, "--connections-per-client 2");
    // The connection of the wait for readiness may not have ended yet, and has one of the two places.
    let admitted = || {
        let mut connection = server.connect();
        connection.request("GET", "/healthz", "", "");
        connection.try_receive().ok().filter(|reply| reply.status == 200).map(|_| connection)
    };
    let held = [wait_for("a place", admitted), wait_for("a place", admitted)];
    let mut third = server.connect();
    third.request("GET", "/healthz", "", "");
    assert!(third.try_receive().is_err());
    drop(held);
    wait_for("a place", || {
        let mut connection = server.connect();
        connection.request("GET", "/healthz", "", "");
        connection.try_receive().ok()
    });
}

#[test]
fn health_checks_have_connections_of_their_own() {
    let scratch = Scratch::new("health");
    let line = "--max-connections 1 --idle 1000 --health-listen 127.0.0.1:0";
    let server = Server::begin(&scratch, &format!("m.lda {line}"));
    let health = server.logged("listening for health checks", 1);
    let address = health["address"].as_str().unwrap();
    let get = |path: &str| Connection::open(address).unwrap().get(path);
    wait_for("readiness", || (get("/readyz").status == 200).then_some(()));
    // It takes the only place and keeps it.
    let mut idle = server.connect();
    assert_eq!(idle.get("/topics").status, 200);
    assert_eq!(get("/healthz").status, 200);
    assert!(get("/metrics").text().contains("lda_answers_bytes 0\n"));
    // The other routes are for clients.
    let mut other = Connection::open(address).unwrap();
    other.request("GET", "/topics", "", "");
    assert_eq!(other.try_receive().unwrap().status, 404);
}

#[test]
fn clients_that_do_not_read_are_disconnected() {
    let scratch = Scratch::new("unread");
    let server = Server::start(&scratch, "--idle 1");
    let mut reader = server.connect();
    let mut unread = server.connect();
    let requests = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20_000);
    // The server reads no further once its answers wait, so this may wait too.
    let sent = std::thread::spawn(move || {
        unread.send(requests);
        unread
    });
    wait_for("the end of the connection", || {
        let text = reader.get("/metrics").text();
        text.contains("lda_http_connections 1\n").then_some(())
    });
    drop(sent.join().unwrap());
}

#[test]
fn answers_in_memory_are_bounded() {
    let scratch = Scratch::new("answers");
    let server = Server::start(&scratch, "--max-answers 300");
    let documents = |count| json!({ "documents": vec![json!({ "text": "tree sea" }); count] });
    assert_eq!(server.post("/infer", &documents(2)).status, 200);
    refused(&server.post("/infer", &documents(9)), 503, "full-answers");
    assert_eq!(server.post("/infer", &documents(2)).status, 200);
    wait_for("the room", || (server.metric("lda_answers_bytes") == 0.0).then_some(()));
}

#[test]
fn long_lists_do_not_take_memory() {
    let scratch = Scratch::new("lists");
    let server = Server::start(&scratch, "");
    let list = |item: &str| vec![item; (15 << 20) / (item.len() + 1)].join(",");
    for (body, code) in [
        (format!("{{\"documents\":[{}]}}", list("{}")), "many-documents"),
        (format!("{{\"words\":[{}]}}", list("\"\"")), "many-tokens"),
    ] {
        refused(&server.connect().post("/infer", body), 413, code);
        let memory = server.memory();
        // 16 MiB of the body, and 2 million words of 24 bytes; the documents alone would take 340 MB.
        assert!(memory < 160 << 20, "{code}: {memory}");
    }
}
