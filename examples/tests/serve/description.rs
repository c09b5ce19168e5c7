//! `GET /openapi.json`, and checks of answers against it.

use std::sync::LazyLock;

use serde_json::Value;

use crate::client::Reply;
use crate::{Scratch, Server};

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../src/commands/serve/openapi.json")).unwrap()
});

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "PATCH"];

/// Panics unless the description has this answer for this route.
pub fn check(method: &str, path: &str, reply: &Reply) {
    let path = path.split('?').next().unwrap();
    let template = match path.strip_prefix("/topics/") {
        Some(id) if !id.contains('/') => "/topics/{id}",
        _ => path,
    };
    let route = &DESCRIPTION["paths"][template][method.to_lowercase()];
    let media_type = reply.headers.get("content-type").map(|all| all.split(';').next().unwrap());
    if !route.is_object() {
        assert!([404, 405].contains(&reply.status), "{method} {path}: {}", reply.status);
        assert_eq!(media_type, Some("application/problem+json"));
        return conform(&DESCRIPTION["components"]["schemas"]["Problem"], &reply.json()).unwrap();
    }
    let response = resolve(&route["responses"][reply.status.to_string()]);
    let what =
        format!("{method} {path}: {} {:?}", reply.status, String::from_utf8_lossy(&reply.body));
    assert!(response.is_object(), "not described: {what}");
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let required = resolve(header)["required"] == true;
        assert!(!required || reply.headers.contains_key(&name.to_lowercase()), "{name}: {what}");
    }
    let Some(content) = response["content"].as_object() else {
        assert!(reply.body.is_empty(), "{what}");
        return;
    };
    let content = media_type.and_then(|media_type| content.get(media_type));
    let schema = &content.unwrap_or_else(|| panic!("{media_type:?}: {what}"))["schema"];
    if media_type.is_some_and(|media_type| media_type.ends_with("json")) {
        conform(schema, &reply.json()).unwrap_or_else(|wrong| panic!("{wrong} in {what}"));
    }
}

/// Resolves a reference.
fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => DESCRIPTION.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

/// Whether a value matches a schema, for the keywords that the description uses.
fn conform(schema: &'static Value, value: &Value) -> Result<(), String> {
    let schema = resolve(schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| conform(choice, value).is_ok()).count();
        if fitting != 1 {
            return Err(format!("{value} is {fitting} of {schema}"));
        }
    }
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    let is = match &schema["type"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(is_of),
        name => is_of(name),
    };
    let number = value.as_f64();
    let above = number.zip(schema["maximum"].as_f64()).is_some_and(|(x, most)| x > most);
    let below = number.zip(schema["minimum"].as_f64()).is_some_and(|(x, least)| x < least);
    if !is || above || below {
        return Err(format!("{value} is not {schema}"));
    }
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    if schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 > most) {
        return Err(format!("more items than {schema}"));
    }
    for item in items.iter().filter(|_| !schema["items"].is_null()) {
        conform(&schema["items"], item)?;
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match &schema["properties"][name] {
            Value::Null if schema["additionalProperties"] == false => {
                return Err(format!("{name} is not in {schema}"));
            }
            Value::Null => {}
            property => conform(property, member)?,
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    match required.map(|name| name.as_str().unwrap()).find(|&name| value[name].is_null()) {
        Some(name) => Err(format!("{name} is not in {value}")),
        None => Ok(()),
    }
}

#[test]
fn the_check_finds_violations() {
    let schema = |name: &str| &DESCRIPTION["components"]["schemas"][name];
    let answer = schema("DocumentTopics");
    let right = r#"{"tokens":1,"unknown":0,"topics":[{"topic":0,"share":0.5}]}"#;
    let valid = |text: &str| conform(answer, &serde_json::from_str(text).unwrap()).is_ok();
    assert!(valid(right));
    for (from, to) in [
        ("\"tokens\":1,", ""),
        ("\"tokens\":1", "\"tokens\":-1"),
        ("\"tokens\":1", "\"tokens\":1.5"),
        ("\"tokens\":1", "\"tokens\":1,\"more\":1"),
        ("0.5", "1.5"),
        ("0.5", "\"half\""),
        ("[{", "[1,{"),
    ] {
        assert!(!valid(&right.replace(from, to)), "{from} by {to}");
    }
}

/// A request is accepted if and only if the description allows it.
#[test]
fn requests_are_those_of_the_description() {
    let scratch = Scratch::new("requests");
    let server = Server::start(&scratch, "--max-documents 3");
    let served = server.get("/openapi.json").json();
    let limits = &served["components"]["schemas"]["InferRequest"]["properties"]["documents"];
    assert_eq!(limits["maxItems"], 3);
    let document = [
        (r#"{}"#, false),
        (r#"{"text":"tree"}"#, true),
        (r#"{"words":["tree"]}"#, true),
        (r#"{"ids":[0,4294967295]}"#, true),
        (r#"{"ids":[-1]}"#, false),
        (r#"{"ids":[1.0]}"#, true),
        (r#"{"ids":[1.5]}"#, false),
        (r#"{"ids":[4294967296]}"#, false),
        (r#"{"text":"tree","ids":null}"#, true),
        (r#"{"text":null,"ids":null}"#, false),
        (r#"{"text":"tree","words":[]}"#, false),
        (r#"{"text":["tree"]}"#, false),
        (r#"{"text":"tree","more":1}"#, false),
    ];
    let own = [
        (r#"{"documents":[]}"#.to_owned(), true),
        (r#"{"documents":[],"text":"tree"}"#.to_owned(), false),
        (r#"{"documents":[],"text":null}"#.to_owned(), true),
        (r#"{"text":"tree","top":null}"#.to_owned(), true),
        (r#"{"text":"tree","top":0}"#.to_owned(), false),
        (r#"{"text":"tree","top":1}"#.to_owned(), true),
        (r#"{"text":"tree","top":2.0}"#.to_owned(), true),
    ];
    let alone = document.map(|(body, fits)| (body.to_owned(), fits));
    let batch = document.map(|(body, fits)| (format!(r#"{{"documents":[{body}]}}"#), fits));
    let schema = &DESCRIPTION["components"]["schemas"]["InferRequest"];
    for (body, fits) in alone.into_iter().chain(batch).chain(own) {
        let body = serde_json::from_str(&body).unwrap();
        let described = conform(schema, &body);
        assert_eq!(described.is_ok(), fits, "{body}: {described:?}");
        let reply = server.post("/infer", &body);
        assert_eq!(reply.status == 200, fits, "{body}: {}", reply.status);
    }
    let similar = document.map(|(body, fits)| {
        (format!(r#"{{"document":{body},"documents":[{{"ids":[1]}}],"limit":null}}"#), fits)
    });
    let schema = &DESCRIPTION["components"]["schemas"]["SimilarRequest"];
    for (body, fits) in similar {
        let body = serde_json::from_str(&body).unwrap();
        let described = conform(schema, &body);
        assert_eq!(described.is_ok(), fits, "{body}: {described:?}");
        assert_eq!(server.post("/similar", &body).status == 200, fits, "{body}");
    }
}

#[test]
fn methods_are_those_of_the_description() {
    let scratch = Scratch::new("methods");
    let server = Server::start(&scratch, "");
    let served = server.get("/openapi.json");
    assert_eq!(served.json(), *DESCRIPTION);
    let mut connection = server.connect();
    for (path, methods) in DESCRIPTION["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "1");
        for method in METHODS {
            connection.request(method, &path, "", "");
            let reply = connection.receive(method, &path);
            let described = methods.get(method.to_lowercase()).is_some();
            assert_eq!(reply.status == 405, !described, "{method} {path}: {}", reply.status);
            assert!(reply.status != 405 || reply.code() == "no-method");
            let allowed = reply.headers.get("allow").is_some_and(|all| all.contains("GET"));
            assert_eq!(allowed, reply.status == 405 && methods.get("get").is_some(), "{path}");
        }
    }
    for path in ["/", "/infer/", "/topics/1/2", "/favicon.ico"] {
        let reply = connection.get(path);
        assert_eq!((reply.status, reply.code().as_str()), (404, "no-route"));
    }
}
