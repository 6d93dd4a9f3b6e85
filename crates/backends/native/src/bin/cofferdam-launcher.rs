//! The launcher as a program of its own, for hosts that have threads before they need one: tests and benches.

use cofferdam_linux::ControlSet;
use cofferdam_linux::launcher::{LauncherOptions, run_on_stdin};

fn main() {
    let leave_out =
        std::env::args().nth(1).and_then(|bits| bits.parse().ok()).map_or(ControlSet::EMPTY, ControlSet);
    run_on_stdin(&LauncherOptions { makes_spares: true, leave_out })
}
