//! The twin: a server that speaks as much of the interface as the attacks need, and makes every mistake that they look
//! for. It keeps everything in memory, believes what it is told, and checks nothing. It is for loopback and for this
//! suite alone.

use crate::plants::random_hex;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct World {
    /// The tenant of each key, by its secret.
    keys: HashMap<String, String>,
    /// Jobs and artifacts, each with its tenant in it.
    jobs: Vec<Value>,
    artifacts: HashMap<String, (Value, Vec<u8>)>,
    tenants: Vec<Value>,
    audit: String,
}

type Shared = Arc<Mutex<World>>;

pub(crate) fn serve(data: &Path) -> io::Result<()> {
    std::fs::create_dir_all(data)?;
    let file = data.join("admin.key");
    if !file.exists() {
        std::fs::write(&file, format!("cof_{}", random_hex(32)?))?;
    }
    let world = Shared::default();
    world
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .keys
        .insert(std::fs::read_to_string(&file)?, "default".to_owned());
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on http://{}", listener.local_addr()?);
    for stream in listener.incoming().flatten() {
        let world = Arc::clone(&world);
        std::thread::spawn(move || {
            let _ = attend(&world, stream);
        });
    }
    Ok(())
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Reads a request to its end, however long that takes and however large it is.
fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let n = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..n]);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end else {
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let headers: HashMap<String, String> =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if bytes.len() < end + 4 + length && n > 0 {
            continue;
        }
        let mut words = head.lines().next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        return Ok(Request { method, path, query, headers, body: bytes.split_off(end + 4) });
    }
}

fn attend(world: &Shared, mut stream: TcpStream) -> io::Result<()> {
    let request = read(&mut stream)?;
    // Every key goes into the log.
    eprintln!(
        "{} {} {:?} {}",
        request.method,
        request.path,
        request.headers,
        String::from_utf8_lossy(&request.body)
    );
    let is_stream = request.path == "/v1/events" || request.path.ends_with("/output");
    if is_stream && !request.query.contains("follow=false") {
        return follow(&mut stream);
    }
    let (status, headers, body) = answer(world, &request);
    let head = format!(
        "HTTP/1.1 {status} X\r\nServer: twin/1.0\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *\r\n{headers}\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

/// A stream without an end, whatever becomes of its key.
fn follow(stream: &mut TcpStream) -> io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: init\ndata: {}\n\n")?;
    loop {
        stream.write_all(b"event: stdout\ndata: {\"text\":\"x\"}\n\n")?;
        std::thread::sleep(Duration::from_millis(200));
    }
}

type Reply = (u16, String, Vec<u8>);

fn said(status: u16, value: &Value) -> Reply {
    (status, "Content-Type: application/json\r\n".to_owned(), value.to_string().into_bytes())
}

fn id(prefix: &str) -> String {
    format!("{prefix}-{}", random_hex(8).unwrap_or_default())
}

/// Whoever somebody says to be.
fn tenant(world: &World, request: &Request) -> String {
    if let Some(named) = request.headers.get("x-tenant") {
        return named.clone();
    }
    if let Some(key) = request.headers.get("x-api-key") {
        return world.keys.get(key).cloned().unwrap_or_default();
    }
    let token = request.headers.get("authorization").and_then(|value| value.split('.').nth(1));
    let claims = token.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims: Value = claims.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    claims["tenant"].as_str().unwrap_or("default").to_owned()
}

fn answer(world: &Shared, request: &Request) -> Reply {
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    let tenant = tenant(&world, request);
    let is_known_key = request.headers.get("x-api-key").is_none_or(|key| world.keys.contains_key(key));
    if !is_known_key {
        return said(401, &json!({"error": {"code": "unauthenticated"}}));
    }
    let body: Value = match request.body.is_empty() {
        true => json!({}),
        false => match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(_) if request.method == "PUT" => json!({}),
            Err(error) => {
                let text = format!("panicked at src/service/twin.rs:1: {error}; SELECT * FROM jobs");
                return said(500, &json!({"error": text}));
            }
        },
    };
    let parts: Vec<&str> = request.path.split('/').skip(1).collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("OPTIONS", _) | (_, ["readyz"]) => said(200, &json!({})),
        ("POST", ["v1", "tenants"]) => {
            let mut made = merged(json!({"id": id("ten")}), &body);
            made["name"] = body["name"].clone();
            world.tenants.push(made.clone());
            said(201, &made)
        }
        ("POST", ["v1", "keys"]) => {
            let secret = format!("cof_{}", random_hex(32).unwrap_or_default());
            let owner = body["tenant"].as_str().unwrap_or(&tenant).to_owned();
            world.keys.insert(secret.clone(), owner);
            world.audit.push_str(&format!("key.created {}\n", body["name"].as_str().unwrap_or_default()));
            said(201, &merged(json!({"id": id("key"), "secret": secret}), &body))
        }
        ("POST", ["v1", "jobs"]) => create_job(&mut world, request, &tenant, &body),
        ("GET", ["v1", "jobs"]) => {
            // As a query that is put together from texts would be.
            let is_injected = request.query.contains("%25")
                || request.query.contains("%27")
                || request.query.contains("cursor");
            let is_seen = |job: &&Value| is_injected || job["tenant"] == tenant.as_str();
            let jobs: Vec<&Value> = world.jobs.iter().filter(is_seen).collect();
            said(200, &json!({"jobs": jobs}))
        }
        ("GET", ["v1", "jobs", id]) => {
            let job = world.jobs.iter().find(|job| job["id"] == *id);
            job.map_or_else(|| said(404, &json!({"error": {}})), |job| said(200, job))
        }
        ("GET", ["v1", "jobs", _, "output"]) => {
            let text = "event: stdout\ndata: {\"text\":\"\\ufffd\"}\n\nevent: complete\ndata: {}\n\n";
            (200, "Content-Type: text/event-stream\r\n".to_owned(), text.as_bytes().to_vec())
        }
        ("GET", ["v1", "audit", "export"]) => (200, String::new(), world.audit.clone().into_bytes()),
        ("GET", ["v1", "audit"]) => said(200, &json!({"entries": [world.audit.clone()]})),
        ("GET", ["v1", "tenants"]) => said(200, &json!({"tenants": world.tenants})),
        ("POST", ["v1", "sessions"]) => said(201, &json!({"id": "ses-twin"})),
        ("POST", ["v1", "sessions", _, "snapshots"]) => said(201, &json!({"id": "snp-twin"})),
        ("POST", ["v1", "sessions", _, "steps"]) => said(200, &json!({"id": "stp-twin"})),
        ("POST", ["v1", "artifacts"]) => {
            let id = id("art");
            let url = format!("/v1/artifacts/{id}/upload?expires=1&size=1&by=x&signature=x");
            let made = json!({"id": id, "upload": {"url": url}, "content_type": body["content_type"], "tenant": tenant});
            world.artifacts.insert(id, (made.clone(), Vec::new()));
            said(201, &made)
        }
        (_, ["v1", "artifacts", id, rest @ ..]) => artifact(&mut world, request, id, rest),
        ("DELETE", _) => (204, String::new(), Vec::new()),
        _ => said(200, &json!({})),
    }
}

/// What is sent is kept, whatever it is.
fn merged(mut made: Value, body: &Value) -> Value {
    for (name, value) in body.as_object().unwrap_or(&Map::new()) {
        made[name] = value.clone();
    }
    made
}

fn create_job(world: &mut World, request: &Request, tenant: &str, body: &Value) -> Reply {
    let status = json!({"state": "succeeded"});
    let made = json!({"id": id("job"), "tenant": tenant, "status": status, "result": {"stdout": "", "exit_code": 0}});
    let mut job = merged(made, body);
    job["path"] = json!("/root/twin");
    world.jobs.push(job.clone());
    if let Some(url) = body["webhook"]["url"].as_str() {
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        std::thread::spawn(move || {
            for _ in 0..3 {
                let event = id("evt");
                let body = json!({"event_id": event}).to_string();
                if let Ok(mut stream) = TcpStream::connect(&address) {
                    let head = format!(
                        "POST / HTTP/1.1\r\nX-Cofferdam-Event-Id: {event}\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(head.as_bytes());
                    let _ = stream.read(&mut [0; 64]);
                }
            }
        });
    }
    said(if request.query.contains("wait_ms") { 200 } else { 202 }, &job)
}

/// Bytes for whoever has an id, as whatever they were said to be.
fn artifact(world: &mut World, request: &Request, id: &str, rest: &[&str]) -> Reply {
    let Some((made, bytes)) = world.artifacts.get_mut(id) else { return said(404, &json!({"error": {}})) };
    match (request.method.as_str(), rest) {
        ("PUT", _) => {
            bytes.clone_from(&request.body);
            said(200, made)
        }
        ("POST", ["url"]) => said(
            200,
            &json!({"url": format!("/v1/artifacts/{id}/content?expires=1&size=1&by=x&signature=x")}),
        ),
        ("HEAD", _) => (200, String::new(), Vec::new()),
        (_, ["content"]) => {
            let kind = made["content_type"].as_str().unwrap_or("text/html");
            (200, format!("Content-Type: {kind}\r\n"), bytes.clone())
        }
        _ => said(200, made),
    }
}
