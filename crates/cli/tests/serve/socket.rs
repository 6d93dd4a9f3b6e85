//! Enough of WebSocket for a test, which may also do it wrong.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;

#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// Number, and the bytes of stdout.
    Output(u64, Vec<u8>),
    Said(Value),
    Closed(u16),
}

#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    /// All output, and the number of the last.
    pub(crate) output: Vec<u8>,
    pub(crate) last_seq: u64,
}

/// The handshake; where it is refused, the status and the body.
pub(crate) fn open(address: SocketAddr, path: &str, headers: &str) -> Result<Socket, (u16, String)> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    if status == 101 {
        return Ok(Socket { stream, output: Vec::new(), last_seq: 0 });
    }
    let length = answer.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("a body");
    Err((status, String::from_utf8_lossy(&body).into_owned()))
}

impl Socket {
    pub(crate) fn say(&mut self, message: &str) {
        self.frame(TEXT, message.as_bytes()).expect("it is sent");
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.frame(BINARY, keys.as_bytes()).expect("it is sent");
    }

    pub(crate) fn frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![0x80 | kind];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65536 => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        // A mask of zeros changes nothing.
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it is sent");
    }

    pub(crate) fn next(&mut self) -> Heard {
        let began = Instant::now();
        loop {
            let shown = || String::from_utf8_lossy(&self.output).into_owned();
            assert!(began.elapsed() < PATIENCE, "nothing but pings came; before: {}", shown());
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).expect("a frame");
            let mut long = [0; 8];
            let length = match head[1] & 0x7f {
                126 => {
                    self.stream.read_exact(&mut long[6..]).expect("a length");
                    u64::from_be_bytes(long)
                }
                127 => {
                    self.stream.read_exact(&mut long).expect("a length");
                    u64::from_be_bytes(long)
                }
                short => u64::from(short),
            };
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).expect("a payload");
            match head[0] & 0x0f {
                TEXT => return Heard::Said(serde_json::from_slice(&payload).expect("JSON")),
                BINARY => {
                    let seq = u64::from_be_bytes(payload[1..9].try_into().expect("a number"));
                    let bytes = payload.split_off(9);
                    self.output.extend_from_slice(&bytes);
                    self.last_seq = seq;
                    return Heard::Output(seq, bytes);
                }
                CLOSE => {
                    return Heard::Closed(u16::from_be_bytes(payload[..2].try_into().expect("a code")));
                }
                PING => self.frame(10, &payload).expect("it is sent"),
                other => panic!("a frame of kind {other}"),
            }
        }
    }

    /// The next message of a kind; output on the way is kept.
    pub(crate) fn wait_said(&mut self, kind: &str) -> Value {
        loop {
            match self.next() {
                Heard::Said(said) if said["type"] == kind => return said,
                Heard::Closed(code) => panic!("closed with {code}, without {kind}"),
                _ => {}
            }
        }
    }

    pub(crate) fn wait_output(&mut self, text: &str) {
        let began = Instant::now();
        while !String::from_utf8_lossy(&self.output).contains(text) {
            let shown = String::from_utf8_lossy(&self.output);
            assert!(began.elapsed() < PATIENCE, "{text:?} is not in {shown:?}");
            if let heard @ (Heard::Said(_) | Heard::Closed(_)) = self.next() {
                let is_calm = matches!(&heard, Heard::Said(said) if said["type"] == "attached");
                assert!(is_calm, "{heard:?} before {text:?}: {}", String::from_utf8_lossy(&self.output));
            }
        }
    }
}
