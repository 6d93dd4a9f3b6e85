//! The helper alone, for the tests of this crate; users have it as a word of `cofferdam`.

use cofferdam_linux::contained::lock_down;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1);
    cofferdam_guest::agent::run(arguments, lock_down).unwrap_or(ExitCode::FAILURE)
}
