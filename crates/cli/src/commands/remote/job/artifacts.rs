//! `cofferdam job artifacts`: what a job left, listed or brought here.

use super::super::failure::failure;
use super::super::progress::Transfer;
use super::super::table::{by_state, one_line, table};
use super::super::{block_on, connect, print, print_json};
use crate::args::JobArtifactsArgs;
use crate::exit::Failure;
use crate::host::colour::Colours;
use cofferdam_api::Artifact;
use cofferdam_client::{Client, Progress};
use cofferdam_worker::artifacts::{ArtifactPath, ArtifactStore, HostFolder};
use serde_json::json;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::{Receiver, Sender, channel};

pub(super) fn artifacts(args: &JobArtifactsArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let is_json = args.remote.json;
    block_on(async {
        let artifacts = all(&client, &args.id).await?;
        if let Some(out) = &args.out {
            download(&client, &artifacts, out, is_json).await?;
        }
        match (is_json, &args.out) {
            (true, _) => print_json(&json!({"artifacts": artifacts})),
            (false, None) => {
                let rows: Vec<_> = artifacts.iter().map(row).collect();
                let head = ["ID", "BYTES", "SHA256", "NAME"];
                print(&table(&head, &rows, Colours::for_stdout(), by_state))
            }
            (false, Some(_)) => {
                let lines = artifacts.iter().map(|artifact| one_line(&artifact.name) + "\n");
                print(&lines.collect::<String>())
            }
        }?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn all(client: &Client, job: &str) -> Result<Vec<Artifact>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.job_artifacts(job, cursor.as_deref()).await.map_err(failure)?;
        found.extend(page.artifacts);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

fn row(artifact: &Artifact) -> Vec<String> {
    let hash = artifact.sha256.as_deref().unwrap_or("-");
    let hash = hash.get(..16).unwrap_or(hash).to_owned();
    vec![artifact.id.clone(), artifact.size_bytes.to_string(), hash, artifact.name.clone()]
}

/// Each below the folder, by the name that the job gave it. What is not safe as a name here is refused before anything
/// is written.
async fn download(
    client: &Client,
    artifacts: &[Artifact],
    out: &Path,
    is_quiet: bool,
) -> Result<(), Failure> {
    let paths = artifacts.iter().map(|artifact| place(&artifact.name)).collect::<Result<Vec<_>, _>>()?;
    let failed = |error: io::Error| Failure::new(format!("--out {}: {error}", out.display()));
    let mut folder = HostFolder::open(out).map_err(failed)?;
    for (artifact, path) in artifacts.iter().zip(&paths) {
        let transfer = Transfer::new(&artifact.name, artifact.size_bytes, is_quiet);
        let (sender, receiver) = channel(4);
        let mut content = Incoming { receiver, piece: Vec::new(), at: 0 };
        let pump = pump(client, artifact, sender, transfer.counter());
        let (stored, ()) = tokio::join!(folder.put(path, &mut content), pump);
        transfer.end();
        stored.map_err(|error| Failure::new(format!("{}: {error}", one_line(&artifact.name))))?;
    }
    Ok(())
}

fn place(name: &str) -> Result<ArtifactPath, Failure> {
    let mut path: Option<ArtifactPath> = None;
    for part in name.split('/') {
        let below = ArtifactPath::below(path.as_ref(), part.as_bytes());
        path = Some(below.map_err(|why| Failure::new(format!("{}: {why}", one_line(name))))?);
    }
    path.ok_or_else(|| Failure::new("an artifact without a name"))
}

/// Bytes as they come, or why they do not: whoever reads must not take a part for the whole.
async fn pump(client: &Client, artifact: &Artifact, sender: Sender<io::Result<Vec<u8>>>, progress: Progress) {
    let mut download = match client.artifact_download(artifact).await {
        Ok(download) => download,
        Err(error) => return drop(sender.send(Err(io::Error::other(error))).await),
    };
    loop {
        let piece = match download.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return,
            Err(error) => return drop(sender.send(Err(io::Error::other(error))).await),
        };
        progress(piece.len() as u64);
        if sender.send(Ok(piece)).await.is_err() {
            return;
        }
    }
}

/// What was sent, as something to read from.
struct Incoming {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl AsyncRead for Incoming {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.at == self.piece.len() {
            match ready!(self.receiver.poll_recv(context)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                Some(Ok(piece)) => (self.piece, self.at) = (piece, 0),
            }
        }
        let n = buffer.remaining().min(self.piece.len() - self.at);
        buffer.put_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}
