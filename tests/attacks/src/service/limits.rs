//! Requests for more than there is: privileges, words about the inside, and everything that a server has.

use super::server::Ground;
use super::{Outcome, broke_if, needs};
use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// What container engines take, and what our own fields could be stretched to.
pub(crate) fn privileges(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let mut tried = 0;
    for (field, value) in [
        ("privileged", json!(true)),
        ("user", json!(0)),
        ("user", json!("root")),
        ("uid", json!(0)),
        ("cap_add", json!(["ALL"])),
        ("capabilities", json!(["CAP_SYS_ADMIN"])),
        ("devices", json!(["/dev/sda"])),
        ("mounts", json!([{"source": "/", "target": "/host"}])),
        ("volumes", json!(["/:/host"])),
        ("binds", json!(["/:/host"])),
        ("security_opt", json!(["seccomp=unconfined"])),
        ("pid_mode", json!("host")),
        ("network_mode", json!("host")),
        ("isolation", json!("none")),
        ("sandbox", json!(false)),
        (
            "sandbox",
            json!({"image": "a:1", "command": "true", "mounts": [{"source": "/", "target": "/host"}]}),
        ),
        ("execution_mode", json!("none")),
        ("execution_mode", json!("docker-sandbox")),
        ("runtime", json!("runc")),
        ("host_path", json!("/etc")),
        ("cgroup_parent", json!("/")),
        ("backend", json!("host")),
        ("image", json!("../../")),
        ("profile", json!("unconfined")),
        ("limits", json!({"memory_bytes": u64::MAX})),
        ("limits", json!({"cpus": "1000000"})),
        ("limits", json!({"pids": u32::MAX})),
        ("timeout_ms", json!(u64::MAX)),
        ("files", json!([{"path": "/etc/passwd", "content": ""}])),
        ("files", json!([{"path": "../../etc/passwd", "content": ""}])),
    ] {
        let mut body = json!({"command": ["true"]});
        body[field] = value.clone();
        let answer = client.post("/v1/jobs", &body)?;
        broke_if(![422, 403].contains(&answer.status), || format!("{field} {value}: {}", answer.status))?;
        tried += 1;
    }
    broke_if(!client.jobs()?.is_empty(), || "a job was kept".to_owned())?;
    Ok(format!("{tried} requests for more refused, nothing kept"))
}

/// What no answer has in it.
const INSIDE: [&str; 14] = [
    "SELECT",
    "INSERT",
    "sqlx",
    "sqlite",
    "postgres",
    ".rs:",
    "panicked",
    "backtrace",
    "/root/",
    "/home/",
    "/tmp/",
    "/usr/",
    ".cargo",
    "os error",
];

/// Everything that can be wrong with a request.
pub(crate) fn internals(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let data = target.data().display().to_string();
    let bodies: [&[u8]; 9] = [
        b"{",
        b"",
        b"null",
        b"[]",
        b"{\"command\":",
        b"\xff\xfe",
        b"{\"command\":[\"a\\u0000b\"]}",
        b"{\"language\":\"python\",\"code\":5}",
        b"{\"command\":[\"true\"],\"metadata\":{\"\\u0000\":1}}",
    ];
    let mut answers = 0;
    let mut check = |answer: super::client::Answer| {
        let text = answer.text();
        let word = INSIDE.iter().copied().chain([data.as_str()]).find(|word| text.contains(word));
        broke_if(word.is_some(), || format!("{} says {word:?}: {text}", answer.status))?;
        broke_if(answer.status >= 500, || format!("{}: {text}", answer.status))?;
        let says = answer.header("server").or(answer.header("x-powered-by"));
        answers += 1;
        broke_if(says.is_some(), || format!("it says what it is made of: {says:?}"))
    };
    for path in [
        "/v1/jobs",
        "/v1/keys",
        "/v1/tenants",
        "/v1/artifacts",
        "/v1/jobs/x/cancel",
        "/v1/artifacts/x/finalize",
    ] {
        for body in bodies {
            check(client.send("POST", path, "", body)?)?;
        }
    }
    for path in [
        "/v1/jobs?cursor=AAAA",
        "/v1/jobs?cursor=%00",
        "/v1/jobs?limit=x",
        "/v1/jobs/%00",
        "/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/v1/audit?from=x",
        "/v1/audit?after_seq=-1",
        "/v1/artifacts/x/content?expires=1&size=1&by=x&signature=x",
        "/../../etc/passwd",
        "/v1/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/docs/errors/..%2f..%2fetc",
        "/metrics/x",
        "/v1/events?x=1",
    ] {
        check(client.get(path)?)?;
        check(target.nobody().get(path)?)?;
    }
    for method in ["TRACE", "CONNECT", "PUT", "FOO"] {
        check(client.send(method, "/v1/jobs", "", b"")?)?;
    }
    let failed = client.run(&json!({"command": ["/no/such/program"]}))?.to_string();
    let word = ["/root/", "/home/", ".rs:", data.as_str()].into_iter().find(|word| failed.contains(word));
    broke_if(word.is_some(), || format!("a job that cannot start says {word:?}"))?;
    Ok(format!("{answers} answers say nothing of the inside"))
}

/// Bodies that are too large or too deep, and clients that are too slow.
pub(crate) fn requests(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let said = |head: &str| -> std::io::Result<String> {
        let mut stream = client.connect()?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(head.as_bytes())?;
        let mut buffer = [0; 64];
        let n = stream.read(&mut buffer).unwrap_or(0);
        Ok(String::from_utf8_lossy(&buffer[..n]).split(' ').nth(1).unwrap_or_default().to_owned())
    };
    let own = &client.headers;
    let announced = said(&format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n{own}Content-Length: 1073741824\r\n\r\n{{"
    ))?;
    broke_if(announced != "413", || format!("a body of 1 GiB: {announced:?}"))?;
    let large = format!(r#"{{"command":["true"],"stdin":"{}"}}"#, "x".repeat(20 << 20));
    let large = client.send("POST", "/v1/jobs", "", large.as_bytes());
    broke_if(large.is_ok_and(|answer| answer.status != 413), || "a body of 20 MiB".to_owned())?;
    for nested in [
        "[".repeat(100_000),
        "{\"a\":".repeat(50_000),
        format!("{{\"metadata\":{}1{}}}", "[".repeat(5000), "]".repeat(5000)),
    ] {
        let status = client.send("POST", "/v1/jobs", "", nested.as_bytes())?.status;
        broke_if(status != 400 && status != 422, || format!("JSON that is deep: {status}"))?;
    }
    let many = format!("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n{own}{}\r\n", "X-A: b\r\n".repeat(5000));
    let many = said(&many)?;
    broke_if(many.starts_with('2'), || format!("5,000 headers: {many}"))?;
    let upgrade = format!(
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{own}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    let upgrade = said(&upgrade)?;
    broke_if(upgrade == "101", || "a WebSocket is opened".to_owned())?;
    // Heads that never end, and bodies that hardly come.
    let began = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = client.connect()?;
        stream.write_all(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-A: ")?;
        stream.set_read_timeout(Some(Duration::from_millis(1)))?;
        slow.push(stream);
    }
    let asked = Instant::now();
    let normal = client.get("/v1/jobs")?;
    let took = asked.elapsed();
    broke_if(normal.status != 200 || took > Duration::from_secs(3), || format!("others wait: {took:?}"))?;
    while !slow.is_empty() {
        let open = slow.len();
        broke_if(began.elapsed() > Duration::from_secs(20), || {
            format!("{open} of 100 slow clients are still served")
        })?;
        slow.retain_mut(|stream| {
            let mut buffer = [0; 512];
            let is_closed = matches!(stream.read(&mut buffer), Ok(0)) || stream.write_all(b"a").is_err();
            !is_closed
        });
        std::thread::sleep(Duration::from_millis(200));
    }
    let gone = began.elapsed();
    needs(client.get("/readyz")?.status == 200, || "it is not ready".to_owned())?;
    Ok(format!("each refused; slow clients gone after {} s", gone.as_secs()))
}
