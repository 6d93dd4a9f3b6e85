//! A collector of traces that a test serves itself: enough of OTLP over HTTP to take spans.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || take(&stream, &kept));
            }
        });
        Self { address, bodies }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent, as bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bodies.lock().expect("the bodies").concat()
    }

    fn resources(&self) -> Vec<ResourceSpans> {
        let bodies = self.bodies.lock().expect("the bodies").clone();
        let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(&body[..]).expect("OTLP"));
        requests.flat_map(|request| request.resource_spans).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let scopes = self.resources().into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// The role of the process that has sent a span.
    pub(crate) fn role_of(&self, span_id: &[u8]) -> String {
        let sent = self.resources().into_iter().find(|resource| {
            resource.scope_spans.iter().flat_map(|scope| &scope.spans).any(|span| span.span_id == span_id)
        });
        let resource = sent.and_then(|sent| sent.resource).expect("who sent it");
        let role = resource.attributes.into_iter().find(|known| known.key == "cofferdam.role");
        match role.and_then(|role| role.value).and_then(|value| value.value) {
            Some(Value::StringValue(role)) => role,
            other => panic!("{other:?} is no role"),
        }
    }

    /// The spans of a trace, once all of these names are among them.
    pub(crate) fn trace(&self, trace_id: &[u8], names: &[&str]) -> Vec<Span> {
        let began = Instant::now();
        loop {
            let spans: Vec<_> = self.spans().into_iter().filter(|span| span.trace_id == trace_id).collect();
            if names.iter().all(|name| spans.iter().any(|span| span.name == *name)) {
                return spans;
            }
            let all: Vec<_> = self.spans().into_iter().map(|span| span.name).collect();
            assert!(began.elapsed() < Duration::from_secs(60), "{names:?} are not all among {all:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn take(stream: &TcpStream, kept: &Mutex<Vec<Vec<u8>>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().expect("the bodies").push(body);
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
