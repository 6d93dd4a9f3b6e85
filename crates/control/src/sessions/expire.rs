//! Sessions end in time. Their deadlines are in the store, and so it does not matter who was there when they were set.

use crate::session_worker::Placed;
use crate::{Control, now_ms};
use cofferdam_core::EndCause;
use cofferdam_store::{EndedSession, SessionEnd, StoreError};
use std::time::Duration;

/// The longest that nobody looks.
const LOOK: Duration = Duration::from_millis(500);

/// For so long sandboxes of sessions that have ended are waited for.
const LET_GO: Duration = Duration::from_millis(500);

/// And the shortest: a store that fails is not asked all the time.
const PAUSE: Duration = Duration::from_millis(10);

impl Control {
    /// Starts the task that ends sessions whose time has come, for as long as the process lives.
    pub(crate) fn spawn_expiry(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                // A store that fails has said so; they are listed again.
                let _ = control.end_lost().await;
                let rest = control.end_due().await.unwrap_or(LOOK);
                tokio::time::sleep(rest.clamp(PAUSE, LOOK)).await;
            }
        });
    }

    /// Ends sessions of the worker in this process whose sandboxes are gone.
    pub(crate) async fn end_lost(&self) -> crate::Result<()> {
        let Some(worker) = self.parts.fleet.local() else { return Ok(()) };
        let Some(sessions) = worker.sessions() else { return Ok(()) };
        for (Placed { id, generation }, cause) in sessions.lost() {
            let place = self.parts.store.session_place(id.as_str()).await?;
            let Some(place) = place.filter(|place| place.has_sandbox && place.generation == generation)
            else {
                // It has ended by itself, or is elsewhere: what is left of it here goes.
                sessions.terminate(&id, generation).await;
                continue;
            };
            if let Some(ended) = self.end_gone(place.tenant, id.as_str(), &cause).await? {
                drop(tokio::time::timeout(LET_GO, self.let_go(vec![ended])).await);
            }
        }
        Ok(())
    }

    /// Notes that a session has ended with its sandbox; nothing where somebody was quicker.
    pub(super) async fn end_gone(
        &self,
        tenant: String,
        id: &str,
        cause: &str,
    ) -> crate::Result<Option<EndedSession>> {
        let end = SessionEnd {
            tenant,
            id: id.to_owned(),
            cause: EndCause::Lost,
            message: Some(format!("its sandbox is gone: {cause}").replace('\0', "\u{fffd}")),
            actor: "system".to_owned(),
            at_ms: now_ms(),
        };
        match self.parts.store.end_session(end).await {
            Ok(ended) => Ok(Some(ended)),
            Err(StoreError::SessionState { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends what is due, and says how long until the next may be.
    pub(crate) async fn end_due(&self) -> crate::Result<Duration> {
        let Some(next) = self.parts.store.next_session_due().await? else { return Ok(LOOK) };
        let now = now_ms();
        if next > now {
            return Ok(Duration::from_millis((next - now) as u64));
        }
        let has_paused = self.pause_due(now).await?;
        let due = self.parts.store.end_due_sessions(now).await?;
        let is_idle = due.ended.is_empty() && !has_paused;
        // A worker that does not answer must not make others late. What is not let go of by then goes on.
        let _ = tokio::time::timeout(LET_GO, self.let_go(due.ended)).await;
        Ok(if due.is_more || !is_idle { PAUSE } else { LOOK })
    }
}
