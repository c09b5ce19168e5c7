//! A headless browser, driven by the WebDriver protocol: JSON over HTTP, one request per
//! connection. Only the parts that the tests need.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Key of an element's id in JSON of the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub const RIGHT: char = '\u{e014}';
pub const LEFT: char = '\u{e012}';
pub const DOWN: char = '\u{e015}';
pub const ENTER: char = '\u{e007}';
pub const ESCAPE: char = '\u{e00c}';

/// A browser, which is closed with the test.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser with a window of this size in points, a phone's if it is narrow.
    pub fn start(width: u32, height: u32) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed");
        // The driver prints its port, and little afterwards.
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).find_map(|line| {
            line.split_once("started successfully on port ").map(|(_, port)| port.to_owned())
        });
        let port = said.unwrap().trim_end_matches('.').parse().unwrap();
        let mut options = json!({
            // A container has no sandbox, and the page is trusted.
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                format!("--window-size={width},{height}")],
        });
        if width < 700 {
            let metrics =
                json!({ "width": width, "height": height, "pixelRatio": 2, "touch": true });
            options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let mut browser = Self { driver, port, session: String::new() };
        let answer = browser.send("POST", "/session", &wanted).expect("chromium is installed");
        browser.session = answer["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Sends a request; returns its `value` or the error.
    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let fail = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(fail)?;
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).map_err(fail)?;
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while {
            line.clear();
            reader.read_line(&mut line).map_err(fail)? > 2
        } {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(fail)?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|e| e.to_string())?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.send(method, &path, &body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn open(&self, address: &str) {
        self.ask("POST", "/url", json!({ "url": address }));
    }

    pub fn reload(&self) {
        self.ask("POST", "/refresh", json!({}));
    }

    /// Runs a function with this body; returns its result.
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", json!({ "script": script, "args": [] }))
    }

    /// Runs a function with this body; returns what it passes to its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.ask("POST", "/execute/async", json!({ "script": script, "args": [] }))
    }

    pub fn text(&self, expression: &str) -> String {
        match self.run(&format!("return {expression}")) {
            Value::String(text) => text,
            other => panic!("{expression} is {other}"),
        }
    }

    /// Waits until an expression is true.
    pub fn wait(&self, expression: &str) {
        let start = Instant::now();
        while self.run(&format!("return Boolean({expression})")) != true {
            assert!(start.elapsed() < PATIENCE, "never: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends keys to the focused element.
    pub fn press(&self, keys: &str) {
        let active = self.ask("GET", "/element/active", Value::Null);
        let element = active[ELEMENT].as_str().unwrap();
        self.ask("POST", &format!("/element/{element}/value"), json!({ "text": keys }));
    }

    pub fn click(&self, selector: &str) {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.ask("POST", "/element", wanted);
        let element = found[ELEMENT].as_str().unwrap();
        self.ask("POST", &format!("/element/{element}/click"), json!({}));
    }

    /// Messages of the console, including violations of the content security policy.
    pub fn console(&self) -> Vec<Value> {
        let entries = self.ask("POST", "/se/log", json!({ "type": "browser" }));
        entries.as_array().unwrap().clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
