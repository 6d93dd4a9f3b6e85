//! A stream becomes files again, in a workspace where nothing runs yet. It is believed nothing: whatever is not as `save`
//! writes it ends it, and whoever asked throws the sandbox away.

use super::part::Shared;
use super::{END, FILE, FOLDER, LINK, MARK, MAX_DEPTH, MAX_ENTRIES, MAX_FOLDER_BYTES, MAX_PATH};
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
        return Err(wrong("", "it does not begin as one"));
    }
    // What a new workspace has is not what this one had; where it had it, it comes back.
    let _ = sandbox.remove(&workspace().join(".artifacts")?, EntryKind::Folder).await;
    let mut folders = Vec::new();
    let (mut count, mut folder_bytes) = (0, 0);
    loop {
        let kind = shared.part(1).read_u8().await.map_err(broken)?;
        if kind == END {
            let said = shared.part(8).read_u64_le().await.map_err(broken)?;
            if said != count {
                return Err(wrong("", &format!("it has {count} entries and says that it has {said}")));
            }
            if shared.part(1).read_u8().await.is_ok() {
                return Err(wrong("", "it goes on after its end"));
            }
            break;
        }
        count += 1;
        if count > MAX_ENTRIES {
            return Err(wrong("", &format!("it has more than {MAX_ENTRIES} entries")));
        }
        let mut head = shared.part(16);
        let mode = head.read_u32_le().await.map_err(broken)?;
        let modified_ms = head.read_i64_le().await.map_err(broken)?;
        let length = head.read_u32_le().await.map_err(broken)?;
        let path = below(text(&shared, length).await?)?;
        match kind {
            FOLDER => {
                folder_bytes += path.as_str().len();
                if folder_bytes > MAX_FOLDER_BYTES {
                    return Err(wrong(path.as_str(), "the names of its folders are too long together"));
                }
                sandbox.make_folder(&path).await.map_err(|error| unplaced(&path, error))?;
                folders.push((path, mode, modified_ms));
            }
            FILE => {
                let size = shared.part(8).read_u64_le().await.map_err(broken)?;
                let content = Box::new(shared.part(size));
                let restored = sandbox.restore_file(&path, mode, modified_ms, content).await;
                restored.map_err(|error| unplaced(&path, error))?;
            }
            LINK => {
                let length = shared.part(4).read_u32_le().await.map_err(broken)?;
                let target = text(&shared, length).await?;
                sandbox.make_link(&path, &target).await.map_err(|error| unplaced(&path, error))?;
            }
            kind => return Err(wrong(path.as_str(), &format!("{kind} is no kind of entry"))),
        }
    }
    // The deepest first: what may not be written to any more has everything by then.
    for (path, mode, modified_ms) in folders.into_iter().rev() {
        let restored = sandbox.restore_folder(&path, mode, modified_ms).await;
        restored.map_err(|error| unplaced(&path, error))?;
    }
    Ok(())
}

async fn text<R: AsyncRead + Unpin>(from: &Shared<R>, length: u32) -> Result<Vec<u8>, SessionError> {
    if length > MAX_PATH {
        return Err(wrong("", &format!("a path of {length} bytes; there is none of more than {MAX_PATH}")));
    }
    let mut bytes = vec![0; length as usize];
    from.part(length.into()).read_exact(&mut bytes).await.map_err(broken)?;
    Ok(bytes)
}

/// A path inside the workspace, and nowhere else.
fn below(path: Vec<u8>) -> Result<GuestPath, SessionError> {
    let path = String::from_utf8(path).map_err(|_| wrong("", "a path that is not UTF-8"))?;
    let is_plain = !path.is_empty() && path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    if !is_plain || path.contains('\0') {
        return Err(wrong(&path, "a path that leads elsewhere"));
    }
    if path.split('/').count() > MAX_DEPTH {
        return Err(wrong(&path, "it is too deep"));
    }
    workspace().join(&path).map_err(|error| wrong(&path, &error.fix))
}

/// It is not what was written.
fn wrong(entry: &str, why: &str) -> SessionError {
    // What is shown of a name that nobody trusts.
    let entry = entry.chars().take(200).collect::<String>().escape_debug().to_string();
    SessionError::Archive { entry, why: why.to_owned() }
}

/// What `save` has written fits a new workspace: a name that is taken, or that leads through a link, is not of it.
fn unplaced(path: &GuestPath, error: BackendError) -> SessionError {
    match error {
        BackendError::NotPermitted { reason, .. } => wrong(path.as_str(), &reason),
        BackendError::NotFound { .. } => wrong(path.as_str(), "there is nothing where it belongs"),
        BackendError::Invalid(error) => wrong(path.as_str(), &error.fix),
        other => other.into(),
    }
}

fn broken(error: io::Error) -> SessionError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => wrong("", "it ends too early"),
        _ => BackendError::failed("reading what was kept of the files", error).into(),
    }
}
