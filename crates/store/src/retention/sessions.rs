//! Sessions that ended long ago, with their steps and what those wrote.

use super::{JOBS, PIECES, Removed, note, output};
use crate::sessions::{OLD, step_keys};
use crate::{Millis, Result, Store};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

const STEPS: &str = "SELECT id FROM steps WHERE session_id = $1 ORDER BY number LIMIT $2";

impl Store {
    /// Removes some of the sessions that ended before a time.
    pub async fn expire_sessions(&self, before: Millis, now: Millis) -> Result<Removed> {
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
        let found = sqlx::query(OLD).bind(self.before).bind(JOBS).fetch_all(&mut *connection).await?;
        let mut is_more = found.len() as i64 == JOBS;
        let (mut room, mut steps, mut counts, mut count) = (PIECES, JOBS, BTreeMap::new(), 0);
        for row in found {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            step_keys::destroy(connection, &id).await?;
            if !remove_steps(connection, &id, &mut room, &mut steps).await? {
                // It has more, and goes with the next.
                is_more = true;
                break;
            }
            sqlx::query("DELETE FROM sessions WHERE id = $1").bind(id).execute(&mut *connection).await?;
            *counts.entry(tenant).or_insert(0) += 1;
            count += 1;
        }
        note(connection, "retention.sessions", counts, (self.now, self.before)).await?;
        Ok(Removed { count, is_more })
    }
}

/// Removes steps and their output for as long as there is room, and says whether none is left.
async fn remove_steps(
    connection: &mut AnyConnection,
    session: &str,
    room: &mut i64,
    steps: &mut i64,
) -> Result<bool> {
    let found = sqlx::query(STEPS).bind(session).bind(*steps + 1).fetch_all(&mut *connection).await?;
    for row in found {
        let id: String = row.try_get(0)?;
        output::remove(connection, &id, room).await?;
        if *room == 0 || *steps == 0 {
            return Ok(false);
        }
        sqlx::query("DELETE FROM steps WHERE id = $1").bind(id).execute(&mut *connection).await?;
        *steps -= 1;
    }
    Ok(true)
}
