//! An image that a daemon has, given to us: as the archive that `docker save` writes, while it is read.

use crate::daemon::{Address, failed, status};
use crate::engine::Engine;
use bollard::Docker;
use bytes::{Buf, Bytes};
use cofferdam_backend::{BackendError, Result};
use futures_util::StreamExt;
use std::io::{self, Read};
use tokio::sync::mpsc;

/// How many pieces of the daemon may wait to be read.
const PIECES: usize = 16;

const NOT_FOUND: u16 = 404;

/// An archive on its way. What the daemon does not finish ends with an error, never as if it were whole.
#[derive(Debug)]
pub struct Saved {
    /// The size of the image by the daemon's count; its archive is a little larger.
    pub size_bytes: Option<u64>,
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

/// Asks a daemon for an image by its name and tag. To be read outside of the runtime, which brings the pieces
/// meanwhile.
pub async fn save(engine: Engine, host: &str, image: &str) -> Result<Saved> {
    let address = Address::parse(engine, host)?;
    address.check().await.map_err(|error| otherwise(error, engine))?;
    let docker = address.client()?;
    let docker = docker
        .negotiate_version()
        .await
        .map_err(|error| failed("asking the daemon for its version", error))?;
    let (name, size_bytes) = find(&docker, engine, host, image).await?;
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let mut stream = Box::pin(docker.export_image(&name));
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| {
                let text =
                    format!("the {} daemon broke off: {error}; nothing was kept, try again", engine.name());
                io::Error::other(text)
            });
            let is_last = piece.is_err();
            if sender.send(piece).await.is_err() || is_last {
                return;
            }
        }
        // A channel that just closes may be that of a task that was dropped: the end is said.
        let _ = sender.send(Ok(Bytes::new())).await;
    });
    Ok(Saved { size_bytes, pieces, piece: Bytes::new() })
}

/// What to do without the daemon: here it is not a place to run something in.
fn otherwise(error: BackendError, engine: Engine) -> BackendError {
    let (program, variable) = match engine {
        Engine::Docker => ("dockerd", "DOCKER_HOST"),
        Engine::Podman => ("`podman system service --time 0`", "CONTAINER_HOST"),
    };
    match error {
        BackendError::Refused { reason, .. } => BackendError::Refused {
            reason,
            fix: format!(
                "start {program}, or name its socket with {variable}; an archive of `{} save` can be imported \
                 without it",
                engine.name()
            ),
        },
        other => other,
    }
}

/// What the image is called there, and how large it is.
async fn find(docker: &Docker, engine: Engine, host: &str, image: &str) -> Result<(String, Option<u64>)> {
    for name in engine.names(image) {
        match docker.inspect_image(&name).await {
            Ok(found) => return Ok((name, found.size.and_then(|size| u64::try_from(size).ok()))),
            Err(error) if status(&error) == Some(NOT_FOUND) => {}
            Err(error) => return Err(failed("looking for the image in the daemon", error)),
        }
    }
    let program = engine.name();
    Err(BackendError::Refused {
        reason: format!("the {program} daemon at {host} has no image {image:?}"),
        fix: format!(
            "`{program} images` shows those that it has; `cofferdam image pull {image}` gets one from a registry"
        ),
    })
}

impl Read for Saved {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) if piece.is_empty() => return Ok(0),
                Some(piece) => self.piece = piece?,
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the daemon is not asked any more",
                    ));
                }
            }
        }
        let n = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..n]);
        Ok(n)
    }
}
