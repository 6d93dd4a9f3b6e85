//! Why the store did not do what it was asked.

use cofferdam_core::{EndCause, JobState, SessionState};
use thiserror::Error;

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("there is no such {what}")]
    NotFound { what: &'static str },

    /// The job is not where the caller thinks it is: somebody else was quicker, or it is over.
    #[error("the job is {state}, so it cannot become {wanted}")]
    WrongState { state: JobState, wanted: JobState },

    /// The session is not where the caller thinks it is.
    #[error("the session is {state}")]
    SessionState { state: SessionState, cause: Option<EndCause> },

    /// The session has steps that run or wait.
    #[error("the session has {count} steps that have not ended")]
    SessionBusy { count: i64 },

    /// Something of that name is there already.
    #[error("there is another {what} of that name")]
    Taken { what: &'static str },

    #[error("the {what} has {count} jobs or sessions that have not ended")]
    InUse { what: &'static str, count: i64 },

    /// As many of the tenant's jobs wait as may.
    #[error("{queued} of the tenant's jobs wait, and {most} may")]
    QueueFull { queued: i64, most: i64 },
    /// The artifact is not where the caller thinks it is.
    #[error("the artifact is {state}")]
    WrongArtifactState { state: &'static str },

    /// What a tenant keeps together would be more than it may.
    #[error("{used} of {limit} bytes are used, and {asked} more were asked for")]
    OverQuota { used: i64, asked: i64, limit: i64 },

    /// The caller's claim on the job is not the last one.
    #[error("the job was given to another worker since")]
    Fenced,

    /// Others' jobs have taken what there was.
    #[error("the worker {worker} has no room for the job")]
    Full { worker: String },

    /// Others have started as many as the tenant may have.
    #[error("the tenant {tenant} has as many running jobs as it may")]
    AtQuota { tenant: String },

    /// Trying again does not help.
    #[error("{what} has a NUL character in it, which no text in the store can have")]
    Unstorable { what: &'static str },

    #[error("{limit} rows cannot be asked for: it must be 0 or more")]
    Limit { limit: i64 },

    /// What the database said. It may help to try again later.
    #[error("the store failed: {0}")]
    Failed(String),

    #[error("the store holds something that this version cannot read: {0}")]
    Unreadable(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
