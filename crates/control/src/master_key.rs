//! The master key of a store: whether it is the right one, and its change to another.

use crate::webhooks::{SEALED, webhook_about};
use crate::{FIRST_TENANT, Result, now_ms, secrets};
use cofferdam_artifacts::{ArtifactError, MasterKey, Name, archive_about, steps_about};
use cofferdam_store::{AuditEvent, Rewrapped, Sealed, SealedFor, Store};
use serde_json::json;

/// Refuses a key that is not the one that the store is under. A store without a note of one gets it, if what is sealed
/// there opens.
pub async fn check_master_key(store: &Store, key: &MasterKey) -> Result<()> {
    let noted = match store.master_key().await? {
        Some(noted) => noted,
        None => {
            for sealed in store.sealed_samples().await? {
                if change(&sealed, key, key).is_err() {
                    return Err(foreign(key, "which what is sealed in the store does not open with"));
                }
            }
            store.note_master_key(key.fingerprint().to_owned(), now_ms()).await?
        }
    };
    match noted == key.fingerprint() {
        true => Ok(()),
        false => Err(foreign(key, &format!("and the store is under {noted}"))),
    }
}

fn foreign(key: &MasterKey, why: &str) -> crate::ControlError {
    let what = format!(
        "the master key is {}, {why}; put the right one there: master.key in the data folder, or COFFERDAM_MASTER_KEY",
        key.fingerprint()
    );
    ArtifactError::Setup { what }.into()
}

/// Puts everything that is sealed in a store under another key, in one transaction. `reached` is told how far it is.
pub async fn rewrap_master_key(
    store: &Store,
    key: &MasterKey,
    next: &MasterKey,
    mut reached: impl FnMut(Rewrapped),
) -> Result<Rewrapped> {
    check_master_key(store, key).await?;
    let tenant = store.find_tenant(FIRST_TENANT).await?;
    let event = |done: Rewrapped| {
        let details = json!({"before": key.fingerprint(), "rewrapped": done.count});
        let (actor, resource) = ("system".to_owned(), next.fingerprint().to_owned());
        let event = AuditEvent { at_ms: now_ms(), kind: "master_key.rotated", actor, resource, details };
        Some((tenant?, event))
    };
    let reached = |done| {
        reached(done);
        Ok(())
    };
    let done = store
        .rewrap(next.fingerprint(), now_ms(), event, |sealed| change(sealed, key, next), reached)
        .await?;
    // What is under the old key leaves the database's own files, too.
    store.forget_deleted().await?;
    Ok(done)
}

/// A sealed text under another key. One that was never sealed stays as it is.
fn change(sealed: &Sealed, key: &MasterKey, next: &MasterKey) -> Result<Option<String>> {
    let Sealed { owner, text } = sealed;
    let changed = match owner {
        SealedFor::Artifact { tenant, id, attempt } => {
            key.rewrap(text, &Name::new(tenant, id, attempt)?.about(), next)
        }
        SealedFor::Archive { owner } => key.rewrap(text, &archive_about(owner), next),
        SealedFor::Steps { session } => key.rewrap(text, &steps_about(session), next),
        SealedFor::Secret { tenant, name } => key.reseal(text, &secrets::about(tenant, name), next),
        SealedFor::Webhook { url } => match text.strip_prefix(SEALED) {
            None => return Ok(None),
            Some(text) => key.reseal(text, &webhook_about(url), next).map(|text| format!("{SEALED}{text}")),
        },
    };
    let unreadable = |_| ArtifactError::Setup {
        what: format!("{owner:?} does not open with the key {}; delete it, or restore it", key.fingerprint()),
    };
    Ok(Some(changed.map_err(unreadable)?))
}
