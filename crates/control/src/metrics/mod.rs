//! What is counted of the service, and how it is told. Nothing in here is a caller's word: a route is a template, a
//! rule is the policy's, and everything else is a list of this program's.

mod render;
mod words;

pub(crate) use words::Words;

use cofferdam_core::Outcome;
use cofferdam_telemetry::{Counter, Histogram};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// The parts of a job's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding out who asks.
    Auth,
    /// Until a new job is on the disk.
    StoreWrite,
    /// From there until a worker has room for it.
    WaitForRoom,
    /// Until its process runs.
    SandboxStart,
    /// Until its process has ended and what it left was taken.
    Run,
    /// Until its end is on the disk.
    Finish,
}

impl Phase {
    pub const ALL: [Self; 6] =
        [Self::Auth, Self::StoreWrite, Self::WaitForRoom, Self::SandboxStart, Self::Run, Self::Finish];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::StoreWrite => "store_write",
            Self::WaitForRoom => "wait_for_room",
            Self::SandboxStart => "sandbox_start",
            Self::Run => "run",
            Self::Finish => "finish",
        }
    }
}

/// How jobs end; in the order of the counters.
const OUTCOMES: [&str; 9] =
    ["exited", "signaled", "timed_out", "oom_killed", "cancelled", "denied", "expired", "lost", "failed"];

/// More statuses than a route answers with.
const STATUSES: usize = 64;

/// More routes than there are.
const ROUTES: usize = 256;

#[derive(Debug)]
struct Route {
    time: Histogram,
    /// Each method and status that was answered.
    answers: Vec<(&'static str, u16, Counter)>,
}

#[derive(Debug)]
pub struct Metrics {
    phases: [Histogram; 6],
    routes: RwLock<HashMap<String, Route>>,
    outcomes: [Counter; 9],
    pub(crate) denials: Words,
    pub(crate) refusals: Words,
    pub(crate) webhooks: Words,
    pub followers: cofferdam_telemetry::Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            phases: std::array::from_fn(|_| Histogram::latencies()),
            routes: RwLock::default(),
            outcomes: Default::default(),
            denials: Words::default(),
            refusals: Words::default(),
            webhooks: Words::default(),
            followers: Default::default(),
        }
    }
}

impl Metrics {
    pub fn phase(&self, phase: Phase, time: Duration) {
        self.phases[phase as usize].time(time);
    }

    pub fn outcome(&self, outcome: &Outcome) {
        let at = match outcome {
            Outcome::Exited { .. } => 0,
            Outcome::Signaled { .. } => 1,
            Outcome::TimedOut => 2,
            Outcome::OomKilled => 3,
            Outcome::Cancelled { .. } => 4,
            Outcome::Denied { .. } => 5,
            Outcome::Expired => 6,
            Outcome::Lost => 7,
            Outcome::Failed { .. } => 8,
        };
        self.outcomes[at].one();
    }

    /// Counts an answer. `route` is a template such as `/v1/jobs/{id}`, never the path that was asked for.
    pub fn request(&self, method: &'static str, route: &str, status: u16, time: Duration) {
        let is_known = |routes: &HashMap<String, Route>| {
            let Some(route) = routes.get(route) else { return false };
            let answer = route.answers.iter().find(|(m, s, _)| (*m, *s) == (method, status));
            let Some((_, _, count)) = answer else { return false };
            count.one();
            route.time.time(time);
            true
        };
        if is_known(&self.routes.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if routes.len() < ROUTES || routes.contains_key(route) {
            let known = routes
                .entry(route.to_owned())
                .or_insert_with(|| Route { time: Histogram::latencies(), answers: Vec::new() });
            let has = known.answers.iter().any(|(m, s, _)| (*m, *s) == (method, status));
            if !has && known.answers.len() < STATUSES {
                known.answers.push((method, status, Counter::default()));
            }
        }
        is_known(&routes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_counted_by_method_and_status_and_cannot_grow_without_end() {
        let metrics = Metrics::default();
        for status in [200, 200, 404] {
            metrics.request("GET", "/v1/jobs/{id}", status, Duration::from_millis(1));
        }
        for i in 0..10_000 {
            metrics.request("GET", &format!("/{i}"), 200, Duration::ZERO);
        }
        let routes = metrics.routes.read().unwrap();
        let counts: Vec<_> =
            routes["/v1/jobs/{id}"].answers.iter().map(|(m, s, c)| (*m, *s, c.get())).collect();
        assert_eq!(counts, [("GET", 200, 2), ("GET", 404, 1)]);
        assert_eq!(routes.len(), ROUTES);
    }

    /// The figure is in docs/operations.md; here it must only stay small beside a request.
    #[test]
    fn counting_a_request_is_cheap() {
        let metrics = Metrics::default();
        let began = std::time::Instant::now();
        for _ in 0..100_000 {
            metrics.request("POST", "/v1/jobs", 200, Duration::from_micros(700));
        }
        let each = began.elapsed().as_nanos() / 100_000;
        println!("{each} ns for each request");
        assert!(each < 20_000, "{each} ns for each request");
    }
}
