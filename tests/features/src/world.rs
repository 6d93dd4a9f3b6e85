//! What a scenario knows: its service, the job that it is about, and what was last refused.

use crate::service::Service;
use crate::wall::wall;
use cofferdam_api::{Command, Job, JobRequest, JobResult, Step};
use cofferdam_client::{ClientError, Refusal};
use cucumber::World;
use std::time::Duration;

/// Longer than any job of a scenario takes.
const WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Default, World)]
pub struct Scene {
    service: Option<Service>,
    job: Option<Job>,
    pub refusal: Option<Refusal>,
    /// The id of the session that it is about.
    pub session: String,
    pub step: Option<Step>,
}

impl Scene {
    pub fn start(&mut self) {
        self.service = Some(Service::start());
    }

    pub fn service(&mut self) -> &mut Service {
        self.service.as_mut().expect("the service was started by a step before")
    }

    pub fn client(&self) -> &cofferdam_client::Client {
        &self.service.as_ref().expect("the service was started by a step before").client
    }

    pub fn job(&self) -> &Job {
        self.job.as_ref().expect("a step before has made a job")
    }

    pub fn result(&self) -> &JobResult {
        self.job().result.as_ref().expect("the job has ended")
    }

    /// Has a job run to its end.
    pub async fn run(&mut self, request: JobRequest) {
        let created = self.client().job_create(&wall().ask(request), WAIT).await;
        self.take(created);
    }

    pub async fn submit(&mut self, request: JobRequest) {
        let created = self.client().job_create(&wall().ask(request), Duration::ZERO).await;
        self.take(created);
    }

    pub async fn look(&mut self) {
        let id = self.job().id.clone();
        let job = self.client().job_get(&id).await;
        self.take(job);
    }

    pub async fn wait(&mut self) {
        let id = self.job().id.clone();
        let job = self.client().job_wait(&id).await;
        self.take(job);
    }

    fn take(&mut self, answer: cofferdam_client::Result<Job>) {
        match answer {
            Ok(job) => {
                wall().look_at(&job);
                self.job = Some(job);
            }
            Err(ClientError::Refused(refusal)) => self.refusal = Some(*refusal),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A line for a shell.
pub fn shell(line: &str) -> JobRequest {
    JobRequest { command: Some(Command::Shell(line.to_owned())), ..JobRequest::default() }
}

pub fn code(language: &str, code: &str) -> JobRequest {
    JobRequest { language: Some(language.to_owned()), code: Some(code.to_owned()), ..JobRequest::default() }
}

/// A text of a step, in which `\n` is the end of a line.
pub fn unescape(text: &str) -> String {
    text.replace("\\n", "\n")
}
