//! Wrong keys, counted by where they come from. A key cannot be guessed, however often is tried; but whoever tries is
//! told to slow down, and others are never held up: only what is not recognised counts, and only that is refused.

use crate::answer::Problem;
use cofferdam_api::ErrorCode;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// So many may be wrong at once: more than a client with an old key and some threads sends before somebody notices.
const BURST: f64 = 100.0;
/// So many come back in a second.
const PER_SECOND: f64 = 10.0;
/// So many addresses are remembered; those that were quiet long enough go first, then all.
const MAX_ADDRESSES: usize = 10_000;

/// The wrong keys of all addresses.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<HashMap<IpAddr, (f64, Instant)>>);

/// Where a request came from.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) guesses: Arc<Guesses>,
}

impl Peer {
    /// Counts a request that nobody was recognised by, and refuses it where there were too many.
    pub(crate) fn count_wrong(&self) -> Result<(), Problem> {
        if self.guesses.count(self.address, Instant::now()) {
            return Ok(());
        }
        let text = "too many requests with a wrong key came from this address";
        Err(Problem::new(ErrorCode::RateLimited, text, "send a valid key"))
    }
}

/// Whoever has one address of version 6 has as many as there are in its network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => address
            .to_ipv4_mapped()
            .map_or_else(|| Ipv6Addr::from_bits(address.to_bits() & !(u64::MAX as u128)).into(), IpAddr::V4),
    }
}

impl Guesses {
    /// Whether one more is within what an address may.
    fn count(&self, address: IpAddr, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_ADDRESSES {
            let is_full = |(left, at): &(f64, Instant)| {
                left + now.saturating_duration_since(*at).as_secs_f64() * PER_SECOND >= BURST
            };
            all.retain(|_, seen| !is_full(seen));
            if all.len() >= MAX_ADDRESSES {
                all.clear();
            }
        }
        let (left, at) = all.entry(network(address)).or_insert((BURST, now));
        *left = (*left + now.saturating_duration_since(*at).as_secs_f64() * PER_SECOND).min(BURST);
        *at = now;
        let is_within = *left >= 1.0;
        if is_within {
            *left -= 1.0;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_address_is_told_to_slow_down_and_another_is_not() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let within = |text: &str, now| guesses.count(address(text), now);
        assert_eq!((0..200).filter(|_| within("192.0.2.1", now)).count(), BURST as usize);
        assert!(within("192.0.2.2", now));
        assert_eq!((0..200).filter(|_| within("192.0.2.1", now + Duration::from_secs(1))).count(), 10);
        // The same network, the same address in other words.
        (0..BURST as u32).for_each(|i| assert!(within(&format!("2001:db8::{i:x}"), now)));
        assert!(!within("2001:db8::ffff", now) && within("2001:db8:0:1::1", now));
        assert!(!within("::ffff:192.0.2.1", now + Duration::from_secs(1)));
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        (0..MAX_ADDRESSES as u32 + 50).for_each(|i| {
            guesses.count(IpAddr::from(i.to_be_bytes()), now);
        });
        assert!(guesses.0.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
