//! Starting a child at once, on a processor that is not ours.
//!
//! The kernel often queues a child where its parent runs, although another processor is idle, and looks again only
//! when the parent sleeps. Two processes that are to work side by side then work one after the other.

use crate::sys::{self, Processors};

/// Moves a child that was just made to another processor. Afterwards it may run wherever it might before. Where
/// there is only one processor, or moving is not allowed, it starts when the kernel sees fit.
pub(super) fn start(child: i32) {
    let Ok(allowed) = sys::allowed_processors(child) else { return };
    let elsewhere = sys::current_processor().and_then(|here| without(allowed, here));
    if elsewhere.is_some_and(|elsewhere| sys::allow_processors(child, &elsewhere).is_ok()) {
        // It was allowed these a moment ago.
        let _ = sys::allow_processors(child, &allowed);
    }
}

/// The other ones, if there are any.
fn without(mut processors: Processors, number: usize) -> Option<Processors> {
    *processors.get_mut(number / 64)? &= !(1 << (number % 64));
    processors.iter().any(|some| *some != 0).then_some(processors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn another_processor_is_one_that_is_allowed() {
        let mut two = [0; 16];
        two[1] = 0b101;
        let mut other = [0; 16];
        other[1] = 0b100;
        assert_eq!(without(two, 64), Some(other));
        assert_eq!(without(other, 66), None);
        assert_eq!(without(other, 4096), None);
    }

    #[test]
    fn a_child_that_was_moved_may_run_everywhere_again() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let before = sys::allowed_processors(pid).unwrap();
        start(pid);
        let after = sys::allowed_processors(pid).unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert_eq!(after, before);
    }
}
