//! Enough of HTTP for a test: one request a connection.

use crate::server::Server;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No test waits longer for one answer.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    /// With its header; empty for none.
    key: String,
    host: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    head: String,
}

impl Answer {
    /// A header, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        let key = format!("X-API-Key: {}\r\n", server.key);
        Self { address: server.address, key, host: "localhost".to_owned() }
    }

    /// The same for another address, such as that of the metrics.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: format!("X-API-Key: {key}\r\n"), ..self.clone() }
    }

    pub(crate) fn without_key(&self) -> Self {
        Self { key: String::new(), ..self.clone() }
    }

    pub(crate) fn with_host(&self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self.clone() }
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> io::Result<Answer> {
        let mut stream = self.open(method, path, headers, body)?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(cut)?;
        let length = head.to_ascii_lowercase();
        let length =
            length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if length.is_some_and(|length| length != body.len()) {
            return Err(cut());
        }
        Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
    }

    pub(crate) fn open(&self, method: &str, path: &str, headers: &str, body: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (key, host, length) = (&self.key, &self.host, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{key}{headers}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    /// Says how much will come, and leaves it to the caller to send it.
    pub(crate) fn announce(&self, method: &str, path: &str, length: usize) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (key, host) = (&self.key, &self.host);
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{key}Content-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").expect("an answer")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, "", body).expect("an answer")
    }
}
