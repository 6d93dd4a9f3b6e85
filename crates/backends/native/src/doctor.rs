//! What `cofferdam doctor` looks at.

use cofferdam_core::{Check, CheckState};

/// Looks at everything that sandboxes need on this machine.
pub fn doctor() -> Vec<Check> {
    vec![Check {
        group: "kernel",
        name: "landlock".to_owned(),
        state: if cofferdam_linux::landlock::abi() > 0 { CheckState::Ok } else { CheckState::Degraded },
        found: format!("ABI {}", cofferdam_linux::landlock::abi()),
        fix: None,
        required: false,
    }]
}
