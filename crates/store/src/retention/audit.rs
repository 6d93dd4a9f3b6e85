//! The beginning of a tenant's chain. What stays in its place is a checkpoint: how far it went, and the hash from which
//! the rest goes on. It is set before anything goes, so the chain is whole at every moment.

use super::{ROWS, Removed};
use crate::audit::append;
use crate::{AuditEvent, Millis, Result, Store, StoreError, chain_hash, texts};
use sqlx::{AnyConnection, Row};

/// So many entries are read at a time.
const PAGE: i64 = 1000;

pub(crate) const FIND: &str = "SELECT seq, hash, at_ms, envelope FROM audit_checkpoints WHERE tenant_id = $1";

pub(crate) const REMOVE: &str = "DELETE FROM audit WHERE tenant_id = $1 AND seq IN \
    (SELECT seq FROM audit WHERE tenant_id = $1 AND seq <= $2 ORDER BY seq LIMIT $3)";

/// The last entry of a chain that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: i64,
    pub hash: String,
    /// When it was set.
    pub at_ms: Millis,
    /// The same, signed, where somebody signs.
    pub envelope: Option<String>,
}

impl Store {
    /// The tenants that have a chain.
    pub async fn audit_tenants(&self) -> Result<Vec<String>> {
        let query = sqlx::query("SELECT tenant_id FROM audit_heads ORDER BY tenant_id");
        let rows = self.engine.fetch_all(query).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Where a tenant's chain begins now.
    pub async fn audit_checkpoint(&self, tenant: &str) -> Result<Option<Checkpoint>> {
        let row = self.engine.fetch_optional(sqlx::query(FIND).bind(tenant)).await?;
        let read = |row: sqlx::any::AnyRow| -> sqlx::Result<Checkpoint> {
            Ok(Checkpoint {
                seq: row.try_get(0)?,
                hash: row.try_get(1)?,
                at_ms: row.try_get(2)?,
                envelope: row.try_get(3)?,
            })
        };
        Ok(row.map(read).transpose()?)
    }

    /// How much of a chain's beginning is older than a time: everything before the first entry that is not. What is
    /// broken is not forgotten, but told.
    pub async fn audit_before(
        &self,
        tenant: &str,
        before: Millis,
        now: Millis,
    ) -> Result<Option<Checkpoint>> {
        let start = self.audit_checkpoint(tenant).await?.map_or((0, String::new()), |at| (at.seq, at.hash));
        let (mut seq, mut hash) = start.clone();
        let mut page = 1;
        'pages: loop {
            let entries = self.audit(tenant, seq, page).await?;
            // The first is looked at alone: mostly it is young, and that is all.
            let is_last = (entries.len() as i64) < page;
            page = PAGE;
            for entry in entries {
                if entry.at_ms >= before {
                    break 'pages;
                }
                if entry.seq != seq + 1 || entry.hash != chain_hash(&hash, tenant, &entry) {
                    let text = format!("the audit of {tenant} is broken at entry {}", seq + 1);
                    return Err(StoreError::Unreadable(text));
                }
                (seq, hash) = (entry.seq, entry.hash);
            }
            if is_last {
                break;
            }
        }
        Ok((seq > start.0).then_some(Checkpoint { seq, hash, at_ms: now, envelope: None }))
    }

    /// Lets a chain begin after a checkpoint, and says so in it. What is before it may be removed from now on.
    pub async fn set_audit_checkpoint(&self, tenant: String, checkpoint: Checkpoint) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the checkpoint's hash", &checkpoint.hash)])?;
        texts::check([("the checkpoint's envelope", checkpoint.envelope.as_deref())])?;
        self.writer.write(Set { tenant, checkpoint }).await
    }

    /// Removes some entries that are before a tenant's checkpoint.
    pub async fn expire_audit(&self, tenant: String) -> Result<Removed> {
        let Some(checkpoint) = self.audit_checkpoint(&tenant).await? else { return Ok(Removed::default()) };
        // The oldest is looked at by a reader: mostly there is nothing to write.
        let oldest = self.audit(&tenant, 0, 1).await?;
        if oldest.first().is_none_or(|entry| entry.seq > checkpoint.seq) {
            return Ok(Removed::default());
        }
        self.writer.write(Expire { tenant, seq: checkpoint.seq }).await
    }
}

struct Set {
    tenant: String,
    checkpoint: Checkpoint,
}

impl crate::writer::Act<()> for Set {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, checkpoint: Checkpoint { seq, hash, at_ms, envelope } } = self;
        // Only forward, and only at an entry that is there: whoever came first has moved it.
        let done = sqlx::query(
            "INSERT INTO audit_checkpoints (tenant_id, seq, hash, at_ms, envelope) \
             SELECT tenant_id, seq, hash, $1, $2 FROM audit WHERE tenant_id = $3 AND seq = $4 AND hash = $5 \
             ON CONFLICT (tenant_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, \
             at_ms = excluded.at_ms, envelope = excluded.envelope WHERE excluded.seq > audit_checkpoints.seq",
        )
        .bind(at_ms)
        .bind(envelope)
        .bind(tenant.as_str())
        .bind(seq)
        .bind(hash.as_str())
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "entry of the audit" });
        }
        let event = AuditEvent {
            at_ms,
            kind: "retention.audit",
            actor: "system".to_owned(),
            resource: tenant.clone(),
            details: serde_json::json!({"seq": seq, "hash": hash}),
        };
        append(connection, &tenant, &[event]).await
    }
}

struct Expire {
    tenant: String,
    seq: i64,
}

impl crate::writer::Act<Removed> for Expire {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Removed>
    where
        Self: 'c,
    {
        let query = sqlx::query(REMOVE).bind(self.tenant).bind(self.seq).bind(ROWS);
        let count = query.execute(connection).await?.rows_affected();
        Ok(Removed { count, is_more: count == ROWS as u64 })
    }
}
