//! Webhooks on the wire: what is asked for, what is shown of it, and what is sent.

use cofferdam_core::JobState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a webhook can hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookEvent {
    Accepted,
    Running,
    Finished,
}

impl WebhookEvent {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }
}

/// `webhook` of a job.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"url": "https://example.org/hook"}))]
#[serde(deny_unknown_fields)]
pub struct WebhookRequest {
    /// `https://…`, without a user, a password or a fragment.
    #[schema(max_length = 2048, pattern = "^https://")]
    pub url: String,
    /// What messages are signed with; made where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 16, max_length = 256)]
    pub secret: Option<String>,
    /// `finished` alone where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 3)]
    pub events: Option<Vec<WebhookEvent>>,
}

/// Neither the secret nor the URL, which may hold one, belongs into a log.
impl std::fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookRequest").field("events", &self.events).finish_non_exhaustive()
    }
}

/// A webhook in the answer to the request that made it, and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookMade {
    /// There where it was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub events: Vec<WebhookEvent>,
}

impl std::fmt::Debug for WebhookMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookMade").field("events", &self.events).finish_non_exhaustive()
    }
}

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WebhookBody {
    /// The same for every attempt to deliver the message.
    pub event_id: String,
    pub job_id: String,
    /// Which start of the job it is about; 0 before the first.
    pub attempt: i64,
    pub state: JobState,
    /// Of the container that it ran in, where Docker or Podman made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    pub exit_code: Option<i64>,
    pub outcome: Option<serde_json::Value>,
    /// What went wrong, where that was not the job's doing.
    pub error: Option<String>,
    pub at: String,
}
