//! Verbs on jobs, and the run of one.

mod cancel;
mod create;
mod delete;
mod get;
mod list;
mod run;
mod view;

pub use create::Submitted;
pub use view::job_view;
