//! What an address that somebody else has named can be used for, tried on real sockets.

use cofferdam_webhook::{Lookup, Message, Network, SendError, Sender};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const TIMEOUT: Duration = Duration::from_secs(3);

/// A name server of the attacker's: each question gets the next answer, and the last for ever.
#[derive(Debug)]
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Rebinding {
    fn new(answers: &[&[IpAddr]]) -> Arc<Self> {
        let answers = answers.iter().map(|addresses| addresses.to_vec()).collect();
        Arc::new(Self { answers, asked: AtomicUsize::new(0) })
    }
}

impl Lookup for Rebinding {
    fn lookup(&self, _: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let at = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        let answer = self.answers[at].clone();
        Box::pin(async move { Ok(answer) })
    }
}

/// A server that keeps what it was sent and answers the same each time.
struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(ip: Ipv4Addr, port: u16, answer: &'static str) -> Self {
        let listener = TcpListener::bind((ip, port)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    let n = stream.read(&mut buffer).await.unwrap_or(0);
                    kept.lock()
                        .expect("what it got")
                        .push(String::from_utf8_lossy(&buffer[..n]).into_owned());
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { address, got }
    }

    fn count(&self) -> usize {
        self.got.lock().expect("what it got").len()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const OUTER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// As if it were an inner service: no test is allowed to reach it.
const INNER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn sender(lookup: Arc<dyn Lookup>) -> Sender {
    let allowed = Network::parse("127.0.0.1/32").expect("a network");
    Sender::new(lookup, vec![allowed], true, TIMEOUT).expect("a sender")
}

async fn send(sender: &Sender, url: &str) -> Result<(), SendError> {
    let body = br#"{"a":1}"#.to_vec();
    sender
        .send(Message { url, secret: "0123456789abcdef", event_id: "evt-1", timestamp_seconds: 7, body })
        .await
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_what_it_said_is_dialled() {
    let outer = Receiver::start(OUTER, 0, OK).await;
    let inner = Receiver::start(INNER, outer.address.port(), OK).await;
    let names = Rebinding::new(&[&[OUTER.into()], &[INNER.into()]]);
    let sender = sender(Arc::<Rebinding>::clone(&names));
    let url = format!("http://rebinding.test:{}/hook", outer.address.port());
    assert_eq!(send(&sender, &url).await, Ok(()));
    assert_eq!((names.asked.load(Ordering::Relaxed), outer.count(), inner.count()), (1, 1, 0));
    // By now the name leads inside; the connection of before is not used again, either.
    assert_eq!(send(&sender, &url).await, Err(SendError::Forbidden));
    assert_eq!((names.asked.load(Ordering::Relaxed), outer.count(), inner.count()), (2, 1, 0));
    let got = outer.got.lock().expect("what it got").join("");
    for line in [
        "POST /hook HTTP/1.1",
        "x-cofferdam-event-id: evt-1",
        "x-cofferdam-timestamp: 7",
        "host: rebinding.test",
    ] {
        assert!(got.to_ascii_lowercase().contains(&line.to_ascii_lowercase()), "{line}: {got}");
    }
    let signature = cofferdam_webhook::sign(b"0123456789abcdef", 7, br#"{"a":1}"#);
    assert!(got.contains(&format!("x-cofferdam-signature: {signature}\r\n")), "{got}");
}

#[tokio::test]
async fn one_inner_address_among_others_condemns_a_name() {
    let outer = Receiver::start(OUTER, 0, OK).await;
    let inner = Receiver::start(INNER, outer.address.port(), OK).await;
    for answers in [&[OUTER.into(), INNER.into()][..], &[INNER.into(), OUTER.into()]] {
        let sender = sender(Rebinding::new(&[answers]));
        let url = format!("http://mixed.test:{}/", outer.address.port());
        assert_eq!(send(&sender, &url).await, Err(SendError::Forbidden));
    }
    assert_eq!((outer.count(), inner.count()), (0, 0));
    assert_eq!(send(&sender(Rebinding::new(&[&[]])), "http://none.test/").await, Err(SendError::Unknown));
}

#[tokio::test]
async fn inner_addresses_are_refused_however_they_are_written() {
    let names = Rebinding::new(&[&[OUTER.into()]]);
    let sender = sender(Arc::<Rebinding>::clone(&names));
    let inner = Receiver::start(INNER, 0, OK).await;
    let port = inner.address.port();
    for host in [
        "127.0.0.2",
        "0x7f000002",
        "2130706434",
        "0177.0.0.2",
        "127.2",
        "[::ffff:127.0.0.2]",
        "[::1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "100.64.0.1",
        "0.0.0.0",
    ] {
        let sent = send(&sender, &format!("http://{host}:{port}/")).await;
        assert_eq!(sent, Err(SendError::Forbidden), "{host}");
    }
    assert_eq!((inner.count(), names.asked.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_no_way() {
    let inner = Receiver::start(INNER, 0, OK).await;
    let answer =
        format!("HTTP/1.1 307 Elsewhere\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n", inner.address);
    let outer = Receiver::start(OUTER, 0, answer.leak()).await;
    let sender = sender(Rebinding::new(&[&[OUTER.into()]]));
    let sent = send(&sender, &format!("http://name.test:{}/", outer.address.port())).await;
    assert_eq!((sent, outer.count(), inner.count()), (Err(SendError::Status(307)), 1, 0));
}

#[tokio::test]
async fn an_answer_without_an_end_and_none_at_all_are_not_waited_for() {
    let sender = sender(Rebinding::new(&[&[OUTER.into()]]));
    // A body that never comes is not read.
    let endless = Receiver::start(OUTER, 0, "HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nx").await;
    let began = Instant::now();
    assert_eq!(send(&sender, &format!("http://a.test:{}/", endless.address.port())).await, Ok(()));
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    let silent = TcpListener::bind((OUTER, 0)).await.expect("a port");
    let url = format!("http://a.test:{}/", silent.local_addr().expect("its address").port());
    assert_eq!(send(&sender, &url).await, Err(SendError::TimedOut));
    drop(silent);
    assert_eq!(send(&sender, &url).await, Err(SendError::Connect));
}
