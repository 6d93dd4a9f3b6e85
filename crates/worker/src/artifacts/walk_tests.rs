//! The walk, over what hostile code could leave behind.

use super::super::ArtifactStore;
use super::*;
use crate::testing::{FakeBackend, FakeFiles, Node};
use crate::{JobSpec, Work, draw_job_id, draw_sandbox_id, sandbox_spec};
use cofferdam_backend::{Backend, async_trait};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The paths of what was stored.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ArtifactStore for Kept {
    async fn put(
        &mut self,
        path: &ArtifactPath,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    ) -> io::Result<u64> {
        let size = content.read_to_end(&mut Vec::new()).await? as u64;
        self.0.lock().unwrap().push(path.to_string());
        Ok(size)
    }
}

async fn walked(wanted: ArtifactsWanted, bytes_max: u64, files: impl FnOnce(&mut FakeFiles)) -> Collected {
    let backend = FakeBackend::new().with_files(files);
    let job = JobSpec::new(draw_job_id().unwrap(), Work::Command { argv: Vec::new() });
    let sandbox = backend.create(sandbox_spec(draw_sandbox_id().unwrap(), &job)).await.unwrap();
    collect(&*sandbox, wanted, bytes_max).await
}

fn taken(collected: &Collected) -> Vec<(&str, u64)> {
    collected.taken.iter().map(|a| (a.path.as_str(), a.size_bytes)).collect()
}

fn skipped(collected: &Collected) -> Vec<(&str, &str)> {
    collected.skipped.iter().map(|a| (a.path.as_str(), a.reason.as_str())).collect()
}

#[tokio::test]
async fn plain_files_are_taken_and_the_rest_is_listed_with_the_reason() {
    let kept = Kept::default();
    let found = walked(ArtifactsWanted::Stored(Box::new(kept.clone())), 1000, |files| {
        files.put_file("/workspace/.artifacts/b.txt", b"bb");
        files.put_file("/workspace/.artifacts/a/deep.txt", b"a");
        files.put("/workspace/.artifacts/link", Node::Link);
        files.put("/workspace/.artifacts/a/pipe", Node::Other);
        files.put_file(b"/workspace/.artifacts/\xff", b"");
        files.put_file("/workspace/.artifacts/a/new\nline", b"");
        files.put_file("/workspace/other.txt", b"not an artifact");
    })
    .await;
    assert_eq!(taken(&found), [("a/deep.txt", 1), ("b.txt", 2)]);
    let expected = [
        ("a/new\nline", "its name has control characters in it"),
        ("a/pipe", "it is not a plain file"),
        ("link", "it is a link"),
        ("\u{fffd}", "its name is not UTF-8"),
    ];
    assert_eq!(skipped(&found), expected);
    assert_eq!(kept.0.lock().unwrap().len(), 2, "what is skipped is not read");
}

#[tokio::test]
async fn listing_reads_nothing_and_not_wanting_looks_at_nothing() {
    let file = |files: &mut FakeFiles| {
        files.put("/workspace/.artifacts/x", Node::Growing { listed_bytes: 7, content: vec![0; 100] });
    };
    assert_eq!(taken(&walked(ArtifactsWanted::Listed, 1, file).await), [("x", 7)]);
    assert_eq!(walked(ArtifactsWanted::No, 1, file).await, Collected::default());
}

#[tokio::test]
async fn what_is_read_counts_and_not_what_was_listed() {
    let kept = Kept::default();
    let found = walked(ArtifactsWanted::Stored(Box::new(kept.clone())), 10, |files| {
        files.put_file("/workspace/.artifacts/a", &[1; 6]);
        files.put("/workspace/.artifacts/b", Node::Growing { listed_bytes: 1, content: vec![2; 100] });
        files.put_file("/workspace/.artifacts/c", &[3; 4]);
    })
    .await;
    assert_eq!(taken(&found), [("a", 6), ("c", 4)]);
    assert_eq!(skipped(&found)[0].1, "the artifacts are larger than the job's disk limit");
}

#[tokio::test]
async fn depth_and_number_are_bounded() {
    let found = walked(ArtifactsWanted::Listed, 0, |files| {
        files.put_file(format!("/workspace/.artifacts{}/x", "/d".repeat(31)), b"");
        files.put_file(format!("/workspace/.artifacts/e{}/x", "/d".repeat(31)), b"");
    })
    .await;
    assert_eq!(found.taken.len(), 1);
    assert!(skipped(&found)[0].1.contains("32 folders deep"));
    let found = walked(ArtifactsWanted::Listed, 0, |files| {
        for i in 0..=ENTRIES_MAX {
            files.put_file(format!("/workspace/.artifacts/{i}"), b"");
        }
    })
    .await;
    assert_eq!((found.taken.len(), skipped(&found)[0].0), (ENTRIES_MAX, "."));
}

#[tokio::test]
async fn a_folder_that_became_something_else_is_no_error() {
    let found = walked(ArtifactsWanted::Listed, 0, |_| {}).await;
    assert_eq!(found, Collected::default());
}
