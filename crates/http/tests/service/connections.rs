//! Clients that send too much, too slowly, or nothing at all.

use crate::bed::Bed;
use cofferdam_control::Settings;
use cofferdam_http::HttpSettings;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn short() -> HttpSettings {
    HttpSettings {
        header_timeout: Duration::from_millis(300),
        handshake_timeout: Duration::from_millis(300),
        body_timeout: Duration::from_millis(400),
        idle_timeout: Duration::from_millis(600),
        ..HttpSettings::default()
    }
}

/// No test waits longer for something that should be over long before.
const PATIENCE: Duration = Duration::from_secs(20);

async fn start(settings: HttpSettings) -> (Bed, SocketAddr) {
    let bed = Bed::new(Settings::default()).await;
    let address = bed.serve(settings, None).await;
    (bed, address)
}

/// Everything until the server closes.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let (_bed, address) = start(short()).await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    read_all(&mut stream).await;
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_head_that_comes_drop_by_drop_is_cut() {
    let (_bed, address) = start(short()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let drip = async {
        // Each drop within the time, the whole not.
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ".iter().cycle() {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut bytes = Vec::new();
    let read = async { drop(reader.read_to_end(&mut bytes).await) };
    tokio::select! {
        () = drip => {}
        () = read => {}
        () = tokio::time::sleep(PATIENCE) => panic!("it is still served"),
    }
    assert!(!String::from_utf8_lossy(&bytes).contains("200 OK"));
}

#[tokio::test]
async fn a_body_that_comes_drop_by_drop_is_a_408() {
    let (bed, address) = start(short()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Length: 100000\r\n\r\n",
        bed.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let mut answer = vec![0; 4096];
    let drip = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    let count = tokio::select! {
        () = drip => unreachable!("it drips for ever"),
        count = reader.read(&mut answer) => count.unwrap(),
        () = tokio::time::sleep(PATIENCE) => panic!("it is still waited for"),
    };
    let text = String::from_utf8_lossy(&answer[..count]).into_owned();
    assert!(text.starts_with("HTTP/1.1 408") && text.contains("request_timeout"), "{text}");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let (_bed, address) = start(HttpSettings { max_header_bytes: 16 << 10, ..HttpSettings::default() }).await;
    for head in [
        format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "a".repeat(64 << 10)),
        format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Many: 1\r\n".repeat(200)),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(head.as_bytes()).await;
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 431") || answer.is_empty(), "{answer}");
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn no_more_connections_are_served_than_may_be() {
    let (_bed, address) = start(HttpSettings { max_connections: 2, ..HttpSettings::default() }).await;
    let ask = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(ask).await.unwrap();
        assert!(timeout(PATIENCE, stream.read(&mut [0; 1024])).await.unwrap().unwrap() > 0);
        held.push(stream);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    third.write_all(ask).await.unwrap();
    let early = timeout(Duration::from_millis(300), third.read(&mut [0; 1024])).await;
    assert!(early.is_err(), "a third was served");
    held.pop();
    let count = timeout(PATIENCE, third.read(&mut [0; 1024])).await.expect("it is its turn").unwrap();
    assert!(count > 0);
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_that_waits_for_its_answer_is_not() {
    let (bed, address) = start(short()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = r#"{"language":"python","code":"1500"}"#;
    let head = format!(
        "POST /v1/jobs?wait_ms=10000 HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        bed.key,
        body.len()
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The answer took longer than a connection may be idle; after it the connection was closed.
    assert!(began.elapsed() >= Duration::from_millis(1500));
}

#[tokio::test]
async fn json_that_nests_too_deep_is_refused() {
    let (bed, address) = start(HttpSettings::default()).await;
    let body = format!(r#"{{"webhook":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        bed.key,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("nests deeper than 32"), "{answer}");
}
