//! What is sealed under the master key, wherever it lies, and its change to another key: all of it or nothing.
//!
//! This crate never opens anything. It shows each sealed text with what it was sealed for, and keeps what comes back.

use crate::{AuditEvent, Millis, Result, Store, StoreError, audit};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

/// What a sealed text belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedFor {
    /// The key of what a session's steps are and write.
    Steps {
        session: String,
    },
    Artifact {
        tenant: String,
        id: String,
        attempt: String,
    },
    /// A session or a snapshot.
    Archive {
        owner: String,
    },
    Secret {
        tenant: String,
        name: String,
    },
    Webhook {
        url: String,
    },
}

/// A text under the master key, as it lies in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub owner: SealedFor,
    pub text: String,
}

/// How far a change of the master key has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrapped {
    pub count: u64,
}

/// A column with sealed texts.
struct Place {
    table: &'static str,
    column: &'static str,
    /// What tells its rows apart, which is also the order in which they are gone through.
    key: &'static [&'static str],
    /// What a text was sealed for.
    owner: &'static [&'static str],
    read: fn(&AnyRow, usize) -> sqlx::Result<SealedFor>,
}

/// All of them. Whatever else is sealed one day belongs here, or a change of the key makes it unreadable.
const PLACES: [Place; 6] = [
    Place {
        table: "artifacts",
        column: "wrapped_key",
        key: &["id"],
        owner: &["tenant_id", "id", "attempt"],
        read: |row, at| {
            let (tenant, id, attempt) = (row.try_get(at)?, row.try_get(at + 1)?, row.try_get(at + 2)?);
            Ok(SealedFor::Artifact { tenant, id, attempt })
        },
    },
    Place {
        table: "archives",
        column: "wrapped_key",
        key: &["owner", "attempt"],
        owner: &["owner"],
        read: |row, at| Ok(SealedFor::Archive { owner: row.try_get(at)? }),
    },
    Place {
        table: "secrets",
        column: "sealed",
        key: &["tenant_id", "name"],
        owner: &["tenant_id", "name"],
        read: |row, at| Ok(SealedFor::Secret { tenant: row.try_get(at)?, name: row.try_get(at + 1)? }),
    },
    Place {
        table: "session_keys",
        column: "wrapped_key",
        key: &["session_id"],
        owner: &["session_id"],
        read: |row, at| Ok(SealedFor::Steps { session: row.try_get(at)? }),
    },
    Place {
        table: "webhooks",
        column: "secret",
        key: &["job_id"],
        owner: &["url"],
        read: |row, at| Ok(SealedFor::Webhook { url: row.try_get(at)? }),
    },
    Place {
        table: "webhook_deliveries",
        column: "secret",
        key: &["event_id"],
        owner: &["url"],
        read: |row, at| Ok(SealedFor::Webhook { url: row.try_get(at)? }),
    },
];

/// Rows that are read together.
const PAGE: usize = 500;

impl Place {
    /// The first rows, or those after a key.
    fn page(&self, is_first: bool) -> String {
        let Self { table, column, key, owner, read: _ } = self;
        let names = key.join(", ");
        let after = match (is_first, key.len()) {
            (true, _) => String::new(),
            (false, 1) => format!(" AND {names} > $1"),
            (false, _) => format!(" AND ({names}) > ($1, $2)"),
        };
        format!(
            "SELECT {names}, {column}, {} FROM {table} WHERE {column} IS NOT NULL{after} \
             ORDER BY {names} LIMIT {PAGE}",
            owner.join(", ")
        )
    }

    /// A row is changed only as it was read.
    fn change(&self) -> String {
        let Self { table, column, key, .. } = self;
        let rest: String =
            key.iter().zip(3..).map(|(name, number)| format!(" AND {name} = ${number}")).collect();
        format!("UPDATE {table} SET {column} = $1 WHERE {column} = $2{rest}")
    }

    async fn rows(
        &self,
        connection: &mut AnyConnection,
        after: &[String],
    ) -> Result<Vec<(Vec<String>, Sealed)>> {
        let text = self.page(after.is_empty());
        let mut query = sqlx::query(AssertSqlSafe(text));
        for part in after {
            query = query.bind(part.as_str());
        }
        let width = self.key.len();
        let read = |row: &AnyRow| -> Result<_> {
            let key = (0..width).map(|at| row.try_get(at)).collect::<sqlx::Result<Vec<String>>>()?;
            let owner = (self.read)(row, width + 1)?;
            Ok((key, Sealed { owner, text: row.try_get(width)? }))
        };
        query.fetch_all(connection).await?.iter().map(read).collect()
    }
}

impl Store {
    /// The fingerprint of the master key that everything here is under, once one was noted.
    pub async fn master_key(&self) -> Result<Option<String>> {
        let row = self
            .engine
            .fetch_optional(sqlx::query("SELECT fingerprint FROM master_key WHERE id = 1"))
            .await?;
        row.map(|row| Ok(row.try_get(0)?)).transpose()
    }

    /// Notes the master key of a store that has no note of one. Whoever was quicker has noted the one that counts, which
    /// is returned.
    pub async fn note_master_key(&self, fingerprint: String, now: Millis) -> Result<String> {
        self.writer.write(Note { fingerprint, now }).await
    }

    /// One text of each kind, to try a key on.
    pub async fn sealed_samples(&self) -> Result<Vec<Sealed>> {
        let mut connection = self.engine.connect().await?;
        let mut found = Vec::new();
        for place in &PLACES {
            found
                .extend(place.rows(&mut connection, &[]).await?.into_iter().next().map(|(_, sealed)| sealed));
        }
        let _ = connection.close().await;
        Ok(found)
    }

    /// Puts what `change` makes of each sealed text in its place, and notes the new key and the event, in one
    /// transaction: a death at any moment leaves everything under the old key, or everything under the new one. `change`
    /// leaves a text as it is by returning none. After each page `reached` is told how many were changed; what it returns
    /// as an error ends the transaction.
    pub async fn rewrap<E: From<StoreError>>(
        &self,
        fingerprint: &str,
        now: Millis,
        event: impl FnOnce(Rewrapped) -> Option<(String, AuditEvent)>,
        mut change: impl FnMut(&Sealed) -> std::result::Result<Option<String>, E>,
        mut reached: impl FnMut(Rewrapped) -> std::result::Result<(), E>,
    ) -> std::result::Result<Rewrapped, E> {
        let mut connection = self.engine.connect().await?;
        let begin = self.engine.kind().begin();
        connection.execute(begin).await.map_err(StoreError::from)?;
        let mut done = Rewrapped::default();
        for place in &PLACES {
            let mut after = Vec::new();
            loop {
                let rows = place.rows(&mut connection, &after).await?;
                let Some((last, _)) = rows.last() else { break };
                after.clone_from(last);
                for (key, sealed) in &rows {
                    if let Some(text) = change(sealed)? {
                        put(&mut connection, place, key, sealed, &text).await?;
                        done.count += 1;
                    }
                }
                reached(done)?;
            }
        }
        keep(&mut connection, fingerprint, now).await?;
        if let Some((tenant, event)) = event(done) {
            audit::append(&mut connection, &tenant, &[event]).await?;
        }
        connection.execute("COMMIT").await.map_err(StoreError::from)?;
        let _ = connection.close().await;
        Ok(done)
    }
}

async fn put(
    connection: &mut AnyConnection,
    place: &Place,
    key: &[String],
    sealed: &Sealed,
    text: &str,
) -> Result<()> {
    let sql = place.change();
    let mut query = sqlx::query(AssertSqlSafe(sql)).bind(text).bind(sealed.text.as_str());
    for part in key {
        query = query.bind(part.as_str());
    }
    match query.execute(connection).await?.rows_affected() {
        1 => Ok(()),
        // Nobody else writes meanwhile, so this is a fault of ours: nothing of it is kept.
        changed => Err(StoreError::Failed(format!("{} rows of {} for {key:?}", changed, place.table))),
    }
}

async fn keep(connection: &mut AnyConnection, fingerprint: &str, now: Millis) -> Result<()> {
    sqlx::query(
        "INSERT INTO master_key (id, fingerprint, changed_at_ms) VALUES (1, $1, $2) \
         ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, changed_at_ms = excluded.changed_at_ms",
    )
    .bind(fingerprint)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

struct Note {
    fingerprint: String,
    now: Millis,
}

impl crate::writer::Act<String> for Note {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<String>
    where
        Self: 'c,
    {
        let row = sqlx::query(
            "INSERT INTO master_key (id, fingerprint, changed_at_ms) VALUES (1, $1, $2) \
             ON CONFLICT (id) DO UPDATE SET fingerprint = master_key.fingerprint RETURNING fingerprint",
        )
        .bind(self.fingerprint)
        .bind(self.now)
        .fetch_one(connection)
        .await?;
        Ok(row.try_get(0)?)
    }
}
