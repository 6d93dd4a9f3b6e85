//! A worker that fails again and again is not asked for a while: whoever would wait for it goes elsewhere.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many failures in a row open it.
const FAILURES: u32 = 5;

/// How long it stays open; then one call may try.
const OPEN_FOR: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may be made now. Where the time is over, one caller hears yes and the others wait for what it
    /// finds.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut state = self.state();
        match state.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.open_until = Some(now + OPEN_FOR);
                true
            }
        }
    }

    pub(crate) fn note(&self, is_ok: bool, now: Instant) {
        let mut state = self.state();
        if is_ok {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.open_until = Some(now + OPEN_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_lets_one_try_and_closes_after_a_success() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..FAILURES - 1 {
            breaker.note(false, now);
        }
        assert!(breaker.allows(now));
        breaker.note(false, now);
        assert!(!breaker.allows(now) && !breaker.allows(now + OPEN_FOR / 2));
        let later = now + OPEN_FOR;
        assert!(breaker.allows(later) && !breaker.allows(later), "one tries, the next waits");
        breaker.note(true, later);
        assert!(breaker.allows(later));
    }
}
