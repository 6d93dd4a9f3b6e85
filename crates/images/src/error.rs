//! What can go wrong with an image, each in words that name the value and the fix.

use crate::Digest;
use cofferdam_core::InvalidValue;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

pub type Result<T> = std::result::Result<T, ImageError>;

#[derive(Debug, Error)]
pub enum ImageError {
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    #[error("there is no image {name:?} in {}; `cofferdam image list` shows those that are", .folder.display())]
    NotFound { name: String, folder: PathBuf },

    #[error("image_store_full: no space is left in {}; nothing was kept; free some, or set COFFERDAM_IMAGES to a larger disk", .folder.display())]
    StoreFull { folder: PathBuf },

    #[error(
        "the digest of {what} is {found}, but {expected} was promised; it is damaged or not what it says it is: get it again"
    )]
    Digest { what: String, expected: Digest, found: Digest },

    /// What an archive holds that is not taken in: hostile, damaged or not supported.
    #[error("{what}: {why}")]
    Refused { what: String, why: String },

    #[error("it has more than {max} {what}; if that is meant, raise {option}")]
    Limit { what: &'static str, max: u64, option: &'static str },

    #[error("{} cannot be read", .path.display())]
    Source {
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    #[error("the image store {}: {step}", .folder.display())]
    Store {
        folder: PathBuf,
        step: &'static str,
        #[source]
        source: io::Error,
    },
}

impl ImageError {
    /// A word for programs; part of no sentence.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::NotFound { .. } => "image_not_found",
            Self::StoreFull { .. } => "image_store_full",
            Self::Digest { .. } => "image_digest_mismatch",
            Self::Refused { .. } => "image_refused",
            Self::Limit { .. } => "image_too_large",
            Self::Source { .. } => "image_unreadable",
            Self::Store { .. } => "image_store_failed",
        }
    }

    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), why: why.into() }
    }

    pub(crate) fn source(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Source { path: path.to_owned(), source: source.into() }
    }

    /// A failure to write; a full disk is told apart.
    pub(crate) fn store(folder: &Path, step: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        match full {
            true => Self::StoreFull { folder: folder.to_owned() },
            false => Self::Store { folder: folder.to_owned(), step, source },
        }
    }
}

/// Bytes of a name from an archive, as text that can be shown.
pub(crate) fn shown(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}
