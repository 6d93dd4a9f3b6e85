//! What must hold after any fault, checked on the store itself and on the machine.
//!
//! I1 what was acknowledged exists; I2 a job has at most one end, and came to it by legal steps; I3 it was started
//! once, and once more for each retry that its caller asked for; I4 nothing of it is left on the machine (which the
//! tests look for themselves); I5 what is counted for a quota is what a recount finds; I6 every artifact has its bytes,
//! and its hash is theirs. And the audit is whole.

use crate::artifacts::sha256_of;
use crate::client::Client;
use crate::load::LEAVES_AN_ARTIFACT;
use crate::machine::wait_until;
use cofferdam_api::{JobRequest, Retries};
use cofferdam_core::JobState;
use cofferdam_store::{AuditEntry, JobFilter, JobRecord, Location, Page, Store};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// The figures of a check that held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) jobs: usize,
    pub(crate) ended: usize,
    pub(crate) lost: usize,
    pub(crate) retried: usize,
}

/// Checks a store that no server has open any more.
pub(crate) fn check(data: &Path, acknowledged: &[String]) -> Counts {
    check_at(&Location::Sqlite(data.join("cofferdam.db")), acknowledged)
}

pub(crate) fn check_at(location: &Location, acknowledged: &[String]) -> Counts {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open(location).await.expect("the store");
        let tenant =
            store.ensure_tenant("ten-x".to_owned(), "default".to_owned(), 0).await.expect("the tenant");
        let jobs = all_jobs(&store, &tenant).await;
        for id in acknowledged {
            assert!(jobs.contains_key(id), "I1: {id} was acknowledged and is not there");
        }
        store.verify_audit(&tenant).await.expect("a whole audit");
        check_counters(&store, &tenant).await;
        let steps = steps(&store, &tenant).await;
        let mut counts = Counts { jobs: jobs.len(), ..Counts::default() };
        for (id, job) in &jobs {
            check_steps(id, job, steps.get(id).map_or(&[][..], Vec::as_slice));
            check_starts(id, job, steps.get(id).map_or(&[][..], Vec::as_slice));
            counts.retried += usize::from(job.starts > 1);
            counts.ended += usize::from(job.state.is_final());
            if job.state == JobState::Lost {
                counts.lost += 1;
                println!("lost: {id}, {:?}, of {:?} on {:?}", job.message, job.owner, job.worker);
            }
        }
        store.close().await;
        counts
    })
}

/// I5. Whatever else is limited is counted anew each time.
async fn check_counters(store: &Store, tenant: &str) {
    let bytes = store.recount_artifact_bytes(tenant).await.expect("a recount");
    assert_eq!(store.artifact_bytes(tenant).await.expect("a count"), bytes, "I5: bytes of artifacts");
}

/// I6, asked of a server: how many artifacts there are, each with its bytes. Where nothing lived for long enough to
/// leave one, there is one more job that does.
pub(crate) fn check_artifacts(client: &Client) -> usize {
    let mut last = Value::Null;
    // One that has just started may not have heard of its workers yet, and says so.
    wait_until("it takes a job", || {
        let answer = client.post("/v1/jobs?wait_ms=60000", LEAVES_AN_ARTIFACT);
        last = answer.json();
        answer.status == 200
    });
    assert!(last["result"]["artifacts"][0]["id"].is_string(), "{last}");
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = client.get(&format!("/v1/artifacts?limit=500{cursor}")).json();
        for artifact in
            page["artifacts"].as_array().expect("artifacts").iter().filter(|a| a["state"] == "ready")
        {
            let id = artifact["id"].as_str().expect("an id");
            let answer = client.get(&format!("/v1/artifacts/{id}/content"));
            assert_eq!(answer.status, 200, "I6: {artifact}: {answer:?}");
            assert_eq!(artifact["sha256"], sha256_of(&answer.body), "I6: {artifact}");
            count += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(count > 0, "I6: what was just left is not there: {last}");
    count
}

/// The figures of a check of sessions that held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionCounts {
    pub(crate) sessions: usize,
    pub(crate) lost: usize,
    pub(crate) steps: usize,
}

/// The same for sessions, of a store that no server has open any more: I1 what was acknowledged exists; I2 a session,
/// and a step, ends at most once; I3 no step was started twice. And the audit is whole.
pub(crate) fn check_sessions(data: &Path, acknowledged: &[String]) -> SessionCounts {
    let location = Location::Sqlite(data.join("cofferdam.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open(&location).await.expect("the store");
        let tenant =
            store.ensure_tenant("ten-x".to_owned(), "default".to_owned(), 0).await.expect("the tenant");
        store.verify_audit(&tenant).await.expect("a whole audit");
        let mut counts = SessionCounts::default();
        for id in acknowledged {
            let session = store.session(&tenant, id).await.expect("sessions");
            assert!(session.is_some(), "I1: {id} was acknowledged and is not there");
        }
        let mut noted: HashMap<(String, String), usize> = HashMap::new();
        for entry in audit(&store, &tenant).await {
            *noted.entry((entry.kind, entry.resource)).or_default() += 1;
        }
        for ((kind, id), count) in noted {
            match kind.as_str() {
                "session.created" => counts.sessions += 1,
                "session.ended" => counts.lost += 1,
                "step.started" => counts.steps += 1,
                "step.finished" => {}
                _ => continue,
            }
            assert_eq!(count, 1, "{kind} of {id} was noted {count} times");
        }
        store.close().await;
        counts
    })
}

async fn audit(store: &Store, tenant: &str) -> Vec<AuditEntry> {
    let mut all: Vec<AuditEntry> = Vec::new();
    loop {
        let after = all.last().map_or(0, |entry| entry.seq);
        let entries = store.audit(tenant, after, 1000).await.expect("audit");
        if entries.is_empty() {
            return all;
        }
        all.extend(entries);
    }
}

async fn all_jobs(store: &Store, tenant: &str) -> HashMap<String, JobRecord> {
    let mut jobs = HashMap::new();
    let mut filter = JobFilter { limit: 200, ..JobFilter::default() };
    loop {
        let page = store.jobs(tenant, &filter).await.expect("jobs");
        let Some(last) = page.last() else { return jobs };
        filter.before = Some(Page { created_at_ms: last.created_at_ms, id: last.id.clone() });
        jobs.extend(page.into_iter().map(|job| (job.id.clone(), job)));
    }
}

/// The states that each job went through, as they were noted.
async fn steps(store: &Store, tenant: &str) -> HashMap<String, Vec<JobState>> {
    let mut steps: HashMap<String, Vec<JobState>> = HashMap::new();
    for entry in audit(store, tenant).await {
        if let Some(state) = state(&entry) {
            steps.entry(entry.resource).or_default().push(state);
        }
    }
    steps
}

fn state(entry: &AuditEntry) -> Option<JobState> {
    match entry.kind.as_str() {
        "job.accepted" => Some(JobState::Accepted),
        "job.running" => Some(JobState::Running),
        "job.retried" | "job.requeued" => Some(JobState::Queued),
        "job.finished" => {
            let details: Value = serde_json::from_str(&entry.details).ok()?;
            JobState::from_name(details["state"].as_str()?)
        }
        _ => None,
    }
}

fn check_steps(id: &str, job: &JobRecord, steps: &[JobState]) {
    assert_eq!(steps.first(), Some(&JobState::Accepted), "I2: {id} went {steps:?}");
    for pair in steps.windows(2) {
        assert!(pair[0].may_become(pair[1]), "I2: {id} went {steps:?}");
    }
    let ends = steps.iter().filter(|state| state.is_final()).count();
    assert!(ends <= 1, "I2: {id} ended {ends} times: {steps:?}");
    let last = steps.last().copied();
    let expected = if last == Some(JobState::Accepted) { JobState::Queued } else { job.state };
    let last = if last == Some(JobState::Accepted) { Some(job.state) } else { last };
    assert_eq!(last, Some(expected), "I2: {id} is {}, and was noted as {steps:?}", job.state);
}

fn check_starts(id: &str, job: &JobRecord, steps: &[JobState]) {
    let request: JobRequest = serde_json::from_str(&job.spec).expect("a request");
    let retries = request.retries.as_ref().map_or(0, |retries| i64::from(Retries::policy(retries).max));
    assert!(
        job.starts <= 1 + retries,
        "I3: {id} was started {} times, and {retries} retries are asked",
        job.starts
    );
    let noted = steps.iter().filter(|state| **state == JobState::Running).count() as i64;
    assert!(job.starts <= noted, "I3: {id} was started {} times and noted as {steps:?}", job.starts);
}
