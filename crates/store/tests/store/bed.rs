//! A database for one case, and short words for what cases do over and over.

use crate::postgres;
use cofferdam_core::JobState;
use cofferdam_store::{
    AuditEvent, Claim, Finish, GivenUp, Idempotency, JobSize, Location, NewJob, Next, Store,
};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, Connection, Executor};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const TENANT: &str = "ten_one";
pub(crate) const OTHER: &str = "ten_two";

#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) location: Location,
    folder: Option<PathBuf>,
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A number that no other case of this process has.
pub(crate) fn unique() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

impl Bed {
    pub(crate) fn sqlite() -> Self {
        Self::sqlite_named("store.db")
    }

    pub(crate) fn sqlite_named(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("cofferdam-store-{}-{}", std::process::id(), unique()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { location: Location::Sqlite(folder.join(name)), folder: Some(folder) }
    }

    pub(crate) async fn postgres() -> Self {
        let name = format!("case_{}", unique());
        let main = tokio::task::spawn_blocking(|| postgres::shared_address("postgres")).await.unwrap();
        create_database(&main, &name).await;
        Self { location: Location::Postgres(postgres::shared_address(&name)), folder: None }
    }

    /// A store with two tenants.
    pub(crate) async fn open(&self) -> Store {
        let store = Store::open(&self.location).await.unwrap();
        for tenant in [TENANT, OTHER] {
            store.ensure_tenant(tenant.to_owned(), format!("{tenant}'s name"), 1).await.unwrap();
        }
        store
    }

    /// The database without the store, to look and to do harm.
    pub(crate) async fn raw(&self) -> AnyConnection {
        install_default_drivers();
        let address = match &self.location {
            Location::Sqlite(path) => format!("sqlite://{}", path.display()),
            Location::Postgres(address) => address.clone(),
        };
        AnyConnection::connect(&address).await.unwrap()
    }

    pub(crate) async fn run(&self, statements: &'static str) {
        self.raw().await.execute(statements).await.unwrap();
    }

    /// Changes rows behind the store's back.
    pub(crate) async fn harm(&self, statement: &'static str) {
        let done = self.raw().await.execute(statement).await.unwrap();
        assert_ne!(done.rows_affected(), 0, "{statement}");
    }
}

pub(crate) async fn create_database(main: &str, name: &str) {
    install_default_drivers();
    let mut connection = AnyConnection::connect(main).await.unwrap();
    let text = format!("CREATE DATABASE {name}");
    connection.execute(sqlx::AssertSqlSafe(text)).await.unwrap();
}

pub(crate) fn event(kind: &'static str, resource: &str) -> AuditEvent {
    AuditEvent {
        at_ms: 1_000,
        kind,
        actor: "key_one".to_owned(),
        resource: resource.to_owned(),
        details: serde_json::json!({"why": "a case"}),
    }
}

pub(crate) fn new_job(id: &str) -> NewJob {
    NewJob {
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        agent: Some("agent".to_owned()),
        task_id: format!("task of {id}"),
        spec: r#"{"argv":["true"]}"#.to_owned(),
        terms: Some("{}".to_owned()),
        created_at_ms: 100,
        size: JobSize { cpus_millis: 1_000, memory_bytes: 64 },
        queue_deadline_ms: None,
        traceparent: None,
        webhook: None,
    }
}

pub(crate) fn claim(worker: &str) -> Claim {
    Claim {
        owner: worker.to_owned(),
        worker: worker.to_owned(),
        lease_ms: 60_000,
        room: None,
        most_running: None,
    }
}

pub(crate) fn finish(id: &str, fence: i64, state: JobState) -> Finish {
    Finish {
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        fence,
        state,
        reason: Some("exited".to_owned()),
        message: None,
        result: Some(r#"{"exit_code":0}"#.to_owned()),
        at_ms: 2_000,
    }
}

pub(crate) fn given_up(id: &str, fence: i64, next: Next) -> GivenUp {
    GivenUp {
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        fence,
        seen_lease_ms: None,
        next,
        reason: "worker_gone".to_owned(),
        message: "it is gone".to_owned(),
        at_ms: 3_000,
    }
}

pub(crate) fn named(name: &str, body: &str) -> Option<Idempotency> {
    Some(Idempotency { route: "job_create", name: name.to_owned(), body_hash: body.to_owned() })
}

/// A job that waits.
pub(crate) async fn queue(store: &Store, id: &str) {
    store.accept(new_job(id), None, None, vec![event("job.accepted", id)]).await.unwrap();
}

/// A job that `worker` runs, with fence 1.
pub(crate) async fn start(store: &Store, id: &str, worker: &str) {
    store.accept(new_job(id), Some(claim(worker)), None, vec![event("job.accepted", id)]).await.unwrap();
}

pub(crate) async fn end(store: &Store, id: &str, fence: i64, state: JobState) -> cofferdam_store::Result<()> {
    store.finish(finish(id, fence, state), Vec::new(), event("job.finished", id)).await
}

pub(crate) async fn state(store: &Store, id: &str) -> JobState {
    store.job(TENANT, id).await.unwrap().expect("the job is there").state
}

/// Matches an error and says what came instead.
macro_rules! assert_refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {{
        let result = $result;
        assert!(matches!(&result, Err($pattern) $(if $guard)?), "{result:?}");
    }};
}
pub(crate) use assert_refused;
