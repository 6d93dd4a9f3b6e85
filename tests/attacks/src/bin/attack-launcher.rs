//! The launcher that the suite starts: the product's own, built so that controls can be left out.
//!
//! The first argument is the decimal bits of the controls that the launcher itself leaves out, the second is
//! `plain`, `spares` to make parts of sandboxes ahead, or `fail-N` to fail at that stage of its own set-up. What
//! follows is for the attacks to find: a secret in a command line.
#![forbid(unsafe_code)]

use cofferdam_linux::launcher::{LauncherOptions, run_on_stdin_failing};
use cofferdam_linux::{ControlSet, Stage};

fn main() {
    let leave_out =
        std::env::args().nth(1).and_then(|bits| bits.parse().ok()).map_or(ControlSet::EMPTY, ControlSet);
    let kind = std::env::args().nth(2).unwrap_or_default();
    let makes_spares = kind == "spares";
    let fail_at =
        kind.strip_prefix("fail-").and_then(|number| number.parse().ok()).and_then(Stage::from_number);
    run_on_stdin_failing(&LauncherOptions { makes_spares, leave_out }, fail_at)
}
