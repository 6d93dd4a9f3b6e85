//! Commits and leases under many orders of what runs at once. Built with `--cfg shuttle` only: see
//! scripts/schedules.sh.
#![cfg(shuttle)]

mod book;
mod commits;
mod disk;
mod leases;

/// Of each test.
const ORDERS: usize = 2_000;

/// For its clock alone, which stands still: nothing is late here.
fn clock() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}
