//! Sessions and their steps, a file a verb.

mod archive;
mod context_restart;
mod create;
mod delete;
mod end;
mod expire;
mod extend;
mod files;
mod fork;
mod get;
mod pause;
mod processes;
mod resume;
mod rooms;
mod settings;
mod snapshot;
mod step_create;
mod step_follow;
mod step_get;
mod step_interrupt;
mod step_log;
mod step_run;
mod step_view;
mod view;

pub use files::FILE_MODE;
pub use fork::Forked;
pub use pause::PauseMode;
pub(crate) use rooms::Rooms;
pub use settings::SessionSettings;
pub use snapshot::snapshot_view;
pub use step_create::SubmittedStep;
pub use step_follow::{FollowedStep, StepFollower};
pub use step_view::step_view;
pub use view::{KEPT, NOT_KEPT, resumed_view, session_view};
