//! Sessions end in time. Their deadlines are in the store, and so it does not matter who was there when they were set.

use crate::{Control, now_ms};
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
                let rest = control.end_due().await.unwrap_or(LOOK);
                tokio::time::sleep(rest.clamp(PAUSE, LOOK)).await;
            }
        });
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
