//! A stream becomes files again, in a workspace where nothing runs yet.

use super::part::Shared;
use super::{END, FILE, FOLDER, LINK, MARK, MAX_ENTRIES, MAX_PATH};
use crate::session::SessionError;
use crate::task_env::workspace;
use cofferdam_backend::{BackendError, EntryKind, Sandbox};
use cofferdam_core::GuestPath;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};

const BUFFER: usize = 256 << 10;

/// Puts back what `save` has written.
pub(crate) async fn restore(
    sandbox: &dyn Sandbox,
    from: impl AsyncRead + Send + Unpin + 'static,
) -> Result<(), SessionError> {
    let shared = Shared::new(BufReader::with_capacity(BUFFER, from));
    let mut mark = [0; MARK.len()];
    shared.part(mark.len() as u64).read_exact(&mut mark).await.map_err(broken)?;
    if mark != *MARK {
        return Err(broken(io::Error::other("it does not begin as one")));
    }
    // What a new workspace has is not what this one had; where it had it, it comes back.
    let _ = sandbox.remove(&workspace().join(".artifacts")?, EntryKind::Folder).await;
    let mut folders = Vec::new();
    let mut count = 0;
    loop {
        let kind = shared.part(1).read_u8().await.map_err(broken)?;
        if kind == END {
            let said = shared.part(8).read_u64_le().await.map_err(broken)?;
            if said != count {
                return Err(broken(io::Error::other("it does not have what it says")));
            }
            break;
        }
        count += 1;
        if count > MAX_ENTRIES {
            return Err(broken(io::Error::other("it has too many entries")));
        }
        let mut head = shared.part(16);
        let mode = head.read_u32_le().await.map_err(broken)?;
        let modified_ms = head.read_i64_le().await.map_err(broken)?;
        let length = head.read_u32_le().await.map_err(broken)?;
        let path = below(text(&shared, length).await?)?;
        match kind {
            FOLDER => {
                sandbox.make_folder(&path).await?;
                folders.push((path, mode, modified_ms));
            }
            FILE => {
                let size = shared.part(8).read_u64_le().await.map_err(broken)?;
                let content = Box::new(shared.part(size));
                sandbox.restore_file(&path, mode, modified_ms, content).await?;
            }
            LINK => {
                let length = shared.part(4).read_u32_le().await.map_err(broken)?;
                let target = text(&shared, length).await?;
                sandbox.make_link(&path, &target).await?;
            }
            _ => return Err(broken(io::Error::other("it has something of an unknown kind"))),
        }
    }
    // The deepest first: what may not be written to any more has everything by then.
    for (path, mode, modified_ms) in folders.into_iter().rev() {
        sandbox.restore_folder(&path, mode, modified_ms).await?;
    }
    Ok(())
}

async fn text<R: AsyncRead + Unpin>(from: &Shared<R>, length: u32) -> Result<Vec<u8>, SessionError> {
    if length > MAX_PATH {
        return Err(broken(io::Error::other("it has a path that is too long")));
    }
    let mut bytes = vec![0; length as usize];
    from.part(length.into()).read_exact(&mut bytes).await.map_err(broken)?;
    Ok(bytes)
}

/// A path inside the workspace, and nowhere else.
fn below(path: Vec<u8>) -> Result<GuestPath, SessionError> {
    let wrong = || broken(io::Error::other("it has a path that leads elsewhere"));
    let path = String::from_utf8(path).map_err(|_| wrong())?;
    let is_plain = !path.is_empty() && path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    if !is_plain || path.contains('\0') {
        return Err(wrong());
    }
    Ok(workspace().join(&path)?)
}

fn broken(error: io::Error) -> SessionError {
    BackendError::failed("reading what was kept of the files", error).into()
}
