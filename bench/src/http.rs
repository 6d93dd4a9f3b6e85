//! A client that costs next to nothing itself: kept connections, one write and a few reads for each call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::{Doing, Failure, Result};

/// A call that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The server closes connections that nobody uses; one that is about to be closed is not used again.
const KEPT: Duration = Duration::from_secs(2);

/// Read and written at once.
const PIECE: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Http {
    address: String,
    key: String,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

type Connection = BufReader<TcpStream>;

/// What came back, and how long that took from the first byte of the request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) took: Duration,
}

impl Answer {
    /// The body of an answer with that status; anything else is a failure.
    pub(crate) fn json(&self, status: u16) -> Result<Value> {
        self.expect(status)?;
        serde_json::from_slice(&self.body).map_err(|error| Failure::new(error.to_string()))
    }

    pub(crate) fn expect(&self, status: u16) -> Result<()> {
        match self.status == status {
            true => Ok(()),
            false => Err(Failure::new(format!("{}: {}", self.status, String::from_utf8_lossy(&self.body)))),
        }
    }
}

impl Http {
    pub(crate) fn new(address: &str, key: &str) -> Self {
        Self { address: address.to_owned(), key: key.to_owned(), idle: Mutex::default() }
    }

    /// Sends a small body and takes a small answer.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let request = self.head(method, path, "application/json", body.len() as u64) + body;
        let mut connection = self.connection()?;
        let start = Instant::now();
        connection.get_mut().write_all(request.as_bytes()).doing("sending a request")?;
        self.answer(connection, start)
    }

    /// Sends a body of that length, of which `see` sees every piece before it goes.
    pub(crate) fn send(
        &self,
        path: &str,
        mut from: impl Read,
        length: u64,
        mut see: impl FnMut(&[u8]),
    ) -> Result<Answer> {
        let request = self.head("PUT", path, "application/octet-stream", length);
        let mut connection = self.connection()?;
        let start = Instant::now();
        connection.get_mut().write_all(request.as_bytes()).doing("sending a request")?;
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).doing("reading what is to be sent")?;
            if read == 0 {
                break;
            }
            see(&piece[..read]);
            connection.get_mut().write_all(&piece[..read]).doing("sending a file")?;
        }
        self.answer(connection, start)
    }

    /// Takes a small answer to what was sent from `start` on.
    fn answer(&self, mut connection: Connection, start: Instant) -> Result<Answer> {
        let (status, length) = head(&mut connection)?;
        let mut body = vec![0; length as usize];
        connection.read_exact(&mut body).doing("reading an answer")?;
        let took = start.elapsed();
        self.keep(connection);
        Ok(Answer { status, body, took })
    }

    /// Takes a large answer, of which `see` sees every piece. The answer that is returned has none of it.
    pub(crate) fn fetch(&self, path: &str, mut see: impl FnMut(&[u8])) -> Result<Answer> {
        let request = self.head("GET", path, "application/json", 0);
        let mut connection = self.connection()?;
        let start = Instant::now();
        connection.get_mut().write_all(request.as_bytes()).doing("sending a request")?;
        let (status, mut left) = head(&mut connection)?;
        let mut piece = vec![0; PIECE];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let read = connection.read(&mut piece[..most]).doing("reading a file")?;
            if read == 0 {
                return Err(Failure::new(format!(
                    "the service cut an answer off, {left} bytes before its end"
                )));
            }
            see(&piece[..read]);
            left -= read as u64;
        }
        let took = start.elapsed();
        self.keep(connection);
        Ok(Answer { status, body: Vec::new(), took })
    }

    fn head(&self, method: &str, path: &str, media: &str, length: u64) -> String {
        let Self { address, key, .. } = self;
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\
             content-type: {media}\r\ncontent-length: {length}\r\n\r\n"
        )
    }

    fn connection(&self) -> Result<Connection> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some((since, connection)) if since.elapsed() < KEPT => return Ok(connection),
                Some(_) => {}
                None => break,
            }
        }
        let stream = TcpStream::connect(&self.address).doing("connecting to the service")?;
        stream.set_nodelay(true).doing("setting up a connection")?;
        stream.set_read_timeout(Some(TIMEOUT)).doing("setting up a connection")?;
        Ok(BufReader::with_capacity(PIECE, stream))
    }

    fn keep(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), connection));
    }
}

/// The status and the length of an answer that has one.
fn head(from: &mut impl BufRead) -> Result<(u16, u64)> {
    let mut line = String::new();
    from.read_line(&mut line).doing("reading an answer")?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| Failure::new(format!("the service answered {line:?}")))?;
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line).doing("reading an answer")?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length =
                value.trim().parse().map_err(|_| Failure::new(format!("the service answered {line:?}")))?;
        }
    }
    Ok((status, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_to_its_end_and_no_further() {
        let mut from: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\nokHTTP";
        assert_eq!(head(&mut from).unwrap(), (200, 2));
        assert_eq!(from, b"okHTTP");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for text in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"] {
            assert!(head(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn another_status_is_a_failure_with_its_words() {
        let answer = Answer { status: 503, body: b"no room".to_vec(), took: Duration::ZERO };
        assert_eq!(answer.expect(201), Err(Failure::new("503: no room")));
    }
}
