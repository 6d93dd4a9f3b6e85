//! Output of jobs that ended long ago. The job stays, and says that its output is gone.

use super::{JOBS, PIECES, Removed, note};
use crate::{Millis, Result, Store};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

pub(crate) const FIND: &str = "SELECT id, tenant_id FROM jobs WHERE output_kept = 1 AND transition_at_ms < $1 \
    AND state NOT IN ('accepted', 'queued', 'running') ORDER BY transition_at_ms LIMIT $2";

pub(crate) const REMOVE: &str = "DELETE FROM output WHERE job_id = $1 AND seq IN \
    (SELECT seq FROM output WHERE job_id = $1 ORDER BY seq LIMIT $2)";

impl Store {
    /// Removes some of the output of jobs that ended before a time.
    pub async fn expire_output(&self, before: Millis, now: Millis) -> Result<Removed> {
        self.writer.write(Expire { before, now }).await
    }
}

/// Removes pieces of a job's output, as many as there is room for. None are left where there was room for more.
pub(super) async fn remove(connection: &mut AnyConnection, job: &str, room: &mut i64) -> Result<u64> {
    let done = sqlx::query(REMOVE).bind(job).bind(*room).execute(connection).await?;
    *room -= done.rows_affected() as i64;
    Ok(done.rows_affected())
}

struct Expire {
    before: Millis,
    now: Millis,
}

impl crate::writer::Act<Removed> for Expire {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Removed>
    where
        Self: 'c,
    {
        let found = sqlx::query(FIND).bind(self.before).bind(JOBS).fetch_all(&mut *connection).await?;
        let is_more = found.len() as i64 == JOBS;
        let (mut room, mut counts, mut count) = (PIECES, BTreeMap::new(), 0);
        for row in found {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let pieces = remove(connection, &id, &mut room).await?;
            // One that had none is not said to have lost any. One that had more than there was room for already
            // says so, and is found again.
            sqlx::query(
                "UPDATE jobs SET output_kept = $1, output_expired_at_ms = COALESCE(output_expired_at_ms, $2) \
                 WHERE id = $3",
            )
            .bind(i64::from(room == 0))
            .bind((pieces > 0).then_some(self.now))
            .bind(id)
            .execute(&mut *connection)
            .await?;
            if pieces > 0 {
                *counts.entry(tenant).or_insert(0) += 1;
            }
            count += 1;
            if room == 0 {
                break;
            }
        }
        note(connection, "retention.output", counts, (self.now, self.before)).await?;
        Ok(Removed { count, is_more: is_more || room == 0 })
    }
}
