//! Images: root filesystems in a store of our own.
//!
//! The store keeps layers unpacked, each under the digest of its archive, ready to be mounted; sandboxes share them.
//! Archives are hostile: every byte goes through a reader with limits, every path is opened by the kernel below the
//! layer's own folder, every digest is checked. What an image says about itself is its word only.
//!
//! This crate deliberately runs nothing: the contract check is a script and a reader of its answer, and whoever has
//! a backend runs it.

mod archive;
mod compress;
mod config;
mod contract;
mod credentials;
mod digest;
mod error;
mod folder;
mod limits;
mod name;
mod profile;
mod store;
pub mod tar;
mod unpack;
pub mod zip;

pub use archive::oci::{Descriptor, Index, Manifest, is_index};
pub use compress::Decoded;
pub use config::{History, ImageConfig, ProcessConfig, RootFs};
pub use contract::{CHECK_ZIP, CheckRow, CheckState, STDERR_MARK, check_script, read_answer};
pub use credentials::{Finding, scan};
pub use digest::Digest;
pub use error::{ImageError, Result};
pub use folder::FolderTar;
pub use limits::{ImportLimits, MAX_JSON_BYTES, MAX_LAYERS};
pub use name::{HOST, ImageName, ImageRef};
pub use profile::{BASE_PROFILE, Check, Pinned, Profile};
pub use store::{
    Download, Export, Import, Imported, LayerRecord, Lease, NamedImage, Record, Removed, Staging, Store,
};
pub use unpack::{components, unpack_plain};
