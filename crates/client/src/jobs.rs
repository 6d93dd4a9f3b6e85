//! Verbs on jobs.

use crate::output::Output;
use crate::{Client, Result};
use cofferdam_api::{Job, JobList, JobRequest, SignedDocument};
use cofferdam_core::JobState;
use reqwest::Method;
use std::time::Duration;

/// The longest that one request waits for a job's end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Which jobs are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    pub state: Option<JobState>,
    pub task_id: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl Client {
    /// Has a job kept, once, however often the request has to be sent; and waits for its end for at most `wait`.
    pub async fn job_create(&self, request: &JobRequest, wait: Duration) -> Result<Job> {
        let wait = wait.min(MAX_WAIT);
        let mut call = self.call(Method::POST, &["v1", "jobs"]).body(request)?.once()?.wait(wait);
        if !wait.is_zero() {
            call = call.query("wait_ms", &wait.as_millis().to_string());
        }
        call.json().await
    }

    /// Has a job run, and waits for its end for as long as it takes.
    pub async fn job_run(&self, request: &JobRequest) -> Result<Job> {
        let job = self.job_create(request, MAX_WAIT).await?;
        match job.status.state.is_final() {
            true => Ok(job),
            false => self.job_wait(&job.id).await,
        }
    }

    /// Waits for a job's end, by following it.
    pub async fn job_wait(&self, id: &str) -> Result<Job> {
        let mut output = self.job_output(id, None);
        while let Some(event) = output.next().await? {
            if let crate::OutputEvent::Result { job, .. } = event {
                return Ok(*job);
            }
        }
        self.job_get(id).await
    }

    pub async fn job_get(&self, id: &str) -> Result<Job> {
        self.call(Method::GET, &["v1", "jobs", id]).json().await
    }

    pub async fn job_list(&self, query: &JobQuery) -> Result<JobList> {
        let JobQuery { state, task_id, limit, cursor } = query;
        let mut call = self.call(Method::GET, &["v1", "jobs"]);
        let limit = limit.map(|limit| limit.to_string());
        let parameters = [
            ("state", state.map(JobState::as_str)),
            ("task_id", task_id.as_deref()),
            ("limit", limit.as_deref()),
            ("cursor", cursor.as_deref()),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                call = call.query(name, value);
            }
        }
        call.json().await
    }

    pub async fn job_cancel(&self, id: &str) -> Result<Job> {
        self.call(Method::POST, &["v1", "jobs", id, "cancel"]).repeatable().json().await
    }

    pub async fn job_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "jobs", id]).gone().await
    }

    /// The signed statement of what a job that has ended was, and what came of it.
    pub async fn job_receipt(&self, id: &str) -> Result<SignedDocument> {
        self.call(Method::GET, &["v1", "jobs", id, "receipt"]).json().await
    }

    /// Follows a job's output, from its beginning or from after an event.
    pub fn job_output(&self, id: &str, after: Option<i64>) -> Output {
        Output::new(self.clone(), &["v1", "jobs", id, "output"], after)
    }
}
