//! `cofferdam run`, from outside: the real program makes real sandboxes.

#[path = "run/backends.rs"]
mod backends;
#[path = "run/early.rs"]
mod early;
#[path = "run/endings.rs"]
mod endings;
#[path = "run/environment.rs"]
mod environment;
#[path = "run/files.rs"]
mod files;
#[path = "run/languages.rs"]
mod languages;
#[path = "run/leftovers.rs"]
mod leftovers;
#[path = "run/limits.rs"]
mod limits;
#[path = "run/output.rs"]
mod output;
#[path = "run/root.rs"]
mod root;
mod support;
