//! The launcher as a program of its own, as the tests have threads before they need one.

use cofferdam_linux::ControlSet;
use cofferdam_linux::launcher::{LauncherOptions, run_on_stdin};

fn main() {
    run_on_stdin(&LauncherOptions { makes_spares: true, leave_out: ControlSet::EMPTY })
}
