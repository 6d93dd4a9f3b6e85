//! Everything that a store can tell about its own soundness.

use crate::{Result, Store, StoreError};
use sqlx::Row;

/// What was looked at, and found sound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    pub jobs: i64,
    pub tenants: u64,
    /// Entries of their chains.
    pub entries: i64,
}

impl Store {
    /// Looks through the database's pages and references, as far as it can be asked to, and walks every chain.
    pub async fn check(&self) -> Result<Checked> {
        for &text in self.engine.kind().checks() {
            for row in self.engine.fetch_slow(sqlx::query(text)).await? {
                let found: String = row.try_get(0)?;
                if found != "ok" {
                    return Err(StoreError::Unreadable(format!("{text}: {found}")));
                }
            }
        }
        let row = self.engine.fetch_slow(sqlx::query("SELECT COUNT(*) FROM jobs")).await?;
        let jobs = row.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
        let mut checked = Checked { jobs, ..Checked::default() };
        for tenant in self.audit_tenants().await? {
            checked.tenants += 1;
            let removed = self.audit_checkpoint(&tenant).await?.map_or(0, |checkpoint| checkpoint.seq);
            checked.entries += self.verify_audit(&tenant).await? - removed;
        }
        Ok(checked)
    }
}
