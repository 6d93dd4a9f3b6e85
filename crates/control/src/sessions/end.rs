//! What is to be done when a session has ended, however that came: its sandbox goes, and its room is free.

use crate::Control;
use crate::worker::Worker;
use cofferdam_core::SessionId;
use cofferdam_store::EndedSession;
use std::sync::Arc;

impl Control {
    /// Lets go of sessions that have ended in the store, all at once.
    pub(crate) async fn let_go(&self, ended: Vec<EndedSession>) {
        let each = ended.into_iter().map(|session| {
            let control = self.clone();
            tokio::spawn(async move { control.let_go_of(&session).await })
        });
        for task in each.collect::<Vec<_>>() {
            // One that panicked has said so; the others go on.
            let _ = task.await;
        }
    }

    async fn let_go_of(&self, session: &EndedSession) {
        // Whoever waits for one of its steps looks again, and sees its end.
        for step in &session.steps {
            if let Some(handle) = self.parts.running.get(step) {
                handle.take_away();
            }
        }
        if let Some(worker) = self.session_worker(&session.worker).await
            && let Some(sessions) = worker.sessions()
            && let Ok(id) = SessionId::parse("id", &session.id)
        {
            sessions.terminate(&id, session.generation).await;
        }
        self.parts.rooms.free(&session.id);
        if session.has_archive {
            self.sweep_archives_soon();
        }
    }

    /// The way to the worker that has a session; none where nobody has heard of that worker for long.
    pub(crate) async fn session_worker(&self, worker: &str) -> Option<Arc<dyn Worker>> {
        if let Some(known) = self.parts.fleet.known(worker) {
            return Some(known);
        }
        // It may have registered with another process a moment ago.
        self.refresh_fleet().await.ok()?;
        self.parts.fleet.known(worker)
    }
}
