//! A client on one connection, simple enough to send what a library would not.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::description;

/// A persistent connection.
pub struct Connection(BufReader<TcpStream>);

/// An answer and its request.
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Connection {
    pub fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        // A timeout, so that a test does not wait forever.
        stream.set_read_timeout(Some(Duration::from_secs(300)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends bytes. A server that has answered may have stopped reading.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.get_mut().write_all(bytes.as_ref());
    }

    /// Sends a request without waiting for the answer.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        self.send([head.as_bytes(), body].concat());
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, "", "");
        self.receive("GET", path)
    }

    pub fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", path, "content-type: application/json\r\n", body);
        self.receive("POST", path)
    }

    /// Receives the next answer and checks it against the OpenAPI description.
    pub fn receive(&mut self, method: &str, path: &str) -> Reply {
        let reply = self.try_receive().unwrap();
        description::check(method, path, &reply);
        reply
    }

    pub fn try_receive(&mut self) -> io::Result<Reply> {
        let mut line = || {
            let mut line = String::new();
            match self.0.read_line(&mut line)? {
                0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                _ => Ok(line.trim_end().to_owned()),
            }
        };
        let status = line()?.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = HashMap::new();
        while let Some((name, value)) = line()?.split_once(": ") {
            headers.insert(name.to_owned(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Reply { status, headers, body })
    }

    /// Whether the server closes the connection without sending another byte.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.fill_buf(), Ok([]) | Err(_))
    }
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of a problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap().to_owned()
    }
}
