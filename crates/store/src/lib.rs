//! Records, and the SQL that keeps them, on SQLite and PostgreSQL.
//!
//! What is written together is durable together, and durable when the call returns. All writes of one process go
//! through one task, which commits whatever has come in meanwhile at once; reads have connections of their own.
//! This crate decides nothing: it refuses what its guards (a state, a fence, a key that is taken) do not allow,
//! and says so.

mod archives;
mod artifacts;
mod audit;
mod audit_list;
#[cfg(feature = "bulk")]
pub mod bulk;
mod check;
mod counts;
mod engine;
mod error;
pub mod file;
mod idempotency;
mod images;
mod jobs;
mod key_use;
mod keys;
mod leases;
mod limit;
mod master_key;
mod migrate;
mod output;
mod patience;
mod planes;
mod probe;
mod progress;
mod retention;
mod secrets;
mod sessions;
mod settle;
mod snapshots;
mod statements;
mod tenants;
mod texts;
mod webhooks;
mod workers;
mod writer;

pub use archives::{ArchiveRecord, NewArchive};
pub use artifacts::{ArtifactFilter, ArtifactRecord, ArtifactState, Attempt, DoneArtifact, NewArtifact};
pub use audit::{AuditEvent, AuditHead};
pub use audit_list::AuditFilter;
pub use check::Checked;
pub use cofferdam_core::{AuditEntry, chain_hash};
pub use counts::Counts;
pub use engine::Location;
pub use error::StoreError;
pub use idempotency::{Idempotency, Kept};
pub use images::{ImageFilter, ImageRecord};
pub use jobs::{Accepted, Claim, Finish, JobFilter, JobRecord, JobSize, NewJob, Page};
pub use keys::{FoundKey, KeyRecord, NewKey};
pub use leases::{Abandoned, GivenUp, Next};
pub use master_key::{Rewrapped, Sealed, SealedFor};
pub use output::{OutputEvent, OutputKind, OutputTail};
pub use patience::Patience;
pub use planes::{Begun, BegunSession};
pub use probe::Probe;
pub use progress::Progress;
pub use retention::{Checkpoint, Removed, Space};
pub use secrets::SecretRecord;
pub use sessions::{
    Due, EndedSession, Keeping, LiveSession, NewSession, NewStep, Pause, PauseBegun, PauseOrder, SealStep,
    SessionAccepted, SessionEnd, SessionFilter, SessionPlace, SessionRecord, StepAccepted, StepFinish,
    StepPart, StepRecord,
};
pub use settle::Settled;
pub use snapshots::{NewSnapshot, SnapshotRecord};
#[doc(hidden)]
pub use statements::{Statement, statements};
pub use tenants::{QuotaOverrides, TenantRecord};
pub use webhooks::{Delivery, NewWebhook};
pub use workers::{WorkerRecord, WorkerRoom};

use counts::Told;
use engine::Engine;
use writer::Writer;

pub type Result<T> = std::result::Result<T, StoreError>;

/// Milliseconds since 1970. The caller's clock, so that tests can have one of their own.
pub type Millis = i64;

/// An open store.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Engine,
    writer: Writer,
    told: Told,
}

impl Store {
    /// Opens a store, makes or updates its tables, and starts to write.
    pub async fn open(location: &Location) -> Result<Self> {
        Self::open_with(location, Patience::default()).await
    }

    pub async fn open_with(location: &Location, patience: Patience) -> Result<Self> {
        let engine = Engine::open(location, patience).await?;
        let mut connection = engine.connect_first().await?;
        migrate::migrate(&mut connection, engine.kind()).await?;
        let told = Told::default();
        let writer = Writer::start(engine.clone(), connection, told.clone());
        Ok(Self { engine, writer, told })
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        self.engine.fetch_optional(sqlx::query("SELECT 1")).await.map(drop)
    }

    /// Waits until everything that was asked for is written, and lets go of the database.
    pub async fn close(self) {
        self.writer.stop().await;
        self.engine.close().await;
    }
}
