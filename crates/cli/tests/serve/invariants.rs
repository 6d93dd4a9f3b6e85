//! What must hold after any fault, checked on the store itself and on the machine.
//!
//! I1 what was acknowledged exists; I2 a job has at most one end, and came to it by legal steps; I3 it was started
//! at most once; I4 nothing of it is left on the machine. And the audit is whole.

use cofferdam_core::JobState;
use cofferdam_store::{AuditEntry, JobFilter, JobRecord, Location, Page, Store};
use std::collections::HashMap;
use std::path::Path;

/// The figures of a check that held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) jobs: usize,
    pub(crate) ended: usize,
    pub(crate) lost: usize,
}

/// Checks a store that no server has open any more.
pub(crate) fn check(data: &Path, acknowledged: &[String]) -> Counts {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open(&Location::Sqlite(data.join("cofferdam.db"))).await.expect("the store");
        let tenant =
            store.ensure_tenant("ten-x".to_owned(), "default".to_owned(), 0).await.expect("the tenant");
        let jobs = all_jobs(&store, &tenant).await;
        for id in acknowledged {
            assert!(jobs.contains_key(id), "I1: {id} was acknowledged and is not there");
        }
        store.verify_audit(&tenant).await.expect("a whole audit");
        let steps = steps(&store, &tenant).await;
        let mut counts = Counts { jobs: jobs.len(), ..Counts::default() };
        for (id, job) in &jobs {
            check_steps(id, job, steps.get(id).map_or(&[][..], Vec::as_slice));
            assert!(job.starts <= 1, "I3: {id} was started {} times", job.starts);
            counts.ended += usize::from(job.state.is_final());
            counts.lost += usize::from(job.state == JobState::Lost);
        }
        store.close().await;
        counts
    })
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
    let mut after = 0;
    loop {
        let entries = store.audit(tenant, after, 1000).await.expect("audit");
        let Some(last) = entries.last() else { return steps };
        after = last.seq;
        for entry in &entries {
            if let Some(state) = state(entry) {
                steps.entry(entry.resource.clone()).or_default().push(state);
            }
        }
    }
}

fn state(entry: &AuditEntry) -> Option<JobState> {
    match entry.kind.as_str() {
        "job.accepted" => Some(JobState::Accepted),
        "job.running" => Some(JobState::Running),
        "job.finished" => {
            let details: serde_json::Value = serde_json::from_str(&entry.details).ok()?;
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
    let expected = if job.state == JobState::Queued { JobState::Accepted } else { job.state };
    assert_eq!(last, Some(expected), "I2: {id} is {}, and was noted as {steps:?}", job.state);
}

/// I4: the processes that serve this folder, or were forked to. (What sandboxes leave is looked at by the tests of
/// the launcher, which ends them all when its host is killed.)
pub(crate) fn processes_of(data: &Path) -> Vec<String> {
    let folder = data.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let command = |entry: std::fs::DirEntry| {
        let text = std::fs::read(entry.path().join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        (text.contains(&folder) && text.contains("serve")).then_some(text)
    };
    processes.filter_map(command).collect()
}
