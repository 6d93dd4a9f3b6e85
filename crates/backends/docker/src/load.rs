//! An image of our own store, given to a daemon that does not have it.

use crate::daemon::failed;
use bollard::Docker;
use bollard::query_parameters::ImportImageOptions;
use bytes::Bytes;
use cofferdam_backend::{BackendError, Result};
use cofferdam_images::{Digest, ImageError, ImageRef, Lease, Store};
use futures_util::{StreamExt, stream};
use std::io::{self, Read};
use tokio::sync::mpsc;

/// The repository of images of our store; the tag is the first half of the digest. With a registry, so that every
/// engine takes it for the same name.
const REPOSITORY: &str = "localhost/cofferdam-store";

/// Large enough that the daemon is busy, small enough to be forgotten.
const PIECE: usize = 256 << 10;

/// How many pieces may wait for the daemon.
const PIECES: usize = 4;

/// What an image of the store is called in a daemon.
pub(crate) fn name(id: Digest) -> String {
    format!("{REPOSITORY}:{}", &id.hex()[..32])
}

/// The image of that name, held in the store; `None` where the store has none.
pub(crate) async fn find(store: &Store, image: &str) -> Result<Option<Lease>> {
    let Ok(wanted) = ImageRef::parse("image", image) else { return Ok(None) };
    let store = store.clone();
    let opened = tokio::task::spawn_blocking(move || store.open(&wanted)).await;
    match opened.unwrap_or_else(|error| {
        Err(ImageError::Refused { what: "the image store".to_owned(), why: error.to_string() })
    }) {
        Ok(lease) => Ok(Some(lease)),
        Err(ImageError::NotFound { .. }) => Ok(None),
        Err(error) => Err(BackendError::failed("looking into the image store", io::Error::other(error))),
    }
}

/// Has the daemon load it, under our name for it.
pub(crate) async fn load(docker: &Docker, lease: Lease) -> Result<String> {
    let name = name(lease.image.id);
    let (sender, receiver) = mpsc::channel(PIECES);
    let tag = name.clone();
    let reading = tokio::task::spawn_blocking(move || send(&lease, &tag, &sender));
    let body = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece: io::Result<Bytes>| (piece, receiver))
    });
    let options = ImportImageOptions { quiet: true, ..Default::default() };
    let mut answers = Box::pin(docker.import_image(options, bollard::body_try_stream(body), None));
    while let Some(answer) = answers.next().await {
        answer.map_err(|error| failed("loading an image of the store into the daemon", error))?;
    }
    drop(answers);
    match reading.await {
        Ok(Err(error)) => Err(BackendError::failed("reading an image of the store", error)),
        _ => Ok(name),
    }
}

/// Reads the whole archive into the channel. A daemon that hangs up ends it.
fn send(lease: &Lease, name: &str, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut export = match lease.export(name) {
        Ok(export) => export,
        Err(error) => {
            let text = error.to_string();
            let _ = sender.blocking_send(Err(io::Error::other(error)));
            return Err(io::Error::other(text));
        }
    };
    loop {
        let mut piece = vec![0; PIECE];
        let read = export.read(&mut piece);
        let (piece, ended) = match read {
            Ok(0) => return Ok(()),
            Ok(n) => {
                piece.truncate(n);
                (Ok(Bytes::from(piece)), None)
            }
            Err(error) => {
                let text = error.to_string();
                (Err(error), Some(text))
            }
        };
        if sender.blocking_send(piece).is_err() {
            return Ok(());
        }
        if let Some(text) = ended {
            return Err(io::Error::other(text));
        }
    }
}
