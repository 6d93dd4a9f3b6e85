//! Which runtimes an image has. Asked only when one was missing, to tell the caller what there is instead.

use super::RUNTIMES;
use cofferdam_backend::{EntryKind, Sandbox};
use cofferdam_core::GuestPath;

/// Where images keep their programs.
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// A full desktop has some thousands of programs in one folder.
const PROGRAMS_MAX: usize = 20_000;

/// The names of the languages whose program is in the sandbox, in the table's order. A folder that cannot be
/// listed (`/bin` is often a link) holds nothing that could be told.
pub(crate) async fn present_in(sandbox: &dyn Sandbox) -> Vec<&'static str> {
    let mut programs = std::collections::HashSet::new();
    for folder in PROGRAM_FOLDERS {
        let Ok(path) = GuestPath::parse("path", folder) else { continue };
        let entries = sandbox.list_files(&path, PROGRAMS_MAX).await.unwrap_or_default();
        let runnable = entries.into_iter().filter(|e| matches!(e.kind, EntryKind::File | EntryKind::Link));
        programs.extend(runnable.map(|entry| entry.name));
    }
    let present = RUNTIMES.iter().filter(|runtime| programs.contains(runtime.program.as_bytes()));
    present.map(|runtime| runtime.name).collect()
}
