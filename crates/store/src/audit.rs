//! What happened, in a chain for each tenant: every entry holds a hash over itself and the one before it, so
//! that an edit or a gap shows.

use crate::{Millis, Result, Store, StoreError, texts};
use cofferdam_core::{AuditEntry, chain_hash};
use sqlx::{AnyConnection, Row};

/// Something to be noted. Nothing secret goes in here.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    pub at_ms: Millis,
    pub kind: &'static str,
    pub actor: String,
    pub resource: String,
    pub details: serde_json::Value,
}

/// The last entry of a chain; 0 and no hash before there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditHead {
    pub seq: i64,
    pub hash: String,
}

/// Adds to a tenant's chain, inside a transaction that holds whatever the events are about.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    tenant: &str,
    events: &[AuditEvent],
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    // The update also keeps every other writer of this chain waiting until the end of the transaction.
    let head = sqlx::query(
        "INSERT INTO audit_heads (tenant_id, seq, hash) VALUES ($1, 0, '') \
         ON CONFLICT (tenant_id) DO UPDATE SET seq = audit_heads.seq RETURNING seq, hash, at_ms",
    )
    .bind(tenant)
    .fetch_one(&mut *connection)
    .await?;
    let (mut seq, mut hash, mut at_ms): (i64, String, Millis) =
        (head.try_get(0)?, head.try_get(1)?, head.try_get(2)?);
    for event in events {
        seq += 1;
        // Requests that overlap come in any order, and clocks are set back. In a chain time only goes forward, so
        // that the first entry of a time can be found without an index for it.
        at_ms = at_ms.max(event.at_ms);
        let mut entry = AuditEntry {
            seq,
            at_ms,
            kind: event.kind.to_owned(),
            actor: event.actor.clone(),
            resource: event.resource.clone(),
            details: event.details.to_string(),
            hash: String::new(),
        };
        hash = chain_hash(&hash, tenant, &entry);
        entry.hash.clone_from(&hash);
        insert(connection, tenant, entry).await?;
    }
    sqlx::query("UPDATE audit_heads SET seq = $1, hash = $2, at_ms = $3 WHERE tenant_id = $4")
        .bind(seq)
        .bind(hash)
        .bind(at_ms)
        .bind(tenant)
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert(connection: &mut AnyConnection, tenant: &str, entry: AuditEntry) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit (tenant_id, seq, at_ms, kind, actor, resource, details, hash) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(tenant)
    .bind(entry.seq)
    .bind(entry.at_ms)
    .bind(entry.kind)
    .bind(entry.actor)
    .bind(entry.resource)
    .bind(entry.details)
    .bind(entry.hash)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Notes something by itself.
    pub async fn note(&self, tenant: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant", tenant.as_str())])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Note { tenant, event }).await
    }

    /// A part of a tenant's chain, in order.
    pub async fn audit(&self, tenant: &str, after_seq: i64, limit: i64) -> Result<Vec<AuditEntry>> {
        let rows = sqlx::query(
            "SELECT seq, at_ms, kind, actor, resource, details, hash FROM audit \
             WHERE tenant_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        )
        .bind(tenant)
        .bind(after_seq)
        .bind(limit)
        .fetch_all(self.engine.readers())
        .await?;
        rows.iter().map(|row| Ok(entry(row)?)).collect()
    }

    /// Walks a tenant's whole chain and returns how long it is, or where it is broken.
    pub async fn verify_audit(&self, tenant: &str) -> Result<i64> {
        let broken = |seq| StoreError::Unreadable(format!("the audit of {tenant} is broken at entry {seq}"));
        // Read first: the chain grows meanwhile, but what it had by now must be there.
        let head = self.audit_head(tenant).await?;
        let (mut seq, mut hash) = (0, String::new());
        loop {
            let entries = self.audit(tenant, seq, 1000).await?;
            if entries.is_empty() {
                return if seq < head.seq { Err(broken(seq + 1)) } else { Ok(seq) };
            }
            for entry in entries {
                let is_next = entry.seq == seq + 1 && entry.hash == chain_hash(&hash, tenant, &entry);
                if !is_next || (entry.seq == head.seq && entry.hash != head.hash) {
                    return Err(broken(seq + 1));
                }
                (seq, hash) = (entry.seq, entry.hash);
            }
        }
    }

    /// The number and the hash of the last entry. Without them, a chain that was cut off would look like a short one.
    pub async fn audit_head(&self, tenant: &str) -> Result<AuditHead> {
        let row = sqlx::query("SELECT seq, hash FROM audit_heads WHERE tenant_id = $1")
            .bind(tenant)
            .fetch_optional(self.engine.readers())
            .await?;
        let Some(row) = row else { return Ok(AuditHead::default()) };
        Ok(AuditHead { seq: row.try_get(0)?, hash: row.try_get(1)? })
    }
}

pub(crate) fn entry(row: &sqlx::any::AnyRow) -> sqlx::Result<AuditEntry> {
    Ok(AuditEntry {
        seq: row.try_get(0)?,
        at_ms: row.try_get(1)?,
        kind: row.try_get(2)?,
        actor: row.try_get(3)?,
        resource: row.try_get(4)?,
        details: row.try_get(5)?,
        hash: row.try_get(6)?,
    })
}

struct Note {
    tenant: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Note {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        append(connection, &self.tenant, &[self.event]).await
    }
}
