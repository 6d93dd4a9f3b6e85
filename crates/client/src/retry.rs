//! When to try again, and after how long.

use rustix::rand::{GetRandomFlags, getrandom};
use std::time::Duration;

/// How often and for how long something is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// Tries, with the first.
    pub attempts: u32,
    /// The pause after the first failure; each next one may be twice as long.
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// How long an answer's head may take, besides the time that a request asks the server to wait.
    pub answer: Duration,
    /// After so long without a byte, a stream counts as broken. The server sends something every 15 seconds.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            silence: Duration::from_secs(45),
        }
    }
}

impl Patience {
    /// The pause after so many failures. A random part of it keeps clients from coming back all at once; the server's
    /// own word is never undercut.
    pub(crate) fn pause(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let most = doubled.min(self.longest_pause);
        let drawn = most.mul_f64(0.5 + fraction() / 2.0);
        match asked {
            Some(asked) => asked.min(self.longest_pause.saturating_mul(6)) + drawn.min(asked / 4),
            None => drawn,
        }
    }
}

/// Random bytes; the kernel has them once it has started.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty())? {
        n if n == N => Ok(bytes),
        _ => Err(std::io::Error::other("the kernel gave too few random bytes")),
    }
}

/// From 0 to 1.
fn fraction() -> f64 {
    random::<4>().map_or(1.0, |bytes| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let patience = Patience::default();
        let ms = |failures| patience.pause(failures, None).as_millis();
        for _ in 0..100 {
            assert!((50..=100).contains(&ms(1)), "{}", ms(1));
            assert!((200..=400).contains(&ms(3)));
            assert!((5_000..=10_000).contains(&ms(60)));
        }
        let drawn: std::collections::HashSet<_> = (0..50).map(|_| patience.pause(8, None)).collect();
        assert!(drawn.len() > 10, "{drawn:?}");
    }

    #[test]
    fn the_servers_word_is_not_undercut() {
        let asked = Duration::from_secs(3);
        for failures in 1..8 {
            let pause = Patience::default().pause(failures, Some(asked));
            assert!(pause >= asked && pause <= asked * 2, "{pause:?}");
        }
    }
}
