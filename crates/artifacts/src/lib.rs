//! Bytes that outlive a sandbox: where they lie, and how they are kept from whoever else can read that place.
//!
//! Every artifact has a key of its own, which is kept wrapped under a master key, beside its record and never beside
//! its bytes. So a copy of the folder or the bucket says nothing, and deleting the record makes the bytes noise.
//! Bytes come in and go out in pieces: no function here holds a whole artifact.
//!
//! This crate knows no tenant's rights, no quota and no record: it is told names and keeps bytes under them.

mod archive;
mod error;
mod key_files;
mod keys;
mod layout;
mod link;
mod place;
mod range;
mod read;
mod seal;
mod ticket;
mod write;

pub use archive::{archive_about, find_wrapped_key, steps_about};
pub use error::ArtifactError;
pub use key_files::KeyFiles;
pub use keys::{MasterKey, ObjectKey, random};
pub use layout::{CHUNK_BYTES, SEGMENT_BYTES};
pub use link::{Link, LinkRefused, LinkSigner};
pub use place::{Bucket, Found, Location, Name, Vault};
pub use range::{Part, Wanted, part_of};
pub use read::Reading;
pub use seal::{SealError, open_chunk, seal_chunk};
pub use ticket::{Ticket, TicketRefused, TicketSigner};
pub use write::{Writing, Written};

pub type Result<T> = std::result::Result<T, ArtifactError>;
