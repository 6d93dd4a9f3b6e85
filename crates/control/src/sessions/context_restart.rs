//! `context.restart`: the interpreter of a context ends, and the step that it runs. The next step has a new one.

use super::step_create::{DEFAULT_CONTEXT, check_context, kernel_name};
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_api::ContextRestart;
use cofferdam_core::{EndCause, SessionId, SessionState};
use cofferdam_policy::Permit;
use cofferdam_store::SessionRecord;
use serde_json::json;
use std::sync::Arc;

impl Control {
    pub async fn restart_context(
        &self,
        permit: &Permit,
        session: &str,
        name: &str,
        request: &ContextRestart,
    ) -> Result<()> {
        let name = if name.is_empty() { DEFAULT_CONTEXT } else { name };
        check_context(name)?;
        let language = kernel_name(&request.language)?;
        let details = json!({"language": language, "context": name});
        let record = self.use_session(permit, session, "context.restarted", details).await?;
        let (worker, id) = self.reach(&record).await?;
        let sessions = worker.sessions().ok_or(UNREACHABLE)?;
        let restarted = sessions.restart_context(&id, record.generation, language, name).await;
        restarted.map_err(|failure| match failure.code.as_str() {
            "not_found" => ControlError::NotFound { what: "context" },
            _ => gone(failure.message),
        })
    }

    /// Notes that a session is used for something, if it may be.
    pub(crate) async fn use_session(
        &self,
        permit: &Permit,
        id: &str,
        kind: &'static str,
        details: serde_json::Value,
    ) -> Result<SessionRecord> {
        let event = self.event(permit, kind, id, details);
        let tenant = permit.tenant().to_owned();
        Ok(self.parts.store.use_session(tenant, id.to_owned(), now_ms(), Some(event)).await?)
    }

    /// The way to the worker that has a session.
    pub(crate) async fn reach(&self, session: &SessionRecord) -> Result<(Arc<dyn crate::Worker>, SessionId)> {
        let worker = self.session_worker(&session.worker).await.ok_or(UNREACHABLE)?;
        Ok((worker, SessionId::parse("id", &session.id)?))
    }
}

/// Its worker is not known here: it is gone, or somebody else's.
pub(crate) const UNREACHABLE: ControlError =
    ControlError::SessionState { state: SessionState::Ended, cause: Some(EndCause::Lost) };

pub(crate) fn gone(message: String) -> ControlError {
    ControlError::Unavailable(message)
}
