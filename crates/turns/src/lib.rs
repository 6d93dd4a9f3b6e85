//! Where an order matters: what is committed together, who has a job, and when nobody has it any more.
//!
//! It knows no database and no job but by name, so that tests can try thousands of orders of the very code that the
//! store and control run on: see tests/schedules.rs.

mod commit;
mod leases;
mod running;

pub use commit::{Act, Database, Writer};
pub use leases::{Found, LeaseTimes, Renewed, Verdict, renewed, verdict};
pub use running::{Handle, Running};
