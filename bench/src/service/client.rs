//! A client that costs next to nothing itself: kept connections, one write and a few reads for each call.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::contestant::{Contestant, Sample};
use crate::failure::{Doing, Failure, Result};

use super::SERVICE;

const BODY: &str = r#"{"language":"python","code":"print(1)"}"#;

/// A call that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Client {
    address: String,
    request: String,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
}

impl Client {
    pub(super) fn new(address: &str, key: &str) -> Self {
        let length = BODY.len();
        let request = format!(
            "POST /v1/jobs?wait_ms=30000 HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}"
        );
        Self { address: address.to_owned(), request, idle: Mutex::default() }
    }

    /// Calls once, and is content only with what the program prints.
    pub(super) fn check(&self) -> Result<()> {
        self.call().map(drop)
    }

    fn call(&self) -> Result<Duration> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let start = Instant::now();
        connection.get_mut().write_all(self.request.as_bytes()).doing("sending a request")?;
        let (status, body) = answer(&mut connection)?;
        let took = start.elapsed();
        let result: serde_json::Value =
            serde_json::from_slice(&body).map_err(|error| Failure::new(error.to_string()))?;
        if status != 200 || result["result"]["stdout"] != "1\n" {
            let text = String::from_utf8_lossy(&body);
            return Err(Failure::new(format!("{status}: {text}")));
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(took)
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.address).doing("connecting to the service")?;
        stream.set_nodelay(true).doing("setting up a connection")?;
        stream.set_read_timeout(Some(TIMEOUT)).doing("setting up a connection")?;
        Ok(BufReader::new(stream))
    }
}

impl Contestant for Client {
    fn name(&self) -> &str {
        SERVICE
    }

    fn sample(&self) -> Result<Sample> {
        self.call().map(Sample::from)
    }
}

/// The status and the body of an answer that has a length.
fn answer(from: &mut impl BufRead) -> Result<(u16, Vec<u8>)> {
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
    let mut body = vec![0; length];
    from.read_exact(&mut body).doing("reading an answer")?;
    Ok((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_length_and_no_further() {
        let mut from: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\nokHTTP";
        assert_eq!(answer(&mut from).unwrap(), (200, b"ok".to_vec()));
        assert_eq!(from, b"HTTP");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for text in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"] {
            assert!(answer(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
