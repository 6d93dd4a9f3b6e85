//! The launcher that the suite starts: the product's own, built so that controls can be left out.
//!
//! The first argument is the decimal bits of the controls that the launcher itself leaves out. What follows is
//! for the attacks to find: a secret in a command line.
#![forbid(unsafe_code)]

use cofferdam_linux::ControlSet;
use cofferdam_linux::launcher::{LauncherOptions, run_on_stdin};

fn main() {
    let leave_out =
        std::env::args().nth(1).and_then(|bits| bits.parse().ok()).map_or(ControlSet::EMPTY, ControlSet);
    let makes_spares = std::env::args().nth(2).is_some_and(|word| word == "spares");
    run_on_stdin(&LauncherOptions { makes_spares, leave_out })
}
