//! A server with the part of the S3 protocol that the client uses, and with injected faults.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// The only bucket.
pub const BUCKET: &str = "bucket";

/// Objects, and requests received.
#[derive(Debug, Default)]
pub struct State {
    pub objects: BTreeMap<String, Vec<u8>>,
    /// Parts of incomplete uploads, by number.
    pub uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    /// Requests: method and path with query.
    pub asked: Vec<String>,
    /// Status for the next request that starts with this text; each is used once, the first match
    /// first.
    pub faults: Vec<(&'static str, u16)>,
    count: u64,
}

/// A server on the loopback, until it is dropped.
#[derive(Clone, Debug)]
pub struct Server {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server =
            Self { address: listener.local_addr().unwrap(), state: Arc::new(Mutex::default()) };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, serving) = (stream.unwrap(), serving.clone());
                // A closed connection needs no response.
                thread::spawn(move || serving.serve(&stream));
            }
        });
        server
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.trim().split_once(':') else { break };
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let mut words = head.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let (status, answer) = self.state().answer(method, path, body);
            let size = answer.len();
            let headers = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {size}\r\nETag: \"7\"\r\n\
                 Last-Modified: Tue, 24 Nov 2026 13:00:00 GMT\r\n\r\n"
            );
            stream.write_all(headers.as_bytes())?;
            if method != "HEAD" {
                stream.write_all(&answer)?;
            }
        }
    }
}

impl State {
    fn answer(&mut self, method: &str, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let request = format!("{method} {path}");
        let fault = self.faults.iter().position(|(begin, _)| request.starts_with(begin));
        self.asked.push(request);
        if let Some(fault) = fault {
            let (_, status) = self.faults.remove(fault);
            return error(status, "Fault");
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some((BUCKET, name)) = path[1..].split_once('/') else {
            return error(404, "NoSuchBucket");
        };
        let name = name.replace("%2F", "/");
        let asked: BTreeMap<&str, &str> =
            query.split('&').map(|it| it.split_once('=').unwrap_or((it, ""))).collect();
        match (method, asked.get("uploadId"), asked.get("partNumber")) {
            ("POST", None, _) if asked.contains_key("uploads") => {
                self.count += 1;
                self.uploads.insert(self.count.to_string(), BTreeMap::new());
                let id = format!("<UploadId>{}</UploadId>", self.count);
                let kind = "InitiateMultipartUploadResult";
                (200, format!("<{kind}>{id}</{kind}>").into_bytes())
            }
            ("PUT", Some(&id), Some(part)) => match self.uploads.get_mut(id) {
                Some(parts) => {
                    parts.insert(part.parse().unwrap(), body);
                    (200, Vec::new())
                }
                None => error(404, "NoSuchUpload"),
            },
            ("POST", Some(&id), _) => match self.uploads.remove(id) {
                Some(parts) => {
                    self.objects.insert(name, parts.into_values().flatten().collect());
                    let kind = "CompleteMultipartUploadResult";
                    (200, format!("<{kind}><ETag>7</ETag></{kind}>").into_bytes())
                }
                None => error(404, "NoSuchUpload"),
            },
            ("DELETE", Some(&id), _) => {
                self.uploads.remove(id);
                (204, Vec::new())
            }
            ("PUT", ..) => {
                self.objects.insert(name, body);
                (200, Vec::new())
            }
            ("DELETE", ..) => {
                self.objects.remove(&name);
                (204, Vec::new())
            }
            ("GET" | "HEAD", ..) => match self.objects.get(&name) {
                Some(content) => (200, content.clone()),
                None => error(404, "NoSuchKey"),
            },
            _ => error(405, "MethodNotAllowed"),
        }
    }
}

fn error(status: u16, code: &str) -> (u16, Vec<u8>) {
    let text = format!("<Error>\n  <Code>{code}</Code>\n  <Message>by hand</Message>\n</Error>");
    (status, text.into_bytes())
}
