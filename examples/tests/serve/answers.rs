//! Requests that succeed.

use super::*;

const TEXTS: [&str; 7] = [
    "forest sea branch wave root sand leaf tide tree ocean forest root tide ocean",
    "wave tree ocean leaf sand branch sea root tide forest tree leaf",
    "Tree, leaf and root",
    "WAVES of the sea: wave tide, a tree; sand\u{2019}s wave 12",
    "nothing known here",
    "",
    "sea sea sea leaf \u{4e2d} na\u{ef}ve root tide tree branch",
];

/// An answer in the format of `lda infer`.
fn as_infer_writes(number: usize, answer: &str) -> String {
    let pairs = answer
        .replace("{\"topic\":", "[")
        .replace(",\"share\":", ",")
        .replace("},", "],")
        .replace("}]", "]]");
    pairs.replacen('{', &format!("{{\"document\":{number},"), 1)
}

#[test]
fn answers_are_those_of_infer_byte_by_byte() {
    let scratch = Scratch::new("bytes");
    // Topics that share words: the order of words then matters to RT-LDA without sweeps.
    scratch.train("train.txt --topics 6 --save m.lda");
    let lines = TEXTS.join("\n") + "\n";
    for options in [
        "--method fold-in --seed 7",
        "--samples 3 --burn-in 1",
        "--method rt --sweeps 0",
        "--method variational",
    ] {
        let expected = scratch.infer(&format!("m.lda -q {options}"), &lines);
        let expected: Vec<&str> = expected.lines().collect();
        let server = Server::start(&scratch, &format!("{options} --threads 2"));
        let mut connection = server.connect();
        for (number, text) in TEXTS.iter().enumerate() {
            let reply = connection.post("/infer", json!({ "text": text }).to_string());
            assert_eq!(as_infer_writes(number, &reply.text()), expected[number], "{options}");
        }
        let documents: Vec<Value> = TEXTS.iter().map(|text| json!({ "text": text })).collect();
        let batch = connection.post("/infer", json!({ "documents": documents }).to_string());
        let single = |text: &&str| connection.post("/infer", json!({ "text": text }).to_string());
        let singles: Vec<String> = TEXTS.iter().map(single).map(|reply| reply.text()).collect();
        assert_eq!(batch.text(), format!("{{\"documents\":[{}]}}", singles.join(",")));
    }
}

#[test]
fn documents_have_three_forms() {
    let scratch = Scratch::new("forms");
    let server = Server::start(&scratch, "");
    let topics = server.get("/topics").json();
    let terms = topics["topics"].as_array().unwrap().iter().flat_map(|t| t["terms"].as_array());
    let terms: Vec<&Value> = terms.flatten().collect();
    let id = |word: &str| &terms.iter().find(|term| term["word"] == word).unwrap()["id"];
    let text = server.infer(&json!({ "text": "Sea, wave, sea; a desert" }));
    assert_eq!((&text["tokens"], &text["unknown"]), (&json!(3), &json!(1)));
    let ids = [id("wave"), id("sea"), &json!(4_000_000_000u32), id("sea")];
    assert_eq!(server.infer(&json!({ "ids": ids })), text);
    let words = ["sea", "Wave", "sea", "wave"];
    assert_eq!(server.infer(&json!({ "words": words })), text);
    let batch = json!({ "documents": [{ "ids": ids }, { "words": words }, { "text": "tree" }] });
    let batch = server.infer(&batch);
    let first = text["topics"][0]["topic"].as_u64().unwrap();
    assert_eq!(batch["documents"][0], text);
    assert_eq!(batch["documents"][1], text);
    assert_eq!(batch["documents"][2]["topics"][0]["topic"], 1 - first);
    assert_eq!(server.infer(&json!({ "documents": [] })), json!({ "documents": [] }));
    let mixed = json!({ "text": "sea sea sea tree tree" });
    assert_eq!(server.infer(&mixed)["topics"].as_array().unwrap().len(), 2);
    let top = json!({ "text": "sea sea sea tree tree", "top": 1 });
    assert_eq!(server.infer(&top)["topics"].as_array().unwrap().len(), 1);
}

#[test]
fn documents_without_words_and_with_a_million_are_answered() {
    let scratch = Scratch::new("lengths");
    let server = Server::start(&scratch, "--timeout 600");
    let empty = json!({ "tokens": 0, "unknown": 0, "topics": [] });
    for body in [json!({ "text": "" }), json!({ "ids": [] }), json!({ "words": [] })] {
        assert_eq!(server.infer(&body), empty);
    }
    assert_eq!(server.infer(&json!({ "text": "and of the" })), empty);
    let strangers = server.infer(&json!({ "text": "quark gluon" }));
    assert_eq!(strangers, json!({ "tokens": 0, "unknown": 2, "topics": [] }));
    let words = ["tree", "sea", "leaf", "stranger", "wave", "root", "tide", "forest"];
    let long: Vec<&str> = (0..1_000_000).map(|i| words[i * i % 31 % 8]).collect();
    let long = long.join(" ");
    let expected = scratch.infer("m.lda -q", &long);
    let reply = server.post("/infer", &json!({ "text": long }));
    assert_eq!(as_infer_writes(0, &reply.text()), expected.trim_end());
    let (tokens, unknown) = (reply.json()["tokens"].as_u64(), reply.json()["unknown"].as_u64());
    assert_eq!(tokens.unwrap() + unknown.unwrap(), 1_000_000);
}

#[test]
fn topics_are_shown() {
    let scratch = Scratch::new("topics");
    let server = Server::start(&scratch, "--max-terms 4");
    let all = server.get("/topics?terms=4");
    let topics = all.json();
    assert_eq!(topics["num_topics"], 2);
    let tokens: u64 =
        topics["topics"].as_array().unwrap().iter().map(|t| t["tokens"].as_u64().unwrap()).sum();
    assert_eq!(tokens, 320);
    for (number, topic) in topics["topics"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&topic["topic"], &topic["alpha"]), (&number.into(), &json!(0.1)));
        let terms = topic["terms"].as_array().unwrap();
        let probability = |term: &Value| term["probability"].as_f64().unwrap();
        assert_eq!(terms.len(), 4);
        assert!(terms.is_sorted_by(|a, b| probability(a) >= probability(b)), "{topic}");
        assert!(probability(&terms[3]) > 0.1, "{topic}");
        let one = server.get(&format!("/topics/{number}?terms=2")).json();
        assert_eq!(one["terms"].as_array().unwrap()[..], terms[..2]);
        assert_eq!(
            server.get(&format!("/topics?offset={number}&limit=1&terms=4")).json()["topics"],
            json!([topic])
        );
    }
    assert_eq!(server.get("/topics?offset=2").json()["topics"], json!([]));
    // A client that has the answer gets 304.
    let tag = &all.headers["etag"];
    assert!(tag.contains(&all.headers["x-model"]));
    for path in ["/topics", "/topics/1", "/similar?topic=0"] {
        for (tag, status) in [(tag.as_str(), 304), ("\"other\"", 200), ("*", 304)] {
            let mut connection = server.connect();
            connection.request("GET", path, &format!("if-none-match: {tag}\r\n"), "");
            assert_eq!(connection.receive("GET", path).status, status, "{path} {tag}");
        }
    }
}

#[test]
fn neighbours_are_found() {
    let scratch = Scratch::new("similar");
    scratch.train("train.txt --topics 5 --save m.lda");
    let server = Server::start(&scratch, "");
    let nearest = server.get("/similar?topic=3").json();
    let topics = nearest["topics"].as_array().unwrap();
    let distance = |item: &Value| item["distance"].as_f64().unwrap();
    assert!(topics.is_sorted_by_key(distance), "{nearest}");
    let mut numbers: Vec<_> = topics.iter().map(|t| t["topic"].as_u64().unwrap()).collect();
    for &number in &numbers {
        let back = server.get(&format!("/similar?topic={number}")).json();
        let back = back["topics"].as_array().unwrap().iter().find(|t| t["topic"] == 3).unwrap();
        let there = topics.iter().find(|t| t["topic"] == number).unwrap();
        assert!((distance(back) - distance(there)).abs() < 1e-9, "{back} {there}");
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 4]);
    assert_eq!(server.get("/similar?topic=3&limit=2").json()["topics"], json!(topics[..2]));

    let text = |text: &str| json!({ "text": text });
    let others =
        [text("sea wave tide sea"), text("tree leaf root tree"), text("stranger"), text("")];
    let body = json!({ "document": text("leaf root branch tree"), "documents": others });
    let similar = server.post("/similar", &body).json();
    let similar = similar["documents"].as_array().unwrap();
    let order: Vec<_> = similar.iter().map(|d| d["document"].as_u64().unwrap()).collect();
    assert_eq!((order[0], order.len()), (1, 4));
    let at = |number: u64| distance(similar.iter().find(|d| d["document"] == number).unwrap());
    assert_eq!(at(2), at(3));
    assert!(at(1) < at(2) && at(2) < at(0), "{similar:?}");
    let mut body = body;
    body["limit"] = json!(1);
    body["documents"][0] = body["document"].clone();
    let same = server.post("/similar", &body).json();
    assert_eq!(same, json!({ "documents": [{ "document": 0, "distance": 0.0 }] }));
}

#[test]
fn connections_are_kept_and_requests_pipelined() {
    let scratch = Scratch::new("pipeline");
    let server = Server::start(&scratch, "");
    let mut connection = server.connect();
    let texts = ["tree", "sea sea", "", "leaf stranger"];
    for text in texts {
        connection.request("POST", "/infer", "", json!({ "text": text }).to_string());
    }
    connection.request("GET", "/healthz", "", "");
    let expected = texts.map(|text| server.infer(&json!({ "text": text })));
    for expected in expected {
        assert_eq!(connection.receive("POST", "/infer").json(), expected);
    }
    assert_eq!(connection.receive("GET", "/healthz").text(), "ok\n");
    // A body in chunks.
    connection.send("POST /infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for part in ["{\"text\":", "\"tree", "\"}"] {
        connection.send(format!("{:x}\r\n{part}\r\n", part.len()));
    }
    connection.send("0\r\n\r\n");
    assert_eq!(
        connection.receive("POST", "/infer").json(),
        server.infer(&json!({ "text": "tree" }))
    );
    connection.request("GET", "/healthz", "connection: close\r\n", "");
    assert_eq!(connection.receive("GET", "/healthz").status, 200);
    assert!(connection.is_closed());
}

#[test]
fn metrics_add_up() {
    let scratch = Scratch::new("figures");
    let server = Server::start(&scratch, "");
    server.infer(&json!({ "documents": [{ "text": "tree stranger" }, { "text": "sea wave" }] }));
    server.post("/infer", &json!({ "txt": "tree" }));
    server.get("/nowhere");
    let reply = server.get("/metrics");
    let text = reply.text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    for (name, value) in [
        ("lda_documents_total", 2.0),
        ("lda_tokens_total", 3.0),
        ("lda_unknown_tokens_total", 1.0),
        ("lda_http_requests_total{route=\"/infer\",status=\"200\"}", 1.0),
        ("lda_http_requests_total{route=\"/infer\",status=\"422\"}", 1.0),
        ("lda_http_requests_total{route=\"none\",status=\"404\"}", 1.0),
        ("lda_http_request_duration_seconds_count{route=\"/infer\"}", 2.0),
        ("lda_model_loads_total{outcome=\"ok\"}", 1.0),
        ("lda_http_requests_abandoned_total", 0.0),
    ] {
        assert_eq!(server.metric(name), value, "{name}");
    }
    let print = &server.get("/topics").headers["x-model"];
    let info = format!("fingerprint=\"{print}\",method=\"fold-in\",topics=\"2\",words=\"10\"");
    assert_eq!(server.metric(&format!("lda_model_info{{{info}}}")), 1.0);
    wait_for("connections to be gone", || {
        (server.metric("lda_http_connections") == 1.0).then_some(())
    });
}

#[test]
fn texts_are_cut_as_those_of_the_training() {
    let scratch = Scratch::new("rules");
    scratch.write("codes.txt", "K9 A-1\nB-2 A-1\nK9 B-2\n".repeat(8));
    scratch.train("codes.txt --topics 2 --words whitespace --keep-case --save m.lda");
    let server = Server::start(&scratch, "");
    let body = json!({ "text": "K9 k9 A-1" });
    let answer = server.infer(&body);
    assert_eq!((&answer["tokens"], &answer["unknown"]), (&2.into(), &1.into()));
    // A model of other rules brings them with it: k9, k9 and 1.
    scratch.train("codes.txt --topics 2 --numbers --min-length 1 --save other.lda");
    scratch.replace("m.lda", std::fs::read(scratch.path("other.lda")).unwrap());
    server.signal("-HUP");
    wait_for("the other rules", || {
        let answer = server.infer(&body);
        (answer["tokens"] == 3).then_some(())
    });
}

#[test]
fn the_model_and_its_options_are_described() {
    let scratch = Scratch::new("described");
    let server = Server::start(&scratch, "--method variational --seed 7 --numbers");
    let reply = server.get("/model");
    let model = reply.json();
    assert_eq!(model["fingerprint"], reply.headers["x-model"]);
    assert_eq!(
        (&model["topics"], &model["words"], &model["seed"]),
        (&2.into(), &10.into(), &7.into())
    );
    assert_eq!((&model["counts"], &model["vocabulary"]), (&true.into(), &true.into()));
    assert_eq!(model["inference"]["method"], "variational");
    assert_eq!(model["inference"]["iterations"], 100);
    assert_eq!(model["tokenizer"]["numbers"], true);
    assert_eq!(model["training"]["seed"], "0");
}
