//! Why a session or a step could not be.

use cofferdam_backend::BackendError;
use cofferdam_core::InvalidValue;
use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum SessionError {
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    #[error("no random bytes for an id")]
    Id(#[source] io::Error),

    #[error("the sandbox could not be made")]
    Create(#[source] BackendError),

    /// The session is not on this worker: it has ended, or never was.
    #[error("the session is not here")]
    Unknown,

    /// Whoever asks means another placement of the session.
    #[error("the session was placed anew since")]
    Stale,

    /// Its sandbox went without anybody having asked for that.
    #[error("the session's sandbox is gone: {cause}")]
    Lost { cause: String },

    #[error("the session has no such context")]
    NoContext,

    #[error("the session has no such process")]
    NoProcess,

    #[error("the process reads nothing more")]
    InputClosed,

    #[error("the process does not read what was sent before")]
    InputFull,

    /// The program could not be started.
    #[error("the program could not be started")]
    Start(#[source] BackendError),

    #[error("a file could not be put into the session")]
    File(#[source] BackendError),

    #[error("the image has no {program}, which {language} needs")]
    MissingRuntime { language: &'static str, program: String },

    /// The interpreter does not do what it should.
    #[error("the interpreter failed: {0}")]
    Kernel(String),

    /// An archive that is not taken; the entry is empty where it is the whole of it.
    #[error("{entry}: {why}")]
    Archive { entry: String, why: String },

    #[error("too many archives and searches are going on at once")]
    Busy,

    #[error(transparent)]
    Backend(#[from] BackendError),
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl SessionError {
    /// For programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Create(BackendError::Invalid(_)) => "invalid",
            Self::Create(BackendError::Unsupported { .. }) => "unsupported",
            Self::Id(_) | Self::Create(_) => "sandbox_failed",
            Self::Unknown | Self::Lost { .. } => "session_gone",
            Self::Stale => "session_stale",
            Self::NoContext | Self::NoProcess => "not_found",
            Self::InputClosed => "input_closed",
            Self::InputFull => "input_full",
            Self::Archive { .. } => "archive_refused",
            Self::Busy => "busy",
            Self::Start(_) => "not_startable",
            Self::File(_) => "files_refused",
            Self::MissingRuntime { .. } => "runtime_missing",
            Self::Kernel(_) => "kernel_failed",
            Self::Backend(BackendError::NotFound { .. }) => "not_found",
            Self::Backend(BackendError::NotPermitted { .. }) => "not_permitted",
            Self::Backend(BackendError::Invalid(_)) => "invalid",
            Self::Backend(BackendError::Unsupported { .. }) => "unsupported",
            Self::Backend(BackendError::Gone { .. }) => "session_gone",
            Self::Backend(BackendError::Failed { source, .. }) if is_full(source) => "disk_full",
            Self::Backend(_) => "sandbox_failed",
        }
    }

    /// The whole of it, for people.
    pub fn text(&self) -> String {
        let mut message = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        message
    }
}
