//! `artifact.delete`: its key is gone when this returns, and with it the meaning of its bytes.

use crate::{Control, Result};
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn delete_artifact(&self, permit: &Permit, id: &str) -> Result<()> {
        let event = self.event(permit, "artifact.deleted", id, json!({}));
        self.parts.store.delete_artifact(permit.tenant().to_owned(), id.to_owned(), event).await?;
        self.sweep_soon();
        Ok(())
    }
}
