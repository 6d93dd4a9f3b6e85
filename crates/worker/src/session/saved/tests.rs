//! Streams that are not what they should be.

use super::*;
use crate::session::{SessionError, SessionSpec, sandbox_spec};
use crate::testing::FakeBackend;
use cofferdam_backend::{Backend, Sandbox};
use cofferdam_core::{GuestPath, SandboxId, SessionId};
use std::io::Cursor;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

async fn sandbox() -> Box<dyn Sandbox> {
    let session = SessionSpec::new(SessionId::from_random([1; 10]), 1);
    let spec = sandbox_spec(SandboxId::from_random([1; 10]), &session);
    FakeBackend::new().create(spec).await.unwrap()
}

fn file(path: &str, content: &[u8], said: u64) -> Vec<u8> {
    let mut bytes = vec![FILE];
    bytes.extend(0o644_u32.to_le_bytes());
    bytes.extend(0_i64.to_le_bytes());
    bytes.extend((path.len() as u32).to_le_bytes());
    bytes.extend(path.as_bytes());
    bytes.extend(said.to_le_bytes());
    bytes.extend(content);
    bytes
}

fn stream(entries: &[Vec<u8>], said: u64) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    entries.iter().for_each(|entry| bytes.extend(entry));
    bytes.push(END);
    bytes.extend(said.to_le_bytes());
    bytes
}

async fn put_back(bytes: Vec<u8>) -> Result<Box<dyn Sandbox>, SessionError> {
    let sandbox = sandbox().await;
    restore(&*sandbox, Cursor::new(bytes)).await.map(|()| sandbox)
}

#[tokio::test]
async fn files_come_back_and_one_after_the_other() {
    let bytes = stream(&[file("a", b"one", 3), file("b/c", b"", 0), file("d", b"two", 3)], 3);
    let sandbox = put_back(bytes).await.unwrap();
    for (path, expected) in [("/workspace/a", "one"), ("/workspace/b/c", ""), ("/workspace/d", "two")] {
        let mut content = String::new();
        let path = GuestPath::parse("path", path).unwrap();
        sandbox.read_file(&path).await.unwrap().read_to_string(&mut content).await.unwrap();
        assert_eq!(content, expected, "{path}");
    }
}

#[tokio::test]
async fn a_stream_that_was_cut_off_is_not_a_whole_one() {
    let whole = stream(&[file("a", b"one", 3), file("b", b"two", 3)], 2);
    for cut in 0..whole.len() {
        assert!(put_back(whole[..cut].to_vec()).await.is_err(), "{cut} bytes of {}", whole.len());
    }
    assert!(put_back(whole).await.is_ok());
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    for path in ["../a", "a/../../b", "/etc/a", "a//b", ".", "", "a/", "a/./b", "a\0b"] {
        assert!(put_back(stream(&[file(path, b"x", 1)], 1)).await.is_err(), "{path:?}");
    }
    let long = "a".repeat(MAX_PATH as usize + 1);
    assert!(put_back(stream(&[file(&long, b"x", 1)], 1)).await.is_err());
}

fn folder(path: &str) -> Vec<u8> {
    let mut bytes = vec![FOLDER];
    bytes.extend(0o755_u32.to_le_bytes());
    bytes.extend(0_i64.to_le_bytes());
    bytes.extend((path.len() as u32).to_le_bytes());
    bytes.extend(path.as_bytes());
    bytes
}

/// Each is told from a worker that failed, and says what is wrong.
#[tokio::test]
async fn what_is_wrong_is_said() {
    let device = |kind: u8| [&[kind], &folder("null")[1..]].concat();
    let more = [stream(&[file("a", b"one", 3)], 1), b"more".to_vec()].concat();
    // The same folder again and again is one in the sandbox, and many here.
    let long = format!("{}z", format!("{}/", "a".repeat(250)).repeat(16));
    let many = MAX_FOLDER_BYTES / long.len() + 1;
    for (bytes, part) in [
        (stream(&[file("../a", b"x", 1)], 1), "../a: a path that leads elsewhere"),
        (stream(&[device(4)], 1), "/workspace/null: 4 is no kind of entry"),
        (stream(&[file(&format!("{}a", "d/".repeat(MAX_DEPTH)), b"x", 1)], 1), "too deep"),
        (stream(&[file("a", b"one", 3)], 2), "it has 1 entries and says that it has 2"),
        (stream(&[file("a", b"one", 3)], 1)[..40].to_vec(), "it ends too early"),
        (more, "it goes on after its end"),
        (b"something else altogether".to_vec(), "it does not begin as one"),
        (stream(&vec![folder(&long); many], many as u64), "the names of its folders are too long together"),
    ] {
        let Err(error) = put_back(bytes).await else { panic!("{part}: it was taken") };
        assert_eq!(error.code(), "archive_refused", "{part}: {error}");
        assert!(error.text().contains(part), "{part}: {}", error.text());
    }
}

#[tokio::test]
async fn what_is_said_has_to_be_so() {
    assert!(put_back(stream(&[file("a", b"one", 3)], 2)).await.is_err(), "an entry too few");
    assert!(put_back(stream(&[file("a", b"one", u64::MAX)], 1)).await.is_err(), "more bytes than there are");
    assert!(put_back(stream(&[vec![9]], 1)).await.is_err(), "an unknown kind");
    assert!(put_back(b"another file, not such a stream".to_vec()).await.is_err());
}

#[tokio::test]
async fn who_hands_no_files_over_says_so_before_anything_is_copied() {
    let (from, to): (Arc<dyn Sandbox>, Arc<dyn Sandbox>) = (sandbox().await.into(), sandbox().await.into());
    let artifacts = GuestPath::parse("path", "/workspace/.artifacts").unwrap();
    to.make_folder(&artifacts).await.unwrap();
    let turns = Arc::new(Semaphore::new(MAX_COPYING));
    let refused = copy(&from, &to, &turns).await.unwrap_err();
    assert_eq!(refused.code(), "unsupported");
    assert!(to.list_files(&artifacts, 1).await.is_ok(), "it is as it was");
}
