//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what was built or what git keeps.
const NOT_OURS: [&str; 3] = ["target", ".git", "node_modules"];

/// Every file below a folder whose name ends in one of `endings`; all of them where none is given.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(folder, endings, &mut found);
    found.sort();
    found
}

fn walk(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let entry = entry.unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if kind.is_dir() && !NOT_OURS.iter().any(|skipped| name == *skipped) {
            walk(&path, endings, found);
        }
        let is_wanted = endings.is_empty() || endings.iter().any(|e| path.to_string_lossy().ends_with(e));
        if kind.is_file() && is_wanted {
            found.push(path);
        }
    }
}

/// The text of a file; `None` where it is not text.
pub fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    String::from_utf8(bytes).ok()
}
