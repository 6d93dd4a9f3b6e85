//! How much each tenant may have. The numbers come with the key of a request, which is read anyway; the rate of
//! requests is counted here, in memory, so that a refusal costs nothing but itself.

use cofferdam_store::QuotaOverrides;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one tenant may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Sandboxes at once; more jobs than that wait.
    pub max_running: u64,
    /// Jobs that wait; more than that are refused.
    pub max_queued: u64,
    pub requests_per_second: u64,
    /// Requests that may come at once after a while of none.
    pub burst: u64,
    /// Bytes of artifacts that are kept.
    pub artifact_bytes: u64,
}

/// For tenants that have none of their own. A machine's slots are fewer than what may run, so one tenant alone has
/// all of it.
impl Default for Quotas {
    fn default() -> Self {
        Self {
            max_running: 1000,
            max_queued: 10_000,
            requests_per_second: 5000,
            burst: 10_000,
            artifact_bytes: 100 << 30,
        }
    }
}

impl Quotas {
    /// These, but for what is set for one tenant alone.
    pub fn with(self, own: QuotaOverrides) -> Self {
        let QuotaOverrides { max_running, max_queued, requests_per_second, burst, artifact_bytes } = own;
        let or = |own: Option<i64>, all: u64| own.and_then(|own| u64::try_from(own).ok()).unwrap_or(all);
        let rate = or(requests_per_second, self.requests_per_second);
        Self {
            max_running: or(max_running, self.max_running),
            max_queued: or(max_queued, self.max_queued),
            requests_per_second: rate,
            // Whoever has a rate of their own does not have the burst of another.
            burst: or(burst, if requests_per_second.is_some() { rate } else { self.burst }),
            artifact_bytes: or(artifact_bytes, self.artifact_bytes),
        }
    }
}

/// The tenants that were seen, with what they may have and how often they ask.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    seen: Mutex<HashMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    quotas: Quotas,
    bucket: Bucket,
    pace: Pace,
}

impl Tenants {
    fn with<T>(&self, tenant: &str, quotas: Option<Quotas>, act: impl FnOnce(&mut Seen) -> T) -> Option<T> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quotas) = quotas {
            let fresh = || Seen { quotas, bucket: Bucket::full(&quotas), pace: Pace::default() };
            match seen.get_mut(tenant) {
                Some(known) => known.quotas = quotas,
                None => drop(seen.insert(tenant.to_owned(), fresh())),
            }
        }
        seen.get_mut(tenant).map(act)
    }

    /// Notes what a tenant may have, as it was just read.
    pub(crate) fn learn(&self, tenant: &str, quotas: Quotas) {
        self.with(tenant, Some(quotas), |_| ());
    }

    pub(crate) fn quotas(&self, tenant: &str) -> Option<Quotas> {
        self.with(tenant, None, |seen| seen.quotas)
    }

    /// Counts a request. Where there are too many, says how many there may be, and when the next may come.
    pub(crate) fn count_request(&self, tenant: &str, now: Instant) -> Result<(), (u64, Duration)> {
        let counted = self.with(tenant, None, |seen| {
            seen.bucket.take(&seen.quotas, now).map_err(|wait| (seen.quotas.requests_per_second, wait))
        });
        counted.unwrap_or(Ok(()))
    }

    /// A queued job of the tenant's was started.
    pub(crate) fn started(&self, tenant: &str, now: Instant) {
        self.with(tenant, None, |seen| seen.pace.tick(now));
    }

    /// How long it takes, by what was seen, until one of a tenant's waiting jobs starts.
    pub(crate) fn wait(&self, tenant: &str) -> Duration {
        self.with(tenant, None, |seen| seen.pace.interval()).unwrap_or(Pace::UNKNOWN)
    }
}

/// A bucket of tokens: each request takes one, and they come back at the rate.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Option<Instant>,
}

impl Bucket {
    fn full(quotas: &Quotas) -> Self {
        Self { tokens: quotas.burst as f64, at: None }
    }

    fn take(&mut self, quotas: &Quotas, now: Instant) -> Result<(), Duration> {
        let since = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        let (rate, most) = (quotas.requests_per_second as f64, quotas.burst.max(1) as f64);
        self.tokens = (self.tokens + since.as_secs_f64() * rate).min(most);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / rate.max(f64::MIN_POSITIVE)))
    }
}

/// How far apart a tenant's waiting jobs start.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    mean: Option<Duration>,
}

impl Pace {
    /// Nothing was seen yet.
    const UNKNOWN: Duration = Duration::from_secs(1);
    /// One new interval counts for a quarter.
    const WEIGHT: u32 = 4;

    fn tick(&mut self, now: Instant) {
        if let Some(last) = self.last {
            let new = now.saturating_duration_since(last);
            let mean = self.mean.unwrap_or(new);
            self.mean = Some(mean - mean / Self::WEIGHT + new / Self::WEIGHT);
        }
        self.last = Some(now);
    }

    fn interval(&self) -> Duration {
        self.mean.unwrap_or(Self::UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Quotas =
        Quotas { max_running: 1, max_queued: 1, requests_per_second: 2, burst: 3, artifact_bytes: 1 };

    #[test]
    fn a_burst_is_served_and_then_the_rate() {
        let tenants = Tenants::default();
        tenants.learn("a", SLOW);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(tenants.count_request("a", start), Ok(()));
        }
        let (rate, wait) = tenants.count_request("a", start).unwrap_err();
        assert_eq!((rate, wait.as_millis()), (2, 500));
        // When it says, it is so; and not before.
        let early = start + wait - Duration::from_millis(2);
        assert!(tenants.count_request("a", early).is_err());
        assert_eq!(tenants.count_request("a", start + wait), Ok(()));
        assert!(tenants.count_request("a", start + wait).is_err());
        // Another tenant has its own.
        tenants.learn("b", SLOW);
        assert_eq!(tenants.count_request("b", start), Ok(()));
        // After a long time there is a burst again, and no more.
        let later = start + Duration::from_secs(3600);
        let served = (0..10).filter(|_| tenants.count_request("a", later).is_ok()).count();
        assert_eq!(served, 3);
    }

    #[test]
    fn what_is_a_tenants_own_goes_over_what_all_have() {
        let own = QuotaOverrides {
            max_running: Some(2),
            requests_per_second: Some(7),
            ..QuotaOverrides::default()
        };
        let quotas = Quotas::default().with(own);
        assert_eq!((quotas.max_running, quotas.requests_per_second, quotas.burst), (2, 7, 7));
        assert_eq!(quotas.max_queued, Quotas::default().max_queued);
        assert_eq!(Quotas::default().with(QuotaOverrides::default()), Quotas::default());
    }

    #[test]
    fn the_wait_is_what_was_seen() {
        let mut pace = Pace::default();
        let start = Instant::now();
        assert_eq!(pace.interval(), Duration::from_secs(1));
        for i in 0..50 {
            pace.tick(start + Duration::from_secs(5) * i);
        }
        assert_eq!(pace.interval(), Duration::from_secs(5));
    }
}
