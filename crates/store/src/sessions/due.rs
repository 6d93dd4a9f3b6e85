//! Sessions whose time has come. Deadlines are absolute and kept, so it makes no difference who was there meanwhile.

use super::end::{EndedSession, SessionEnd, end};
use crate::{Millis, Result, Store};
use cofferdam_core::EndCause;
use sqlx::{AnyConnection, Row};

/// So many in one write.
const AT_ONCE: i64 = 100;

/// What is due, and what will be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// They have just ended.
    pub ended: Vec<EndedSession>,
    /// Whether there may be more that are due now.
    pub is_more: bool,
}

pub(crate) const EXPIRED: &str = "SELECT id, tenant_id FROM sessions WHERE state <> 'ended' AND expires_at_ms <= $1 \
     AND (on_expiry <> 'pause' OR state = 'creating' OR COALESCE(pause_mode, 'freeze') <> 'freeze') ORDER BY expires_at_ms LIMIT $2";

/// Nothing runs in them by a step, and nobody has asked anything of them for too long.
pub(crate) const IDLE: &str = "SELECT id, tenant_id FROM sessions WHERE state <> 'ended' AND idle_ms IS NOT NULL \
     AND COALESCE(pause_mode, 'freeze') = 'freeze' AND (on_expiry <> 'pause' OR state = 'creating' OR COALESCE(pause_mode, 'freeze') <> 'freeze') AND used_at_ms + idle_ms <= $1 AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.session_id = sessions.id \
     AND steps.state IN ('queued', 'running')) LIMIT $2";

/// When the first of them expires, and when the first of them has been idle for too long.
pub(crate) const NEXT: [&str; 2] = [
    "SELECT MIN(expires_at_ms) FROM sessions WHERE state <> 'ended'",
    "SELECT MIN(used_at_ms + idle_ms) FROM sessions WHERE state <> 'ended' AND idle_ms IS NOT NULL \
     AND COALESCE(pause_mode, 'freeze') = 'freeze'",
];

impl Store {
    /// When the next session may be due; none if there is none.
    pub async fn next_session_due(&self) -> Result<Option<Millis>> {
        let mut next: Option<Millis> = None;
        for text in NEXT {
            let row = self.engine.fetch_optional(sqlx::query(text)).await?;
            let first: Option<Millis> = row.map(|row| row.try_get(0)).transpose()?.flatten();
            next = next.into_iter().chain(first).min();
        }
        Ok(next)
    }

    /// Ends some of the sessions whose deadline or idle time is over.
    pub async fn end_due_sessions(&self, now: Millis) -> Result<Due> {
        self.writer.write(EndDue { now }).await
    }
}

struct EndDue {
    now: Millis,
}

impl crate::writer::Act<Due> for EndDue {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Due>
    where
        Self: 'c,
    {
        let mut due = Due::default();
        let kinds = [
            (EXPIRED, EndCause::Expired, "its time was over"),
            (IDLE, EndCause::Idle, "nobody used it for as long as its idle time-out says"),
        ];
        for (text, cause, message) in kinds {
            let rows = sqlx::query(text).bind(self.now).bind(AT_ONCE).fetch_all(&mut *connection).await?;
            due.is_more |= rows.len() as i64 == AT_ONCE;
            for row in rows {
                let (id, tenant) = (row.try_get(0)?, row.try_get(1)?);
                let (message, actor) = (Some(message.to_owned()), "system".to_owned());
                let wanted = SessionEnd { tenant, id, cause, message, actor, at_ms: self.now };
                due.ended.extend(end(connection, wanted).await?);
            }
        }
        Ok(due)
    }
}
