//! Processes over a WebSocket: what is typed and shown, coming back, tickets, and what is refused.

use crate::client::Client;
use crate::server::{Folder, Server};
use crate::socket::{BINARY, Heard, Socket, TEXT, open};
use serde_json::{Value, json};

pub(crate) struct Bed {
    _folder: Folder,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) session: String,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = Folder::new("sockets");
        let server = Server::start(folder.path(), &["--slots", "32", "--memory", "64g"]);
        let client = Client::of(&server);
        let made = client.post("/v1/sessions", r#"{"env":{"PS1":"$ "}}"#);
        assert_eq!(made.status, 201, "{made:?}");
        let session = made.json()["id"].as_str().expect("an id").to_owned();
        Self { _folder: folder, server, client, session }
    }

    /// Starts one, and returns its path.
    fn start(&self, body: &Value) -> String {
        let started =
            self.client.post(&format!("/v1/sessions/{}/processes", self.session), &body.to_string());
        assert_eq!(started.status, 201, "{started:?}");
        format!("/v1/sessions/{}/processes/{}", self.session, started.json()["number"])
    }

    fn bash(&self) -> String {
        self.start(&json!({"command": ["bash", "--norc", "-i"], "terminal": {"rows": 24, "columns": 80}}))
    }

    pub(crate) fn key(&self) -> String {
        format!("X-API-Key: {}\r\n", self.server.key)
    }

    pub(crate) fn open(&self, path: &str, query: &str) -> Socket {
        let opened = open(self.server.address, &format!("{path}/ws{query}"), &self.key());
        opened.unwrap_or_else(|refused| panic!("{path}: {refused:?}"))
    }

    pub(crate) fn refused(&self, path: &str, headers: &str) -> (u16, Value) {
        let (status, body) = open(self.server.address, path, headers).expect_err(path);
        (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("not JSON: {body}")))
    }

    pub(crate) fn ticket(&self, path: &str, body: &str) -> String {
        let made = self.client.post(&format!("{path}/tickets"), body);
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["url"].as_str().expect("an address").to_owned()
    }
}

#[test]
fn a_terminal_is_typed_into_left_and_come_back_to() {
    let bed = Bed::new();
    let path = bed.bash();
    let mut socket = bed.open(&path, "");
    let Heard::Said(attached) = socket.next() else { panic!("not attached") };
    assert_eq!((&attached["type"], &attached["process"]["is_terminal"]), (&json!("attached"), &json!(true)));
    socket.type_in("echo $((6*7))\n");
    // The shell writes back the size that it has read before each prompt, and would undo one that came in between.
    socket.wait_output("42\r\n\u{1b}[?2004h$ ");
    socket.say(r#"{"type":"resize","rows":31,"columns":103}"#);
    socket.say(r#"{"type":"input","text":"stty size; echo sized\n"}"#);
    socket.wait_output("31 103\r\nsized\r\n");
    let (seen, last) = (socket.output.clone(), socket.last_seq);
    // A client that goes away changes nothing; whoever comes back goes on without a gap or a repetition.
    drop(socket);
    let mut again = bed.open(&path, &format!("?from_seq={}", last + 1));
    again.type_in("echo later-$((1+1))\n");
    again.wait_output("later-2\r\n");
    let mut whole = bed.open(&path, "?from_seq=1");
    whole.wait_output("later-2\r\n");
    assert_eq!(whole.output[..seen.len()], seen);
    assert_eq!(whole.output[seen.len()..][..again.output.len()], again.output);
    // Two are connected, and both are told of the end, and how it was.
    again.type_in("exit 3\n");
    for socket in [&mut again, &mut whole] {
        let exit = socket.wait_said("exit");
        assert_eq!(exit["process"]["outcome"], json!({"kind": "exited", "code": 3}), "{exit}");
        assert_eq!(socket.next(), Heard::Closed(1000));
    }
    // Also to whoever comes after it.
    let mut late = bed.open(&path, "");
    assert_eq!(late.wait_said("exit")["process"]["outcome"]["code"], 3);
    assert!(String::from_utf8_lossy(&late.output).contains("later-2"));
}

#[test]
fn pipes_are_written_to_closed_and_signaled() {
    let bed = Bed::new();
    let path = bed.start(&json!({"command": ["tr", "a-z", "A-Z"]}));
    let mut socket = bed.open(&path, "");
    socket.type_in("loud");
    socket.say(r#"{"type":"close_input"}"#);
    assert_eq!(socket.wait_said("exit")["process"]["outcome"], json!({"kind": "exited", "code": 0}));
    assert_eq!(socket.output, b"LOUD");
    let path = bed.start(&json!({"command": ["sleep", "631"]}));
    let (mut first, mut second) = (bed.open(&path, ""), bed.open(&path, ""));
    first.say(r#"{"type":"close_input"}"#);
    // Said again until it is known to be closed: the two are not in step with each other.
    let refused = loop {
        second.type_in("more");
        second.say("mark");
        let said = second.wait_said("error");
        if said["code"] == "wrong_state" {
            break said;
        }
    };
    assert_eq!(refused["message"], "the process reads nothing more", "{refused}");
    assert_eq!(refused["is_last"], false);
    second.say(r#"{"type":"signal","signal":9}"#);
    assert_eq!(first.wait_said("exit")["process"]["outcome"], json!({"kind": "signaled", "signal": 9}));
}

#[test]
fn wrong_messages_are_named_and_the_connection_goes_on() {
    let bed = Bed::new();
    let path = bed.start(&json!({"command": ["cat"]}));
    let mut socket = bed.open(&path, "");
    for (message, code, part) in [
        ("ls", "invalid", "by `type`"),
        ("{}", "invalid", "by `type`"),
        (r#"{"type":"dance"}"#, "invalid", "close_input, resize and signal"),
        (r#"{"type":"input"}"#, "invalid", "text"),
        (r#"{"type":"signal","signal":0}"#, "invalid", "from 1 to 64"),
        (r#"{"type":"signal","signal":65}"#, "invalid", "from 1 to 64"),
        (r#"{"type":"resize","rows":0,"columns":1}"#, "invalid", "1 to 1000"),
        (r#"{"type":"resize","rows":1,"columns":1}"#, "wrong_state", "no terminal"),
    ] {
        socket.say(message);
        let said = socket.wait_said("error");
        assert_eq!((&said["code"], &said["is_last"]), (&json!(code), &json!(false)), "{message}: {said}");
        assert!(said["message"].as_str().is_some_and(|text| text.contains(part)), "{message}: {said}");
    }
    socket.type_in("still here");
    socket.wait_output("still here");
    let mut large = bed.open(&path, "");
    // It may be refused before all of it was taken.
    let _ = large.frame(BINARY, &vec![b'x'; (64 << 10) + 1]);
    let said = large.wait_said("error");
    assert_eq!((&said["code"], &said["is_last"]), (&json!("too_large"), &json!(true)), "{said}");
    assert_eq!(large.next(), Heard::Closed(1009));
    // Frames that are none: a length that nothing has, bits that mean nothing, no mask, text that is none.
    let huge = [&[0x82, 0xff][..], &[0xff; 8], &[0; 4]].concat();
    for (raw, close) in
        [(&huge[..], 1009), (b"\xf2\x80\0\0\0\0", 1002), (b"\x83\x80\0\0\0\0", 1002), (b"\x82\x01x", 1002)]
    {
        let mut wrong = bed.open(&path, "");
        wrong.raw(raw);
        assert_eq!(wrong.wait_said("error")["is_last"], true, "{raw:?}");
        assert_eq!(wrong.next(), Heard::Closed(close), "{raw:?}");
    }
    let mut wrong = bed.open(&path, "");
    wrong.frame(TEXT, b"\xff\xfe").expect("it is sent");
    assert_eq!(wrong.wait_said("error")["is_last"], true);
    // None of them has changed anything for the others.
    socket.type_in(" and here");
    socket.wait_output("still here and here");
}

#[test]
fn what_cannot_be_connected_to_is_an_answer() {
    let bed = Bed::new();
    let path = bed.start(&json!({"command": ["cat"]}));
    let key = bed.key();
    let (status, error) = bed.refused(&format!("/v1/sessions/{}/processes/99/ws", bed.session), &key);
    assert_eq!((status, &error["error"]["message"]), (404, &json!("there is no such process")), "{error}");
    assert_eq!(bed.refused(&format!("{path}/ws"), "").0, 401);
    assert_eq!(bed.refused(&format!("{path}/ws?from_seq=x"), &key).0, 422);
    let (status, error) = bed.refused(&format!("{path}/ws?from_seq=9"), &key);
    assert_eq!(status, 422, "{error}");
    assert!(
        error["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("next number of this process is 1"))
    );
    let plain = bed.client.get(&format!("{path}/ws"));
    assert_eq!(plain.status, 400, "{plain:?}");
    assert!(plain.body.contains("Upgrade: websocket"), "{plain:?}");
    // A page of somebody else's, even one that has a key.
    let (status, error) =
        bed.refused(&format!("{path}/ws"), &format!("{key}Origin: https://evil.example\r\n"));
    assert_eq!((status, &error["error"]["details"]["rule"]), (403, &json!("origin")), "{error}");
    let mut socket = bed.open(&path, "");
    assert_eq!(
        bed.client.send("DELETE", &format!("/v1/sessions/{}", bed.session), "", "").expect("gone").status,
        204
    );
    // Whoever was connected is told: by how the process ended, or that its session has.
    let last = loop {
        match socket.next() {
            Heard::Said(said) if said["type"] == "exit" || said["is_last"] == true => break said,
            Heard::Closed(code) => panic!("closed with {code} without a word"),
            _ => {}
        }
    };
    assert!(last["process"]["outcome"].is_object() || last["code"] == "wrong_state", "{last}");
    assert!(matches!(socket.next(), Heard::Closed(1000 | 1011)));
    let (status, error) = bed.refused(&format!("{path}/ws"), &key);
    assert_eq!(
        (status, &error["error"]["message"]),
        (409, &json!("the session is ended: deleted")),
        "{error}"
    );
}

#[test]
fn a_ticket_is_for_one_page_one_process_and_one_time() {
    let bed = Bed::new();
    let (path, other) = (bed.bash(), bed.bash());
    let address = bed.server.address;
    let own = format!("Origin: http://{address}\r\n");
    let url = bed.ticket(&path, "{}");
    let mut socket = open(address, &url, &own).expect("its own page");
    socket.type_in("echo by-$((1+1))\n");
    socket.wait_output("by-2\r\n");
    let denied = |url: &str, headers: &str, part: &str| {
        let (status, error) = bed.refused(url, headers);
        assert_eq!(status, 403, "{error}");
        assert!(
            error["error"]["message"].as_str().is_some_and(|text| text.contains(part)),
            "{part}: {error}"
        );
    };
    denied(&url, &own, "used before");
    denied(
        &bed.ticket(&path, "{}").replace(&path, &other),
        &own,
        "not made here, or not for this connection",
    );
    denied(&format!("{path}/ws?ticket=1.2.3"), &own, "not made here");
    denied(&bed.ticket(&path, "{}"), "Origin: https://app.example\r\n", "app.example");
    let named = || bed.ticket(&path, r#"{"origin":"https://app.example"}"#);
    denied(&named(), &own, "may not open this");
    assert!(open(address, &named(), "Origin: https://app.example\r\n").is_ok());
    assert_eq!(bed.client.post(&format!("{path}/tickets"), r#"{"origin":"*"}"#).status, 422);
    assert_eq!(
        bed.client.post(&format!("/v1/sessions/{}/processes/9/tickets", bed.session), "{}").status,
        404
    );
    // One for looking only.
    let mut looks = open(address, &bed.ticket(&path, r#"{"read_only":true}"#), &own).expect("to look");
    looks.wait_output("by-2\r\n");
    looks.type_in("echo no\n");
    let said = looks.wait_said("error");
    assert_eq!((&said["code"], &said["is_last"]), (&json!("denied"), &json!(false)), "{said}");
    // Whoever may only look makes none that can do more.
    let reader = json!({"name": "reader", "scopes": ["sessions:read"]}).to_string();
    let reader = bed.client.post("/v1/keys", &reader).json();
    let as_reader = bed.client.with_key(reader["secret"].as_str().expect("a secret"));
    assert_eq!(as_reader.post(&format!("{path}/tickets"), "{}").status, 403);
    let made = as_reader.post(&format!("{path}/tickets"), r#"{"read_only":true}"#);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json()["url"].as_str().expect("an address").to_owned();
    let mut by_reader = open(address, &made, "").expect("to look");
    by_reader.wait_output("by-2\r\n");
    let secret = format!("X-API-Key: {}\r\n", reader["secret"].as_str().expect("a secret"));
    let mut by_key = open(address, &format!("{path}/ws"), &secret).expect("to look");
    by_key.wait_output("by-2\r\n");
    // Both end with the key that was behind them, and say so.
    let id = reader["id"].as_str().expect("an id");
    assert_eq!(bed.client.send("DELETE", &format!("/v1/keys/{id}"), "", "").expect("gone").status, 204);
    for socket in [&mut by_reader, &mut by_key] {
        let said = socket.wait_said("error");
        assert_eq!((&said["code"], &said["is_last"]), (&json!("unauthenticated"), &json!(true)), "{said}");
        assert_eq!(socket.next(), Heard::Closed(1008));
    }
    // The others go on.
    socket.type_in("echo on-$((1+1))\n");
    socket.wait_output("on-2\r\n");
    let audit = bed.client.get("/v1/audit?limit=100").body;
    for kind in ["process.started", "process.ticket_made", "process.attached"] {
        assert!(audit.contains(kind), "{kind}");
    }
}

/// Memory of a process, in kibibytes.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn who_reads_slowly_is_told_what_was_missed_and_costs_nothing() {
    let bed = Bed::new();
    let line = "head -c 60000000 /dev/zero | tr '\\0' x; echo; echo the-end";
    let path = bed.start(&json!({"command": ["sh", "-c", format!("read go; {line}")]}));
    let mut sockets: Vec<_> = (0..8).map(|_| bed.open(&path, "")).collect();
    sockets.iter_mut().for_each(|socket| drop(socket.wait_said("attached")));
    let before = resident(bed.server.process());
    sockets[0].type_in("go\n");
    // None of them reads until all of it was written.
    let ended = bed.client.get(&format!("{path}?wait_ms=60000")).json();
    assert_eq!(ended["outcome"]["code"], 0, "{ended}");
    let grown = resident(bed.server.process()).saturating_sub(before);
    assert!(grown < 60_000, "{grown} KiB for eight that read nothing of 60 MB");
    for socket in &mut sockets {
        let mut is_told = false;
        let exit = loop {
            match socket.next() {
                Heard::Said(said) if said["type"] == "truncated" => is_told = true,
                Heard::Said(said) if said["type"] == "exit" => break said,
                Heard::Closed(code) => panic!("closed with {code}"),
                _ => {}
            }
        };
        assert!(is_told && socket.output.len() < 60_000_000, "{}", socket.output.len());
        assert_eq!(exit["process"]["outcome"]["code"], 0);
        assert!(socket.output.ends_with(b"the-end\n"), "the end is there");
    }
}

#[test]
fn a_server_that_stops_says_so() {
    let bed = Bed::new();
    let path = bed.bash();
    let mut socket = bed.open(&path, "");
    socket.wait_output("$");
    bed.server.signal("TERM");
    let said = loop {
        match socket.next() {
            Heard::Said(said) if said["type"] != "attached" => break said,
            Heard::Closed(code) => panic!("closed with {code} without a word"),
            _ => {}
        }
    };
    assert_eq!((&said["code"], &said["is_last"]), (&json!("unavailable"), &json!(true)), "{said}");
    assert_eq!(socket.next(), Heard::Closed(1001));
}
