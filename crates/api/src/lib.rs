//! The wire: what is sent and answered, and nothing of how it is done. Wire shapes exist here only.
//!
//! Units are in names, unknown fields are refused, and an error says what to do about it.

mod error;
mod job;
mod run;
mod worker;

pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use job::{
    Command, InlineFile, Job, JobList, JobRequest, JobStatus, LimitsRequest, Retries, RetryCause, RetryPolicy,
};
pub use run::{Run, RunCreate, RunEnd, RunEvent, RunLease, RunState, RunTerminate};
pub use worker::{WorkerCapacity, WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerList, WorkerView};
