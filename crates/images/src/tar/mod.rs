//! Tar archives: a reader for hostile ones, and a writer for folders of our own.
//!
//! The reader decides alone where an entry ends, holds no more than a kilobyte of an archive beside its extended
//! names, and follows nothing. It knows ustar, GNU's long names and pax.

mod header;
mod pax;
mod reader;
mod writer;

pub use reader::{Entry, Kind, Source, Streamed, TarError, TarReader};
pub use writer::{END, Written, header as write_header};

pub const BLOCK: usize = 512;
