//! The beginning of a tenant's audit, and the checkpoint that stays for it.

use super::sweep::Pace;
use crate::{Control, Result};
use cofferdam_store::{AuditHead, Removed};

impl Control {
    /// Removes what is older than a time from every chain. One that is broken stays as it is, for whoever looks
    /// into it, and does not keep the others.
    pub(super) async fn sweep_audit(&self, before: i64, now: i64, pace: &mut Pace) -> Result<u64> {
        let (mut removed, mut failed) = (0, None);
        for tenant in self.parts.store.audit_tenants().await? {
            match self.sweep_chain(&tenant, before, now, pace).await {
                Ok(count) => removed += count,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(removed), Err)
    }

    async fn sweep_chain(&self, tenant: &str, before: i64, now: i64, pace: &mut Pace) -> Result<u64> {
        let store = &self.parts.store;
        if let Some(mut checkpoint) = store.audit_before(tenant, before, now).await? {
            // Where that fails nothing is removed: a chain without its beginning could not be told from a cut one.
            let last_removed = AuditHead { seq: checkpoint.seq, hash: checkpoint.hash.clone() };
            checkpoint.envelope = Some(self.sign_checkpoint(tenant, &last_removed)?.to_json());
            store.set_audit_checkpoint(tenant.to_owned(), checkpoint).await?;
        }
        let mut total = 0;
        loop {
            let Removed { count, is_more } = pace.step(store.expire_audit(tenant.to_owned())).await?;
            total += count;
            if !is_more {
                return Ok(total);
            }
        }
    }
}
