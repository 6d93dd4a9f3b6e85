//! Pauses between tries: twice as long each time, up to a limit, and never the same for two callers.

use rustix::rand::{GetRandomFlags, getrandom};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// The next pause: from half of its length to all of it, so that those who were cut off together do not all come
    /// back together.
    pub(crate) fn next(&mut self) -> Duration {
        let full = (FIRST * 2u32.saturating_pow(self.tries.min(10))).min(LONGEST);
        self.tries += 1;
        let mut byte = [0u8; 1];
        // Without randomness it is the whole pause.
        let share = match getrandom(&mut byte, GetRandomFlags::empty()) {
            Ok(1) => u32::from(byte[0]),
            _ => 255,
        };
        full / 2 + full / 2 * share / 255
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..12).map(|_| backoff.next()).collect();
        for (i, pause) in pauses.iter().enumerate() {
            let full = (FIRST * 2u32.pow(i.min(10) as u32)).min(LONGEST);
            assert!(*pause >= full / 2 && *pause <= full, "{i}: {pause:?} of {full:?}");
        }
        assert!(pauses[11] >= LONGEST / 2);
    }
}
