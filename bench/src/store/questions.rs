//! What a store is asked, as the API asks it. Each time about something else, so that no answer is a memory of the
//! last.

use std::time::{Duration, Instant};

use cofferdam_core::JobState;
use cofferdam_store::bulk::{Bulk, begin_ms, job_id, task_id};
use cofferdam_store::{
    AuditEvent, Claim, Finish, JobFilter, JobSize, NewJob, OutputEvent, OutputKind, Page, Result, Store,
};

pub(super) const TENANT: &str = "ten-bench";

/// A page of the API, and one more to know whether there is another.
const PAGE: i64 = 51;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Submit,
    Finish,
    Show,
    List,
    ListDeep,
    ListState,
    ListRareState,
    ListTask,
    Queue,
    Audit,
    AuditDeep,
}

pub(super) const QUESTIONS: [Question; 11] = [
    Question::Submit,
    Question::Finish,
    Question::Show,
    Question::List,
    Question::ListDeep,
    Question::ListState,
    Question::ListRareState,
    Question::ListTask,
    Question::Queue,
    Question::Audit,
    Question::AuditDeep,
];

impl Question {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Finish => "finish",
            Self::Show => "show",
            Self::List => "list",
            Self::ListDeep => "list, deep",
            Self::ListState => "list, state",
            Self::ListRareState => "list, rare",
            Self::ListTask => "list, task",
            Self::Queue => "queue",
            Self::Audit => "audit, last",
            Self::AuditDeep => "audit, deep",
        }
    }
}

/// Someone who asks one store.
pub(super) struct Asker {
    store: Store,
    bulk: Bulk,
    /// Chooses what is asked for: the same for every store and every run.
    dice: u64,
    submitted: u64,
}

impl Asker {
    pub(super) fn new(store: Store, bulk: Bulk) -> Self {
        Self { store, bulk, dice: 0x2545_F491_4F6C_DD1D, submitted: 0 }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) async fn close(self) {
        self.store.close().await;
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % below.max(1)
    }

    /// How long an answer took. An answer without what was asked for is an error.
    pub(super) async fn ask(&mut self, question: Question) -> Result<Duration> {
        let number = self.draw(self.bulk.jobs);
        let now = self.bulk.until + self.submitted as i64;
        let list = |filter| JobFilter { limit: PAGE, ..filter };
        match question {
            Question::Submit => self.submit(now).await,
            Question::Finish => {
                self.submit(now).await?;
                self.finish(now).await
            }
            Question::Show => {
                let (id, began) = (job_id(number), Instant::now());
                let job = self.store.job(TENANT, &id).await?;
                let output = self.store.output(&id, 0, 100_000).await?;
                checked(began, job.is_some() && !output.is_empty(), question)
            }
            Question::List => self.list(list(JobFilter::default()), question).await,
            Question::ListDeep => {
                let older = self.bulk.jobs / 4 + self.draw(self.bulk.jobs / 2);
                let before = Some(Page { created_at_ms: begin_ms(self.bulk, older), id: job_id(older) });
                self.list(list(JobFilter { before, ..JobFilter::default() }), question).await
            }
            Question::ListState => {
                let state = Some(JobState::Failed);
                self.list(list(JobFilter { state, ..JobFilter::default() }), question).await
            }
            Question::ListRareState => {
                let state = Some(JobState::Cancelled);
                self.list(list(JobFilter { state, ..JobFilter::default() }), question).await
            }
            Question::ListTask => {
                let task_id = Some(task_id(number));
                self.list(list(JobFilter { task_id, ..JobFilter::default() }), question).await
            }
            Question::Queue => {
                let began = Instant::now();
                let queued = self.store.queued_of(TENANT, 64).await?;
                checked(began, queued.is_empty(), question)
            }
            Question::Audit => self.audit(self.events() - 100, question).await,
            Question::AuditDeep => {
                let after = self.draw(self.bulk.jobs * self.bulk.events_for_each / 2) as i64;
                self.audit(after, question).await
            }
        }
    }

    fn events(&self) -> i64 {
        (self.bulk.jobs * self.bulk.events_for_each) as i64
    }

    async fn list(&self, filter: JobFilter, question: Question) -> Result<Duration> {
        let began = Instant::now();
        let jobs = self.store.jobs(TENANT, &filter).await?;
        checked(began, !jobs.is_empty(), question)
    }

    async fn audit(&self, after: i64, question: Question) -> Result<Duration> {
        let began = Instant::now();
        let entries = self.store.audit(TENANT, after, 100).await?;
        checked(began, entries.len() == 100, question)
    }

    /// As the service keeps a job that can start at once.
    async fn submit(&mut self, now: i64) -> Result<Duration> {
        self.submitted += 1;
        let id = submitted_id(self.submitted);
        let job = NewJob {
            id: id.clone(),
            tenant: TENANT.to_owned(),
            agent: None,
            task_id: id.clone(),
            spec: r#"{"language":"python","code":"print(1)"}"#.to_owned(),
            terms: None,
            created_at_ms: now,
            size: JobSize::default(),
            queue_deadline_ms: None,
            traceparent: None,
            webhook: None,
        };
        let (owner, worker) = ("ctl-bench".to_owned(), "wrk-bench".to_owned());
        let claim = Claim { owner, worker, lease_ms: 30_000, room: None, most_running: None };
        let events = vec![event("job.accepted", &id, now), event("job.running", &id, now)];
        let began = Instant::now();
        self.store.accept(job, Some(claim), None, events).await?;
        Ok(began.elapsed())
    }

    async fn finish(&self, now: i64) -> Result<Duration> {
        let id = submitted_id(self.submitted);
        let end = Finish {
            id: id.clone(),
            tenant: TENANT.to_owned(),
            fence: 1,
            state: JobState::Succeeded,
            reason: Some("exited".to_owned()),
            message: None,
            result: Some(r#"{"exit_code":0}"#.to_owned()),
            at_ms: now + 1,
        };
        let output =
            vec![OutputEvent { seq: 1, kind: OutputKind::Stdout, at_ms: now, bytes: b"1\n".to_vec() }];
        let began = Instant::now();
        self.store.finish(end, output, event("job.finished", &id, now + 1)).await?;
        Ok(began.elapsed())
    }
}

/// Scattered like those of the generator, and none of them.
fn submitted_id(number: u64) -> String {
    job_id(number).replace("job-", "job-new-")
}

fn event(kind: &'static str, id: &str, at_ms: i64) -> AuditEvent {
    let (actor, resource) = ("key-1".to_owned(), id.to_owned());
    AuditEvent { at_ms, kind, actor, resource, details: serde_json::json!({}) }
}

fn checked(began: Instant, is_right: bool, question: Question) -> Result<Duration> {
    let took = began.elapsed();
    match is_right {
        true => Ok(took),
        false => Err(cofferdam_store::StoreError::Unreadable(format!("{}: a wrong answer", question.name()))),
    }
}
