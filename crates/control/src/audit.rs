//! Verbs on the audit: list, head, export.

use crate::{Control, ControlError, Result, now_ms};
use cofferdam_policy::Permit;
use cofferdam_proof::{ChainPoint, Checkpoint, Envelope, ExportHeader, Head, write_line};
use cofferdam_store::{AuditEntry, AuditFilter, AuditHead, Store, StoreError};

/// So many entries at a time, and never a whole chain in memory.
const BATCH: i64 = 1000;

/// A chain on its way out: a header, then its entries, as lines.
#[derive(Debug)]
pub struct AuditExport {
    control: Control,
    tenant: String,
    header: Option<String>,
    after_seq: i64,
    up_to_seq: i64,
}

impl Control {
    pub async fn list_audit(&self, permit: &Permit, filter: &AuditFilter) -> Result<Vec<AuditEntry>> {
        self.check_owner(permit).await?;
        self.note_read(permit, "audit.read", permit.tenant()).await?;
        Ok(self.parts.store.audit_list(permit.tenant(), filter).await?)
    }

    /// The last entry of the tenant's chain, signed.
    pub async fn head_audit(&self, permit: &Permit) -> Result<Envelope> {
        self.check_owner(permit).await?;
        let AuditHead { seq, hash } = self.parts.store.audit_head(permit.tenant()).await?;
        let point = ChainPoint::new(permit.tenant(), seq, &hash, now_ms());
        Ok(Head(point).seal(&self.signing()?.current))
    }

    /// The tenant's chain up to an entry, or to the last one that there is now.
    pub async fn export_audit(&self, permit: &Permit, up_to_seq: Option<i64>) -> Result<AuditExport> {
        self.check_owner(permit).await?;
        self.note_read(permit, "audit.read", permit.tenant()).await?;
        let last = self.parts.store.audit_head(permit.tenant()).await?.seq;
        let tenant = permit.tenant().to_owned();
        let (checkpoint, after_seq) = chain_start(&self.parts.store, &tenant).await?;
        let header = Some(write_line(&ExportHeader::new(&tenant, checkpoint)));
        let up_to_seq = up_to_seq.map_or(last, |seq| seq.min(last));
        Ok(AuditExport { control: self.clone(), tenant, header, after_seq, up_to_seq })
    }

    /// An operator may name any tenant, also one that is not there.
    async fn check_owner(&self, permit: &Permit) -> Result<()> {
        if permit.tenant() == permit.principal().tenant {
            return Ok(());
        }
        let known = self.parts.store.tenant(permit.tenant()).await?;
        known.map(drop).ok_or(ControlError::NotFound { what: "tenant" })
    }

    /// Signs that a tenant's chain was cut after an entry, for whoever removes what is too old.
    pub fn sign_checkpoint(&self, tenant: &str, last_removed: &AuditHead) -> Result<Envelope> {
        let AuditHead { seq, hash } = last_removed;
        Ok(Checkpoint(ChainPoint::new(tenant, *seq, hash, now_ms())).seal(&self.signing()?.current))
    }
}

/// Where a tenant's chain begins: after the signed checkpoint that retention has left, if it has.
pub async fn chain_start(store: &Store, tenant: &str) -> Result<(Option<Envelope>, i64)> {
    let Some(checkpoint) = store.audit_checkpoint(tenant).await? else { return Ok((None, 0)) };
    let unreadable = || StoreError::Unreadable(format!("the checkpoint of the audit of {tenant}"));
    let envelope = checkpoint.envelope.as_deref().ok_or_else(unreadable)?;
    Ok((Some(Envelope::parse(envelope.as_bytes()).map_err(|_| unreadable())?), checkpoint.seq))
}

impl AuditExport {
    /// The next lines; none at the end.
    pub async fn next(&mut self) -> Result<Option<String>> {
        if let Some(header) = self.header.take() {
            return Ok(Some(header));
        }
        let limit = BATCH.min(self.up_to_seq - self.after_seq);
        if limit <= 0 {
            return Ok(None);
        }
        let entries = self.control.parts.store.audit(&self.tenant, self.after_seq, limit).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.after_seq = last.seq;
        Ok(Some(entries.iter().take_while(|entry| entry.seq <= self.up_to_seq).map(write_line).collect()))
    }
}
