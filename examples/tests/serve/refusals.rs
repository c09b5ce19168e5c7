//! Rejected requests and models.

use super::*;

#[test]
fn errors_in_a_body_are_reported() {
    let scratch = Scratch::new("bodies");
    let server = Server::start(&scratch, "");
    let deep = |open: &str| format!("{{\"documents\":{}", open.repeat(100_000));
    let text = |text: &str| text.to_owned();
    for (body, status, code, what) in [
        (text(""), 400, "no-json", "EOF"),
        (text("tree"), 400, "no-json", "line 1 column"),
        (text("{\"text\": \"tree\"} more"), 400, "no-json", "trailing"),
        (text("{\"ids\": [NaN]}"), 400, "no-json", "expected value"),
        (text("{\"ids\": [1e999]}"), 400, "no-json", "out of range"),
        (text("{\"text\": \"tr\\ud800ee\"}"), 400, "no-json", "hex escape"),
        (text("{}"), 422, "invalid-request", "`documents`"),
        (text("null"), 422, "invalid-request", "expected an object"),
        (text("[\"tree\"]"), 422, "invalid-request", "expected an object"),
        (text("{\"txt\": \"tree\"}"), 422, "invalid-request", "unknown field `txt`"),
        (text("{\"text\": 1}"), 422, "invalid-request", "expected a string"),
        (text("{\"text\": \"a\", \"text\": \"b\"}"), 422, "invalid-request", "duplicate field"),
        (text("{\"text\": \"a\", \"ids\": []}"), 422, "invalid-request", "give one of"),
        (text("{\"text\": \"a\", \"documents\": []}"), 422, "invalid-request", "give one of"),
        (text("{\"text\": \"a\", \"top\": 0}"), 422, "invalid-request", "number from 1 to"),
        (text("{\"ids\": [-1]}"), 422, "invalid-request", "-1"),
        (text("{\"ids\": [1.5]}"), 422, "invalid-request", "1.5"),
        (text("{\"ids\": [4294967296]}"), 422, "invalid-request", "4294967296"),
        (text("{\"ids\": [\"1\"]}"), 422, "invalid-request", "number from 0 to"),
        (text("{\"documents\": [{}]}"), 422, "invalid-request", "give each document one"),
        (text("{\"documents\": [[\"a\"]]}"), 422, "invalid-request", "expected an object"),
        (text("{\"documents\": [{\"top\": 1}]}"), 422, "invalid-request", "unknown field `top`"),
        (deep("["), 422, "invalid-request", "expected an object"),
        (deep("[{\"text\":"), 422, "invalid-request", "expected a string"),
        (deep("[{\"documents\":"), 422, "invalid-request", "unknown field `documents`"),
    ] {
        let reply = server.connect().post("/infer", &body);
        let start = &body[..body.len().min(50)];
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{start}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(what), "{start}: {detail}");
        assert_eq!(reply.json()["status"], status);
    }
    let invalid = server.connect().post("/infer", b"{\"text\": \"\xff\"}");
    assert_eq!((invalid.status, invalid.code().as_str()), (400, "no-json"));
    for body in ["{\"document\": {}, \"documents\": []}", "{\"document\": {\"text\": \"a\"}}"] {
        assert_eq!(server.connect().post("/similar", body).status, 422, "{body}");
    }
    // The service still works.
    assert_eq!(server.infer(&json!({ "text": "tree" }))["tokens"], 1);
}

#[test]
fn arbitrary_bytes_are_survived() {
    let scratch = Scratch::new("bytes-at-random");
    let server = Server::start(&scratch, "--method rt --max-tokens 100 --max-documents 3");
    let seeds = [
        r#"{"documents": [{"text": "tree \u00e4 sea"}, {"ids": [0, 1, 2]}, {"words": ["tree"]}], "top": 2}"#,
        r#"{"document": {"ids": [3, 4294967295]}, "documents": [{"text": ""}], "limit": 1}"#,
    ];
    // Knuth's multiplier; the upper bits are random enough.
    let mut state = 1u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % limit
    };
    let mut connection = server.connect();
    let mut answered = [0; 2];
    for turn in 0..3000 {
        let mut body = seeds[turn % 2].as_bytes().to_vec();
        for _ in 0..below(4) {
            let at = below(body.len());
            match below(4) {
                0 => body[at] = below(256) as u8,
                1 => body.truncate(at + 1),
                2 => drop(body.remove(at)),
                _ => {
                    let from = below(body.len());
                    body.insert(at, body[from]);
                }
            }
        }
        let reply = connection.post(["/infer", "/similar"][turn % 2], body);
        assert!([200, 400, 413, 422].contains(&reply.status), "{}", reply.text());
        answered[usize::from(reply.status == 200)] += 1;
    }
    assert!(answered.iter().all(|&count| count > 500), "{answered:?}");
}

#[test]
fn errors_in_a_query_are_reported() {
    let scratch = Scratch::new("queries");
    let server = Server::start(&scratch, "--max-terms 20");
    for (path, status, code, what) in [
        ("/topics/2", 404, "no-topic", "topics of this model are 0 to 1"),
        ("/topics/-1", 404, "no-topic", "\"-1\""),
        ("/topics/99999999999999999999", 404, "no-topic", "99999999999999999999"),
        ("/topics/tree", 404, "no-topic", "\"tree\""),
        ("/topics/1%ff", 404, "no-route", "no such route"),
        ("/similar?topic=2", 404, "no-topic", "\"2\""),
        ("/similar", 422, "invalid-query", "topic"),
        ("/similar?topic=0&limit=0", 422, "invalid-query", "nonzero"),
        ("/topics?terms=21", 422, "invalid-query", "give at most 20"),
        ("/topics/0?terms=21", 422, "invalid-query", "give at most 20"),
        ("/topics?limit=1001", 422, "invalid-query", "give at most 1000"),
        ("/topics?terms=-1", 422, "invalid-query", "terms"),
        ("/topics?term=5", 422, "invalid-query", "term"),
        ("/topics?terms=1&terms=2", 422, "invalid-query", "terms"),
    ] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{path}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(what), "{path}: {detail}");
    }
}

#[test]
fn a_model_without_a_vocabulary_takes_ids() {
    let scratch = Scratch::new("nameless");
    scratch.write("train.ldac", "2 0:5 1:4\n2 2:5 3:4\n2 0:3 1:7\n2 2:3 3:7\n");
    scratch.train("train.ldac --format ldac --topics 2 --save m.lda");
    let server = Server::start(&scratch, "");
    assert_eq!(server.infer(&json!({ "ids": [0, 1, 9] }))["tokens"], 2);
    assert!(server.get("/topics/0").json()["terms"][0].get("word").is_none());
    for body in [json!({ "text": "tree" }), json!({ "words": ["tree"] })] {
        let reply = server.post("/infer", &body);
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid-request"));
        assert!(reply.text().contains("the model has no vocabulary: give `ids`"));
    }
}

#[test]
fn files_that_are_not_models_are_refused() {
    let scratch = Scratch::new("models");
    let model = fs::read(scratch.path("m.lda")).unwrap();
    scratch.write("foreign.lda", "no model");
    scratch.write("empty.lda", "");
    scratch.write("cut.lda", &model[..model.len() - 1]);
    let changed = |at: usize| {
        let mut model = model.clone();
        model[at] ^= 0x40;
        model
    };
    scratch.write("damaged.lda", changed(model.len() - 1));
    scratch.write("newer.lda", changed(17));
    for map in ["", " --map"] {
        for (line, status, what) in [
            ("none.lda", 1, "none.lda: "),
            ("foreign.lda", 1, "foreign.lda: it is not a file of this library"),
            ("empty.lda", 1, "it is not a file of this library"),
            ("cut.lda", 1, "copy it again"),
            ("damaged.lda", 1, "word-names is damaged"),
            ("newer.lda", 1, "use a newer program"),
            ("m.lda --stop-words none.txt", 1, "none.txt"),
            ("m.lda --listen 127.0.0.1:65536", 1, "give another address"),
            ("m.lda --queue 0", 2, "give a whole number above 0"),
            ("m.lda --method guess", 2, "guess"),
            ("", 2, "MODEL"),
        ] {
            let listen = if line.contains("--listen") { "" } else { " --listen 127.0.0.1:0" };
            let (log, found) = scratch.fail(&format!("{line}{listen}{map}"));
            assert_eq!(found, Some(status), "{line}: {log}");
            assert!(log.contains(what) && !log.contains("panicked"), "{line}: {log}");
        }
    }
}
