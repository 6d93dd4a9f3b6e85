//! The numbers as text.

use super::{Metrics, OUTCOMES, Phase};
use crate::gates::Gate;
use crate::worker::{Capacity, WorkerCounts};
use crate::{Control, now_ms};
use cofferdam_telemetry::{Kind, Text};
use std::sync::PoisonError;
use std::time::Duration;

/// A scrape does not wait longer for a store that does not answer; it goes on without what only that knows.
const STORE_PATIENCE: Duration = Duration::from_millis(500);

impl Control {
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// Everything, in the text form of Prometheus.
    pub async fn metrics_text(&self) -> String {
        let mut text = Text::new();
        self.parts.metrics.render(&mut text);
        self.render_work(&mut text).await;
        self.render_store(&mut text);
        self.render_gates(&mut text);
        text.into_string()
    }

    async fn render_work(&self, text: &mut Text) {
        let used = self.parts.fleet.used();
        let is_away = self.parts.gates.is_closed(Gate::StoreUnreachable);
        let queued = match is_away {
            true => None,
            false => tokio::time::timeout(STORE_PATIENCE, self.parts.store.count_queued()).await.ok(),
        };
        if let Some(Ok(queued)) = queued {
            text.name("cofferdam_queue_depth", Kind::Gauge, "Jobs that wait for a worker.");
            text.number("cofferdam_queue_depth", &[], queued);
        }
        render_used(text, used.slots, used.memory_bytes);
        render_pool(text, self.parts.fleet.counts());
    }

    fn render_store(&self, text: &mut Text) {
        let counts = self.parts.store.counts();
        text.name("cofferdam_store_batch_size", Kind::Histogram, "Writes that share a commit.");
        text.histogram("cofferdam_store_batch_size", &[], &counts.batch_size, false);
        text.name(
            "cofferdam_store_commit_seconds",
            Kind::Histogram,
            "Time from a batch's begin to its commit.",
        );
        text.histogram("cofferdam_store_commit_seconds", &[], &counts.commit_time, true);
        text.name(
            "cofferdam_store_failed_batches_total",
            Kind::Counter,
            "Batches that could not be committed.",
        );
        text.number("cofferdam_store_failed_batches_total", &[], counts.failed_batches.get());
    }

    fn render_gates(&self, text: &mut Text) {
        text.name("cofferdam_gate_closed", Kind::Gauge, "1 while new work is refused for this reason.");
        for gate in Gate::ALL {
            let is_closed = self.parts.gates.is_closed(gate);
            text.number("cofferdam_gate_closed", &[("gate", gate.as_str())], u8::from(is_closed));
        }
        text.name(
            "cofferdam_gate_closed_seconds",
            Kind::Gauge,
            "For how long it has been closed; 0 if it is not.",
        );
        for gate in Gate::ALL {
            let since = self.parts.gates.closed_since_ms(gate);
            let seconds = since.map_or(0.0, |since| (now_ms() - since).max(0) as f64 / 1e3);
            text.number("cofferdam_gate_closed_seconds", &[("gate", gate.as_str())], seconds);
        }
    }
}

fn render_used(text: &mut Text, jobs: u64, memory_bytes: u64) {
    text.name("cofferdam_jobs_running", Kind::Gauge, "Jobs that run under this process.");
    text.number("cofferdam_jobs_running", &[], jobs);
    text.name("cofferdam_memory_promised_bytes", Kind::Gauge, "Memory that running jobs may take.");
    text.number("cofferdam_memory_promised_bytes", &[], memory_bytes);
}

fn render_pool(text: &mut Text, counts: WorkerCounts) {
    text.name("cofferdam_pool_starts_total", Kind::Counter, "Starts, from the pool or without it.");
    text.number("cofferdam_pool_starts_total", &[("kind", "hit")], counts.warm);
    text.number("cofferdam_pool_starts_total", &[("kind", "miss")], counts.cold);
    text.name("cofferdam_pool_waiting", Kind::Gauge, "Sandboxes that are ready and wait.");
    text.number("cofferdam_pool_waiting", &[], counts.waiting);
}

impl Metrics {
    /// What a worker in a process of its own tells, under the names that it has where all is in one.
    pub fn worker_text(&self, used: Capacity, counts: WorkerCounts, has_problem: bool) -> String {
        let mut text = Text::new();
        self.render_phases(&mut text, &[Phase::SandboxStart, Phase::Run]);
        self.render_routes(&mut text);
        self.render_outcomes(&mut text);
        render_used(&mut text, used.slots, used.memory_bytes);
        render_pool(&mut text, counts);
        let gate = Gate::BackendUnhealthy.as_str();
        text.name("cofferdam_gate_closed", Kind::Gauge, "1 while new work is refused for this reason.");
        text.number("cofferdam_gate_closed", &[("gate", gate)], u8::from(has_problem));
        text.into_string()
    }

    fn render_phases(&self, text: &mut Text, phases: &[Phase]) {
        text.name("cofferdam_phase_seconds", Kind::Histogram, "Time that the parts of a job's way took.");
        for phase in phases.iter().copied() {
            let histogram = &self.phases[phase as usize];
            text.histogram("cofferdam_phase_seconds", &[("phase", phase.as_str())], histogram, true);
        }
    }

    fn render_outcomes(&self, text: &mut Text) {
        text.name("cofferdam_outcomes_total", Kind::Counter, "How jobs of this process ended.");
        for (name, counter) in OUTCOMES.iter().zip(&self.outcomes) {
            text.number("cofferdam_outcomes_total", &[("outcome", name)], counter.get());
        }
    }

    fn render(&self, text: &mut Text) {
        self.render_phases(text, &Phase::ALL);
        self.render_routes(text);
        self.render_outcomes(text);
        for (name, label, help, words) in [
            ("cofferdam_denials_total", "rule", "Requests that a rule denied.", &self.denials),
            ("cofferdam_refusals_total", "gate", "Requests that a closed gate refused.", &self.refusals),
            ("cofferdam_webhooks_total", "result", "Attempts to deliver a webhook.", &self.webhooks),
        ] {
            text.name(name, Kind::Counter, help);
            for (word, count) in words.read() {
                text.number(name, &[(label, &word)], count);
            }
        }
        text.name("cofferdam_followers", Kind::Gauge, "Clients that follow output or events.");
        text.number("cofferdam_followers", &[], self.followers.get());
    }

    fn render_routes(&self, text: &mut Text) {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<_> = routes.keys().collect();
        names.sort();
        text.name("cofferdam_requests_total", Kind::Counter, "Answers, by route and status.");
        for name in &names {
            for (method, status, counter) in &routes[*name].answers {
                let labels = [("method", *method), ("route", name.as_str()), ("status", &status.to_string())];
                text.number("cofferdam_requests_total", &labels, counter.get());
            }
        }
        text.name("cofferdam_request_seconds", Kind::Histogram, "Time until the head of an answer.");
        for name in &names {
            text.histogram("cofferdam_request_seconds", &[("route", name)], &routes[*name].time, true);
        }
    }
}
