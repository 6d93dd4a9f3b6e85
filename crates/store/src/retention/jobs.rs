//! Jobs that ended long ago, with everything that is theirs.

use super::{JOBS, PIECES, Removed, note, output};
use crate::jobs::remove;
use crate::{Millis, Result, Store};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

pub(crate) const FIND: &str = "SELECT id, tenant_id FROM jobs WHERE output_kept IN (0, 1) \
    AND transition_at_ms < $1 AND state NOT IN ('accepted', 'queued', 'running') LIMIT $2";

impl Store {
    /// Removes some of the jobs that ended before a time.
    pub async fn expire_jobs(&self, before: Millis, now: Millis) -> Result<Removed> {
        self.writer.write(Expire { before, now }).await
    }
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
            output::remove(connection, &id, &mut room).await?;
            if room == 0 {
                // It may have more, and goes with the next.
                break;
            }
            remove(connection, &id).await?;
            *counts.entry(tenant).or_insert(0) += 1;
            count += 1;
        }
        note(connection, "retention.jobs", counts, (self.now, self.before)).await?;
        Ok(Removed { count, is_more: is_more || room == 0 })
    }
}
