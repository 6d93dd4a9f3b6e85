//! Sessions and their steps, a file a verb.

mod artifact_create;
mod context_restart;
mod create;
mod delete;
mod end;
mod expire;
mod extend;
mod file_archive;
mod file_link;
mod file_search;
mod file_watch;
mod files;
mod get;
mod processes;
mod rooms;
mod settings;
mod step_create;
mod step_follow;
mod step_get;
mod step_interrupt;
mod step_log;
mod step_run;
mod step_view;
mod tickets;
mod view;

pub use file_link::FollowedFileLink;
pub use files::FILE_MODE;
pub(crate) use rooms::Rooms;
pub use settings::SessionSettings;
pub use step_create::SubmittedStep;
pub use step_follow::{FollowedStep, StepFollower};
pub use step_view::step_view;
pub(crate) use tickets::UsedTickets;
pub use view::session_view;
