//! Enough of HTTP for an attacker: one request a connection, and nothing checked before it is sent.

use super::{Stop, cannot};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No attack waits longer for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// Sent with every request, each with its end of line.
    pub(crate) headers: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// A header, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A word of the answer, which has to be there.
    pub(crate) fn word(&self, name: &str) -> Result<String, Stop> {
        match self.json()[name].as_str() {
            Some(word) => Ok(word.to_owned()),
            None => cannot(format!("no {name}: {} {}", self.status, self.text())),
        }
    }
}

/// The bytes of a body that came in pieces; none where its end is missing.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        rest = &rest[end + 2..];
        if length == 0 {
            return Some(bytes);
        }
        bytes.extend_from_slice(rest.get(..length)?);
        rest = rest.get(length + 2..)?;
    }
}

impl Client {
    pub(crate) fn with_headers(&self, headers: impl Into<String>) -> Self {
        Self { headers: headers.into(), ..self.clone() }
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        self.with_headers(format!("X-API-Key: {key}\r\n"))
    }

    pub(crate) fn with_token(&self, token: &str) -> Self {
        self.with_headers(format!("Authorization: Bearer {token}\r\n"))
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let mut stream = self.open(method, path, headers, body)?;
        let mut bytes = Vec::new();
        // Whoever refuses a body without reading it may cut the connection behind the answer.
        if let Err(error) = stream.read_to_end(&mut bytes)
            && bytes.is_empty()
        {
            return Err(error);
        }
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(cut)?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let bytes = bytes.split_off(end + 4);
        let bytes = if is_chunked { unchunked(&bytes).ok_or_else(cut)? } else { bytes };
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(cut)?;
        let answer = Answer { status, head, bytes };
        let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
        if method != "HEAD" && length.is_some_and(|length| length != answer.bytes.len()) {
            return Err(cut());
        }
        Ok(answer)
    }

    pub(crate) fn open(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> io::Result<TcpStream> {
        let mut stream = self.connect()?;
        let host = if headers.to_ascii_lowercase().contains("host:") { "" } else { "Host: localhost\r\n" };
        let (own, length) = (&self.headers, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{own}{headers}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        // One that is refused early may not be read to its end.
        let _ = stream.write_all(body);
        Ok(stream)
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Stop> {
        Ok(self.send("GET", path, "", b"")?)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, Stop> {
        Ok(self.send("DELETE", path, "", b"")?)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answer, Stop> {
        let headers = "Content-Type: application/json\r\n";
        Ok(self.send("POST", path, headers, body.to_string().as_bytes())?)
    }

    /// A key with these scopes, of this client's own tenant: its id and its secret.
    pub(crate) fn key(&self, scopes: &[&str]) -> Result<(String, String), Stop> {
        let made = self.post("/v1/keys", &json!({"name": "k", "scopes": scopes}))?;
        Ok((made.word("id")?, made.word("secret")?))
    }

    /// A tenant, and someone who may do everything in it. For an operator.
    pub(crate) fn tenant(&self, name: &str, quotas: Value) -> Result<(String, Self), Stop> {
        let id = self.post("/v1/tenants", &json!({"name": name, "quotas": quotas}))?.word("id")?;
        let key = self.post("/v1/keys", &json!({"name": "all", "scopes": ["*"], "tenant": id}))?;
        Ok((id, self.with_key(&key.word("secret")?)))
    }

    pub(crate) fn job(&self, body: &Value) -> Result<String, Stop> {
        self.post("/v1/jobs", body)?.word("id")
    }

    /// A job that is waited for.
    pub(crate) fn run(&self, body: &Value) -> Result<Value, Stop> {
        let answer = self.post("/v1/jobs?wait_ms=60000", body)?;
        if answer.status == 200 {
            return Ok(answer.json());
        }
        cannot(format!("a job: {} {}", answer.status, answer.text()))
    }

    /// The ids of the jobs that are seen.
    pub(crate) fn jobs(&self) -> Result<Vec<String>, Stop> {
        let jobs = self.get("/v1/jobs?limit=500")?.json()["jobs"].as_array().cloned().unwrap_or_default();
        Ok(jobs.iter().filter_map(|job| job["id"].as_str().map(str::to_owned)).collect())
    }

    /// Opens a stream of events.
    pub(crate) fn events(&self, path: &str) -> Result<Events, Stop> {
        Ok(Events(BufReader::new(self.open("GET", path, "", b"")?)))
    }
}

/// A stream of events; each is its name and its data.
pub(crate) struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = io::Result<(String, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut name, mut data) = (String::new(), Value::Null);
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
            let line = line.trim_end();
            if let Some(value) = line.strip_prefix("event: ") {
                name = value.to_owned();
            } else if let Some(value) = line.strip_prefix("data: ") {
                data = serde_json::from_str(value).unwrap_or_default();
            } else if line.is_empty() && !name.is_empty() {
                return Some(Ok((name, data)));
            }
        }
    }
}
