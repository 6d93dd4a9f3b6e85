//! Folders, searches and watches of sessions, as a client sees them.

use crate::client::Client;
use crate::machine::wait_until;
use crate::server::{Folder, Server, program};
use crate::watches::check_watch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Bed {
    folder: Folder,
    server: Server,
    client: Client,
    session: String,
}

impl Bed {
    fn new() -> Self {
        let folder = Folder::new("session-files");
        let server = Server::start(folder.path(), &[]);
        let client = Client::of(&server);
        let session = client.post("/v1/sessions", r#"{"limits":{"memory_bytes":1073741824}}"#).json();
        let session = session["id"].as_str().expect("an id").to_owned();
        Self { folder, server, client, session }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}/{rest}", self.session)
    }

    fn shell(&self, line: &str) -> String {
        let body = json!({"command": line}).to_string();
        let step = self.client.post(&self.path("steps?wait_ms=60000"), &body).json();
        assert_eq!(step["result"]["exit_code"], 0, "{line}: {step}");
        step["result"]["stdout"].as_str().expect("output").to_owned()
    }

    fn get(&self, rest: &str) -> Value {
        let answer = self.client.get(&self.path(rest));
        assert_eq!(answer.status, 200, "{rest}: {answer:?}");
        answer.json()
    }

    /// Sends bytes as they are.
    fn put(&self, rest: &str, bytes: &[u8]) -> (u16, Value) {
        let mut stream = self.client.announce("PUT", &self.path(rest), bytes.len()).expect("a connection");
        // A refusal may come before the end.
        let _ = stream.write_all(bytes);
        let mut answer = BufReader::new(stream);
        let (status, length) = head(&mut answer);
        let mut body = vec![0; length.expect("a length")];
        answer.read_exact(&mut body).expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The bytes of a folder, as they come in chunks.
    fn archive(&self, path: &str, format: &str) -> Vec<u8> {
        let rest = self.path(&format!("archive?path={path}&format={format}"));
        let stream = self.client.open("GET", &rest, "", "").expect("a connection");
        let mut answer = BufReader::new(stream);
        assert_eq!(head(&mut answer).0, 200);
        let mut bytes = Vec::new();
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("a chunk");
            let size = usize::from_str_radix(line.trim(), 16).expect("its size");
            let mut chunk = vec![0; size + 2];
            answer.read_exact(&mut chunk).expect("its bytes");
            bytes.extend(&chunk[..size]);
            if size == 0 {
                return bytes;
            }
        }
    }

    fn copy(&self, from: &str, to: &str) -> Output {
        let mut command = Command::new(program());
        command.args(["session", "cp", from, to]).current_dir(self.folder.path());
        command.env("COFFERDAM_URL", format!("http://{}", self.server.address));
        command.env("COFFERDAM_API_KEY", &self.server.key).output().expect("the program runs")
    }

    fn copied(&self, from: &str, to: &str) {
        let output = self.copy(from, to);
        assert!(output.status.success(), "{from} to {to}: {output:?}");
    }

    fn local(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The status, and the length that it says.
pub(crate) fn head(answer: &mut BufReader<TcpStream>) -> (u16, Option<usize>) {
    let (mut status, mut length, mut line) = (0, None, String::new());
    while answer.read_line(&mut line).expect("a head") > 2 {
        if status == 0 {
            status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
        line.clear();
    }
    (status, length)
}

/// A tree with modes, a link and a file that takes several pieces.
fn tree(root: &Path) {
    std::fs::create_dir_all(root.join("deep/er")).expect("folders");
    std::fs::write(root.join("run.sh"), "#!/bin/sh\necho ran\n").expect("a file");
    std::fs::write(root.join("deep/er/secret"), "s").expect("a file");
    std::fs::write(root.join("deep/big"), vec![7; 300_000]).expect("a file");
    std::fs::write(root.join("empty"), "").expect("a file");
    symlink("../run.sh", root.join("deep/link")).expect("a link");
    for (name, mode) in [("run.sh", 0o755), ("deep/er/secret", 0o600), ("deep/er", 0o711), ("empty", 0o444)] {
        std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode)).expect("a mode");
    }
}

/// Every path with its mode, its size and where it leads.
fn shown(root: &Path) -> Vec<String> {
    let list = Command::new("find")
        .args([".", "-mindepth", "1", "-type", "d", "-printf", "%P %m\n", "-o", "-printf", "%P %m %s %l\n"])
        .current_dir(root)
        .output()
        .expect("find runs");
    let mut lines: Vec<_> = String::from_utf8_lossy(&list.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert!(!lines.is_empty());
    lines
}

#[test]
fn a_folder_goes_there_and_back_with_its_modes() {
    let bed = Bed::new();
    tree(&bed.local("tree"));
    let there = format!("{}:sent/tree", bed.session);
    bed.copied("tree", &there);
    assert_eq!(bed.shell("sent/tree/deep/link; stat -c '%a %u' sent/tree/deep/er/secret"), "ran\n600 1000\n");
    bed.copied(&there, "back");
    assert_eq!(shown(&bed.local("tree")), shown(&bed.local("back")));
    // Into a folder that is there, under its own name.
    std::fs::create_dir(bed.local("into")).expect("a folder");
    bed.copied(&there, "into");
    assert_eq!(shown(&bed.local("tree")), shown(&bed.local("into/tree")));
    // A zip says the same, and other programs make and read it.
    let zip = bed.archive("sent/tree", "zip");
    std::fs::write(bed.local("a.zip"), zip).expect("a file");
    let unzip =
        Command::new("unzip").args(["-q", "a.zip", "-d", "unzipped"]).current_dir(bed.folder.path()).output();
    let unzip = unzip.expect("unzip runs");
    assert!(unzip.status.success(), "{unzip:?}");
    assert_eq!(shown(&bed.local("tree")), shown(&bed.local("unzipped")));
    let zip =
        Command::new("zip").args(["-q", "-r", "-y", "../b.zip", "."]).current_dir(bed.local("tree")).status();
    assert!(zip.expect("zip runs").success());
    let zip = std::fs::read(bed.local("b.zip")).expect("a file");
    let (status, written) = bed.put("archive?path=zipped&format=zip", &zip);
    assert_eq!((status, &written["files"]), (200, &json!(5)), "{written}");
    bed.copied(&format!("{}:zipped", bed.session), "from-zip");
    assert_eq!(shown(&bed.local("tree")), shown(&bed.local("from-zip")));
}

#[test]
fn fifty_megabytes_go_up_and_down() {
    let bed = Bed::new();
    let bytes: Vec<u8> = (0..50 << 20).map(|i: u32| (i ^ (i >> 9)) as u8).collect();
    std::fs::write(bed.local("big"), &bytes).expect("a file");
    bed.copied("big", &format!("{}:big", bed.session));
    let here = Command::new("sha256sum").arg(bed.local("big")).output().expect("sha256sum runs").stdout;
    assert_eq!(bed.shell("sha256sum < big")[..64], String::from_utf8_lossy(&here)[..64]);
    bed.copied(&format!("{}:big", bed.session), "back");
    assert!(std::fs::read(bed.local("back")).expect("a file") == bytes);
    // A part of it from far behind.
    let part = bed.client.send("GET", &bed.path("files?path=big"), "Range: bytes=52428700-\r\n", "");
    assert_eq!(part.map(|part| part.status).ok(), Some(206));
}

fn tar(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let output =
        Command::new("tar").arg("-cf-").args(arguments).current_dir(root).output().expect("tar runs");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn an_archive_that_is_refused_or_cut_off_changes_nothing() {
    let bed = Bed::new();
    let root = bed.local("bad");
    std::fs::create_dir_all(root.join("sub")).expect("folders");
    std::fs::write(root.join("aaa"), "new").expect("a file");
    symlink("/etc/passwd", root.join("sub/out")).expect("a link");
    symlink("../../x", root.join("sub/climbs")).expect("a link");
    symlink("sub", root.join("way")).expect("a link");
    let mkfifo = Command::new("mkfifo").arg(root.join("pipe")).status().expect("mkfifo runs");
    assert!(mkfifo.success());
    bed.shell("mkdir there; echo old > there/aaa; mkdir there/folder");
    for (arguments, name, why) in [
        (&["aaa", "sub/out"][..], "sub/out", "leads out"),
        (&["aaa", "sub/climbs"], "sub/climbs", "leads out"),
        (&["aaa", "pipe"], "pipe", "device or a pipe"),
        (&["-P", "--transform=s,aaa,/abs,", "aaa"], "/abs", "absolute"),
        (&["-P", "--transform=s,aaa,../up,", "aaa"], "../up", ".."),
        (&["way", "--transform=s,aaa,way/through,", "aaa"], "way/through", "link"),
        (&["--transform=s,aaa,folder,", "aaa"], "folder", "folder in its place"),
    ] {
        for path in ["there", "new"] {
            if path == "new" && name == "folder" {
                continue;
            }
            let (status, body) = bed.put(&format!("archive?path={path}"), &tar(&root, arguments));
            assert_eq!(status, 422, "{arguments:?}: {body}");
            assert_eq!(body["error"]["code"], "invalid", "{body}");
            let message = body["error"]["message"].as_str().expect("a message");
            assert!(message.contains(name) && message.contains(why), "{arguments:?}: {message}");
        }
        assert_eq!(
            bed.shell("cat there/aaa; ls -A . there"),
            "old\n.:\n.artifacts\nthere\n\nthere:\naaa\nfolder\n"
        );
    }
    let whole = tar(&root, &["aaa"]);
    let (status, body) = bed.put("archive?path=there", &whole[..700]);
    assert_eq!(status, 422, "{body}");
    // One that stops in the middle of the connection.
    let mut half = bed.client.announce("PUT", &bed.path("archive?path=there"), 10_240).expect("a connection");
    half.write_all(&whole[..600]).expect("a part");
    wait_until("it has begun", || bed.shell("ls -A | grep -c part || true") == "1\n");
    drop(half);
    wait_until("what came of it is gone", || bed.shell("ls -A | grep -c part || true") == "0\n");
    assert_eq!(bed.shell("cat there/aaa"), "old\n");
    // The same, whole: replaces what is there, and leaves the rest.
    let (status, body) = bed.put("archive?path=there", &whole);
    assert_eq!((status, &body["files"], &body["size_bytes"]), (200, &json!(1), &json!(3)), "{body}");
    assert_eq!(
        bed.shell("cat there/aaa; ls -A . there"),
        "new.:\n.artifacts\nthere\n\nthere:\naaa\nfolder\n"
    );
}

#[test]
fn set_user_bits_and_owners_stay_outside() {
    let bed = Bed::new();
    let root = bed.local("bits");
    std::fs::create_dir_all(root.join("dir")).expect("a folder");
    std::fs::write(root.join("tool"), "x").expect("a file");
    std::fs::hard_link(root.join("tool"), root.join("twin")).expect("a second name");
    std::fs::set_permissions(root.join("tool"), PermissionsExt::from_mode(0o6755)).expect("a mode");
    std::fs::set_permissions(root.join("dir"), PermissionsExt::from_mode(0o3770)).expect("a mode");
    let (status, body) =
        bed.put("archive?path=/workspace", &tar(&root, &["--owner=0", "--numeric-owner", "."]));
    assert_eq!((status, &body["files"]), (200, &json!(2)), "{body}");
    assert_eq!(
        bed.shell("stat -c '%n %a %u %h' tool twin dir"),
        "tool 755 1000 1\ntwin 755 1000 1\ndir 770 1000 2\n"
    );
}

#[test]
fn files_are_found_by_name_and_by_content() {
    let bed = Bed::new();
    bed.shell("mkdir -p src/inner; printf 'import os\\ndef main():\\n' > src/a.py; echo 'DEF x' > src/inner/b.py; printf 'def\\0x\\n' > src/bin; ln -s /etc etc; echo root > notes.txt");
    let paths = |found: &Value| -> Vec<String> {
        let all = found["matches"].as_array().expect("matches").iter();
        all.map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
    };
    assert_eq!(paths(&bed.get("files/search?name=*.py")), ["src/a.py", "src/inner/b.py"]);
    assert_eq!(paths(&bed.get("files/search?name=src/*.py")), ["src/a.py"]);
    let found = bed.get("files/search?path=src&content=%5Edef");
    assert_eq!(
        found["matches"],
        json!([{"path": "a.py", "kind": "file", "size_bytes": 22, "line": 2, "text": "def main():"}])
    );
    assert_eq!(paths(&bed.get("files/search?content=def&ignore_case=true")), ["src/a.py", "src/inner/b.py"]);
    assert_eq!(paths(&bed.get("files/search?content=root")), ["notes.txt"], "no link is followed");
    let cut = bed.get("files/search?name=*.py&limit=1");
    assert_eq!((paths(&cut).len(), &cut["truncated"]), (1, &json!(true)));
    for (query, field) in
        [("", "name"), ("?content=a(", "content"), ("?name=[", "name"), ("?name=a&limit=0", "limit")]
    {
        let answer = bed.client.get(&bed.path(&format!("files/search{query}")));
        assert_eq!(answer.status, 422, "{query}: {answer:?}");
        assert!(
            answer.json()["error"]["message"].as_str().is_some_and(|text| text.contains(field)),
            "{answer:?}"
        );
    }
    assert_eq!(bed.client.get(&bed.path("files/search?path=missing&name=a")).status, 404);
}

#[test]
fn changes_are_told_in_order_and_again_to_who_was_cut_off() {
    let bed = Bed::new();
    check_watch(&bed.client, &bed.session);
}

/// Exchanges a folder and a link, again and again, as fast as it can.
const SWAP: &str = "import ctypes\nswap = ctypes.CDLL(None).renameat2\nwhile True:\n    assert swap(-100, b'd', -100, b'l', 2) == 0";

/// Whoever looks up a name twice is led out of the folder; the guest's own shell shows that it works.
#[test]
fn a_guest_that_swaps_a_folder_for_a_link_leads_nobody_astray() {
    let bed = Bed::new();
    bed.shell(
        "mkdir -p /tmp/trap d/sub; echo astray > /tmp/trap/secret; echo mine > d/sub/mine; ln -s /tmp/trap l",
    );
    let process = json!({"command": ["python3", "-c", SWAP], "workdir": "/workspace"}).to_string();
    assert_eq!(bed.client.post(&bed.path("processes"), &process).status, 201);
    let naive = "i=0; while [ $i -lt 400 ]; do echo x > d/naive$i; cat d/secret 2>/dev/null; i=$((i + 1)); done; ls /tmp/trap";
    wait_until("the race is won by who does not look", || {
        let told = bed.shell(naive);
        told.contains("astray") && told.contains("naive")
    });
    let root = bed.local("up");
    std::fs::create_dir_all(root.join("sub")).expect("a folder");
    for i in 0..20 {
        std::fs::write(root.join(format!("sub/up-{i}")), "x").expect("a file");
    }
    let archive = tar(&root, &["."]);
    let (mut taken, mut refused, mut sent) = (0, 0, 0);
    for round in 0..20 {
        for path in ["d", "d/sub"] {
            match bed.put(&format!("archive?path={path}"), &archive).0 {
                200 => taken += 1,
                404 | 422 => refused += 1,
                other => panic!("round {round}: {other}"),
            }
            let rest = bed.path(&format!("archive?path={path}"));
            let mut bytes = Vec::new();
            let mut answer = bed.client.open("GET", &rest, "", "").expect("a connection");
            // It may be cut off, and then it is no archive.
            let _ = answer.read_to_end(&mut bytes);
            assert!(!bytes.windows(6).any(|six| six == b"astray"), "what is behind the link was sent");
            sent += usize::from(bytes.windows(4).any(|four| four == b"mine"));
        }
    }
    let trap = bed.shell("find /tmp/trap");
    assert!(!trap.contains("up-") && !trap.contains("sub"), "{trap}");
    assert!(refused > 0, "the swap was never met: {taken} taken, {sent} sent");
}

fn step(bed: &Bed, body: &Value) -> Value {
    let answer = bed.client.post(&bed.path("steps?wait_ms=60000"), &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn what_a_step_leaves_is_its_artifact_and_outlives_the_session() {
    let bed = Bed::new();
    let names = |step: &Value| -> Vec<String> {
        let all = step["result"]["artifacts"].as_array().expect("artifacts").iter();
        all.map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
    };
    let first = step(
        &bed,
        &json!({"command": "mkdir $CYNODE_ARTIFACTS_DIR/d; echo one > $CYNODE_ARTIFACTS_DIR/d/a; ln -s /etc/passwd $CYNODE_ARTIFACTS_DIR/l"}),
    );
    assert_eq!(names(&first), ["d/a"], "{first}");
    assert_eq!(first["result"]["artifacts_skipped"][0]["path"], "l", "{first}");
    let id = first["result"]["artifacts"][0]["id"].as_str().expect("an id").to_owned();
    let second = step(&bed, &json!({"language": "python", "code": "1"}));
    assert_eq!(names(&second), [""; 0], "nothing is new: {second}");
    let third = step(&bed, &json!({"command": "echo two, longer > $CYNODE_ARTIFACTS_DIR/d/a"}));
    assert_eq!(names(&third), ["d/a"], "it was changed: {third}");
    // A file that somebody asks for, by another name.
    bed.shell("echo asked > report.txt");
    let kept = bed.client.post(&bed.path("artifacts"), r#"{"path":"report.txt","name":"r.txt"}"#);
    assert_eq!(kept.status, 201, "{kept:?}");
    let kept = kept.json();
    assert_eq!(
        (&kept["name"], &kept["size_bytes"], &kept["session_id"]),
        (&json!("r.txt"), &json!(6), &json!(bed.session))
    );
    for (body, status) in [
        (r#"{"path":"missing"}"#, 404),
        (r#"{"path":"."}"#, 422),
        (r#"{"path":"report.txt","name":""}"#, 422),
    ] {
        assert_eq!(bed.client.post(&bed.path("artifacts"), body).status, status, "{body}");
    }
    let listed = bed.get("artifacts");
    let steps: Vec<_> =
        listed["artifacts"].as_array().expect("artifacts").iter().map(|one| &one["step_id"]).collect();
    assert_eq!(steps, [&Value::Null, &third["id"], &first["id"]], "{listed}");
    // They are files of other steps, and are there when the session is not.
    let taken = step(
        &bed,
        &json!({"command": "cat in/a", "files": [{"path": "in/a", "artifact": id}, {"path": "b", "content": "x"}]}),
    );
    assert_eq!(taken["result"]["stdout"], "one\n", "{taken}");
    for (files, field) in [
        (json!([{"path": "a", "artifact": "art-aaaaaaaaaaaaaaaa"}]), "files[0].artifact"),
        (json!([{"path": "/etc/x", "content": "x"}]), "files[0].path"),
        (json!([{"path": "a", "content": "x", "content_base64": "eA=="}]), "files[0].content"),
        (json!([{"path": "a", "content_base64": "!"}]), "files[0].content_base64"),
    ] {
        let refused =
            bed.client.post(&bed.path("steps"), &json!({"command": "true", "files": files}).to_string());
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.body.contains(field), "{field}: {refused:?}");
    }
    let session = format!("/v1/sessions/{}", bed.session);
    assert_eq!(bed.client.send("DELETE", &session, "", "").expect("an answer").status, 204);
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).body, "one\n");
    assert_eq!(bed.get("artifacts")["artifacts"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_signed_address_is_good_for_one_file() {
    let bed = Bed::new();
    bed.shell("echo mine > 'a b.txt'; echo other > other");
    let sign = |body: Value| bed.client.post(&bed.path("files/url"), &body.to_string());
    let link = sign(json!({"path": "a b.txt", "ttl_seconds": 60}));
    assert_eq!(link.status, 201, "{link:?}");
    let url = link.json()["url"].as_str().expect("an address").to_owned();
    let nobody = bed.client.without_key();
    let read = nobody.get(&url);
    assert_eq!((read.status, read.body.as_str()), (200, "mine\n"), "{read:?}");
    for wrong in [
        url.replace("a%20b.txt", "other"),
        url.replace("a%20b.txt", "a%20b%2Etxt"),
        url.replace("expires=", "expires=1"),
        format!("{url}&path=other"),
        url.split_once("&signature").expect("a signature").0.to_owned(),
    ] {
        assert_eq!(nobody.get(&wrong).status, 403, "{wrong}");
    }
    assert_eq!(nobody.send("PUT", &url, "", "x").expect("an answer").status, 403, "another method");
    let put = sign(json!({"path": "up.txt", "method": "PUT", "size_bytes": 5})).json();
    let put = put["url"].as_str().expect("an address").to_owned();
    assert_eq!(nobody.send("PUT", &put, "", "123456").expect("an answer").status, 413);
    assert_eq!(nobody.send("PUT", &put, "", "12345").expect("an answer").status, 200);
    assert_eq!(bed.shell("cat up.txt"), "12345");
    for (body, status) in [
        (json!({"path": "missing"}), 404),
        (json!({"path": "."}), 422),
        (json!({"path": "x", "method": "PUT"}), 422),
        (json!({"path": "other", "method": "DELETE"}), 422),
        (json!({"path": "other", "ttl_seconds": 0}), 422),
        (json!({"path": "other", "size_bytes": 5}), 422),
    ] {
        assert_eq!(sign(body.clone()).status, status, "{body}");
    }
}
