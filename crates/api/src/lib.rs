//! The wire: what is sent and answered, and nothing of how it is done. Wire shapes exist here only, and their
//! schemas come from the same types.
//!
//! Units are in names, unknown fields are refused, and an error says what to do about it.

mod artifact;
mod audit;
mod error;
mod feed;
mod file;
pub mod frame;
mod health;
mod image;
mod job;
mod key;
mod objects;
mod output;
mod place;
mod process;
mod process_socket;
mod proof;
mod result;
mod run;
mod sandbox;
mod secret;
mod session;
mod step;
mod tenant;
mod watch_event;
mod webhook;
mod worker;
mod worker_images;

pub use artifact::{
    Artifact, ArtifactCreated, ArtifactList, ArtifactRequest, FinalizeRequest, LinkRequest,
    SessionArtifactRequest, SignedUrl,
};
pub use audit::{AuditEntry, AuditList};
pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use feed::{FeedData, FeedInitData};
pub use file::{
    ArchiveWritten, FileChangeData, FileChangeKind, FileInfo, FileKind, FileLinkRequest, FileList, FileMatch,
    FileMatches, FolderRequest, MoveRequest, WatchReadyData, WatchTicketRequest,
};
pub use health::{BackendState, Health};
pub use image::{
    CheckedProfile, Image, ImageCheck, ImageCheckRow, ImageCheckState, ImageFinding, ImageList, ImageRequest,
    ImageVisibility,
};
pub use job::{
    Command, InlineFile, Job, JobList, JobRequest, JobStatus, LANGUAGES, LimitsRequest, Retries, RetryCause,
    RetryPolicy, RunnerRequest, TOOLS,
};
pub use key::{Key, KeyList, KeyRequest, NewKey};
pub use objects::Objects;
pub use output::{CompleteData, ErrorData, InitData, OutputData, StreamEvent, TruncatedData};
pub use place::{
    PlaceAnswer, PlaceCall, PlaceStart, PlaceStarted, PlaceStep, ProcessNews, ProcessNewsPiece, SavedNews,
    SessionCall, WatchNews,
};
pub use process::{
    ProcessList, ProcessRequest, ProcessView, SignalRequest, TerminalSize, TicketRequest, TicketView,
};
pub use process_socket::{FromProcess, OutputFrame, ToProcess, close_code};
pub use proof::{DocumentSignature, SignedDocument, SigningKey, SigningKeyList};
pub use result::{Isolation, IsolationControl, JobResult};
pub use run::{
    Run, RunCreate, RunEnd, RunEvent, RunLease, RunOutputKept, RunOutputVerdict, RunSecret, RunState,
    RunTerminate,
};
pub use sandbox::{MountRequest, SandboxRequest};
pub use secret::{Secret, SecretList, SecretPut, SecretUse};
pub use session::{
    PauseKind, PauseView, Session, SessionExtend, SessionFork, SessionForks, SessionList, SessionPause,
    SessionRequest, SessionStatus, Snapshot, SnapshotList, SnapshotRequest,
};
pub use step::{
    ContextRestart, DisplayData, KERNEL_LANGUAGES, RichResult, Step, StepError, StepList, StepRequest,
    StepResult, StepStatus,
};
pub use tenant::{QuotasRequest, QuotasView, Tenant, TenantList, TenantPatch, TenantRequest};
pub use watch_event::WatchEvent;
pub use webhook::{WebhookBody, WebhookEvent, WebhookMade, WebhookRequest};
pub use worker::{
    WorkerCapacity, WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerList, WorkerSession, WorkerView,
};
pub use worker_images::{ImageLook, ImageLooked, ImagePins};
