//! Verbs on jobs, and the run of one.

mod cancel;
mod create;
mod delete;
mod get;
mod list;
mod log;
mod mode;
mod retry;
mod run;
mod view;

pub(crate) use create::{check_metadata, demand};
pub(crate) use retry::give_up;
pub(crate) use run::{Attempt, message as outcome_message};

pub use create::Submitted;
pub use view::job_view;
