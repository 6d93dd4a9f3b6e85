//! This side of the sandbox: the terminal, the standard streams, signals and files of whoever called us.

pub(crate) mod colour;
pub(crate) mod files;
pub(crate) mod live;
pub(crate) mod reader;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod state;
pub(crate) mod streams;
pub(crate) mod terminal;
