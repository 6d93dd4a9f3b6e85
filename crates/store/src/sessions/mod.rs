//! Sessions and their steps, a file a verb. Which worker has a session, under which generation, is kept here, so that
//! every process finds the way; a change is guarded by the state and the generation that it starts from, so whoever was
//! left behind writes nothing.

mod create;
mod delete;
mod due;
mod end;
mod extend;
mod guard;
mod pause;
mod places;
mod read;
mod ready;
mod record;
mod resume;
mod step_begin;
mod step_finish;
pub(crate) mod step_keys;
mod step_output;
mod step_read;
mod step_record;
mod step_start;

pub use create::{Keeping, NewSession, SessionAccepted};
pub use due::Due;
pub use end::{EndedSession, SessionEnd};
pub use pause::{PauseBegun, PauseOrder};
pub use places::{LiveSession, SessionPlace};
pub use read::SessionFilter;
pub(crate) use read::{get, list};
pub use record::{Pause, SessionRecord};
pub use step_finish::StepFinish;
pub use step_keys::{SealStep, StepPart};
pub use step_record::StepRecord;
pub use step_start::{NewStep, StepAccepted};

pub(crate) use delete::FIND as OLD;
pub(crate) use due::{EXPIRED, IDLE, NEXT};
pub(crate) use end::UNFINISHED;
pub(crate) use places::OF_WORKER;
pub(crate) use step_read::{list as list_steps, one as get_step};
