//! `cofferdam session cp`: files and folders into a session, and out of it.

use super::super::failure::failure;
use super::super::progress::Transfer;
use super::super::{block_on, connect, print, print_json};
use crate::args::SessionCopyArgs;
use crate::exit::Failure;
use cofferdam_api::FileKind;
use cofferdam_client::{ArchiveFormat, Client, ClientError, FileDownload, Progress};
use cofferdam_images::{FolderTar, unpack_plain};
use serde_json::json;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::sync::mpsc::{Receiver, channel};

/// One side of a copy.
#[derive(Debug, PartialEq, Eq)]
enum Side<'a> {
    Here(&'a Path),
    There { session: &'a str, path: &'a str },
}

/// `ses-…:path` is a session's; anything else is of this machine.
fn side(text: &str) -> Side<'_> {
    match text.split_once(':') {
        Some((session, path)) if session.starts_with("ses-") => {
            Side::There { session, path: if path.is_empty() { "/workspace" } else { path } }
        }
        _ => Side::Here(Path::new(text)),
    }
}

/// What went over.
struct Copied {
    from: String,
    to: String,
    files: u64,
}

pub(super) fn copy(args: &SessionCopyArgs) -> Result<ExitCode, Failure> {
    let (from, to) = (side(&args.source), side(&args.destination));
    let client = connect(&args.remote)?;
    let is_quiet = args.remote.json;
    let copied = block_on(async {
        match (from, to) {
            (Side::Here(from), Side::There { session, path }) => {
                upload(&client, from, session, path, is_quiet).await
            }
            (Side::There { session, path }, Side::Here(to)) => {
                download(&client, session, path, to, is_quiet).await
            }
            _ => Err(Failure::new(
                "one of the two must be of a session, such as ses-aaaaaaaaaaaaaaaa:/workspace/a.txt, and the other of this machine",
            )),
        }
    })?;
    let Copied { from, to, files } = copied;
    match args.remote.json {
        true => print_json(&json!({"from": from, "to": to, "files": files})),
        false => print(&format!("{to}\n")),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn of(path: &Path) -> impl Fn(io::Error) -> Failure {
    let shown = path.display().to_string();
    move |error| Failure::new(format!("{shown}: {error}"))
}

/// The last name of a path.
fn last_name(path: &str) -> Option<&str> {
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !["", ".", ".."].contains(name))
}

async fn upload(
    client: &Client,
    from: &Path,
    session: &str,
    to: &str,
    is_quiet: bool,
) -> Result<Copied, Failure> {
    let metadata = std::fs::metadata(from).map_err(of(from))?;
    let target = match client.file_stat(session, to).await {
        // Into a folder that is there, under its own name.
        Ok(info) if info.kind == FileKind::Folder => {
            let real = from.canonicalize().map_err(of(from))?;
            let name = real.file_name().and_then(|name| name.to_str().map(str::to_owned));
            let name =
                name.ok_or_else(|| Failure::new(format!("{}: it has no name of its own", from.display())))?;
            format!("{}/{name}", info.path.trim_end_matches('/'))
        }
        Ok(info) => info.path,
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => to.to_owned(),
        Err(error) => return Err(failure(error)),
    };
    let shown = from.display().to_string();
    let files = if metadata.is_dir() {
        let content = FolderTar::open(from).map_err(|error| Failure::new(error.to_string()))?;
        let transfer = Transfer::unmeasured(&shown, is_quiet);
        let sent =
            client.archive_write(session, &target, ArchiveFormat::Tar, content, transfer.counter()).await;
        transfer.end();
        sent.map_err(failure)?.files
    } else {
        let file = tokio::fs::File::open(from).await.map_err(of(from))?;
        let transfer = Transfer::new(&shown, metadata.len(), is_quiet);
        let mode = metadata.permissions().mode();
        let sent = client.file_write(session, &target, mode, file, metadata.len(), transfer.counter()).await;
        transfer.end();
        sent.map_err(failure)?;
        1
    };
    Ok(Copied { from: shown, to: format!("{session}:{target}"), files })
}

async fn download(
    client: &Client,
    session: &str,
    from: &str,
    to: &Path,
    is_quiet: bool,
) -> Result<Copied, Failure> {
    let info = client.file_stat(session, from).await.map_err(failure)?;
    let place: PathBuf = match (to.is_dir(), last_name(&info.path)) {
        (true, Some(name)) => to.join(name),
        (true, None) => {
            return Err(Failure::new(format!("{from}: it has no name of its own; name a new folder")));
        }
        (false, _) => to.to_owned(),
    };
    let files = match info.kind {
        FileKind::Folder => {
            std::fs::create_dir_all(&place).map_err(of(&place))?;
            let transfer = Transfer::unmeasured(from, is_quiet);
            let archive =
                client.archive_read(session, &info.path, ArchiveFormat::Tar).await.map_err(failure)?;
            let content = incoming(archive, transfer.counter());
            let folder = place.clone();
            let unpacked = tokio::task::spawn_blocking(move || unpack_plain(content, &folder)).await;
            transfer.end();
            let unpacked = unpacked.map_err(|error| Failure::new(error.to_string()))?;
            unpacked.map_err(|error| Failure::new(error.to_string()))?
        }
        FileKind::File => {
            let transfer = Transfer::new(from, info.size_bytes, is_quiet);
            let content = client.file_read(session, &info.path).await.map_err(failure)?;
            let mode =
                info.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or(0o644);
            let written = write(content, &place, mode & 0o777, transfer.counter()).await;
            transfer.end();
            written?;
            1
        }
        FileKind::Link | FileKind::Other => {
            return Err(Failure::new(format!(
                "{from}: it is neither a file nor a folder, and is not followed"
            )));
        }
    };
    Ok(Copied { from: format!("{session}:{}", info.path), to: place.display().to_string(), files })
}

/// Beside its place until it is whole.
async fn write(
    mut content: FileDownload,
    place: &Path,
    mode: u32,
    progress: Progress,
) -> Result<(), Failure> {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let draft = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = async {
        let mut file =
            std::fs::File::options().write(true).create_new(true).open(&draft).map_err(of(&draft))?;
        while let Some(piece) = content.next().await.map_err(failure)? {
            file.write_all(&piece).map_err(of(&draft))?;
            progress(piece.len() as u64);
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(of(&draft))?;
        std::fs::rename(&draft, place).map_err(of(place))
    };
    let written = written.await;
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// What comes, for a reader on a thread of its own.
fn incoming(mut download: FileDownload, progress: Progress) -> Incoming {
    let (sender, receiver) = channel(4);
    tokio::spawn(async move {
        loop {
            let piece = match download.next().await {
                Ok(Some(piece)) => {
                    progress(piece.len() as u64);
                    Ok(piece.to_vec())
                }
                Ok(None) => return,
                Err(error) => Err(io::Error::other(error.to_string())),
            };
            let is_over = piece.is_err();
            if sender.send(piece).await.is_err() || is_over {
                return;
            }
        }
    });
    Incoming { receiver, piece: io::Cursor::new(Vec::new()) }
}

struct Incoming {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = io::Cursor::new(piece?),
                None => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_a_session_begins_with_its_id() {
        let there = |session, path| Side::There { session, path };
        assert_eq!(side("ses-a:/tmp/x"), there("ses-a", "/tmp/x"));
        assert_eq!(side("ses-a:x:y"), there("ses-a", "x:y"));
        assert_eq!(side("ses-a:"), there("ses-a", "/workspace"));
        assert_eq!(side("./ses-a:x"), Side::Here(Path::new("./ses-a:x")));
        assert_eq!(side("a.txt"), Side::Here(Path::new("a.txt")));
    }
}
