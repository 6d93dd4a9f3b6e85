//! What was kept of a session is hostile input when it is resumed: altered where it lies, or made anew by somebody who
//! has its key. It is refused with its reason, the session is paused as it was, and what was there comes back.

use crate::client::Client;
use crate::machine::wait_until;
use crate::master_keys::sql;
use crate::pausing::{ROOMY, pause, resume, stdout, writings};
use crate::server::{Folder, Server};
use crate::sessions::{create, get, shell};
use cofferdam_artifacts::{Location, MasterKey, Name, Vault, archive_about};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Bed {
    folder: Folder,
    _server: Server,
    client: Client,
}

impl Bed {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let server = Server::start(folder.path(), &ROOMY);
        let client = Client::of(&server);
        Self { folder, _server: server, client }
    }

    /// An archived session with a file that says this, and noise of several chunks.
    fn archived(&self, text: &str) -> String {
        let id = create(&self.client, "{}");
        shell(&self.client, &id, &format!("echo {text} > file; head -c 300000 /dev/urandom > noise"));
        pause(&self.client, &id, "archive");
        id
    }

    /// Where its bytes lie. They are less than a segment.
    fn segment(&self, id: &str) -> PathBuf {
        let mut found = Vec::new();
        files(&self.folder.path().join("artifacts"), &mut found);
        found.retain(|path| path.to_string_lossy().contains(id));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn is_refused(&self, id: &str, what: &str, part: &str) {
        let answer =
            self.client.send("POST", &format!("/v1/sessions/{id}/resume"), "", "").expect("an answer");
        assert_eq!(answer.status, 500, "{what}: {answer:?}");
        let error = answer.json()["error"].clone();
        let message = error["message"].as_str().unwrap_or_default();
        let whole = format!("what was kept of the session's files cannot be put back: {part}");
        assert!(message.starts_with(&whole), "{what}: {error}");
        let session = get(&self.client, id);
        assert_eq!(session["status"]["state"], "paused", "{what}: {session}");
        assert_eq!(session["pause"]["mode"], "archive", "{what}: {session}");
        assert!(session["sandbox_id"].is_null(), "{what}: {session}");
        assert!(writings(self.folder.path()).contains(&id.to_owned()), "{what}: its bytes are kept");
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => files(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// A chunk as it is sealed: 64 KiB and its tag.
const SEALED: usize = (64 << 10) + 16;

#[test]
fn an_archive_that_was_altered_is_refused_and_stays() {
    let bed = Bed::new("altered");
    let (id, other) = (bed.archived("original"), bed.archived("intruder"));
    let path = bed.segment(&id);
    let whole = std::fs::read(&path).expect("its bytes");
    let (last, middle) = (whole.len() - 1, whole.len() / 2);
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let exchanged = [&whole[SEALED..2 * SEALED], &whole[..SEALED], &whole[2 * SEALED..]].concat();
    let theirs = std::fs::read(bed.segment(&other)).expect("its bytes");
    for (what, bytes, part) in [
        ("the first byte", flipped(0), "a chunk does not open"),
        ("one in the middle", flipped(middle), "a chunk does not open"),
        ("the last", flipped(last), "a chunk does not open"),
        ("cut off", whole[..middle].to_vec(), "a segment was cut off"),
        ("nothing", Vec::new(), "a segment was cut off"),
        ("two chunks exchanged", exchanged, "a chunk does not open"),
        ("another session's", theirs, "a chunk does not open"),
    ] {
        std::fs::write(&path, bytes).expect("altered");
        bed.is_refused(&id, what, &format!("the bytes of the artifact were changed: {part}"));
    }
    std::fs::remove_file(&path).expect("removed");
    bed.is_refused(&id, "removed", "the artifact store has no bytes for this artifact");
    let no_file = "the bytes of the artifact were changed: a segment is no file";
    let aside = bed.folder.path().join("aside");
    std::fs::write(&aside, &whole).expect("a file");
    symlink(&aside, &path).expect("a link");
    bed.is_refused(&id, "a link, even to what it was", no_file);
    std::fs::remove_file(&path).expect("removed");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    bed.is_refused(&id, "a pipe that nobody writes to", no_file);
    std::fs::remove_file(&path).expect("removed");
    // As it was, it comes back: it was the change that was refused.
    std::fs::write(&path, &whole).expect("as it was");
    resume(&bed.client, &id);
    assert_eq!(stdout(&shell(&bed.client, &id, "cat file")), "original\n");
    // One of its own from before does not take the place of the next.
    shell(&bed.client, &id, "echo changed > file");
    pause(&bed.client, &id, "archive");
    wait_until("the first is gone", || !path.exists());
    let next = bed.segment(&id);
    let kept = std::fs::read(&next).expect("its bytes");
    std::fs::write(&next, &whole).expect("altered");
    bed.is_refused(&id, "its own from before", "the bytes of the artifact were changed");
    std::fs::write(&next, kept).expect("as it was");
    resume(&bed.client, &id);
    assert_eq!(stdout(&shell(&bed.client, &id, "cat file")), "changed\n");
}

const FOLDER: u8 = 1;
const FILE: u8 = 2;
const LINK: u8 = 3;

/// One entry, as the worker writes them.
fn entry(kind: u8, mode: u32, path: &str, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(mode.to_le_bytes());
    bytes.extend(0_i64.to_le_bytes());
    bytes.extend((path.len() as u32).to_le_bytes());
    bytes.extend(path.as_bytes());
    bytes.extend(rest);
    bytes
}

fn file(path: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    entry(FILE, mode, path, &[&(content.len() as u64).to_le_bytes(), content].concat())
}

fn link(path: &str, target: &str) -> Vec<u8> {
    entry(LINK, 0o777, path, &[&(target.len() as u32).to_le_bytes(), target.as_bytes()].concat())
}

/// Entries, and a file that makes the whole as long as the one that is known of.
fn stream(entries: &[Vec<u8>], size: usize) -> Vec<u8> {
    let rest: usize = 16 + entries.iter().map(Vec::len).sum::<usize>() + 9;
    let filler = size.checked_sub(rest + file("filler", 0o644, b"").len()).expect("there is room");
    let mut bytes = b"cofferdam-files1".to_vec();
    bytes.extend(file("filler", 0o644, &vec![0; filler]));
    entries.iter().for_each(|entry| bytes.extend(entry));
    bytes.push(0);
    bytes.extend((entries.len() as u64 + 1).to_le_bytes());
    assert_eq!(bytes.len(), size);
    bytes
}

/// Seals something else under the key of a session's archive, in its place: what somebody does who has the master key.
fn forge(data: &Path, session: &str, make: impl Fn(usize) -> Vec<u8>) {
    let query =
        format!("SELECT tenant_id, attempt, wrapped_key, size_bytes FROM archives WHERE owner = '{session}'");
    let row = sql(data, &query)[0].clone();
    let word = |at: usize| row[at].as_str().expect("a word").to_owned();
    let size = row[3].as_u64().expect("a size");
    let master = MasterKey::open_or_make(&data.join("master.key")).expect("the master key");
    let key = master.unwrap(&word(2), &archive_about(session)).expect("its key");
    let vault = Vault::open(&Location::Folder(data.join("artifacts")), master).expect("the place");
    let name = Name::new(&word(0), session, &word(1)).expect("its name");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut writing = vault.write(name, key);
        writing.write(&make(size as usize)).await.expect("written");
        writing.finish().await.expect("written");
    });
}

#[test]
fn an_archive_that_was_made_up_under_its_own_key_reaches_nothing() {
    let bed = Bed::new("made-up");
    let id = bed.archived("original");
    let data = bed.folder.path();
    let plain = || file("x", 0o644, b"x");
    let deep = "d/".repeat(200);
    let elsewhere = "a path that leads elsewhere";
    for (entries, part) in [
        (vec![file("../escaped", 0o644, b"x")], format!("../escaped: {elsewhere}")),
        (vec![file("/etc/escaped", 0o644, b"x")], format!("/etc/escaped: {elsewhere}")),
        (vec![file("a/../../escaped", 0o644, b"x")], format!("a/../../escaped: {elsewhere}")),
        (vec![link("../escaped", "x")], format!("../escaped: {elsewhere}")),
        (vec![entry(FOLDER, 0o755, "../escaped", b"")], format!("../escaped: {elsewhere}")),
        (vec![file(&format!("{deep}x"), 0o644, b"x")], "d/d/d/".to_owned()),
        (vec![entry(4, 0o666, "null", &0_u64.to_le_bytes())], "/workspace/null: 4 is no kind".to_owned()),
        // Through a link, and in the place of one.
        (vec![link("out", "/tmp"), file("out/escaped", 0o644, b"x")], "/workspace/out/escaped: ".to_owned()),
        (vec![link("out", "/tmp/escaped"), file("out", 0o644, b"x")], "/workspace/out: ".to_owned()),
        (vec![link("out", "/tmp"), entry(FOLDER, 0o777, "out", b"")], "/workspace/out: ".to_owned()),
        (vec![plain(), link("x", "/etc/passwd")], "/workspace/x: ".to_owned()),
        (vec![plain(), entry(FOLDER, 0o755, "x", b"")], "/workspace/x: ".to_owned()),
    ] {
        forge(data, &id, |size| stream(&entries, size));
        bed.is_refused(&id, &part, &part);
    }
    // The whole of it: entries that it does not have, and more after its end.
    forge(data, &id, |size| {
        let mut bytes = stream(&[], size);
        *bytes.last_mut().expect("a byte") = 1;
        bytes
    });
    bed.is_refused(&id, "a wrong count", "it has 1 entries and says that it has");
    forge(data, &id, |size| [stream(&[], size - 5), vec![0; 5]].concat());
    bed.is_refused(&id, "more after the end", "it goes on after its end");
    // What is not refused does no harm; and that it comes back at all shows that it was made up well.
    forge(data, &id, |size| {
        stream(&[file("set", 0o6755, b"#!/bin/sh\n"), link("far", "/etc/passwd"), plain()], size)
    });
    resume(&bed.client, &id);
    let look = "stat -c '%n %a %u' set x; readlink far; find / -xdev -name 'escaped*' 2>/dev/null; ls";
    let seen = shell(&bed.client, &id, look);
    assert_eq!(stdout(&seen), "set 755 1000\nx 644 1000\n/etc/passwd\nfar\nfiller\nset\nx\n", "{seen}");
}
