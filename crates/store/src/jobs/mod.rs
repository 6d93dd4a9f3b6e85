//! Jobs, a file a verb. Every change of state is guarded by the state and the fence that it starts from, so it is
//! written once, whoever else tries.

mod accept;
mod cancel;
mod claim;
mod delete;
mod finish;
mod guard;
mod read;
mod record;
mod tell;

pub use accept::{Accepted, JobSize, NewJob};
pub use claim::Claim;
pub(crate) use delete::remove;
pub use finish::Finish;
pub(crate) use guard::{check_fence, why};
pub(crate) use read::{COUNT_QUEUED, get, list, queued};
pub use read::{JobFilter, Page};
pub use record::JobRecord;
pub(crate) use record::{COLUMN_COUNT, COLUMNS, record, state};
pub(crate) use tell::tell;
