//! Where this program keeps what outlives a run: the machine's place for root, the user's own otherwise.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
}

/// A folder of that name among the rest of the state.
pub(crate) fn folder(name: &str) -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/cofferdam").join(name);
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    // Without a home there is still a place that every user can write to.
    state.unwrap_or_else(env::temp_dir).join("cofferdam").join(name)
}

/// The image store.
pub(crate) fn images() -> PathBuf {
    set("COFFERDAM_IMAGES").unwrap_or_else(|| folder("images"))
}
