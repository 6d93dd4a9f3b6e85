//! The questions that callers' requests become, by name: for those who ask an engine how it would go about them.

use crate::engine::Kind;
use crate::retention::{audit as chain, idempotency as names, jobs as ended, output as pieces};
use crate::{
    JobFilter, SessionFilter, audit, jobs, keys, leases, output, progress, sessions, settle, webhooks,
    workers,
};
use cofferdam_core::{JobState, SessionState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub name: String,
    pub sql: String,
    /// How many values it is given.
    pub parameters: usize,
}

/// Every statement whose cost could grow with the store.
pub fn statements(is_sqlite: bool) -> Vec<Statement> {
    let kind = if is_sqlite { Kind::Sqlite } else { Kind::Postgres };
    let mut all: Vec<(String, String)> = [
        ("job", jobs::get()),
        ("jobs that wait", jobs::queued(kind)),
        ("how many wait", jobs::COUNT_QUEUED.to_owned()),
        ("progress of jobs", progress::of_jobs(2)),
        ("heads of chains", progress::of_tenants(2)),
        ("deliveries that are due", webhooks::due()),
        ("deliveries of a job", webhooks::of_job()),
        ("old deliveries", webhooks::FORGET.to_owned()),
        ("jobs that run", settle::LOSE.to_owned()),
        ("abandoned jobs", leases::abandoned(kind)),
        ("cancelled jobs", leases::CANCELLED.to_owned()),
        ("jobs whose time in the queue is over", leases::DUE.to_owned()),
        ("jobs of a worker", workers::taken()),
        ("running jobs of a tenant", workers::RUNNING.to_owned()),
        ("output", output::READ.to_owned()),
        ("key by hash", keys::by_hash()),
        ("keys", keys::list()),
        ("audit", audit::READ.to_owned()),
        ("checkpoint", chain::FIND.to_owned()),
        ("old names", names::REMOVE.to_owned()),
        ("old output", pieces::FIND.to_owned()),
        ("pieces of output", pieces::REMOVE.to_owned()),
        ("old jobs", ended::FIND.to_owned()),
        ("old entries", chain::REMOVE.to_owned()),
        ("session", sessions::get()),
        ("sessions that expired", sessions::EXPIRED.to_owned()),
        ("idle sessions", sessions::IDLE.to_owned()),
        ("the next that expires", sessions::NEXT[0].to_owned()),
        ("the next that is idle", sessions::NEXT[1].to_owned()),
        ("sessions of a worker", sessions::OF_WORKER.to_owned()),
        ("old sessions", sessions::OLD.to_owned()),
        ("step", sessions::get_step()),
        ("steps", sessions::list_steps()),
        ("steps that have not ended", sessions::UNFINISHED.to_owned()),
    ]
    .map(|(name, sql)| (name.to_owned(), sql))
    .into();
    for state in [None, Some(JobState::Queued), Some(JobState::Succeeded)] {
        for task_id in [None, Some("task".to_owned())] {
            let filter = JobFilter { state, task_id, ..JobFilter::default() };
            let name = format!("jobs by {state:?}, {:?}", filter.task_id.is_some());
            all.push((name, jobs::list(&filter)));
        }
    }
    for state in [None, Some(SessionState::Ready)] {
        for task_id in [None, Some("task".to_owned())] {
            let filter = SessionFilter { state, task_id, ..SessionFilter::default() };
            let name = format!("sessions by {state:?}, {:?}", filter.task_id.is_some());
            all.push((name, sessions::list(&filter)));
        }
    }
    all.into_iter().map(|(name, sql)| Statement { name, parameters: parameters(&sql), sql }).collect()
}

fn parameters(sql: &str) -> usize {
    (1..).take_while(|number| sql.contains(&format!("${number}"))).count()
}
