//! The artifacts of a run elsewhere: what it asks for is brought, what it leaves is fetched, each as a stream.

use crate::backoff::Backoff;
use crate::call::{ANSWER, CallError, Peer};
use cofferdam_api::{RunOutputKept, RunOutputVerdict};
use cofferdam_control::{ArtifactDesk, Reader};
use futures_util::TryStreamExt;
use reqwest::Method;
use std::io;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::io::{ReaderStream, StreamReader};

/// The transfers of one run. Dropping them ends them.
pub(crate) struct Transfers {
    peer: Peer,
    /// Which run, and by which claim.
    path: String,
    claim: String,
    attempt: i64,
    fence: i64,
    desk: Option<Arc<dyn ArtifactDesk>>,
    tasks: JoinSet<()>,
}

impl Transfers {
    pub(crate) fn new(
        peer: &Peer,
        (id, attempt, fence): (&str, i64, i64),
        desk: Option<Arc<dyn ArtifactDesk>>,
    ) -> Self {
        let (path, claim) = (format!("/runs/{id}"), format!("attempt={attempt}&fence={fence}"));
        Self { peer: peer.clone(), path, claim, attempt, fence, desk, tasks: JoinSet::new() }
    }

    /// Brings an artifact that the run has asked for.
    pub(crate) fn bring(&mut self, number: u64, artifact: String) {
        self.tidy();
        let path = format!("{}/inputs/{number}?{}", self.path, self.claim);
        self.tasks.spawn(send_input(self.peer.clone(), path, self.desk.clone(), artifact));
    }

    /// Fetches an artifact that the run leaves.
    pub(crate) fn fetch(&mut self, number: u64, name: String) {
        self.tidy();
        let path = format!("{}/outputs/{number}", self.path);
        let content = format!("{path}?{}", self.claim);
        let (peer, desk, attempt, fence) = (self.peer.clone(), self.desk.clone(), self.attempt, self.fence);
        self.tasks.spawn(async move {
            let verdict = match fetch_output(&peer, &content, desk, &name).await {
                Ok(size_bytes) => RunOutputVerdict::Kept { size_bytes },
                Err(error) => RunOutputVerdict::Refused { why: error.to_string() },
            };
            tell(&peer, &path, &RunOutputKept { attempt, fence, verdict }).await;
        });
    }

    fn tidy(&mut self) {
        while self.tasks.try_join_next().is_some() {}
    }
}

fn no_store() -> io::Error {
    io::Error::other("this server has no artifact store")
}

async fn open(desk: Option<&dyn ArtifactDesk>, artifact: &str) -> io::Result<Reader> {
    desk.ok_or_else(no_store)?.open(artifact).await
}

/// Until it was brought, or the worker says that nobody waits for it.
async fn send_input(peer: Peer, path: String, desk: Option<Arc<dyn ArtifactDesk>>, artifact: String) {
    let mut backoff = Backoff::default();
    loop {
        let sent = match open(desk.as_deref(), &artifact).await {
            Ok(reader) => peer.send(&path, reqwest::Body::wrap_stream(ReaderStream::new(reader))).await,
            Err(error) => {
                let why = format!("the artifact {artifact} cannot be read: {error}");
                peer.send(&format!("{path}&refused={}", encode(&why)), reqwest::Body::from("")).await
            }
        };
        match sent {
            Ok(()) | Err(CallError::Refused { .. }) => return,
            Err(CallError::Unreached(..) | CallError::Unanswered(..)) => backoff.pause().await,
        }
    }
}

/// Keeps what the worker sends, and says how much that was. When it does not come to its end, nothing is kept.
async fn fetch_output(
    peer: &Peer,
    path: &str,
    desk: Option<Arc<dyn ArtifactDesk>>,
    name: &str,
) -> io::Result<u64> {
    let desk = desk.ok_or_else(no_store)?;
    let mut backoff = Backoff::default();
    let answer = loop {
        match tokio::time::timeout(ANSWER, peer.fetch(path)).await {
            Ok(Ok(answer)) => break answer,
            Ok(Err(error @ CallError::Refused { .. })) => return Err(io::Error::other(error.to_string())),
            Ok(Err(_)) | Err(_) => backoff.pause().await,
        }
    };
    let mut content = StreamReader::new(answer.bytes_stream().map_err(io::Error::other));
    desk.keep(name, &mut content).await
}

/// Until somebody has heard it, or wants to hear nothing of it.
async fn tell(peer: &Peer, path: &str, kept: &RunOutputKept) {
    let mut backoff = Backoff::default();
    while let Err(CallError::Unreached(..) | CallError::Unanswered(..)) =
        peer.call(Method::POST, path, Some(kept)).await
    {
        backoff.pause().await;
    }
}

/// Everything that could mean something in a query is written by its number.
fn encode(text: &str) -> String {
    text.bytes().take(1_000).fold(String::new(), |all, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            all + char::from(byte).encode_utf8(&mut [0; 4])
        }
        _ => all + &format!("%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_value_of_a_query() {
        assert_eq!(encode("a b&c=ü"), "a%20b%26c%3D%C3%BC");
        assert!(encode(&"%".repeat(100_000)).len() <= 3_000);
    }
}
